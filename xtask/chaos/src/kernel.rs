//! The state of this process as the system reports it.

use std::{fs, io, mem, path::Path, process::Command, process::Stdio};

/// Threads that belong to the process and stay, whatever runtimes there are.
const LASTING: [&str; 4] = ["blitz-monitor", "blitz-reports", "blitz-lines", "blitz-reaper"];

/// Returns the name of a thread.
fn comm(thread: &Path) -> String {
    fs::read_to_string(thread.join("comm")).unwrap_or_default().trim_end().to_owned()
}

fn threads() -> impl Iterator<Item = std::path::PathBuf> {
    let entries = fs::read_dir("/proc/self/task").into_iter().flatten();
    entries.flatten().map(|entry| entry.path())
}

/// Returns the names of the threads that runtimes or this program have started.
pub(crate) fn thread_names() -> Vec<String> {
    let mut names: Vec<_> = threads().map(|thread| comm(&thread)).collect();
    names.retain(|name| !LASTING.contains(&name.as_str()));
    names.sort();
    names
}

/// Returns what the open descriptors refer to, without the descriptor that lists them.
pub(crate) fn descriptors() -> Vec<String> {
    let own = format!("/proc/{}/fd", std::process::id());
    let entries = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let targets = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    let mut targets: Vec<_> = targets.map(|target| target.display().to_string()).collect();
    targets.retain(|target| *target != own);
    targets.sort();
    targets
}

/// Returns true if there is a child that was not waited for. A child that has ended is not reaped
/// here, because the runtime must do that.
pub(crate) fn has_children() -> bool {
    // SAFETY: the struct consists of integers, for which all zeros is a valid value.
    let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the pointer is to a local, which the call writes and which outlives it.
    let result = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, flags) };
    !(result < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD))
}

/// Raises the limit of descriptors to the maximum, because a hundred runtimes at once have several
/// each.
pub(crate) fn raise_descriptor_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointers are to a local that outlives the calls. If they are refused, the limit
    // stays.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// Sends a signal to this process.
pub(crate) fn raise(signal: libc::c_int) {
    // SAFETY: the call takes no pointers.
    unsafe { libc::kill(libc::getpid(), signal) };
}

/// Ends the process at once, without destructors of any thread.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: the call takes no pointers; no code of this process runs afterwards.
    unsafe { libc::_exit(code) }
}

/// Prints the state of every thread, the system call that it waits in, and its stack if gdb is
/// installed.
pub(crate) fn print_threads(folder: &Path) {
    for thread in threads() {
        let read = |name| fs::read_to_string(thread.join(name)).unwrap_or_default();
        let stat = read("stat");
        let state = stat.rsplit(") ").next().unwrap_or_default().get(..1).unwrap_or("?").to_owned();
        let number = thread.file_name().unwrap_or_default().display().to_string();
        eprintln!(
            "thread {number} {}: {state}, {} {}",
            comm(&thread),
            read("wchan"),
            read("syscall").trim()
        );
    }
    // SAFETY: the call takes no pointers. It lets a debugger of this user attach to the process.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::c_ulong::MAX, 0, 0, 0) };
    // Into a file, because a pipe that fills up while we are stopped would never be read.
    let path = folder.join("stacks");
    let Ok(file) = fs::File::create(&path) else { return };
    let pid = std::process::id().to_string();
    let ended = Command::new("gdb")
        .args(["-p", &pid, "-batch", "-nx", "-ex", "thread apply all bt 40"])
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(Stdio::null())
        .status();
    match ended {
        // Names of generic functions fill pages; their beginnings are enough.
        Ok(_) => {
            for line in fs::read_to_string(&path).unwrap_or_default().lines() {
                eprintln!("{}", line.chars().take(180).collect::<String>());
            }
        }
        Err(error) => eprintln!("no stacks: gdb cannot be started ({error})"),
    }
}
