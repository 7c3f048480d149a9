//! A lock that is released by a plain store: for critical sections of a few instructions that are
//! entered very often and seldom contended.
//!
//! A `Mutex` pays for two read-modify-writes, and the second only finds out whether a thread
//! sleeps. Here the thread that sleeps pays for that, with the heavy barrier.
//!
//! # Protocol
//! ```text
//! the thread that releases the lock         a thread that waits for it, after some spinning
//! U1 stores FREE                            W1 adds itself to `waiting`
//! U2 light()                                W2 heavy()
//! U3 reads `waiting`: 0, done               W3 reads the epoch
//! U4 advances the epoch, wakes the sleepers W4 tries the lock: has it, done
//!                                           W5 sleeps if the epoch is unchanged, goes to W3
//! ```
//! If U2 comes before W2, W4 sees U1. If after, U3 sees W1, and U4 changes the epoch. If it does
//! so before W3, W4 sees U1; if after, W5 does not sleep, or is woken. If the system refuses the
//! heavy barrier, W5 sleeps for a millisecond at most, because U3 may miss W1.
//!
//! Waiters of a [`StoreLock`] sleep at one of the [`ParkBucket`]s of the process, chosen by its
//! address. So a `StoreLock` adds no more than half a word to its value, and may be freed as soon
//! as it is released. Waiters of a bare [`RawStoreLock`] sleep at the bucket that its users pass.
//!
//! # Invariants
//! The thread that releases a lock must keep the bucket alive, because it reads the bucket
//! afterwards.
//!
//! # Rejected
//! A bucket for each lock: a bucket is three words where a lock is half a word, and a thread that
//! is woken for another lock of the bucket only tries its own once more.
//!
//! # Checked by
//! `a_store_lock_excludes_other_threads`, `a_thread_that_sleeps_for_a_store_lock_is_woken`,
//! `a_bucket_of_two_locks_wakes_both`; weakened as `store_lock_acquire`, `store_lock_release`,
//! `store_lock_heavy`, `store_lock_wakes`. A holder that panics: `a_panic_releases_a_store_lock`.

use std::time::Duration;
#[cfg(not(blitz_loom))]
use std::{
    ops::{Deref, DerefMut},
    panic::{RefUnwindSafe, UnwindSafe},
};

use super::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
    barrier, const_unless_loom,
    futex::Futex,
    spin_loop, weakened,
};
#[cfg(not(blitz_loom))]
use super::{UnsafeCell, pad::CachePadded};

/// Pauses between two checks of a held lock, and the number of checks before a thread sleeps. A
/// holder is done in a tenth of a microsecond, unless its thread has lost its processor. From 16
/// to 128 checks made no difference on two processors. With 63 pauses in growing steps many
/// threads slept, and a semaphore under contention of two workers was a fifth slower.
const PAUSES: u32 = 4;
const SPINS: u32 = 32;

/// Interval at which a waiter tries again by itself if the system refuses the heavy barrier, which
/// a sandbox may do that is entered later: U3 may then miss the waiter. Longer than any critical
/// section, so a waiter seldom tries in vain. Picked, not measured.
const RETRY_INTERVAL: Duration = Duration::from_millis(1);

const FREE: u32 = 0;
const HELD: u32 = 1;

/// The word of the lock, for users that keep the guarded value elsewhere.
pub(crate) struct RawStoreLock(AtomicU32);

impl RawStoreLock {
    const_unless_loom! {
        pub(crate) fn new() -> Self {
            Self(AtomicU32::new(FREE))
        }
    }

    /// Acquires the lock; the caller must release it with [`unlock`](Self::unlock).
    #[inline]
    pub(crate) fn lock(&self, bucket: &ParkBucket) {
        if !self.try_lock() {
            self.wait(bucket);
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        let order = if weakened!("store_lock_acquire") { Relaxed } else { Acquire };
        // Acquire: sees what the previous holder did. Pairs with the Release in `unlock`.
        self.0.compare_exchange(FREE, HELD, order, Relaxed).is_ok()
    }

    #[cold]
    fn wait(&self, bucket: &ParkBucket) {
        // In a model spinning only adds steps to explore, so there is none.
        let spins = if cfg!(blitz_loom) { 0 } else { SPINS };
        for _ in 0..spins {
            for _ in 0..PAUSES {
                spin_loop();
            }
            // Relaxed: a guess whether a try is worth it; `try_lock` orders.
            if self.0.load(Relaxed) == FREE && self.try_lock() {
                return;
            }
        }
        bucket.park_until(|| self.try_lock());
    }

    /// Releases the lock: steps U1 to U4. The caller must hold the lock, and pass the bucket at
    /// which other threads wait for it.
    #[inline]
    pub(crate) fn unlock(&self, bucket: &ParkBucket) {
        let order = if weakened!("store_lock_release") { Relaxed } else { Release };
        // Release: the next holder sees what we did. Pairs with the Acquire in `try_lock`.
        self.0.store(FREE, order);
        bucket.after_unlock();
    }
}

/// A bucket of threads that sleep while they wait for any of the locks that are released at this
/// bucket.
pub(crate) struct ParkBucket {
    /// Number of threads that sleep or are about to.
    waiting: AtomicU32,
    /// Changed whenever a lock is released while threads wait.
    epoch: Futex,
}

impl ParkBucket {
    const_unless_loom! {
        pub(crate) fn new() -> Self {
            Self { waiting: AtomicU32::new(0), epoch: Futex::new(0) }
        }
    }

