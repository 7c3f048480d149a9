//! Arenas: where task cells are allocated and listed, and where their memory returns to.
//!
//! Every core has an arena, and threads outside of the pool share a few behind locks. The
//! thread that holds the core (or the lock) *holds* the arena: it alone makes cells, lists
//! them and frees them, with plain loads and stores. All other threads only return cells.
//!
//! # Protocol
//! A cell without references is returned to its arena:
//!
//! ```text
//! on a thread that holds its arena   off the list, onto the free list of its size
//! on a thread that holds another     into the outbox of the arena it holds; if full, pushed
//!                                    onto `returned` of the cells' arena as one chain
//! on any other thread                pushed onto `returned` alone
//! the holder, now and then           takes all of `returned`, frees it as its own (a *sweep*)
//! ```
//! A chain is a cell or several, linked. The thread that returns it has the cells, and these keep
//! the arena, until the exchange of R3:
//!
//! ```text
//! A thread that returns a chain               The holder that takes cells back
//! R1 reads `returned`; at CLOSED goes to L1   S1 swaps `returned` for null
//! R2 links the last cell to what it read      S2 follows the links and frees each cell
//! R3 exchanges what it read for the first
//!    cell; if that fails, back to R1
//! ```
//! `returned` is a stack that is only ever taken whole, so it has no ABA problem: if R3 succeeds,
//! what R1 read is the top, whatever happened in between, and R2 has linked it. R3 releases and S1
//! acquires, so the holder sees the links and everything else that was done with a cell. R3s that
//! follow each other continue the release sequence of the first, so S1 sees the lower cells, too.
//!
//! Closing (shutdown), by the holder, and a thread that comes late:
//! ```text
//! C1 refuse new tasks; stop every listed      L1 free the chain
//!    one; cells freed meanwhile stay in       L2 remaining -= its cells; at zero, free the
//!    `returned`                                  arena
//! C2 remaining = cells that exist + 1
//! C3 swap `returned` for CLOSED, free
//!    what was in it
//! C4 remaining -= what was freed + 1; at
//!    zero, free the arena
//! ```
//! CLOSED stays, so a chain is in what C3 takes or is freed by L1, never both. C2 happens before C3,
//! so no thread counts down a `remaining` that is not set yet.
//!
//! # Invariants
//! - A cell is on the list of its arena from its creation until its arena frees it, or
//!   until the arena is closed. So shutdown finds every task that is alive.
//! - The arena lives as long as any of its cells, and keeps its runtime alive.
//! - A thread that returns a chain does not use the arena after R3, because the holder may close
//!   and free it.
//!
//! # Rejected
//! One list behind sharded locks, with a reference and a clone of the runtime's handle in each
//! task: that costs four contended operations a task more.
//!
//! # Checked by
//! `cells_return_to_their_arena_from_another_thread`,
//! `closing_against_a_late_return_frees_everything_once`,
//! `two_late_returns_free_the_arena_once`, `a_cell_freed_on_a_foreign_core_returns_to_its_arena`,
//! `a_chain_and_a_cell_come_back_once_while_the_holder_sweeps`,
//! `a_chain_and_a_cell_are_freed_once_while_the_arena_closes`,
//! `a_return_that_notifies_the_holder_keeps_the_runtime`;
//! weakened as `give_back_publishes`, `take_back_sees`, `close_sees`, `close_publishes`,
//! `late_return_sees_closed`, `late_return_counts`, `count_down_orders`.

use std::{
    alloc::{Layout, alloc, dealloc, handle_alloc_error},
    future::Future,
    num::NonZeroU64,
    ptr::{self, NonNull},
    sync::Arc,
};

use super::{
    cell::{Cell, CellParts, Header, Id, Label, ListedTask, Task},
    extra::Extra,
    hooks::Hooks,
};
use crate::engine::{
    prim::{
        AtomicPtr, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
        UnsafeCell,
        biased::BiasedLock,
        discard, ids,
        pad::CachePadded,
        weakened,
    },
    queue::list::List,
    work::thread_context::{self, Inside},
};

/// The reason that an entry is placed, by which the runtime chooses a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A new task.
    Spawned,
    /// A waker woke the task.
    Woken,
    /// The task was woken while it was polled.
    WokenInPoll,
    /// The task yielded, so it goes behind the others.
    Yielded,
}

impl Origin {
    /// Returns true for a task that has just been polled: it goes behind the others.
    #[inline]
    pub(crate) fn is_after_poll(self) -> bool {
        matches!(self, Self::WokenInPoll | Self::Yielded)
    }
}

/// The services of a runtime that its arenas use.
pub(crate) trait Schedule: Send + Sync {
    /// Puts the entry where a thread of the runtime will find it.
    fn schedule(&self, task: Task, origin: Origin);

