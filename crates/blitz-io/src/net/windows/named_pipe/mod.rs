//! Named pipes: streams between processes, found by a name that begins with `\\.\pipe\`.
//!
//! A server makes an instance of the pipe with [`ServerOptions`] and waits for a client with
//! [`NamedPipeServer::connect`]. An instance is for one client: to be found by the next one,
//! a server makes another instance before it serves the first. A client opens the pipe with
//! [`ClientOptions`].
//!
//! What is written is on its way when the call returns; an error of it is told to the next
//! write.
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

/// Whether a pipe keeps apart what was written in separate calls.
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
    /// A stream of bytes.
    Byte,
    /// Messages: a read ends where a write did. One longer than the buffer of a read comes
    /// in several.
    Message,
}

/// Which end of a pipe one holds.
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
    /// The one that was opened.
    Client,
    /// The one that was created.
    Server,
}

/// What the system knows of a pipe.
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
    /// Bytes or messages.
    pub mode: PipeMode,
    /// Whose end it is.
    pub end: PipeEnd,
    /// How many instances of the pipe there may be at a time; 255 means any number.
    pub max_instances: u32,
    /// Bytes that the system keeps on their way out.
    pub out_buffer_size: u32,
    /// Bytes that the system keeps on their way in.
    pub in_buffer_size: u32,
}
