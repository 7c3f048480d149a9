//! Unix pipes.
//!
//! [`pipe`] creates an anonymous pipe between two parts of this process, or for a child process;
//! [`OpenOptions`] opens a named pipe (`mkfifo`).

#![forbid(unsafe_code)]

use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{FileTypeExt, OpenOptionsExt},
    },
    path::Path,
};

use socket2::SockRef;

use crate::{
    io::Interest,
    net::{evented::Evented, raw},
};

/// Begins examples: defines both ends of a pipe, named `$sender` and `$receiver`.
macro_rules! pipe_pair {
    ($sender:literal, $receiver:literal) => {
        concat!(
            "use blitz_io::net::unix::pipe;\n\n# blitz_io::run(async {\nlet (",
            $sender,
            ", ",
            $receiver,
            ") = pipe::pipe()?;"
        )
    };
}

/// Begins examples about named pipes: defines `path`, the path of one.
macro_rules! pipe_at {
    () => {
        "use blitz_io::net::unix::pipe;

# blitz_io::run(async {
# let dir = tempfile::tempdir()?;
let path = dir.path().join(\"fifo\");
# assert!(std::process::Command::new(\"mkfifo\").arg(&path).status()?.success());"
    };
}

/// Creates an anonymous pipe, and returns its two ends.
///
/// # Panics
///
/// Panics if there is no runtime on this thread, or its I/O is not enabled.
///
/// # Examples
///
#[doc = concat!("```\n", pipe_pair!("sender", "receiver"))]
/// sender.writable().await?;
/// sender.try_write(b"hello")?;
///
/// receiver.readable().await?;
/// assert_eq!(receiver.try_read(&mut [0; 16])?, 5);
#[doc = example_end!()]
#[track_caller]
pub fn pipe() -> io::Result<(Sender, Receiver)> {
    let (reader, writer) = io::pipe()?;
    let (reader, writer) = (OwnedFd::from(reader), OwnedFd::from(writer));
    SockRef::from(&reader).set_nonblocking(true)?;
    SockRef::from(&writer).set_nonblocking(true)?;
    Ok((Sender::from_owned_fd_unchecked(writer)?, Receiver::from_owned_fd_unchecked(reader)?))
}

/// Options that configure how a named pipe is opened.
///
/// # Examples
///
#[doc = concat!("```\n", pipe_at!())]
/// let receiver = pipe::OpenOptions::new().open_receiver(&path)?;
/// let sender = pipe::OpenOptions::new().open_sender(&path)?;
/// # drop((receiver, sender));
#[doc = example_end!()]
#[derive(Clone, Debug)]
pub struct OpenOptions {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    read_write: bool,
    unchecked: bool,
}

impl OpenOptions {
    /// Creates options with their defaults: one direction, and a check that the file is a pipe.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", pipe_at!())]
    /// let receiver = pipe::OpenOptions::new().open_receiver(&path)?;
    /// # drop(receiver);
    #[doc = example_end!()]
    pub fn new() -> OpenOptions {
        OpenOptions {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            read_write: false,
            unchecked: false,
        }
    }

    /// Sets whether the pipe is opened for both directions, so that a sender can be opened
    /// without a receiver, and a receiver sees no end of the stream while senders come and go.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", pipe_at!())]
    /// let sender = pipe::OpenOptions::new().read_write(true).open_sender(&path)?;
    /// # drop(sender);
    #[doc = example_end!()]
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn read_write(&mut self, value: bool) -> &mut Self {
        self.read_write = value;
        self
    }

    /// Sets whether to skip the check that the file is a pipe, for callers that know that it is
    /// one.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", pipe_at!())]
    /// let receiver = pipe::OpenOptions::new().unchecked(true).open_receiver(&path)?;
    /// # drop(receiver);
    #[doc = example_end!()]
    pub fn unchecked(&mut self, value: bool) -> &mut Self {
        self.unchecked = value;
        self
    }

    /// Opens the read end of a named pipe.
    ///
    /// No sender need exist yet; until one does, reading returns the end of the stream.
    ///
    /// # Panics
    ///
    /// Panics if there is no runtime on this thread, or its I/O is not enabled.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be opened, or is not a pipe.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", pipe_at!())]
    /// let receiver = pipe::OpenOptions::new().open_receiver(&path)?;
    /// # drop(receiver);
    #[doc = example_end!()]
    #[track_caller]
    pub fn open_receiver<P: AsRef<Path>>(&self, path: P) -> io::Result<Receiver> {
        Receiver::from_file_unchecked(self.open(path.as_ref(), Interest::READABLE)?)
    }

    /// Opens the write end of a named pipe.
    ///
    /// # Panics
    ///
    /// Panics if there is no runtime on this thread, or its I/O is not enabled.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be opened, or is not a pipe. If no process has opened the read
    /// end, the system error number is `ENXIO`: try again later.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", pipe_at!())]
    /// assert!(pipe::OpenOptions::new().open_sender(&path).is_err()); // no reader yet
    ///
    /// let receiver = pipe::OpenOptions::new().open_receiver(&path)?;
    /// let sender = pipe::OpenOptions::new().open_sender(&path)?;
    /// # drop((receiver, sender));
    #[doc = example_end!()]
    #[track_caller]
    pub fn open_sender<P: AsRef<Path>>(&self, path: P) -> io::Result<Sender> {
        Sender::from_file_unchecked(self.open(path.as_ref(), Interest::WRITABLE)?)
    }

    fn open(&self, path: &Path, interest: Interest) -> io::Result<File> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let both = self.read_write;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let both = false;
        std::fs::OpenOptions::new()
            .read(both || interest.is_readable())
            .write(both || interest.is_writable())
            .custom_flags(libc::O_NONBLOCK)
            .open(path)
            .and_then(|file| if self.unchecked { Ok(file) } else { a_pipe(file) })
    }
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions::new()
    }
}

