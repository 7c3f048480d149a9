//! Models of how cells return to their arena, with real cells on a runtime that only counts.

use std::{future::ready, panic::Location, ptr::NonNull, sync::Arc as Plain};

use super::{Arena, Origin, Schedule};
use crate::engine::{
    prim::{
        Arc, UnsafeCell,
        ids::{ModelEnds, Tally},
        model, thread,
    },
    queue::injector::Injector,
    work::{
        task::{
            cell::{Label, Task},
            extra::Extra,
            handle::JoinHandle,
            poll,
        },
        thread_context,
    },
};

/// A runtime that has an injector and no workers; its drop records that its last arena is gone.
struct ArenaTestScheduler {
    injector: Injector<Task>,
    gone: Plain<Tally>,
    /// The number of calls of `cells_wait`.
    notified: Plain<Tally>,
    /// The records of all cells that carry one.
    records: Vec<CellRecord>,
}

impl Schedule for ArenaTestScheduler {
    fn schedule(&self, task: Task, _origin: Origin) {
        // A closed injector returns the entry, and dropping it is right.
        drop(self.injector.push(task));
    }

    fn cells_wait(&self, _arena: NonNull<Arena>) {
        assert_eq!(self.gone.get(), 0, "the runtime is gone");
        self.notified.add();
    }
}

impl Drop for ArenaTestScheduler {
    fn drop(&mut self) {
        self.records.iter().for_each(|record| record.change(CellUse::Freed, CellUse::ArenaFreed));
        self.gone.add();
    }
}

/// The last thing that happened to a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CellUse {
    Spawned,
    Returned,
    Freed,
    ArenaFreed,
}

/// A cell's own account of its use, which the cell carries. Loom sees each change as a write, so it
/// fails a model in which one of them is not ordered after the one before. The counts of a plain
/// `Arc` order nothing in a model.
#[derive(Clone)]
struct CellRecord(Plain<UnsafeCell<CellUse>>);

// SAFETY: the content has no tie to a thread. Each change is made by the thread that has the cell, or
// by the one that frees its arena; a model fails otherwise.
unsafe impl Send for CellRecord {}
// SAFETY: a shared record gives access to `change` alone, which only the thread that has the cell
// calls, or the one that frees its arena; no reference to the content leaves it.
unsafe impl Sync for CellRecord {}

impl CellRecord {
    #[allow(clippy::arc_with_non_send_sync, reason = "the impls above are for the whole record")]
    fn new() -> Self {
        Self(Plain::new(UnsafeCell::new(CellUse::Spawned)))
    }

    #[track_caller]
    fn change(&self, from: CellUse, to: CellUse) {
        // SAFETY: the caller has the cell, or frees its arena, so no other thread makes a change.
        let before = self.0.with_mut(|content| unsafe { content.replace(to) });
        assert_eq!(before, from, "a cell was freed early, twice, or not at all");
    }
}

/// The record as the data of a task; it is dropped when the cell is freed.
struct RecordInCell(CellRecord);

impl Extra for RecordInCell {}

impl Drop for RecordInCell {
    fn drop(&mut self) {
        self.0.change(CellUse::Returned, CellUse::Freed);
    }
}

/// The handle of a task that has run. The task's cell carries a record.
struct RecordedHandle {
    handle: JoinHandle<()>,
    record: CellRecord,
}

impl RecordedHandle {
    /// Writes to the cell for the last time and gives it up.
    fn give_back(self) {
        self.record.change(CellUse::Spawned, CellUse::Returned);
        drop(self.handle);
    }
}

/// An arena and `N` tasks in it that have run.
struct RecordedArena<const N: usize> {
    arena: NonNull<Arena>,
    handles: [RecordedHandle; N],
    gone: Plain<Tally>,
    notified: Plain<Tally>,
}

impl<const N: usize> RecordedArena<N> {
    fn new() -> Self {
        let records: [_; N] = std::array::from_fn(|_| CellRecord::new());
        let (gone, notified) = <(Plain<Tally>, Plain<Tally>)>::default();
        let arena = Arena::new(Plain::new(ArenaTestScheduler {
            injector: Injector::new(),
            gone: gone.clone(),
            notified: notified.clone(),
            records: records.to_vec(),
        }));
        let handles = records.map(|record| {
            let label = Label::with(Location::caller(), RecordInCell(record.clone()));
            RecordedHandle { handle: spent_with(arena, label), record }
        });
        Self { arena, handles, gone, notified }
    }
}

