//! Finds the system call that a thread waits in while it is blocked inside of a poll.
//!
//! Linux reports for each thread which system call it is in, and with which arguments. The reporter
//! thread reads this once for a report, and only while the stuck thread is still in the reported
//! poll, because what it waits for afterwards has nothing to do with the report. The monitor does
//! not read it.
//!
//! A lock of the standard library, a channel and a parked thread all wait at a word of memory (a
//! futex), and its address identifies the lock: two threads that wait for the same lock have the
//! same address, and a deadlock has two addresses.
//!
//! Where the system does not report the call (other systems, sandboxes, a process that may not be
//! traced), it is not known.

use std::fmt;

/// A system call that a thread waits in, returned by [`StallReport::waits_in`].
///
/// [`StallReport::waits_in`]: crate::runtime::StallReport::waits_in
///
/// # Examples
///
/// ```
/// use std::{sync::mpsc, thread, time::Duration};
/// use blitz_io::runtime::Builder;
///
/// let (sender, reports) = mpsc::channel();
/// let rt = Builder::new_multi_thread()
///     .worker_threads(1)
///     .on_task_stall(move |stall| drop(sender.send(stall.clone())))
///     .build()?;
/// let sleepy = rt.spawn(async { thread::sleep(Duration::from_millis(500)) });
/// let stall = reports.recv().unwrap();
/// // Not known on other systems and in some sandboxes.
/// if let Some(call) = stall.waits_in() {
///     assert_eq!(call.name(), Some("clock_nanosleep"));
///     assert_eq!(call.to_string(), "sleeps");
///     assert!(call.lock().is_none() && call.descriptor().is_none());
/// }
/// rt.block_on(sleepy).unwrap();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemCall {
    number: i64,
    known: Option<KnownCall>,
    /// The argument that names the lock or the descriptor, if the call has one.
    of: u64,
}

/// A system call that is in the table below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct KnownCall {
    name: &'static str,
    does: CallEffect,
}

