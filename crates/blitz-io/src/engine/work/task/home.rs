//! Where tasks are born, listed, and their memory comes back to.
//!
//! Every core has a home, and the outside has a few behind locks. Whoever holds
//! the core (or the lock) *holds* the home: it alone makes cells, lists them and
//! frees them, with plain loads and stores. All others only give cells back.
//!
//! # Protocol
//! A cell whose last reference is gone goes home:
//!
//! ```text
//! on a thread that holds its home    off the list, onto the free list of its size
//! on a thread that holds another     into that home's outbox; a full box is pushed
//!                                    onto the owner's `returned` as one chain
//! on any other thread                pushed onto `returned` alone
//! the holder, now and then           takes all of `returned`, frees it as its own
//! ```
//! `returned` is a stack that is only ever taken whole, so it has no ABA problem.
//!
//! Closing (shutdown), by the holder:
//! ```text
//! C1 refuse new tasks; stop every listed one; cells freed meanwhile stay in `returned`
//! C2 left = cells that exist + 1
//! C3 swap `returned` for CLOSED, free what was in it
//! C4 left -= what was freed + 1; at zero, free the home
//! ```
//! A thread that finds CLOSED frees its cell itself and counts `left` down; the
//! last one frees the home. C2 happens before C3, so nobody counts down a `left`
//! that is not there yet.
//!
//! # Invariants
//! - A cell is on the list of its home from birth until its home frees it, or
//!   until the home is closed. Shutdown therefore finds every task that lives.
//! - The home lives as long as any of its cells, and holds its runtime.
//!
//! # Rejected
//! One list behind sharded locks, with a reference and a clone of the runtime's
//! handle in each task: four contended operations a task that this has not.
//!
//! # Checked by
//! `cells_come_home_from_another_thread`,
//! `closing_against_a_late_return_frees_everything_once`,
//! `two_late_returns_free_the_home_once`, `a_cell_that_dies_on_a_foreign_core_comes_home`;
//! weakened as `give_back_publishes`, `take_back_sees`, `late_return_counts`.

use std::{
    alloc::{Layout, alloc, dealloc, handle_alloc_error},
    future::Future,
    num::NonZeroU64,
    ptr::{self, NonNull},
    sync::Arc,
};

use super::{
    cell::{Birth, Cell, Header, Id, Label, Member, Task},
    extra::Extra,
    hooks::Hooks,
};
use crate::engine::{
    prim::{
        AtomicPtr, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
        UnsafeCell,
        biased::Biased,
        discard, ids,
        pad::CachePadded,
        weakened,
    },
    queue::list::List,
    work::current::{self, Inside},
};

/// Where an entry comes from; the runtime places it accordingly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A new task.
    Spawned,
    /// Somebody woke it.
    Woken,
    /// It yielded: others first.
    Yielded,
}

/// What a home needs of its runtime.
pub(crate) trait Schedule: Send + Sync {
    /// Puts the entry where a thread of the runtime will find it.
    fn place(&self, task: Task, origin: Origin);

    /// The same, for one who is inside and has nothing more to do there.
    fn place_inside(&self, task: Task, origin: Origin, inside: Inside) {
        drop(inside);
        self.place(task, origin);
    }

    /// The same, for one who was woken by a thread that holds no core of this runtime.
    fn place_from_outside(&self, task: Task) {
        self.place(task, Origin::Woken);
    }

    /// Many cells wait in `returned` of `home`, which may be gone by now: see that
    /// its holder looks at them.
    fn cells_wait(&self, home: NonNull<Home>);

    /// What users hung onto its tasks; asked once, by each new home.
    fn hooks(&self) -> Option<Arc<Hooks>> {
        None
    }

    /// A task panicked in its poll or in its drop; nobody knows of it yet.
    fn task_panicked(&self) {}
}

