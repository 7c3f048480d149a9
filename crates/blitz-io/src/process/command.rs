//! Builder for child processes: that of the standard library, with additions.

use std::{
    ffi::OsStr,
    io,
    path::Path,
    process::{Child as StdChild, Command as StdCommand, ExitStatus, Output, Stdio},
};

use super::Child;

/// Builder for a child process, with its arguments, environment and streams.
///
/// The defaults are those of [`std::process::Command`]: no arguments, inherited environment and
/// working directory, streams inherited by [`spawn`](Self::spawn) and [`status`](Self::status), and
/// output collected by [`output`](Self::output).
///
/// # Examples
///
/// ```
/// use blitz_io::process::Command;
///
/// # blitz_io::run(async {
/// let status = Command::new("sh").args(["-c", "exit 3"]).status().await?;
/// assert_eq!(status.code(), Some(3));
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Command {
    std: StdCommand,
    kill_on_drop: bool,
}

/// Defines builder methods that forward to the standard library's builder.
macro_rules! forward_methods {
    ($(
        $(#[$meta:meta])*
        $name:ident $(<$($generic:ident: $bound:path),*>)? ($($argument:ident: $type:ty),*);
    )*) => {
        impl Command {$(
            $(#[$meta])*
            pub fn $name$(<$($generic: $bound),*>)?(&mut self, $($argument: $type),*) -> &mut Command {
                self.std.$name($($argument),*);
                self
            }
        )*}
    };
}

forward_methods! {
    /// Adds an argument. It is passed as one argument, whatever characters it contains, because no
    /// shell parses it.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let output = blitz_io::process::Command::new("echo").arg("a b").output().await?;
    /// assert_eq!(output.stdout, b"a b\n");
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    arg<S: AsRef<OsStr>>(arg: S);

    /// Sets a variable of the child's environment.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut command = blitz_io::process::Command::new("sh");
    /// let output = command.args(["-c", "echo $COLOUR"]).env("COLOUR", "red").output().await?;
    /// assert_eq!(output.stdout, b"red\n");
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    env<K: AsRef<OsStr>, V: AsRef<OsStr>>(key: K, val: V);

    /// Removes a variable from the child's environment.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let output = blitz_io::process::Command::new("env").env_remove("HOME").output().await?;
    /// assert!(!output.stdout.starts_with(b"HOME="));
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    env_remove<K: AsRef<OsStr>>(key: K);

    /// Clears the child's environment: it has only the variables that are set afterwards.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut command = blitz_io::process::Command::new("/usr/bin/env");
    /// let output = command.env_clear().env("A", "1").output().await?;
    /// assert_eq!(output.stdout, b"A=1\n");
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    env_clear();

    /// Sets the child's working directory.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let output = blitz_io::process::Command::new("pwd").current_dir("/").output().await?;
    /// assert_eq!(output.stdout, b"/\n");
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    current_dir<P: AsRef<Path>>(dir: P);
}

impl Command {
    /// Creates a command for a program, which is searched in `PATH` if its name has no slash.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// assert!(blitz_io::process::Command::new("true").status().await?.success());
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    pub fn new<S: AsRef<OsStr>>(program: S) -> Command {
        Self::from(StdCommand::new(program))
    }

    /// Returns the underlying standard library command.
    ///
    /// # Examples
    ///
    /// ```
    /// let command = blitz_io::process::Command::new("ls");
    /// assert_eq!(command.as_std().get_program(), "ls");
    /// ```
    pub fn as_std(&self) -> &StdCommand {
        &self.std
    }

    /// Returns the underlying standard library command, for changes.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut command = blitz_io::process::Command::new("ls");
    /// command.as_std_mut().arg("-l");
    /// assert_eq!(command.as_std().get_args().count(), 1);
    /// ```
    pub fn as_std_mut(&mut self) -> &mut StdCommand {
        &mut self.std
    }

    /// Converts this into the underlying standard library command. The `kill_on_drop` setting is
    /// lost.
    ///
    /// # Examples
    ///
    /// ```
    /// let command = blitz_io::process::Command::new("true").into_std();
    /// assert_eq!(command.get_program(), "true");
    /// ```
    pub fn into_std(self) -> StdCommand {
        self.std
    }

    /// Adds several arguments.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let output = blitz_io::process::Command::new("echo").args(["a", "b"]).output().await?;
    /// assert_eq!(output.stdout, b"a b\n");
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    pub fn args<I, S>(&mut self, args: I) -> &mut Command
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.std.args(args);
        self
    }

    /// Sets several variables of the child's environment.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut command = blitz_io::process::Command::new("sh");
    /// command.args(["-c", "echo $A$B"]).envs([("A", "1"), ("B", "2")]);
    /// assert_eq!(command.output().await?.stdout, b"12\n");
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    pub fn envs<I, K, V>(&mut self, vars: I) -> &mut Command
    where
        I: IntoIterator<Item = (K, V)>,
        K: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        self.std.envs(vars);
        self
    }

    /// Sets the child's standard input.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::process::Stdio;
    ///
    /// # blitz_io::run(async {
    /// let mut command = blitz_io::process::Command::new("cat");
    /// assert_eq!(command.stdin(Stdio::null()).output().await?.stdout, b"");
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    pub fn stdin<T: Into<Stdio>>(&mut self, cfg: T) -> &mut Command {
        self.std.stdin(cfg);
        self
    }

    /// Sets the child's standard output. [`output`](Self::output) overrides it.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::process::Stdio;
    ///
    /// # blitz_io::run(async {
    /// let mut command = blitz_io::process::Command::new("echo");
    /// assert!(command.stdout(Stdio::null()).status().await?.success());
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    pub fn stdout<T: Into<Stdio>>(&mut self, cfg: T) -> &mut Command {
        self.std.stdout(cfg);
        self
    }

    /// Sets the child's standard error. [`output`](Self::output) overrides it.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::process::Stdio;
    ///
    /// # blitz_io::run(async {
    /// let mut command = blitz_io::process::Command::new("sh");
    /// command.args(["-c", "echo oh >&2"]).stderr(Stdio::null());
    /// assert!(command.status().await?.success());
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    pub fn stderr<T: Into<Stdio>>(&mut self, cfg: T) -> &mut Command {
        self.std.stderr(cfg);
        self
    }

    /// Sets whether the child is killed when its [`Child`] is dropped before the child has exited;
    /// the default is `false`. The child is reaped either way.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let child = blitz_io::process::Command::new("sleep").arg("60").kill_on_drop(true).spawn()?;
    /// drop(child); // and nothing sleeps any more
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    pub fn kill_on_drop(&mut self, kill_on_drop: bool) -> &mut Command {
        self.kill_on_drop = kill_on_drop;
        self
    }

    /// Returns true if the child is killed when its [`Child`] is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut command = blitz_io::process::Command::new("true");
    /// assert!(!command.get_kill_on_drop());
    /// assert!(command.kill_on_drop(true).get_kill_on_drop());
    /// ```
    pub fn get_kill_on_drop(&self) -> bool {
        self.kill_on_drop
    }

    /// Starts the program as a child process.
    ///
    /// Its streams are inherited, unless they were set.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread, or the runtime's I/O is not enabled.
    ///
    /// # Errors
    ///
    /// Returns the system's error if the program cannot be started. Also returns an error if the
    /// child was started but cannot be connected to the runtime, for example because there are no
    /// descriptors left to register its pipes with: then the child keeps running, or is killed if
    /// [`kill_on_drop`](Self::kill_on_drop) was set.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut child = blitz_io::process::Command::new("true").spawn()?;
    /// assert!(child.wait().await?.success());
    ///
    /// let error = blitz_io::process::Command::new("no-such-program").spawn().unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    /// # #[cfg(unix)]
    /// assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    #[track_caller]
    pub fn spawn(&mut self) -> io::Result<Child> {
        self.start(StdCommand::spawn)
    }

    /// Starts the program by a function of the caller's, which can set up more than the standard
    /// library's builder supports.
    ///
    /// # Panics
    ///
    /// If [`spawn`](Self::spawn) would panic.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`spawn`](Self::spawn), and those of the function.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut command = blitz_io::process::Command::new("true");
    /// let mut child = command.spawn_with(|std| std.spawn())?;
    /// assert!(child.wait().await?.success());
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    #[track_caller]
    pub fn spawn_with(
        &mut self,
        with: impl FnOnce(&mut StdCommand) -> io::Result<StdChild>,
    ) -> io::Result<Child> {
        self.start(with)
    }

    #[track_caller]
    fn start(
        &mut self,
        with: impl FnOnce(&mut StdCommand) -> io::Result<StdChild>,
    ) -> io::Result<Child> {
        // Panics without a runtime, before there is a child.
        drop(crate::runtime::context::io_driver());
        // This thread must stay, because the child may have requested a signal for the end of the
        // thread that started it (`PR_SET_PDEATHSIG`).
        crate::engine::work::thread_context::blocking::set_stays();
        with(&mut self.std).and_then(|child| Child::new(child, self.kill_on_drop))
    }

    /// Starts the program, and returns a future for its exit status. The program is started by this
    /// call, not by the first poll. Streams that were piped are closed.
    ///
    /// # Panics
    ///
    /// If [`spawn`](Self::spawn) would panic.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`spawn`](Self::spawn), when the future is awaited.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// assert!(!blitz_io::process::Command::new("false").status().await?.success());
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    #[track_caller]
    pub fn status(&mut self) -> impl Future<Output = io::Result<ExitStatus>> + use<> {
        let child = self.spawn();
        async {
            let mut child = child?;
            // A child would never exit if it read from a pipe that nothing writes to.
            drop((child.stdin.take(), child.stdout.take(), child.stderr.take()));
            child.wait().await
        }
    }

    /// Starts the program, and returns a future for its collected output and exit status. The
    /// program is started by this call, not by the first poll.
    ///
    /// Standard output and standard error are piped, whatever was set before.
    ///
    /// # Panics
    ///
    /// If [`spawn`](Self::spawn) would panic.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`spawn`](Self::spawn), when the future is awaited, and errors of
    /// reading.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let output = blitz_io::process::Command::new("echo").arg("hi").output().await?;
    /// assert_eq!(output.stdout, b"hi\n");
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    #[track_caller]
    pub fn output(&mut self) -> impl Future<Output = io::Result<Output>> + use<> {
        self.std.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = self.spawn();
        async { child?.wait_with_output().await }
    }
}

