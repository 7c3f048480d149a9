//! The memory of one task, and type-erased access to it.
//!
//! ```text
//! Cell<F, X>: | Header                                  | X | stage: F, then its output |
//!              ^ every pointer to a task points here
//! Header: state, vtable, link, arena, since, waiting, hog_history, tag of the stage,
//!         join waker, links, id, spawn location
//! ```
//! `X` is the data that some tasks carry besides ([`super::extra`]); most have none.
//!
//! The header is 88 bytes, and cells are aligned to 16 at most unless the future
//! requires more. So an idle task is its future plus 88 bytes, and the allocator's
//! ordinary path serves it. In a runtime that over-aligns its cells, the allocator's
//! slower path for aligned memory is half of the cost of a spawn.

use std::{
    alloc::Layout,
    any::Any,
    fmt,
    future::Future,
    mem::ManuallyDrop,
    num::NonZeroU64,
    panic::{AssertUnwindSafe, Location, catch_unwind},
    pin::Pin,
    ptr::NonNull,
    sync::Arc,
    task::{Context, Poll, Waker},
};

#[cfg(feature = "tracing")]
use super::trace::SpanInfo;
use super::{
    arena::Arena,
    budget::Budget,
    error::JoinError,
    extra::Extra,
    state::State,
    timestamp::{Timestamp, WaitReasonGauge},
    trace,
};
use crate::engine::{
    lease::hog_history::HogHistory,
    prim::{UnsafeCell, discard},
    queue::{
        Link, Linked,
        list::{Links, Listed},
    },
    work::thread_context::CurrentTaskGuard,
};

/// The ID of a task, unique among all tasks of the process.
///
/// IDs are not sequential and carry no information about the order of spawning.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// let handle = blitz_io::spawn(async { blitz_io::task::id() });
/// let id = handle.id();
/// assert_eq!(handle.await.unwrap(), id);
/// # });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(NonZeroU64);

impl Id {
    pub(crate) fn new(id: NonZeroU64) -> Self {
        Self(id)
    }

    #[cfg(any(feature = "tracing", feature = "fiber"))]
    #[allow(dead_code, reason = "there are systems without fibers")]
    pub(crate) fn as_u64(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Id").field(&self.0).finish()
    }
}

/// The part of a cell that is the same for all tasks. The fields that wake-ups and polls use
/// come first, so that they share one cache line if possible: a second line would have to be
/// loaded before the state can be exchanged.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) state: State,
    pub(crate) vtable: &'static Vtable,
    /// The link of the queue that the entry is in, later of the list on which the cell returns
    /// to its arena.
    pub(crate) link: Link<Header>,
    pub(crate) arena: NonNull<Arena>,
    pub(crate) since: Timestamp,
    pub(crate) waiting: WaitReasonGauge,
    pub(crate) hog_history: HogHistory,
    /// The tag of the cell's stage. It belongs to the owner of the stage.
    stage: UnsafeCell<StageTag>,
    pub(crate) join_waker: UnsafeCell<Option<Waker>>,
    /// The links of the arena's list of all its tasks.
    links: Links<Header>,
    pub(crate) id: Id,
    pub(crate) spawned_at: &'static Location<'static>,
    #[cfg(feature = "tracing")]
    pub(crate) span_info: Option<SpanInfo>,
}

