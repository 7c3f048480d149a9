//! Unsafe code of the network module: memory that only the kernel has filled, and descriptors
//! taken over by their number.
//!
//! # Invariants
//! Only the kernel writes into a [`KernelBuf`], and the `KernelBuf` records how many bytes the
//! kernel wrote. It is created here and passed to safe code, which can have it filled and nothing
//! else. So the bytes that a [`Destination`] then counts as filled have been filled.

#[cfg(unix)]
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, RawFd};
use std::{ffi::c_int, io, mem::MaybeUninit};

use socket2::{SockAddr, SockRef};

#[cfg(target_os = "linux")]
use crate::buf::OwnedBuf;
#[cfg(target_os = "linux")]
use crate::engine::uring::{
    SubmitError, Uring,
    op_kind::{CURRENT_POSITION, OpKind, length},
};
use crate::{buf::OwnedBufMut, io::ReadBuf};

/// Memory that the kernel may fill, initialised or not.
#[derive(Debug)]
pub(crate) struct KernelBuf<'a> {
    memory: &'a mut [MaybeUninit<u8>],
    /// Number of bytes of `memory`, from its start, that the kernel has written.
    filled: usize,
}

impl<'a> KernelBuf<'a> {
    fn new(memory: &'a mut [MaybeUninit<u8>]) -> Self {
        Self { memory, filled: 0 }
    }

    /// Records that the kernel reported to have written `count` bytes. The kernel may report the
    /// full length of a datagram that did not fit, so the number of filled bytes is limited to
    /// the length of the memory.
    fn set_filled(&mut self, count: usize) {
        self.filled = count.min(self.memory.len());
    }

    /// Receives from a socket.
    #[inline]
    pub(super) fn recv(&mut self, from: &SockRef<'_>, flags: c_int) -> io::Result<usize> {
        let count = recv(from, self.memory, flags)?;
        self.set_filled(count);
        Ok(count)
    }

    /// Receives from a socket, and returns the number of bytes and the sender's address.
    #[inline]
    pub(super) fn recv_from(
        &mut self,
        from: &SockRef<'_>,
        flags: c_int,
    ) -> io::Result<(usize, SockAddr)> {
        let (count, address) = from.recv_from_with_flags(self.memory, flags)?;
        self.set_filled(count);
        Ok((count, address))
    }

    /// Reads from a descriptor that is not a socket.
    #[cfg(unix)]
    #[inline]
    pub(super) fn read(&mut self, from: BorrowedFd<'_>) -> io::Result<usize> {
        let (memory, length) = (self.memory.as_mut_ptr(), self.memory.len());
        // SAFETY: `memory` is exclusively borrowed for `length` bytes until the call has
        // returned, and need not be initialised to be written.
        let count = unsafe { libc::read(from.as_raw_fd(), memory.cast(), length) };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        self.set_filled(count);
        Ok(count)
    }
}

