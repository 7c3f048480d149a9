//! The memory of one task, and how code that does not know its type reaches it.
//!
//! ```text
//! Cell<F, X>: | Header: state, vtable, link, home, links, id, place, moment, join waker | X | stage: F, then its output |
//!              ^ every pointer to a task points here
//! ```
//! `X` is what some tasks carry besides ([`super::extra`]): nothing, for most.
//!
//! The header is 88 bytes, and cells are aligned to 16 at most unless the future
//! asks for more: a parked task is its future plus 88 bytes, and the allocator's
//! ordinary path serves it. Half of a spawn elsewhere is the price of
//! over-alignment.

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
use super::trace::Seen;
use super::{
    budget::Budget,
    conduct::Conduct,
    error::JoinError,
    extra::Extra,
    home::Home,
    moment::{Moment, Waiting},
    state::State,
    trace,
};
use crate::engine::{
    prim::{UnsafeCell, discard},
    queue::{
        Link, Linked,
        list::{Links, Listed},
    },
    work::current::Entered,
};

/// An opaque ID that uniquely identifies a task relative to all other currently
/// running tasks.
///
/// IDs are not sequential and say nothing about the order of spawning. They are
/// unique among all tasks of the process.
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

/// What all tasks have in common. First what a wake-up and a poll touch, so that it is in one line of
/// the cache if it can be: what is in a second one has to come before the state is exchanged.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) state: State,
    pub(crate) vtable: &'static Vtable,
    /// The queue's link, then the link of the way home.
    pub(crate) link: Link<Header>,
    pub(crate) home: NonNull<Home>,
    pub(crate) since: Moment,
    pub(crate) waiting: Waiting,
    pub(crate) conduct: Conduct,
    /// Belongs to whom the stage belongs.
    stage: UnsafeCell<Holds>,
    pub(crate) join_waker: UnsafeCell<Option<Waker>>,
    /// The home's list of all its tasks.
    links: Links<Header>,
    pub(crate) id: Id,
    pub(crate) spawned_at: &'static Location<'static>,
    #[cfg(feature = "tracing")]
    pub(crate) seen: Option<Seen>,
}

/// What is done to a task by those who do not know its type.
pub(crate) struct Vtable {
    /// # Safety
    /// 1. The caller set RUNNING, and the stage holds the future.
    poll: unsafe fn(NonNull<Header>, &mut Context<'_>) -> Poll<()>,
    /// # Safety
    /// 1. The caller set RUNNING, and the stage holds the future.
    cancel: unsafe fn(NonNull<Header>),
    /// # Safety
    /// 1. The stage is the caller's (rule 3 of the module) and is no future.
    drop_output: unsafe fn(NonNull<Header>),
    /// # Safety
    /// 1. As `drop_output`. 2. The pointer is to a `Poll<Result<T, JoinError>>`
    ///    of the task's own `T`.
    read_output: unsafe fn(NonNull<Header>, *mut ()),
    /// # Safety
    /// 1. The cell is alive, as long as the name is used.
    name: unsafe fn(NonNull<Header>) -> Option<NonNull<Arc<str>>>,
    /// Drops what the task carries besides, if that has to be dropped.
    ///
    /// # Safety
    /// 1. The cell is the caller's alone, and `X` is not used again.
    drop_extra: Option<unsafe fn(NonNull<Header>)>,
    /// Whether it is blocking work.
    pub(crate) is_blocking: bool,
    /// The name of the future's type.
    pub(crate) type_name: fn() -> &'static str,
    /// The memory's size and alignment.
    pub(crate) layout: Layout,
}

/// The part of a cell that does not depend on the future.
#[repr(C)]
pub(crate) struct Front<X> {
    header: Header,
    extra: X,
}

/// A task's memory.
#[repr(C)]
pub(crate) struct Cell<F: Future, X = ()> {
    front: Front<X>,
    stage: UnsafeCell<Stage<F>>,
}

/// The future, then its output. Which of them is there says [`Header::stage`], so
/// that the tag costs no word of its own.
union Stage<F: Future> {
    future: ManuallyDrop<F>,
    output: ManuallyDrop<Result<F::Output, JoinError>>,
}

/// What the stage holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Future,
    Output,
    Nothing,
}

