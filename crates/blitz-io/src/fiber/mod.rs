//! Fibers: tasks with stacks of their own, which can wait in the middle of an ordinary function
//! call.
//!
//! [`spawn`] starts a *fiber*: a closure that the runtime runs like a task, with a [`JoinHandle`],
//! an ID, a budget and the runtime's task hooks. Where a task uses `.await`, a fiber calls
//! [`wait`]. It can do so in any function, however deep in the call stack: in callbacks, in
//! `Iterator::next`, in implementations of synchronous traits. While a fiber waits, its thread runs
//! other fibers.
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
//! let read = move || {
//!     let (socket, _) = fiber::wait(listener.accept())?;
//!     io::read_to_string(Blocking(socket))
//! };
//! // SAFETY: 1. and 2. `read` waits in no initialiser and in no scope of a thread-local.
//! let reader = unsafe { fiber::spawn(read) };
//! TcpStream::connect(address).await?.write_all(b"hello").await?;
//! assert_eq!(reader.await.unwrap()?, "hello");
//! # io::Result::Ok(())
//! # }).unwrap();
//! ```
//!
//! # When to use one
//!
//! Use a fiber for code that cannot be made `async`: a parser that pulls from a `std::io::Read`, a
//! callback of a library, a recursive visitor. Prefer tasks where you can choose, because a task is
//! smaller (a fiber touches 4 to 8 KiB of stack), can move between workers, and a fiber's wake-ups
//! usually cross threads. Code that computes for a long time, or that blocks the thread, is better
//! run with [`spawn_blocking`](crate::task::spawn_blocking).
//!
//! # One thread
//!
//! A fiber runs on one thread for its whole life. Moving a stack to another thread is unsound in
//! Rust, because the compiler may keep the address of a thread-local across a call, and values that
//! are not `Send` may lie on the stack (`tests/fiber/migration.rs` in the repository shows the
//! first). The closure and its result must be [`Send`]; values that the closure creates need not
//! be. Even on one thread two patterns remain unsound, which is why [`spawn`] is `unsafe`: see
//! [what must not be held across a wait](self#what-must-not-be-held-across-a-wait).
//!
//! The threads that run fibers run nothing else. A runtime starts them when there are fibers for
//! them ([`Builder::fiber_threads`](crate::runtime::Builder::fiber_threads)). A current-thread
//! runtime does so too, and its fibers run in parallel with its
//! [`block_on`](crate::runtime::Runtime::block_on), but only `block_on` polls its timers and
//! sockets.
//!
//! **A fiber that does not wait delays the other fibers of its thread**, and no other thread can
//! take them over. Tasks are not affected. In long computations call [`checkpoint`].
//!
//! # Cancellation
//!
//! A fiber ends early when [`JoinHandle::abort`] is called or its runtime shuts down, at its next
//! wait or checkpoint. [`wait`] then does not return, but unwinds like a panic, without a report by
//! the panic hook. Destructors run, on the fiber's own stack and thread. A
//! [`catch_unwind`](std::panic::catch_unwind) catches this unwinding and should continue it with
//! [`resume_unwind`](std::panic::resume_unwind). A fiber that catches it and waits again is unwound
//! again. After 64 times the runtime gives the fiber up and prints a line to standard error: the
//! stack is leaked with everything on it, and its thread keeps sleeping after the runtime has
//! ended, without a call of [`on_thread_stop`](crate::runtime::Builder::on_thread_stop). The task
//! is leaked as well, and so are the resources of its runtime: its memory and the descriptors of
//! its driver.
//!
//! Dropping a runtime waits, without a time limit, for fibers that compute, until each has reached
//! a [`wait`] or a [`checkpoint`].
//!
//! A fiber is not suspended while its thread is unwinding, that is, in a destructor that runs
//! because of a panic or a cancellation: [`wait`] blocks the thread until its future is ready, and
//! [`checkpoint`] does nothing. A future that depends on another fiber of that thread never becomes
//! ready.
//!
//! Dropping a multi-thread runtime ends its fibers first, so the operations that their destructors
//! wait for still work. After a shutdown in the background, and on a current-thread runtime, tasks
//! have been cancelled by then, sockets return errors, and timers panic. A panic in a destructor
//! that runs during unwinding aborts the process, so do not sleep in such a destructor if the
//! runtime may be one of those.
//!
//! In programs that are built with `panic = "abort"` nothing can be unwound: a cancelled fiber
//! never runs again, its destructors do not run, and it is given up at once, with all the leaks
//! described above. So with `panic = "abort"`, dropping a runtime while a fiber is suspended leaks
//! that fiber. What matters is how *this crate* was built: if only the program itself is built with
//! `panic = "abort"`, a cancellation aborts the process.
//!
//! # Stacks
//!
//! A stack has 256 KiB of address space, or the size that [`Builder::stack_size`] or
//! [`runtime::Builder::fiber_stack_size`](crate::runtime::Builder::fiber_stack_size) sets, and uses
//! memory only for pages that were touched. Below it is a guard page: a stack overflow aborts the
//! process with a message that contains the fiber's name and spawn location. For that, the first
//! fiber of a process installs a handler for SIGSEGV and SIGBUS in front of the existing one, which
//! still receives all other faults, and signals that were sent by a process.
//!
//! On Linux 6.13 and newer the number of fibers is limited by memory. Elsewhere each stack takes
//! two kernel mappings, and Linux allows 65,530 mappings per process (`vm.max_map_count`), which is
//! enough for 32,000 fibers. Beyond that, [`Builder::spawn`] returns an error with that
//! explanation, and [`spawn`] panics.
//!
//! # What may be called on a fiber
//!
//! - [`spawn`], [`task::spawn`](crate::spawn) and [`Handle::current`] use the fiber's runtime; a
//!   guard of [`Handle::enter`] and the scope of a [`task_local!`](crate::task_local) stay with
//!   their fiber while it is suspended.
//! - [`Handle::block_on`] and functions like `blocking_recv` panic, as in tasks: use [`wait`].
//! - [`block_in_place`](crate::task::block_in_place) is allowed. It blocks the thread, and with it
//!   the other fibers of the thread. `block_on` works inside of it; inside of that `block_on`,
//!   [`wait`] panics.
//! - [`wait`] also panics inside of a `LocalSet`, of a fork-join job or of a task that is polled on
//!   the fiber's stack: use `.await` there.
//!
//! # What must not be held across a wait
//!
//! The fibers of a thread share its thread-local state. If a function sets or takes something, or
//! gives out a reference to it, for the duration of its call, and stores it where the whole thread
//! can see it, then all fibers that run while the function waits see it too. Most cases are a
//! nuisance; two are unsound.
//!
//! **Why [`spawn`] is `unsafe`.** On a thread with one stack, calls return in the reverse order in
//! which they began, and safe code may rely on that. With fibers this does not hold, and no runtime
//! can detect that such a call is on the stack. Memory is used after it was freed if a fiber waits
//!
//! - **in the initialiser of a [`thread_local!`]**. If another fiber reads the value meanwhile, it
//!   creates one too, and may have it borrowed when the first fiber continues; the standard library
//!   then replaces the borrowed value with the first fiber's value and drops it. Code there must
//!   not wait, nor call anything that may wait: use a `const {}` initialiser, or put a
//!   [`OnceCell`](std::cell::OnceCell) into the thread-local, which panics instead. The language
//!   gives [`wait`] no way to detect that it is called there, so it cannot refuse.
//! - **inside of a call that sets a thread-local to a reference and resets it at its end**: the
//!   crate `scoped-tls`, another runtime's `block_on`, interpreters that keep a stack of their own
//!   this way. Two fibers that end such calls in the order in which they began leave a dangling
//!   pointer to a stack frame that has returned. Scopes of [`task_local!`](crate::task_local),
//!   [`Handle::enter`] and all similar state of this crate are set aside while a fiber is
//!   suspended.
//!
//! `tests/fiber/hazards.rs` in the repository shows both. Because neither can be detected at run
//! time, the caller of [`spawn`] must guarantee that the closure, and everything that it calls,
//! does neither.
//!
//! **Locks.** If a fiber holds a lock of the standard library across a wait, another fiber of the
//! thread that takes the lock blocks the thread, and so blocks forever; dropping the runtime then
//! blocks forever too.
//!
//! - A `std::sync::MutexGuard`: use [`sync::Mutex`](crate::sync::Mutex) across waits.
//! - [`Once`](std::sync::Once), [`OnceLock`](std::sync::OnceLock) and
//!   [`LazyLock`](std::sync::LazyLock) with an initialiser that waits: use
//!   [`sync::OnceCell`](crate::sync::OnceCell).
//! - A [`RefCell`](std::cell::RefCell) in a thread-local that is borrowed across a wait: another
//!   fiber that borrows it panics.
//! - Where a lock of this crate is held while user code runs, [`wait`] panics: while a
//!   [`watch::Ref`](crate::sync::watch::Ref) exists, in the closures that read or modify a watched
//!   value, and in a poll of a stream that [`io::split`](crate::io::split()) shares. The function
//!   that names threads ([`thread_name_fn`](crate::runtime::Builder::thread_name_fn)) must not wait
//!   either.
//!
//! **Other state of a thread.** An entered span of `tracing`, or a default subscriber that was set
//! for a scope, applies to all fibers that run meanwhile, and is reset in the wrong order: spans
//! get wrong parents. A wait below a C++ `catch` block on the fiber's stack corrupts the thread's
//! record of its C++ exceptions.
//!
//! **Functions that cannot unwind.** If a fiber is aborted or its runtime shuts down, it is
//! unwound from the [`wait`] that it is in. If a callback of a C library (`extern "C"`) is on its
//! stack, that aborts the process, like any panic there.
//!
//! [`Handle::dump`] does not show fibers, and a runtime's metrics do not count them, except for
//! polls that lasted too long and forced yields. A [paused](crate::time) clock continues while
//! fibers run.
//!
//! [`Handle::current`]: crate::runtime::Handle::current
//! [`Handle::enter`]: crate::runtime::Handle::enter
//! [`Handle::dump`]: crate::runtime::Handle::dump
//! [`Handle::block_on`]: crate::runtime::Handle::block_on