/// See the module.
pub(crate) struct Home {
    /// Written by those who give back, and so apart from the holder's part.
    arrivals: CachePadded<Arrivals>,
    /// Read by whoever polls or wakes a task of this home, on any thread, and so apart
    /// from what the holder writes for each.
    runtime: CachePadded<Belonging>,
    /// After closing: cells that still exist.
    left: AtomicUsize,
    /// Guards the list of tasks against those who want to see it.
    roll: Biased,
    tasks: UnsafeCell<List<Member>>,
    held: UnsafeCell<Held>,
}

// SAFETY: `held` is touched only by the holder, and what is in it may move
// between threads with the right to hold. `scheduler` is what `schedule` is.
unsafe impl Send for Home {}
// SAFETY: as above.
unsafe impl Sync for Home {}

/// What a home belongs to.
struct Belonging {
    schedule: Arc<dyn Schedule>,
    /// What that points to: an `Arc` of a trait has to look up where its value begins.
    scheduler: NonNull<dyn Schedule>,
    hooks: Option<Arc<Hooks>>,
}

/// What others write.
struct Arrivals {
    /// Cells on their way back, or CLOSED.
    returned: AtomicPtr<Header>,
    /// How many are there, roughly, by [`weight`].
    waiting: AtomicUsize,
}

/// The holder's part.
struct Held {
    free: [FreeList; CLASSES],
    /// Bytes in `free`.
    kept_bytes: usize,
    /// Cells that exist.
    live: usize,
    ids: std::ops::Range<u64>,
    outbox: Outbox,
    closed: bool,
}

/// Cells are made in steps of 16 bytes up to 1 KiB; the sizes are 8 more than a
/// multiple of 16, which is what glibc's chunks hold.
const CLASSES: usize = 64;
const CLASS_STEP: usize = 16;
const CLASS_SHIFT: usize = 8;
/// The alignment of every recycled cell; malloc gives no less.
const CLASS_ALIGN: usize = 16;

/// Bytes of free cells that a home keeps: 6,900 small tasks. Picked so that a
/// hundred cores keep a hundred megabytes at the most.
const KEPT_BYTES: usize = 1 << 20;

/// Cells a foreign core collects before it sends them home: amortises one
/// contended exchange. Picked, not measured further.
const BOX: usize = 32;

/// Cells that may wait in `returned` before the holder is called: so many small ones, or as
/// many as have a mebibyte.
const WAITING: usize = 1024;
/// Bytes that weigh as much as a cell.
const WEIGHED: usize = 1024;

/// Task IDs a home takes at a time: one shared operation in a thousand spawns.
const IDS: u64 = 1024;

impl Home {
    /// A home for the tasks of `schedule`. It frees itself after `close`.
    pub(crate) fn new(schedule: Arc<dyn Schedule>) -> NonNull<Self> {
        let held = Held {
            free: [const { FreeList::new() }; CLASSES],
            kept_bytes: 0,
            live: 0,
            ids: 0..0,
            outbox: Outbox::empty(),
            closed: false,
        };
        let home = Self {
            arrivals: CachePadded::new(Arrivals {
                returned: AtomicPtr::new(ptr::null_mut()),
                waiting: AtomicUsize::new(0),
            }),
            left: AtomicUsize::new(0),
            runtime: CachePadded::new(Belonging {
                hooks: schedule.hooks(),
                scheduler: NonNull::from_ref(&*schedule),
                schedule,
            }),
            roll: Biased::new(),
            tasks: UnsafeCell::new(List::new()),
            held: UnsafeCell::new(held),
        };
        NonNull::from(Box::leak(Box::new(home)))
    }

    /// What users hung onto its tasks.
    #[inline]
    pub(crate) fn hooks(&self) -> Option<&Hooks> {
        self.runtime.hooks.as_deref()
    }

    #[inline]
    pub(crate) fn schedule(&self) -> &dyn Schedule {
        // SAFETY: `schedule` keeps it.
        unsafe { self.runtime.scheduler.as_ref() }
    }

