//! How a pipe is made, and how it is opened. The system is asked in `net/raw.rs`.

#![forbid(unsafe_code)]

use std::{ffi::OsStr, io};

use windows_sys::Win32::{
    Foundation::{GENERIC_READ, GENERIC_WRITE},
    Storage::FileSystem::{
        FILE_FLAG_FIRST_PIPE_INSTANCE, FILE_FLAG_OVERLAPPED, PIPE_ACCESS_INBOUND,
        PIPE_ACCESS_OUTBOUND, SECURITY_IDENTIFICATION, SECURITY_SQOS_PRESENT, WRITE_DAC,
        WRITE_OWNER,
    },
    System::{
        Pipes::{
            PIPE_READMODE_MESSAGE, PIPE_REJECT_REMOTE_CLIENTS, PIPE_TYPE_MESSAGE,
            PIPE_UNLIMITED_INSTANCES,
        },
        SystemServices::ACCESS_SYSTEM_SECURITY,
    },
};

use super::{NamedPipeClient, NamedPipeServer, PipeMode};

/// Bytes that the system keeps each way unless told otherwise: Tokio's figure.
const BUFFER_SIZE: u32 = 64 * 1024;

/// How an instance of a pipe is made, for a server.
///
/// # Examples
///
/// ```
/// use blitz_io::net::windows::named_pipe::ServerOptions;
///
/// # blitz_io::run(async {
/// let name = format!(r"\\.\pipe\blitz-io-server-{}", std::process::id());
/// let server = ServerOptions::new().first_pipe_instance(true).create(&name)?;
/// // Somebody else who believes to be the first is told.
/// let second = ServerOptions::new().first_pipe_instance(true).create(&name);
/// assert_eq!(second.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
/// # drop(server);
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
// Each option is a field of its own, and becomes a flag only when the pipe is made: so no
// option can undo another, in whichever order they are set.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    access_inbound: bool,
    access_outbound: bool,
    first_pipe_instance: bool,
    write_dac: bool,
    write_owner: bool,
    access_system_security: bool,
    pipe_mode: PipeMode,
    reject_remote_clients: bool,
    pub(in crate::net) max_instances: u32,
    pub(in crate::net) out_buffer_size: u32,
    pub(in crate::net) in_buffer_size: u32,
}

