//! The attributes on the real runtime.

use std::{rc::Rc, thread};

use blitz_io::{
    runtime::{Handle, RuntimeFlavor},
    task::yield_now,
};

#[blitz_io::main(worker_threads = 3, name = "three")]
async fn three() -> (usize, Option<String>) {
    let handle = Handle::current();
    (handle.metrics().num_workers(), handle.name().map(str::to_owned))
}

#[test]
fn main_builds_the_requested_runtime() {
    assert_eq!(three(), (3, Some("three".to_owned())));
}

#[blitz_io::main(flavor = "current_thread")]
async fn here() -> bool {
    // Held across an await, because the body need not be `Send`.
    let caller = Rc::new(thread::current().id());
    yield_now().await;
    *caller == thread::current().id()
}

#[test]
fn the_body_runs_on_the_callers_thread() {
    assert!(here());
}

#[blitz_io::test]
async fn a_test_has_one_thread_by_default() {
    assert_eq!(Handle::current().runtime_flavor(), RuntimeFlavor::CurrentThread);
}

#[blitz_io::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_may_have_several() {
    assert_eq!(Handle::current().runtime_flavor(), RuntimeFlavor::MultiThread);
    assert_eq!(blitz_io::spawn(async { 7 }).await.unwrap(), 7);
}

#[blitz_io::test]
#[should_panic(expected = "a runtime")]
async fn main_inside_a_runtime_panics() {
    here();
}

const MIB: usize = 1 << 20;

#[blitz_io::main(flavor = "current_thread")]
async fn large() -> u8 {
    let mut bytes = [1; 2 * MIB];
    yield_now().await;
    std::hint::black_box(&mut bytes)[MIB]
}

#[test]
fn a_large_future_is_on_the_stack_once() {
    let builder = thread::Builder::new().stack_size(3 * MIB);
    assert_eq!(builder.spawn(large).unwrap().join().unwrap(), 1);
}