    /// Makes a task, listed and queued: the caller places the entry. The other
    /// half is the `JoinHandle`'s reference.
    ///
    /// # Safety
    /// 1. The caller holds the home, and nothing of it is borrowed.
    #[inline]
    pub(crate) unsafe fn spawn<F: Future, X: Extra>(
        home: NonNull<Self>,
        future: F,
        label: Label<X>,
    ) -> (Task, NonNull<Header>) {
        // SAFETY: a home lives as long as it is held.
        let this = unsafe { home.as_ref() };
        // SAFETY: 1.
        let memory = unsafe { this.allocate(Layout::new::<Cell<F, X>>()) };
        // SAFETY: 1.
        let held = unsafe { this.held() };
        #[cfg(feature = "tracing")]
        let id = label.seen.map_or_else(|| held.next_id(), |seen| seen.task);
        #[cfg(not(feature = "tracing"))]
        let id = held.next_id();
        let birth = Birth { home, id, label };
        // SAFETY: the memory is fresh, or recycled from a cell of its class.
        let header = unsafe { Cell::create(memory, future, birth) };
        held.live += 1;
        // SAFETY: 1.
        unsafe { this.change_list(|tasks| tasks.push_front(Member(header))) };
        // SAFETY: a new cell is queued; this is its one entry.
        (unsafe { Task::new(header) }, header)
    }

    /// Memory for a cell. The allocator is a user's, for all we know: no borrow of
    /// `held` lives while it runs.
    ///
    /// # Safety
    /// 1. As `spawn`.
    #[inline]
    unsafe fn allocate(&self, layout: Layout) -> NonNull<u8> {
        let (layout, class) = classify(layout);
        let Some(class) = class else { return allocate_fresh(layout) };
        // SAFETY: 1.
        if let Some(memory) = unsafe { self.held() }.recycle(class, layout) {
            return memory;
        }
        // Relaxed: a hint. Without this look a holder that spawns in one long poll
        // would never get back what others have run meanwhile.
        if !self.arrivals.returned.load(Relaxed).is_null() {
            // SAFETY: 1.
            unsafe { self.take_returned() };
            // SAFETY: 1.
            if let Some(memory) = unsafe { self.held() }.recycle(class, layout) {
                return memory;
            }
        }
        allocate_fresh(layout)
    }

    /// Frees what came back and sends away what belongs elsewhere. That comes last: with it may
    /// go another runtime, and users' hooks, which may block in place and end this one.
    ///
    /// # Safety
    /// 1. As `spawn`.
    #[inline]
    pub(crate) unsafe fn sweep(home: NonNull<Self>) {
        let parcel = {
            // SAFETY: a home lives as long as it is held.
            let this = unsafe { home.as_ref() };
            // Relaxed: a hint; `take_returned` reads it again.
            if !this.arrivals.returned.load(Relaxed).is_null() {
                // SAFETY: 1.
                unsafe { this.take_returned() };
            }
            // SAFETY: 1.
            unsafe { this.held() }.outbox.take()
        };
        parcel.send();
    }

    /// Whether so many cells wait that the holder should look.
    pub(crate) fn is_worth_a_sweep(&self) -> bool {
        // Relaxed: ordered by the token that calls the holder. The count alone is not
        // enough: cells that came while it was reset were taken and stay counted.
        self.arrivals.waiting.load(Relaxed) >= WAITING
            && !self.arrivals.returned.load(Relaxed).is_null()
    }

    /// C1: refuses new tasks from now on.
    ///
    /// # Safety
    /// 1. As `spawn`.
    pub(crate) unsafe fn refuse(&self) {
        // SAFETY: 1.
        unsafe { self.held() }.closed = true;
    }

    /// C1: one of the tasks that are left, for `poll::stop`, which runs user code
    /// and therefore must run without a lock. Cells that are freed from now
    /// on wait in `returned`, so this one stays.
    ///
    /// # Safety
    /// 1. As `spawn`, after `refuse`.
    pub(crate) unsafe fn next_to_stop(&self) -> Option<NonNull<Header>> {
        // SAFETY: 1.
        let held = unsafe { self.held() };
        debug_assert!(held.closed, "stopping tasks of a home that takes new ones");
        // SAFETY: 1.
        unsafe { self.change_list(List::pop_front) }.map(|Member(task)| task)
    }

