//! Unix-only types that are not in [`net`](super) itself: pipes, addresses and halves of streams.

#![forbid(unsafe_code)]

/// Begins examples: defines `peer`, connected to a stream named `$name`.
macro_rules! unix_pair {
    ($name:literal) => {
        concat!(
            "use blitz_io::net::UnixStream;\n\n# blitz_io::run(async {\nlet (",
            $name,
            ", peer) = UnixStream::pair()?;"
        )
    };
}

/// Begins examples with a path: defines `dir`, a directory that is removed at the end.
macro_rules! in_folder {
    ($use:literal) => {
        concat!(
            "use blitz_io::net::",
            $use,
            ";\n\n# blitz_io::run(async {\n# let dir = tempfile::tempdir()?;\n# let dir = dir.path();"
        )
    };
}

#[doc(hidden)]
pub mod datagram;
pub(super) mod listener;
pub(super) mod stream;
pub(super) mod socket;
mod addr;
mod split;
mod ucred;
pub mod pipe;

pub use self::{
    addr::SocketAddr,
    split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf},
    ucred::UCred,
};

/// User ID.
#[allow(non_camel_case_types, reason = "the name is C's")]
pub type uid_t = u32;

/// Group ID.
#[allow(non_camel_case_types, reason = "the name is C's")]
pub type gid_t = u32;

/// Process ID or process group ID.
#[allow(non_camel_case_types, reason = "the name is C's")]
pub type pid_t = i32;
