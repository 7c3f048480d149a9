//! Signals of the operating system, as something to wait for.
//!
//! - [`ctrl_c`] waits for Ctrl-C, on every system.
//! - [`unix`] has the signals of Unix, `windows` the events of a Windows console.
//!
//! A program that listens to a signal has changed what the signal does: it is no longer
//! ended by it, until it ends. Nothing is installed before somebody asks.
//!
//! # Examples
//!
//! A server that stops when it is told to:
//!
//! ```
//! # async fn serve() { std::future::pending().await }
//! # blitz_io::run(async {
//! # let _kept = blitz_io::signal::unix::signal(blitz_io::signal::unix::SignalKind::interrupt())?;
//! # blitz_io::spawn(async {
//! #     loop {
//! #         unsafe { libc::raise(libc::SIGINT) };
//! #         blitz_io::task::yield_now().await;
//! #     }
//! # });
//! blitz_io::select! {
//!     () = serve() => {}
//!     told = blitz_io::signal::ctrl_c() => {
//!         told?;
//!         println!("stopping");
//!     }
//! }
//! # Ok::<(), std::io::Error>(())
//! # }).unwrap();
//! ```

#![forbid(unsafe_code)]

use std::io;

#[cfg(unix)]
pub mod unix;
#[cfg(windows)]
pub mod windows;

/// Completes when the process is told by Ctrl-C to end.
///
/// That is `SIGINT` on Unix, and the console's event on Windows. From the first poll of the
/// first such future on, Ctrl-C does not end the process any more, for as long as it lives:
/// also not after the future has completed or was dropped. So wait for it again, or end.
///
/// The listening begins with the first poll. A Ctrl-C before that is not heard, unless
/// something listened to it already and no runtime has told of it yet.
///
/// # Panics
///
/// When it is polled, if there is no runtime on this thread or its I/O is not enabled (on
/// Unix).
///
/// # Errors
///
/// If the handler cannot be installed.
///
/// # Cancel safety
///
/// Dropping it loses the Ctrl-C that came since the last poll. Keep a
/// [`Signal`](unix::Signal) to lose none.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let _kept = blitz_io::signal::unix::signal(blitz_io::signal::unix::SignalKind::interrupt())?;
/// # blitz_io::spawn(async {
/// #     loop {
/// #         unsafe { libc::raise(libc::SIGINT) };
/// #         blitz_io::task::yield_now().await;
/// #     }
/// # });
/// blitz_io::signal::ctrl_c().await?;
/// println!("ctrl-c");
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
pub async fn ctrl_c() -> io::Result<()> {
    #[cfg(unix)]
    unix::signal(unix::SignalKind::interrupt())?.recv().await;
    #[cfg(windows)]
    windows::ctrl_c()?.recv().await;
    Ok(())
}
