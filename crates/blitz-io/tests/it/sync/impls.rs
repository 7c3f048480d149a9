//! Checks that the types of `sync` implement every trait that those of `tokio::sync` implement,
//! under Tokio's bounds.
//!
//! There is nothing to run: a missing implementation does not compile. Auto traits such as `Send`
//! and `Sync` are in `auto_traits.rs`.
#![allow(dead_code, reason = "compiled, not run")]
#![allow(deprecated, reason = "what Tokio keeps is kept")]

use std::{
    error::Error,
    fmt::{Debug, Display},
    iter::FusedIterator,
    ops::{Deref, DerefMut},
};

use blitz_io::sync::*;

macro_rules! implements {
    ($type:ty: $($traits:tt)+) => {{
        fn has<T: ?Sized + $($traits)+>() {}
        has::<$type>();
    }};
}

fn leads_to<T: Deref<Target = U>, U: ?Sized>() {}
fn leads_to_mut<T: DerefMut<Target = U>, U: ?Sized>() {}
fn ends_with<T: Future<Output = U>, U>() {}
fn brings<T: Iterator<Item = U>, U>() {}

fn always() {
    implements!(broadcast::error::RecvError: Clone + Eq + PartialEq + Error + Debug + Display);
    implements!(broadcast::error::TryRecvError: Clone + Eq + PartialEq + Error + Debug + Display);
    ends_with::<futures::Notified<'_>, ()>();
    implements!(futures::Notified<'_>: Debug);
    ends_with::<futures::OwnedNotified, ()>();
    implements!(futures::OwnedNotified: Debug);
    implements!(mpsc::error::TryRecvError: Clone + Eq + PartialEq + Error + Debug + Display);
    implements!(mpsc::error::RecvError: Clone + Error + Debug + Display);
    implements!(oneshot::error::TryRecvError: Clone + Eq + PartialEq + Error + Debug + Display);
    implements!(oneshot::error::RecvError: Clone + Eq + PartialEq + Error + Debug + Display);
    implements!(watch::error::RecvError: Clone + Error + Debug + Display);
    implements!(TryAcquireError: Eq + PartialEq + Error + Debug + Display);
    implements!(AcquireError: Error + Debug + Display);
    implements!(Barrier: Debug);
    implements!(BarrierWaitResult: Clone + Debug);
    implements!(Notify: Default + Debug);
    implements!(OwnedSemaphorePermit: Debug);
    implements!(Semaphore: Debug);
    implements!(TryLockError: Error + Debug + Display);
    implements!(SemaphorePermit<'_>: Debug);
}

fn of_what_is_shown<T: Debug>() {
    implements!(broadcast::error::SendError<T>: Error + Debug);
    implements!(oneshot::Receiver<T>: Debug);
    implements!(oneshot::Sender<T>: Debug);
    implements!(watch::Receiver<T>: Debug);
    implements!(watch::Sender<T>: Debug);
    implements!(SetError<T>: Error + Debug);
    implements!(OnceCell<T>: Debug);
    implements!(SetOnce<T>: Debug);
    implements!(SetOnceError<T>: Error + Debug);
    implements!(watch::Ref<'_, T>: Debug);
}

fn of_anything<T: 'static>() {
    implements!(broadcast::error::SendError<T>: Display);
    implements!(broadcast::Receiver<T>: Debug);
    implements!(broadcast::Sender<T>: Clone + Debug);
    implements!(broadcast::WeakSender<T>: Clone + Debug);
    implements!(mpsc::error::SendTimeoutError<T>: Error + Debug + Display);
    let _: fn(mpsc::error::SendError<T>) -> mpsc::error::TrySendError<T> = From::from;
    implements!(mpsc::error::TrySendError<T>: Error + Debug + Display);
    implements!(mpsc::error::SendError<T>: Error + Debug + Display);
    implements!(mpsc::OwnedPermit<T>: Debug);
    implements!(mpsc::Permit<'_, T>: Debug);
    brings::<mpsc::PermitIterator<'static, T>, mpsc::Permit<'static, T>>();
    implements!(mpsc::PermitIterator<'_, T>: Debug + ExactSizeIterator + FusedIterator);
    implements!(mpsc::Receiver<T>: Debug);
    implements!(mpsc::Sender<T>: Clone + Debug);
    implements!(mpsc::UnboundedReceiver<T>: Debug);
    implements!(mpsc::UnboundedSender<T>: Clone + Debug);
    implements!(mpsc::WeakSender<T>: Clone + Debug);
    implements!(mpsc::WeakUnboundedSender<T>: Clone + Debug);
    ends_with::<oneshot::Receiver<T>, Result<T, oneshot::error::RecvError>>();
    implements!(watch::error::SendError<T>: Error + Debug + Display);
    implements!(watch::Receiver<T>: Clone);
    leads_to::<watch::Ref<'_, T>, T>();
    implements!(watch::Sender<T>: Clone);
    implements!(SetError<T>: Display);
    let _: fn(T) -> Mutex<T> = From::from;
    let _: fn(T) -> OnceCell<T> = From::from;
    implements!(OnceCell<T>: Default);
    let _: fn(T) -> RwLock<T> = From::from;
    let _: fn(T) -> SetOnce<T> = From::from;
    implements!(SetOnce<T>: Default);
    implements!(SetOnceError<T>: Display);
}

fn of_what_is_cloned<T: Clone>() {
    implements!(mpsc::error::SendTimeoutError<T>: Clone);
    implements!(mpsc::error::TrySendError<T>: Clone);
    implements!(mpsc::error::SendError<T>: Clone);
    implements!(watch::error::SendError<T>: Clone);
    implements!(OnceCell<T>: Clone);
    implements!(SetOnce<T>: Clone);
}

fn of_what_is_equal<T: Eq>() {
    implements!(mpsc::error::SendTimeoutError<T>: Eq);
    implements!(mpsc::error::TrySendError<T>: Eq);
    implements!(mpsc::error::SendError<T>: Eq);
    implements!(watch::error::SendError<T>: Eq);
    implements!(SetError<T>: Eq);
    implements!(OnceCell<T>: Eq);
    implements!(SetOnce<T>: Eq);
    implements!(SetOnceError<T>: Eq);
}

fn of_what_is_compared<T: PartialEq>() {
    implements!(mpsc::error::SendTimeoutError<T>: PartialEq);
    implements!(mpsc::error::TrySendError<T>: PartialEq);
    implements!(mpsc::error::SendError<T>: PartialEq);
    implements!(watch::error::SendError<T>: PartialEq);
    implements!(SetError<T>: PartialEq);
    implements!(OnceCell<T>: PartialEq);
    implements!(SetOnce<T>: PartialEq);
    implements!(SetOnceError<T>: PartialEq);
}

fn of_what_has_a_default<T: Default>() {
    implements!(watch::Sender<T>: Default);
    implements!(Mutex<T>: Default);
    implements!(RwLock<T>: Default);
}

fn of_anything_shown<T: ?Sized + Debug>() {
    implements!(MappedMutexGuard<'_, T>: Debug);
    implements!(Mutex<T>: Debug);
    implements!(OwnedRwLockWriteGuard<T>: Debug);
    implements!(RwLock<T>: Debug);
    implements!(MutexGuard<'_, T>: Debug);
    implements!(OwnedMutexGuard<T>: Debug);
    implements!(RwLockMappedWriteGuard<'_, T>: Debug);
    implements!(RwLockReadGuard<'_, T>: Debug);
    implements!(RwLockWriteGuard<'_, T>: Debug);
}

fn of_anything_displayed<T: ?Sized + Display>() {
    implements!(MappedMutexGuard<'_, T>: Display);
    implements!(MutexGuard<'_, T>: Display);
    implements!(OwnedMutexGuard<T>: Display);
    implements!(OwnedRwLockWriteGuard<T>: Display);
    implements!(RwLockMappedWriteGuard<'_, T>: Display);
    implements!(RwLockReadGuard<'_, T>: Display);
    implements!(RwLockWriteGuard<'_, T>: Display);
}

fn of_any_size<T: ?Sized>() {
    leads_to_mut::<MappedMutexGuard<'_, T>, T>();
    leads_to_mut::<MutexGuard<'_, T>, T>();
    leads_to_mut::<OwnedMutexGuard<T>, T>();
    leads_to_mut::<OwnedRwLockWriteGuard<T>, T>();
    leads_to_mut::<RwLockMappedWriteGuard<'_, T>, T>();
    leads_to::<RwLockReadGuard<'_, T>, T>();
    leads_to_mut::<RwLockWriteGuard<'_, T>, T>();
}

fn of_a_part_shown<T: ?Sized, U: ?Sized + Debug>() {
    implements!(OwnedMappedMutexGuard<T, U>: Debug);
    implements!(OwnedRwLockMappedWriteGuard<T, U>: Debug);
    implements!(OwnedRwLockReadGuard<T, U>: Debug);
}

fn of_a_part_displayed<T: ?Sized, U: ?Sized + Display>() {
    implements!(OwnedMappedMutexGuard<T, U>: Display);
    implements!(OwnedRwLockMappedWriteGuard<T, U>: Display);
    implements!(OwnedRwLockReadGuard<T, U>: Display);
}

fn of_a_part<T: ?Sized, U: ?Sized>() {
    leads_to_mut::<OwnedMappedMutexGuard<T, U>, U>();
    leads_to_mut::<OwnedRwLockMappedWriteGuard<T, U>, U>();
    leads_to::<OwnedRwLockReadGuard<T, U>, U>();
}
