//! A running or exited child process, and its streams.

use std::{
    io,
    process::{Child as StdChild, ExitStatus, Output},
    task::Poll,
};

use super::{
    ChildStderr, ChildStdin, ChildStdout,
    unix::{WatchedChild, abandon},
};
use crate::io::AsyncReadExt;

/// Handle to a child process.
///
/// The child keeps running when its handle is dropped, unless
/// [`kill_on_drop`](super::Command::kill_on_drop) was set, and leaves no zombie either way; see the
/// [module](super).
///
/// # Examples
///
/// ```
/// use blitz_io::process::Command;
///
/// # blitz_io::run(async {
/// let mut child = Command::new("sleep").arg("60").spawn()?;
/// child.kill().await?;
/// assert!(!child.wait().await?.success());
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Child {
    state: ChildState,

    /// Writing end of the child's standard input, if it was piped. The child sees the end of its
    /// input when this is dropped.
    pub stdin: Option<ChildStdin>,
    /// Reading end of the child's standard output, if it was piped.
    pub stdout: Option<ChildStdout>,
    /// Reading end of the child's standard error, if it was piped.
    pub stderr: Option<ChildStderr>,
}

// `Child` has no destructor, because programs move the streams out of it.
#[derive(Debug)]
enum ChildState {
    Running(WatchedChild),
    Exited(ExitStatus),
}

impl Child {
    /// Takes over a child that was just started. If that fails, the child is treated as one that
    /// was dropped, because it may already have done things that cannot be undone.
    pub(super) fn new(mut child: StdChild, kill_on_drop: bool) -> io::Result<Self> {
        match streams(&mut child).and_then(|it| Ok((it, WatchedChild::watch(&child)?))) {
            Ok(((stdin, stdout, stderr), exit_source)) => {
                let state =
                    ChildState::Running(WatchedChild::new(child, exit_source, kill_on_drop));
                Ok(Self { state, stdin, stdout, stderr })
            }
            Err(why) => {
                if kill_on_drop {
                    // An error means that the child has exited, or that we may not kill it.
                    let _ = child.kill();
                }
                abandon(child);
                Err(why)
            }
        }
    }