/// What a spawner says of a task, besides its future.
pub(crate) struct Label<X = ()> {
    pub(crate) spawned_at: &'static Location<'static>,
    pub(crate) extra: X,
    #[cfg(feature = "tracing")]
    pub(crate) seen: Option<Seen>,
}

impl<X> Label<X> {
    /// The same of a task that carries `extra`.
    #[inline]
    pub(crate) fn with(spawned_at: &'static Location<'static>, extra: X) -> Self {
        Self {
            spawned_at,
            extra,
            #[cfg(feature = "tracing")]
            seen: None,
        }
    }
}

impl Label {
    /// What is said of most: where they were spawned.
    #[inline]
    pub(crate) fn at(spawned_at: &'static Location<'static>) -> Self {
        Self::with(spawned_at, ())
    }
}

/// What a cell is made from, besides the future.
pub(crate) struct Birth<X> {
    pub(crate) home: NonNull<Home>,
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

    /// Makes a task in `memory`.
    ///
    /// # Safety
    /// 1. `memory` is the caller's alone, and fits a `Cell<F, X>`.
    #[inline]
    pub(crate) unsafe fn create(
        memory: NonNull<u8>,
        future: F,
        birth: Birth<X>,
    ) -> NonNull<Header> {
        let cell = memory.cast::<Cell<F, X>>();
        let join_waker = X::born_waker(cell.cast());
        let header = Header {
            state: if join_waker.is_some() { State::in_set() } else { State::at_spawn() },
            vtable: &Self::VTABLE,
            link: Link::new(),
            home: birth.home,
            links: Links::new(),
            id: birth.id,
            spawned_at: birth.label.spawned_at,
            since: Moment::default(),
            waiting: Waiting::default(),
            conduct: Conduct::new(X::IS_LONG_RUNNING),
            #[cfg(feature = "tracing")]
            seen: birth.label.seen,
            stage: UnsafeCell::new(Holds::Future),
            join_waker: UnsafeCell::new(join_waker),
        };
        let front = Front { header, extra: birth.label.extra };
        // SAFETY: by obligation 1.
        unsafe {
            cell.write(Cell {
                front,
                stage: UnsafeCell::new(Stage { future: ManuallyDrop::new(future) }),
            })
        };
        cell.cast()
    }

    /// Lends the stage, and the word that says what it holds, to `f`.
    ///
    /// # Safety
    /// 1. `header` is that of a `Cell<F, X>`. 2. The stage is the caller's, and `f`
    ///    does not reach it a second time.
    #[inline(always)]
    unsafe fn stage<R>(
        header: NonNull<Header>,
        f: impl FnOnce(&mut Holds, &mut Stage<F>) -> R,
    ) -> R {
        // SAFETY: 1.: the header is the first field of a `repr(C)` cell.
        let cell = unsafe { header.cast::<Cell<F, X>>().as_ref() };
        cell.front.header.stage.with_mut(|holds| {
            // SAFETY: 2.: nobody else has a reference.
            cell.stage.with_mut(|stage| unsafe { f(&mut *holds, &mut *stage) })
        })
    }
}

/// # Safety
/// 1. As [`Vtable::poll`], of a `Cell<F, X>`.
unsafe fn poll<F: Future, X: Extra>(header: NonNull<Header>, cx: &mut Context<'_>) -> Poll<()> {
    // SAFETY: 1. the vtable belongs to a `Cell<F, X>`. 2. We run the task.
    let polled = unsafe {
        Cell::<F, X>::stage(header, |holds, stage| {
            assert!(*holds == Holds::Future, "polled after completion");
            // The future is there, and stays where it is until it is dropped in place.
            catch_unwind(AssertUnwindSafe(|| {
                let unwinding = Unwinding { holds, future: &mut stage.future };
                let polled = Pin::new_unchecked(&mut **unwinding.future).poll(cx);
                std::mem::forget(unwinding);
                polled
            }))
        })
    };
    let output = match polled {
        Ok(Poll::Pending) => return Poll::Pending,
        Ok(Poll::Ready(output)) => Ok(output),
        // SAFETY: we run the task.
        Err(payload) => Err(unsafe { panicked(header, payload) }),
    };
    // SAFETY: 1. as above. 2. We run the task, and the first use has ended.
    unsafe { finish::<F, X>(header, output) };
    Poll::Ready(())
}

