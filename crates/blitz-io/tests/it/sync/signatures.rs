//! Checks that every function and method of `tokio::sync` exists in `sync` with Tokio's signature.
//!
//! There is nothing to run: a function that is missing, or that has other arguments or another
//! result, does not compile. A function that is `async` in Tokio may be a plain function here; only
//! its arguments and its output when awaited are compared.
//!
//! The list is Tokio 1.54.1's, without the methods of traits, which are in `impls.rs`.
#![allow(dead_code, reason = "compiled, not run")]
#![allow(clippy::type_complexity, reason = "they are Tokio's signatures")]
#![allow(clippy::extra_unused_lifetimes, reason = "used inside of the functions")]

use std::{
    future::Ready,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use blitz_io::sync::*;

/// Checks a function whose future has a certain output.
macro_rules! awaits {
    ($function:path, ($($argument:ident: $type:ty),*) -> $output:ty) => {
        let _ = |$($argument: $type),*| async move {
            let _: $output = $function($($argument),*).await;
        };
    };
}

// Locks and the semaphore.

fn mapped_mutex_guard<'a, T: ?Sized + 'a, U: 'a>() {
    let _: fn(MappedMutexGuard<'a, T>, fn(&mut T) -> &mut U) -> MappedMutexGuard<'a, U> =
        MappedMutexGuard::map;
    let _: fn(
        MappedMutexGuard<'a, T>,
        fn(&mut T) -> Option<&mut U>,
    ) -> Result<MappedMutexGuard<'a, U>, MappedMutexGuard<'a, T>> = MappedMutexGuard::try_map;
}

fn mutex<'a, T: ?Sized + 'a>() {
    let _: fn(&Mutex<T>) -> MutexGuard<'_, T> = Mutex::blocking_lock;
    let _: fn(Arc<Mutex<T>>) -> OwnedMutexGuard<T> = Mutex::blocking_lock_owned;
    let _: fn(&mut Mutex<T>) -> &mut T = Mutex::get_mut;
    awaits!(Mutex::lock_owned, (a: Arc<Mutex<T>>) -> OwnedMutexGuard<T>);
    let _: fn(&Mutex<T>) -> Result<MutexGuard<'_, T>, TryLockError> = Mutex::try_lock;
    let _: fn(Arc<Mutex<T>>) -> Result<OwnedMutexGuard<T>, TryLockError> = Mutex::try_lock_owned;
    awaits!(Mutex::lock, (a: &'a Mutex<T>) -> MutexGuard<'a, T>);
}

fn mutex_const_new<T>() {
    let _: fn(T) -> Mutex<T> = Mutex::const_new;
    let _: fn(Mutex<T>) -> T = Mutex::into_inner;
    let _: fn(T) -> Mutex<T> = Mutex::new;
}

fn mutex_guard<'a, T: ?Sized + 'a, U: ?Sized + 'a>() {
    let _: fn(MutexGuard<'a, T>, fn(&mut T) -> &mut U) -> MappedMutexGuard<'a, U> = MutexGuard::map;
    let _: fn(
        MutexGuard<'a, T>,
        fn(&mut T) -> Option<&mut U>,
    ) -> Result<MappedMutexGuard<'a, U>, MutexGuard<'a, T>> = MutexGuard::try_map;
}

fn mutex_guard_mutex<'a, T: ?Sized + 'a>() {
    let _: fn(&MutexGuard<'a, T>) -> &'a Mutex<T> = MutexGuard::mutex;
}

fn owned_mapped_mutex_guard<T: ?Sized, U: ?Sized, S>() {
    let _: fn(OwnedMappedMutexGuard<T, U>, fn(&mut U) -> &mut S) -> OwnedMappedMutexGuard<T, S> =
        OwnedMappedMutexGuard::map;
    let _: fn(
        OwnedMappedMutexGuard<T, U>,
        fn(&mut U) -> Option<&mut S>,
    ) -> Result<OwnedMappedMutexGuard<T, S>, OwnedMappedMutexGuard<T, U>> =
        OwnedMappedMutexGuard::try_map;
}

fn owned_mutex_guard<T: ?Sized, U: ?Sized>() {
    let _: fn(OwnedMutexGuard<T>, fn(&mut T) -> &mut U) -> OwnedMappedMutexGuard<T, U> =
        OwnedMutexGuard::map;
    let _: fn(
        OwnedMutexGuard<T>,
        fn(&mut T) -> Option<&mut U>,
    ) -> Result<OwnedMappedMutexGuard<T, U>, OwnedMutexGuard<T>> = OwnedMutexGuard::try_map;
}

fn owned_mutex_guard_mutex<T: ?Sized>() {
    let _: fn(&OwnedMutexGuard<T>) -> &Arc<Mutex<T>> = OwnedMutexGuard::mutex;
}

fn owned_rwlock_mapped_write_guard<T: ?Sized, U: ?Sized, V: ?Sized>() {
    let _: fn(
        OwnedRwLockMappedWriteGuard<T, U>,
        fn(&mut U) -> &mut V,
    ) -> OwnedRwLockMappedWriteGuard<T, V> = OwnedRwLockMappedWriteGuard::map;
    let _: fn(
        OwnedRwLockMappedWriteGuard<T, U>,
        fn(&mut U) -> Option<&mut V>,
    ) -> Result<OwnedRwLockMappedWriteGuard<T, V>, OwnedRwLockMappedWriteGuard<T, U>> =
        OwnedRwLockMappedWriteGuard::try_map;
}

fn owned_rwlock_mapped_write_guard_rwlock<T: ?Sized, U: ?Sized>() {
    let _: fn(&OwnedRwLockMappedWriteGuard<T, U>) -> &Arc<RwLock<T>> =
        OwnedRwLockMappedWriteGuard::rwlock;
}

fn owned_rwlock_read_guard<T: ?Sized, U: ?Sized, V: ?Sized>() {
    let _: fn(OwnedRwLockReadGuard<T, U>, fn(&U) -> &V) -> OwnedRwLockReadGuard<T, V> =
        OwnedRwLockReadGuard::map;
    let _: fn(
        OwnedRwLockReadGuard<T, U>,
        fn(&U) -> Option<&V>,
    ) -> Result<OwnedRwLockReadGuard<T, V>, OwnedRwLockReadGuard<T, U>> =
        OwnedRwLockReadGuard::try_map;
}

fn owned_rwlock_read_guard_rwlock<T: ?Sized, U: ?Sized>() {
    let _: fn(&OwnedRwLockReadGuard<T, U>) -> &Arc<RwLock<T>> = OwnedRwLockReadGuard::rwlock;
}

fn owned_rwlock_write_guard<T: ?Sized>() {
    let _: fn(OwnedRwLockWriteGuard<T>) -> OwnedRwLockReadGuard<T> =
        OwnedRwLockWriteGuard::downgrade;
    let _: fn(OwnedRwLockWriteGuard<T>) -> OwnedRwLockMappedWriteGuard<T> =
        OwnedRwLockWriteGuard::into_mapped;
    let _: fn(&OwnedRwLockWriteGuard<T>) -> &Arc<RwLock<T>> = OwnedRwLockWriteGuard::rwlock;
}

fn owned_rwlock_write_guard_downgrade_map<T: ?Sized, U: ?Sized>() {
    let _: fn(OwnedRwLockWriteGuard<T>, fn(&T) -> &U) -> OwnedRwLockReadGuard<T, U> =
        OwnedRwLockWriteGuard::downgrade_map;
    let _: fn(OwnedRwLockWriteGuard<T>, fn(&mut T) -> &mut U) -> OwnedRwLockMappedWriteGuard<T, U> =
        OwnedRwLockWriteGuard::map;
    let _: fn(
        OwnedRwLockWriteGuard<T>,
        fn(&T) -> Option<&U>,
    ) -> Result<OwnedRwLockReadGuard<T, U>, OwnedRwLockWriteGuard<T>> =
        OwnedRwLockWriteGuard::try_downgrade_map;
    let _: fn(
        OwnedRwLockWriteGuard<T>,
        fn(&mut T) -> Option<&mut U>,
    ) -> Result<OwnedRwLockMappedWriteGuard<T, U>, OwnedRwLockWriteGuard<T>> =
        OwnedRwLockWriteGuard::try_map;
}

fn owned_semaphore_permit() {
    let _: fn(OwnedSemaphorePermit) = OwnedSemaphorePermit::forget;
    let _: fn(&mut OwnedSemaphorePermit, OwnedSemaphorePermit) = OwnedSemaphorePermit::merge;
    let _: fn(&OwnedSemaphorePermit) -> usize = OwnedSemaphorePermit::num_permits;
    let _: fn(&OwnedSemaphorePermit) -> &Arc<Semaphore> = OwnedSemaphorePermit::semaphore;
    let _: fn(&mut OwnedSemaphorePermit, usize) -> Option<OwnedSemaphorePermit> =
        OwnedSemaphorePermit::split;
}

fn rwlock<'a, T: ?Sized + 'a>() {
    let _: fn(&RwLock<T>) -> RwLockReadGuard<'_, T> = RwLock::blocking_read;
    let _: fn(&RwLock<T>) -> RwLockWriteGuard<'_, T> = RwLock::blocking_write;
    let _: fn(&mut RwLock<T>) -> &mut T = RwLock::get_mut;
    awaits!(RwLock::read_owned, (a: Arc<RwLock<T>>) -> OwnedRwLockReadGuard<T>);
    let _: fn(&RwLock<T>) -> Result<RwLockReadGuard<'_, T>, TryLockError> = RwLock::try_read;
    let _: fn(Arc<RwLock<T>>) -> Result<OwnedRwLockReadGuard<T>, TryLockError> =
        RwLock::try_read_owned;
    let _: fn(&RwLock<T>) -> Result<RwLockWriteGuard<'_, T>, TryLockError> = RwLock::try_write;
    let _: fn(Arc<RwLock<T>>) -> Result<OwnedRwLockWriteGuard<T>, TryLockError> =
        RwLock::try_write_owned;
    awaits!(RwLock::write_owned, (a: Arc<RwLock<T>>) -> OwnedRwLockWriteGuard<T>);
    awaits!(RwLock::read, (a: &'a RwLock<T>) -> RwLockReadGuard<'a, T>);
    awaits!(RwLock::write, (a: &'a RwLock<T>) -> RwLockWriteGuard<'a, T>);
}

fn rwlock_const_new<T>() {
    let _: fn(T) -> RwLock<T> = RwLock::const_new;
    let _: fn(T, u32) -> RwLock<T> = RwLock::const_with_max_readers;
    let _: fn(RwLock<T>) -> T = RwLock::into_inner;
    let _: fn(T) -> RwLock<T> = RwLock::new;
    let _: fn(T, u32) -> RwLock<T> = RwLock::with_max_readers;
}

fn rwlock_mapped_write_guard<'a, T: ?Sized + 'a, U: ?Sized + 'a>() {
    let _: fn(
        RwLockMappedWriteGuard<'a, T>,
        fn(&mut T) -> &mut U,
    ) -> RwLockMappedWriteGuard<'a, U> = RwLockMappedWriteGuard::map;
    let _: fn(
        RwLockMappedWriteGuard<'a, T>,
        fn(&mut T) -> Option<&mut U>,
    ) -> Result<RwLockMappedWriteGuard<'a, U>, RwLockMappedWriteGuard<'a, T>> =
        RwLockMappedWriteGuard::try_map;
}

fn rwlock_read_guard<'a, T: ?Sized + 'a, U: ?Sized + 'a>() {
    let _: fn(RwLockReadGuard<'a, T>, fn(&T) -> &U) -> RwLockReadGuard<'a, U> =
        RwLockReadGuard::map;
    let _: fn(
        RwLockReadGuard<'a, T>,
        fn(&T) -> Option<&U>,
    ) -> Result<RwLockReadGuard<'a, U>, RwLockReadGuard<'a, T>> = RwLockReadGuard::try_map;
}

fn rwlock_write_guard<'a, T: ?Sized + 'a>() {
    let _: fn(RwLockWriteGuard<'a, T>) -> RwLockReadGuard<'a, T> = RwLockWriteGuard::downgrade;
    let _: fn(RwLockWriteGuard<'a, T>) -> RwLockMappedWriteGuard<'a, T> =
        RwLockWriteGuard::into_mapped;
}

fn rwlock_write_guard_downgrade_map<'a, T: ?Sized + 'a, U: ?Sized + 'a>() {
    let _: fn(RwLockWriteGuard<'a, T>, fn(&T) -> &U) -> RwLockReadGuard<'a, U> =
        RwLockWriteGuard::downgrade_map;
    let _: fn(RwLockWriteGuard<'a, T>, fn(&mut T) -> &mut U) -> RwLockMappedWriteGuard<'a, U> =
        RwLockWriteGuard::map;
    let _: fn(
        RwLockWriteGuard<'a, T>,
        fn(&T) -> Option<&U>,
    ) -> Result<RwLockReadGuard<'a, U>, RwLockWriteGuard<'a, T>> =
        RwLockWriteGuard::try_downgrade_map;
    let _: fn(
        RwLockWriteGuard<'a, T>,
        fn(&mut T) -> Option<&mut U>,
    ) -> Result<RwLockMappedWriteGuard<'a, U>, RwLockWriteGuard<'a, T>> = RwLockWriteGuard::try_map;
}

fn semaphore<'a>() {
    awaits!(Semaphore::acquire, (a: &'a Semaphore) -> Result<SemaphorePermit<'a>, AcquireError>);
    awaits!(Semaphore::acquire_many, (a: &'a Semaphore, b: u32) -> Result<SemaphorePermit<'a>, AcquireError>);
    awaits!(Semaphore::acquire_many_owned, (a: Arc<Semaphore>, b: u32) -> Result<OwnedSemaphorePermit, AcquireError>);
    awaits!(Semaphore::acquire_owned, (a: Arc<Semaphore>) -> Result<OwnedSemaphorePermit, AcquireError>);
    let _: fn(&Semaphore, usize) = Semaphore::add_permits;
    let _: fn(&Semaphore) -> usize = Semaphore::available_permits;
    let _: fn(&Semaphore) -> Result<SemaphorePermit<'_>, AcquireError> =
        Semaphore::blocking_acquire;
    let _: fn(&Semaphore, u32) -> Result<SemaphorePermit<'_>, AcquireError> =
        Semaphore::blocking_acquire_many;
    let _: fn(Arc<Semaphore>, u32) -> Result<OwnedSemaphorePermit, AcquireError> =
        Semaphore::blocking_acquire_many_owned;
    let _: fn(Arc<Semaphore>) -> Result<OwnedSemaphorePermit, AcquireError> =
        Semaphore::blocking_acquire_owned;
    let _: fn(&Semaphore) = Semaphore::close;
    let _: fn(usize) -> Semaphore = Semaphore::const_new;
    let _: fn(&Semaphore, usize) -> usize = Semaphore::forget_permits;
    let _: fn(&Semaphore) -> bool = Semaphore::is_closed;
    let _: fn(usize) -> Semaphore = Semaphore::new;
    let _: fn(&Semaphore) -> Result<SemaphorePermit<'_>, TryAcquireError> = Semaphore::try_acquire;
    let _: fn(&Semaphore, u32) -> Result<SemaphorePermit<'_>, TryAcquireError> =
        Semaphore::try_acquire_many;
    let _: fn(Arc<Semaphore>, u32) -> Result<OwnedSemaphorePermit, TryAcquireError> =
        Semaphore::try_acquire_many_owned;
    let _: fn(Arc<Semaphore>) -> Result<OwnedSemaphorePermit, TryAcquireError> =
        Semaphore::try_acquire_owned;
}

fn semaphore_permit<'a>() {
    let _: fn(SemaphorePermit<'a>) = SemaphorePermit::forget;
    let _: fn(&mut SemaphorePermit<'a>, SemaphorePermit<'a>) = SemaphorePermit::merge;
    let _: fn(&SemaphorePermit<'a>) -> usize = SemaphorePermit::num_permits;
    let _: for<'b> fn(&'b SemaphorePermit<'a>) -> &'b Semaphore = SemaphorePermit::semaphore;
    let _: fn(&mut SemaphorePermit<'a>, usize) -> Option<SemaphorePermit<'a>> =
        SemaphorePermit::split;
}

// Values that are set once, and synchronisation of several tasks.

fn notified() {
    let _: fn(Pin<&mut futures::Notified<'static>>) -> bool = futures::Notified::enable;
}

fn owned_notified() {
    let _: fn(Pin<&mut futures::OwnedNotified>) -> bool = futures::OwnedNotified::enable;
}

fn set_error<T>() {
    let _: fn(&SetError<T>) -> bool = SetError::is_already_init_err;
    let _: fn(&SetError<T>) -> bool = SetError::is_initializing_err;
}

fn barrier<'a>() {
    let _: fn(usize) -> Barrier = Barrier::new;
    awaits!(Barrier::wait, (a: &'a Barrier) -> BarrierWaitResult);
}

fn barrier_wait_result() {
    let _: fn(&BarrierWaitResult) -> bool = BarrierWaitResult::is_leader;
}

fn notify() {
    let _: fn() -> Notify = Notify::const_new;
    let _: fn() -> Notify = Notify::new;
    let _: fn(&Notify) -> futures::Notified<'_> = Notify::notified;
    let _: fn(Arc<Notify>) -> futures::OwnedNotified = Notify::notified_owned;
    let _: fn(&Notify) = Notify::notify_last;
    let _: fn(&Notify) = Notify::notify_one;
    let _: fn(&Notify) = Notify::notify_waiters;
}

fn once_cell<'a, T: 'a>() {
    let _: fn() -> OnceCell<T> = OnceCell::const_new;
    let _: fn(T) -> OnceCell<T> = OnceCell::const_new_with;
    let _: fn(&OnceCell<T>) -> Option<&T> = OnceCell::get;
    let _: fn(&mut OnceCell<T>) -> Option<&mut T> = OnceCell::get_mut;
    let _: fn(&OnceCell<T>) -> bool = OnceCell::initialized;
    let _: fn(OnceCell<T>) -> Option<T> = OnceCell::into_inner;
    let _: fn() -> OnceCell<T> = OnceCell::new;
    let _: fn(Option<T>) -> OnceCell<T> = OnceCell::new_with;
    let _: fn(&OnceCell<T>, T) -> Result<(), SetError<T>> = OnceCell::set;
    let _: fn(&mut OnceCell<T>) -> Option<T> = OnceCell::take;
    awaits!(OnceCell::get_or_init, (a: &'a OnceCell<T>, b: fn() -> Ready<T>) -> &'a T);
}

fn once_cell_get_or_try_init<'a, T: 'a, E: 'a>() {
    awaits!(OnceCell::get_or_try_init, (a: &'a OnceCell<T>, b: fn() -> Ready<Result<T, E>>) -> Result<&'a T, E>);
}

fn set_once<'a, T: 'a>() {
    let _: fn() -> SetOnce<T> = SetOnce::const_new;
    let _: fn(T) -> SetOnce<T> = SetOnce::const_new_with;
    let _: fn(&SetOnce<T>) -> Option<&T> = SetOnce::get;
    let _: fn(&SetOnce<T>) -> bool = SetOnce::initialized;
    let _: fn(SetOnce<T>) -> Option<T> = SetOnce::into_inner;
    let _: fn() -> SetOnce<T> = SetOnce::new;
    let _: fn(Option<T>) -> SetOnce<T> = SetOnce::new_with;
    let _: fn(&SetOnce<T>, T) -> Result<(), SetOnceError<T>> = SetOnce::set;
    awaits!(SetOnce::wait, (a: &'a SetOnce<T>) -> &'a T);
}

// Many producers, one consumer. `send_timeout` needs the feature `time`, so it is not listed.

fn mpsc_send_timeout_error<T>() {
    let _: fn(mpsc::error::SendTimeoutError<T>) -> T = mpsc::error::SendTimeoutError::into_inner;
}

fn mpsc_try_send_error<T>() {
    let _: fn(mpsc::error::TrySendError<T>) -> T = mpsc::error::TrySendError::into_inner;
}

fn mpsc_owned_permit<T>() {
    let _: fn(mpsc::OwnedPermit<T>) -> mpsc::Sender<T> = mpsc::OwnedPermit::release;
    let _: fn(&mpsc::OwnedPermit<T>, &mpsc::OwnedPermit<T>) -> bool =
        mpsc::OwnedPermit::same_channel;
    let _: fn(&mpsc::OwnedPermit<T>, &mpsc::Sender<T>) -> bool =
        mpsc::OwnedPermit::same_channel_as_sender;
    let _: fn(mpsc::OwnedPermit<T>, T) -> mpsc::Sender<T> = mpsc::OwnedPermit::send;
}

fn mpsc_permit<'a, T: 'a>() {
    let _: fn(mpsc::Permit<'a, T>, T) = mpsc::Permit::send;
}

fn mpsc_receiver<'a, T: 'a>() {
    let _: fn(&mut mpsc::Receiver<T>) -> Option<T> = mpsc::Receiver::blocking_recv;
    let _: fn(&mut mpsc::Receiver<T>, &mut Vec<T>, usize) -> usize =
        mpsc::Receiver::blocking_recv_many;
    let _: fn(&mpsc::Receiver<T>) -> usize = mpsc::Receiver::capacity;
    let _: fn(&mut mpsc::Receiver<T>) = mpsc::Receiver::close;
    let _: fn(&mpsc::Receiver<T>) -> bool = mpsc::Receiver::is_closed;
    let _: fn(&mpsc::Receiver<T>) -> bool = mpsc::Receiver::is_empty;
    let _: fn(&mpsc::Receiver<T>) -> usize = mpsc::Receiver::len;
    let _: fn(&mpsc::Receiver<T>) -> usize = mpsc::Receiver::max_capacity;
    let _: fn(&mut mpsc::Receiver<T>, &mut Context<'_>) -> Poll<Option<T>> =
        mpsc::Receiver::poll_recv;
    let _: fn(&mut mpsc::Receiver<T>, &mut Context<'_>, &mut Vec<T>, usize) -> Poll<usize> =
        mpsc::Receiver::poll_recv_many;
    let _: fn(&mpsc::Receiver<T>) -> usize = mpsc::Receiver::sender_strong_count;
    let _: fn(&mpsc::Receiver<T>) -> usize = mpsc::Receiver::sender_weak_count;
    let _: fn(&mut mpsc::Receiver<T>) -> Result<T, mpsc::error::TryRecvError> =
        mpsc::Receiver::try_recv;
    awaits!(mpsc::Receiver::recv, (a: &'a mut mpsc::Receiver<T>) -> Option<T>);
    awaits!(mpsc::Receiver::recv_many, (a: &'a mut mpsc::Receiver<T>, b: &'a mut Vec<T>, c: usize) -> usize);
}

fn mpsc_sender<'a, T: 'a>() {
    let _: fn(&mpsc::Sender<T>, T) -> Result<(), mpsc::error::SendError<T>> =
        mpsc::Sender::blocking_send;
    let _: fn(&mpsc::Sender<T>) -> usize = mpsc::Sender::capacity;
    let _: fn(&mpsc::Sender<T>) -> mpsc::WeakSender<T> = mpsc::Sender::downgrade;
    let _: fn(&mpsc::Sender<T>) -> bool = mpsc::Sender::is_closed;
    let _: fn(&mpsc::Sender<T>) -> usize = mpsc::Sender::max_capacity;
    awaits!(mpsc::Sender::reserve_owned, (a: mpsc::Sender<T>) -> Result<mpsc::OwnedPermit<T>, mpsc::error::SendError<()>>);
    let _: fn(&mpsc::Sender<T>, &mpsc::Sender<T>) -> bool = mpsc::Sender::same_channel;
    let _: fn(&mpsc::Sender<T>) -> usize = mpsc::Sender::strong_count;
    let _: fn(&mpsc::Sender<T>) -> Result<mpsc::Permit<'_, T>, mpsc::error::TrySendError<()>> =
        mpsc::Sender::try_reserve;
    let _: fn(
        &mpsc::Sender<T>,
        usize,
    ) -> Result<mpsc::PermitIterator<'_, T>, mpsc::error::TrySendError<()>> =
        mpsc::Sender::try_reserve_many;
    let _: fn(
        mpsc::Sender<T>,
    ) -> Result<mpsc::OwnedPermit<T>, mpsc::error::TrySendError<mpsc::Sender<T>>> =
        mpsc::Sender::try_reserve_owned;
    let _: fn(&mpsc::Sender<T>, T) -> Result<(), mpsc::error::TrySendError<T>> =
        mpsc::Sender::try_send;
    let _: fn(&mpsc::Sender<T>) -> usize = mpsc::Sender::weak_count;
    awaits!(mpsc::Sender::closed, (a: &'a mpsc::Sender<T>) -> ());
    awaits!(mpsc::Sender::reserve, (a: &'a mpsc::Sender<T>) -> Result<mpsc::Permit<'a, T>, mpsc::error::SendError<()>>);
    awaits!(mpsc::Sender::reserve_many, (a: &'a mpsc::Sender<T>, b: usize) -> Result<mpsc::PermitIterator<'a, T>, mpsc::error::SendError<()>>);
    awaits!(mpsc::Sender::send, (a: &'a mpsc::Sender<T>, b: T) -> Result<(), mpsc::error::SendError<T>>);
}

fn mpsc_unbounded_receiver<'a, T: 'a>() {
    let _: fn(&mut mpsc::UnboundedReceiver<T>) -> Option<T> =
        mpsc::UnboundedReceiver::blocking_recv;
    let _: fn(&mut mpsc::UnboundedReceiver<T>, &mut Vec<T>, usize) -> usize =
        mpsc::UnboundedReceiver::blocking_recv_many;
    let _: fn(&mut mpsc::UnboundedReceiver<T>) = mpsc::UnboundedReceiver::close;
    let _: fn(&mpsc::UnboundedReceiver<T>) -> bool = mpsc::UnboundedReceiver::is_closed;
    let _: fn(&mpsc::UnboundedReceiver<T>) -> bool = mpsc::UnboundedReceiver::is_empty;
    let _: fn(&mpsc::UnboundedReceiver<T>) -> usize = mpsc::UnboundedReceiver::len;
    let _: fn(&mut mpsc::UnboundedReceiver<T>, &mut Context<'_>) -> Poll<Option<T>> =
        mpsc::UnboundedReceiver::poll_recv;
    let _: fn(
        &mut mpsc::UnboundedReceiver<T>,
        &mut Context<'_>,
        &mut Vec<T>,
        usize,
    ) -> Poll<usize> = mpsc::UnboundedReceiver::poll_recv_many;
    let _: fn(&mpsc::UnboundedReceiver<T>) -> usize = mpsc::UnboundedReceiver::sender_strong_count;
    let _: fn(&mpsc::UnboundedReceiver<T>) -> usize = mpsc::UnboundedReceiver::sender_weak_count;
    let _: fn(&mut mpsc::UnboundedReceiver<T>) -> Result<T, mpsc::error::TryRecvError> =
        mpsc::UnboundedReceiver::try_recv;
    awaits!(mpsc::UnboundedReceiver::recv, (a: &'a mut mpsc::UnboundedReceiver<T>) -> Option<T>);
    awaits!(mpsc::UnboundedReceiver::recv_many, (a: &'a mut mpsc::UnboundedReceiver<T>, b: &'a mut Vec<T>, c: usize) -> usize);
}

fn mpsc_unbounded_sender<'a, T: 'a>() {
    awaits!(mpsc::UnboundedSender::closed, (a: &'a mpsc::UnboundedSender<T>) -> ());
    let _: fn(&mpsc::UnboundedSender<T>) -> mpsc::WeakUnboundedSender<T> =
        mpsc::UnboundedSender::downgrade;
    let _: fn(&mpsc::UnboundedSender<T>) -> bool = mpsc::UnboundedSender::is_closed;
    let _: fn(&mpsc::UnboundedSender<T>, &mpsc::UnboundedSender<T>) -> bool =
        mpsc::UnboundedSender::same_channel;
    let _: fn(&mpsc::UnboundedSender<T>, T) -> Result<(), mpsc::error::SendError<T>> =
        mpsc::UnboundedSender::send;
    let _: fn(&mpsc::UnboundedSender<T>) -> usize = mpsc::UnboundedSender::strong_count;
    let _: fn(&mpsc::UnboundedSender<T>) -> usize = mpsc::UnboundedSender::weak_count;
}

fn mpsc_weak_sender<T>() {
    let _: fn(&mpsc::WeakSender<T>) -> usize = mpsc::WeakSender::strong_count;
    let _: fn(&mpsc::WeakSender<T>) -> Option<mpsc::Sender<T>> = mpsc::WeakSender::upgrade;
    let _: fn(&mpsc::WeakSender<T>) -> usize = mpsc::WeakSender::weak_count;
}

fn mpsc_weak_unbounded_sender<T>() {
    let _: fn(&mpsc::WeakUnboundedSender<T>) -> usize = mpsc::WeakUnboundedSender::strong_count;
    let _: fn(&mpsc::WeakUnboundedSender<T>) -> Option<mpsc::UnboundedSender<T>> =
        mpsc::WeakUnboundedSender::upgrade;
    let _: fn(&mpsc::WeakUnboundedSender<T>) -> usize = mpsc::WeakUnboundedSender::weak_count;
}

fn mpsc_channel<T>() {
    let _: fn(usize) -> (mpsc::Sender<T>, mpsc::Receiver<T>) = mpsc::channel;
}

fn mpsc_unbounded_channel<T>() {
    let _: fn() -> (mpsc::UnboundedSender<T>, mpsc::UnboundedReceiver<T>) = mpsc::unbounded_channel;
}

// One value.

fn oneshot_channel<T>() {
    let _: fn() -> (oneshot::Sender<T>, oneshot::Receiver<T>) = oneshot::channel;
}

fn oneshot_receiver<T>() {
    let _: fn(oneshot::Receiver<T>) -> Result<T, oneshot::error::RecvError> =
        oneshot::Receiver::blocking_recv;
    let _: fn(&mut oneshot::Receiver<T>) = oneshot::Receiver::close;
    let _: fn(&oneshot::Receiver<T>) -> bool = oneshot::Receiver::is_empty;
    let _: fn(&oneshot::Receiver<T>) -> bool = oneshot::Receiver::is_terminated;
    let _: fn(&mut oneshot::Receiver<T>) -> Result<T, oneshot::error::TryRecvError> =
        oneshot::Receiver::try_recv;
}

fn oneshot_sender<'a, T: 'a>() {
    awaits!(oneshot::Sender::closed, (a: &'a mut oneshot::Sender<T>) -> ());
    let _: fn(&oneshot::Sender<T>) -> bool = oneshot::Sender::is_closed;
    let _: fn(&mut oneshot::Sender<T>, &mut Context<'_>) -> Poll<()> = oneshot::Sender::poll_closed;
    let _: fn(oneshot::Sender<T>, T) -> Result<(), T> = oneshot::Sender::send;
}

// Every value to every receiver.

fn broadcast_receiver<'a, T: Clone + 'a>() {
    let _: fn(&mut broadcast::Receiver<T>) -> Result<T, broadcast::error::RecvError> =
        broadcast::Receiver::blocking_recv;
    let _: fn(&broadcast::Receiver<T>) -> broadcast::Receiver<T> = broadcast::Receiver::resubscribe;
    let _: fn(&mut broadcast::Receiver<T>) -> Result<T, broadcast::error::TryRecvError> =
        broadcast::Receiver::try_recv;
    awaits!(broadcast::Receiver::recv, (a: &'a mut broadcast::Receiver<T>) -> Result<T, broadcast::error::RecvError>);
}

fn broadcast_receiver_is_closed<T>() {
    let _: fn(&broadcast::Receiver<T>) -> bool = broadcast::Receiver::is_closed;
    let _: fn(&broadcast::Receiver<T>) -> bool = broadcast::Receiver::is_empty;
    let _: fn(&broadcast::Receiver<T>) -> usize = broadcast::Receiver::len;
    let _: fn(&broadcast::Receiver<T>, &broadcast::Receiver<T>) -> bool =
        broadcast::Receiver::same_channel;
    let _: fn(&broadcast::Receiver<T>) -> usize = broadcast::Receiver::sender_strong_count;
    let _: fn(&broadcast::Receiver<T>) -> usize = broadcast::Receiver::sender_weak_count;
}

fn broadcast_sender<'a, T: 'a>() {
    awaits!(broadcast::Sender::closed, (a: &'a broadcast::Sender<T>) -> ());
    let _: fn(&broadcast::Sender<T>) -> broadcast::WeakSender<T> = broadcast::Sender::downgrade;
    let _: fn(&broadcast::Sender<T>) -> bool = broadcast::Sender::is_empty;
    let _: fn(&broadcast::Sender<T>) -> usize = broadcast::Sender::len;
    let _: fn(usize) -> broadcast::Sender<T> = broadcast::Sender::new;
    let _: fn(&broadcast::Sender<T>) -> usize = broadcast::Sender::receiver_count;
    let _: fn(&broadcast::Sender<T>, &broadcast::Sender<T>) -> bool =
        broadcast::Sender::same_channel;
    let _: fn(&broadcast::Sender<T>, T) -> Result<usize, broadcast::error::SendError<T>> =
        broadcast::Sender::send;
    let _: fn(&broadcast::Sender<T>) -> usize = broadcast::Sender::strong_count;
    let _: fn(&broadcast::Sender<T>) -> broadcast::Receiver<T> = broadcast::Sender::subscribe;
    let _: fn(&broadcast::Sender<T>) -> usize = broadcast::Sender::weak_count;
}

fn broadcast_weak_sender<T>() {
    let _: fn(&broadcast::WeakSender<T>) -> usize = broadcast::WeakSender::strong_count;
    let _: fn(&broadcast::WeakSender<T>) -> Option<broadcast::Sender<T>> =
        broadcast::WeakSender::upgrade;
    let _: fn(&broadcast::WeakSender<T>) -> usize = broadcast::WeakSender::weak_count;
}

fn broadcast_channel<T: Clone>() {
    let _: fn(usize) -> (broadcast::Sender<T>, broadcast::Receiver<T>) = broadcast::channel;
}

// The latest value.

fn watch_channel<T>() {
    let _: fn(T) -> (watch::Sender<T>, watch::Receiver<T>) = watch::channel;
}

fn watch_receiver<'a, T: 'a>() {
    let _: fn(&watch::Receiver<T>) -> watch::Ref<'_, T> = watch::Receiver::borrow;
    let _: fn(&mut watch::Receiver<T>) -> watch::Ref<'_, T> = watch::Receiver::borrow_and_update;
    let _: fn(&watch::Receiver<T>) -> Result<bool, watch::error::RecvError> =
        watch::Receiver::has_changed;
    let _: fn(&watch::Receiver<T>) -> bool = watch::Receiver::is_closed;
    let _: fn(&mut watch::Receiver<T>) = watch::Receiver::mark_changed;
    let _: fn(&mut watch::Receiver<T>) = watch::Receiver::mark_unchanged;
    let _: fn(&watch::Receiver<T>, &watch::Receiver<T>) -> bool = watch::Receiver::same_channel;
    awaits!(watch::Receiver::changed, (a: &'a mut watch::Receiver<T>) -> Result<(), watch::error::RecvError>);
    awaits!(watch::Receiver::wait_for, (a: &'a mut watch::Receiver<T>, b: fn(&T) -> bool) -> Result<watch::Ref<'a, T>, watch::error::RecvError>);
}

fn watch_ref<'a, T: 'a>() {
    let _: fn(&watch::Ref<'a, T>) -> bool = watch::Ref::has_changed;
}

fn watch_sender<'a, T: 'a>() {
    let _: fn(&watch::Sender<T>) -> watch::Ref<'_, T> = watch::Sender::borrow;
    let _: fn(&watch::Sender<T>) -> bool = watch::Sender::is_closed;
    let _: fn(T) -> watch::Sender<T> = watch::Sender::new;
    let _: fn(&watch::Sender<T>) -> usize = watch::Sender::receiver_count;
    let _: fn(&watch::Sender<T>, &watch::Sender<T>) -> bool = watch::Sender::same_channel;
    let _: fn(&watch::Sender<T>, T) -> Result<(), watch::error::SendError<T>> = watch::Sender::send;
    let _: fn(&watch::Sender<T>, fn(&mut T) -> bool) -> bool = watch::Sender::send_if_modified;
    let _: fn(&watch::Sender<T>, fn(&mut T)) = watch::Sender::send_modify;
    let _: fn(&watch::Sender<T>, T) -> T = watch::Sender::send_replace;
    let _: fn(&watch::Sender<T>) -> usize = watch::Sender::sender_count;
    let _: fn(&watch::Sender<T>) -> watch::Receiver<T> = watch::Sender::subscribe;
    awaits!(watch::Sender::closed, (a: &'a watch::Sender<T>) -> ());
}

// Values that a user constructs in constants, and variants that a match over an error must name.

#[allow(clippy::declare_interior_mutable_const, reason = "made at compile time, not used")]
mod at_compile_time {
    use super::*;

    const MUTEX: Mutex<u8> = Mutex::const_new(1);
    const RWLOCK: RwLock<u8> = RwLock::const_new(1);
    const FEW_READERS: RwLock<u8> = RwLock::const_with_max_readers(1, 2);
    const SEMAPHORE: Semaphore = Semaphore::const_new(1);
    const MOST: usize = Semaphore::MAX_PERMITS;
    const NOTIFY: Notify = Notify::const_new();
    const ONCE_CELL: OnceCell<u8> = OnceCell::const_new();
    const FULL_ONCE_CELL: OnceCell<u8> = OnceCell::const_new_with(1);
    const SET_ONCE: SetOnce<u8> = SetOnce::const_new();
    const FULL_SET_ONCE: SetOnce<u8> = SetOnce::const_new_with(1);
}

fn variants_of_semaphores_and_cells<T>(acquire: TryAcquireError, set: SetError<T>) {
    match acquire {
        TryAcquireError::Closed | TryAcquireError::NoPermits => {}
    }
    match set {
        SetError::AlreadyInitializedError(_) | SetError::InitializingError(_) => {}
    }
}

fn variants_of_mpsc<T>(
    receive: mpsc::error::TryRecvError,
    send: mpsc::error::TrySendError<T>,
    late: mpsc::error::SendTimeoutError<T>,
) -> T {
    match receive {
        mpsc::error::TryRecvError::Empty | mpsc::error::TryRecvError::Disconnected => {}
    }
    match late {
        mpsc::error::SendTimeoutError::Timeout(_) | mpsc::error::SendTimeoutError::Closed(_) => {}
    }
    match send {
        mpsc::error::TrySendError::Full(value) | mpsc::error::TrySendError::Closed(value) => value,
    }
}

fn variants_of_channels(
    once: oneshot::error::TryRecvError,
    all: broadcast::error::RecvError,
    all_now: broadcast::error::TryRecvError,
) -> u64 {
    match once {
        oneshot::error::TryRecvError::Empty | oneshot::error::TryRecvError::Closed => {}
    }
    match all {
        broadcast::error::RecvError::Closed | broadcast::error::RecvError::Lagged(_) => {}
    }
    match all_now {
        broadcast::error::TryRecvError::Closed | broadcast::error::TryRecvError::Empty => 0,
        broadcast::error::TryRecvError::Lagged(missed) => missed,
    }
}

fn fields<T>(
    sent: mpsc::error::SendError<T>,
    published: broadcast::error::SendError<T>,
    watched: watch::error::SendError<T>,
    set: SetOnceError<T>,
) -> [T; 4] {
    [sent.0, published.0, watched.0, set.0]
}