    /// Wakes the waiters after a release, if there are any: steps U2 to U4.
    #[inline]
    fn after_unlock(&self) {
        barrier::light();
        // Relaxed: the light barrier above (U2) orders it after the store of U1.
        if self.waiting.load(Relaxed) != 0 {
            self.wake_parked();
        }
    }

    /// Wakes all waiters of the bucket: step U4.
    #[cold]
    fn wake_parked(&self) {
        if weakened!("store_lock_wakes") {
            return;
        }
        // Release: a thread that reads the new number finds the lock released. Pairs with the
        // Acquire in `park_until`.
        self.epoch.word().fetch_add(1, Release);
        self.epoch.wake_all();
    }

    /// Sleeps until `try_lock` succeeds: steps W1 to W5.
    fn park_until(&self, try_lock: impl Fn() -> bool) {
        // Relaxed: the heavy barrier below orders it before the tries.
        self.waiting.fetch_add(1, Relaxed);
        let has_passed = weakened!("store_lock_heavy") || barrier::try_heavy();
        let limit = (!has_passed).then_some(RETRY_INTERVAL);
        loop {
            // Acquire: sees the release that changed the epoch. Pairs with the Release in
            // `wake_parked`.
            let before = self.epoch.word().load(Acquire);
            if try_lock() {
                break;
            }
            self.epoch.wait(before, limit);
        }
        // Relaxed: a late decrement at most causes a needless wake-up.
        self.waiting.fetch_sub(1, Relaxed);
    }
}

/// Number of buckets. Enough that unrelated locks seldom share one: picked, not measured.
#[cfg(not(blitz_loom))]
const BUCKET_COUNT: usize = 16;

/// The buckets of all [`StoreLock`] values of the process.
#[cfg(not(blitz_loom))]
static BUCKETS: [CachePadded<ParkBucket>; BUCKET_COUNT] =
    [const { CachePadded::new(ParkBucket::new()) }; BUCKET_COUNT];

/// A value guarded by a lock, as in a mutex.
#[cfg(not(blitz_loom))]
pub(crate) struct StoreLock<T> {
    raw: RawStoreLock,
    value: UnsafeCell<T>,
}

// SAFETY: only the holder of the lock accesses the value, and `T: Send` allows that to be any
// thread in turn.
#[cfg(not(blitz_loom))]
unsafe impl<T: Send> Sync for StoreLock<T> {}

// No user code runs under a lock, so no panic can leave the guarded value half changed.
#[cfg(not(blitz_loom))]
impl<T> UnwindSafe for StoreLock<T> {}
#[cfg(not(blitz_loom))]
impl<T> RefUnwindSafe for StoreLock<T> {}

#[cfg(not(blitz_loom))]
impl<T> StoreLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { raw: RawStoreLock::new(), value: UnsafeCell::new(value) }
    }

    /// Returns the bucket at which threads wait for this lock.
    #[inline]
    fn bucket(&self) -> &'static ParkBucket {
        // Skips the bits in which addresses on one cache line differ.
        let at = (&raw const self.raw).addr() >> 6;
        &BUCKETS[at % BUCKET_COUNT]
    }

    /// Acquires the lock and returns a guard for the value.
    #[inline]
    pub(crate) fn lock(&self) -> StoreLockGuard<'_, T> {
        self.raw.lock(self.bucket());
        StoreLockGuard { lock: self }
    }

    /// Returns true if some thread holds the lock now.
    #[cfg(test)]
    pub(crate) fn is_locked(&self) -> bool {
        // Relaxed: a snapshot that orders nothing.
        self.raw.0.load(Relaxed) == HELD
    }
}

/// Guard for the value of a [`StoreLock`]; dropping it releases the lock.
#[cfg(not(blitz_loom))]
pub(crate) struct StoreLockGuard<'a, T> {
    lock: &'a StoreLock<T>,
}