    /// C2 to C4. The home must not be used afterwards.
    ///
    /// # Safety
    /// 1. As `spawn`, after `next_to_stop` said `None`; and the caller gives the
    ///    right to hold up.
    pub(crate) unsafe fn close(home: NonNull<Self>) {
        // SAFETY: held until C4.
        let this = unsafe { home.as_ref() };
        let (parcel, mut free, live) = {
            // SAFETY: 1.
            let held = unsafe { this.held() };
            let free = std::mem::replace(&mut held.free, [const { FreeList::new() }; CLASSES]);
            (held.outbox.take(), free, held.live)
        };
        parcel.send();
        free.iter_mut().enumerate().for_each(|(class, list)| list.empty(class));
        // C2. Relaxed: published by C3.
        this.left.store(live + 1, Relaxed);
        // C3. AcqRel: publishes `left` to those who find CLOSED, and sees what the
        // givers did with their cells. Pairs with `push_returned`, both ways.
        let mut next = this.arrivals.returned.swap(CLOSED.as_ptr(), AcqRel);
        let mut freed = 1;
        while let Some(cell) = NonNull::new(next) {
            // SAFETY: the stack was taken whole; the cell is ours.
            next = unsafe { next_returned(cell) };
            // SAFETY: as above, and nothing lists it any more.
            unsafe {
                Header::drop_extra(cell);
                release_memory(cell);
            }
            freed += 1;
        }
        // C4.
        // SAFETY: the cells counted are freed; the one more is the holder.
        unsafe { Self::count_down(home, freed) };
    }

    /// # Safety
    /// 1. The caller freed `count` cells of a closed home, or stands for it.
    unsafe fn count_down(home: NonNull<Self>, count: usize) {
        // SAFETY: the count keeps it alive.
        let left = unsafe { &home.as_ref().left };
        // AcqRel: everyone's last touch of the home happens before it is freed.
        // Pairs with itself.
        if left.fetch_sub(count, AcqRel) == count {
            // With it may go the last reference to its runtime, and so users' hooks:
            // a panic of theirs must not reach the worker that happens to be here.
            // SAFETY: no cell and no holder is left; it came from `Box::leak`.
            discard(unsafe { Box::from_raw(home.as_ptr()) });
        }
    }

    /// Changes the list of tasks; whoever visits it waits, or is waited for.
    ///
    /// # Safety
    /// 1. The caller holds the home, and `change` does not come back here.
    #[inline(always)]
    unsafe fn change_list<R>(&self, change: impl FnOnce(&mut List<Member>) -> R) -> R {
        // SAFETY: 1.; and nobody visits.
        let change = || self.tasks.with_mut(|tasks| change(unsafe { &mut *tasks }));
        // The lock has models of its own; in those of homes nobody visits.
        if cfg!(blitz_loom) { change() } else { self.roll.own(change) }
    }

    /// Shows every task that lives, and some that are about to go, to `look`; `false`
    /// if the list could not be had. No code but the engine's may run inside `look`:
    /// the holder may be waiting.
    ///
    /// # Safety
    /// 1. The home is not closed meanwhile. 2. There is one visitor at a time.
    pub(crate) unsafe fn visit(&self, mut look: impl FnMut(NonNull<Header>)) -> bool {
        let visited = self.roll.visit(|| {
            // SAFETY: the list changes only while the lock is owned, and now it is
            // visited. Members are alive until they leave the list.
            self.tasks.with(|tasks| unsafe { (*tasks).for_each(&mut look) });
        });
        visited.is_some()
    }

    /// # Safety
    /// 1. The caller holds the home. 2. No other borrow of it is alive.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "the right to hold is the borrow; see 2.")]
    unsafe fn held(&self) -> &mut Held {
        // SAFETY: 1. and 2.
        self.held.with_mut(|held| unsafe { &mut *held })
    }