/// Direct system calls for the two operations that a server makes for each request.
///
/// The C library's functions are cancellation points (`pthread_cancel`), which costs two atomic
/// exchanges for each call, a tenth of the time of the call itself. These calls have the same
/// numbers and arguments on both architectures.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod calls {
    use std::{ffi::c_int, io, mem::MaybeUninit, os::fd::AsRawFd};

    use socket2::SockRef;

    /// Converts the return value of a system call to a count, or to the system's error.
    fn cvt(result: libc::c_long) -> io::Result<usize> {
        usize::try_from(result).map_err(|_| io::Error::last_os_error())
    }

    #[inline]
    pub(in crate::net) fn recv(
        from: &SockRef<'_>,
        memory: &mut [MaybeUninit<u8>],
        flags: c_int,
    ) -> io::Result<usize> {
        let (start, length) = (memory.as_mut_ptr(), memory.len());
        let no_address = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: `memory` is exclusively borrowed for `length` bytes until the call has
        // returned, and need not be initialised to be written. The null pointers request no
        // sender address.
        cvt(unsafe {
            libc::syscall(
                libc::SYS_recvfrom,
                from.as_raw_fd(),
                start,
                length,
                flags,
                no_address,
                no_address,
            )
        })
    }

    #[inline]
    pub(in crate::net) fn send(to: &SockRef<'_>, bytes: &[u8], flags: c_int) -> io::Result<usize> {
        let no_address = std::ptr::null::<libc::c_void>();
        // SAFETY: `bytes` is borrowed until the call has returned, and only read. No address is
        // given.
        cvt(unsafe {
            libc::syscall(
                libc::SYS_sendto,
                to.as_raw_fd(),
                bytes.as_ptr(),
                bytes.len(),
                flags,
                no_address,
                0usize,
            )
        })
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod calls {
    use std::{ffi::c_int, io, mem::MaybeUninit};

    use socket2::SockRef;

    #[inline]
    pub(in crate::net) fn recv(
        from: &SockRef<'_>,
        memory: &mut [MaybeUninit<u8>],
        flags: c_int,
    ) -> io::Result<usize> {
        from.recv_with_flags(memory, flags)
    }

    #[inline]
    pub(in crate::net) fn send(to: &SockRef<'_>, bytes: &[u8], flags: c_int) -> io::Result<usize> {
        to.send_with_flags(bytes, flags)
    }
}

pub(super) use calls::{recv, send};

/// Memory that received bytes are written to.
pub(crate) trait Destination {
    /// Lets `f` fill the free part. The bytes that were filled are part of the destination
    /// afterwards, unless `f` failed.
    fn fill_from<R>(
        &mut self,
        f: impl FnOnce(&mut KernelBuf<'_>) -> io::Result<R>,
    ) -> io::Result<R>;
}

impl Destination for [u8] {
    #[inline]
    fn fill_from<R>(
        &mut self,
        f: impl FnOnce(&mut KernelBuf<'_>) -> io::Result<R>,
    ) -> io::Result<R> {
        let (start, length) = (self.as_mut_ptr().cast::<MaybeUninit<u8>>(), self.len());
        // SAFETY: these are the same bytes under a type of the same layout, borrowed for the same
        // time. A `KernelBuf` writes only initialised bytes, so all of them are valid `u8`s
        // afterwards too.
        f(&mut KernelBuf::new(unsafe { std::slice::from_raw_parts_mut(start, length) }))
    }
}

impl Destination for ReadBuf<'_> {
    #[inline]
    fn fill_from<R>(
        &mut self,
        f: impl FnOnce(&mut KernelBuf<'_>) -> io::Result<R>,
    ) -> io::Result<R> {
        // SAFETY: initialised bytes stay initialised, because a `KernelBuf` writes only initialised
        // bytes.
        let mut room = KernelBuf::new(unsafe { self.unfilled_mut() });
        let result = f(&mut room)?;
        let filled = room.filled;
        // SAFETY: the kernel has written `filled` bytes, from the start of the unfilled part.
        unsafe { self.assume_init(filled) };
        self.advance(filled);
        Ok(result)
    }
}

/// First contiguous free part of a `BufMut`.
#[cfg(feature = "io-util")]
#[derive(Debug)]
pub(super) struct Chunk<'a, B>(pub(super) &'a mut B);

#[cfg(feature = "io-util")]
impl<B: bytes::BufMut> Destination for Chunk<'_, B> {
    #[inline]
    fn fill_from<R>(
        &mut self,
        f: impl FnOnce(&mut KernelBuf<'_>) -> io::Result<R>,
    ) -> io::Result<R> {
        // SAFETY: a `KernelBuf` writes only initialised bytes, so no byte of the chunk is
        // uninitialised that was initialised before.
        let mut room = KernelBuf::new(unsafe { self.0.chunk_mut().as_uninit_slice_mut() });
        let result = f(&mut room)?;
        let filled = room.filled;
        // SAFETY: the kernel has written `filled` bytes, from the start of the chunk.
        unsafe { self.0.advance_mut(filled) };
        Ok(result)
    }
}

/// Owned buffer, and the number of bytes read into it, from its beginning. Only bytes that the
/// kernel has written count.
#[derive(Debug)]
pub(super) struct Filling<B> {
    buf: B,
    filled: usize,
}

impl<B: OwnedBufMut> Filling<B> {
    pub(super) fn new(buf: B) -> Self {
        Self { buf, filled: 0 }
    }

    pub(super) fn filled(&self) -> usize {
        self.filled
    }

    pub(super) fn is_full(&self) -> bool {
        self.filled == self.buf.bytes_total()
    }

    /// Returns the memory after the filled part, as its address and length.
    fn rest(&mut self) -> (*mut u8, usize) {
        let room = self.buf.bytes_total() - self.filled;
        (self.buf.stable_mut_ptr().wrapping_add(self.filled), room)
    }

    /// Records that the kernel reported `count` more bytes. More than there was room for is the
    /// length of a datagram that did not fit.
    fn advance(&mut self, count: usize) {
        self.filled = (self.filled + count).min(self.buf.bytes_total());
    }

    /// Returns the buffer, which begins with the bytes that were read. If the operation failed
    /// before any byte was read, the buffer is returned unchanged.
    pub(super) fn finish(mut self, failed: bool) -> B {
        if self.filled > 0 || !failed {
            // SAFETY: 1. the first `filled` bytes are initialised: the kernel has written that
            // many, one after the other from the beginning, and `advance` keeps the number
            // within the buffer.
            unsafe { self.buf.set_init(self.filled) };
        }
        self.buf
    }
}

impl<B: OwnedBufMut> Destination for Filling<B> {
    #[inline]
    fn fill_from<R>(
        &mut self,
        f: impl FnOnce(&mut KernelBuf<'_>) -> io::Result<R>,
    ) -> io::Result<R> {
        let (start, length) = self.rest();
        // SAFETY: the buffer has `length` bytes at `start`, initialised or not, and is
        // exclusively borrowed for the same time; a `KernelBuf` writes only initialised bytes.
        let mut room =
            KernelBuf::new(unsafe { std::slice::from_raw_parts_mut(start.cast(), length) });
        let result = f(&mut room)?;
        let filled = room.filled;
        self.advance(filled);
        Ok(result)
    }
}

/// Kind of a descriptor, which decides by which operation its bytes are transferred.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FdKind {
    Socket,
    /// Pipe, or any descriptor that the user passed as one.
    File,
}

/// Submits an operation to io_uring that reads into the rest of a buffer, and waits for its result.
#[cfg(target_os = "linux")]
pub(super) async fn read_by_uring<B: OwnedBufMut>(
    uring: &Uring,
    (fd_kind, fd): (FdKind, BorrowedFd<'_>),
    filling: Filling<B>,
) -> Result<(i32, Filling<B>), (SubmitError, Filling<B>)> {
    let fd = fd.as_raw_fd();
    let op_kind = |filling: &mut Filling<B>| {
        let (memory, room) = filling.rest();
        let length = length(room);
        match fd_kind {
            FdKind::Socket => OpKind::Recv { fd, memory, length },
            FdKind::File => OpKind::Read { fd, memory, length, offset: CURRENT_POSITION },
        }
    };
    // SAFETY: 1. `OwnedBuf` guarantees that this memory belongs to the buffer and stays where it
    // is when the buffer is moved; `OwnedBufMut` guarantees that it may be written through that
    // pointer. 2. The descriptor is borrowed, so it is open during the call.
    let (result, mut filling) = unsafe { uring.submit(filling, op_kind) }?.await;
    if let Ok(count) = usize::try_from(result) {
        filling.advance(count);
    }
    Ok((result, filling))
}

/// Submits an operation to io_uring that writes the bytes after the first `from` bytes of a buffer,
/// and waits for its result.
#[cfg(target_os = "linux")]
pub(super) async fn write_by_uring<B: OwnedBuf>(
    uring: &Uring,
    (fd_kind, fd): (FdKind, BorrowedFd<'_>),
    buf: B,
    from: usize,
) -> Result<(i32, B), (SubmitError, B)> {
    let fd = fd.as_raw_fd();
    let op_kind = |buf: &mut B| {
        let rest = &buf.as_slice()[from..];
        let (memory, length) = (rest.as_ptr(), length(rest.len()));
        match fd_kind {
            FdKind::Socket => OpKind::Send { fd, memory, length },
            FdKind::File => OpKind::Write { fd, memory, length, offset: CURRENT_POSITION },
        }
    };
    // SAFETY: 1. `OwnedBuf` guarantees that this memory belongs to the buffer, is initialised,
    // and stays where it is when the buffer is moved. 2. The descriptor is borrowed, so it is
    // open during the call.
    Ok(unsafe { uring.submit(buf, op_kind) }?.await)
}

/// Returns the flags with which a descriptor was opened: `O_RDWR`, `O_NONBLOCK` and so on.
#[cfg(unix)]
pub(super) fn file_flags(fd: BorrowedFd<'_>) -> io::Result<c_int> {
    // SAFETY: the call only queries a descriptor, which is open for as long as it is borrowed.
    let flags = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) };
    if flags < 0 { Err(io::Error::last_os_error()) } else { Ok(flags) }
}

/// Returns the credentials of the process at the other end of a Unix socket: process ID (where
/// the system reports it), user ID, group ID.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn peer_credentials(
    fd: BorrowedFd<'_>,
) -> io::Result<(Option<libc::pid_t>, libc::uid_t, libc::gid_t)> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: 1. the descriptor is open for as long as it is borrowed. 2. `peer` has room for
    // `length` bytes, and any bytes make a valid `ucred`.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok((Some(peer.pid), peer.uid, peer.gid))
    }
}

