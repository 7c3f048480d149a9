//! What begins a shutdown, and what ends it at once.
//!
//! Every source of triggers ends in [`Shutdown::trigger`]: the first begins, the second cuts
//! short, whichever sources they come from. A source is a closure that gives a future for each
//! event; signals of the system are one of them.

use std::future::Future;
#[cfg(feature = "signal")]
use std::task::Poll;

use super::{Phase, Shutdown};
use crate::{task, time::Instant};

impl Shutdown {
    /// Begins the shutdown: every [token](Self::token) is cancelled. `true` if it had not
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
        let first = self.shared.begun.set(Instant::now()).is_ok();
        if first {
            self.shared.told.cancel();
            self.shared.tell(Some(Phase::Draining));
        }
        first
    }

    /// Whether the shutdown has begun.
    ///
    /// # Examples
    ///
    /// ```
    /// let shutdown = blitz_io::shutdown::Shutdown::new();
    /// shutdown.begin();
    /// assert!(shutdown.has_begun());
    /// ```
    pub fn has_begun(&self) -> bool {
        self.shared.told.is_cancelled()
    }

    /// Waits until the shutdown has begun.
    ///
    /// # Cancel safety
    ///
    /// A wait that is dropped takes nothing with it.
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
        self.shared.told.cancelled().await;
    }

    /// Begins the shutdown, and ends its wait now: [`drain`](Self::drain) aborts what is left,
    /// as if its time were over.
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
        self.shared.cut.cancel();
    }

    /// The first call begins the shutdown, and each one after that [cuts it
    /// short](Self::cut_short): what a user expects of a key that is pressed twice.
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

    /// [Triggers](Self::trigger) the shutdown whenever a future is ready that `event` gives:
    /// the first time begins it, the second, from this or another source, cuts it short.
    ///
    /// A task of the current runtime waits for the events, until there have been two or the
    /// shutdown is over. It is not one of the shutdown's own.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread.
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
            let over = shutdown.shared.over.clone();
            let two = async {
                while !shutdown.shared.cut.is_cancelled() {
                    event().await;
                    shutdown.trigger();
                }
            };
            over.run_until_cancelled(two).await;
        };
        let task = task::Builder::new().name("shutdown: waits for events").spawn(events);
        drop(task.expect("a task with a name is spawned as any other"));
    }

    /// [Triggers](Self::trigger) the shutdown when the user presses Ctrl-C or the system asks the
    /// process to end (`SIGINT` and `SIGTERM`; Ctrl-C and Ctrl-Break on Windows): the first signal
    /// begins it, the second cuts it short.
    ///
    /// Signals are listened to from this call on, and no longer end the process by themselves, also not
    /// when the shutdown is over: `main` is to return then.
    ///
    /// # Errors
    ///
    /// What the system says if it does not let us listen.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread, or its I/O is not enabled.
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

/// By what a process is asked to end.
#[cfg(all(feature = "signal", unix))]
fn signals() -> std::io::Result<(crate::signal::unix::Signal, crate::signal::unix::Signal)> {
    use crate::signal::unix::{SignalKind, signal};

    Ok((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?))
}

/// By what a process is asked to end.
#[cfg(all(feature = "signal", windows))]
fn signals() -> std::io::Result<(crate::signal::windows::CtrlC, crate::signal::windows::CtrlBreak)>
{
    use crate::signal::windows::{ctrl_break, ctrl_c};

    Ok((ctrl_c()?, ctrl_break()?))
}
