//! Models of how cells return to their home, with real cells on a runtime that only counts.

use std::{future::ready, panic::Location, ptr::NonNull};

use super::{Home, Origin, Schedule};
use crate::engine::{
    prim::{Arc, ids::Tally, model, thread},
    queue::inject::Inject,
    work::{
        current,
        task::{
            cell::{Label, Task},
            handle::JoinHandle,
            poll,
        },
    },
};

/// A runtime that has an intake and no workers; its drop records that its last
/// home is gone.
struct Nowhere {
    intake: Inject<Task>,
    gone: std::sync::Arc<Tally>,
}

impl Schedule for Nowhere {
    fn place(&self, task: Task, _origin: Origin) {
        // A closed intake returns the entry, and dropping it is right.
        drop(self.intake.push(task));
    }

    fn cells_wait(&self, _home: NonNull<Home>) {}
}

impl Drop for Nowhere {
    fn drop(&mut self) {
        self.gone.add();
    }
}

/// A pointer that may go to another thread.
struct Carried<T>(T);
// SAFETY: the value is a home or a cell, which the models hand over to the other thread.
unsafe impl<T> Send for Carried<T> {}

fn world() -> (NonNull<Home>, std::sync::Arc<Tally>) {
    let (home, _, gone) = world_with_intake();
    (home, gone)
}

fn world_with_intake() -> (NonNull<Home>, std::sync::Arc<Nowhere>, std::sync::Arc<Tally>) {
    let gone = std::sync::Arc::new(Tally::default());
    let nowhere = std::sync::Arc::new(Nowhere { intake: Inject::new(), gone: gone.clone() });
    (Home::new(nowhere.clone()), nowhere, gone)
}

/// Returns the handle of a task that has run, which is the only reference to it.
fn spent(home: NonNull<Home>) -> JoinHandle<()> {
    // SAFETY: the test holds the home.
    let (task, header) = unsafe { Home::spawn(home, ready(()), Label::at(Location::caller())) };
    poll::run(task, 0);
    // SAFETY: 1. this is the join reference of the new task.
    unsafe { JoinHandle::new(header) }
}

/// Closes the home as its holder does at the end.
fn end(home: NonNull<Home>) {
    // SAFETY: the test holds the home, and gives it up.
    unsafe {
        home.as_ref().refuse();
        while let Some(task) = home.as_ref().next_to_stop() {
            poll::stop(task);
        }
        Home::close(home);
    }
}

#[test]
fn cells_come_home_from_another_thread() {
    model(|| {
        let (home, gone) = world();
        let handle = spent(home);
        let other = thread::spawn(move || drop(handle));
        // Not `sweep`, which loads first: loom forgets a load as soon as another
        // thread has loaded too, and would not try the exchange in between.
        // SAFETY: this thread holds the home.
        unsafe { home.as_ref().take_returned() };
        other.join().unwrap();
        // SAFETY: 1. this thread holds the home.
        unsafe { Home::sweep(home) };
        // SAFETY: this thread holds the home.
        assert_eq!(unsafe { home.as_ref().held() }.live, 0, "the cell did not come home");
        end(home);
        assert_eq!(gone.get(), 1);
    });
}

#[test]
fn closing_against_a_late_return_frees_everything_once() {
    model(|| {
        let (home, gone) = world();
        let handle = spent(home);
        let other = thread::spawn(move || drop(handle));
        end(home);
        other.join().unwrap();
        assert_eq!(gone.get(), 1, "the home was not freed, or freed twice");
    });
}

#[test]
fn two_late_returns_free_the_home_once() {
    model(|| {
        let (home, gone) = world();
        let handles = [spent(home), spent(home)];
        end(home);
        assert_eq!(gone.get(), 0, "a home outlives nobody's cells");
        let others = handles.map(|handle| thread::spawn(move || drop(handle)));
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(gone.get(), 1);
    });
}