/// The operations on a task that depend on the type of its future.
pub(crate) struct Vtable {
    /// Polls the future; stores the output if that completes it.
    ///
    /// # Safety
    /// 1. The caller set RUNNING, and the stage holds the future.
    poll: unsafe fn(NonNull<Header>, &mut Context<'_>) -> Poll<()>,
    /// Drops the future and stores the error of a cancelled task as the output.
    ///
    /// # Safety
    /// 1. The caller set RUNNING, and the stage holds the future.
    cancel: unsafe fn(NonNull<Header>),
    /// Drops the output.
    ///
    /// # Safety
    /// 1. The stage is the caller's (rule 3 of the module `task`) and holds no future.
    drop_output: unsafe fn(NonNull<Header>),
    /// Moves the output out of the stage.
    ///
    /// # Safety
    /// 1. The stage is the caller's (rule 3 of the module `task`) and holds no future. 2. The
    ///    pointer is to a `Poll<Result<T, JoinError>>` of the task's own `T`.
    read_output: unsafe fn(NonNull<Header>, *mut ()),
    /// Returns the name that the spawner gave the task.
    ///
    /// # Safety
    /// 1. The cell is alive as long as the name is used.
    name: unsafe fn(NonNull<Header>) -> Option<NonNull<Arc<str>>>,
    /// Drops the cell's `X`; `None` if its type needs no drop.
    ///
    /// # Safety
    /// 1. The cell is the caller's alone, and `X` is not used again.
    drop_extra: Option<unsafe fn(NonNull<Header>)>,
    /// True if the task is blocking work.
    pub(crate) is_blocking: bool,
    /// Returns the name of the future's type.
    pub(crate) type_name: fn() -> &'static str,
    /// The size and alignment of the cell.
    pub(crate) layout: Layout,
}

/// The part of a cell that does not depend on the future.
#[repr(C)]
pub(crate) struct CellPrefix<X> {
    header: Header,
    extra: X,
}

/// The memory of a task.
#[repr(C)]
pub(crate) struct Cell<F: Future, X = ()> {
    prefix: CellPrefix<X>,
    stage: UnsafeCell<Stage<F>>,
}

/// The future, then its output. The tag that says which of them is there is
/// [`Header::stage`], where it costs no word of its own.
union Stage<F: Future> {
    future: ManuallyDrop<F>,
    output: ManuallyDrop<Result<F::Output, JoinError>>,
}

/// The content of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StageTag {
    Future,
    Output,
    Nothing,
}

/// Properties that a spawner gives a task besides its future.
pub(crate) struct Label<X = ()> {
    pub(crate) spawned_at: &'static Location<'static>,
    pub(crate) extra: X,
    #[cfg(feature = "tracing")]
    pub(crate) span_info: Option<SpanInfo>,
}

impl<X> Label<X> {
    /// Creates the label of a task that carries `extra`.
    #[inline]
    pub(crate) fn with(spawned_at: &'static Location<'static>, extra: X) -> Self {
        Self {
            spawned_at,
            extra,
            #[cfg(feature = "tracing")]
            span_info: None,
        }
    }
}

impl Label {
    /// Creates the label of a task that carries nothing besides its future.
    #[inline]
    pub(crate) fn at(spawned_at: &'static Location<'static>) -> Self {
        Self::with(spawned_at, ())
    }
}

/// The parts that a cell is made from, besides the future.
pub(crate) struct CellParts<X> {
    pub(crate) arena: NonNull<Arena>,
    pub(crate) id: Id,
    pub(crate) label: Label<X>,
}

impl<F: Future, X: Extra> Cell<F, X> {
    const VTABLE: Vtable = Vtable {
        poll: poll::<F, X>,
        cancel: cancel::<F, X>,
        drop_output: drop_output::<F, X>,
        read_output: read_output::<F, X>,
        name: name::<X>,
        drop_extra: if std::mem::needs_drop::<X>() { Some(drop_extra::<X>) } else { None },
        is_blocking: X::IS_BLOCKING,
        type_name: std::any::type_name::<F>,
        layout: Layout::new::<Cell<F, X>>(),
    };

    /// Writes a new task into `memory`.
    ///
    /// # Safety
    /// 1. `memory` is the caller's alone, and fits a `Cell<F, X>`.
    #[inline]
    pub(crate) unsafe fn create(
        memory: NonNull<u8>,
        future: F,
        parts: CellParts<X>,
    ) -> NonNull<Header> {
        let cell = memory.cast::<Cell<F, X>>();
        let join_waker = X::initial_join_waker(cell.cast());
        let header = Header {
            state: if join_waker.is_some() { State::in_set() } else { State::at_spawn() },
            vtable: &Self::VTABLE,
            link: Link::new(),
            arena: parts.arena,
            links: Links::new(),
            id: parts.id,
            spawned_at: parts.label.spawned_at,
            since: Timestamp::default(),
            waiting: WaitReasonGauge::default(),
            hog_history: HogHistory::new(X::IS_LONG_RUNNING),
            #[cfg(feature = "tracing")]
            span_info: parts.label.span_info,
            stage: UnsafeCell::new(StageTag::Future),
            join_waker: UnsafeCell::new(join_waker),
        };
        let prefix = CellPrefix { header, extra: parts.label.extra };
        // SAFETY: obligation 1: the memory is the caller's alone and fits the cell.
        unsafe {
            cell.write(Cell {
                prefix,
                stage: UnsafeCell::new(Stage { future: ManuallyDrop::new(future) }),
            })
        };
        cell.cast()
    }