/// Returns the credentials of the process at the other end of a Unix socket: process ID (where
/// the system reports it), user ID, group ID.
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
pub(super) fn peer_credentials(
    fd: BorrowedFd<'_>,
) -> io::Result<(Option<libc::pid_t>, libc::uid_t, libc::gid_t)> {
    let (mut user, mut group) = (0, 0);
    // SAFETY: 1. the descriptor is open for as long as it is borrowed. 2. both pointers are to
    // local variables of the type that is written.
    let result = unsafe { libc::getpeereid(fd.as_raw_fd(), &raw mut user, &raw mut group) };
    if result != 0 { Err(io::Error::last_os_error()) } else { Ok((None, user, group)) }
}

#[cfg(unix)]
impl FromRawFd for super::TcpSocket {
    /// Takes over a socket by its descriptor. The socket should be in non-blocking mode.
    unsafe fn from_raw_fd(fd: RawFd) -> Self {
        // SAFETY: our caller guarantees what this call requires: `fd` is an open socket, and its
        // ownership passes to us.
        Self::from_socket(unsafe { socket2::Socket::from_raw_fd(fd) })
    }
}

#[cfg(windows)]
impl std::os::windows::io::FromRawSocket for super::TcpSocket {
    /// Takes over a socket by its number. The socket should be in non-blocking mode.
    unsafe fn from_raw_socket(socket: std::os::windows::io::RawSocket) -> Self {
        // SAFETY: our caller guarantees what this call requires: `socket` is an open socket, and
        // its ownership passes to us.
        Self::from_socket(unsafe { socket2::Socket::from_raw_socket(socket) })
    }
}

