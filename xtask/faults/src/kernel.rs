//! Linux interfaces that provoke faults, and measure what they cost.
//!
//! All of it affects this process alone. A setting of the whole machine, like
//! `/proc/sys/fs/epoll/max_user_watches`, is left as it is: system call filters cause the same
//! errors in this process and nowhere else.

use std::{
    fs, io, mem,
    os::fd::{AsFd, AsRawFd},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

fn checked(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the soft and the hard limit of descriptors.
pub(crate) fn descriptor_limits() -> io::Result<(u64, u64)> {
    let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a local, which the call writes and which outlives it.
    checked(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limits) })?;
    Ok((limits.rlim_cur, limits.rlim_max))
}

pub(crate) fn limit_descriptors(count: u64) -> io::Result<()> {
    let (_, most) = descriptor_limits()?;
    let limits = libc::rlimit { rlim_cur: count, rlim_max: most };
    // SAFETY: the pointer is to a local, which the call only reads and which outlives it.
    checked(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limits) })
}

/// Returns the number of open descriptors, without the one used for counting.
pub(crate) fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count().saturating_sub(1))
}

/// Returns the resident memory of this process, in bytes.
pub(crate) fn resident_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    // SAFETY: the call takes no pointers.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.unwrap_or(0) * u64::try_from(page).unwrap_or(4096)
}

/// Returns the processor time that this process has used.
pub(crate) fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local that outlives the call. The clock exists, so the call does
    // not fail.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

fn set_option<T>(socket: &impl AsFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let socket = socket.as_fd().as_raw_fd();
    let length = mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: the value is as long as we say and lives during the call.
    checked(unsafe {
        libc::setsockopt(socket, level, name, std::ptr::from_ref(value).cast(), length)
    })
}

/// Makes the socket's close send a reset (`SO_LINGER` of zero).
pub(crate) fn end_with_reset(socket: &impl AsFd) -> io::Result<()> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    set_option(socket, libc::SOL_SOCKET, libc::SO_LINGER, &linger)
}

/// Returns the number of segments that a connection has retransmitted.
pub(crate) fn sent_again(socket: &impl AsFd) -> io::Result<u32> {
    // SAFETY: the struct consists of integers, for which all zeros is a valid value.
    let mut info: libc::tcp_info = unsafe { mem::zeroed() };
    let mut length = mem::size_of_val(&info) as libc::socklen_t;
    // SAFETY: the call writes at most `length` bytes, the size of the local that the pointer is to.
    checked(unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    })?;
    Ok(info.tcpi_total_retrans)
}

/// Returns an instruction of a BPF filter.
const fn step(code: u32, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k: value }
}

