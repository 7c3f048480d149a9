//! TCP types: the halves that a [`TcpStream`](super::TcpStream) is split into.

#![forbid(unsafe_code)]

/// Begins examples: defines `peer`, connected to a stream named `$name`.
macro_rules! tcp_pair {
    ($name:literal) => {
        concat!(
            "use blitz_io::net::{TcpListener, TcpStream};\n\n# blitz_io::run(async {\n",
            "let listener = TcpListener::bind(\"127.0.0.1:0\").await?;\n",
            "let peer = TcpStream::connect(listener.local_addr()?).await?;\n",
            "let (",
            $name,
            ", _) = listener.accept().await?;"
        )
    };
}

pub(super) mod listener;
pub(super) mod stream;
pub(super) mod socket;
mod split;

pub use self::split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