use std::{future::IntoFuture, panic::Location};

mod builder;

pub use self::builder::Builder;
use crate::{
    engine::{fiber::future, work::task::cell::Label},
    runtime::Handle,
    task::JoinHandle,
};

/// Spawns a new fiber on the current runtime and returns a [`JoinHandle`] for it.
///
/// The fiber starts at once, whether or not the handle is awaited. Dropping the handle detaches the
/// fiber. If the closure panics, the runtime catches the panic, and awaiting the handle returns it
/// as an error.
///
/// # Safety
///
/// While the fiber is in a [`wait`] or a [`checkpoint`], other fibers run on the same thread. The
/// caller must guarantee two things for the closure, and for everything that it calls
/// ([details](self#what-must-not-be-held-across-a-wait)):
///
/// 1. It does not wait in the initialiser of a [`thread_local!`].
/// 2. It does not wait inside of a call that sets a thread-local to something of its own stack
///    frame and resets it at its end, as the crate `scoped-tls` does, or that relies in another way
///    on no other code running on its thread until it returns.
///
/// # Panics
///
/// If there is no runtime on this thread, if there is no memory for the fiber's stack, or if no
/// thread can be started to run it. For the latter two [`Builder::spawn`] returns an error instead.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use blitz_io::{fiber, time::sleep};
///
/// # blitz_io::run(async {
/// let work = || {
///     fiber::wait(sleep(Duration::from_millis(1)));
///     "done"
/// };
/// // SAFETY: 1. and 2. `work` waits in no initialiser and in no scope of a thread-local.
/// let fiber = unsafe { fiber::spawn(work) };
/// assert_eq!(fiber.await.unwrap(), "done");
/// # });
/// ```
#[track_caller]
pub unsafe fn spawn<F, R>(f: F) -> JoinHandle<R>
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