    /// Calls `f` with the stage and the tag that says what it holds.
    ///
    /// # Safety
    /// 1. `header` is that of a `Cell<F, X>`. 2. The stage is the caller's, and `f`
    ///    does not reach it a second time.
    #[inline(always)]
    unsafe fn stage<R>(
        header: NonNull<Header>,
        f: impl FnOnce(&mut StageTag, &mut Stage<F>) -> R,
    ) -> R {
        // SAFETY: obligation 1, and the header is the first field of a `repr(C)` cell.
        let cell = unsafe { header.cast::<Cell<F, X>>().as_ref() };
        cell.prefix.header.stage.with_mut(|tag| {
            // SAFETY: obligation 2: the stage is the caller's, so no other reference to it exists.
            cell.stage.with_mut(|stage| unsafe { f(&mut *tag, &mut *stage) })
        })
    }
}

/// Implements [`Vtable::poll`].
///
/// # Safety
/// 1. The obligation of [`Vtable::poll`], for a `Cell<F, X>`.
unsafe fn poll<F: Future, X: Extra>(header: NonNull<Header>, cx: &mut Context<'_>) -> Poll<()> {
    // SAFETY: 1. the vtable belongs to a `Cell<F, X>`. 2. we run the task, so the stage is ours.
    let polled = unsafe {
        Cell::<F, X>::stage(header, |tag, stage| {
            assert!(*tag == StageTag::Future, "polled after completion");
            // The future is there, and stays where it is until it is dropped in place.
            catch_unwind(AssertUnwindSafe(|| {
                let unwinding = DropOnUnwind { tag, future: &mut stage.future };
                let polled = Pin::new_unchecked(&mut **unwinding.future).poll(cx);
                std::mem::forget(unwinding);
                polled
            }))
        })
    };
    let output = match polled {
        Ok(Poll::Pending) => return Poll::Pending,
        Ok(Poll::Ready(output)) => Ok(output),
        // SAFETY: 1. we run the task.
        Err(payload) => Err(unsafe { panicked(header, payload) }),
    };
    // SAFETY: 1. the vtable belongs to a `Cell<F, X>`. 2. we run the task, and the first use of
    // the stage has ended.
    unsafe { finish::<F, X>(header, output) };
    Poll::Ready(())
}

/// Drops the future of a poll that panics, while the thread is still unwinding: destructors use
/// [`std::thread::panicking`] to distinguish a normal end from a panic.
struct DropOnUnwind<'a, F> {
    tag: &'a mut StageTag,
    future: &'a mut ManuallyDrop<F>,
}

impl<F> Drop for DropOnUnwind<'_, F> {
    #[cold]
    fn drop(&mut self) {
        *self.tag = StageTag::Nothing;
        // SAFETY: the stage held the future until now, and is marked as empty, so the future is
        // dropped once.
        let dropping = || unsafe { ManuallyDrop::drop(self.future) };
        // The first panic is the one that the task reports, so a second is discarded.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(dropping)) {
            discard(payload);
        }
    }
}

/// Reports a task's panic to its runtime, before any handle can see it, and returns the error.
///
/// # Safety
/// 1. The caller runs the task.
#[cold]
unsafe fn panicked(header: NonNull<Header>, payload: Box<dyn Any + Send>) -> JoinError {
    // SAFETY: obligation 1: running keeps the task's memory alive, and the memory its arena.
    let (id, arena) = unsafe { (header.as_ref().id, header.as_ref().arena.as_ref()) };
    // SAFETY: obligation 1: running keeps the task's memory alive.
    if !unsafe { header.as_ref() }.is_blocking() {
        arena.scheduler().task_panicked();
    }
    // SAFETY: 1. running keeps the task alive.
    unsafe { trace::panicked(header) };
    JoinError::panicked(id, payload)
}