/// Drops a future whose poll panics while that panic is still on its way: destructors ask
/// whether the thread panics, to tell an end from an accident.
struct Unwinding<'a, F> {
    holds: &'a mut Holds,
    future: &'a mut ManuallyDrop<F>,
}

impl<F> Drop for Unwinding<'_, F> {
    #[cold]
    fn drop(&mut self) {
        *self.holds = Holds::Nothing;
        // SAFETY: it was there, and from now on it is not.
        let dropping = || unsafe { ManuallyDrop::drop(self.future) };
        // A second panic is one too many: the first is the task's.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(dropping)) {
            discard(payload);
        }
    }
}

/// A panic of a task, of which its runtime hears before anybody else.
///
/// # Safety
/// 1. The caller runs the task.
#[cold]
unsafe fn panicked(header: NonNull<Header>, payload: Box<dyn Any + Send>) -> JoinError {
    // SAFETY: 1.: running keeps the memory alive, and the memory its home.
    let (id, home) = unsafe { (header.as_ref().id, header.as_ref().home.as_ref()) };
    // SAFETY: 1.
    if !unsafe { header.as_ref() }.is_blocking() {
        home.schedule().task_panicked();
    }
    // SAFETY: 1.
    unsafe { trace::panicked(header) };
    JoinError::panicked(id, payload)
}

/// # Safety
/// 1. As [`Vtable::cancel`], of a `Cell<F, X>`.
unsafe fn cancel<F: Future, X: Extra>(header: NonNull<Header>) {
    // SAFETY: we run the task.
    let error = JoinError::cancelled(unsafe { header.as_ref() }.id);
    // SAFETY: 1. as the caller. 2. We run the task.
    unsafe { finish::<F, X>(header, Err(error)) };
}

/// Drops the future and stores the output; a panic of that drop replaces it.
///
/// # Safety
/// 1. `header` is that of a `Cell<F, X>`. 2. The caller runs the task.
unsafe fn finish<F: Future, X: Extra>(
    header: NonNull<Header>,
    output: Result<F::Output, JoinError>,
) {
    // SAFETY: 1. and 2. are the caller's. The future is dropped in place, as pinning
    // demands.
    let dropped = unsafe { drop_stage::<F, X>(header) };
    let output = match dropped {
        Err(payload) => {
            // What was computed goes too; its own panic must not escape either.
            discard(output);
            // SAFETY: we run the task.
            Err(unsafe { panicked(header, payload) })
        }
        Ok(()) => output,
    };
    // SAFETY: 1. and 2. are the caller's; the first use has ended.
    unsafe {
        Cell::<F, X>::stage(header, |holds, stage| {
            stage.output = ManuallyDrop::new(output);
            *holds = Holds::Output;
        });
    }
}

/// Drops what the stage holds.
///
/// # Safety
/// 1. `header` is that of a `Cell<F, X>`. 2. The stage is the caller's.
unsafe fn drop_stage<F: Future, X: Extra>(
    header: NonNull<Header>,
) -> Result<(), Box<dyn Any + Send>> {
    // SAFETY: 1. and 2. are the caller's. The stage is marked as empty before the
    // drop, which may panic, so that nothing is dropped twice; what it held says
    // which of the fields is there.
    unsafe {
        Cell::<F, X>::stage(header, |holds, stage| {
            let held = std::mem::replace(holds, Holds::Nothing);
            catch_unwind(AssertUnwindSafe(|| match held {
                Holds::Future => ManuallyDrop::drop(&mut stage.future),
                Holds::Output => ManuallyDrop::drop(&mut stage.output),
                Holds::Nothing => {}
            }))
        })
    }
}