/// Returns an error if the file is not a pipe.
fn a_pipe(file: File) -> io::Result<File> {
    if file.metadata()?.file_type().is_fifo() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a pipe: `_unchecked` takes other files"))
}

/// Checks that the descriptor is a pipe and was opened for `mode`, and sets it to non-blocking
/// mode.
fn usable(fd: OwnedFd, mode: libc::c_int, refused: &'static str) -> io::Result<File> {
    let file = a_pipe(File::from(fd))?;
    let access = raw::file_flags(file.as_fd())? & libc::O_ACCMODE;
    if access != mode && access != libc::O_RDWR {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, refused));
    }
    SockRef::from(&file).set_nonblocking(true)?;
    Ok(file)
}

/// Defines the methods that both ends share. The example's first part defines both ends, and
/// `$this` is the one that the methods belong to.
macro_rules! end_methods {
    ($end:ident, $interest:expr, $mode:expr, $refused:literal, $this:literal) => {
        impl $end {
            /// Creates an end of a pipe from a file, after a check that the file is a pipe and
            /// was opened for this direction, and sets it to non-blocking mode.
            ///
            /// # Panics
            ///
            /// Panics if there is no runtime on this thread, or its I/O is not enabled.
            ///
            /// # Errors
            ///
            /// `InvalidInput` if the file is not a pipe, or not open for this direction.
            ///
            /// # Examples
            ///
            #[doc = concat!("```\n", pipe_at!())]
            /// let file = std::fs::OpenOptions::new().read(true).write(true).open(&path)?;
            #[doc = concat!("let ", $this, " = pipe::", stringify!($end), "::from_file(file)?;\n# drop(", $this, ");")]
            #[doc = example_end!()]
            #[track_caller]
            pub fn from_file(file: File) -> io::Result<Self> {
                Self::from_owned_fd(file.into())
            }

            /// Creates an end of a pipe from a descriptor, after a check that the descriptor is a
            /// pipe and was opened for this direction, and sets it to non-blocking mode.
            ///
            /// # Panics
            ///
            /// Panics if there is no runtime on this thread, or its I/O is not enabled.
            ///
            /// # Errors
            ///
            /// `InvalidInput` if the descriptor is not a pipe, or not open for this direction.
            ///
            /// # Examples
            ///
            #[doc = concat!("```\n", pipe_pair!("sender", "receiver"))]
            #[doc = concat!("let fd = ", $this, ".into_nonblocking_fd()?;\nlet end = pipe::", stringify!($end), "::from_owned_fd(fd)?;\n# drop(end);")]
            #[doc = example_end!()]
            #[track_caller]
            pub fn from_owned_fd(owned_fd: OwnedFd) -> io::Result<Self> {
                Self::from_file_unchecked(usable(owned_fd, $mode, $refused)?)
            }

            /// Creates an end of a pipe from a file without a check. The file should be in
            /// non-blocking mode.
            ///
            /// # Panics
            ///
            /// Panics if there is no runtime on this thread, or its I/O is not enabled.
            ///
            /// # Errors
            ///
            /// Fails if the driver cannot watch the file, for instance a regular file on a disk.
            ///
            /// # Examples
            ///
            #[doc = concat!("```\n", pipe_pair!("sender", "receiver"))]
            #[doc = concat!("let file = std::fs::File::from(", $this, ".into_nonblocking_fd()?);\nlet end = pipe::", stringify!($end), "::from_file_unchecked(file)?;\n# drop(end);")]
            #[doc = example_end!()]
            #[track_caller]
            pub fn from_file_unchecked(file: File) -> io::Result<Self> {
                Ok(Self { io: Evented::with_interest(file, $interest)? })
            }

            /// Creates an end of a pipe from a descriptor without a check. The descriptor should
            /// be in non-blocking mode.
            ///
            /// # Panics
            ///
            /// Panics if there is no runtime on this thread, or its I/O is not enabled.
            ///
            /// # Errors
            ///
            /// Fails if the driver cannot watch the descriptor, for instance that of a regular
            /// file on a disk.
            ///
            /// # Examples
            ///
            #[doc = concat!("```\n", pipe_pair!("sender", "receiver"))]
            #[doc = concat!("let fd = ", $this, ".into_nonblocking_fd()?;\nlet end = pipe::", stringify!($end), "::from_owned_fd_unchecked(fd)?;\n# drop(end);")]
            #[doc = example_end!()]
            #[track_caller]
            pub fn from_owned_fd_unchecked(owned_fd: OwnedFd) -> io::Result<Self> {
                Self::from_file_unchecked(owned_fd.into())
            }

            /// Calls `f` if this end is ready; `f` does I/O on this end by other means.
            ///
            /// If `f` returns `WouldBlock`, the readiness is cleared, and the next wait is for a
            /// new event. So `f` must return `WouldBlock` only if this pipe returned it.
            ///
            /// # Errors
            ///
            /// `WouldBlock` if the end is not ready or `f` found that it is not; otherwise the
            /// error of `f`.
            ///
            /// # Examples
            ///
            #[doc = concat!("```\n", pipe_pair!("sender", "receiver"))]
            /// sender.writable().await?;
            /// sender.try_write(b"hello")?;
            /// receiver.readable().await?;
            #[doc = concat!("assert_eq!(", $this, ".try_io(|| Ok(7))?, 7);")]
            #[doc = example_end!()]
            pub fn try_io<R>(&self, f: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
                self.io.user_try_io($interest, f)
            }

            /// Removes this end from its runtime and returns its descriptor, in blocking mode.
            ///
            /// The mode belongs to the open file description, not to the descriptor, so every
            /// duplicate of the descriptor sees the change.
            ///
            /// # Errors
            ///
            /// Fails if the driver cannot deregister the pipe, or the mode cannot be set.
            ///
            /// # Examples
            ///
            #[doc = concat!("```\n", pipe_pair!("sender", "receiver"))]
            #[doc = concat!("let fd = ", $this, ".into_blocking_fd()?; // for a child process\n# drop(fd);")]
            #[doc = example_end!()]
            pub fn into_blocking_fd(self) -> io::Result<OwnedFd> {
                let fd = self.into_nonblocking_fd()?;
                SockRef::from(&fd).set_nonblocking(false)?;
                Ok(fd)
            }

            /// Removes this end from its runtime and returns its descriptor, in non-blocking
            /// mode.
            ///
            /// # Errors
            ///
            /// Fails if the driver cannot deregister the pipe.
            ///
            /// # Examples
            ///
            #[doc = concat!("```\n", pipe_pair!("sender", "receiver"))]
            #[doc = concat!("let fd = ", $this, ".into_nonblocking_fd()?;\n# drop(fd);")]
            #[doc = example_end!()]
            pub fn into_nonblocking_fd(self) -> io::Result<OwnedFd> {
                self.io.into_inner().map(OwnedFd::from)
            }

            #[inline]
            fn evented(&self) -> &Evented<File> {
                &self.io
            }
        }

        descriptor!($end, io);
    };
}