/// Implements [`Vtable::cancel`].
///
/// # Safety
/// 1. The obligation of [`Vtable::cancel`], for a `Cell<F, X>`.
unsafe fn cancel<F: Future, X: Extra>(header: NonNull<Header>) {
    // SAFETY: we run the task, which keeps its memory alive.
    let error = JoinError::cancelled(unsafe { header.as_ref() }.id);
    // SAFETY: 1. our caller's cell is a `Cell<F, X>`. 2. we run the task.
    unsafe { finish::<F, X>(header, Err(error)) };
}

/// Drops the future and stores the output; if that drop panics, the panic is the output.
///
/// # Safety
/// 1. `header` is that of a `Cell<F, X>`. 2. The caller runs the task.
unsafe fn finish<F: Future, X: Extra>(
    header: NonNull<Header>,
    output: Result<F::Output, JoinError>,
) {
    // SAFETY: our obligations 1 and 2: it is a `Cell<F, X>`, and we run the task, so the stage is
    // ours. The future is dropped in place, as pinning demands.
    let dropped = unsafe { drop_stage::<F, X>(header) };
    let output = match dropped {
        Err(payload) => {
            // The computed output is dropped too; its own panic must not escape either.
            discard(output);
            // SAFETY: 1. we run the task.
            Err(unsafe { panicked(header, payload) })
        }
        Ok(()) => output,
    };
    // SAFETY: our obligations 1 and 2: it is a `Cell<F, X>`, and we run the task; the first use
    // of the stage has ended.
    unsafe {
        Cell::<F, X>::stage(header, |tag, stage| {
            stage.output = ManuallyDrop::new(output);
            *tag = StageTag::Output;
        });
    }
}

/// Drops the content of the stage, and returns the payload if that panicked.
///
/// # Safety
/// 1. `header` is that of a `Cell<F, X>`. 2. The stage is the caller's.
unsafe fn drop_stage<F: Future, X: Extra>(
    header: NonNull<Header>,
) -> Result<(), Box<dyn Any + Send>> {
    // SAFETY: our obligations 1 and 2: it is a `Cell<F, X>`, and the stage is the caller's. The
    // stage is marked as empty before the drop, which may panic, so that nothing is dropped
    // twice; the tag says which of the fields is there.
    unsafe {
        Cell::<F, X>::stage(header, |tag, stage| {
            let former = std::mem::replace(tag, StageTag::Nothing);
            catch_unwind(AssertUnwindSafe(|| match former {
                StageTag::Future => ManuallyDrop::drop(&mut stage.future),
                StageTag::Output => ManuallyDrop::drop(&mut stage.output),
                StageTag::Nothing => {}
            }))
        })
    }
}

/// Implements [`Vtable::drop_output`].
///
/// # Safety
/// 1. The obligation of [`Vtable::drop_output`], for a `Cell<F, X>`.
unsafe fn drop_output<F: Future, X: Extra>(header: NonNull<Header>) {
    // SAFETY: 1. the vtable belongs to a `Cell<F, X>`. 2. by our obligation the stage is the
    // caller's.
    if let Err(payload) = unsafe { drop_stage::<F, X>(header) } {
        discard(payload);
    }
}

/// Implements [`Vtable::read_output`].
///
/// # Safety
/// 1. The obligations of [`Vtable::read_output`], for a `Cell<F, X>`.
unsafe fn read_output<F: Future, X: Extra>(header: NonNull<Header>, target: *mut ()) {
    // SAFETY: 1. the vtable belongs to a `Cell<F, X>`. 2. by our obligation the stage is the
    // caller's. The output is taken out once, because the tag is set to `Nothing`.
    let output = unsafe {
        Cell::<F, X>::stage(header, |tag, stage| {
            let former = std::mem::replace(tag, StageTag::Nothing);
            (former == StageTag::Output).then(|| ManuallyDrop::take(&mut stage.output))
        })
    };
    let Some(output) = output else { panic!("JoinHandle polled after completion: await it once") };
    // SAFETY: obligation 2 of `Vtable::read_output`: the target has this type.
    unsafe { *target.cast::<Poll<Result<F::Output, JoinError>>>() = Poll::Ready(output) };
}

