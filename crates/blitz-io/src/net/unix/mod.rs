//! Unix sockets and pipes: what is not in [`net`](super) itself.

#![forbid(unsafe_code)]

/// The first part of examples: `peer`, connected to a stream by the name given.
macro_rules! unix_pair {
    ($name:literal) => {
        concat!(
            "use blitz_io::net::UnixStream;\n\n# blitz_io::run(async {\nlet (",
            $name,
            ", peer) = UnixStream::pair()?;"
        )
    };
}

/// The first part of examples with a path: `dir`, a folder that is removed at the end.
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

/// The number of a user.
#[allow(non_camel_case_types, reason = "the name is C's")]
pub type uid_t = u32;

/// The number of a group.
#[allow(non_camel_case_types, reason = "the name is C's")]
pub type gid_t = u32;

/// The number of a process or of a group of them.
#[allow(non_camel_case_types, reason = "the name is C's")]
pub type pid_t = i32;