/// Description of what a system call does, for the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "other systems do not report it")]
enum CallEffect {
    /// Waits at an address.
    Lock,
    /// Does something with a descriptor, which is printed after these words.
    With(&'static str),
    /// Does what these words say.
    Only(&'static str),
}

impl SystemCall {
    /// Returns the system's number of the call, which differs between architectures.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::Builder;
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .on_task_stall(move |stall| {
    ///         drop(sender.send(stall.waits_in().map(|call| call.number())));
    ///     })
    ///     .build()?;
    /// // The task stays in one poll until its stall has been reported.
    /// let task = rt.spawn(async move { reports.recv().unwrap() });
    /// // Not known on other systems and in some sandboxes.
    /// assert!(rt.block_on(task)?.is_none_or(|number| number >= 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn number(&self) -> i64 {
        self.number
    }

    /// Returns the name of the call, as in `futex` or `read`, if it is one in which threads usually
    /// wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::Builder;
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .on_task_stall(move |stall| {
    ///         drop(sender.send(stall.waits_in().and_then(|call| call.name())));
    ///     })
    ///     .build()?;
    /// // The task stays in one poll until its stall has been reported.
    /// let task = rt.spawn(async move { reports.recv().unwrap() });
    /// // Not known on other systems and in some sandboxes.
    /// assert!(rt.block_on(task)?.is_none_or(|name| name == "futex"), "as channels wait");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name(&self) -> Option<&'static str> {
        self.known.map(|known| known.name)
    }

    /// Returns the address of the word that the thread waits at, if the call is a `futex`: that of
    /// a lock, of a condition variable, or of a parked thread. Tasks that wait for the same lock
    /// have the same address.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::{Arc, Mutex, mpsc};
    /// use blitz_io::runtime::Builder;
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .worker_threads(1)
    ///     .on_task_stall(move |stall| drop(sender.send(stall.clone())))
    ///     .build()?;
    /// let lock = Arc::new(Mutex::new(0));
    /// let held = lock.lock().unwrap();
    /// let waits = rt.spawn({
    ///     let lock = lock.clone();
    ///     async move { drop(lock.lock().unwrap()) }
    /// });
    /// let stall = reports.recv().unwrap();
    /// if let Some(address) = stall.waits_in().and_then(|call| call.lock()) {
    ///     let of_lock = Arc::as_ptr(&lock) as usize;
    ///     assert!((of_lock..of_lock + size_of::<Mutex<i32>>()).contains(&address));
    /// }
    /// drop(held);
    /// rt.block_on(waits).unwrap();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn lock(&self) -> Option<usize> {
        matches!(self.known?.does, CallEffect::Lock).then_some(self.of as usize)
    }

    /// Returns the descriptor that the call waits for, for example that of a `read`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use std::{io::Read, os::fd::AsRawFd, sync::mpsc};
    /// use blitz_io::runtime::Builder;
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .on_task_stall(move |stall| {
    ///         drop(sender.send(stall.waits_in().and_then(|call| call.descriptor())));
    ///     })
    ///     .build()?;
    /// let (mut reader, writer) = std::io::pipe()?;
    /// let descriptor = reader.as_raw_fd();
    /// let reads = rt.spawn(async move { reader.read(&mut [0]) });
    /// // Not known on other systems and in some sandboxes.
    /// assert!(reports.recv()?.is_none_or(|reported| reported == descriptor));
    /// drop(writer);
    /// assert_eq!(rt.block_on(reads)??, 0);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn descriptor(&self) -> Option<i32> {
        // The kernel uses the lower 32 bits of the argument and ignores the rest.
        matches!(self.known?.does, CallEffect::With(_)).then_some(self.of as i32)
    }
}

/// Prints what the thread does: `waits for a lock or a wake-up at 0x7f5c08000b70`, `sleeps`, `reads
/// descriptor 7`.
impl fmt::Display for SystemCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.known.map(|known| known.does) {
            Some(CallEffect::Lock) => write!(f, "waits for a lock or a wake-up at {:#x}", self.of),
            Some(CallEffect::With(does)) => write!(f, "{does} descriptor {}", self.of as i32),
            Some(CallEffect::Only(does)) => f.write_str(does),
            None => write!(f, "waits in system call {}", self.number),
        }
    }
}

#[cfg(all(target_os = "linux", not(blitz_loom)))]
mod table {
    //! Table of the system calls in which threads usually wait.

    use super::{CallEffect, KnownCall};

    type Row = (libc::c_long, &'static str, CallEffect);

    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    const ROWS: &[Row] = {
        use CallEffect::{Lock, Only, With};

        const READS: CallEffect = With("reads");
        const WRITES: CallEffect = With("writes to");
        const EVENTS: CallEffect = Only("waits for events of descriptors");
        const CHILD: CallEffect = Only("waits for a child process");
        &[
            (libc::SYS_futex, "futex", Lock),
            (libc::SYS_nanosleep, "nanosleep", Only("sleeps")),
            (libc::SYS_clock_nanosleep, "clock_nanosleep", Only("sleeps")),
            (libc::SYS_read, "read", READS),
            (libc::SYS_readv, "readv", READS),
            (libc::SYS_pread64, "pread64", READS),
            (libc::SYS_preadv, "preadv", READS),
            (libc::SYS_recvfrom, "recvfrom", READS),
            (libc::SYS_recvmsg, "recvmsg", READS),
            (libc::SYS_recvmmsg, "recvmmsg", READS),
            (libc::SYS_getdents64, "getdents64", READS),
            (libc::SYS_write, "write", WRITES),
            (libc::SYS_writev, "writev", WRITES),
            (libc::SYS_pwrite64, "pwrite64", WRITES),
            (libc::SYS_pwritev, "pwritev", WRITES),
            (libc::SYS_sendto, "sendto", WRITES),
            (libc::SYS_sendmsg, "sendmsg", WRITES),
            (libc::SYS_sendmmsg, "sendmmsg", WRITES),
            (libc::SYS_sendfile, "sendfile", WRITES),
            (libc::SYS_fsync, "fsync", With("waits for the disk of")),
            (libc::SYS_fdatasync, "fdatasync", With("waits for the disk of")),
            (libc::SYS_connect, "connect", With("connects")),
            (libc::SYS_accept, "accept", With("accepts connections of")),
            (libc::SYS_accept4, "accept4", With("accepts connections of")),
            (libc::SYS_flock, "flock", With("waits for a lock of")),
            (libc::SYS_fcntl, "fcntl", With("waits for a lock of")),
            (libc::SYS_ioctl, "ioctl", With("waits for the device of")),
            (libc::SYS_close, "close", With("closes")),
            (libc::SYS_epoll_pwait, "epoll_pwait", With("waits for events of")),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_epoll_wait, "epoll_wait", With("waits for events of")),
            (libc::SYS_io_uring_enter, "io_uring_enter", With("waits for operations of")),
            (libc::SYS_ppoll, "ppoll", EVENTS),
            (libc::SYS_pselect6, "pselect6", EVENTS),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_poll, "poll", EVENTS),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_select, "select", EVENTS),
            (libc::SYS_wait4, "wait4", CHILD),
            (libc::SYS_waitid, "waitid", CHILD),
            (libc::SYS_openat, "openat", Only("opens a file")),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_open, "open", Only("opens a file")),
            (libc::SYS_semop, "semop", Only("waits for a semaphore")),
            (libc::SYS_semtimedop, "semtimedop", Only("waits for a semaphore")),
            (libc::SYS_rt_sigtimedwait, "rt_sigtimedwait", Only("waits for a signal")),
            (libc::SYS_rt_sigsuspend, "rt_sigsuspend", Only("waits for a signal")),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_pause, "pause", Only("waits for a signal")),
            // After the process was stopped: the kernel resumes a sleep, or a wait with a time-out.
            (libc::SYS_restart_syscall, "restart_syscall", Only("waits for a while")),
        ]
    };

    /// On other architectures only `futex` has a name; all other calls are printed by number.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    const ROWS: &[Row] = &[(libc::SYS_futex, "futex", CallEffect::Lock)];

    #[allow(clippy::unnecessary_cast, reason = "it has 32 bits elsewhere")]
    pub(super) fn find(number: i64) -> Option<KnownCall> {
        let (_, name, does) = ROWS.iter().find(|(known, ..)| *known as i64 == number)?;
        Some(KnownCall { name, does: *does })
    }
}