/// Implements [`Vtable::name`].
///
/// # Safety
/// 1. The obligation of [`Vtable::name`], for a cell with an `X`.
unsafe fn name<X: Extra>(header: NonNull<Header>) -> Option<NonNull<Arc<str>>> {
    // SAFETY: obligation 1: the cell has an `X` and is alive while the name is used.
    unsafe { Header::extra::<X>(header) }.name().map(NonNull::from)
}

/// Implements [`Vtable::drop_extra`].
///
/// # Safety
/// 1. The obligation of [`Vtable::drop_extra`], for a cell with an `X`.
unsafe fn drop_extra<X>(header: NonNull<Header>) {
    // SAFETY: obligation 1: the cell is the caller's alone, has an `X`, and it is not used again.
    unsafe { std::ptr::drop_in_place(&raw mut (*header.cast::<CellPrefix<X>>().as_ptr()).extra) };
}

impl Header {
    /// Returns the data that the task carries besides its future.
    ///
    /// # Safety
    /// 1. The task's cell was made with an `X`. 2. It is alive during `'a`.
    #[inline]
    pub(crate) unsafe fn extra<'a, X: Extra>(task: NonNull<Header>) -> &'a X {
        // SAFETY: obligation 1, and the header is the first field of a `CellPrefix`, which is
        // `repr(C)`; by obligation 2 the cell is alive during `'a`.
        unsafe { &task.cast::<CellPrefix<X>>().as_ref().extra }
    }

    /// Returns the name that the spawner gave the task.
    ///
    /// # Safety
    /// 1. The cell is alive during `'a`.
    pub(crate) unsafe fn name<'a>(task: NonNull<Header>) -> Option<&'a Arc<str>> {
        // SAFETY: obligation 1: the cell is alive as long as the name is used.
        unsafe { (task.as_ref().vtable.name)(task).map(|name| name.as_ref()) }
    }

    /// Drops the data that the task carries besides its future; the memory is freed next. User
    /// code may run: a global allocator.
    ///
    /// # Safety
    /// 1. The cell is the caller's alone, and this is called once.
    #[inline]
    pub(crate) unsafe fn drop_extra(task: NonNull<Header>) {
        // SAFETY: obligation 1: the cell is the caller's, so its header can be read.
        if let Some(drop_extra) = unsafe { task.as_ref() }.vtable.drop_extra {
            // SAFETY: obligation 1: the cell is the caller's alone, and `X` is dropped once.
            unsafe { drop_extra(task) };
        }
    }

    /// Returns true if the task is blocking work.
    pub(crate) fn is_blocking(&self) -> bool {
        self.vtable.is_blocking
    }

    /// Polls the future, and stores the output if that completes it.
    ///
    /// # Safety
    /// 1. The caller set RUNNING, and the stage holds the future.
    #[inline]
    pub(crate) unsafe fn poll(task: NonNull<Header>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: 1. our caller set RUNNING, and the stage holds the future.
        unsafe { (task.as_ref().vtable.poll)(task, cx) }
    }

    /// Drops the future and stores the error of a cancelled task as the output.
    ///
    /// # Safety
    /// 1. The caller set RUNNING, and the stage holds the future.
    pub(crate) unsafe fn cancel(task: NonNull<Header>) {
        // SAFETY: 1. our caller set RUNNING, and the stage holds the future.
        unsafe { (task.as_ref().vtable.cancel)(task) }
    }

    /// Drops the output, with the task as the thread's current one.
    ///
    /// # Safety
    /// 1. The stage is the caller's (rule 3 of the module `task`) and holds no future.
    pub(crate) unsafe fn drop_output(task: NonNull<Header>) {
        // The output's destructor may query the ID of the current task, which is this one.
        let _entered = CurrentTaskGuard::new(task, Budget::unlimited());
        // SAFETY: 1. the stage is our caller's and holds no future.
        unsafe { (task.as_ref().vtable.drop_output)(task) }
    }

    /// Moves the output into `target`.
    ///
    /// # Safety
    /// 1. and 2. The obligations of [`Vtable::read_output`].
    #[inline]
    pub(crate) unsafe fn read_output(task: NonNull<Header>, target: *mut ()) {
        // SAFETY: 1. the stage is our caller's and holds no future. 2. `target` is of the task's
        // own output type.
        unsafe { (task.as_ref().vtable.read_output)(task, target) }
    }
}

