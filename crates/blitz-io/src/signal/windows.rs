//! Events of a Windows console: keys, and the end of the console, the session or the system.
//!
//! Each function starts to listen to one event, and returns a listener to wait on. The process has
//! one handler for all of them, installed by the first call. An event without a listener is left to
//! the handlers that were installed before.

use std::{
    fmt, io,
    task::{Context, Poll},
};

use crate::engine::signals::{ConsoleEvent, SignalListener, install};

macro_rules! events {
    ($($function:ident, $type:ident, $event:ident, $says:literal;)*) => {$(
        #[doc = concat!("Listens to ", $says, " from now on.")]
        ///
        /// # Errors
        ///
        /// Returns an error if the handler cannot be installed.
        ///
        /// # Examples
        ///
        /// ```no_run
        /// # blitz_io::run(async {
        #[doc = concat!("let mut event = blitz_io::signal::windows::", stringify!($function), "()?;")]
        /// event.recv().await;
        /// # Ok::<(), std::io::Error>(())
        /// # }).unwrap();
        /// ```
        pub fn $function() -> io::Result<$type> {
            Ok($type { listening: install(ConsoleEvent::$event)? })
        }

        #[doc = concat!("Listens to ", $says, "; [`", stringify!($function), "`] makes one.")]
        ///
        /// Events that come before it is polled again are reported as one.
        ///
        /// # Examples
        ///
        /// ```no_run
        /// # blitz_io::run(async {
        #[doc = concat!("let mut event = blitz_io::signal::windows::", stringify!($function), "()?;")]
        /// while event.recv().await.is_some() {
        ///     println!("once more");
        /// }
        /// # Ok::<(), std::io::Error>(())
        /// # }).unwrap();
        /// ```
        #[must_use = "the event is caught from now on, so an unused listener discards it"]
        pub struct $type {
            listening: SignalListener<'static, ()>,
        }

        impl $type {
            /// Waits for the next event. Never returns `None`.
            ///
            /// # Cancel safety
            ///
            /// If the future is dropped, nothing is lost: the next call returns an event that came
            /// meanwhile.
            ///
            /// # Examples
            ///
            /// ```no_run
            /// # blitz_io::run(async {
            #[doc = concat!("blitz_io::signal::windows::", stringify!($function), "()?.recv().await;")]
            /// # Ok::<(), std::io::Error>(())
            /// # }).unwrap();
            /// ```
            pub async fn recv(&mut self) -> Option<()> {
                std::future::poll_fn(|cx| self.poll_recv(cx)).await
            }

            /// Polls for the next event. Only the task that polled last is woken.
            ///
            /// # Examples
            ///
            /// ```no_run
            /// # blitz_io::run(async {
            #[doc = concat!("let mut event = blitz_io::signal::windows::", stringify!($function), "()?;")]
            /// std::future::poll_fn(|cx| event.poll_recv(cx)).await;
            /// # Ok::<(), std::io::Error>(())
            /// # }).unwrap();
            /// ```
            pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
                self.listening.poll(cx).map(Some)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($type)).finish_non_exhaustive()
            }
        }
    )*};
}

events! {
    ctrl_c, CtrlC, C, "Ctrl-C";
    ctrl_break, CtrlBreak, Break, "Ctrl-Break";
    ctrl_close, CtrlClose, Close, "the closing of the console, which ends the process some seconds later";
    ctrl_logoff, CtrlLogoff, Logoff, "the end of the session, which ends the process some seconds later";
    ctrl_shutdown, CtrlShutdown, Shutdown, "the end of the system, which ends the process some seconds later";
}
