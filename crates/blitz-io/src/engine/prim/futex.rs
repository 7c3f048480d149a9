//! A 32-bit word that threads can sleep on.
//!
//! # Protocol
//! `wait(expected)` sleeps only if the word still holds `expected` when the sleep begins, so
//! `wake_*` after a change of the word never misses a sleeper. `wait` may return early for no
//! reason, so callers must read the word again.
//!
//! Linux provides this as a system call; elsewhere, and in models, a lock around the comparison
//! gives the same guarantee.
//!
//! # Checked by
//! `a_changed_word_is_never_slept_on`; weakened as `futex_check`.

use std::time::Duration;

#[cfg(not(all(target_os = "linux", not(blitz_loom))))]
use super::Ordering::Relaxed;
use super::{AtomicU32, const_unless_loom};

/// A 32-bit word that threads can sleep on until they are woken.
#[derive(Debug)]
pub(crate) struct Futex {
    word: AtomicU32,
    #[cfg(not(all(target_os = "linux", not(blitz_loom))))]
    sleepers: fallback::Sleepers,
}

impl Futex {
    const_unless_loom! {
        pub(crate) fn new(value: u32) -> Self {
            Self {
                word: AtomicU32::new(value),
                #[cfg(not(all(target_os = "linux", not(blitz_loom))))]
                sleepers: fallback::Sleepers::new(),
            }
        }
    }

    /// Returns the word, for every operation that does not sleep.
    #[inline(always)]
    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.word
    }
}

/// A duration in the layout that the futex system call reads. The C library's `timespec` has, or
/// will have, 64-bit fields even where the kernel's words have 32 bits.
#[cfg(all(target_os = "linux", not(blitz_loom)))]
#[repr(C)]
struct KernelTimespec {
    seconds: libc::c_long,
    nanoseconds: libc::c_long,
}

#[cfg(all(target_os = "linux", not(blitz_loom)))]
impl Futex {
    /// Sleeps while the word holds `expected`, until woken or `timeout` is over.
    pub(crate) fn wait(&self, expected: u32, timeout: Option<Duration>) {
        let limit = timeout.map(|timeout| KernelTimespec {
            seconds: timeout.as_secs().try_into().unwrap_or(libc::c_long::MAX),
            // Less than 2^30, so it fits also where `c_long` has 32 bits.
            nanoseconds: timeout.subsec_nanos() as libc::c_long,
        });
        let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the word lives as long as `&self`; `limit` is null or points at
        // a local that outlives the call. FUTEX_WAIT reads both and writes neither.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.word.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                expected,
                limit,
            );
        }
    }

    /// Wakes one sleeper, if there is one.
    #[inline]
    pub(crate) fn wake_one(&self) {
        self.wake(1);
    }

    /// Wakes all sleepers.
    pub(crate) fn wake_all(&self) {
        self.wake(i32::MAX);
    }

    fn wake(&self, count: i32) {
        // SAFETY: FUTEX_WAKE uses the address as a key and touches no memory.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.word.as_ptr(),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                count,
            );
        }
    }
}

#[cfg(not(all(target_os = "linux", not(blitz_loom))))]
impl Futex {
    /// Sleeps while the word holds `expected`, until woken or `timeout` is over.
    pub(crate) fn wait(&self, expected: u32, timeout: Option<Duration>) {
        // Relaxed: the lock in `sleep_if` orders this against `wake_*`, and the
        // caller's own operations on the word order everything else.
        self.sleepers.sleep_if(|| self.word.load(Relaxed) == expected, timeout);
    }

    /// Wakes one sleeper, if there is one.
    pub(crate) fn wake_one(&self) {
        self.sleepers.wake_one();
    }

    /// Wakes all sleepers.
    pub(crate) fn wake_all(&self) {
        self.sleepers.wake_all();
    }
}

#[cfg(not(all(target_os = "linux", not(blitz_loom))))]
mod fallback {
    use std::time::Duration;

    use crate::engine::prim::{Condvar, Mutex, const_unless_loom, lock, weakened};

    #[derive(Debug)]
    pub(super) struct Sleepers {
        mutex: Mutex<()>,
        condvar: Condvar,
    }

    impl Sleepers {
        const_unless_loom! {
            pub(super) fn new() -> Self {
                Self { mutex: Mutex::new(()), condvar: Condvar::new() }
            }
        }

        pub(super) fn sleep_if(&self, still: impl FnOnce() -> bool, timeout: Option<Duration>) {
            let mutex = lock(&self.mutex);
            if !still() && !weakened!("futex_check") {
                return;
            }
            match timeout {
                None => drop(self.condvar.wait(mutex).unwrap()),
                Some(timeout) => drop(self.condvar.wait_timeout(mutex, timeout).unwrap()),
            }
        }

        pub(super) fn wake_one(&self) {
            // Once this thread has held the mutex, a sleeper is either asleep already or has yet
            // to compare, and then it sees the caller's new word.
            drop(lock(&self.mutex));
            self.condvar.notify_one();
        }

        pub(super) fn wake_all(&self) {
            drop(lock(&self.mutex));
            self.condvar.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Futex;
    use crate::engine::prim::{
        Arc,
        Ordering::{Acquire, Release},
        model, thread,
    };

    #[test]
    fn a_changed_word_is_never_slept_on() {
        model(|| {
            let futex = Arc::new(Futex::new(0));
            let sleeper = thread::spawn({
                let futex = futex.clone();
                move || {
                    // Acquire: pairs with the Release below.
                    while futex.word().load(Acquire) == 0 {
                        futex.wait(0, None);
                    }
                }
            });
            // Release: pairs with the Acquire above.
            futex.word().store(1, Release);
            futex.wake_one();
            sleeper.join().unwrap();
        });
    }

    #[cfg(not(blitz_loom))]
    #[test]
    fn a_timed_wait_ends_by_itself() {
        let futex = Futex::new(0);
        let start = std::time::Instant::now();
        let limit = std::time::Duration::from_millis(5);
        while start.elapsed() < limit {
            futex.wait(0, Some(limit.saturating_sub(start.elapsed())));
        }
        futex.wake_all();
    }
}
