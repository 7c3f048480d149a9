//! The processor time of one thread, as another one reads it.
//!
//! Who has been in one poll for long either computes or waits for something. The clock of its
//! thread tells which; and where it has hardly moved, the system tells whether the thread would
//! like to run and is not let. On systems without such a clock nobody knows.

use std::time::Duration;

/// The clock of a thread. It stands still when the thread has ended, or cannot be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuClock {
    #[cfg(all(target_os = "linux", not(blitz_loom)))]
    id: Option<libc::clockid_t>,
    #[cfg(all(target_os = "linux", not(blitz_loom)))]
    thread: libc::c_long,
}

impl CpuClock {
    pub(crate) fn of_this_thread() -> Self {
        Self {
            #[cfg(all(target_os = "linux", not(blitz_loom)))]
            id: {
                let mut id: libc::clockid_t = 0;
                // SAFETY: 1. the calling thread is alive. 2. The number is written where we
                // have one.
                let refused =
                    unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut id) };
                (refused == 0).then_some(id)
            },
            // SAFETY: the call takes nothing and touches nothing.
            #[cfg(all(target_os = "linux", not(blitz_loom)))]
            thread: unsafe { libc::syscall(libc::SYS_gettid) },
        }
    }

    /// The system's number of the thread, where it has one.
    #[allow(clippy::unnecessary_cast, reason = "it has 32 bits elsewhere")]
    pub(crate) fn thread(&self) -> Option<i64> {
        #[cfg(all(target_os = "linux", not(blitz_loom)))]
        return Some(self.thread as i64);
        #[cfg(not(all(target_os = "linux", not(blitz_loom))))]
        None
    }

    /// Whether the thread runs, or waits for a processor, as far as that is known. Reads a file:
    /// not for every look.
    pub(crate) fn would_run(&self) -> Option<bool> {
        #[cfg(all(target_os = "linux", not(blitz_loom)))]
        {
            let stat = std::fs::read(format!("/proc/self/task/{}/stat", self.thread)).ok()?;
            // Its name is in brackets, and may have some in it.
            let name_ends = stat.iter().rposition(|byte| *byte == b')')?;
            Some(*stat.get(name_ends + 2)? == b'R')
        }
        #[cfg(not(all(target_os = "linux", not(blitz_loom))))]
        None
    }

    /// What the thread has used so far, if that is known.
    pub(crate) fn read(&self) -> Option<Duration> {
        #[cfg(all(target_os = "linux", not(blitz_loom)))]
        {
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: the kernel writes a `timespec` where we have one. A clock of a thread
            // that has ended is refused.
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

/// What the calling thread has used so far, and how often it has waited for something.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) time: Duration,
    pub(crate) waits: std::ffi::c_long,
}

impl Usage {
    /// `None` where the system does not tell.
    pub(crate) fn of_this_thread() -> Option<Self> {
        #[cfg(all(target_os = "linux", not(blitz_loom)))]
        {
            let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
            // SAFETY: the kernel writes a `rusage` where we have room for one.
            if unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) } != 0 {
                return None;
            }
            // SAFETY: it was written.
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

    use super::{CpuClock, Usage};

    #[test]
    fn who_waits_is_seen_to_have_waited() {
        let before = Usage::of_this_thread().unwrap();
        thread::sleep(Duration::from_millis(1));
        let after = Usage::of_this_thread().unwrap();
        assert!(after.waits > before.waits);
        assert!(after.time - before.time < Duration::from_millis(100));
    }
    use crate::engine::prim::thread;

    #[test]
    fn a_thread_that_waits_uses_nothing_and_one_that_computes_does() {
        let (tell, told) = mpsc::channel();
        let (go, gone) = mpsc::channel::<()>();
        let other = thread::spawn(move || {
            tell.send(CpuClock::of_this_thread()).unwrap();
            gone.recv().unwrap_err();
        });
        let (here, there) = (CpuClock::of_this_thread(), told.recv().unwrap());
        while there.would_run() != Some(false) {
            thread::yield_now();
        }
        let before = (here.read().unwrap(), there.read().unwrap());
        while here.read().unwrap() < before.0 + Duration::from_millis(20) {}
        assert_eq!((here.would_run(), there.would_run()), (Some(true), Some(false)));
        let waited = there.read().unwrap() - before.1;
        assert!(waited < Duration::from_millis(10), "{waited:?}");
        drop(go);
        other.join().unwrap();
    }
}