#[cfg(unix)]
impl FromRawFd for super::UnixSocket {
    /// Takes over a socket by its descriptor. The socket should be in non-blocking mode.
    unsafe fn from_raw_fd(fd: RawFd) -> Self {
        // SAFETY: our caller guarantees what this call requires: `fd` is an open socket, and its
        // ownership passes to us.
        Self::from_socket(unsafe { socket2::Socket::from_raw_fd(fd) })
    }
}

/// Named pipes: the system calls that create and open them, and the conversion from raw handles.
#[cfg(windows)]
mod pipes {
    use std::{
        ffi::{OsStr, c_void},
        io,
        os::windows::{
            ffi::OsStrExt,
            io::{AsRawHandle, FromRawHandle, OwnedHandle, RawHandle},
        },
        ptr,
    };

    use windows_sys::Win32::{
        Foundation::{HANDLE, INVALID_HANDLE_VALUE},
        Storage::FileSystem::{CreateFileW, OPEN_EXISTING},
        System::Pipes::{CreateNamedPipeW, PIPE_READMODE_MESSAGE, SetNamedPipeHandleState},
    };

    use crate::{
        engine::driver::overlapped::OverlappedPipe,
        net::windows::named_pipe::{
            ClientOptions, NamedPipeClient, NamedPipeServer, ServerOptions,
        },
        runtime::context,
    };

