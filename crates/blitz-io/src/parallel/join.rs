//! `join`, on whatever pool the caller is.

use std::marker::PhantomData;

use crate::engine::fork::{join as engine, worker::Worker};

/// Runs two closures, the second one on another thread if one is free; returns what both
/// returned.
///
/// The first one runs at once, on this thread if that is a pool's. The other one waits
/// meanwhile where other threads can take it; if none did, it runs here after the first.
/// Neither is copied or allocated for.
///
/// # Panics
///
/// If one of them panics. Both are run in any case, and the panic goes on when both have
/// ended; if both panic, it is that of the first.
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
    engine::join_here(
        #[inline(always)]
        |_: &Worker, _| oper_a(),
        #[inline(always)]
        |_: &Worker, _| oper_b(),
    )
}

/// As [`join`]; each closure is told whether it was moved to another thread than the caller's
/// (see [`FnContext::migrated`]).
///
/// # Examples
///
/// ```
/// let pool = blitz_io::parallel::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
/// let moved = pool.install(|| {
///     blitz_io::parallel::join_context(|a| a.migrated(), |b| b.migrated())
/// });
/// // There is one thread, so nobody could take the second.
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
    engine::join_here(
        #[inline(always)]
        |_: &Worker, migrated| oper_a(FnContext::new(migrated)),
        #[inline(always)]
        |_: &Worker, migrated| oper_b(FnContext::new(migrated)),
    )
}

/// What a closure of [`join_context`] is told.
///
/// # Examples
///
/// ```
/// // This thread is not the pool's, so both go to others.
/// let (a, b) = blitz_io::parallel::join_context(|a| a.migrated(), |b| b.migrated());
/// assert!(a && b);
/// ```
#[derive(Debug)]
pub struct FnContext {
    migrated: bool,
    /// It is about a thread, and stays there.
    stays: PhantomData<*mut ()>,
}

impl FnContext {
    #[inline(always)]
    fn new(migrated: bool) -> Self {
        Self { migrated, stays: PhantomData }
    }

    /// Whether the closure came to its thread by a queue; `false` if it was simply called, on
    /// the thread that called [`join_context`].
    ///
    /// So `false` is certain: it runs where it was made. `true` says nearly always that it runs on
    /// another thread. The exception is a second closure that the same thread takes from its
    /// queue while it waits for something else inside of the first: that counts as moved, as it
    /// does with Rayon.
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
