//! Records which tasks hold a lock and which wait for it where, to help find a deadlock.
//!
//! In debug builds every lock writes into one registry: which task holds it, taken at which line of
//! the source, and which task waits for it at which line. Dumps read it. In release builds the same
//! types are empty and the calls compile to nothing.
//!
//! # Invariants
//! - The registry never changes what a lock does: it is written after a lock was taken and before
//!   it is released, and no code decides anything by it.
//! - The registry holds numbers and source locations, no pointers, so nothing in it can dangle. A
//!   lock's number is assigned at its first use and never given to another lock, so a lock at the
//!   address of an earlier one has none of its entries.
//! - No user code runs under the registry's locks.
//!
//! # Rejected
//! - The address of the lock as its name: a lock may move while a leaked guard's entry remains, and
//!   another lock may come to lie at its old address.
//! - The holders inside the lock: a dump would have to follow a pointer to a lock that may be gone.
//! - Doing the same in release builds: an uncontended lock is two exchanges, and the registry costs
//!   more than that.
//!
//! # Checked by
//! `holders_and_waiters_are_listed`, `a_lock_that_ends_leaves_no_entries`,
//! `a_future_that_waits_in_two_tasks_is_listed_under_the_last`.

use std::{fmt, panic::Location};

use crate::engine::work::task::cell::Id;

#[cfg(all(debug_assertions, not(blitz_loom)))]
mod enabled;
#[cfg(all(debug_assertions, not(blitz_loom)))]
pub(crate) use self::enabled::{CallSite, HolderEntry, LockId, WaitEntry, awaited_by};

#[cfg(not(all(debug_assertions, not(blitz_loom))))]
mod disabled;
#[cfg(not(all(debug_assertions, not(blitz_loom))))]
pub(crate) use self::disabled::{CallSite, HolderEntry, LockId, WaitEntry, awaited_by};

/// The task that took a lock, and the source location of the request.
///
/// Returned by [`Mutex::holder`](crate::sync::Mutex::holder) and
/// [`RwLock::holders`](crate::sync::RwLock::holders) in debug builds.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::Mutex;
///
/// # blitz_io::run(async {
/// let mutex = Mutex::new(1);
/// let guard = mutex.lock().await;
/// if let Some(holder) = mutex.holder() {
///     println!("{holder}");
/// }
/// drop(guard);
/// assert!(mutex.holder().is_none());
/// # });
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    task: Option<Id>,
    location: &'static Location<'static>,
}

impl Holder {
    /// Returns the task that took the lock, or `None` if it was taken outside of tasks.
    ///
    /// The result stays the same after the guard was sent to another task.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{sync::Mutex, task};
    ///
    /// # blitz_io::run(async {
    /// blitz_io::spawn(async {
    ///     let mutex = Mutex::new(1);
    ///     let _guard = mutex.lock().await;
    ///     if let Some(holder) = mutex.holder() {
    ///         assert_eq!(holder.task(), Some(task::id()));
    ///     }
    /// })
    /// .await
    /// .unwrap();
    /// # });
    /// ```
    #[cfg(feature = "rt")]
    pub fn task(&self) -> Option<Id> {
        self.task
    }

    /// Returns the source location at which the lock was requested.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Mutex;
    ///
    /// # blitz_io::run(async {
    /// let mutex = Mutex::new(1);
    /// let _guard = mutex.lock().await;
    /// if let Some(holder) = mutex.holder() {
    ///     assert_eq!(holder.location().file(), file!());
    /// }
    /// # });
    /// ```
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }
}

impl fmt::Debug for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, location } = self;
        f.debug_struct("Holder").field("task", task).field("location", location).finish()
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.task {
            Some(task) => write!(f, "task {task}, at {}", self.location),
            None => write!(f, "code outside of tasks, at {}", self.location),
        }
    }
}

/// A lock that a task waits for: where the task requested it, and its current holders.
#[derive(Debug, Clone)]
#[cfg_attr(not(feature = "rt"), allow(dead_code, reason = "dumps read it"))]
pub(crate) struct AwaitedLock {
    pub(crate) location: &'static Location<'static>,
    pub(crate) holders: Vec<Holder>,
}