    /// Frees all that came back.
    ///
    /// # Safety
    /// 1. As `spawn`.
    #[cold]
    unsafe fn take_returned(&self) {
        // SAFETY: 1.
        if unsafe { self.held() }.closed {
            return;
        }
        // Relaxed: only a count for `cells_wait`.
        self.arrivals.waiting.store(0, Relaxed);
        let order = if weakened!("take_back_sees") { Relaxed } else { Acquire };
        // Acquire: sees what the givers did with their cells. Pairs with the
        // Release in `push_returned`.
        let mut next = self.arrivals.returned.swap(ptr::null_mut(), order);
        while let Some(cell) = NonNull::new(next) {
            // SAFETY: the stack was taken whole; the cell is ours.
            next = unsafe { next_returned(cell) };
            // SAFETY: it came home, and we hold the home.
            unsafe { self.bury(cell) };
        }
    }

    /// Takes a cell off the list; its memory is kept for the next, or released.
    ///
    /// # Safety
    /// 1. As `spawn`. 2. The cell is of this home, listed, and the caller's.
    #[inline]
    unsafe fn bury(&self, cell: NonNull<Header>) {
        // SAFETY: 1. and 2.
        unsafe {
            self.held().live -= 1;
            self.change_list(|tasks| tasks.remove(cell));
        }
        // SAFETY: 2.; and nobody who walks the list sees it any more.
        unsafe { Header::drop_extra(cell) };
        // SAFETY: 1. and 2.
        if !unsafe { self.held().keep(cell) } {
            // SAFETY: 2.
            unsafe { release_memory(cell) };
        }
    }

    /// Pushes a chain of cells that ends in `last`; `weight` is that of all.
    ///
    /// # Safety
    /// 1. The caller freed the `count` cells from `first` to `last`, linked, all
    ///    of this home, and gives them up.
    unsafe fn push_returned(
        home: NonNull<Self>,
        (first, last): (NonNull<Header>, NonNull<Header>),
        count: usize,
        weight: usize,
    ) {
        // SAFETY: the cells keep the home alive until they are pushed.
        let this = unsafe { home.as_ref() };
        // Relaxed: only a count; it must come first, since the home may be gone after
        // the exchange.
        let before = this.arrivals.waiting.fetch_add(weight, Relaxed);
        let crossed = before.wrapping_add(weight) / WAITING != before / WAITING;
        // The runtime is kept by this clone, not by the home.
        let schedule = crossed.then(|| this.runtime.schedule.clone());
        // Relaxed: a guess; and once CLOSED it stays so.
        let mut top = this.arrivals.returned.load(Relaxed);
        loop {
            if top == CLOSED.as_ptr() {
                discard(schedule);
                // SAFETY: 1.
                return unsafe { free_late(home, first, count) };
            }
            // SAFETY: 1.: the link is ours until the exchange succeeds.
            unsafe { last.as_ref().link.set(NonNull::new(top)) };
            let order = if weakened!("give_back_publishes") { Relaxed } else { Release };
            // Release: the cells' contents go with them. Pairs with the Acquire in
            // `take_returned` and the AcqRel in `close`. Acquire on failure: CLOSED
            // publishes `left`. Pairs with the AcqRel in `close`.
            let pushed =
                this.arrivals.returned.compare_exchange_weak(top, first.as_ptr(), order, Acquire);
            match pushed {
                Ok(_) => break,
                Err(seen) => top = seen,
            }
        }
        if let Some(schedule) = schedule {
            schedule.cells_wait(home);
            discard(schedule);
        }
    }
}