/// Gives handles back on a thread that holds another arena, so that the cells return as one chain.
fn give_back_as_a_chain(handles: [RecordedHandle; 2]) {
    let (foreign, foreign_gone) = world();
    thread_context::pool::hold_arena(Some(foreign));
    handles.into_iter().for_each(RecordedHandle::give_back);
    // SAFETY: this thread holds the foreign arena.
    unsafe { Arena::sweep(foreign) };
    thread_context::pool::hold_arena(None);
    end(foreign);
    assert_eq!(foreign_gone.get(), 1);
}

/// A pointer that may go to another thread.
struct SendPtr<T>(T);
// SAFETY: the value is an arena or a cell, which the models hand over to the other thread.
unsafe impl<T> Send for SendPtr<T> {}

fn world() -> (NonNull<Arena>, Plain<Tally>) {
    let (arena, _, gone) = world_with_injector();
    (arena, gone)
}

fn world_with_injector() -> (NonNull<Arena>, Plain<ArenaTestScheduler>, Plain<Tally>) {
    let gone = Plain::new(Tally::default());
    let scheduler = Plain::new(ArenaTestScheduler {
        injector: Injector::new(),
        gone: gone.clone(),
        notified: Plain::default(),
        records: Vec::new(),
    });
    (Arena::new(scheduler.clone()), scheduler, gone)
}

/// Returns the handle of a task that has run, which is the only reference to it.
fn spent(arena: NonNull<Arena>) -> JoinHandle<()> {
    spent_with(arena, Label::at(Location::caller()))
}

fn spent_with<X: Extra>(arena: NonNull<Arena>, label: Label<X>) -> JoinHandle<()> {
    // SAFETY: the test holds the arena.
    let (task, header) = unsafe { Arena::spawn(arena, ready(()), label) };
    poll::run(task, 0);
    // SAFETY: 1. this is the join reference of the new task.
    unsafe { JoinHandle::new(header) }
}

/// Closes the arena as its holder does at the end.
fn end(arena: NonNull<Arena>) {
    // SAFETY: the test holds the arena, and gives it up.
    unsafe {
        arena.as_ref().refuse();
        while let Some(task) = arena.as_ref().next_to_stop() {
            poll::stop(task);
        }
        Arena::close(arena);
    }
}

#[test]
fn cells_return_to_their_arena_from_another_thread() {
    model(|| {
        let (arena, gone) = world();
        let handle = spent(arena);
        let other = thread::spawn(move || drop(handle));
        // Not `sweep`, which loads first: loom forgets a load as soon as another thread has loaded
        // too, and would not try the exchange in between.
        // SAFETY: this thread holds the arena.
        unsafe { arena.as_ref().take_returned() };
        other.join().unwrap();
        // SAFETY: 1. this thread holds the arena.
        unsafe { Arena::sweep(arena) };
        // SAFETY: this thread holds the arena.
        let live = unsafe { arena.as_ref().holder_state() }.live;
        assert_eq!(live, 0, "the cell did not return to its arena");
        end(arena);
        assert_eq!(gone.get(), 1);
    });
}

#[test]
fn closing_against_a_late_return_frees_everything_once() {
    model(|| {
        let (arena, gone) = world();
        let handle = spent(arena);
        let other = thread::spawn(move || drop(handle));
        end(arena);
        other.join().unwrap();
        assert_eq!(gone.get(), 1, "the arena was not freed, or freed twice");
    });
}

#[test]
fn two_late_returns_free_the_arena_once() {
    model(|| {
        let (arena, gone) = world();
        let handles = [spent(arena), spent(arena)];
        end(arena);
        assert_eq!(gone.get(), 0, "an arena was freed before its cells");
        let others = handles.map(|handle| thread::spawn(move || drop(handle)));
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(gone.get(), 1);
    });
}

#[test]
fn a_chain_and_a_cell_come_back_once_while_the_holder_sweeps() {
    model(|| {
        let RecordedArena { arena, handles: [one, two, three], gone, .. } = RecordedArena::new();
        let others = [
            thread::spawn(move || give_back_as_a_chain([one, two])),
            thread::spawn(move || three.give_back()),
        ];
        // Not `sweep`; `cells_return_to_their_arena_from_another_thread` says why.
        // SAFETY: this thread holds the arena.
        unsafe { arena.as_ref().take_returned() };
        for other in others {
            other.join().unwrap();
        }
        // SAFETY: 1. this thread holds the arena.
        unsafe { Arena::sweep(arena) };
        // SAFETY: this thread holds the arena.
        let live = unsafe { arena.as_ref().holder_state() }.live;
        assert_eq!(live, 0, "a cell did not return to its arena");
        end(arena);
        assert_eq!(gone.get(), 1);
    });
}