/// Returns a comparison: continues if it holds, else skips `else_skip` instructions.
const fn check(code: u32, value: u32, else_skip: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: else_skip, k: value }
}

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const IF_AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// Drops a random share of the packets that arrive at a socket. The sockets that a listener accepts
/// inherit the filter.
pub(crate) fn lose_packets(socket: &impl AsFd, percent: u32) -> io::Result<()> {
    let random = (libc::SKF_AD_OFF + libc::SKF_AD_RANDOM).cast_unsigned();
    let lost_below = (u64::from(u32::MAX) * u64::from(percent) / 100) as u32;
    let mut steps = [
        step(LOAD, random),
        check(IF_AT_LEAST, lost_below, 1),
        step(RETURN, u32::MAX),
        step(RETURN, 0),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// Drops all packets that arrive at a socket.
pub(crate) fn lose_all_packets(socket: &impl AsFd) -> io::Result<()> {
    let mut steps = [step(RETURN, 0)];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// The system calls that a filter refuses.
pub(crate) struct Refusal {
    pub(crate) call: libc::c_long,
    /// If set, only calls with this second argument are refused.
    pub(crate) second: Option<u32>,
    pub(crate) errno: i32,
}

/// The threads that a filter applies to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// This thread and those that it will start.
    Thread,
    /// Every thread of the process.
    Process,
}

/// Refuses a system call from now on; this cannot be undone.
pub(crate) fn refuse(refusal: &Refusal, scope: Scope) -> io::Result<()> {
    // Offsets in `struct seccomp_data` of the number, and of the lower half of the second argument.
    const NUMBER: u32 = 0;
    const SECOND: u32 = if cfg!(target_endian = "little") { 24 } else { 28 };
    let refused = step(RETURN, libc::SECCOMP_RET_ERRNO | refusal.errno.cast_unsigned());
    let allowed = step(RETURN, libc::SECCOMP_RET_ALLOW);
    let call = refusal.call as u32;
    let mut steps = vec![step(LOAD, NUMBER)];
    if let Some(second) = refusal.second {
        steps.push(check(IF_EQUAL, call, 3));
        steps.push(step(LOAD, SECOND));
        steps.push(check(IF_EQUAL, second, 1));
    } else {
        steps.push(check(IF_EQUAL, call, 1));
    }
    steps.extend([refused, allowed]);
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the call takes no pointers.
    checked(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    let flags = if scope == Scope::Process { libc::SECCOMP_FILTER_FLAG_TSYNC } else { 0 };
    // SAFETY: the program and its steps live during the call, which copies them.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Calls `epoll_pwait2` with an invalid descriptor; returns the error.
pub(crate) fn probe_exact_wait() -> io::Error {
    let nothing = std::ptr::null::<u8>();
    // SAFETY: the call is refused before it reads pointers, which are null anyway.
    unsafe { libc::syscall(libc::SYS_epoll_pwait2, -1, nothing, 1, nothing, nothing, 0usize) };
    io::Error::last_os_error()
}

/// Makes a system call with invalid arguments; returns the error.
pub(crate) fn probe_call(call: libc::c_long) -> io::Error {
    let nothing = std::ptr::null::<u8>();
    // SAFETY: the call is refused before it reads pointers, which are null anyway.
    unsafe { libc::syscall(call, -1, nothing, 0, 0, nothing, 0usize) };
    io::Error::last_os_error()
}

/// The number of signals that were handled.
static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn handle(_: libc::c_int) {
    // Relaxed: a statistic that orders nothing.
    HANDLED.fetch_add(1, Relaxed);
}

pub(crate) fn signals_handled() -> u64 {
    // Relaxed: a statistic that orders nothing.
    HANDLED.load(Relaxed)
}

/// Counts these signals from now on; blocking system calls are interrupted by them.
pub(crate) fn count_signal(signal: libc::c_int) -> io::Result<()> {
    let handler: extern "C" fn(libc::c_int) = handle;
    // SAFETY: integers, a null handler and an empty set, for all of which zeros are valid. No
    // `SA_RESTART`, so interrupted calls fail with EINTR.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    // SAFETY: the handler only increments an atomic, which is async-signal-safe.
    checked(unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) })
}

/// Starts a timer that sends SIGALRM at this interval; stops it if zero.
pub(crate) fn alarm_every(interval: Duration) -> io::Result<()> {
    let time = libc::timeval {
        tv_sec: interval.as_secs().cast_signed(),
        tv_usec: libc::suseconds_t::from(interval.subsec_micros()),
    };
    let timer = libc::itimerval { it_interval: time, it_value: time };
    // SAFETY: the pointer is to a local, which the call only reads; the old value may be null.
    checked(unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) })
}

/// Sends a signal to each thread of this process but the caller's own.
pub(crate) fn signal_other_threads(signal: libc::c_int) {
    // SAFETY: the call takes no pointers.
    let own = unsafe { libc::gettid() };
    for entry in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let Some(thread) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok())
        else {
            continue;
        };
        if thread != own {
            // SAFETY: the call takes no pointers, and the process is our own. The error for a
            // thread that has ended is ignored.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal) };
        }
    }
}
