//! The state that the handles of a watch channel share: the value, its version, and the counts.

use std::{fmt, marker::PhantomData, ops::Deref};

use super::{receiver_count::ReceiverCount, wait_queues::WaitQueues};
use crate::engine::{
    prim::{AtomicUsize, RwLock, RwLockReadGuard, read},
    work::thread_context::LockHeldGuard,
};

/// Marker that makes the handles not `UnwindSafe`, as Tokio's are not.
///
/// A user's closure runs under the lock, and the lock does not show in which state a panic left
/// the value.
type NotUnwindSafe = PhantomData<Box<dyn Send + Sync>>;

/// The shared state of a watch channel.
pub(super) struct Shared<T> {
    pub(super) value: RwLock<T>,
    /// The version and the waiting receivers; a version is added while the value is locked for
    /// writing.
    pub(super) wait_queues: WaitQueues,
    pub(super) receiver_count: ReceiverCount,
    pub(super) senders: AtomicUsize,
    _not_unwind_safe: NotUnwindSafe,
}

impl<T> Shared<T> {
    /// Creates the state with one sender, and the given numbers of receivers and earlier
    /// versions.
    pub(super) fn new(value: T, receivers: usize, versions: u64) -> Self {
        Self {
            value: RwLock::new(value),
            wait_queues: WaitQueues::starting_at(versions),
            receiver_count: ReceiverCount::new(receivers),
            senders: AtomicUsize::new(1),
            _not_unwind_safe: PhantomData,
        }
    }

    /// Writes the fields for `Debug`, with the value if no sender has it locked now.
    pub(super) fn describe(&self, f: &mut fmt::DebugStruct<'_, '_>) -> fmt::Result
    where
        T: fmt::Debug,
    {
        // A value that a panic left behind is as good as any other.
        #[cfg(not(blitz_loom))]
        let value = match self.value.try_read() {
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            free => free.ok(),
        };
        #[cfg(blitz_loom)]
        let value = self.value.try_read().ok();
        // The value's `Debug` runs user code under the lock.
        let _holding = LockHeldGuard::lock();
        match &value {
            Some(value) => f.field("value", &&**value),
            None => f.field("value", &format_args!("<locked>")),
        };
        f.field("is_closed", &self.wait_queues.state().is_closed())
            .field("receivers", &self.receiver_count.count())
            .finish_non_exhaustive()
    }
}

impl<T> AsRef<WaitQueues> for Shared<T> {
    #[inline]
    fn as_ref(&self) -> &WaitQueues {
        &self.wait_queues
    }
}

impl<T> AsRef<ReceiverCount> for Shared<T> {
    #[inline]
    fn as_ref(&self) -> &ReceiverCount {
        &self.receiver_count
    }
}

/// A reference to the value of a watch channel, under a read lock.
///
/// Senders are blocked while it lives, and a fiber that holds one cannot wait.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::watch;
///
/// let (sender, receiver) = watch::channel(vec![1, 2, 3]);
/// let value = receiver.borrow();
/// assert_eq!(value.len(), 3);
/// drop(value); // or the next line would wait for ever
/// sender.send(vec![]).unwrap();
/// ```
pub struct Ref<'a, T> {
    value: RwLockReadGuard<'a, T>,
    _holding: LockHeldGuard,
    has_changed: bool,
    _not_unwind_safe: NotUnwindSafe,
}

impl<'a, T> Ref<'a, T> {
    /// Locks the value for reading; `changed` returns whether its version is new for the
    /// receiver.
    ///
    /// `changed` is called under the lock, where no version can be added.
    #[inline]
    pub(super) fn new(shared: &'a Shared<T>, changed: impl FnOnce(&WaitQueues) -> bool) -> Self {
        let value = read(&shared.value);
        let has_changed = changed(&shared.wait_queues);
        let _holding = LockHeldGuard::lock();
        Self { value, _holding, has_changed, _not_unwind_safe: PhantomData }
    }

    /// Returns `true` if the receiver that was borrowed from had not seen this version before.
    ///
    /// Always `false` for a reference that was borrowed from a sender.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::watch;
    ///
    /// let (sender, mut receiver) = watch::channel(1);
    /// assert!(!receiver.borrow().has_changed());
    /// sender.send(1).unwrap();
    /// assert!(receiver.borrow().has_changed());
    /// assert!(receiver.borrow_and_update().has_changed());
    /// assert!(!receiver.borrow().has_changed());
    /// ```
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ref")
            .field("value", &**self)
            .field("has_changed", &self.has_changed)
            .finish()
    }
}
