//! Waits for signals of the operating system.
//!
//! - [`ctrl_c`] waits for Ctrl-C, on every system.
//! - [`unix`] has the signals of Unix, `windows` the events of a Windows console.
//!
//! Listening to a signal changes what the signal does: one that ended the process before no longer
//! does so, for the rest of the process's life. No handler is installed before the first use.
//!
//! # Examples
//!
//! A server that stops on Ctrl-C:
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
//!     received = blitz_io::signal::ctrl_c() => {
//!         received?;
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

/// Completes when Ctrl-C is sent to the process.
///
/// That is `SIGINT` on Unix, and the console's event on Windows. From the first poll of the first
/// such future on, Ctrl-C no longer ends the process, for the rest of the process's life: not even
/// after the future has completed or was dropped. So wait for it again, or exit.
///
/// Listening starts with the first poll. A Ctrl-C before that is missed, unless the handler was
/// already installed for another listener and no runtime has dispatched that Ctrl-C yet.
///
/// # Panics
///
/// If it is polled on a thread that has no runtime, or the runtime's I/O is not enabled (on Unix).
///
/// # Errors
///
/// Returns an error if the handler cannot be installed.
///
/// # Cancel safety
///
/// If the future is dropped, a Ctrl-C that came since the last poll is lost. Keep a
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