#[test]
fn shutdown_against_wake_drops_the_future_once() {
    model(|| {
        let (home, nowhere, gone) = world_with_intake();
        let drops = Arc::new(());
        let future = {
            let drops = drops.clone();
            async move {
                let _drops = drops;
                std::future::pending::<()>().await;
            }
        };
        // SAFETY: the test holds the home.
        let (task, header) = unsafe { Home::spawn(home, future, Label::at(Location::caller())) };
        assert!(!poll::run(task, 0));
        // SAFETY: 1. the waker has a reference of its own, which is added here.
        let waker = unsafe {
            header.as_ref().state.add_ref();
            crate::engine::work::task::waker::from_header(header)
        };
        // SAFETY: 1. this is the join reference of the new task.
        let handle = unsafe { JoinHandle::<()>::new(header) };
        let other = thread::spawn(move || waker.wake());
        // Shutdown, in the order of `pool/stop.rs`: homes, then the intake.
        // SAFETY: the test holds the home.
        unsafe { home.as_ref().refuse() };
        // SAFETY: 1. the test holds the home, and `refuse` was called.
        while let Some(task) = unsafe { home.as_ref().next_to_stop() } {
            // SAFETY: 1. the home keeps the task.
            unsafe { poll::stop(task) };
        }
        assert_eq!(Arc::strong_count(&drops), 1, "shutdown returned before the future was dropped");
        nowhere.intake.close();
        while let Some(task) = nowhere.intake.pop() {
            drop(task);
        }
        // SAFETY: 1. the test holds the home, and gives it up.
        unsafe { Home::close(home) };
        other.join().unwrap();
        drop((handle, nowhere));
        assert_eq!(gone.get(), 1);
    });
}

#[test]
fn a_cell_that_dies_on_a_foreign_core_comes_home() {
    model(|| {
        let (home, gone) = world();
        let (foreign, foreign_gone) = world();
        let handle = spent(home);
        let foreign = Carried(foreign);
        let other = thread::spawn(move || {
            let foreign = foreign;
            let Carried(foreign) = foreign;
            current::with(|current| current.home.set(Some(foreign)));
            drop(handle);
            // SAFETY: this thread holds the foreign home.
            unsafe { Home::sweep(foreign) };
            current::with(|current| current.home.set(None));
            end(foreign);
        });
        end(home);
        other.join().unwrap();
        assert_eq!(gone.get(), 1);
        assert_eq!(foreign_gone.get(), 1);
    });
}

#[cfg(not(blitz_loom))]
#[test]
fn cells_are_recycled_and_the_kept_bytes_are_bounded() {
    let (home, gone) = world();
    current::with(|current| current.home.set(Some(home)));
    let first = spent(home);
    let address = cell_of(&first);
    drop(first);
    let second = spent(home);
    assert_eq!(cell_of(&second), address, "the cell was not recycled");
    drop(second);
    let many: Vec<_> = (0..20_000).map(|_| spent(home)).collect();
    drop(many);
    // SAFETY: this thread holds the home.
    let kept = unsafe { home.as_ref().held() }.kept_bytes;
    assert!(kept > 0 && kept <= super::KEPT_BYTES, "{kept}");
    current::with(|current| current.home.set(None));
    end(home);
    assert_eq!(gone.get(), 1);
}

#[cfg(not(blitz_loom))]
fn cell_of(handle: &JoinHandle<()>) -> usize {
    handle.header_address()
}

#[cfg(not(blitz_loom))]
#[test]
#[cfg_attr(not(target_pointer_width = "64"), ignore = "it is of words of 64 bits")]
fn a_small_task_is_small() {
    // The header, and a future of 64 bytes; the stage's tag takes no room of its own.
    struct Sized64([u64; 8]);
    impl std::future::Future for Sized64 {
        type Output = ();
        fn poll(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<()> {
            assert_eq!(self.0, [0; 8]);
            std::task::Poll::Ready(())
        }
    }
    // With `tracing`, each header also holds the task's span.
    let span = if cfg!(feature = "tracing") { 24 } else { 0 };
    assert_eq!(size_of::<super::Header>(), 88 + span);
    assert!(size_of::<super::Cell<Sized64>>() <= 152 + span);
}
