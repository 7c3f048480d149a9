//! Waits for Unix signals.
//!
//! [`signal`] starts to listen to one kind of signal, and returns a [`Signal`] to wait on. All
//! listeners of a process share one handler for each kind, whatever runtimes they are in. The
//! handler is installed by the first call for its kind, stays until the process ends, and calls the
//! handler that was installed before it.
//!
//! # Signals that are counted
//!
//! The system does not count a signal that is sent twice before it is delivered, and neither does a
//! [`Signal`]: it reports that the signal was delivered at least once since its last report. No
//! delivery is lost in the sense that each one is followed by a report from each `Signal` that
//! existed when it came.
//!
//! # Runtimes
//!
//! A `Signal` must be created inside a runtime that has its I/O enabled. It may then be awaited in
//! any runtime, and keeps working when the runtime that it was created in has shut down: each
//! runtime in which it is polled starts to receive signals by itself. Polled outside any runtime,
//! it is woken as long as there is at least one runtime in which a `Signal` was ever created or
//! polled.
//!
//! # `fork`
//!
//! A child that is made with `fork`, and continues without `exec`, has the handlers and shares the
//! pipes that they write to: a signal that is sent to the child is then reported in the parent. So
//! such a child must first reset its signals to their defaults (`SIG_DFL`), and must not use a
//! runtime of its parent, because the runtime's threads do not exist in the child. Children that
//! are started by [`process::Command`](crate::process::Command) are not affected: `exec` removes
//! the handlers and closes the pipes.

use std::{
    ffi::c_int,
    fmt, io,
    sync::Arc,
    task::{Context, Poll},
};

use crate::{
    engine::{
        driver::Driver,
        signals::{self, SignalListener, SignalSource, WakePipe},
    },
    runtime::context,
};

/// A kind of signal, identified by its number.
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

/// Defines a constructor for each kind of signal that has a name.
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
    info, SIGINFO, "a status request from the terminal. Ignored unless it is caught.";
    interrupt, SIGINT, "Ctrl-C. Ends the process unless it is caught.";
    io, SIGIO, "something can be read or written. Ends the process, on some systems, unless it is caught.";
    pipe, SIGPIPE, "a pipe without readers was written to. Rust's programs ignore it from the start.";
    quit, SIGQUIT, "Ctrl-\\\\. Ends the process with a dump unless it is caught.";
    terminate, SIGTERM, "a request to terminate. Ends it unless it is caught.";
    user_defined1, SIGUSR1, "whatever a program takes it for. Ends the process unless it is caught.";
    user_defined2, SIGUSR2, "whatever a program takes it for. Ends the process unless it is caught.";
    window_change, SIGWINCH, "the terminal has another size. Ignored unless it is caught.";
}

impl SignalKind {
    /// Creates the kind with this number, which may be one that has no name here, or a real-time
    /// signal. [`signal`] returns an error if the system does not have it.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::signal::unix::SignalKind;
    ///
    /// let kind = SignalKind::from_raw(libc::SIGRTMIN() + 3);
    /// assert_eq!(kind.as_raw_value(), libc::SIGRTMIN() + 3);
    /// ```
    // The system's own type, as on Tokio.
    pub const fn from_raw(signum: std::os::raw::c_int) -> Self {
        Self(signum)
    }

    /// Returns the number of the signal.
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

/// Starts to listen to a kind of signal.
///
/// From the first call for a kind on, that signal no longer has its default effect, until the
/// process ends.
///
/// # Panics
///
/// If there is no runtime on this thread, or the runtime's I/O is not enabled.
///
/// # Errors
///
/// Returns an error if the system has no such signal, if the signal cannot be caught (`SIGKILL`,
/// `SIGSTOP`), or if it reports a fault after which the thread cannot continue (`SIGSEGV`,
/// `SIGILL`, `SIGFPE`): the text names the signal and says what to do. Also returns an error if
/// there are no descriptors left.
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
    // Called first, so that a panic comes before anything is installed.
    let driver = context::io_driver();
    refuse(kind).map_or(Ok(()), Err)?;
    // The handler is installed once the source is there: without a descriptor for that, no thread
    // would listen, and the signal would no longer end the process.
    let (source, listening) = SignalSource::with(&driver, || {
        let index = signals::install(kind.0)?;
        Ok(signals::registry().listen(index))
    })?;
    Ok(Signal { listening, source })
}

/// Returns an error if the signal must not be caught.
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
    // The error kind is Tokio's.
    Some(io::Error::other(text))
}

const FAULT: &str = "the thread that it comes to cannot go on, so no task can be notified: \
     install a handler of your own by `sigaction`";

/// Listener for one kind of signal, created by [`signal`].
///
/// If there are several listeners for a kind, each of them reports every delivery. Deliveries that
/// come before a listener is polled again are reported as one.
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
#[must_use = "the signal is caught from now on, so an unused listener discards it"]
pub struct Signal {
    listening: SignalListener<'static, WakePipe>,
    /// Signal source of the runtime that this was last polled in.
    source: Arc<SignalSource>,
}

impl Signal {
    /// Waits for the next signal of this kind.
    ///
    /// Returns `None` if no more signals can be received: this is polled in a runtime that cannot
    /// receive signals because there are no descriptors left, and the runtime before it has shut
    /// down.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, nothing is lost: the next call returns a signal that came
    /// meanwhile.
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

    /// Polls for the next signal of this kind. Only the task that polled last is woken.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::signal::unix::{signal, SignalKind};
    ///
    /// # blitz_io::run(async {
    /// let mut user = signal(SignalKind::user_defined2())?;
    /// # unsafe { libc::raise(libc::SIGUSR2) };
    /// let received = std::future::poll_fn(|cx| user.poll_recv(cx)).await;
    /// assert_eq!(received, Some(()));
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        if !self.follow_runtime() {
            return Poll::Ready(None);
        }
        self.listening.poll(cx).map(Some)
    }

    /// Makes sure that the runtime of this thread, if there is one, receives signals. Returns false
    /// if it cannot, and the runtime that received them before has shut down.
    #[inline]
    fn follow_runtime(&mut self) -> bool {
        let other =
            context::with_io_driver(|driver| (!self.source.serves(driver)).then(|| driver.clone()));
        match other.flatten() {
            None => true,
            Some(driver) => self.move_to(&driver),
        }
    }

    #[cold]
    fn move_to(&mut self, driver: &Arc<Driver>) -> bool {
        match SignalSource::of(driver) {
            Ok(source) => self.source = source,
            Err(_) => return self.source.is_open(),
        }
        true
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal").field("kind", &self.listening.kind()).finish_non_exhaustive()
    }
}
