//! Tasks with stacks of their own: code that waits in the middle of an ordinary call.
//!
//! [`spawn`] starts a *fiber*: a closure that runs as a task does, with a [`JoinHandle`], an
//! ID, a budget and its runtime's hooks. Where a task has `.await`, a fiber calls [`wait`], in
//! any function, however deep, in callbacks, in `Iterator::next`, in implementations of
//! synchronous traits. While it waits its thread runs other fibers.
//!
//! ```
//! use std::io;
//!
//! use blitz_io::{
//!     fiber,
//!     io::{AsyncReadExt, AsyncWriteExt},
//!     net::{TcpListener, TcpStream},
//! };
//!
//! /// A socket that blocks its fiber, for code that knows `std::io` only.
//! struct Blocking(TcpStream);
//!
//! impl io::Read for Blocking {
//!     fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
//!         fiber::wait(AsyncReadExt::read(&mut self.0, buffer))
//!     }
//! }
//!
//! # blitz_io::run(async {
//! let listener = TcpListener::bind("127.0.0.1:0").await?;
//! let address = listener.local_addr()?;
//! let reader = fiber::spawn(move || {
//!     let (socket, _) = fiber::wait(listener.accept())?;
//!     io::read_to_string(Blocking(socket))
//! });
//! TcpStream::connect(address).await?.write_all(b"hello").await?;
//! assert_eq!(reader.await.unwrap()?, "hello");
//! # io::Result::Ok(())
//! # }).unwrap();
//! ```
//!
//! # When to use one
//!
//! For code that cannot be made `async`: a parser that pulls from a `std::io::Read`, a callback
//! of a library, a recursive visitor. A task is smaller (a fiber touches 4 to 8 KiB of stack and
//! wakes up across threads) and moves between the workers; prefer tasks where you can choose.
//! Code that computes for long, or that blocks the thread, is better off with
//! [`spawn_blocking`](crate::task::spawn_blocking).
//!
//! # One thread
//!
//! A fiber runs on one thread for its whole life. Moving a stack to another thread is unsound
//! in Rust: the compiler may keep the address of a thread-local across a call, and values that
//! are not `Send` may lie on the stack (`tests/fiber/migrating.rs` in the repository shows the
//! first). The closure and its result are [`Send`]; what the closure makes need not be.
//! Staying is sound but for [what must not be held across a
//! wait](self#what-must-not-be-held-across-a-wait).
//!
//! The threads that run fibers run nothing else. A runtime starts them when there are fibers for
//! them ([`Builder::fiber_threads`](crate::runtime::Builder::fiber_threads)), also a
//! current-thread runtime, whose fibers run beside its
//! [`block_on`](crate::runtime::Runtime::block_on) (but its timers and sockets are looked after
//! by `block_on` only).
//!
//! **A fiber that does not wait keeps the other fibers of its thread waiting**, and no other
//! thread can help them out. Tasks are not concerned. In long computations call [`checkpoint`].
//!
//! # Cancellation
//!
//! A fiber ends early by [`JoinHandle::abort`] and with its runtime, when it waits or at a
//! checkpoint: [`wait`] then does not return, but unwinds as a panic does, without a report by
//! the panic hook. Destructors run, on the fiber's own stack and thread. A
//! [`catch_unwind`](std::panic::catch_unwind) sees it pass, and should let it go on with
//! [`resume_unwind`](std::panic::resume_unwind): a fiber that catches it and waits is unwound
//! again, and after 64 times it is given up, with a line on standard error: its stack is
//! leaked with all that is on it, and its thread sleeps on when the runtime has ended, without
//! [`on_thread_stop`](crate::runtime::Builder::on_thread_stop). The task stays, too, and what
//! belongs to its runtime: its memory, its driver's descriptors.
//!
//! A runtime that is dropped waits, without a bound, for fibers that compute: until each has
//! come to a [`wait`] or a [`checkpoint`].
//!
//! While its thread unwinds, in a destructor that runs because of a panic or of a
//! cancellation, a fiber is not suspended: [`wait`] blocks the thread until its future is
//! ready, and [`checkpoint`] does nothing. A future that needs another fiber of that thread
//! never is.
//!
//! A multi-thread runtime that is dropped ends its fibers first, so what their destructors
//! wait for still works. If it is shut down in the background, and on a current-thread
//! runtime, tasks are cancelled by then, sockets give errors, and timers panic, which in a
//! destructor that runs because of an unwinding ends the process: do not sleep there if the
//! runtime may be one of those.
//!
//! In programs that are built with `panic = "abort"` nothing can be unwound: a fiber that is
//! cancelled never runs again, its destructors do not run, and it is given up at once, with
//! all that this leaks. That is what a runtime costs then that is dropped while a fiber is
//! suspended. How *this crate* was built counts: if only the program itself is built so, a
//! cancellation ends the process.
//!
//! # Stacks
//!
//! A stack has 256 KiB of address space, or what [`Builder::stack_size`] or
//! [`runtime::Builder::fiber_stack_size`](crate::runtime::Builder::fiber_stack_size) says, and
//! costs the pages that were touched. Below it is a guard: an overflow ends the process with the
//! fiber's name and spawn location. For that, the first fiber of a process puts a handler for
//! SIGSEGV and SIGBUS in front of the one that is there, which is passed all other faults, and
//! signals that somebody sends.
//!
//! On Linux 6.13 and newer memory is what bounds the number of fibers. Elsewhere a stack takes
//! two of the kernel's mappings, of which Linux allows 65,530 a process (`vm.max_map_count`):
//! 32,000 fibers. Beyond, [`Builder::spawn`] gives an error that says so, and [`spawn`] panics.
//!
//! # What may be called on a fiber
//!
//! - [`spawn`], [`task::spawn`](crate::spawn) and [`Handle::current`] mean the fiber's runtime;
//!   a guard of [`Handle::enter`] and the scope of a [`task_local!`](crate::task_local) stay
//!   with their fiber while it is suspended.
//! - [`Handle::block_on`] and functions like `blocking_recv` panic, as in tasks: use [`wait`].
//! - [`block_in_place`](crate::task::block_in_place) is allowed. It blocks the thread, and so its
//!   other fibers; `block_on` works inside of it, and inside of that [`wait`] panics.
//! - [`wait`] inside of a `LocalSet`, of a fork-join job or of a task that is polled on the
//!   fiber's stack panics, too: `.await` there.
//!
//! # What must not be held across a wait
//!
//! The fibers of a thread share it. What a function sets, takes or lends for the time of its
//! call, and keeps where the whole thread sees it, is seen by all the fibers that run while it
//! waits. Most of that is a nuisance; two forms of it are worse.
//!
//! **Known unsoundness.** A thread with one stack ends its calls in the reverse order in which
//! they began, and safe code may count on that. With fibers it is not so, and no runtime can
//! tell that such a call is on the stack. So the feature `fiber` is not fully sound with all
//! safe code of others. It is memory that is used after it was freed if a fiber waits
//!
//! - **in the initialiser of a [`thread_local!`]**. If another fiber asks for the value
//!   meanwhile it makes one too, and may have it borrowed when the first goes on; the standard
//!   library then puts the first one's value in its place and drops what is borrowed. Never
//!   wait there, nor call what may: use a `const {}` initialiser, or put a
//!   [`OnceCell`](std::cell::OnceCell) into the thread-local, which panics instead. Nothing in
//!   the language tells [`wait`] that it is called there, so it cannot refuse.
//! - **inside of a call that sets a thread-local to a reference and sets it back at its end**:
//!   the crate `scoped-tls`, another runtime's `block_on`, interpreters that keep a stack of
//!   their own this way. Two fibers that end such calls in the order in which they began leave
//!   a pointer to a frame that is gone. Scopes of [`task_local!`](crate::task_local),
//!   [`Handle::enter`] and all else of this crate is put aside while a fiber is suspended.
//!
//! `tests/fiber/hazards.rs` in the repository shows both. [`spawn`] and [`wait`] are safe
//! functions all the same, since nobody could keep the promise that an `unsafe` one would ask
//! for: it is about every function between the two. Wait in code that you know.
//!
//! **Locks.** A lock of the standard library that is held across a wait is one that another
//! fiber of the thread blocks on, with the thread, and so for ever; with it the runtime, when
//! it is dropped.
//!
//! - A `std::sync::MutexGuard`: use [`sync::Mutex`](crate::sync::Mutex) across waits.
//! - [`Once`](std::sync::Once), [`OnceLock`](std::sync::OnceLock) and
//!   [`LazyLock`](std::sync::LazyLock) whose initialiser waits: use
//!   [`sync::OnceCell`](crate::sync::OnceCell).
//! - A [`RefCell`](std::cell::RefCell) in a thread-local is found borrowed, and panics.
//! - Where a lock of this crate is held while code of yours runs, [`wait`] panics: while a
//!   [`watch::Ref`](crate::sync::watch::Ref) lives, in the closures that look at or change a
//!   watched value, and in a poll of a stream that [`io::split`](crate::io::split()) shares.
//!   The function that names threads
//!   ([`thread_name_fn`](crate::runtime::Builder::thread_name_fn)) must not wait, either.
//!
//! **Other things of a thread.** A span of `tracing` that was entered, or a default subscriber
//! that was set for a scope, is that of all fibers that run meanwhile, and is set back in the
//! wrong order: spans get wrong parents. Below a `catch` block of C++ on the fiber's stack a
//! wait mixes up what the thread knows of its exceptions.
//!
//! **Functions that cannot unwind.** A fiber that is aborted, or whose runtime ends, is unwound
//! from the [`wait`] that it stands in. If a callback of a library in C is on its stack
//! (`extern "C"`), that ends the process, as any panic there does.
//!
//! Fibers are not among the tasks that [`Handle::dump`] shows, nor do a runtime's figures count
//! them, but for polls that lasted too long and forced yields; a clock that is [paused](crate::time) goes on while fibers run.
//!
//! [`Handle::current`]: crate::runtime::Handle::current
//! [`Handle::enter`]: crate::runtime::Handle::enter
//! [`Handle::dump`]: crate::runtime::Handle::dump
//! [`Handle::block_on`]: crate::runtime::Handle::block_on