    /// Schedules the entry on behalf of code that holds an [`Inside`] and is done with it.
    fn schedule_inside(&self, task: Task, origin: Origin, inside: Inside) {
        drop(inside);
        self.schedule(task, origin);
    }

    /// Schedules the entry of a task that was woken by a thread without a core of this runtime.
    fn schedule_remote(&self, task: Task) {
        self.schedule(task, Origin::Woken);
    }

    /// Called when many cells wait in `returned` of `arena`: makes the arena's holder take them.
    /// The arena itself may be gone by now.
    fn cells_wait(&self, arena: NonNull<Arena>);

    /// Returns the user's task hooks; called once by each new arena.
    fn hooks(&self) -> Option<Arc<Hooks>> {
        None
    }

    /// Called when a task panicked in its poll or in its drop, before any handle can see that.
    fn task_panicked(&self) {}
}

/// Allocates and lists the tasks of a core, and takes their cells back.
pub(crate) struct Arena {
    /// Written by threads that return cells, and so apart from the holder's part.
    returns: CachePadded<ReturnedCells>,
    /// Read by threads that poll or wake a task of this arena, and so apart from the fields that
    /// the holder writes for each task.
    runtime: CachePadded<RuntimeRef>,
    /// The number of cells that still exist, after closing.
    remaining: AtomicUsize,
    /// Guards the list of tasks against readers on other threads.
    list_lock: BiasedLock,
    tasks: UnsafeCell<List<ListedTask>>,
    holder_state: UnsafeCell<HolderState>,
    /// Nonzero if a model has a reader. It is not one of the model's atomics: it is set before
    /// threads start.
    #[cfg(all(blitz_loom, test))]
    pub(crate) readers: ids::Tally,
}

// SAFETY: `holder_state` is touched only by the holder, and its content may move between threads
// with the right to hold. `scheduler` points into `schedule`, which is `Send` and `Sync`.
unsafe impl Send for Arena {}
// SAFETY: a shared arena gives access to atomics, to `schedule`, which is `Sync`, and to the
// list and `holder_state`, which only the holder changes, the list under the lock `list_lock`.
unsafe impl Sync for Arena {}

/// The runtime that an arena belongs to.
struct RuntimeRef {
    schedule: Arc<dyn Schedule>,
    /// The value of `schedule`: an `Arc` of a trait object must compute where its value begins.
    scheduler: NonNull<dyn Schedule>,
    hooks: Option<Arc<Hooks>>,
}

/// The part of an arena that other threads write.
struct ReturnedCells {
    /// The stack of cells that were returned, or CLOSED.
    returned: AtomicPtr<Header>,
    /// The approximate number of cells in `returned`, by [`weight`].
    waiting: AtomicUsize,
}

/// The part of an arena that only its holder uses.
struct HolderState {
    free: [FreeList; CLASSES],
    /// The bytes of memory in `free`.
    kept_bytes: usize,
    /// The number of cells that exist.
    live: usize,
    ids: std::ops::Range<u64>,
    outbox: Outbox,
    closed: bool,
}

/// The number of size classes. Cells are allocated in steps of 16 bytes up to 1 KiB; the
/// sizes are 8 more than a multiple of 16, because that is what glibc's chunks hold.
const CLASSES: usize = 64;
const CLASS_STEP: usize = 16;
const CLASS_SHIFT: usize = 8;
/// The alignment of every recycled cell. `malloc` aligns to at least as much.
const CLASS_ALIGN: usize = 16;

/// The most bytes of free cells that an arena keeps: 6,900 small tasks. Picked so that a
/// hundred cores keep a hundred megabytes at the most.
const MAX_KEPT_BYTES: usize = 1 << 20;

/// The number of cells of another arena that a core collects before it returns them, which
/// amortises one contended exchange. Picked, not measured further.
const OUTBOX_CELLS: usize = 32;

/// The weight of cells that may wait in `returned` before the holder is notified: this many
/// small cells, or larger ones of a mebibyte together.
const MAX_WAITING_WEIGHT: usize = if cfg!(blitz_loom) { 2 } else { 1024 };
/// The number of bytes that weigh as much as a cell.
const BYTES_PER_WEIGHT: usize = 1024;

/// The number of task IDs that an arena takes at a time: one shared operation in a thousand spawns.
const IDS: u64 = 1024;