#[cfg(unix)]
mod unix_ext {
    use std::{ffi::OsStr, os::unix::process::CommandExt};

    use super::Command;

    forward_methods! {
        /// Sets the user ID that the child runs as. This requires the necessary privileges.
        ///
        /// # Examples
        ///
        /// ```
        /// # blitz_io::run(async {
        /// let own = unsafe { libc::getuid() };
        /// assert!(blitz_io::process::Command::new("true").uid(own).status().await?.success());
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        uid(id: u32);

        /// Sets the group ID that the child runs as. This requires the necessary privileges.
        ///
        /// # Examples
        ///
        /// ```
        /// # blitz_io::run(async {
        /// let own = unsafe { libc::getgid() };
        /// assert!(blitz_io::process::Command::new("true").gid(own).status().await?.success());
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        gid(id: u32);

        /// Sets the child's argument 0, the name that it was called by.
        ///
        /// # Examples
        ///
        /// ```
        /// # blitz_io::run(async {
        /// let mut command = blitz_io::process::Command::new("sh");
        /// let output = command.arg0("me").args(["-c", "echo $0"]).output().await?;
        /// assert_eq!(output.stdout, b"me\n");
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        arg0<S: AsRef<OsStr>>(arg: S);

        /// Sets the process group that the child joins; 0 creates a new group for it. Signals from
        /// the terminal, such as that of Ctrl-C, go to the foreground group.
        ///
        /// # Examples
        ///
        /// ```
        /// # blitz_io::run(async {
        /// let mut command = blitz_io::process::Command::new("sleep");
        /// let mut child = command.arg("60").process_group(0).spawn()?;
        /// let pid = child.id().unwrap() as i32;
        /// assert_eq!(unsafe { libc::getpgid(pid) }, pid);
        /// child.kill().await?;
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        process_group(pgroup: i32);
    }
}

#[cfg(windows)]
mod windows_ext {
    use std::{ffi::OsStr, os::windows::process::CommandExt};

    use super::Command;

    forward_methods! {
        /// Sets the flags with which the process is created.
        ///
        /// # Examples
        ///
        /// ```no_run
        /// # blitz_io::run(async {
        /// const CREATE_NO_WINDOW: u32 = 0x0800_0000;
        /// let mut command = blitz_io::process::Command::new("cmd");
        /// command.creation_flags(CREATE_NO_WINDOW).status().await?;
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        creation_flags(flags: u32);

        /// Appends text to the command line unchanged, without quotes.
        ///
        /// # Examples
        ///
        /// ```no_run
        /// # blitz_io::run(async {
        /// let mut command = blitz_io::process::Command::new("cmd");
        /// command.raw_arg("/c echo hello").status().await?;
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        raw_arg<S: AsRef<OsStr>>(text_to_append_as_is: S);
    }
}

impl From<StdCommand> for Command {
    fn from(std: StdCommand) -> Command {
        Command { std, kill_on_drop: false }
    }
}
