//! Shows why `fiber::spawn` is `unsafe`: what safe code in other crates does wrong once its thread
//! has several stacks. Each test shows the hazard without causing the harm, because it touches no
//! value that is gone. A test that fails means that std or the compiler has changed, so that
//! `spawn` may become safe.

use std::{
    cell::Cell,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
};

use blitz_io::{
    runtime::{Builder, Runtime},
    sync::Semaphore,
};

use crate::{cancel::spawn, fiber};

fn one_fiber_thread() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).fiber_threads(1).build().unwrap()
}

/// Waits for a permit and consumes it.
fn pass(gate: &Semaphore) {
    fiber::wait(gate.acquire()).unwrap().forget();
}

/// When a thread-local's initialiser returns, std assumes that no other initialiser has run on the
/// thread meanwhile: a value that another fiber created, and has borrowed, is dropped.
#[test]
fn a_wait_in_the_initialiser_of_a_thread_local_drops_what_another_fiber_borrows() {
    /// A number that may change under a reference, so that the test has no undefined behaviour.
    struct Numbered(Cell<usize>);
    static MADE: AtomicUsize = AtomicUsize::new(0);
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    static GATES: [Semaphore; 2] = [const { Semaphore::const_new(0) }; 2];
    impl Drop for Numbered {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, SeqCst);
        }
    }
    thread_local! {
        static VALUE: Numbered = {
            let number = MADE.fetch_add(1, SeqCst);
            if number == 0 {
                // A connection that is opened when it is first used waits like this.
                pass(&GATES[0]);
            }
            Numbered(Cell::new(number))
        };
    }
    let rt = one_fiber_thread();
    let first = spawn(&rt, || {
        VALUE.with(|_| ());
        GATES[1].add_permits(1);
    });
    let second = spawn(&rt, || {
        VALUE.with(|value| {
            let inside = (value.0.get(), DROPPED.load(SeqCst));
            GATES[0].add_permits(1);
            pass(&GATES[1]);
            (inside, (value.0.get(), DROPPED.load(SeqCst)))
        })
    });
    rt.block_on(first).unwrap();
    let (before, after) = rt.block_on(second).unwrap();
    assert_eq!(before, (1, 0));
    assert_eq!(after, (0, 1), "std leaves alone what is borrowed: say so in `blitz_io::fiber`");
}

/// Lends `value` for the time of a call through a pointer in a thread-local, as some crates do.
fn with_slot<R>(slot: &Cell<*const u8>, value: &u8, f: impl FnOnce() -> R) -> R {
    struct Restore<'a>(&'a Cell<*const u8>, *const u8);
    impl Drop for Restore<'_> {
        fn drop(&mut self) {
            self.0.set(self.1);
        }
    }
    let _restore = Restore(slot, slot.replace(ptr::from_ref(value)));
    f()
}

#[test]
fn a_wait_in_the_scope_of_a_thread_local_leaves_a_pointer_to_a_frame_that_is_gone() {
    thread_local! {
        static SLOT: Cell<*const u8> = const { Cell::new(ptr::null()) };
    }
    let rt = one_fiber_thread();
    let gates: Arc<[Semaphore; 2]> = Arc::new([const { Semaphore::const_new(0) }; 2]);
    let scoped = |number: usize| {
        let (gates, (began, begins)) = (gates.clone(), mpsc::channel());
        let scope = move || {
            began.send(()).unwrap();
            pass(&gates[number]);
        };
        let fiber = spawn(&rt, move || {
            let value = 0;
            SLOT.with(|slot| with_slot(slot, &value, scope));
            ptr::from_ref(&value).addr()
        });
        begins.recv().unwrap();
        fiber
    };
    let (first, second) = (scoped(0), scoped(1));
    gates[0].add_permits(1);
    let gone = rt.block_on(first).unwrap();
    gates[1].add_permits(1);
    rt.block_on(second).unwrap();
    let left = rt.block_on(spawn(&rt, || SLOT.with(|slot| slot.get().addr()))).unwrap();
    assert_eq!(left, gone, "it was set back to what was there, of which nothing is left");
}