impl Arena {
    /// Creates an arena for the tasks of `schedule`. It frees itself after `close`.
    pub(crate) fn new(schedule: Arc<dyn Schedule>) -> NonNull<Self> {
        let holder_state = HolderState {
            free: [const { FreeList::new() }; CLASSES],
            kept_bytes: 0,
            live: 0,
            ids: 0..0,
            outbox: Outbox::empty(),
            closed: false,
        };
        let arena = Self {
            returns: CachePadded::new(ReturnedCells {
                returned: AtomicPtr::new(ptr::null_mut()),
                waiting: AtomicUsize::new(0),
            }),
            remaining: AtomicUsize::new(0),
            runtime: CachePadded::new(RuntimeRef {
                hooks: schedule.hooks(),
                scheduler: NonNull::from_ref(&*schedule),
                schedule,
            }),
            list_lock: BiasedLock::new(),
            tasks: UnsafeCell::new(List::new()),
            holder_state: UnsafeCell::new(holder_state),
            #[cfg(all(blitz_loom, test))]
            readers: ids::Tally::default(),
        };
        NonNull::from(Box::leak(Box::new(arena)))
    }

    /// Returns the user's task hooks, if there are any.
    #[inline]
    pub(crate) fn hooks(&self) -> Option<&Hooks> {
        self.runtime.hooks.as_deref()
    }

    #[inline]
    pub(crate) fn scheduler(&self) -> &dyn Schedule {
        // SAFETY: the `Arc` in `schedule` keeps its value alive.
        unsafe { self.runtime.scheduler.as_ref() }
    }

    /// Creates a task, listed and queued. The caller must schedule the returned entry; the returned
    /// pointer is the `JoinHandle`'s reference.
    ///
    /// # Safety
    /// 1. The caller holds the arena, and nothing of it is borrowed.
    #[inline]
    pub(crate) unsafe fn spawn<F: Future, X: Extra>(
        arena: NonNull<Self>,
        future: F,
        label: Label<X>,
    ) -> (Task, NonNull<Header>) {
        // SAFETY: an arena lives as long as it is held.
        let this = unsafe { arena.as_ref() };
        // SAFETY: 1. our caller holds the arena, and nothing of it is borrowed.
        let memory = unsafe { this.allocate(Layout::new::<Cell<F, X>>()) };
        // SAFETY: 1. our caller holds the arena. 2. no other borrow of it is alive.
        let holder_state = unsafe { this.holder_state() };
        #[cfg(feature = "tracing")]
        let id = label.span_info.map_or_else(|| holder_state.next_id(), |info| info.task);
        #[cfg(not(feature = "tracing"))]
        let id = holder_state.next_id();
        let parts = CellParts { arena, id, label };
        // SAFETY: 1. the memory is fresh, or recycled from a cell of its class, so it is ours and
        // large enough.
        let header = unsafe { Cell::create(memory, future, parts) };
        holder_state.live += 1;
        // SAFETY: 1. our caller holds the arena, and the closure does not use it.
        unsafe { this.change_list(|tasks| tasks.push_front(ListedTask(header))) };
        // SAFETY: 1. a new cell has QUEUED set; this is its one entry.
        (unsafe { Task::new(header) }, header)
    }

    /// Returns memory for a cell. The allocator may be a user's, so no borrow of `holder_state` is
    /// alive while it runs.
    ///
    /// # Safety
    /// 1. The caller holds the arena, and nothing of it is borrowed.
    #[inline]
    unsafe fn allocate(&self, layout: Layout) -> NonNull<u8> {
        let (layout, class) = classify(layout);
        let Some(class) = class else { return allocate_fresh(layout) };
        // SAFETY: 1. our caller holds the arena. 2. no other borrow of it is alive.
        if let Some(memory) = unsafe { self.holder_state() }.take_free(class, layout) {
            return memory;
        }
        // Relaxed: a hint. Without it a holder that spawns in one long poll would never reuse
        // the cells that other threads have returned meanwhile.
        if !self.returns.returned.load(Relaxed).is_null() {
            // SAFETY: 1. our caller holds the arena, and nothing of it is borrowed.
            unsafe { self.take_returned() };
            // SAFETY: 1. our caller holds the arena. 2. no other borrow of it is alive.
            if let Some(memory) = unsafe { self.holder_state() }.take_free(class, layout) {
                return memory;
            }
        }
        allocate_fresh(layout)
    }

    /// Frees the cells that were returned, and sends the cells of other arenas to them. Sending
    /// comes last because it may free another runtime and call users' hooks, which may block in
    /// place and end this arena.
    ///
    /// # Safety
    /// 1. The caller holds the arena, and nothing of it is borrowed.
    #[inline]
    pub(crate) unsafe fn sweep(arena: NonNull<Self>) {
        let outgoing = {
            // SAFETY: an arena lives as long as it is held.
            let this = unsafe { arena.as_ref() };
            // Relaxed: a hint; `take_returned` reads it again.
            if !this.returns.returned.load(Relaxed).is_null() {
                // SAFETY: 1. our caller holds the arena, and nothing of it is borrowed.
                unsafe { this.take_returned() };
            }
            // SAFETY: 1. our caller holds the arena. 2. no other borrow of it is alive.
            unsafe { this.holder_state() }.outbox.take()
        };
        outgoing.send();
    }