/// Waits for a future and returns its output; the fiber's thread runs other fibers meanwhile.
///
/// If the future is ready at once, this function returns at once, except that every so often it
/// acts as a [`checkpoint`] first, so that a loop of waits that are all ready lets other fibers run
/// too. If the fiber was aborted or its runtime is shutting down, this function does not return,
/// even if the future is ready, but unwinds the fiber's stack; see
/// [cancellation](self#cancellation). If the thread is already unwinding, this function blocks the
/// thread until the future is ready.
///
/// # Panics
///
/// Outside of a fiber, and on a fiber where it must not be suspended: inside of `block_on`, a
/// `LocalSet`, a fork-join job, a task that is polled on the fiber's stack, or under a lock of this
/// crate. Also if the future panics. There are also places where this function must not be called
/// but *cannot* panic; see [what must not be held across a
/// wait](self#what-must-not-be-held-across-a-wait).
///
/// # Examples
///
/// ```
/// use blitz_io::{channel::oneshot, fiber};
///
/// # blitz_io::run(async {
/// let (sender, receiver) = oneshot::channel();
/// let add = move || fiber::wait(receiver).unwrap() + 1;
/// // SAFETY: 1. and 2. `add` waits in no initialiser and in no scope of a thread-local.
/// let fiber = unsafe { fiber::spawn(add) };
/// sender.send(41).unwrap();
/// assert_eq!(fiber.await.unwrap(), 42);
/// # });
/// ```
///
/// Fibers can wait for tasks and for each other:
///
/// ```
/// use blitz_io::fiber;
///
/// # blitz_io::run(async {
/// let sum = || {
///     let task = blitz_io::spawn(async { 1 });
///     // SAFETY: 1. and 2. the closure does not wait.
///     let other = unsafe { fiber::spawn(|| 2) };
///     fiber::wait(task).unwrap() + fiber::wait(other).unwrap()
/// };
/// // SAFETY: 1. and 2. `sum` waits in no initialiser and in no scope of a thread-local.
/// let fiber = unsafe { fiber::spawn(sum) };
/// assert_eq!(fiber.await.unwrap(), 3);
/// # });
/// ```
#[track_caller]
pub fn wait<F: IntoFuture>(future: F) -> F::Output {
    future::wait(future.into_future())
}

