//! Child processes that do not outlive the driver, and what the system reports about them.

use std::io::{self, BufRead, BufReader, Lines};
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// The number of seconds after which the system kills a child that hangs.
const TIME_OUT: libc::c_uint = 120;

/// The time between two looks at the number of threads. Short for a load of a second; each look
/// takes some tens of microseconds.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Where and how a child runs.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place {
    /// The only core that it may use.
    pub(crate) core: Option<usize>,
    /// The open file by which it joins a control group.
    pub(crate) group: Option<RawFd>,
}

/// Makes the system kill the child when the driver ends or when the child hangs.
pub(crate) fn bound(command: &mut Command, place: Place) {
    // SAFETY: between fork and exec the closure only makes system calls, on values that were
    // copied into it.
    unsafe {
        command.pre_exec(move || {
            libc::alarm(TIME_OUT);
            die_with_parent(libc::SIGKILL)?;
            place.core.map_or(Ok(()), stay_on)?;
            place.group.map_or(Ok(()), join)
        });
    }
}

/// Makes the system send the calling process a signal when its parent ends.
pub(crate) fn die_with_parent(signal: libc::c_int) -> io::Result<()> {
    // SAFETY: the call takes no pointers.
    done(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) })
}

fn stay_on(core: usize) -> io::Result<()> {
    // SAFETY: a set of cores is plain bits, for which zero is a valid value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `core` comes from `allowed_cores`, so it is below the size of the set.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: `set` is valid and of the size given; 0 is the calling thread.
    done(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) })
}

/// Joins a control group: 0 in its list of processes is the writing one.
fn join(group: RawFd) -> io::Result<()> {
    // SAFETY: the text is valid for the length given; the driver keeps the file open.
    match unsafe { libc::write(group, c"0".as_ptr().cast(), 1) } {
        1 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A running child, which is killed when dropped.
pub(crate) struct Process {
    child: Child,
    /// Sent when it is stopped: [`libc::SIGKILL`], unless it has children of its own.
    end: libc::c_int,
}

impl Process {
    pub(crate) fn start(command: &mut Command, end: libc::c_int) -> Result<Process, String> {
        let child = command.stdin(Stdio::null()).spawn();
        let child = child.map_err(|error| {
            format!("cannot start {}: {error}", command.get_program().to_string_lossy())
        })?;
        Ok(Process { child, end })
    }

    /// Returns true if it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The number of a child that was waited for may be another process's by now.
        if !self.has_ended() {
            // SAFETY: the call takes no pointers.
            unsafe { libc::kill(self.child.id() as libc::pid_t, self.end) };
        }
        let _ = self.child.wait();
    }
}

/// A child whose output is read line by line.
pub(crate) struct Talker {
    process: Process,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Talker {
    pub(crate) fn start(command: &mut Command) -> Result<Talker, String> {
        let mut process = Process::start(command.stdout(Stdio::piped()), libc::SIGKILL)?;
        let output = process.child.stdout.take().ok_or("it has no output")?;
        Ok(Talker { process, lines: BufReader::new(output).lines() })
    }

    /// Reads the next line.
    pub(crate) fn line(&mut self) -> Result<String, String> {
        let line = self.lines.next().ok_or("the program ended early; its errors are above")?;
        line.map_err(|error| error.to_string())
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.child.id()
    }
}

/// The use of a process from a start on.
pub(crate) struct Watch {
    process: u32,
    cpu_ns: u64,
    /// Dropped to end the thread that looks.
    _end: Sender<()>,
    threads: JoinHandle<usize>,
}

/// The resources that a process used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub(crate) cpu_ns: u64,
    /// The largest number of threads that was seen.
    pub(crate) threads: usize,
    /// The largest resident memory since the process started.
    pub(crate) resident_kib: usize,
}

impl Watch {
    pub(crate) fn start(process: u32) -> Result<Watch, String> {
        let (_end, ended) = mpsc::channel();
        let threads = std::thread::spawn(move || {
            let mut most = 0;
            loop {
                most = most.max(status(process, "Threads:").unwrap_or(0));
                if ended.recv_timeout(CHECK_INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return most;
                }
            }
        });
        Ok(Watch { process, cpu_ns: cpu_ns(process)?, _end, threads })
    }

    pub(crate) fn stop(self) -> Result<Used, String> {
        let Watch { process, cpu_ns: before, _end, threads } = self;
        let cpu_ns = cpu_ns(process)? - before;
        let resident_kib = status(process, "VmHWM:").ok_or("the process has no memory")?;
        drop(_end);
        let threads = threads.join().map_err(|_| "the thread that looks at threads panicked")?;
        Ok(Used { cpu_ns, threads, resident_kib })
    }
}

/// Returns the user and system time of all threads of a process, those that have ended included.
fn cpu_ns(process: u32) -> Result<u64, String> {
    let gone = || format!("process {process} has no clock: it ended early");
    let mut clock = 0;
    // SAFETY: `clock` is a local that the call writes and that outlives it.
    let failed = unsafe { libc::clock_getcpuclockid(process as libc::pid_t, &mut clock) };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a local that the call writes and that outlives it.
    if failed != 0 || unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return Err(gone());
    }
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Returns a number of a process's status, by the name with its colon.
fn status(process: u32, name: &str) -> Option<usize> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{Place, Talker, Watch, bound};

    #[test]
    fn a_child_is_watched_and_its_lines_are_read() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo port 7; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done; exec sleep 60"]);
        bound(&mut command, Place::default());
        let mut child = Talker::start(&mut command).expect("there is a shell");
        assert_eq!(child.line(), Ok("port 7".into()));
        let watch = Watch::start(child.id()).expect("it runs");
        assert_eq!(child.line(), Ok("done".into()));
        let used = watch.stop().expect("it still runs");
        assert!(used.cpu_ns > 0 && used.threads == 1 && used.resident_kib > 0, "{used:?}");
    }

    #[test]
    fn a_child_that_ended_is_reported() {
        let mut child = Talker::start(&mut Command::new("true")).expect("it starts");
        assert!(child.line().is_err());
    }
}
