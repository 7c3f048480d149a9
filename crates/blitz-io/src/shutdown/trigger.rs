//! The events that begin a shutdown and cut it short.
//!
//! Every source of events calls [`Shutdown::trigger`]: the first event begins the shutdown and the
//! second cuts it short, whichever sources they come from. A source is a closure that returns a
//! future for each event; the signals of the operating system are one source.

use std::future::Future;
#[cfg(feature = "signal")]
use std::task::Poll;

use super::{Phase, Shutdown};
use crate::{task, time::Instant};

impl Shutdown {
    /// Begins the shutdown by cancelling every [token](Self::token). Returns true if it had not
    /// begun before.
    ///
    /// # Examples
    ///
    /// ```
    /// let shutdown = blitz_io::shutdown::Shutdown::new();
    /// assert!(shutdown.begin());
    /// assert!(!shutdown.begin());
    /// ```
    pub fn begin(&self) -> bool {
        let first = self.shared.begun_at.set(Instant::now()).is_ok();
        if first {
            self.shared.begin_token.cancel();
            self.shared.publish_progress(Some(Phase::Draining));
        }
        first
    }

    /// Returns true if the shutdown has begun.
    ///
    /// # Examples
    ///
    /// ```
    /// let shutdown = blitz_io::shutdown::Shutdown::new();
    /// shutdown.begin();
    /// assert!(shutdown.has_begun());
    /// ```
    pub fn has_begun(&self) -> bool {
        self.shared.begin_token.is_cancelled()
    }

    /// Waits until the shutdown has begun.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let shutdown = blitz_io::shutdown::Shutdown::new();
    /// blitz_io::join!(shutdown.begun(), async { shutdown.begin() });
    /// # });
    /// ```
    pub async fn begun(&self) {
        self.shared.begin_token.cancelled().await;
    }

    /// Begins the shutdown and ends its wait at once: [`drain`](Self::drain) aborts the remaining
    /// tasks, as if its time limit had passed.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{shutdown::Shutdown, time::Duration};
    ///
    /// # blitz_io::run(async {
    /// let shutdown = Shutdown::new();
    /// shutdown.spawn(std::future::pending::<()>());
    /// shutdown.cut_short();
    /// let report = shutdown.drain(Duration::from_secs(3600)).await;
    /// assert_eq!(report.aborted.len(), 1);
    /// # });
    /// ```
    pub fn cut_short(&self) {
        self.begin();
        self.shared.cut_token.cancel();
    }

    /// Begins the shutdown at the first call, and [cuts it short](Self::cut_short) at each later
    /// call, which is what a user expects from pressing a key twice.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{shutdown::Shutdown, time::Duration};
    ///
    /// # blitz_io::run(async {
    /// let shutdown = Shutdown::new();
    /// shutdown.spawn(std::future::pending::<()>());
    /// shutdown.trigger();
    /// let drain = shutdown.drain(Duration::from_secs(3600));
    /// let (report, ()) = blitz_io::join!(drain, async { shutdown.trigger() });
    /// assert_eq!(report.aborted.len(), 1);
    /// # });
    /// ```
    pub fn trigger(&self) {
        if !self.begin() {
            self.cut_short();
        }
    }

    /// [Triggers](Self::trigger) the shutdown whenever a future that `event` returns completes: the
    /// first event begins it, and the second one, from this or another source, cuts it short.
    ///
    /// A task of the current runtime waits for the events until the shutdown is cut short or over.
    /// That task is not a member of the shutdown.
    ///
    /// # Panics
    ///
    /// If no runtime is current on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::{shutdown::Shutdown, sync::Notify, time::Duration};
    ///
    /// # blitz_io::run(async {
    /// let (shutdown, pressed) = (Shutdown::new(), Arc::new(Notify::new()));
    /// let button = pressed.clone();
    /// shutdown.on(move || {
    ///     let button = button.clone();
    ///     async move { button.notified().await }
    /// });
    /// pressed.notify_one();
    /// shutdown.begun().await;
    /// assert!(shutdown.drain(Duration::from_secs(10)).await.is_clean());
    /// # });
    /// ```
    #[track_caller]
    pub fn on<E, F>(&self, mut event: E)
    where
        E: FnMut() -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let shutdown = self.clone();
        let events = async move {
            let over_token = shutdown.shared.over_token.clone();
            let two = async {
                while !shutdown.shared.cut_token.is_cancelled() {
                    event().await;
                    shutdown.trigger();
                }
            };
            over_token.run_until_cancelled(two).await;
        };
        let task = task::Builder::new().name("shutdown: waits for events").spawn(events);
        drop(task.expect("a task with a name is spawned as any other"));
    }

    /// [Triggers](Self::trigger) the shutdown when the user presses Ctrl-C or the system requests
    /// that the process end (`SIGINT` and `SIGTERM`; Ctrl-C and Ctrl-Break on Windows): the first
    /// signal begins it, the second cuts it short.
    ///
    /// From this call on, these signals no longer end the process by themselves, not even after the
    /// shutdown is over, so `main` should return then.
    ///
    /// # Errors
    ///
    /// If the operating system refuses to install the signal handlers.
    ///
    /// # Panics
    ///
    /// If no runtime is current on this thread, or its I/O driver is not enabled.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{shutdown::Shutdown, time::Duration};
    ///
    /// # #[cfg(unix)]
    /// # blitz_io::run(async {
    /// let shutdown = Shutdown::new();
    /// shutdown.on_signal()?;
    /// # unsafe { libc::raise(libc::SIGTERM) };
    /// shutdown.begun().await; // Ctrl-C, or `kill`
    /// assert!(shutdown.drain(Duration::from_secs(10)).await.is_clean());
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    #[cfg(feature = "signal")]
    #[track_caller]
    pub fn on_signal(&self) -> std::io::Result<()> {
        let signals = std::sync::Arc::new(crate::sync::Mutex::new(signals()?));
        self.on(move || {
            let signals = signals.clone();
            async move {
                let (interrupt, terminate) = &mut *signals.lock().await;
                std::future::poll_fn(|cx| {
                    let comes =
                        interrupt.poll_recv(cx).is_ready() || terminate.poll_recv(cx).is_ready();
                    if comes { Poll::Ready(()) } else { Poll::Pending }
                })
                .await;
            }
        });
        Ok(())
    }
}

/// Returns listeners for the signals that request the end of a process: `SIGINT` and `SIGTERM`.
#[cfg(all(feature = "signal", unix))]
fn signals() -> std::io::Result<(crate::signal::unix::Signal, crate::signal::unix::Signal)> {
    use crate::signal::unix::{SignalKind, signal};

    Ok((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?))
}

/// Returns listeners for the events that request the end of a process: Ctrl-C and Ctrl-Break.
#[cfg(all(feature = "signal", windows))]
fn signals() -> std::io::Result<(crate::signal::windows::CtrlC, crate::signal::windows::CtrlBreak)>
{
    use crate::signal::windows::{ctrl_break, ctrl_c};

    Ok((ctrl_c()?, ctrl_break()?))
}