/// Setters of flags.
macro_rules! flags {
    ($($(#[$meta:meta])* $name:ident,)*) => {$(
        $(#[$meta])*
        ///
        /// # Examples
        ///
        /// ```
        #[doc = concat!("# use blitz_io::net::windows::named_pipe::ServerOptions;")]
        #[doc = concat!("let mut options = ServerOptions::new();")]
        #[doc = concat!("options.", stringify!($name), "(true).", stringify!($name), "(false);")]
        /// ```
        pub fn $name(&mut self, $name: bool) -> &mut Self {
            self.$name = $name;
            self
        }
    )*};
}

impl ServerOptions {
    /// Both directions, bytes, no clients from other machines, any number of instances, and
    /// 64 KiB on their way each way.
    ///
    /// # Examples
    ///
    /// ```
    /// let options = blitz_io::net::windows::named_pipe::ServerOptions::new();
    /// # drop(options);
    /// ```
    pub fn new() -> Self {
        Self {
            access_inbound: true,
            access_outbound: true,
            first_pipe_instance: false,
            write_dac: false,
            write_owner: false,
            access_system_security: false,
            pipe_mode: PipeMode::Byte,
            reject_remote_clients: true,
            max_instances: PIPE_UNLIMITED_INSTANCES,
            out_buffer_size: BUFFER_SIZE,
            in_buffer_size: BUFFER_SIZE,
        }
    }

    /// Bytes or messages; all instances of a pipe must agree. It changes nothing else.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::net::windows::named_pipe::{PipeMode, ServerOptions};
    /// let mut options = ServerOptions::new();
    /// options.pipe_mode(PipeMode::Message);
    /// ```
    pub fn pipe_mode(&mut self, pipe_mode: PipeMode) -> &mut Self {
        self.pipe_mode = pipe_mode;
        self
    }

    flags! {
        /// Whether clients may write and the server read. On unless told otherwise.
        access_inbound,
        /// Whether the server may write and clients read. On unless told otherwise.
        access_outbound,
        /// Refuses to make the pipe if there is an instance of it already: so nobody answers
        /// in the server's name who was there before. Off unless told otherwise.
        first_pipe_instance,
        /// Whether the server may change who may use the pipe. Off unless told otherwise.
        write_dac,
        /// Whether the server may change who owns the pipe. Off unless told otherwise.
        write_owner,
        /// Whether the server may change what of the pipe is audited. Off unless told otherwise.
        access_system_security,
        /// Whether clients on other machines are turned away. On unless told otherwise, and
        /// whatever else is set.
        reject_remote_clients,
    }

    /// How many instances there may be at a time.
    ///
    /// # Panics
    /// Beyond 254.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::net::windows::named_pipe::ServerOptions;
    /// let mut options = ServerOptions::new();
    /// options.max_instances(16);
    /// ```
    #[track_caller]
    pub fn max_instances(&mut self, instances: usize) -> &mut Self {
        // The beginning is Tokio's.
        assert!(
            instances < PIPE_UNLIMITED_INSTANCES as usize,
            "cannot specify more than 254 instances: do not call `max_instances` for any number"
        );
        self.max_instances = instances as u32;
        self
    }

    /// How many bytes the system keeps on their way to the client.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::net::windows::named_pipe::ServerOptions;
    /// let mut options = ServerOptions::new();
    /// options.out_buffer_size(4096);
    /// ```
    pub fn out_buffer_size(&mut self, buffer: u32) -> &mut Self {
        self.out_buffer_size = buffer;
        self
    }

    /// How many bytes the system keeps on their way from the client.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::net::windows::named_pipe::ServerOptions;
    /// let mut options = ServerOptions::new();
    /// options.in_buffer_size(4096);
    /// ```
    pub fn in_buffer_size(&mut self, buffer: u32) -> &mut Self {
        self.in_buffer_size = buffer;
        self
    }

    /// Makes an instance, which belongs to the current runtime.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Panics
    /// Without a runtime whose I/O is enabled.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::windows::named_pipe::ServerOptions;
    ///
    /// # blitz_io::run(async {
    /// let name = format!(r"\\.\pipe\blitz-io-create-{}", std::process::id());
    /// let server = ServerOptions::new().create(&name)?;
    /// # drop(server);
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn create(&self, addr: impl AsRef<OsStr>) -> io::Result<NamedPipeServer> {
        crate::net::raw::create_pipe(self, addr.as_ref())
    }

    pub(in crate::net) fn open_mode(&self) -> u32 {
        let flags = [
            (self.access_inbound, PIPE_ACCESS_INBOUND),
            (self.access_outbound, PIPE_ACCESS_OUTBOUND),
            (self.first_pipe_instance, FILE_FLAG_FIRST_PIPE_INSTANCE),
            (self.write_dac, WRITE_DAC),
            (self.write_owner, WRITE_OWNER),
            (self.access_system_security, ACCESS_SYSTEM_SECURITY),
        ];
        united(FILE_FLAG_OVERLAPPED, &flags)
    }

    pub(in crate::net) fn pipe_flags(&self) -> u32 {
        let has_messages = self.pipe_mode == PipeMode::Message;
        let flags = [
            (has_messages, PIPE_TYPE_MESSAGE | PIPE_READMODE_MESSAGE),
            (self.reject_remote_clients, PIPE_REJECT_REMOTE_CLIENTS),
        ];
        united(0, &flags)
    }
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// How a client opens a pipe.
///
/// # Examples
///
/// A pipe all of whose instances are taken is busy: try again after a while.
///
/// ```no_run
/// use blitz_io::{net::windows::named_pipe::ClientOptions, time};
///
/// /// `ERROR_PIPE_BUSY` of the system.
/// const BUSY: i32 = 231;
///
/// # async fn example() -> std::io::Result<()> {
/// let client = loop {
///     match ClientOptions::new().open(r"\\.\pipe\my-service") {
///         Err(error) if error.raw_os_error() == Some(BUSY) => {
///             time::sleep(time::Duration::from_millis(50)).await;
///         }
///         done => break done?,
///     }
/// };
/// # drop(client);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct ClientOptions {
    read: bool,
    write: bool,
    security_qos_flags: u32,
    pipe_mode: PipeMode,
}

impl ClientOptions {
    /// Both directions, bytes, and the server may learn who the client is but not act in its
    /// name.
    ///
    /// # Examples
    ///
    /// ```
    /// let options = blitz_io::net::windows::named_pipe::ClientOptions::new();
    /// # drop(options);
    /// ```
    pub fn new() -> Self {
        Self {
            read: true,
            write: true,
            security_qos_flags: SECURITY_IDENTIFICATION | SECURITY_SQOS_PRESENT,
            pipe_mode: PipeMode::Byte,
        }
    }

    /// Whether the client reads. On unless told otherwise.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::net::windows::named_pipe::ClientOptions;
    /// let mut options = ClientOptions::new();
    /// options.read(false);
    /// ```
    pub fn read(&mut self, allowed: bool) -> &mut Self {
        self.read = allowed;
        self
    }

    /// Whether the client writes. On unless told otherwise.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::net::windows::named_pipe::ClientOptions;
    /// let mut options = ClientOptions::new();
    /// options.write(false);
    /// ```
    pub fn write(&mut self, allowed: bool) -> &mut Self {
        self.write = allowed;
        self
    }

    /// What the server may do in the client's name: a `SECURITY_*` level of the system's.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::net::windows::named_pipe::ClientOptions;
    /// const SECURITY_ANONYMOUS: u32 = 0;
    ///
    /// let mut options = ClientOptions::new();
    /// options.security_qos_flags(SECURITY_ANONYMOUS);
    /// ```
    pub fn security_qos_flags(&mut self, flags: u32) -> &mut Self {
        // Without this one the others have other meanings.
        self.security_qos_flags = flags | SECURITY_SQOS_PRESENT;
        self
    }

    /// Whether reads end where writes did, if the server made a pipe of messages.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::net::windows::named_pipe::{ClientOptions, PipeMode};
    /// let mut options = ClientOptions::new();
    /// options.pipe_mode(PipeMode::Message);
    /// ```
    pub fn pipe_mode(&mut self, pipe_mode: PipeMode) -> &mut Self {
        self.pipe_mode = pipe_mode;
        self
    }

    /// Opens the pipe of that name. The client belongs to the current runtime.
    ///
    /// # Errors
    /// `NotFound` if there is none; the system's `ERROR_PIPE_BUSY` if all instances have a
    /// client.
    ///
    /// # Panics
    /// Without a runtime whose I/O is enabled.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::windows::named_pipe::ClientOptions;
    ///
    /// # blitz_io::run(async {
    /// let error = ClientOptions::new().open(r"\\.\pipe\there-is-no-such-pipe").unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn open(&self, addr: impl AsRef<OsStr>) -> io::Result<NamedPipeClient> {
        crate::net::raw::open_pipe(self, addr.as_ref())
    }

    pub(in crate::net) fn access(&self) -> u32 {
        united(0, &[(self.read, GENERIC_READ), (self.write, GENERIC_WRITE)])
    }

    pub(in crate::net) fn flags(&self) -> u32 {
        self.security_qos_flags | FILE_FLAG_OVERLAPPED
    }

    pub(in crate::net) fn has_messages(&self) -> bool {
        self.pipe_mode == PipeMode::Message
    }
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// The flags that are on, and `always`.
fn united(always: u32, flags: &[(bool, u32)]) -> u32 {
    flags.iter().filter(|(on, _)| *on).fold(always, |all, (_, flag)| all | flag)
}

#[cfg(test)]
mod tests {
    use super::{PIPE_REJECT_REMOTE_CLIENTS, PIPE_TYPE_MESSAGE, PipeMode, ServerOptions};

    /// Guards against what CVE-2023-22466 was: one option undid another.
    #[test]
    fn options_keep_each_other_in_any_order() {
        let (mut one, mut other) = (ServerOptions::new(), ServerOptions::new());
        one.reject_remote_clients(true).pipe_mode(PipeMode::Message);
        other.pipe_mode(PipeMode::Message).reject_remote_clients(true);
        for options in [&one, &other, ServerOptions::new().pipe_mode(PipeMode::Message)] {
            let flags = options.pipe_flags();
            assert_ne!(flags & PIPE_REJECT_REMOTE_CLIENTS, 0);
            assert_ne!(flags & PIPE_TYPE_MESSAGE, 0);
        }
        one.reject_remote_clients(false).pipe_mode(PipeMode::Byte);
        assert_eq!(one.pipe_flags(), 0);
    }
}