/// # Safety
/// 1. As [`Vtable::drop_output`], of a `Cell<F, X>`.
unsafe fn drop_output<F: Future, X: Extra>(header: NonNull<Header>) {
    // SAFETY: 1. the vtable belongs to a `Cell<F, X>`. 2. The caller's obligation.
    if let Err(payload) = unsafe { drop_stage::<F, X>(header) } {
        discard(payload);
    }
}

/// # Safety
/// 1. As [`Vtable::read_output`], of a `Cell<F, X>`.
unsafe fn read_output<F: Future, X: Extra>(header: NonNull<Header>, target: *mut ()) {
    // SAFETY: 1. the vtable belongs to a `Cell<F, X>`. 2. The caller's obligation. The
    // output is taken out once, as what the stage holds says.
    let output = unsafe {
        Cell::<F, X>::stage(header, |holds, stage| {
            let held = std::mem::replace(holds, Holds::Nothing);
            (held == Holds::Output).then(|| ManuallyDrop::take(&mut stage.output))
        })
    };
    let Some(output) = output else { panic!("`JoinHandle` polled after completion") };
    // SAFETY: obligation 2 of `Vtable::read_output`.
    unsafe { *target.cast::<Poll<Result<F::Output, JoinError>>>() = Poll::Ready(output) };
}

/// # Safety
/// 1. As [`Vtable::name`], of a cell with an `X`.
unsafe fn name<X: Extra>(header: NonNull<Header>) -> Option<NonNull<Arc<str>>> {
    // SAFETY: 1.
    unsafe { Header::extra::<X>(header) }.name().map(NonNull::from)
}

/// # Safety
/// 1. As [`Vtable::drop_extra`], of a cell with an `X`.
unsafe fn drop_extra<X>(header: NonNull<Header>) {
    // SAFETY: 1.
    unsafe { std::ptr::drop_in_place(&raw mut (*header.cast::<Front<X>>().as_ptr()).extra) };
}

impl Header {
    /// What the task carries besides its future.
    ///
    /// # Safety
    /// 1. The task's cell was made with an `X`. 2. It is alive during `'a`.
    #[inline]
    pub(crate) unsafe fn extra<'a, X: Extra>(task: NonNull<Header>) -> &'a X {
        // SAFETY: 1.: the header is the first field of a `repr(C)` front. 2.
        unsafe { &task.cast::<Front<X>>().as_ref().extra }
    }

    /// The name that the spawner gave it.
    ///
    /// # Safety
    /// 1. The cell is alive during `'a`.
    pub(crate) unsafe fn name<'a>(task: NonNull<Header>) -> Option<&'a Arc<str>> {
        // SAFETY: 1.
        unsafe { (task.as_ref().vtable.name)(task).map(|name| name.as_ref()) }
    }

    /// Drops what the task carries besides; its memory goes next. Users' code may run:
    /// an allocator.
    ///
    /// # Safety
    /// 1. The cell is the caller's alone, and this is called once.
    #[inline]
    pub(crate) unsafe fn drop_extra(task: NonNull<Header>) {
        // SAFETY: 1.
        if let Some(drop_extra) = unsafe { task.as_ref() }.vtable.drop_extra {
            // SAFETY: 1.
            unsafe { drop_extra(task) };
        }
    }

    /// Whether the task is blocking work.
    pub(crate) fn is_blocking(&self) -> bool {
        self.vtable.is_blocking
    }

    /// # Safety
    /// 1. As [`Vtable::poll`].
    #[inline]
    pub(crate) unsafe fn poll(task: NonNull<Header>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: the caller's.
        unsafe { (task.as_ref().vtable.poll)(task, cx) }
    }

    /// # Safety
    /// 1. As [`Vtable::cancel`].
    pub(crate) unsafe fn cancel(task: NonNull<Header>) {
        // SAFETY: the caller's.
        unsafe { (task.as_ref().vtable.cancel)(task) }
    }