/// Write end of a pipe.
///
/// A sender is created by [`pipe`], by [`OpenOptions::open_sender`], or from a file that is open
/// already.
///
/// Once the read end is closed everywhere, writing fails with `BrokenPipe`.
///
/// # Examples
///
#[doc = concat!("```\n", pipe_pair!("sender", "receiver"))]
/// drop(receiver);
/// sender.writable().await?;
/// let error = sender.try_write(b"hello").unwrap_err();
/// assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
#[doc = example_end!()]
#[derive(Debug)]
pub struct Sender {
    io: Evented<File>,
}

end_methods!(
    Sender,
    Interest::WRITABLE,
    libc::O_WRONLY,
    "not in O_WRONLY or O_RDWR access mode: open it for writing",
    "sender"
);

impl Sender {
    ready_method!(
        pipe_pair!("sender", "receiver"),
        "let ready = sender.ready(Interest::WRITABLE).await?;\n\
         assert!(ready.is_writable());\n\
         # drop(receiver);"
    );
    writing_methods!(pipe_pair!("writer", "_peer"));
    owned_writing_methods!(pipe_pair!("writer", "_peer"));
    poll_ready_method!(poll_write_ready, Write, "write", pipe_pair!("sender", "_peer"), "sender");

    /// Does nothing, because a pipe has only one direction, which ends when its sender is
    /// dropped.
    fn end_writing(&mut self) -> io::Result<()> {
        Ok(())
    }
}

