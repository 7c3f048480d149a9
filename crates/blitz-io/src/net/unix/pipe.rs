//! Unix pipes.
//!
//! [`pipe`] makes one between two parts of this process, or for a child; [`OpenOptions`]
//! opens one that has a name (`mkfifo`).

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

use super::addr;
use crate::{
    io::Interest,
    net::{error, evented::Evented, raw},
};

/// The first part of examples: both ends of a pipe, by the names given.
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

/// The first part of examples about pipes with a name: `path` of one.
macro_rules! pipe_at {
    () => {
        "use blitz_io::net::unix::pipe;

# blitz_io::run(async {
# let dir = tempfile::tempdir()?;
let path = dir.path().join(\"fifo\");
# assert!(std::process::Command::new(\"mkfifo\").arg(&path).status()?.success());"
    };
}

/// Creates a new anonymous Unix pipe.
///
/// # Panics
///
/// If there is no runtime on this thread, or its I/O is not enabled.
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

/// Options and flags which can be used to configure how a pipe with a name is opened.
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
    /// Nothing special.
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

    /// Has both ends opened at once, so that a sender need not find a receiver, and a
    /// receiver sees no end while senders come and go.
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

    /// Leaves out the look whether the file is a pipe, for those who know.
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

    /// Opens the end that reads.
    ///
    /// There need not be a sender yet; until there is one, reading finds the end of the
    /// stream.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread, or its I/O is not enabled.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened, or is no pipe; the text has the path.
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

    /// Opens the end that writes.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread, or its I/O is not enabled.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened, or is no pipe; the text has the path. If nobody has
    /// opened the end that reads, the operating system's number behind the error is
    /// `ENXIO`: try again later.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", pipe_at!())]
    /// assert!(pipe::OpenOptions::new().open_sender(&path).is_err()); // nobody reads
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
            .map_err(|cause| error::at("open", addr::shown(path), cause))
    }
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions::new()
    }
}

/// Refuses what is no pipe.
fn a_pipe(file: File) -> io::Result<File> {
    if file.metadata()?.file_type().is_fifo() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a pipe: `_unchecked` takes other files"))
}

/// Refuses what is no pipe or was not opened for `mode`, and sets it to non-blocking.
fn usable(fd: OwnedFd, mode: libc::c_int, refused: &'static str) -> io::Result<File> {
    let file = a_pipe(File::from(fd))?;
    let access = raw::file_flags(file.as_fd())? & libc::O_ACCMODE;
    if access != mode && access != libc::O_RDWR {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, refused));
    }
    SockRef::from(&file).set_nonblocking(true)?;
    Ok(file)
}

/// What both ends share. The example's first part defines both, and the last argument is
/// the one that the methods are of.
macro_rules! end_methods {
    ($end:ident, $interest:expr, $mode:expr, $refused:literal, $this:literal) => {
        impl $end {
            /// Makes an end of a pipe of a file, after a look whether it is one and was
            /// opened for this direction, and sets it to non-blocking mode.
            ///
            /// # Panics
            ///
            /// If there is no runtime on this thread, or its I/O is not enabled.
            ///
            /// # Errors
            ///
            /// `InvalidInput` if it is no pipe, or not open for this direction.
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

            /// Makes an end of a pipe of a descriptor, after a look whether it is one and
            /// was opened for this direction, and sets it to non-blocking mode.
            ///
            /// # Panics
            ///
            /// If there is no runtime on this thread, or its I/O is not enabled.
            ///
            /// # Errors
            ///
            /// `InvalidInput` if it is no pipe, or not open for this direction.
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

            /// Makes an end of a pipe of a file without a look. It should be in
            /// non-blocking mode.
            ///
            /// # Panics
            ///
            /// If there is no runtime on this thread, or its I/O is not enabled.
            ///
            /// # Errors
            ///
            /// If the driver cannot watch it, as it cannot files of a disk.
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

            /// Makes an end of a pipe of a descriptor without a look. It should be in
            /// non-blocking mode.
            ///
            /// # Panics
            ///
            /// If there is no runtime on this thread, or its I/O is not enabled.
            ///
            /// # Errors
            ///
            /// If the driver cannot watch it, as it cannot files of a disk.
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

            /// Calls `f`, which does I/O on this end by other means, if it is ready.
            ///
            /// If `f` says `WouldBlock`, the readiness is forgotten, and the next wait is
            /// for a new event. So `f` must say that only if this pipe said so.
            ///
            /// # Errors
            ///
            /// `WouldBlock` if the end is not ready or `f` found it so; else what `f`
            /// answers.
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
                self.io.try_io_of_user($interest, f)
            }

            /// Takes it from its runtime and answers its descriptor, in blocking mode.
            ///
            /// Both modes belong to what is open, not to the descriptor: whoever has a
            /// copy sees the change.
            ///
            /// # Errors
            ///
            /// If the driver would not let it go, or the mode cannot be set.
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

            /// Takes it from its runtime and answers its descriptor, in non-blocking
            /// mode.
            ///
            /// # Errors
            ///
            /// If the driver would not let it go.
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

/// Writing end of a Unix pipe.
///
/// It is made by [`pipe`], by [`OpenOptions::open_sender`], or of a file that is open
/// already.
///
/// When nobody has the end that reads any more, writing fails with `BrokenPipe`.
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

    /// A pipe has one direction, which ends when its sender is dropped.
    fn end_writing(&mut self) -> io::Result<()> {
        Ok(())
    }
}

async_write!(Sender);

/// Reading end of a Unix pipe.
///
/// It is made by [`pipe`], by [`OpenOptions::open_receiver`], or of a file that is open
/// already.
///
/// When nobody has the end that writes any more, reading answers with nothing.
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