    /// Returns true if enough cells wait in `returned` that the holder should sweep.
    pub(crate) fn needs_sweep(&self) -> bool {
        // Relaxed: ordered by the token that wakes the holder. The count alone is not enough:
        // cells that came while it was reset have been taken but stay counted.
        self.returns.waiting.load(Relaxed) >= MAX_WAITING_WEIGHT
            && !self.returns.returned.load(Relaxed).is_null()
    }

    /// Refuses new tasks from now on: C1.
    ///
    /// # Safety
    /// 1. The caller holds the arena, and nothing of it is borrowed.
    pub(crate) unsafe fn refuse(&self) {
        // SAFETY: 1. our caller holds the arena. 2. no other borrow of it is alive.
        unsafe { self.holder_state() }.closed = true;
    }

    /// Takes one of the remaining tasks off the list, for `poll::stop`: C1. The caller must not
    /// hold a lock while it stops the task, because that runs user code. Cells that are freed
    /// from now on wait in `returned`, so this one stays.
    ///
    /// # Safety
    /// 1. The caller holds the arena, and nothing of it is borrowed; `refuse` was called.
    pub(crate) unsafe fn next_to_stop(&self) -> Option<NonNull<Header>> {
        // SAFETY: 1. our caller holds the arena. 2. no other borrow of it is alive.
        let holder_state = unsafe { self.holder_state() };
        debug_assert!(holder_state.closed, "stopping tasks of an arena that takes new ones");
        // SAFETY: 1. our caller holds the arena, and the closure does not use it.
        unsafe { self.change_list(List::pop_front) }.map(|ListedTask(task)| task)
    }

    /// Closes the arena: C2 to C4. It must not be used afterwards.
    ///
    /// # Safety
    /// 1. The caller holds the arena, and nothing of it is borrowed; `next_to_stop` has returned
    ///    `None`; and the caller gives up the right to hold it.
    pub(crate) unsafe fn close(arena: NonNull<Self>) {
        // SAFETY: our caller holds the arena, which keeps it alive until C4.
        let this = unsafe { arena.as_ref() };
        let (outgoing, mut free, live) = {
            // SAFETY: 1. our caller holds the arena. 2. no other borrow of it is alive.
            let holder_state = unsafe { this.holder_state() };
            let free =
                std::mem::replace(&mut holder_state.free, [const { FreeList::new() }; CLASSES]);
            (holder_state.outbox.take(), free, holder_state.live)
        };
        outgoing.send();
        free.iter_mut().enumerate().for_each(|(class, list)| list.empty(class));
        // C2. Relaxed: published by C3.
        this.remaining.store(live + 1, Relaxed);
        let order = match () {
            () if weakened!("close_sees") => Release,
            () if weakened!("close_publishes") => Acquire,
            () => AcqRel,
        };
        // C3. AcqRel: publishes `remaining` to threads that find CLOSED, and sees what other
        // threads did with the cells they returned. Pairs with `push_returned`, both ways.
        let mut next = this.returns.returned.swap(CLOSED.as_ptr(), order);
        let mut freed = 1;
        while let Some(cell) = NonNull::new(next) {
            // SAFETY: the stack was taken whole; the cell is ours.
            next = unsafe { next_returned(cell) };
            // SAFETY: the cell is ours, from a stack that was taken whole, and no list has it.
            unsafe {
                Header::drop_extra(cell);
                release_memory(cell);
            }
            freed += 1;
        }
        // C4.
        // SAFETY: 1. the counted cells are freed; the additional one stands for the holder.
        unsafe { Self::count_down(arena, freed) };
    }

    /// Counts `remaining` down, and frees the arena at zero.
    ///
    /// # Safety
    /// 1. The caller freed `count` cells of a closed arena; or it is the closing holder, which
    ///    counts as one more.
    unsafe fn count_down(arena: NonNull<Self>, count: usize) {
        // SAFETY: by obligation 1 `remaining` is not zero yet, so the arena is alive.
        let remaining = unsafe { &arena.as_ref().remaining };
        let order = if weakened!("count_down_orders") { Relaxed } else { AcqRel };
        // C4, L2. AcqRel: every thread's last use of the arena happens before it is freed. Pairs
        // with itself.
        if remaining.fetch_sub(count, order) == count {
            // The arena may hold the last reference to its runtime, and so to users' hooks: a
            // panic of theirs must not reach the worker that happens to free it.
            // SAFETY: no cell and no holder is left; the pointer came from `Box::leak`.
            discard(unsafe { Box::from_raw(arena.as_ptr()) });
        }
    }