#![forbid(unsafe_code)]

use std::{future::IntoFuture, panic::Location};

mod builder;

pub use self::builder::Builder;
use crate::{
    engine::{fiber::strand, work::task::cell::Label},
    runtime::Handle,
    task::JoinHandle,
};

/// Spawns a new fiber on the current runtime, returning a [`JoinHandle`] for it.
///
/// The fiber starts at once, whether or not the handle is awaited. Dropping the handle detaches
/// it. If the closure panics, the panic ends there, and awaiting the handle gives it as an
/// error.
///
/// # Panics
///
/// If there is no runtime on this thread; if there is no memory for the fiber's stack, or no
/// thread to run it. [`Builder::spawn`] answers with an error instead of the latter two.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use blitz_io::{fiber, time::sleep};
///
/// # blitz_io::run(async {
/// let fiber = fiber::spawn(|| {
///     fiber::wait(sleep(Duration::from_millis(1)));
///     "done"
/// });
/// assert_eq!(fiber.await.unwrap(), "done");
/// # });
/// ```
#[track_caller]
pub fn spawn<F, R>(f: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let (handle, spawned_at) = (Handle::current(), Location::caller());
    match builder::spawn_sized(f, None, &handle, Label::at(spawned_at)) {
        Ok(handle) => handle,
        Err(error) => panic!("cannot spawn a fiber: {error}"),
    }
}