/// An entry for a task, as queues hold it. QUEUED is set while it exists.
///
/// The owner of an entry must [`run`](super::poll::run) it. Dropping an entry cancels the task; so
/// a queue that is dropped cancels the tasks in it.
#[derive(Debug)]
pub(crate) struct Task(NonNull<Header>);

// SAFETY: the state word decides which thread may touch what (rules of the module `task`), and
// futures and outputs are `Send`, because `spawn` demands it. Where they are not `Send`, as in
// `local` and in a pool that belongs to one thread, an entry may still move to another thread, but
// a thread other than theirs that takes it out of a queue finds the task complete.
unsafe impl Send for Task {}

impl Task {
    /// Creates the entry of a task.
    ///
    /// # Safety
    /// 1. The caller set QUEUED, and makes one entry for it.
    #[inline]
    pub(crate) unsafe fn new(task: NonNull<Header>) -> Self {
        Self(task)
    }

    /// Records the time at which the task was queued.
    #[inline(always)]
    pub(crate) fn stamp(&self, now: u32) {
        // SAFETY: the entry keeps the memory alive.
        unsafe { self.0.as_ref() }.since.set(now);
    }

    /// Returns true if a thread without a core should poll the task, because of its history.
    #[inline(always)]
    pub(crate) fn is_known_hog(&self) -> bool {
        // SAFETY: the entry keeps the memory alive.
        unsafe { self.0.as_ref() }.hog_history.is_hog()
    }

    /// Returns the time at which the task was queued.
    pub(crate) fn since(&self) -> u32 {
        // SAFETY: the entry keeps the memory alive.
        unsafe { self.0.as_ref() }.since.get()
    }

    /// Consumes the entry without cancelling; the caller must `take` the task or make a new entry.
    #[inline]
    pub(crate) fn into_header(self) -> NonNull<Header> {
        ManuallyDrop::new(self).0
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // SAFETY: 1. QUEUED is set, and this entry is given up for the new one, once.
        super::poll::end(unsafe { Task::new(self.0) });
    }
}

// SAFETY: a task stays at one address for its whole life, and the link is used only by the
// owner of the entry (rule 2 of the module `task`).
unsafe impl Linked for Task {
    type Node = Header;

    #[inline]
    fn into_ptr(self) -> NonNull<Header> {
        self.into_header()
    }

    /// Makes an entry from the pointer of one.
    ///
    /// # Safety
    /// 1. and 2. The obligations of [`Linked::from_ptr`].
    #[inline]
    unsafe fn from_ptr(ptr: NonNull<Header>) -> Self {
        Self(ptr)
    }

    /// Returns the queue link of a task.
    ///
    /// # Safety
    /// 1. The obligation of [`Linked::link`].
    #[inline]
    unsafe fn link(ptr: NonNull<Header>) -> NonNull<Link<Header>> {
        // SAFETY: the entry keeps the memory alive; no reference is made.
        unsafe { NonNull::new_unchecked(&raw mut (*ptr.as_ptr()).link) }
    }
}

/// A task as a member of its arena's list; alive until the arena frees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListedTask(pub(crate) NonNull<Header>);

// SAFETY: the pointer is the owner; a cell stays where it is and alive until its arena has taken it
// out of the list, and only that list touches the links.
unsafe impl Listed for ListedTask {
    type Node = Header;

    #[inline]
    fn into_ptr(self) -> NonNull<Header> {
        self.0
    }

    /// Makes a member from its pointer.
    ///
    /// # Safety
    /// 1. and 2. The obligations of [`Listed::from_ptr`].
    #[inline]
    unsafe fn from_ptr(ptr: NonNull<Header>) -> Self {
        Self(ptr)
    }

    /// Returns the list links of a task.
    ///
    /// # Safety
    /// 1. The obligation of [`Listed::links`].
    #[inline]
    unsafe fn links(ptr: NonNull<Header>) -> NonNull<Links<Header>> {
        // SAFETY: the arena keeps the memory alive; no reference is made.
        unsafe { NonNull::new_unchecked(&raw mut (*ptr.as_ptr()).links) }
    }
}
