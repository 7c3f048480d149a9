//! The only source of operating-system threads: they are started, named and joined here.

use std::{fmt, io, sync::Arc, time::Instant};

use crate::engine::prim::{discard, thread};

pub(crate) mod service;

/// A user's function that runs on each thread of a runtime.
pub(crate) type Hook = Arc<dyn Fn() + Send + Sync>;

/// A wrapper that the layer above puts around the life of each thread.
pub(crate) type ThreadWrapper = Arc<dyn Fn(&mut dyn FnMut()) + Send + Sync>;

/// The settings with which a runtime starts its threads.
#[derive(Clone)]
pub(crate) struct ThreadConfig {
    pub(crate) name: Arc<dyn Fn() -> String + Send + Sync>,
    /// The name, if all threads share it and no function of the user has to be called for it.
    pub(crate) one_name: Option<Arc<str>>,
    pub(crate) stack_size: Option<usize>,
    pub(crate) on_start: Option<Hook>,
    pub(crate) on_stop: Option<Hook>,
}

impl fmt::Debug for ThreadConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadConfig").field("stack_size", &self.stack_size).finish_non_exhaustive()
    }
}

/// A thread that was started. The owner joins it or leaves it detached.
#[derive(Debug)]
pub(crate) struct ThreadHandle(thread::JoinHandle<()>);

/// The life of a thread: its first act, the body between the hooks, and its last act.
pub(crate) struct ThreadMain<F, B, A> {
    pub(crate) before: F,
    pub(crate) body: B,
    pub(crate) after: A,
}

/// Guard that runs the last act of a thread, also if a bug of ours unwinds the thread.
struct OnExit<A: FnOnce()>(Option<A>);

impl<A: FnOnce()> Drop for OnExit<A> {
    fn drop(&mut self) {
        if let Some(act) = self.0.take() {
            act();
        }
    }
}

/// Guard that aborts the process if the body of a thread unwinds. Bodies catch panics of users'
/// code, so an unwind is a bug of ours, or the system took something away (a closed descriptor).
/// The thread would take a core with it, and the shutdown of the runtime would wait for ever.
struct AbortOnThreadUnwind;

impl Drop for AbortOnThreadUnwind {
    fn drop(&mut self) {
        // Tests and models report the panic instead.
        if !cfg!(test) {
            eprintln!("blitz-io: a thread of the runtime panicked; the process is aborted");
            std::process::abort();
        }
    }
}

impl ThreadConfig {
    /// Returns names for `count` threads, as the user's function gives them.
    ///
    /// # Errors
    /// Returns `InvalidInput` if a name contains a NUL byte.
    pub(crate) fn names(&self, count: usize) -> io::Result<Vec<String>> {
        let names: Vec<String> = (0..count).map(|_| (self.name)()).collect();
        match names.iter().find(|name| name.contains('\0')) {
            None => Ok(names),
            Some(name) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("the thread name {name:?} has a NUL byte in it: remove it"),
            )),
        }
    }

    /// Starts a thread that runs the body between the hooks, all inside `around`.
    ///
    /// A hook that panics does not affect the body, because a worker's duties to other threads
    /// must not depend on a hook.
    ///
    /// # Errors
    /// Returns the system's error if it cannot start a thread.
    pub(crate) fn start<F, B, A>(
        &self,
        name: String,
        around: Option<ThreadWrapper>,
        thread_main: ThreadMain<F, B, A>,
    ) -> io::Result<ThreadHandle>
    where
        F: FnOnce() + Send + 'static,
        B: FnOnce() + Send + 'static,
        A: FnOnce() + Send + 'static,
    {
        let mut builder = thread::Builder::new().name(name);
        if let Some(size) = self.stack_size {
            builder = builder.stack_size(size);
        }
        let (on_start, on_stop) = (self.on_start.clone(), self.on_stop.clone());
        #[cfg(all(unix, not(blitz_loom)))]
        let mask = service::starter_mask();
        let thread = builder.spawn(move || {
            #[cfg(all(unix, not(blitz_loom)))]
            if let Some(mask) = mask {
                mask.set();
            }
            let ThreadMain { before, body, after } = thread_main;
            let _last = OnExit(Some(after));
            before();
            let mut body = Some(body);
            let mut whole = || {
                run_hook(on_start.as_ref());
                let unwinding = AbortOnThreadUnwind;
                body.take().expect("`run` is called once for each thread")();
                std::mem::forget(unwinding);
                run_hook(on_stop.as_ref());
            };
            match around {
                Some(around) => around(&mut whole),
                None => whole(),
            }
        })?;
        Ok(ThreadHandle(thread))
    }
}

impl ThreadHandle {
    /// Returns true if this is the calling thread.
    pub(crate) fn is_current(&self) -> bool {
        self.0.thread().id() == thread::current().id()
    }

    /// Waits until the thread has ended, unless the caller is that thread.
    ///
    /// # Panics
    /// Resumes the panic of the thread, if it ended with one.
    pub(crate) fn join(self) {
        if self.is_current() {
            return;
        }
        if let Err(payload) = self.0.join() {
            // Bodies catch panics of users' code, so this is a bug of ours, and hiding it would
            // turn it into a hang.
            std::panic::resume_unwind(payload);
        }
    }
}

impl ThreadHandle {
    /// Waits until the thread has ended, including the destructors of its thread-locals, or until
    /// `deadline` if there is one. A thread that takes longer is detached. Returns at once if the
    /// caller is that thread.
    pub(crate) fn join_until(self, deadline: Option<Instant>) {
        match deadline {
            Some(deadline) if !self.is_current() => join_timed(self, deadline),
            _ => self.join(),
        }
    }
}

#[cfg(all(target_os = "linux", not(blitz_loom)))]
fn join_timed(started: ThreadHandle, deadline: Instant) {
    use std::{
        os::unix::thread::JoinHandleExt,
        ptr,
        time::{SystemTime, UNIX_EPOCH},
    };

    // The call takes a time of the wall clock. If that clock is set meanwhile, the wait becomes
    // shorter or longer by as much, which is acceptable because only the very end of a thread is
    // waited for.
    let time_left = deadline.saturating_duration_since(Instant::now());
    let until = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + time_left;
    // SAFETY: a `timespec` is plain data, for which all zeros is a valid value.
    let mut at: libc::timespec = unsafe { std::mem::zeroed() };
    at.tv_sec = until.as_secs().try_into().unwrap_or(libc::time_t::MAX);
    // Less than a thousand million, which every `c_long` holds.
    at.tv_nsec = until.subsec_nanos() as libc::c_long;
    let thread = started.0.into_pthread_t();
    // SAFETY: `into_pthread_t` returned a joinable thread that no other owner joins or detaches.
    // The result pointer may be null, because no result is wanted.
    if unsafe { libc::pthread_timedjoin_np(thread, ptr::null_mut(), &raw const at) } != 0 {
        // SAFETY: the join failed, so the thread is still ours, and it is detached once.
        unsafe { libc::pthread_detach(thread) };
    }
}

/// Joins without a limit, because other systems have no timed join. As in Tokio, this waits for
/// the thread: it has done its last act, and only the destructors of its thread-locals remain.
#[cfg(not(all(target_os = "linux", not(blitz_loom))))]
fn join_timed(started: ThreadHandle, _: Instant) {
    started.join();
}

/// Calls a hook if there is one. The panic hook reports a panic of it, which ends here.
pub(crate) fn run_hook(hook: Option<&Hook>) {
    if let Some(hook) = hook {
        // The payload can be dropped, because the panic hook has reported the panic.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hook()));
        if let Err(payload) = outcome {
            discard(payload);
        }
    }
}