/// Frees cells whose home was closed before they came back.
///
/// # Safety
/// 1. As [`Home::push_returned`].
#[cold]
unsafe fn free_late(home: NonNull<Home>, first: NonNull<Header>, count: usize) {
    let mut next = first.as_ptr();
    for _ in 0..count {
        // SAFETY: 1.: the chain is ours and that long.
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
    // SAFETY: we freed that many.
    unsafe { Home::count_down(home, count) };
}

/// The mark of a closed home: an address that no cell has.
static CLOSED_MARK: u8 = 0;
const CLOSED: NonNull<Header> = NonNull::from_ref(&CLOSED_MARK).cast();

/// Whether this thread holds a core of the task's runtime: then the runtime
/// cannot go away under it. Asked [inside](current::inside).
#[inline]
pub(crate) fn is_of_this_core(task: NonNull<Header>) -> bool {
    let Some(here) = current::with(|current| current.home.get()) else { return false };
    // SAFETY: the caller's reference keeps the task, the task its home.
    let home = unsafe { task.as_ref() }.home;
    // SAFETY: a held home is alive.
    home == here || unsafe { ptr::addr_eq(home.as_ref().schedule(), here.as_ref().schedule()) }
}

/// Takes a cell home whose last reference is gone.
///
/// # Safety
/// 1. The state said so, once, to the caller. 2. The output was dropped or
///    taken, and so was the join waker.
#[inline]
pub(crate) unsafe fn free(cell: NonNull<Header>) {
    // SAFETY: 1. and 2., twice: one of them is called. The second asks at more length; apart, so
    // that the first has less to keep.
    unsafe {
        match current::at_once_inside() {
            Some(inside) => free_inside(cell, inside),
            None => free_at_length(cell),
        }
    }
}

/// # Safety
/// 1. and 2. As `free`.
#[cold]
unsafe fn free_at_length(cell: NonNull<Header>) {
    // SAFETY: 1. and 2.
    unsafe { free_inside(cell, current::inside()) };
}

/// # Safety
/// 1. and 2. As `free`.
#[inline(always)]
unsafe fn free_inside(cell: NonNull<Header>, inside: Inside) {
    // SAFETY: 1.: the cell is ours.
    let home = unsafe { cell.as_ref() }.home;
    let Some(here) = current::with(|current| current.home.get()) else {
        // With the last cell may go a runtime, and users' hooks: not inside.
        drop(inside);
        // SAFETY: 1.; a chain of one.
        return unsafe { Home::push_returned(home, (cell, cell), 1, weight(cell)) };
    };
    // SAFETY: this thread holds `here`, and no borrow of it is alive: none lives
    // while other code runs.
    if here == home && !unsafe { here.as_ref().held() }.closed {
        // SAFETY: 1., and we hold its home.
        return unsafe { here.as_ref().bury(cell) };
    }
    // SAFETY: 1.; as above for `held`.
    let parcel = unsafe { here.as_ref().held().outbox.put(cell, home) };
    drop(inside);
    if let Some(parcel) = parcel {
        parcel.send();
    }
}

/// Sweeps the home that this thread holds.
pub(crate) fn sweep_held() {
    if let Some(home) = current::with(|current| current.home.get()) {
        // SAFETY: this thread holds it, and no borrow of it is alive.
        unsafe { Home::sweep(home) };
    }
}

/// Whether the home that this thread holds is worth a sweep.
pub(crate) fn held_is_worth_a_sweep() -> bool {
    let home = current::with(|current| current.home.get());
    // SAFETY: a held home is alive.
    home.is_some_and(|home| unsafe { home.as_ref() }.is_worth_a_sweep())
}

impl Held {
    /// Memory of that class, if some is kept.
    #[inline]
    fn recycle(&mut self, class: usize, layout: Layout) -> Option<NonNull<u8>> {
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

    /// Keeps the memory of a cell; `false` if there is enough, and the caller must
    /// release it.
    ///
    /// # Safety
    /// 1. The cell is of this home, no longer listed, and the caller's.
    #[inline]
    #[must_use]
    unsafe fn keep(&mut self, cell: NonNull<Header>) -> bool {
        // SAFETY: 1.
        let (layout, class) = classify(unsafe { cell.as_ref() }.vtable.layout);
        let Some(class) = class else { return false };
        if self.kept_bytes + layout.size() > KEPT_BYTES {
            return false;
        }
        self.kept_bytes += layout.size();
        // SAFETY: 1.: the memory is ours, of that class, and nobody's.
        unsafe { self.free[class].push(cell.cast()) };
        true
    }
}

/// The layout to allocate for a cell, and its class if cells like it are recycled.
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

/// # Safety
/// 1. The cell is the caller's, and on no list.
unsafe fn release_memory(cell: NonNull<Header>) {
    // SAFETY: 1.
    let (layout, _) = classify(unsafe { cell.as_ref() }.vtable.layout);
    // Nothing in a header needs dropping, but model builds keep books about its
    // atomics and cells.
    #[cfg(blitz_loom)]
    // SAFETY: 1.
    unsafe {
        cell.drop_in_place();
    }
    // SAFETY: 1., and it was allocated with that layout.
    unsafe { dealloc(cell.as_ptr().cast(), layout) };
}

/// What a cell counts for while it waits for its holder. Its output lay in it, and may have been
/// large.
///
/// # Safety
/// 1. The cell is the caller's.
#[inline]
unsafe fn weight(cell: NonNull<Header>) -> usize {
    // SAFETY: 1.
    1 + unsafe { cell.as_ref() }.vtable.layout.size() / WEIGHED
}

/// # Safety
/// 1. The cell is the caller's, from a chain of returned ones.
#[inline]
unsafe fn next_returned(cell: NonNull<Header>) -> *mut Header {
    // SAFETY: 1.
    unsafe { cell.as_ref().link.get() }.map_or(ptr::null_mut(), NonNull::as_ptr)
}

/// Memory of one class, last in first out.
struct FreeList {
    first: Option<NonNull<Spare>>,
}

/// What free memory holds.
struct Spare {
    next: Option<NonNull<Spare>>,
}

impl FreeList {
    const fn new() -> Self {
        Self { first: None }
    }

    #[inline]
    fn pop(&mut self) -> Option<NonNull<u8>> {
        let spare = self.first?;
        // SAFETY: `push` wrote it, and the memory is the list's.
        self.first = unsafe { spare.as_ref() }.next;
        Some(spare.cast())
    }

    /// # Safety
    /// 1. The memory is of this list's class, and given up.
    #[inline]
    unsafe fn push(&mut self, memory: NonNull<u8>) {
        let spare = memory.cast::<Spare>();
        // SAFETY: 1.: it is larger than a pointer, and aligned for one.
        unsafe { spare.write(Spare { next: self.first }) };
        self.first = Some(spare);
    }

    fn empty(&mut self, class: usize) {
        while let Some(memory) = self.pop() {
            // SAFETY: the list owned it, and its class says how it was allocated.
            unsafe { dealloc(memory.as_ptr(), class_layout(class)) };
        }
    }
}

/// Cells of one other home, on their way there.
struct Outbox {
    home: Option<NonNull<Home>>,
    ends: Option<(NonNull<Header>, NonNull<Header>)>,
    count: usize,
    weight: usize,
}

impl Outbox {
    const fn empty() -> Self {
        Self { home: None, ends: None, count: 0, weight: 0 }
    }

    /// Puts a cell in; answers with what must be sent now.
    ///
    /// # Safety
    /// 1. The cell is the caller's, of `home`, and given up.
    #[must_use]
    unsafe fn put(&mut self, cell: NonNull<Header>, home: NonNull<Home>) -> Option<Outbox> {
        let other = (self.home != Some(home)).then(|| self.take());
        self.home = Some(home);
        let first = self.ends.map(|(first, _)| first);
        // SAFETY: 1.
        unsafe { cell.as_ref().link.set(first) };
        let last = self.ends.map_or(cell, |(_, last)| last);
        self.ends = Some((cell, last));
        self.count += 1;
        // SAFETY: 1.
        self.weight += unsafe { weight(cell) };
        // A box that was just begun is not full.
        other.or_else(|| (self.count >= BOX).then(|| self.take()))
    }

    fn take(&mut self) -> Outbox {
        std::mem::replace(self, Self::empty())
    }

    /// Gives the cells to their home. Users' code may run: see `count_down`.
    fn send(self) {
        if let (Some(home), Some(ends)) = (self.home, self.ends) {
            // SAFETY: `put` linked them, and gave them to us.
            unsafe { Home::push_returned(home, ends, self.count, self.weight) };
        }
    }
}

#[cfg(test)]
mod tests;
