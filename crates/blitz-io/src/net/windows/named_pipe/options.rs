//! Options to create a pipe and to open one. The system calls are in `net/raw.rs`.

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

/// Default size of the system's buffer for each direction: Tokio's number.
const BUFFER_SIZE: u32 = 64 * 1024;

/// Options with which a server creates an instance of a pipe.
///
/// # Examples
///
/// ```
/// use blitz_io::net::windows::named_pipe::ServerOptions;
///
/// # blitz_io::run(async {
/// let name = format!(r"\\.\pipe\blitz-io-server-{}", std::process::id());
/// let server = ServerOptions::new().first_pipe_instance(true).create(&name)?;
/// // Another server that expects to be the first gets an error.
/// let second = ServerOptions::new().first_pipe_instance(true).create(&name);
/// assert_eq!(second.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
/// # drop(server);
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
// Each option is a field, and becomes a flag only when the pipe is created: so no option can undo
// another, in whichever order they are set.
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

/// Defines setters of flags.
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
    /// Creates options with their defaults: both directions, bytes, no clients from other
    /// machines, any number of instances, and a buffer of 64 KiB for each direction.
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

    /// Sets whether the pipe carries bytes or messages; all instances of a pipe must agree. No
    /// other option changes.
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
        /// Sets whether clients may write and the server read. On by default.
        access_inbound,
        /// Sets whether the server may write and clients read. On by default.
        access_outbound,
        /// Sets whether creation fails if the pipe has an instance already, so that no process
        /// that was there before can impersonate the server. Off by default.
        first_pipe_instance,
        /// Sets whether the server may change the access rights of the pipe (`WRITE_DAC`). Off by
        /// default.
        write_dac,
        /// Sets whether the server may change the owner of the pipe (`WRITE_OWNER`). Off by
        /// default.
        write_owner,
        /// Sets whether the server may change the auditing of the pipe
        /// (`ACCESS_SYSTEM_SECURITY`). Off by default.
        access_system_security,
        /// Sets whether clients on other machines are rejected. On by default, whatever other
        /// options are set.
        reject_remote_clients,
    }

    /// Sets the limit of instances at a time.
    ///
    /// # Panics
    /// Panics if `instances` is greater than 254.
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
        // The beginning of the text is Tokio's.
        assert!(
            instances < PIPE_UNLIMITED_INSTANCES as usize,
            "cannot specify more than 254 instances: do not call `max_instances` for any number"
        );
        self.max_instances = instances as u32;
        self
    }

    /// Sets the size of the system's buffer for bytes to the client.
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

    /// Sets the size of the system's buffer for bytes from the client.
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

    /// Creates an instance of the pipe, which belongs to the current runtime.
    ///
    /// # Errors
    /// Returns the system's error.
    ///
    /// # Panics
    /// Panics if there is no runtime on this thread, or its I/O is not enabled.
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

/// Options with which a client opens a pipe.
///
/// # Examples
///
/// If all instances of a pipe are taken, it is busy: try again after a while.
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
    /// Creates options with their defaults: both directions, bytes, and the server may identify
    /// the client but not impersonate it.
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

    /// Sets whether the client reads. On by default.
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

    /// Sets whether the client writes. On by default.
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

    /// Sets how far the server may impersonate the client: a `SECURITY_*` level of the system.
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
        // Without `SECURITY_SQOS_PRESENT` the other flags have other meanings.
        self.security_qos_flags = flags | SECURITY_SQOS_PRESENT;
        self
    }

    /// Sets whether reads end where writes did, if the server created a pipe of messages.
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

    /// Opens the pipe named `addr`. The client belongs to the current runtime.
    ///
    /// # Errors
    /// `NotFound` if there is no such pipe; the system's `ERROR_PIPE_BUSY` if all instances have
    /// a client.
    ///
    /// # Panics
    /// Panics if there is no runtime on this thread, or its I/O is not enabled.
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

/// Returns `always` and the flags that are on.
fn united(always: u32, flags: &[(bool, u32)]) -> u32 {
    flags.iter().filter(|(on, _)| *on).fold(always, |all, (_, flag)| all | flag)
}

#[cfg(test)]
mod tests {
    use super::{PIPE_REJECT_REMOTE_CLIENTS, PIPE_TYPE_MESSAGE, PipeMode, ServerOptions};

    /// Guards against the bug of CVE-2023-22466, in which one option undid another.
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
