//! Named pipes: streams between processes, found by a name that begins with `\\.\pipe\`.
//!
//! A server creates an instance of the pipe with [`ServerOptions`] and waits for a client with
//! [`NamedPipeServer::connect`]. An instance serves one client: so that the next client finds the
//! pipe, a server creates another instance before it serves the first. A client opens the pipe
//! with [`ClientOptions`].
//!
//! A write is in progress when the call returns; its error is reported by the next write.
//!
//! # Examples
//!
//! ```
//! use blitz_io::{
//!     io::{AsyncReadExt, AsyncWriteExt},
//!     net::windows::named_pipe::{ClientOptions, ServerOptions},
//! };
//!
//! # blitz_io::run(async {
//! let name = format!(r"\\.\pipe\blitz-io-example-{}", std::process::id());
//! let mut server = ServerOptions::new().first_pipe_instance(true).create(&name)?;
//! let mut client = ClientOptions::new().open(&name)?;
//! server.connect().await?;
//!
//! client.write_all(b"ping").await?;
//! let mut bytes = [0; 4];
//! server.read_exact(&mut bytes).await?;
//! assert_eq!(&bytes, b"ping");
//! # Ok::<(), std::io::Error>(())
//! # }).unwrap();
//! ```

mod ends;
mod options;

pub use self::{
    ends::{NamedPipeClient, NamedPipeServer},
    options::{ClientOptions, ServerOptions},
};

/// Mode of a pipe: whether it keeps apart the data that were written in separate calls.
///
/// # Examples
///
/// ```
/// use blitz_io::net::windows::named_pipe::{PipeMode, ServerOptions};
///
/// # blitz_io::run(async {
/// let name = format!(r"\\.\pipe\blitz-io-mode-{}", std::process::id());
/// let server = ServerOptions::new().pipe_mode(PipeMode::Message).create(&name)?;
/// assert_eq!(server.info()?.mode, PipeMode::Message);
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PipeMode {
    /// Stream of bytes.
    Byte,
    /// Messages: a read ends where a write did. A message longer than the buffer of a read is
    /// returned by several reads.
    Message,
}

/// End of a pipe that a process holds.
///
/// # Examples
///
/// ```
/// use blitz_io::net::windows::named_pipe::{PipeEnd, ServerOptions};
///
/// # blitz_io::run(async {
/// let name = format!(r"\\.\pipe\blitz-io-end-{}", std::process::id());
/// assert_eq!(ServerOptions::new().create(&name)?.info()?.end, PipeEnd::Server);
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PipeEnd {
    /// Client end, which was opened.
    Client,
    /// Server end, which was created.
    Server,
}

/// Properties of a pipe that the system reports.
///
/// # Examples
///
/// ```
/// use blitz_io::net::windows::named_pipe::ServerOptions;
///
/// # blitz_io::run(async {
/// let name = format!(r"\\.\pipe\blitz-io-info-{}", std::process::id());
/// let server = ServerOptions::new().max_instances(5).create(&name)?;
/// assert_eq!(server.info()?.max_instances, 5);
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PipeInfo {
    /// Kind of data that the pipe carries: bytes or messages.
    pub mode: PipeMode,
    /// The end of the pipe: the server's or the client's.
    pub end: PipeEnd,
    /// Limit of the instances of the pipe at a time; 255 means any number.
    pub max_instances: u32,
    /// Size of the system's buffer for outgoing bytes.
    pub out_buffer_size: u32,
    /// Size of the system's buffer for incoming bytes.
    pub in_buffer_size: u32,
}