async_write!(Sender);

/// Read end of a pipe.
///
/// A receiver is created by [`pipe`], by [`OpenOptions::open_receiver`], or from a file that is
/// open already.
///
/// Once the write end is closed everywhere, reading returns zero bytes.
///
/// # Examples
///
#[doc = concat!("```\n", pipe_pair!("sender", "receiver"))]
/// drop(sender);
/// receiver.readable().await?;
/// assert_eq!(receiver.try_read(&mut [0; 16])?, 0);
#[doc = example_end!()]
#[derive(Debug)]
pub struct Receiver {
    io: Evented<File>,
}

end_methods!(
    Receiver,
    Interest::READABLE,
    libc::O_RDONLY,
    "not in O_RDONLY or O_RDWR access mode: open it for reading",
    "receiver"
);

impl Receiver {
    ready_method!(
        pipe_pair!("sender", "receiver"),
        "sender.writable().await?;\n\
         sender.try_write(b\"hello\")?;\n\
         let ready = receiver.ready(Interest::READABLE).await?;\n\
         assert!(ready.is_readable());"
    );
    reading_methods!(pipe_pair!("peer", "reader"));
    owned_reading_methods!(pipe_pair!("peer", "reader"));
    poll_ready_method!(
        poll_read_ready,
        Read,
        "read",
        concat!(
            pipe_pair!("sender", "receiver"),
            "\nsender.writable().await?;\nsender.try_write(b\"hello\")?;"
        ),
        "receiver"
    );
}

async_read!(Receiver);