    /// Changes the list of tasks, excluding readers: one side waits for the other.
    ///
    /// # Safety
    /// 1. The caller holds the arena, and `change` does not access the list in another way.
    #[inline(always)]
    unsafe fn change_list<R>(&self, change: impl FnOnce(&mut List<ListedTask>) -> R) -> R {
        // SAFETY: obligation 1: we hold the arena, and `change` does not access the list in another
        // way; and the lock below keeps readers out.
        let change = || self.tasks.with_mut(|tasks| change(unsafe { &mut *tasks }));
        // The lock has models of its own; most models of arenas have no reader.
        #[cfg(all(blitz_loom, test))]
        if self.readers.get() == 0 {
            return change();
        }
        self.list_lock.run_as_owner(change)
    }

    /// Calls `f` with every task that is alive, and some that are about to be freed. Returns
    /// false if the list could not be locked. No code but the engine's may run inside `f`,
    /// because the holder may be waiting.
    ///
    /// # Safety
    /// 1. The arena is not closed meanwhile. 2. There is one reader at a time.
    pub(crate) unsafe fn read_tasks(&self, mut f: impl FnMut(NonNull<Header>)) -> bool {
        let was_read = self.list_lock.run_as_reader(|| {
            // SAFETY: the holder changes the list only while it owns the lock, and now the lock
            // is a reader's. Members are alive until they leave the list.
            self.tasks.with(|tasks| unsafe { (*tasks).for_each(&mut f) });
        });
        was_read.is_some()
    }

    /// Calls `f` with every listed task. No code but the engine's may run inside `f`.
    ///
    /// # Safety
    /// 1. The caller holds the arena, and `f` does not access the list.
    pub(crate) unsafe fn for_each_task(&self, f: impl FnMut(NonNull<Header>)) {
        // SAFETY: 1. our caller holds the arena, and `f` does not use it.
        unsafe { self.change_list(|tasks| tasks.for_each(f)) };
    }

    /// Returns the holder's part.
    ///
    /// # Safety
    /// 1. The caller holds the arena. 2. No other borrow of it is alive.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "the right to hold is the borrow; see 2.")]
    unsafe fn holder_state(&self) -> &mut HolderState {
        // SAFETY: obligations 1 and 2: the caller holds the arena, and this is the only borrow.
        self.holder_state.with_mut(|holder_state| unsafe { &mut *holder_state })
    }

    /// Frees all cells in `returned`.
    ///
    /// # Safety
    /// 1. The caller holds the arena, and nothing of it is borrowed.
    #[cold]
    unsafe fn take_returned(&self) {
        // SAFETY: 1. our caller holds the arena. 2. no other borrow of it is alive.
        if unsafe { self.holder_state() }.closed {
            return;
        }
        // Relaxed: only a count for `cells_wait`.
        self.returns.waiting.store(0, Relaxed);
        let order = if weakened!("take_back_sees") { Relaxed } else { Acquire };
        // S1. Acquire: sees what other threads did with the cells before they returned them. Pairs
        // with the Release in `push_returned`.
        let mut next = self.returns.returned.swap(ptr::null_mut(), order);
        while let Some(cell) = NonNull::new(next) {
            // S2.
            // SAFETY: the stack was taken whole; the cell is ours.
            next = unsafe { next_returned(cell) };
            // SAFETY: 1. our caller holds the arena. 2. the cell was returned to this arena, and is
            // ours.
            unsafe { self.recycle(cell) };
        }
    }

    /// Takes a cell off the list; its memory is kept for the next task, or released.
    ///
    /// # Safety
    /// 1. The caller holds the arena, and nothing of it is borrowed. 2. The cell is of this arena,
    ///    listed, and the caller's.
    #[inline]
    unsafe fn recycle(&self, cell: NonNull<Header>) {
        // SAFETY: obligations 1 and 2: we hold the arena, and the cell is on its list.
        unsafe {
            self.holder_state().live -= 1;
            self.change_list(|tasks| tasks.remove(cell));
        }
        // SAFETY: obligation 2: the cell is ours; and no reader can find it in the list any more.
        unsafe { Header::drop_extra(cell) };
        // SAFETY: obligation 1: we hold the arena; and the cell is ours and not listed any more.
        if !unsafe { self.holder_state().keep(cell) } {
            // SAFETY: obligation 2: the cell is ours, and it is on no list any more.
            unsafe { release_memory(cell) };
        }
    }

