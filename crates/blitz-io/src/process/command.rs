//! What is to be started: the standard library's builder, and what is ours.

use std::{
    ffi::OsStr,
    io,
    path::Path,
    process::{Child as StdChild, Command as StdCommand, ExitStatus, Output, Stdio},
};

use super::Child;
use crate::net::error;

/// A program to be started, with its arguments, environment and streams.
///
/// The defaults are those of `std::process::Command`: arguments none, environment and
/// working directory inherited, streams inherited by [`spawn`](Self::spawn) and
/// [`status`](Self::status), and outputs collected by [`output`](Self::output).
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

/// Builder methods that are the standard library's own.
macro_rules! passed_on {
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

passed_on! {
    /// Adds an argument. It is one argument, whatever is in it: no shell reads it.
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

    /// Takes a variable out of the child's environment.
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

    /// The child starts with no environment but what is set here.
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
    /// A command that starts a program, which is looked for in `PATH` if it has no slash.
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

    /// The standard library's, to be looked at.
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

    /// The standard library's, to be changed.
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

    /// The standard library's. Whether it is to be killed when dropped is forgotten.
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

    /// Sets where the child reads from.
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

    /// Sets where the child writes to. [`output`](Self::output) sets it by itself.
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

    /// Sets where the child writes errors to. [`output`](Self::output) sets it by itself.
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

    /// Whether the child is killed when its [`Child`] is dropped before its end; it is not,
    /// if nothing is said. It is waited for either way.
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

    /// Whether the child is killed when its [`Child`] is dropped.
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

    /// Starts the program.
    ///
    /// Its streams are inherited, unless something else was said.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread, or its I/O is not enabled.
    ///
    /// # Errors
    ///
    /// If the program cannot be started; the text names it. If there are no descriptors left
    /// to watch the child with: then it was started, and is killed.
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
    /// assert!(error.to_string().contains("no-such-program"));
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    #[track_caller]
    pub fn spawn(&mut self) -> io::Result<Child> {
        self.start(StdCommand::spawn)
    }

    /// Starts the program by a function of the caller's, for those who set up more than the
    /// standard library's builder has.
    ///
    /// # Panics
    ///
    /// As [`spawn`](Self::spawn).
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn), and those of the function.
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
        with: impl Fn(&mut StdCommand) -> io::Result<StdChild>,
    ) -> io::Result<Child> {
        self.start(with)
    }

    #[track_caller]
    fn start(
        &mut self,
        with: impl FnOnce(&mut StdCommand) -> io::Result<StdChild>,
    ) -> io::Result<Child> {
        // The panic comes before there is a child.
        drop(crate::runtime::context::io_driver());
        let started = with(&mut self.std).and_then(|child| Child::new(child, self.kill_on_drop));
        started.map_err(|cause| error::at("start", Shown(self.std.get_program()), cause))
    }

    /// Starts the program, and answers with how it ended. It is started by this call, not by
    /// the first poll. Its piped streams are closed.
    ///
    /// # Panics
    ///
    /// As [`spawn`](Self::spawn).
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn), when the future is awaited.
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
            // A child that reads what nobody writes would never end.
            drop((child.stdin.take(), child.stdout.take(), child.stderr.take()));
            child.wait().await
        }
    }

    /// Starts the program, collects what it writes, and answers with that and how it ended.
    /// It is started by this call, not by the first poll.
    ///
    /// Both outputs are piped, whatever was said before.
    ///
    /// # Panics
    ///
    /// As [`spawn`](Self::spawn).
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn), when the future is awaited, and errors of reading.
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
mod of_unix {
    use std::{ffi::OsStr, os::unix::process::CommandExt};

    use super::Command;

    passed_on! {
        /// The user whom the child runs as. It takes the rights to do so.
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

        /// The group whom the child runs as. It takes the rights to do so.
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

        /// What the child is told that its name is: its argument 0.
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

        /// The process group that the child joins; 0 is a new one, of its own. Signals from
        /// the terminal, as by Ctrl-C, go to the group in its foreground.
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
mod of_windows {
    use std::{ffi::OsStr, os::windows::process::CommandExt};

    use super::Command;

    passed_on! {
        /// The flags with which the process is created.
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

        /// Adds text to the command line as it is, with no quotes.
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

/// A program's name in a text.
struct Shown<'a>(&'a OsStr);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.0)
    }
}
