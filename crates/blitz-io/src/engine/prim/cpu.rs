//! Processor time of one thread, readable from other threads.
//!
//! A thread that has been in one poll for long either computes or waits for something. Its CPU
//! clock shows which. If that clock has hardly moved, the system also reports whether the thread
//! is runnable but not scheduled. Systems without such a clock report nothing.

use std::time::Duration;

/// The CPU clock of one thread. It has no reading once the thread has ended, or where the system
/// has no such clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuClock {
    #[cfg(all(target_os = "linux", not(blitz_loom)))]
    id: Option<libc::clockid_t>,
    #[cfg(all(target_os = "linux", not(blitz_loom)))]
    thread: libc::c_long,
}

impl CpuClock {
    /// Returns the clock of the calling thread.
    pub(crate) fn of_this_thread() -> Self {
        Self {
            #[cfg(all(target_os = "linux", not(blitz_loom)))]
            id: {
                let mut id: libc::clockid_t = 0;
                // SAFETY: `pthread_self` is the calling thread, which is alive, and `id` is a
                // valid location for the clock's number.
                let refused =
                    unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut id) };
                (refused == 0).then_some(id)
            },
            // SAFETY: `gettid` takes no arguments and accesses no memory.
            #[cfg(all(target_os = "linux", not(blitz_loom)))]
            thread: unsafe { libc::syscall(libc::SYS_gettid) },
        }
    }

    /// Returns the thread ID that the system gave the thread, where it has one.
    #[allow(clippy::unnecessary_cast, reason = "it has 32 bits elsewhere")]
    pub(crate) fn thread(&self) -> Option<i64> {
        #[cfg(all(target_os = "linux", not(blitz_loom)))]
        return Some(self.thread as i64);
        #[cfg(not(all(target_os = "linux", not(blitz_loom))))]
        None
    }

    /// Returns true if the thread runs or waits for a processor, or `None` if that is unknown.
    /// Reads a file, so it must not be called at every check.
    pub(crate) fn is_runnable(&self) -> Option<bool> {
        #[cfg(all(target_os = "linux", not(blitz_loom)))]
        {
            let stat = std::fs::read(format!("/proc/self/task/{}/stat", self.thread)).ok()?;
            // The thread's name is in parentheses and may itself contain some, so search for the
            // last one.
            let name_ends = stat.iter().rposition(|byte| *byte == b')')?;
            Some(*stat.get(name_ends + 2)? == b'R')
        }
        #[cfg(not(all(target_os = "linux", not(blitz_loom))))]
        None
    }

    /// Returns the processor time that the thread has used so far, if that is known.
    pub(crate) fn read(&self) -> Option<Duration> {
        #[cfg(all(target_os = "linux", not(blitz_loom)))]
        {
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: `time` is a valid `timespec` for the kernel to write. The kernel refuses
            // the clock of a thread that has ended.
            if unsafe { libc::clock_gettime(self.id?, &raw mut time) } != 0 {
                return None;
            }
            let seconds = u64::try_from(time.tv_sec).ok()?;
            let nanoseconds = u32::try_from(time.tv_nsec).ok()?;
            Some(Duration::new(seconds, nanoseconds))
        }
        #[cfg(not(all(target_os = "linux", not(blitz_loom))))]
        None
    }
}

/// Processor time used by the calling thread, and how often it has waited for something.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuUsage {
    pub(crate) time: Duration,
    pub(crate) waits: std::ffi::c_long,
}

impl CpuUsage {
    /// Returns the usage of the calling thread, or `None` where the system does not report it.
    pub(crate) fn of_this_thread() -> Option<Self> {
        #[cfg(all(target_os = "linux", not(blitz_loom)))]
        {
            let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
            // SAFETY: `usage` has room for the `rusage` that the kernel writes.
            if unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) } != 0 {
                return None;
            }
            // SAFETY: the call above succeeded, so the kernel has written the whole `rusage`.
            let usage = unsafe { usage.assume_init() };
            let time = |time: libc::timeval| {
                let micros = u64::try_from(time.tv_usec).ok()?;
                let seconds = u64::try_from(time.tv_sec).ok()?;
                Some(Duration::from_secs(seconds) + Duration::from_micros(micros))
            };
            let time = time(usage.ru_utime)? + time(usage.ru_stime)?;
            Some(Self { time, waits: usage.ru_nvcsw })
        }
        #[cfg(not(all(target_os = "linux", not(blitz_loom))))]
        None
    }
}

#[cfg(all(test, target_os = "linux", not(blitz_loom)))]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use super::{CpuClock, CpuUsage};

    #[test]
    fn a_wait_is_counted() {
        let before = CpuUsage::of_this_thread().unwrap();
        thread::sleep(Duration::from_millis(1));
        let after = CpuUsage::of_this_thread().unwrap();
        assert!(after.waits > before.waits);
        assert!(after.time - before.time < Duration::from_millis(100));
    }
    use crate::engine::prim::thread;

    #[test]
    fn a_thread_that_waits_uses_nothing_and_one_that_computes_does() {
        let (sender, receiver) = mpsc::channel();
        let (go, gone) = mpsc::channel::<()>();
        let other = thread::spawn(move || {
            sender.send(CpuClock::of_this_thread()).unwrap();
            gone.recv().unwrap_err();
        });
        let (own, other_clock) = (CpuClock::of_this_thread(), receiver.recv().unwrap());
        while other_clock.is_runnable() != Some(false) {
            thread::yield_now();
        }
        let before = (own.read().unwrap(), other_clock.read().unwrap());
        while own.read().unwrap() < before.0 + Duration::from_millis(20) {}
        assert_eq!((own.is_runnable(), other_clock.is_runnable()), (Some(true), Some(false)));
        let waited = other_clock.read().unwrap() - before.1;
        assert!(waited < Duration::from_millis(10), "{waited:?}");
        drop(go);
        other.join().unwrap();
    }
}