    /// Returns a chain of cells that ends in `last` to their arena; `weight` is that of all: R1 to
    /// R3.
    ///
    /// # Safety
    /// 1. The caller freed the `count` cells from `first` to `last`, linked, all of this arena, and
    ///    gives them up.
    unsafe fn push_returned(
        arena: NonNull<Self>,
        (first, last): (NonNull<Header>, NonNull<Header>),
        count: usize,
        weight: usize,
    ) {
        // SAFETY: the cells keep the arena alive until they are pushed.
        let this = unsafe { arena.as_ref() };
        // Relaxed: only a count; it must come first, since the arena may be gone after
        // the exchange.
        let before = this.returns.waiting.fetch_add(weight, Relaxed);
        let crossed =
            before.wrapping_add(weight) / MAX_WAITING_WEIGHT != before / MAX_WAITING_WEIGHT;
        // The runtime is kept by this clone, not by the arena.
        let schedule = crossed.then(|| this.runtime.schedule.clone());
        // R1. Relaxed: a guess; and once CLOSED it stays so.
        let mut top = this.returns.returned.load(Relaxed);
        loop {
            if top == CLOSED.as_ptr() {
                // Acquire: the guess above was Relaxed, and `free_late` needs what the closer has
                // done: it has read these cells, which are freed now, and has written `remaining`.
                // Pairs with the AcqRel in `close`. A load and no fence, because ThreadSanitizer
                // does not know what a fence orders.
                let order = if weakened!("late_return_sees_closed") { Relaxed } else { Acquire };
                let closed = this.returns.returned.load(order);
                debug_assert_eq!(closed, CLOSED.as_ptr(), "a closed arena stays closed");
                discard(schedule);
                // SAFETY: 1. our obligation 1 is that of `free_late`: the chain is ours and has
                // `count` cells.
                return unsafe { free_late(arena, first, count) };
            }
            // R2.
            // SAFETY: obligation 1: the cells are ours, so is the link until the exchange succeeds.
            unsafe { last.as_ref().link.set(NonNull::new(top)) };
            let order = if weakened!("give_back_publishes") { Relaxed } else { Release };
            // R3. Release: publishes the cells' contents. Pairs with the Acquire in `take_returned`
            // and the AcqRel in `close`. Relaxed on failure: another guess; the cell that it may
            // name is not read here.
            let pushed =
                this.returns.returned.compare_exchange_weak(top, first.as_ptr(), order, Relaxed);
            match pushed {
                Ok(_) => break,
                Err(seen) => top = seen,
            }
        }
        if let Some(schedule) = schedule {
            schedule.cells_wait(arena);
            discard(schedule);
        }
    }
}

/// Frees cells that were returned after their arena was closed: L1 and L2.
///
/// # Safety
/// 1. The obligation of [`Arena::push_returned`].
#[cold]
unsafe fn free_late(arena: NonNull<Arena>, first: NonNull<Header>, count: usize) {
    let mut next = first.as_ptr();
    for _ in 0..count {
        // SAFETY: obligation 1: the chain is ours and has `count` cells.
        unsafe {
            let cell = NonNull::new_unchecked(next);
            next = next_returned(cell);
            Header::drop_extra(cell);
            release_memory(cell);
        }
    }
    if weakened!("late_return_counts") {
        return;
    }
    // SAFETY: 1. we freed `count` cells of a closed arena.
    unsafe { Arena::count_down(arena, count) };
}

/// The mark of a closed arena: an address that no cell has.
static CLOSED_MARK: u8 = 0;
const CLOSED: NonNull<Header> = NonNull::from_ref(&CLOSED_MARK).cast();

/// Returns true if this thread holds a core of the task's runtime, which therefore cannot go
/// away meanwhile. Must be called [inside](thread_context::inside).
#[inline]
pub(crate) fn is_of_this_runtime(task: NonNull<Header>) -> bool {
    let Some(held_arena) = thread_context::pool::held().arena else { return false };
    // SAFETY: the caller's reference keeps the task alive, and the task its arena.
    let arena = unsafe { task.as_ref() }.arena;
    // SAFETY: a held arena is alive.
    arena == held_arena
        || unsafe { ptr::addr_eq(arena.as_ref().scheduler(), held_arena.as_ref().scheduler()) }
}

/// Returns a cell without references to its arena.
///
/// # Safety
/// 1. A transition of the state required this of the caller, once. 2. The output was dropped
///    or taken, and so was the join waker.
#[inline]
pub(crate) unsafe fn free(cell: NonNull<Header>) {
    // SAFETY: 1. a transition required this of our caller once, and one of the two functions is
    // called. 2. Output and join waker are gone.
    // (The second one has a slower way in; it is a function of its own, so that the first saves
    // fewer registers.)
    unsafe {
        match thread_context::try_inside() {
            Some(inside) => free_inside(cell, inside),
            None => free_slow(cell),
        }
    }
}