/// Lets the other fibers of this thread run if this fiber has run for too long, and ends this fiber
/// if it was aborted.
///
/// 'Too long' is 10 ms without waiting, or about half of the
/// [slice](crate::runtime::Preemption::slice) of the runtime if the runtime monitors its threads. A
/// call costs a read of the system's coarse clock. Call this function in loops that compute for a
/// long time. Outside of a fiber, where [`wait`] would panic, and while the thread is unwinding, it
/// does nothing.
///
/// # Examples
///
/// ```
/// use blitz_io::fiber;
///
/// # blitz_io::run(async {
/// let turn = || {
///     loop {
///         fiber::checkpoint();
///     }
/// };
/// // SAFETY: 1. and 2. `turn` waits in no initialiser and in no scope of a thread-local.
/// let endless = unsafe { fiber::spawn(turn) };
/// endless.abort();
/// assert!(endless.await.unwrap_err().is_cancelled());
/// # });
/// ```
pub fn checkpoint() {
    future::checkpoint();
}

/// Returns `true` if [`wait`] may be called here: on a fiber, outside of all places where it would
/// panic.
///
/// # Examples
///
/// ```
/// use blitz_io::fiber;
///
/// assert!(!fiber::is_fiber());
/// # blitz_io::run(async {
/// // SAFETY: 1. and 2. the function does not wait.
/// let fiber = unsafe { fiber::spawn(fiber::is_fiber) };
/// assert!(fiber.await.unwrap());
/// # });
/// ```
pub fn is_fiber() -> bool {
    future::can_suspend()
}