    /// Returns the process ID, or `None` once the child was waited for, because another process may
    /// have the ID by then.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut child = blitz_io::process::Command::new("true").spawn()?;
    /// assert!(child.id().is_some());
    /// child.wait().await?;
    /// assert_eq!(child.id(), None);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    pub fn id(&self) -> Option<u32> {
        match &self.state {
            ChildState::Running(watched) => Some(watched.child().id()),
            ChildState::Exited(_) => None,
        }
    }

    /// Returns the handle of the process, or `None` once the child was waited for.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # blitz_io::run(async {
    /// let child = blitz_io::process::Command::new("cmd").spawn()?;
    /// assert!(child.raw_handle().is_some());
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    #[cfg(windows)]
    pub fn raw_handle(&self) -> Option<std::os::windows::io::RawHandle> {
        match &self.state {
            ChildState::Running(watched) => {
                Some(std::os::windows::io::AsRawHandle::as_raw_handle(watched.child()))
            }
            ChildState::Exited(_) => None,
        }
    }

    /// Kills the child (`SIGKILL` on Unix), without waiting for its exit.
    ///
    /// Killing a child that has exited already is not an error.
    ///
    /// # Errors
    ///
    /// Returns the system's error, for example if the child runs as another user.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut child = blitz_io::process::Command::new("sleep").arg("60").spawn()?;
    /// child.start_kill()?;
    /// assert!(!child.wait().await?.success());
    /// child.start_kill()?; // it is dead
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    pub fn start_kill(&mut self) -> io::Result<()> {
        match &mut self.state {
            ChildState::Running(watched) => watched.kill(),
            ChildState::Exited(_) => Ok(()),
        }
    }

    /// Kills the child, and waits for its exit.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`start_kill`](Self::start_kill) and [`wait`](Self::wait).
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut child = blitz_io::process::Command::new("sleep").arg("60").spawn()?;
    /// child.kill().await?;
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    pub async fn kill(&mut self) -> io::Result<()> {
        self.start_kill()?;
        self.wait().await?;
        Ok(())
    }

    /// Waits for the child to exit, and returns its exit status; further calls return the same
    /// status.
    ///
    /// The child's standard input is closed first, if it was piped, because a child that reads to
    /// the end would otherwise wait for this process. The child's output is not read: use
    /// [`wait_with_output`](Self::wait_with_output) for that.
    ///
    /// # Errors
    ///
    /// Returns an error if other code in this process has already waited for the child, or if the
    /// runtime that watches the child has shut down and this future is polled outside any runtime.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, nothing is lost, except that standard input has been closed.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut child = blitz_io::process::Command::new("true").spawn()?;
    /// assert!(child.wait().await?.success());
    /// assert!(child.wait().await?.success());
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        self.exited().await
    }

    async fn exited(&mut self) -> io::Result<ExitStatus> {
        let status = match &mut self.state {
            ChildState::Exited(status) => return Ok(*status),
            ChildState::Running(watched) => {
                std::future::poll_fn(|cx| watched.poll_exit(cx)).await?
            }
        };
        self.state = ChildState::Exited(status);
        Ok(status)
    }

    /// Returns the exit status if the child has exited, without waiting.
    ///
    /// # Errors
    ///
    /// Returns an error if other code in this process has already waited for the child.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut child = blitz_io::process::Command::new("sleep").arg("60").spawn()?;
    /// assert_eq!(child.try_wait()?, None);
    /// child.kill().await?;
    /// assert!(child.try_wait()?.is_some());
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = match &mut self.state {
            ChildState::Exited(status) => return Ok(Some(*status)),
            ChildState::Running(watched) => watched.try_wait()?,
        };
        if let Some(status) = status {
            self.state = ChildState::Exited(status);
        }
        Ok(status)
    }

    /// Waits for the child to exit, and returns its exit status together with its collected output.
    ///
    /// The child's standard input is closed first, if it was piped. Output streams that were not
    /// piped, or that were taken out of this `Child`, are not collected.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`wait`](Self::wait), and those of reading the output.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::process::Stdio;
    ///
    /// # blitz_io::run(async {
    /// let mut command = blitz_io::process::Command::new("echo");
    /// let child = command.arg("hi").stdout(Stdio::piped()).spawn()?;
    /// assert_eq!(child.wait_with_output().await?.stdout, b"hi\n");
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    pub async fn wait_with_output(mut self) -> io::Result<Output> {
        drop(self.stdin.take());
        let (mut out, mut err) = (self.stdout.take(), self.stderr.take());
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let status = {
            let mut out = std::pin::pin!(collect(out.as_mut(), &mut stdout));
            let mut err = std::pin::pin!(collect(err.as_mut(), &mut stderr));
            let mut exited = std::pin::pin!(self.exited());
            let (mut read, mut read_err, mut status) = (false, false, None);
            std::future::poll_fn(|cx| {
                if !read && let Poll::Ready(done) = out.as_mut().poll(cx) {
                    done?;
                    read = true;
                }
                if !read_err && let Poll::Ready(done) = err.as_mut().poll(cx) {
                    done?;
                    read_err = true;
                }
                if status.is_none()
                    && let Poll::Ready(done) = exited.as_mut().poll(cx)
                {
                    status = Some(done?);
                }
                match status {
                    Some(status) if read && read_err => Poll::Ready(Ok::<_, io::Error>(status)),
                    _ => Poll::Pending,
                }
            })
            .await?
        };
        Ok(Output { status, stdout, stderr })
    }
}

/// Reads a stream to its end, if it was piped.
async fn collect(
    from: Option<&mut (impl crate::io::AsyncRead + Unpin)>,
    into: &mut Vec<u8>,
) -> io::Result<()> {
    if let Some(from) = from {
        from.read_to_end(into).await?;
    }
    Ok(())
}

type Streams = (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>);

fn streams(child: &mut StdChild) -> io::Result<Streams> {
    Ok((
        child.stdin.take().map(ChildStdin::from_std).transpose()?,
        child.stdout.take().map(ChildStdout::from_std).transpose()?,
        child.stderr.take().map(ChildStderr::from_std).transpose()?,
    ))
}