/// Does what [`free`] does when [`thread_context::try_inside`] returned `None`.
///
/// # Safety
/// 1. A transition of the state required this of the caller, once. 2. The output was dropped or
///    taken, and so was the join waker.
#[cold]
unsafe fn free_slow(cell: NonNull<Header>) {
    // SAFETY: 1. a transition required this of our caller, once. 2. Output and join waker are gone.
    unsafe { free_inside(cell, thread_context::inside()) };
}

/// Does what [`free`] does while an [`Inside`] keeps the core pointers of this thread valid.
///
/// # Safety
/// 1. A transition of the state required this of the caller, once. 2. The output was dropped or
///    taken, and so was the join waker.
#[inline(always)]
unsafe fn free_inside(cell: NonNull<Header>, inside: Inside) {
    // SAFETY: obligation 1: the cell is ours.
    let arena = unsafe { cell.as_ref() }.arena;
    let Some(held_arena) = thread_context::pool::held().arena else {
        // The last cell may free a runtime and call users' hooks, which must not run inside.
        drop(inside);
        // SAFETY: 1. the cell is ours by obligation 1, and makes a chain of one.
        return unsafe { Arena::push_returned(arena, (cell, cell), 1, weight(cell)) };
    };
    // SAFETY: 1. this thread holds `held_arena`. 2. no borrow of it is alive, because none is kept
    // while other code runs.
    if held_arena == arena && !unsafe { held_arena.as_ref().holder_state() }.closed {
        // SAFETY: 1. this thread holds the arena. 2. by obligation 1 the cell is ours.
        return unsafe { held_arena.as_ref().recycle(cell) };
    }
    // SAFETY: this thread holds `held_arena` and no borrow of it is alive; the cell is ours by
    // obligation 1, of `arena`, and given up.
    let outgoing = unsafe { held_arena.as_ref().holder_state().outbox.put(cell, arena) };
    drop(inside);
    if let Some(outgoing) = outgoing {
        outgoing.send();
    }
}

/// Sweeps the arena that this thread holds.
pub(crate) fn sweep_held_arena() {
    if let Some(arena) = thread_context::pool::held().arena {
        // SAFETY: 1. this thread holds the arena, and no borrow of it is alive.
        unsafe { Arena::sweep(arena) };
    }
}

/// Returns true if the arena that this thread holds is worth a sweep.
pub(crate) fn held_arena_needs_sweep() -> bool {
    let arena = thread_context::pool::held().arena;
    // SAFETY: a held arena is alive.
    arena.is_some_and(|arena| unsafe { arena.as_ref() }.needs_sweep())
}

impl HolderState {
    /// Takes memory of that class off its free list, if some is kept.
    #[inline]
    fn take_free(&mut self, class: usize, layout: Layout) -> Option<NonNull<u8>> {
        let memory = self.free[class].pop()?;
        self.kept_bytes -= layout.size();
        Some(memory)
    }

    #[inline]
    fn next_id(&mut self) -> Id {
        let id = self.ids.next().unwrap_or_else(|| {
            let start = ids::take(IDS);
            self.ids = start + 1..start + IDS;
            start
        });
        Id::new(NonZeroU64::new(id).expect("2^64 tasks were spawned"))
    }

    /// Keeps the memory of a cell for the next task. Returns false if enough is kept; then the
    /// caller must release the memory.
    ///
    /// # Safety
    /// 1. The cell is of this arena, no longer listed, and the caller's.
    #[inline]
    #[must_use]
    unsafe fn keep(&mut self, cell: NonNull<Header>) -> bool {
        // SAFETY: obligation 1: the cell is the caller's, so its header can be read.
        let (layout, class) = classify(unsafe { cell.as_ref() }.vtable.layout);
        let Some(class) = class else { return false };
        if self.kept_bytes + layout.size() > MAX_KEPT_BYTES {
            return false;
        }
        self.kept_bytes += layout.size();
        // SAFETY: 1. the memory is ours by obligation 1, of that class, and not used any more.
        unsafe { self.free[class].push(cell.cast()) };
        true
    }
}

/// Returns the layout to allocate for a cell, and its class if cells like it are recycled.
#[inline(always)]
fn classify(layout: Layout) -> (Layout, Option<usize>) {
    let class = layout.size().saturating_sub(CLASS_SHIFT).div_ceil(CLASS_STEP);
    if layout.align() > CLASS_ALIGN || class >= CLASSES || cfg!(blitz_loom) {
        return (layout, None);
    }
    (class_layout(class), Some(class))
}

#[inline(always)]
fn class_layout(class: usize) -> Layout {
    Layout::from_size_align(class * CLASS_STEP + CLASS_SHIFT, CLASS_ALIGN)
        .expect("a class is at most a kilobyte")
}

