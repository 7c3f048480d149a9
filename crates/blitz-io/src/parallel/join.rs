//! `join` on the pool of the calling thread, or else on the global pool.

use std::marker::PhantomData;

use crate::engine::fork::{join as engine, worker::Worker};

/// Runs two closures, potentially in parallel, and returns both results.
///
/// The first closure runs at once, on this thread if it belongs to a pool. Meanwhile the second one
/// waits in a queue from which other threads can steal it; if none does, it runs here after the
/// first. Neither closure is copied or boxed.
///
/// # Panics
///
/// If one of the closures panics. Both are run in any case, and the panic is resumed when both have
/// ended; if both panic, it is that of the first closure.
///
/// # Examples
///
/// ```
/// let text = "some words in a text";
/// let (words, letters) = blitz_io::parallel::join(
///     || text.split(' ').count(),
///     || text.chars().filter(|c| c.is_alphabetic()).count(),
/// );
/// assert_eq!((words, letters), (5, 16));
/// ```
#[inline]
pub fn join<A, B, RA, RB>(oper_a: A, oper_b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    engine::join_current(
        #[inline(always)]
        |_: &Worker, _| oper_a(),
        #[inline(always)]
        |_: &Worker, _| oper_b(),
    )
}

/// Runs two closures like [`join`] and passes each a context that reports whether the closure was
/// moved to another thread; see [`FnContext::migrated`].
///
/// # Examples
///
/// ```
/// let pool = blitz_io::parallel::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
/// let moved = pool.install(|| {
///     blitz_io::parallel::join_context(|a| a.migrated(), |b| b.migrated())
/// });
/// // There is one thread, so no other thread could steal the second closure.
/// assert_eq!(moved, (false, false));
/// ```
#[inline]
pub fn join_context<A, B, RA, RB>(oper_a: A, oper_b: B) -> (RA, RB)
where
    A: FnOnce(FnContext) -> RA + Send,
    B: FnOnce(FnContext) -> RB + Send,
    RA: Send,
    RB: Send,
{
    engine::join_current(
        #[inline(always)]
        |_: &Worker, migrated| oper_a(FnContext::new(migrated)),
        #[inline(always)]
        |_: &Worker, migrated| oper_b(FnContext::new(migrated)),
    )
}

/// The argument that [`join_context`] passes to its closures.
///
/// # Examples
///
/// ```
/// // This thread does not belong to the pool, so both closures run on other threads.
/// let (a, b) = blitz_io::parallel::join_context(|a| a.migrated(), |b| b.migrated());
/// assert!(a && b);
/// ```
#[derive(Debug)]
pub struct FnContext {
    migrated: bool,
    /// Makes the context `!Send`, because it describes the thread that it is passed on.
    not_send: PhantomData<*mut ()>,
}

impl FnContext {
    #[inline(always)]
    fn new(migrated: bool) -> Self {
        Self { migrated, not_send: PhantomData }
    }

    /// Returns `true` if the closure reached its thread through a queue, and `false` if it was
    /// called directly by the thread that called [`join_context`].
    ///
    /// So `false` guarantees that the closure runs on the thread that created it. `true` nearly
    /// always means that it runs on another thread. The exception is a second closure that the same
    /// thread takes from its queue while it waits for something else inside of the first closure:
    /// that counts as migrated, as in Rayon.
    ///
    /// # Examples
    ///
    /// ```
    /// blitz_io::parallel::join_context(|context| assert!(context.migrated()), |_| ());
    /// ```
    #[inline]
    pub fn migrated(&self) -> bool {
        self.migrated
    }
}