/// Waits for a future; meanwhile the fiber's thread runs other fibers.
///
/// If the future is ready at once, so is this, except that now and then it is a [`checkpoint`]
/// first: a loop of waits that are all ready lets other fibers run, too. It does not return if
/// the fiber was aborted or its runtime ends, even if the future is ready: it unwinds the
/// fiber's stack then; see the [module](self#cancellation). While its thread unwinds already,
/// it blocks the thread until the future is ready.
///
/// # Panics
///
/// Outside of a fiber; and on one where it must not be left: inside of `block_on`, a
/// `LocalSet`, a fork-join job, a task that is polled on the fiber's stack, or under a lock of
/// this crate. And if the future panics. Where it must not be called and *cannot* panic is
/// said [above](self#what-must-not-be-held-across-a-wait).
///
/// # Examples
///
/// ```
/// use blitz_io::{channel::oneshot, fiber};
///
/// # blitz_io::run(async {
/// let (sender, receiver) = oneshot::channel();
/// let fiber = fiber::spawn(move || fiber::wait(receiver).unwrap() + 1);
/// sender.send(41).unwrap();
/// assert_eq!(fiber.await.unwrap(), 42);
/// # });
/// ```
///
/// Fibers wait for tasks, and for each other:
///
/// ```
/// use blitz_io::fiber;
///
/// # blitz_io::run(async {
/// let fiber = fiber::spawn(|| {
///     let task = blitz_io::spawn(async { 1 });
///     let other = fiber::spawn(|| 2);
///     fiber::wait(task).unwrap() + fiber::wait(other).unwrap()
/// });
/// assert_eq!(fiber.await.unwrap(), 3);
/// # });
/// ```
#[track_caller]
pub fn wait<F: IntoFuture>(future: F) -> F::Output {
    strand::wait(future.into_future())
}

/// Lets the other fibers of this thread run if this one has run for 10 ms without waiting, or
/// for about half of the [slice](crate::runtime::Preemption::slice) of its runtime where somebody
/// watches, and ends it if it was aborted.
///
/// It costs a look at the system's coarse clock. Call it in loops that compute for long. Outside
/// of a fiber, where [`wait`] would panic, and while the thread unwinds it does nothing.
///
/// # Examples
///
/// ```
/// use blitz_io::fiber;
///
/// # blitz_io::run(async {
/// let endless = fiber::spawn(|| {
///     loop {
///         fiber::checkpoint();
///     }
/// });
/// endless.abort();
/// assert!(endless.await.unwrap_err().is_cancelled());
/// # });
/// ```
pub fn checkpoint() {
    strand::checkpoint();
}

/// Whether [`wait`] may be called here: on a fiber, and outside of all where it would panic.
///
/// # Examples
///
/// ```
/// use blitz_io::fiber;
///
/// assert!(!fiber::is_fiber());
/// # blitz_io::run(async {
/// assert!(fiber::spawn(fiber::is_fiber).await.unwrap());
/// # });
/// ```
pub fn is_fiber() -> bool {
    strand::is_able()
}
