//! Tests that public types are `Send`, `Sync`, `Unpin` and unwind safe where Tokio's are.

use std::{
    cell::Cell,
    fmt::Debug,
    future::Ready,
    hash::Hash,
    panic::{RefUnwindSafe, UnwindSafe},
    rc::Rc,
    sync::MutexGuard,
};

use blitz_io::{
    runtime::{
        self, Builder, EnterGuard, Handle, Runtime, RuntimeFlavor, RuntimeMetrics, TryCurrentError,
    },
    task::{
        AbortHandle, Id, JoinError, JoinHandle, JoinSet, Scope, ScopeFuture, Shield, TaskTracker,
        TaskTrackerToken, TaskTrackerWaitFuture, TrackedFuture,
    },
};

use crate::support::auto_traits::has;

/// Expands to whether a type is `Send`, `Sync`, `Unpin`, `UnwindSafe` and `RefUnwindSafe`.
macro_rules! traits_of {
    ($type:ty) => {
        [
            has!($type: Send),
            has!($type: Sync),
            has!($type: Unpin),
            has!($type: UnwindSafe),
            has!($type: RefUnwindSafe),
        ]
    };
}

const YES: bool = true;
const NO: bool = false;

#[test]
fn the_trait_check_distinguishes_yes_from_no() {
    assert_eq!(traits_of!(u8), [YES; 5]);
    assert_eq!(traits_of!(Rc<Cell<u8>>), [NO, NO, YES, NO, NO]);
    assert_eq!(traits_of!(MutexGuard<'static, u8>)[..3], [NO, YES, YES]);
}

#[test]
fn types_of_the_runtime_have_tokios_marker_traits() {
    assert_eq!(traits_of!(Runtime)[..3], [YES; 3]);
    assert_eq!(traits_of!(Handle)[..3], [YES; 3]);
    assert_eq!(traits_of!(runtime::Id), [YES; 5]);
    assert_eq!(traits_of!(RuntimeFlavor), [YES; 5]);
    assert_eq!(traits_of!(RuntimeMetrics)[..3], [YES; 3]);
    assert_eq!(traits_of!(TryCurrentError), [YES; 5]);
    assert_eq!(traits_of!(Builder)[..3], [YES, YES, YES]);
    assert_eq!(traits_of!(runtime::TaskMeta<'static>), [YES; 5]);
    // A guard belongs to the thread that entered the runtime.
    assert_eq!(traits_of!(EnterGuard<'static>)[0], NO);
}

#[test]
fn runtimes_and_handles_are_unwind_safe_as_tokios_are() {
    assert!(has!(Runtime: UnwindSafe) && has!(Runtime: RefUnwindSafe), "Runtime");
    assert!(has!(Handle: UnwindSafe) && has!(Handle: RefUnwindSafe), "Handle");
    let metrics = has!(RuntimeMetrics: UnwindSafe) && has!(RuntimeMetrics: RefUnwindSafe);
    assert!(metrics, "RuntimeMetrics");
}

#[test]
fn a_guard_can_be_shared_with_other_threads_as_tokios_can() {
    assert!(has!(EnterGuard<'static>: Sync));
}

#[test]
fn types_of_tasks_have_tokios_marker_traits() {
    assert_eq!(traits_of!(AbortHandle), [YES; 5]);
    assert_eq!(traits_of!(Id), [YES; 5]);
    assert_eq!(traits_of!(JoinError)[..3], [YES, YES, YES]);
    assert_eq!(traits_of!(JoinHandle<u8>), [YES; 5]);
    // A handle is `Send` and `Sync` if the output is `Send`, because it gives the output away and
    // lends no reference to it.
    assert_eq!(traits_of!(JoinHandle<Cell<u8>>), [YES; 5]);
    assert_eq!(traits_of!(JoinHandle<Rc<u8>>), [NO, NO, YES, YES, YES]);
    assert_eq!(traits_of!(JoinHandle<MutexGuard<'static, u8>>)[..3], [NO, NO, YES]);
    assert_eq!(traits_of!(JoinHandle<std::marker::PhantomPinned>)[..3], [YES, YES, YES]);
}

#[test]
fn a_set_has_tokios_marker_traits() {
    assert_eq!(traits_of!(JoinSet<u8>), [YES, YES, YES, NO, NO]);
    assert_eq!(traits_of!(JoinSet<Cell<u8>>), [YES, YES, YES, NO, NO]);
    assert_eq!(traits_of!(JoinSet<Rc<u8>>), [NO, NO, YES, NO, NO]);
    assert_eq!(traits_of!(JoinSet<std::marker::PhantomPinned>)[..3], [YES, YES, YES]);
}

#[test]
fn scopes_and_trackers_can_be_sent_and_shared() {
    assert_eq!(traits_of!(Scope)[..3], [YES; 3]);
    assert_eq!(traits_of!(ScopeFuture<Ready<u8>>)[..3], [YES; 3]);
    assert_eq!(traits_of!(ScopeFuture<Ready<Rc<u8>>>)[..2], [NO, NO]);
    assert_eq!(traits_of!(TaskTracker)[..3], [YES; 3]);
    assert_eq!(traits_of!(TaskTrackerToken)[..3], [YES; 3]);
    assert_eq!(traits_of!(TaskTrackerWaitFuture<'static>)[..2], [YES; 2]);
    assert_eq!(traits_of!(TrackedFuture<Ready<Rc<u8>>>)[..2], [NO, NO]);
    assert!(has!(Scope: Clone) && has!(TaskTracker: Clone) && has!(TaskTrackerToken: Clone));
    assert!(!has!(JoinSet<u8>: Clone));
}

#[test]
fn a_shield_is_what_its_future_is() {
    assert_eq!(traits_of!(Shield<Ready<u8>>)[..3], [YES, YES, YES]);
    assert_eq!(traits_of!(Shield<Ready<Cell<u8>>>)[..2], [YES, NO]);
    assert_eq!(traits_of!(Shield<Ready<Rc<u8>>>)[..2], [NO, NO]);
    assert_eq!(traits_of!(Shield<std::marker::PhantomPinned>)[2], NO);
}

#[test]
fn values_that_are_compared_copied_and_shown() {
    fn value<T: Copy + Eq + Debug>() {}
    fn key<T: Copy + Eq + Hash + Debug + std::fmt::Display>() {}
    fn error<T: std::error::Error + Send + Sync + 'static>() {}
    fn shown<T: Debug>() {}
    value::<RuntimeFlavor>();
    key::<Id>();
    key::<runtime::Id>();
    error::<JoinError>();
    error::<TryCurrentError>();
    shown::<(Runtime, Handle, Builder, EnterGuard<'static>, RuntimeMetrics)>();
    shown::<(AbortHandle, JoinHandle<Rc<u8>>)>();
    assert!(has!(Handle: Clone) && has!(AbortHandle: Clone) && has!(RuntimeMetrics: Clone));
    assert!(!has!(Runtime: Clone) && !has!(JoinHandle<u8>: Clone) && !has!(JoinError: Clone));
}

#[test]
fn futures_of_the_library_can_be_spawned() {
    fn spawnable<T: Send + 'static>(_: T) {}
    spawnable(blitz_io::task::yield_now());
    spawnable(blitz_io::task::shield(std::future::ready(1)));
    assert!(!has!(Rc<u8>: Send));
}
