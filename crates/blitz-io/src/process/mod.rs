//! Child processes: starting them, exchanging data with them and waiting for their exit.
//!
//! [`Command`] has the builder methods of [`std::process::Command`]. It starts a [`Child`], and
//! both the exit and the pipes of that child can be awaited.
//!
//! # Dropped children
//!
//! A child keeps running when its `Child` is dropped, as in the standard library, unless
//! [`kill_on_drop`](Command::kill_on_drop) was set. Either way it leaves no zombie: when it exits
//! it is reaped by a thread that is started for the first such child, sleeps until one exits, and
//! ends with the last of them. A dropped child occupies no descriptor. Children of the process that
//! were started by other means are never touched.
//!
//! # How an end is noticed
//!
//! On Linux a child has a descriptor (pidfd) that the driver watches. Where there is none (before
//! Linux 5.3, in some sandboxes, on other systems), or if the variable `BLITZ_IO_NO_PIDFD` is set
//! to 1, `SIGCHLD` reports that some child has changed state, and each child that is being waited
//! for is checked. The same happens if there are no descriptors left; a child that was started is
//! never killed for that reason. In these cases, and for children that were dropped, a handler for
//! `SIGCHLD` is installed, as by [`signal`](crate::signal::unix::signal).
//!
//! # Examples
//!
//! ```
//! use blitz_io::process::Command;
//!
//! # blitz_io::run(async {
//! let output = Command::new("echo").arg("hello").output().await?;
//! assert!(output.status.success());
//! assert_eq!(output.stdout, b"hello\n");
//! # Ok::<(), std::io::Error>(())
//! # }).unwrap();
//! ```
//!
//! Writing to a child and reading from it at the same time:
//!
//! ```
//! use std::process::Stdio;
//! use blitz_io::{io::{AsyncReadExt, AsyncWriteExt}, process::Command};
//!
//! # blitz_io::run(async {
//! let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
//! let mut stdin = child.stdin.take().unwrap();
//! let mut stdout = child.stdout.take().unwrap();
//! let feed = blitz_io::spawn(async move { stdin.write_all(&[7; 100_000]).await });
//! let mut bytes = Vec::new();
//! stdout.read_to_end(&mut bytes).await?;
//! assert_eq!(bytes.len(), 100_000);
//! feed.await.unwrap()?;
//! assert!(child.wait().await?.success());
//! # Ok::<(), std::io::Error>(())
//! # }).unwrap();
//! ```

mod child;
mod command;
mod stdio;
mod raw;
#[cfg_attr(windows, path = "windows.rs")]
mod unix;

pub use self::{
    child::Child,
    command::Command,
    stdio::{ChildStderr, ChildStdin, ChildStdout},
};
