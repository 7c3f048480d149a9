//! What the network needs and the compiler cannot check: memory that only the kernel has
//! filled, and descriptors taken over by their number.
//!
//! # Invariants
//! A [`Room`] never writes anything but what the kernel wrote, and knows how much that
//! was. It is made here and passed to safe code, which can have it filled and nothing
//! else. So what a [`Destination`] then counts as filled has been filled.

#[cfg(unix)]
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, RawFd};
use std::{ffi::c_int, io, mem::MaybeUninit};

use socket2::{SockAddr, SockRef};

#[cfg(target_os = "linux")]
use crate::buf::OwnedBuf;
#[cfg(target_os = "linux")]
use crate::engine::ring::{
    NoRing, Ring,
    verb::{HERE, Verb, length},
};
use crate::{buf::OwnedBufMut, io::ReadBuf};

/// Memory that the kernel may fill, uninitialised or not.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    memory: &'a mut [MaybeUninit<u8>],
    /// How many bytes of `memory`, from its start, the kernel has written.
    filled: usize,
}

impl<'a> Room<'a> {
    fn new(memory: &'a mut [MaybeUninit<u8>]) -> Self {
        Self { memory, filled: 0 }
    }

    /// The kernel said that it put `count` bytes there. A datagram that did not fit may
    /// be counted in full, so what counts as filled ends with the memory.
    fn filled_to(&mut self, count: usize) {
        self.filled = count.min(self.memory.len());
    }

    /// Receives from a socket.
    #[inline]
    pub(super) fn recv(&mut self, from: &SockRef<'_>, flags: c_int) -> io::Result<usize> {
        let count = recv(from, self.memory, flags)?;
        self.filled_to(count);
        Ok(count)
    }

    /// Receives from a socket, and says from whom.
    #[inline]
    pub(super) fn recv_from(
        &mut self,
        from: &SockRef<'_>,
        flags: c_int,
    ) -> io::Result<(usize, SockAddr)> {
        let (count, address) = from.recv_from_with_flags(self.memory, flags)?;
        self.filled_to(count);
        Ok((count, address))
    }

    /// Reads from what is no socket.
    #[cfg(unix)]
    #[inline]
    pub(super) fn read(&mut self, from: BorrowedFd<'_>) -> io::Result<usize> {
        let (memory, length) = (self.memory.as_mut_ptr(), self.memory.len());
        // SAFETY: `memory` is ours for `length` bytes until the call has returned, and
        // need not be initialised to be written.
        let count = unsafe { libc::read(from.as_raw_fd(), memory.cast(), length) };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        self.filled_to(count);
        Ok(count)
    }
}