#[cfg(not(blitz_loom))]
impl<T> Deref for StoreLockGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the lock, so no other thread has a reference, and `&self`
        // keeps the guard and thereby the value borrowed.
        unsafe { &*self.lock.value.with(|value| value) }
    }
}

#[cfg(not(blitz_loom))]
impl<T> DerefMut for StoreLockGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds the lock, so no other thread has a reference, and `&mut self`
        // makes this the only reference from the guard.
        unsafe { &mut *self.lock.value.with_mut(|value| value) }
    }
}

#[cfg(not(blitz_loom))]
impl<T> Drop for StoreLockGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Fetched before the release, because the lock may be freed right after it; the bucket is
        // static.
        let bucket = self.lock.bucket();
        self.lock.raw.unlock(bucket);
    }
}

/// A value behind an ordinary mutex in models, because no bucket outlives a model's run. Locks and
/// buckets have models of their own.
#[cfg(blitz_loom)]
pub(crate) struct StoreLock<T>(super::Mutex<T>);

#[cfg(blitz_loom)]
pub(crate) type StoreLockGuard<'a, T> = super::MutexGuard<'a, T>;

#[cfg(blitz_loom)]
impl<T> StoreLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(super::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> StoreLockGuard<'_, T> {
        super::lock(&self.0)
    }
}

#[cfg(test)]
mod models {
    use super::{ParkBucket, RawStoreLock};
    use crate::engine::prim::{Arc, UnsafeCell, model, model_deeper, thread};

    /// Values behind locks that share one bucket, as the locks of a process do.
    struct LockedValues<const N: usize> {
        bucket: ParkBucket,
        values: [(RawStoreLock, UnsafeCell<u32>); N],
    }

    // SAFETY: each value is accessed only by the thread that holds its lock.
    unsafe impl<const N: usize> Sync for LockedValues<N> {}

    type Shared<const N: usize> = Arc<LockedValues<N>>;

    fn shared<const N: usize>() -> Shared<N> {
        let values = std::array::from_fn(|_| (RawStoreLock::new(), UnsafeCell::new(0)));
        Arc::new(LockedValues { bucket: ParkBucket::new(), values })
    }

    fn add<const N: usize>(shared: &Shared<N>, at: usize) -> u32 {
        let (raw, value) = &shared.values[at];
        raw.lock(&shared.bucket);
        let now = value.with_mut(|value| {
            // SAFETY: this thread holds the lock of the value.
            let value = unsafe { &mut *value };
            *value += 1;
            *value
        });
        raw.unlock(&shared.bucket);
        now
    }

    fn two_add_to_one() {
        let shared = shared::<1>();
        let other = thread::spawn({
            let shared = shared.clone();
            move || add(&shared, 0)
        });
        add(&shared, 0);
        other.join().unwrap();
        assert_eq!(add(&shared, 0), 3);
    }

    #[test]
    fn a_store_lock_excludes_other_threads() {
        model(two_add_to_one);
    }

    /// Models do not spin, so a thread that finds the lock held sleeps. If it were not woken, the
    /// model would end in a deadlock.
    #[test]
    fn a_thread_that_sleeps_for_a_store_lock_is_woken() {
        model_deeper(two_add_to_one);
    }

    #[test]
    fn a_bucket_of_two_locks_wakes_both() {
        model(|| {
            let shared = shared::<2>();
            let others = [0, 1].map(|at| {
                let shared = shared.clone();
                thread::spawn(move || add(&shared, at))
            });
            add(&shared, 0);
            add(&shared, 1);
            others.into_iter().for_each(|other| assert!(other.join().unwrap() <= 2));
            assert_eq!((add(&shared, 0), add(&shared, 1)), (3, 3));
        });
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        sync::Arc,
    };

    use super::StoreLock;
    use crate::engine::prim::thread;

    #[test]
    fn a_panic_releases_a_store_lock() {
        let lock = StoreLock::new(1);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _held = lock.lock();
            panic!("panics on purpose");
        }));
        assert!(panicked.is_err());
        assert_eq!(*lock.lock(), 1);
    }

    /// The holder yields its processor, so that some threads wait long enough to sleep.
    #[test]
    fn under_load_nothing_is_counted_twice_and_no_thread_sleeps_for_ever() {
        const EACH: u32 = 2_000;
        let shared = Arc::new(StoreLock::new(0u32));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    for round in 0..EACH {
                        let mut count = shared.lock();
                        let before = *count;
                        if round % 16 == 0 {
                            thread::yield_now();
                        }
                        *count = before + 1;
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*shared.lock(), 4 * EACH);
    }
}