#[test]
fn a_chain_and_a_cell_are_freed_once_while_the_arena_closes() {
    model(|| {
        let RecordedArena { arena, handles: [one, two, three], gone, .. } = RecordedArena::new();
        let others = [
            thread::spawn(move || give_back_as_a_chain([one, two])),
            thread::spawn(move || three.give_back()),
        ];
        end(arena);
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(gone.get(), 1, "the arena was not freed, or freed twice");
    });
}

/// A chain of two weighs enough in a model. Its cells are the arena's last, so a holder that takes
/// them while it closes may free the arena before the other thread notifies the runtime.
#[test]
fn a_return_that_notifies_the_holder_keeps_the_runtime() {
    let ends = Plain::new(ModelEnds::default());
    let counted = ends.clone();
    model(move || {
        let RecordedArena { arena, handles, gone, notified } = RecordedArena::new();
        let other = thread::spawn(move || give_back_as_a_chain(handles));
        end(arena);
        other.join().unwrap();
        assert_eq!(gone.get(), 1);
        // Not if the chain was late.
        counted.count(notified.get() == 1);
    });
    ends.assert_both_came();
}

#[test]
fn shutdown_against_wake_drops_the_future_once() {
    model(|| {
        let (arena, scheduler, gone) = world_with_injector();
        let drops = Arc::new(());
        let future = {
            let drops = drops.clone();
            async move {
                let _drops = drops;
                std::future::pending::<()>().await;
            }
        };
        // SAFETY: the test holds the arena.
        let (task, header) = unsafe { Arena::spawn(arena, future, Label::at(Location::caller())) };
        assert!(!poll::run(task, 0));
        // SAFETY: 1. the waker has a reference of its own, which is added here.
        let waker = unsafe {
            header.as_ref().state.add_ref();
            crate::engine::work::task::waker::from_header(header)
        };
        // SAFETY: 1. this is the join reference of the new task.
        let handle = unsafe { JoinHandle::<()>::new(header) };
        let other = thread::spawn(move || waker.wake());
        // Shutdown, in the order of `pool/stop.rs`: arenas, then the injector.
        // SAFETY: the test holds the arena.
        unsafe { arena.as_ref().refuse() };
        // SAFETY: 1. the test holds the arena, and `refuse` was called.
        while let Some(task) = unsafe { arena.as_ref().next_to_stop() } {
            // SAFETY: 1. the arena keeps the task.
            unsafe { poll::stop(task) };
        }
        assert_eq!(Arc::strong_count(&drops), 1, "shutdown returned before the future was dropped");
        scheduler.injector.close();
        while let Some(task) = scheduler.injector.pop() {
            drop(task);
        }
        // SAFETY: 1. the test holds the arena, and gives it up.
        unsafe { Arena::close(arena) };
        other.join().unwrap();
        drop((handle, scheduler));
        assert_eq!(gone.get(), 1);
    });
}

#[test]
fn a_cell_freed_on_a_foreign_core_returns_to_its_arena() {
    model(|| {
        let (arena, gone) = world();
        let (foreign, foreign_gone) = world();
        let handle = spent(arena);
        let foreign = SendPtr(foreign);
        let other = thread::spawn(move || {
            let foreign = foreign;
            let SendPtr(foreign) = foreign;
            thread_context::pool::hold_arena(Some(foreign));
            drop(handle);
            // SAFETY: this thread holds the foreign arena.
            unsafe { Arena::sweep(foreign) };
            thread_context::pool::hold_arena(None);
            end(foreign);
        });
        end(arena);
        other.join().unwrap();
        assert_eq!(gone.get(), 1);
        assert_eq!(foreign_gone.get(), 1);
    });
}

#[cfg(not(blitz_loom))]
#[test]
fn cells_are_recycled_and_the_kept_bytes_are_bounded() {
    let (arena, gone) = world();
    thread_context::pool::hold_arena(Some(arena));
    let first = spent(arena);
    let address = cell_of(&first);
    drop(first);
    let second = spent(arena);
    assert_eq!(cell_of(&second), address, "the cell was not recycled");
    drop(second);
    let many: Vec<_> = (0..20_000).map(|_| spent(arena)).collect();
    drop(many);
    // SAFETY: this thread holds the arena.
    let kept = unsafe { arena.as_ref().holder_state() }.kept_bytes;
    assert!(kept > 0 && kept <= super::MAX_KEPT_BYTES, "{kept}");
    thread_context::pool::hold_arena(None);
    end(arena);
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