/// The two calls that a server makes for each request, as the kernel has them.
///
/// The C library's are points at which a thread may be cancelled (`pthread_cancel`), which
/// costs two exchanges of a word for each call, a tenth of the call itself. The numbers and
/// arguments of these calls are the same on both.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod calls {
    use std::{ffi::c_int, io, mem::MaybeUninit, os::fd::AsRawFd};

    use socket2::SockRef;

    /// A count, or what the system says.
    fn counted(answer: libc::c_long) -> io::Result<usize> {
        usize::try_from(answer).map_err(|_| io::Error::last_os_error())
    }

    #[inline]
    pub(in crate::net) fn recv(
        from: &SockRef<'_>,
        memory: &mut [MaybeUninit<u8>],
        flags: c_int,
    ) -> io::Result<usize> {
        let (start, length) = (memory.as_mut_ptr(), memory.len());
        let nobody = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: `memory` is ours for `length` bytes until the call has returned, and need
        // not be initialised to be written. No address is asked for.
        counted(unsafe {
            libc::syscall(
                libc::SYS_recvfrom,
                from.as_raw_fd(),
                start,
                length,
                flags,
                nobody,
                nobody,
            )
        })
    }

    #[inline]
    pub(in crate::net) fn send(to: &SockRef<'_>, bytes: &[u8], flags: c_int) -> io::Result<usize> {
        let nobody = std::ptr::null::<libc::c_void>();
        // SAFETY: `bytes` are read until the call has returned. No address is given.
        counted(unsafe {
            libc::syscall(
                libc::SYS_sendto,
                to.as_raw_fd(),
                bytes.as_ptr(),
                bytes.len(),
                flags,
                nobody,
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

/// Where received bytes go.
pub(crate) trait Destination {
    /// Lets `f` have the free part filled. What was filled is part of the destination
    /// afterwards, unless `f` failed.
    fn take_in<R>(&mut self, f: impl FnOnce(&mut Room<'_>) -> io::Result<R>) -> io::Result<R>;
}

impl Destination for [u8] {
    #[inline]
    fn take_in<R>(&mut self, f: impl FnOnce(&mut Room<'_>) -> io::Result<R>) -> io::Result<R> {
        let (start, length) = (self.as_mut_ptr().cast::<MaybeUninit<u8>>(), self.len());
        // SAFETY: the same bytes under a type of the same layout, borrowed for as long.
        // A room writes only initialised bytes, so they are all `u8` afterwards too.
        f(&mut Room::new(unsafe { std::slice::from_raw_parts_mut(start, length) }))
    }
}

impl Destination for ReadBuf<'_> {
    #[inline]
    fn take_in<R>(&mut self, f: impl FnOnce(&mut Room<'_>) -> io::Result<R>) -> io::Result<R> {
        // SAFETY: what is initialised stays so, because a room writes only initialised
        // bytes.
        let mut room = Room::new(unsafe { self.unfilled_mut() });
        let answer = f(&mut room)?;
        let filled = room.filled;
        // SAFETY: the kernel has written this many, from the start of the unfilled part.
        unsafe { self.assume_init(filled) };
        self.advance(filled);
        Ok(answer)
    }
}

/// The first free piece of a `BufMut`.
#[cfg(feature = "io-util")]
#[derive(Debug)]
pub(super) struct Chunk<'a, B>(pub(super) &'a mut B);

#[cfg(feature = "io-util")]
impl<B: bytes::BufMut> Destination for Chunk<'_, B> {
    #[inline]
    fn take_in<R>(&mut self, f: impl FnOnce(&mut Room<'_>) -> io::Result<R>) -> io::Result<R> {
        // SAFETY: a room writes only initialised bytes.
        let mut room = Room::new(unsafe { self.0.chunk_mut().as_uninit_slice_mut() });
        let answer = f(&mut room)?;
        let filled = room.filled;
        // SAFETY: the kernel has written this many, from the start of the chunk.
        unsafe { self.0.advance_mut(filled) };
        Ok(answer)
    }
}

/// A buffer that is owned, and how much was read into it, from the beginning. Only what the
/// kernel has written counts.
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

    /// What is behind the part that is filled.
    fn rest(&mut self) -> (*mut u8, usize) {
        let room = self.buf.bytes_total() - self.filled;
        (self.buf.stable_mut_ptr().wrapping_add(self.filled), room)
    }

    /// So many more were written, by the kernel's word. More than there was room for is what
    /// a datagram had that did not fit.
    fn advance(&mut self, count: usize) {
        self.filled = (self.filled + count).min(self.buf.bytes_total());
    }

    /// The buffer, which begins with what was read; as it was, if it failed before anything
    /// was.
    pub(super) fn finish(mut self, failed: bool) -> B {
        if self.filled > 0 || !failed {
            // SAFETY: 1. the kernel has written so many, one behind the other, and there are
            // as many.
            unsafe { self.buf.set_init(self.filled) };
        }
        self.buf
    }
}

impl<B: OwnedBufMut> Destination for Filling<B> {
    #[inline]
    fn take_in<R>(&mut self, f: impl FnOnce(&mut Room<'_>) -> io::Result<R>) -> io::Result<R> {
        let (start, length) = self.rest();
        // SAFETY: the buffer has so many bytes there, initialised or not, and is borrowed for
        // as long; a room writes only initialised bytes.
        let mut room = Room::new(unsafe { std::slice::from_raw_parts_mut(start.cast(), length) });
        let answer = f(&mut room)?;
        let filled = room.filled;
        self.advance(filled);
        Ok(answer)
    }
}

/// How a kind of descriptor is asked for bytes.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Socket,
    /// A pipe, or whatever somebody says is one.
    File,
}

/// Has the kernel read into the rest of a buffer.
#[cfg(target_os = "linux")]
pub(super) async fn read_by<B: OwnedBufMut>(
    ring: &Ring,
    (kind, fd): (Kind, BorrowedFd<'_>),
    filling: Filling<B>,
) -> Result<(i32, Filling<B>), (NoRing, Filling<B>)> {
    let fd = fd.as_raw_fd();
    let verb = |filling: &mut Filling<B>| {
        let (memory, room) = filling.rest();
        let length = length(room);
        match kind {
            Kind::Socket => Verb::Recv { fd, memory, length },
            Kind::File => Verb::Read { fd, memory, length, offset: HERE },
        }
    };
    // SAFETY: 1. so much memory is the buffer's and stays where it is, by the promise of
    // `OwnedBuf`; it may be written through that pointer, by the one of `OwnedBufMut`. 2. It is
    // borrowed.
    let (result, mut filling) = unsafe { ring.submit(filling, verb) }?.await;
    if let Ok(count) = usize::try_from(result) {
        filling.advance(count);
    }
    Ok((result, filling))
}

/// Has the kernel write what is behind the first `from` bytes of a buffer.
#[cfg(target_os = "linux")]
pub(super) async fn write_by<B: OwnedBuf>(
    ring: &Ring,
    (kind, fd): (Kind, BorrowedFd<'_>),
    buf: B,
    from: usize,
) -> Result<(i32, B), (NoRing, B)> {
    let fd = fd.as_raw_fd();
    let verb = |buf: &mut B| {
        let rest = &buf.as_slice()[from..];
        let (memory, length) = (rest.as_ptr(), length(rest.len()));
        match kind {
            Kind::Socket => Verb::Send { fd, memory, length },
            Kind::File => Verb::Write { fd, memory, length, offset: HERE },
        }
    };
    // SAFETY: 1. so much memory is the buffer's, initialised, and stays where it is, by the
    // promise of `OwnedBuf`. 2. It is borrowed.
    Ok(unsafe { ring.submit(buf, verb) }?.await)
}

/// How a descriptor was opened: `O_RDWR`, `O_NONBLOCK` and so on.
#[cfg(unix)]
pub(super) fn file_flags(fd: BorrowedFd<'_>) -> io::Result<c_int> {
    // SAFETY: asks about a descriptor that is open for as long as it is borrowed.
    let flags = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) };
    if flags < 0 { Err(io::Error::last_os_error()) } else { Ok(flags) }
}

/// Who is at the other end of a Unix socket: process (where it is told), user, group.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn peer_credentials(
    fd: BorrowedFd<'_>,
) -> io::Result<(Option<libc::pid_t>, libc::uid_t, libc::gid_t)> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: 1. the descriptor is open for as long as it is borrowed. 2. `peer` has room
    // for `length` bytes, and any bytes make a `ucred`.
    let answer = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    if answer != 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok((Some(peer.pid), peer.uid, peer.gid))
    }
}

/// Who is at the other end of a Unix socket: process (where it is told), user, group.
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
pub(super) fn peer_credentials(
    fd: BorrowedFd<'_>,
) -> io::Result<(Option<libc::pid_t>, libc::uid_t, libc::gid_t)> {
    let (mut user, mut group) = (0, 0);
    // SAFETY: 1. the descriptor is open for as long as it is borrowed. 2. both places are
    // ours, and of the type that is written.
    let answer = unsafe { libc::getpeereid(fd.as_raw_fd(), &raw mut user, &raw mut group) };
    if answer != 0 { Err(io::Error::last_os_error()) } else { Ok((None, user, group)) }
}

#[cfg(unix)]
impl FromRawFd for super::TcpSocket {
    /// Takes over a socket by its number. It should be in non-blocking mode.
    unsafe fn from_raw_fd(fd: RawFd) -> Self {
        // SAFETY: our caller's promise is the one that is asked for: `fd` is an open
        // socket, and now ours.
        Self::from_socket(unsafe { socket2::Socket::from_raw_fd(fd) })
    }
}

#[cfg(windows)]
impl std::os::windows::io::FromRawSocket for super::TcpSocket {
    /// Takes over a socket by its number. It should be in non-blocking mode.
    unsafe fn from_raw_socket(socket: std::os::windows::io::RawSocket) -> Self {
        // SAFETY: our caller's promise is the one that is asked for: an open socket, and
        // now ours.
        Self::from_socket(unsafe { socket2::Socket::from_raw_socket(socket) })
    }
}

#[cfg(unix)]
impl FromRawFd for super::UnixSocket {
    /// Takes over a socket by its number. It should be in non-blocking mode.
    unsafe fn from_raw_fd(fd: RawFd) -> Self {
        // SAFETY: our caller's promise is the one that is asked for: `fd` is an open
        // socket, and now ours.
        Self::from_socket(unsafe { socket2::Socket::from_raw_fd(fd) })
    }
}

/// Named pipes: what is asked of the system, and what is taken over from others.
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
        engine::driver::overlapped::Pipe,
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
        // SAFETY: 1. no attributes.
        unsafe { options.create_with_security_attributes_raw(name, ptr::null_mut()) }
    }

    #[track_caller]
    pub(in crate::net) fn open_pipe(
        options: &ClientOptions,
        name: &OsStr,
    ) -> io::Result<NamedPipeClient> {
        // SAFETY: 1. no attributes.
        unsafe { options.open_with_security_attributes_raw(name, ptr::null_mut()) }
    }

    impl ServerOptions {
        /// [`create`](Self::create), with a `SECURITY_ATTRIBUTES` of the system's.
        ///
        /// # Errors
        /// As there.
        ///
        /// # Safety
        /// 1. `attrs` is null or points to a `SECURITY_ATTRIBUTES` that is right.
        ///
        /// # Examples
        ///
        /// ```
        /// use blitz_io::net::windows::named_pipe::ServerOptions;
        ///
        /// # blitz_io::run(async {
        /// let name = format!(r"\\.\pipe\blitz-io-raw-{}", std::process::id());
        /// let options = ServerOptions::new();
        /// // SAFETY: 1. it is null.
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
            // SAFETY: 1. the name ends with a zero and lives during the call. 2. `attrs`: 1.
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
            Pipe::new(&driver, owned(handle)?).map(NamedPipeServer::new)
        }
    }

    impl ClientOptions {
        /// [`open`](Self::open), with a `SECURITY_ATTRIBUTES` of the system's.
        ///
        /// # Errors
        /// As there.
        ///
        /// # Safety
        /// 1. `attrs` is null or points to a `SECURITY_ATTRIBUTES` that is right.
        ///
        /// # Examples
        ///
        /// ```
        /// use blitz_io::net::windows::named_pipe::ClientOptions;
        ///
        /// # blitz_io::run(async {
        /// let (name, nothing) = (r"\\.\pipe\there-is-no-such-pipe", std::ptr::null_mut());
        /// // SAFETY: 1. it is null.
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
            // SAFETY: 1. the name ends with a zero and lives during the call. 2. `attrs`: 1.
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
                // SAFETY: 1. the handle is open. 2. The other places may be missing.
                let answer = unsafe {
                    SetNamedPipeHandleState(raw, &raw const mode, ptr::null(), ptr::null())
                };
                if answer == 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            Pipe::new(&driver, handle).map(NamedPipeClient::new)
        }
    }

    /// Taking over what others have opened.
    macro_rules! from_raw {
        ($end:ident, $example:literal) => {
            impl $end {
                /// Takes over a handle of the system's, which belongs to the current runtime
                /// from now on.
                ///
                /// # Errors
                /// What the system says.
                ///
                /// # Panics
                /// Without a runtime whose I/O is enabled.
                ///
                /// # Safety
                /// 1. It is an open handle of a named pipe, made for overlapped operations, and
                ///    nobody else's.
                ///
                /// # Examples
                ///
                /// ```no_run
                /// use std::os::windows::io::RawHandle;
                ///
                #[doc = concat!("use blitz_io::net::windows::named_pipe::", $example, ";")]
                ///
                /// /// Of another library, which gives it away.
                /// fn inherited() -> RawHandle {
                /// #   unreachable!()
                /// }
                ///
                /// # fn example() -> std::io::Result<()> {
                /// // SAFETY: 1. as the library promises.
                #[doc = concat!("let pipe = unsafe { ", $example, "::from_raw_handle(inherited()) }?;")]
                /// # drop(pipe);
                /// # Ok(()) }
                /// ```
                #[track_caller]
                pub unsafe fn from_raw_handle(handle: RawHandle) -> io::Result<Self> {
                    let driver = context::io_driver();
                    // SAFETY: 1.
                    let handle = unsafe { OwnedHandle::from_raw_handle(handle) };
                    Pipe::new(&driver, handle).map(Self::new)
                }
            }
        };
    }

    from_raw!(NamedPipeServer, "NamedPipeServer");
    from_raw!(NamedPipeClient, "NamedPipeClient");

    /// As the system wants a name.
    fn wide(name: &OsStr) -> Vec<u16> {
        name.encode_wide().chain([0]).collect()
    }

    fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
        if handle == INVALID_HANDLE_VALUE {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the system has just opened it, for us.
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
        let count = buf.take_in(|room| room.recv(&SockRef::from(&theirs), 0)).unwrap();
        assert_eq!((count, buf.filled(), buf.remaining()), (4, &b"four"[..], 12));
    }

    #[test]
    fn a_failed_read_fills_nothing() {
        let (_ours, theirs) = UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let mut memory = [0; 16];
        let mut buf = ReadBuf::new(&mut memory);
        buf.take_in(|room| room.recv(&SockRef::from(&theirs), 0)).unwrap_err();
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
            buf.take_in(|room| room.recv(&SockRef::from(&theirs), libc::MSG_TRUNC)).unwrap();
        assert_eq!((count, buf.filled()), (16, &b"long"[..]));
    }
}