    /// # Safety
    /// 1. As [`Vtable::drop_output`].
    pub(crate) unsafe fn drop_output(task: NonNull<Header>) {
        // The output's destructor may ask which task it belonged to.
        let _entered = Entered::new(task, Budget::unlimited());
        // SAFETY: the caller's.
        unsafe { (task.as_ref().vtable.drop_output)(task) }
    }

    /// # Safety
    /// 1. and 2. As [`Vtable::read_output`].
    #[inline]
    pub(crate) unsafe fn read_output(task: NonNull<Header>, target: *mut ()) {
        // SAFETY: the caller's.
        unsafe { (task.as_ref().vtable.read_output)(task, target) }
    }
}

/// An entry for a task: what queues hold. QUEUED is set while it exists.
///
/// Whoever has it must [`run`](super::poll::run) it; dropping it, as a queue does
/// that goes away, cancels the task.
#[derive(Debug)]
pub(crate) struct Task(NonNull<Header>);

// SAFETY: the state word decides who may touch what (rules of the module), and
// futures and outputs are `Send`: `spawn` demands it. Where they are not, as in
// `local` and in a pool that belongs to a thread, an entry may travel, but whoever
// takes it out on another thread than theirs finds the task complete.
unsafe impl Send for Task {}

impl Task {
    /// # Safety
    /// 1. The caller set QUEUED, and makes one entry of it.
    #[inline]
    pub(crate) unsafe fn new(task: NonNull<Header>) -> Self {
        Self(task)
    }

    /// Notes when the task was queued.
    #[inline(always)]
    pub(crate) fn stamp(&self, now: u32) {
        // SAFETY: the entry keeps the memory alive.
        unsafe { self.0.as_ref() }.since.set(now);
    }

    /// Whether the task is better polled by a thread without a core.
    #[inline(always)]
    pub(crate) fn is_doubtful(&self) -> bool {
        // SAFETY: the entry keeps the memory alive.
        unsafe { self.0.as_ref() }.conduct.is_doubtful()
    }

    /// When it was queued.
    pub(crate) fn since(&self) -> u32 {
        // SAFETY: the entry keeps the memory alive.
        unsafe { self.0.as_ref() }.since.get()
    }

    /// Gives the entry up for the right to `take`.
    #[inline]
    pub(crate) fn into_header(self) -> NonNull<Header> {
        ManuallyDrop::new(self).0
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // SAFETY: the entry is given up here, once.
        super::poll::end(unsafe { Task::new(self.0) });
    }
}

// SAFETY: a task is at one address for its whole life, and the link is used by
// whoever owns the entry (rule 2 of the module).
unsafe impl Linked for Task {
    type Node = Header;

    #[inline]
    fn into_ptr(self) -> NonNull<Header> {
        self.into_header()
    }

    /// # Safety
    /// 1. and 2. As the trait says.
    #[inline]
    unsafe fn from_ptr(ptr: NonNull<Header>) -> Self {
        Self(ptr)
    }

    /// # Safety
    /// 1. As the trait says.
    #[inline]
    unsafe fn link(ptr: NonNull<Header>) -> NonNull<Link<Header>> {
        // SAFETY: the entry keeps the memory alive; no reference is made.
        unsafe { NonNull::new_unchecked(&raw mut (*ptr.as_ptr()).link) }
    }
}

/// A task as the list of its home knows it: alive until the home frees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member(pub(crate) NonNull<Header>);

// SAFETY: the pointer is the owner; a cell stays where it is and alive until its
// home has taken it out of the list, and only that list touches the links.
unsafe impl Listed for Member {
    type Node = Header;

    #[inline]
    fn into_ptr(self) -> NonNull<Header> {
        self.0
    }

    /// # Safety
    /// 1. and 2. As the trait says.
    #[inline]
    unsafe fn from_ptr(ptr: NonNull<Header>) -> Self {
        Self(ptr)
    }

    /// # Safety
    /// 1. As the trait says.
    #[inline]
    unsafe fn links(ptr: NonNull<Header>) -> NonNull<Links<Header>> {
        // SAFETY: the home keeps the memory alive; no reference is made.
        unsafe { NonNull::new_unchecked(&raw mut (*ptr.as_ptr()).links) }
    }
}
