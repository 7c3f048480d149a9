//! A child that was started: its end, and its streams.

use std::{
    io,
    process::{Child as StdChild, ExitStatus, Output},
    task::Poll,
};

use super::{
    ChildStderr, ChildStdin, ChildStdout,
    unix::{Watched, abandon},
};
use crate::io::AsyncReadExt;

/// A child process.
///
/// It goes on when this is dropped, unless [`kill_on_drop`](super::Command::kill_on_drop) was
/// asked for, and leaves no zombie either way; see the [module](super).
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
    life: Life,

    /// What the child reads, if it was piped. The child reads the end when this is dropped.
    pub stdin: Option<ChildStdin>,
    /// What the child writes, if it was piped.
    pub stdout: Option<ChildStdout>,
    /// What the child writes as errors, if it was piped.
    pub stderr: Option<ChildStderr>,
}

// No destructor here: programs move streams out of a `Child`.
#[derive(Debug)]
enum Life {
    Running(Watched),
    Ended(ExitStatus),
}

impl Child {
    /// Takes over a child that was just started. If that fails, the child is killed.
    pub(super) fn new(mut child: StdChild, kill_on_drop: bool) -> io::Result<Self> {
        match streams(&mut child).and_then(|it| Ok((it, Watched::watch(&child)?))) {
            Ok(((stdin, stdout, stderr), by)) => {
                let life = Life::Running(Watched::new(child, by, kill_on_drop));
                Ok(Self { life, stdin, stdout, stderr })
            }
            Err(why) => {
                // Nobody could ever reach it. An error to kill it says that it has ended.
                let _ = child.kill();
                abandon(child);
                Err(why)
            }
        }
    }

    /// The number of the process; `None` once its end was waited for, since another may have
    /// the number then.
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
        match &self.life {
            Life::Running(watched) => Some(watched.child().id()),
            Life::Ended(_) => None,
        }
    }

    /// The handle of the process; `None` once its end was waited for.
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
        match &self.life {
            Life::Running(watched) => {
                Some(std::os::windows::io::AsRawHandle::as_raw_handle(watched.child()))
            }
            Life::Ended(_) => None,
        }
    }

    /// Has the child killed (`SIGKILL` on Unix), and does not wait for its end.
    ///
    /// It is well with a child that has ended already.
    ///
    /// # Errors
    ///
    /// What the system says, as of a child that runs as another user.
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
        match &mut self.life {
            Life::Running(watched) => watched.kill(),
            Life::Ended(_) => Ok(()),
        }
    }

    /// Has the child killed, and waits for its end.
    ///
    /// # Errors
    ///
    /// As [`start_kill`](Self::start_kill) and [`wait`](Self::wait).
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

    /// Waits for the child's end, and answers with how it ended; the same every time.
    ///
    /// What the child reads is closed first, if it was piped: a child that reads to the end
    /// would otherwise wait for us. What it writes is not read: with
    /// [`wait_with_output`](Self::wait_with_output) it is.
    ///
    /// # Errors
    ///
    /// If somebody else has waited for the child. If the runtime that watches it has ended,
    /// and this is polled outside of any.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing but the closed stream.
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
        self.end().await
    }

    async fn end(&mut self) -> io::Result<ExitStatus> {
        let status = match &mut self.life {
            Life::Ended(status) => return Ok(*status),
            Life::Running(watched) => std::future::poll_fn(|cx| watched.poll_end(cx)).await?,
        };
        self.life = Life::Ended(status);
        Ok(status)
    }

    /// How the child ended, if it has.
    ///
    /// # Errors
    ///
    /// If somebody else has waited for the child.
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
        let status = match &mut self.life {
            Life::Ended(status) => return Ok(Some(*status)),
            Life::Running(watched) => watched.try_wait()?,
        };
        if let Some(status) = status {
            self.life = Life::Ended(status);
        }
        Ok(status)
    }

    /// Waits for the child's end, collecting what it writes meanwhile.
    ///
    /// What the child reads is closed first, if it was piped. What was not piped, or was
    /// taken, is not collected.
    ///
    /// # Errors
    ///
    /// Those of [`wait`](Self::wait), and of reading.
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
            let mut end = std::pin::pin!(self.end());
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
                    && let Poll::Ready(done) = end.as_mut().poll(cx)
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

/// Reads to the end what was piped.
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