fn allocate_fresh(layout: Layout) -> NonNull<u8> {
    // SAFETY: a cell has a header, so its size is not zero.
    NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Returns a cell's memory to the allocator.
///
/// # Safety
/// 1. The cell is the caller's, and on no list.
unsafe fn release_memory(cell: NonNull<Header>) {
    // SAFETY: obligation 1: the cell is the caller's, so its header can be read.
    let (layout, _) = classify(unsafe { cell.as_ref() }.vtable.layout);
    // Nothing in a header needs dropping, but model builds keep records of its atomics and cells.
    #[cfg(blitz_loom)]
    // SAFETY: obligation 1: the cell is the caller's, and its header is not used again.
    unsafe {
        cell.drop_in_place();
    }
    // SAFETY: obligation 1: the cell is the caller's; and it was allocated with that layout.
    unsafe { dealloc(cell.as_ptr().cast(), layout) };
}

/// Returns the weight of a cell that waits for its holder: one, and more for a large cell,
/// which may have held a large output.
///
/// # Safety
/// 1. The cell is the caller's.
#[inline]
unsafe fn weight(cell: NonNull<Header>) -> usize {
    // SAFETY: obligation 1: the cell is the caller's, so its header can be read.
    1 + unsafe { cell.as_ref() }.vtable.layout.size() / BYTES_PER_WEIGHT
}

/// Returns the cell after this one in a chain of returned cells, or null.
///
/// # Safety
/// 1. The cell is the caller's, from a chain of returned cells.
#[inline]
unsafe fn next_returned(cell: NonNull<Header>) -> *mut Header {
    // SAFETY: obligation 1: the cell is the caller's, and so is its link.
    unsafe { cell.as_ref().link.get() }.map_or(ptr::null_mut(), NonNull::as_ptr)
}

/// A list of free memory of one class, last in first out.
struct FreeList {
    first: Option<NonNull<FreeMemory>>,
}

/// The content of free memory: the link to the next.
struct FreeMemory {
    next: Option<NonNull<FreeMemory>>,
}

impl FreeList {
    const fn new() -> Self {
        Self { first: None }
    }

    #[inline]
    fn pop(&mut self) -> Option<NonNull<u8>> {
        let free_memory = self.first?;
        // SAFETY: `push` wrote the link, and the memory is the list's.
        self.first = unsafe { free_memory.as_ref() }.next;
        Some(free_memory.cast())
    }

    /// Adds memory to the list.
    ///
    /// # Safety
    /// 1. The memory is of this list's class, and given up.
    #[inline]
    unsafe fn push(&mut self, memory: NonNull<u8>) {
        let free_memory = memory.cast::<FreeMemory>();
        // SAFETY: obligation 1: the memory is given up, larger than a pointer, and aligned for one.
        unsafe { free_memory.write(FreeMemory { next: self.first }) };
        self.first = Some(free_memory);
    }

    fn empty(&mut self, class: usize) {
        while let Some(memory) = self.pop() {
            // SAFETY: the list owned the memory, and its class determines how it was allocated.
            unsafe { dealloc(memory.as_ptr(), class_layout(class)) };
        }
    }
}

/// A chain of cells of one other arena, which will be returned there together.
struct Outbox {
    arena: Option<NonNull<Arena>>,
    ends: Option<(NonNull<Header>, NonNull<Header>)>,
    count: usize,
    weight: usize,
}

impl Outbox {
    const fn empty() -> Self {
        Self { arena: None, ends: None, count: 0, weight: 0 }
    }

    /// Adds a cell; returns the cells that must be sent now, if any.
    ///
    /// # Safety
    /// 1. The cell is the caller's, of `arena`, and given up.
    #[must_use]
    unsafe fn put(&mut self, cell: NonNull<Header>, arena: NonNull<Arena>) -> Option<Outbox> {
        let other = (self.arena != Some(arena)).then(|| self.take());
        self.arena = Some(arena);
        let first = self.ends.map(|(first, _)| first);
        // SAFETY: obligation 1: the cell is the caller's, and so is its link.
        unsafe { cell.as_ref().link.set(first) };
        let last = self.ends.map_or(cell, |(_, last)| last);
        self.ends = Some((cell, last));
        self.count += 1;
        // SAFETY: 1. the cell is the caller's.
        self.weight += unsafe { weight(cell) };
        // A chain that was just begun is not full.
        other.or_else(|| (self.count >= OUTBOX_CELLS).then(|| self.take()))
    }

    fn take(&mut self) -> Outbox {
        std::mem::replace(self, Self::empty())
    }

    /// Returns the cells to their arena. User code may run, as in `count_down`.
    fn send(self) {
        if let (Some(arena), Some(ends)) = (self.arena, self.ends) {
            // SAFETY: 1. `put` linked the cells, which their callers gave up.
            unsafe { Arena::push_returned(arena, ends, self.count, self.weight) };
        }
    }
}

#[cfg(test)]
mod tests;
