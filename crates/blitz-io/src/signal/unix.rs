//! Signals of Unix.
//!
//! [`signal`] begins to listen to one kind, and answers with a [`Signal`] to wait with. All
//! of a process share one handler for each kind, whatever runtimes they are in. It is
//! installed when somebody first asks, stays until the process ends, and goes on to call
//! the one that was there before.
//!
//! # What is told
//!
//! The system keeps no count of a signal that is sent twice before it is delivered, and
//! neither does a [`Signal`]: it says that there was one, or more, since it was last asked.
//! None is lost in the sense that each delivery is followed by an answer of each `Signal`
//! that lived when it came.
//!
//! # Runtimes
//!
//! A `Signal` is made inside a runtime, with its I/O enabled. It may then be waited for in
//! any runtime, and goes on when the one that it was made in has ended: each runtime in
//! which it is polled comes to hear of signals by itself. Outside of all, it is woken as
//! long as there is any runtime that was ever asked for a signal.
//!
//! # `fork`
//!
//! A child that is made with `fork`, and goes on without `exec`, has the handlers and shares
//! the pipes by which they tell: a signal of the child is then told to the parent. So such
//! a child sets its signals to what they were (`SIG_DFL`) before it does anything else, and
//! uses no runtime of its parent, which has no threads in it. Children that are started by
//! [`process::Command`](crate::process::Command) are not concerned: `exec` takes handlers
//! away and closes the pipes.

use std::{
    ffi::c_int,
    fmt, io,
    sync::Arc,
    task::{Context, Poll},
};

use crate::{
    engine::{
        driver::Driver,
        signals::{self, Listening, Pipe, Station},
    },
    runtime::context,
};

/// The kind of a signal: its number.
///
/// # Examples
///
/// ```
/// use blitz_io::signal::unix::SignalKind;
///
/// assert_eq!(SignalKind::terminate().as_raw_value(), libc::SIGTERM);
/// assert_eq!(SignalKind::from(libc::SIGTERM), SignalKind::terminate());
/// ```
#[derive(Debug, Clone, Copy, Hash, PartialEq, Eq)]
pub struct SignalKind(c_int);

/// A kind that has a name.
macro_rules! kinds {
    ($($(#[$meta:meta])* $name:ident, $number:ident, $says:literal;)*) => {
        impl SignalKind {
            $(
                #[doc = concat!("`", stringify!($number), "`: ", $says)]
                ///
                /// # Examples
                ///
                /// ```
                #[doc = concat!("# use blitz_io::signal::unix::SignalKind;\nassert_eq!(SignalKind::", stringify!($name), "().as_raw_value(), libc::", stringify!($number), ");")]
                /// ```
                $(#[$meta])*
                pub const fn $name() -> Self {
                    Self(libc::$number)
                }
            )*
        }
    };
}

kinds! {
    alarm, SIGALRM, "a timer of the system has run out. Ends the process unless it is caught.";
    child, SIGCHLD, "a child has ended, stopped or gone on. Ignored unless it is caught.";
    hangup, SIGHUP, "the terminal is gone; daemons take it as 'read your configuration again'. Ends the process unless it is caught.";
    #[cfg(any(
        target_os = "dragonfly",
        target_os = "freebsd",
        target_os = "macos",
        target_os = "netbsd",
        target_os = "openbsd",
        target_os = "illumos"
    ))]
    info, SIGINFO, "the terminal asks how it goes. Ignored unless it is caught.";
    interrupt, SIGINT, "Ctrl-C. Ends the process unless it is caught.";
    io, SIGIO, "something can be read or written. Ends the process, on some systems, unless it is caught.";
    pipe, SIGPIPE, "a pipe was written to that nobody reads. Rust's programs ignore it from the start.";
    quit, SIGQUIT, "Ctrl-\\\\. Ends the process with a dump unless it is caught.";
    terminate, SIGTERM, "somebody asks the process to end. Ends it unless it is caught.";
    user_defined1, SIGUSR1, "whatever a program takes it for. Ends the process unless it is caught.";
    user_defined2, SIGUSR2, "whatever a program takes it for. Ends the process unless it is caught.";
    window_change, SIGWINCH, "the terminal has another size. Ignored unless it is caught.";
}

impl SignalKind {
    /// The kind of that number; also of those that have no name here, and of the real-time
    /// ones. Whether the system has it is seen when somebody listens to it.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::signal::unix::SignalKind;
    ///
    /// let kind = SignalKind::from_raw(libc::SIGRTMIN() + 3);
    /// assert_eq!(kind.as_raw_value(), libc::SIGRTMIN() + 3);
    /// ```
    // A system's own type, as Tokio has it.
    pub const fn from_raw(signum: std::os::raw::c_int) -> Self {
        Self(signum)
    }

    /// Its number.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::signal::unix::SignalKind;
    /// assert_eq!(SignalKind::interrupt().as_raw_value(), libc::SIGINT);
    /// ```
    pub const fn as_raw_value(&self) -> std::os::raw::c_int {
        self.0
    }
}

impl From<std::os::raw::c_int> for SignalKind {
    fn from(signum: std::os::raw::c_int) -> Self {
        Self::from_raw(signum)
    }
}

impl From<SignalKind> for std::os::raw::c_int {
    fn from(kind: SignalKind) -> Self {
        kind.as_raw_value()
    }
}