    #[track_caller]
    pub(in crate::net) fn create_pipe(
        options: &ServerOptions,
        name: &OsStr,
    ) -> io::Result<NamedPipeServer> {
        // SAFETY: 1. `attrs` must be null or valid, and it is null.
        unsafe { options.create_with_security_attributes_raw(name, ptr::null_mut()) }
    }

    #[track_caller]
    pub(in crate::net) fn open_pipe(
        options: &ClientOptions,
        name: &OsStr,
    ) -> io::Result<NamedPipeClient> {
        // SAFETY: 1. `attrs` must be null or valid, and it is null.
        unsafe { options.open_with_security_attributes_raw(name, ptr::null_mut()) }
    }

    impl ServerOptions {
        /// Creates an instance of the pipe as [`create`](Self::create) does, with the given
        /// `SECURITY_ATTRIBUTES` of the system.
        ///
        /// # Errors
        /// Fails as [`create`](Self::create) does.
        ///
        /// # Safety
        /// 1. `attrs` must be null or point to a valid `SECURITY_ATTRIBUTES`.
        ///
        /// # Examples
        ///
        /// ```
        /// use blitz_io::net::windows::named_pipe::ServerOptions;
        ///
        /// # blitz_io::run(async {
        /// let name = format!(r"\\.\pipe\blitz-io-raw-{}", std::process::id());
        /// let options = ServerOptions::new();
        /// // SAFETY: 1. the attributes are null.
        /// let server =
        ///     unsafe { options.create_with_security_attributes_raw(&name, std::ptr::null_mut()) }?;
        /// # drop(server);
        /// # Ok::<(), std::io::Error>(())
        /// # }).unwrap();
        /// ```
        #[track_caller]
        pub unsafe fn create_with_security_attributes_raw(
            &self,
            addr: impl AsRef<OsStr>,
            attrs: *mut c_void,
        ) -> io::Result<NamedPipeServer> {
            let driver = context::io_driver();
            let name = wide(addr.as_ref());
            // SAFETY: 1. the name ends with a zero and lives during the call. 2. `attrs` is null
            // or valid, by our obligation 1.
            let handle = unsafe {
                CreateNamedPipeW(
                    name.as_ptr(),
                    self.open_mode(),
                    self.pipe_flags(),
                    self.max_instances,
                    self.out_buffer_size,
                    self.in_buffer_size,
                    0,
                    attrs.cast(),
                )
            };
            OverlappedPipe::new(&driver, owned(handle)?).map(NamedPipeServer::new)
        }
    }

    impl ClientOptions {
        /// Opens the pipe as [`open`](Self::open) does, with the given `SECURITY_ATTRIBUTES` of
        /// the system.
        ///
        /// # Errors
        /// Fails as [`open`](Self::open) does.
        ///
        /// # Safety
        /// 1. `attrs` must be null or point to a valid `SECURITY_ATTRIBUTES`.
        ///
        /// # Examples
        ///
        /// ```
        /// use blitz_io::net::windows::named_pipe::ClientOptions;
        ///
        /// # blitz_io::run(async {
        /// let (name, nothing) = (r"\\.\pipe\there-is-no-such-pipe", std::ptr::null_mut());
        /// // SAFETY: 1. the attributes are null.
        /// let opened =
        ///     unsafe { ClientOptions::new().open_with_security_attributes_raw(name, nothing) };
        /// assert_eq!(opened.unwrap_err().kind(), std::io::ErrorKind::NotFound);
        /// # });
        /// ```
        #[track_caller]
        pub unsafe fn open_with_security_attributes_raw(
            &self,
            addr: impl AsRef<OsStr>,
            attrs: *mut c_void,
        ) -> io::Result<NamedPipeClient> {
            let driver = context::io_driver();
            let name = wide(addr.as_ref());
            // SAFETY: 1. the name ends with a zero and lives during the call. 2. `attrs` is null
            // or valid, by our obligation 1.
            let handle = unsafe {
                CreateFileW(
                    name.as_ptr(),
                    self.access(),
                    0,
                    attrs.cast(),
                    OPEN_EXISTING,
                    self.flags(),
                    ptr::null_mut(),
                )
            };
            let handle = owned(handle)?;
            if self.has_messages() {
                let (raw, mode) = (handle.as_raw_handle(), PIPE_READMODE_MESSAGE);
                // SAFETY: 1. the handle is open. 2. `mode` lives during the call, and the other
                // two pointers may be null.
                let result = unsafe {
                    SetNamedPipeHandleState(raw, &raw const mode, ptr::null(), ptr::null())
                };
                if result == 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            OverlappedPipe::new(&driver, handle).map(NamedPipeClient::new)
        }
    }