#[cfg(all(target_os = "linux", not(blitz_loom)))]
impl SystemCall {
    /// Returns the call that a thread of this process is in; `thread` is the system's ID of the
    /// thread.
    pub(super) fn of_thread(thread: i64) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/syscall")).ok()?;
        Self::parse(&text)
    }

    /// Parses the kernel's line: the call's number and six arguments; or the word `running`; or a
    /// number less than zero, outside of a call.
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let number: i64 = words.next()?.parse().ok().filter(|number| *number >= 0)?;
        let of = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
        Some(Self { number, known: table::find(number), of })
    }
}

#[cfg(not(all(target_os = "linux", not(blitz_loom))))]
impl SystemCall {
    pub(super) fn of_thread(_: i64) -> Option<Self> {
        None
    }
}

#[cfg(all(test, target_os = "linux", not(blitz_loom)))]
mod tests {
    use super::SystemCall;

    #[test]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn the_line_of_the_kernel_is_parsed() {
        let futex =
            format!("{} 0x7f5c08000b70 0x80 0x2 0x0 0x0 0x1 0x7ffc 0x7f72\n", libc::SYS_futex);
        let call = SystemCall::parse(&futex).unwrap();
        assert_eq!((call.name(), call.lock()), (Some("futex"), Some(0x7f5c_0800_0b70)));
        assert_eq!(call.to_string(), "waits for a lock or a wake-up at 0x7f5c08000b70");
        let read = format!("{} 0x7 0x7f72 0x20000 0x0 0x0 0x0 0x7ffc 0x7f72\n", libc::SYS_read);
        let call = SystemCall::parse(&read).unwrap();
        assert_eq!((call.name(), call.descriptor(), call.lock()), (Some("read"), Some(7), None));
        assert_eq!(call.to_string(), "reads descriptor 7");
        let call = SystemCall::parse("123456 0x7 0x0 0x0 0x0 0x0 0x0 0x7ffc 0x7f72").unwrap();
        assert_eq!((call.name(), call.descriptor(), call.number()), (None, None, 123_456));
        assert_eq!(call.to_string(), "waits in system call 123456");
        for nothing in ["running\n", "-1 0x7ffc 0x7f72\n", "", "7", "7 7"] {
            assert_eq!(SystemCall::parse(nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn a_thread_that_is_not_there_waits_in_nothing() {
        assert_eq!(SystemCall::of_thread(i64::MAX), None);
    }
}