/// Listens to a signal from now on.
///
/// From the first call for a kind on, the signal does not do any more what it did by
/// itself, until the process ends.
///
/// # Panics
///
/// If there is no runtime on this thread, or its I/O is not enabled.
///
/// # Errors
///
/// If the system has no such signal, or lets nobody catch it (`SIGKILL`, `SIGSTOP`), or it
/// tells of a fault that cannot be gone on from (`SIGSEGV`, `SIGILL`, `SIGFPE`): the text
/// names it and says what to do. If there are no descriptors left.
///
/// # Examples
///
/// ```
/// use blitz_io::signal::unix::{signal, SignalKind};
///
/// # blitz_io::run(async {
/// let mut hangup = signal(SignalKind::hangup())?;
/// # unsafe { libc::raise(libc::SIGHUP) };
/// hangup.recv().await;
/// println!("reading the configuration again");
///
/// let error = signal(SignalKind::from_raw(libc::SIGKILL)).unwrap_err();
/// assert!(error.to_string().contains("SIGKILL"));
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[track_caller]
pub fn signal(kind: SignalKind) -> io::Result<Signal> {
    // First: the panic comes before anything is installed.
    let driver = context::io_driver();
    refuse(kind).map_or(Ok(()), Err)?;
    let place = signals::install(kind.0).map_err(|cause| failed(kind, cause))?;
    let listening = signals::hall().listen(place);
    let station = Station::of(&driver).map_err(|cause| failed(kind, cause))?;
    Ok(Signal { listening, station })
}

/// Why a signal must not be caught, if so.
fn refuse(kind: SignalKind) -> Option<io::Error> {
    let (name, why) = match kind.0 {
        libc::SIGKILL => ("SIGKILL", "the system lets no process catch it: listen to SIGTERM"),
        libc::SIGSTOP => ("SIGSTOP", "the system lets no process catch it: listen to SIGTSTP"),
        libc::SIGSEGV => ("SIGSEGV", FAULT),
        libc::SIGILL => ("SIGILL", FAULT),
        libc::SIGFPE => ("SIGFPE", FAULT),
        _ => return None,
    };
    let text = format!("cannot listen to signal {} ({name}): {why}", kind.0);
    Some(io::Error::new(io::ErrorKind::InvalidInput, text))
}

const FAULT: &str = "the thread that it comes to cannot go on, so no task can be told: \
     install a handler of your own by `sigaction`";

#[cold]
fn failed(kind: SignalKind, cause: io::Error) -> io::Error {
    let hint = if cause.raw_os_error() == Some(libc::EINVAL) {
        ": the system has none of that number, or keeps it for itself"
    } else {
        ""
    };
    let text = format!("cannot listen to signal {}: {cause}{hint}", kind.0);
    io::Error::new(cause.kind(), text)
}

/// Listens to one kind of signal; [`signal`] makes one.
///
/// Several for the same kind are each told of every delivery. Deliveries that come before
/// it is asked again are told as one.
///
/// # Examples
///
/// ```
/// use blitz_io::signal::unix::{signal, SignalKind};
///
/// # blitz_io::run(async {
/// let mut user = signal(SignalKind::user_defined1())?;
/// for _ in 0..3 {
///     unsafe { libc::raise(libc::SIGUSR1) };
///     user.recv().await;
/// }
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[must_use = "nothing hears the signal, which does nothing by itself any more"]
pub struct Signal {
    listening: Listening<'static, Pipe>,
    /// That of the runtime it was last polled in.
    station: Arc<Station>,
}

impl Signal {
    /// Waits for the next signal of this kind.
    ///
    /// `None` means that no more can be told: it is polled in a runtime that cannot come to
    /// hear of signals for want of descriptors, and the one before has ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing: a signal that came is told to the next call.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::signal::unix::{signal, SignalKind};
    ///
    /// # blitz_io::run(async {
    /// let mut resized = signal(SignalKind::window_change())?;
    /// # unsafe { libc::raise(libc::SIGWINCH) };
    /// assert_eq!(resized.recv().await, Some(()));
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn recv(&mut self) -> Option<()> {
        std::future::poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Polls for the next signal of this kind. The task that polled last is the one that is
    /// woken.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::signal::unix::{signal, SignalKind};
    ///
    /// # blitz_io::run(async {
    /// let mut user = signal(SignalKind::user_defined2())?;
    /// # unsafe { libc::raise(libc::SIGUSR2) };
    /// let told = std::future::poll_fn(|cx| user.poll_recv(cx)).await;
    /// assert_eq!(told, Some(()));
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        if !self.attend() {
            return Poll::Ready(None);
        }
        self.listening.poll(cx).map(Some)
    }

    /// Sees that the runtime of this thread hears of signals, if there is one; `false` if it
    /// cannot and nobody else is known to.
    #[inline]
    fn attend(&mut self) -> bool {
        let other = context::with_io_driver(|driver| {
            (!self.station.serves(driver)).then(|| driver.clone())
        });
        match other.flatten() {
            None => true,
            Some(driver) => self.move_to(&driver),
        }
    }

    #[cold]
    fn move_to(&mut self, driver: &Arc<Driver>) -> bool {
        match Station::of(driver) {
            Ok(station) => self.station = station,
            Err(_) => return self.station.is_open(),
        }
        true
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal").field("kind", &self.listening.kind()).finish_non_exhaustive()
    }
}