    /// Defines the conversion from a raw handle that other code has opened.
    macro_rules! from_raw {
        ($end:ident, $example:literal) => {
            impl $end {
                /// Takes over a raw handle of the system, and registers it with the current
                /// runtime.
                ///
                /// # Errors
                /// Returns the system's error.
                ///
                /// # Panics
                /// Panics if there is no runtime on this thread, or its I/O is not enabled.
                ///
                /// # Safety
                /// 1. `handle` must be an open handle of a named pipe, created for overlapped
                ///    operations, and the caller must pass on its ownership: no other code may
                ///    own it.
                ///
                /// # Examples
                ///
                /// ```no_run
                /// use std::os::windows::io::RawHandle;
                ///
                #[doc = concat!("use blitz_io::net::windows::named_pipe::", $example, ";")]
                ///
                /// /// Returns a handle of another library, which passes on its ownership.
                /// fn inherited() -> RawHandle {
                /// #   unreachable!()
                /// }
                ///
                /// # fn example() -> std::io::Result<()> {
                /// // SAFETY: 1. the library guarantees an open, overlapped handle that no other
                /// code owns.
                #[doc = concat!("let pipe = unsafe { ", $example, "::from_raw_handle(inherited()) }?;")]
                /// # drop(pipe);
                /// # Ok(()) }
                /// ```
                #[track_caller]
                pub unsafe fn from_raw_handle(handle: RawHandle) -> io::Result<Self> {
                    let driver = context::io_driver();
                    // SAFETY: the handle is open and no other code owns it, by our obligation 1.
                    let handle = unsafe { OwnedHandle::from_raw_handle(handle) };
                    OverlappedPipe::new(&driver, handle).map(Self::new)
                }
            }
        };
    }

    from_raw!(NamedPipeServer, "NamedPipeServer");
    from_raw!(NamedPipeClient, "NamedPipeClient");

    /// Converts a name to UTF-16 with a zero at the end, as the system expects it.
    fn wide(name: &OsStr) -> Vec<u16> {
        name.encode_wide().chain([0]).collect()
    }

    fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
        if handle == INVALID_HANDLE_VALUE {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the system has just opened the handle for us, so no other code owns it.
        Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
    }
}
#[cfg(windows)]
pub(super) use self::pipes::{create_pipe, open_pipe};

#[cfg(all(test, unix, not(blitz_loom)))]
mod tests {
    use std::{io::Write, os::unix::net::UnixStream};

    use socket2::SockRef;

    use super::Destination;
    use crate::io::ReadBuf;

    #[test]
    fn only_what_was_received_counts_as_filled() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(b"four").unwrap();
        let mut memory = [std::mem::MaybeUninit::uninit(); 16];
        let mut buf = ReadBuf::uninit(&mut memory);
        let count = buf.fill_from(|room| room.recv(&SockRef::from(&theirs), 0)).unwrap();
        assert_eq!((count, buf.filled(), buf.remaining()), (4, &b"four"[..], 12));
    }

    #[test]
    fn a_failed_read_fills_nothing() {
        let (_ours, theirs) = UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let mut memory = [0; 16];
        let mut buf = ReadBuf::new(&mut memory);
        buf.fill_from(|room| room.recv(&SockRef::from(&theirs), 0)).unwrap_err();
        assert!(buf.filled().is_empty());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_count_beyond_the_memory_fills_only_the_memory() {
        let (ours, theirs) = std::os::unix::net::UnixDatagram::pair().unwrap();
        ours.send(b"longer than four").unwrap();
        let mut memory = [0; 4];
        let mut buf = ReadBuf::new(&mut memory);
        let count =
            buf.fill_from(|room| room.recv(&SockRef::from(&theirs), libc::MSG_TRUNC)).unwrap();
        assert_eq!((count, buf.filled()), (16, &b"long"[..]));
    }
}
