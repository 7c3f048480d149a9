//! Shows why a fiber stays on its thread: what happens if another thread resumes its stack.
//!
//! A thread-local has a different address on each thread. The compiler assumes that a function
//! does not change its thread, so it may compute the address once. A function that is suspended
//! in between and resumed by another thread then uses the first thread's value, while all other
//! code on that thread uses the second's. With a `Cell` in the thread-local, that is a data race
//! in code without `unsafe`.
//!
//! No part of blitz-io can do this; the test moves a bare coroutine by force.

use std::{cell::Cell, thread};

use corosensei::{Coroutine, Yielder};

use crate::plain_stack::PlainStack;

thread_local! {
    static VALUE: Cell<u64> = const { Cell::new(0) };
}

struct Moved<T>(T);

// SAFETY: unsound on purpose: a coroutine must not move between threads, as this test shows.
unsafe impl<T> Send for Moved<T> {}

/// Adds one through a reference to the thread-local, so that the caller computes its address.
#[inline(never)]
fn add_one(value: &Cell<u64>) -> u64 {
    value.set(value.get() + 1);
    value.get()
}

/// Uses the thread-local before and after a suspension, as correct code would.
#[inline(never)]
fn adds_twice(yielder: &Yielder<(), ()>) -> u64 {
    VALUE.with(add_one);
    yielder.suspend(());
    VALUE.with(add_one)
}

#[test]
#[cfg_attr(
    any(debug_assertions, not(all(target_os = "linux", target_arch = "x86_64"))),
    ignore = "only optimised code keeps the address, and only here it is known how"
)]
fn a_stack_that_changes_its_thread_uses_the_thread_local_of_the_first() {
    let stack = PlainStack(vec![0u128; 16 * 1024].into());
    let mut coroutine = Coroutine::with_stack(stack, |yielder, ()| adds_twice(yielder));
    assert!(coroutine.resume(()).as_yield().is_some());
    assert_eq!(VALUE.with(Cell::get), 1);
    let moved = Moved(coroutine);
    let there = thread::spawn(move || {
        let moved = moved;
        let Moved(mut coroutine) = moved;
        let seen = coroutine.resume(()).as_return().unwrap();
        (seen, VALUE.with(Cell::get))
    });
    let (seen, theirs) = there.join().unwrap();
    // If each access used the thread it runs on, the second thread's value would be one, and the
    // value that was read there as well.
    assert_eq!(theirs, 0, "the second thread's value was touched: the address was computed anew");
    assert_eq!(seen, 2, "what was read on the second thread is the first thread's");
    assert_eq!(VALUE.with(Cell::get), 2, "the second thread wrote to the first thread's");
}
