//! The one source of operating-system threads: started here, named here, and
//! joined here.

use std::{fmt, io, sync::Arc};

use crate::engine::prim::{discard, thread};

/// A user's function that runs on each thread of a runtime.
pub(crate) type Hook = Arc<dyn Fn() + Send + Sync>;

/// What the layer above wraps round the life of each thread.
pub(crate) type Around = Arc<dyn Fn(&mut dyn FnMut()) + Send + Sync>;

/// How threads of a runtime are made.
#[derive(Clone)]
pub(crate) struct Recipe {
    pub(crate) name: Arc<dyn Fn() -> String + Send + Sync>,
    /// The name, if no user's function has to be asked for it.
    pub(crate) one_name: Option<Arc<str>>,
    pub(crate) stack_size: Option<usize>,
    pub(crate) on_start: Option<Hook>,
    pub(crate) on_stop: Option<Hook>,
}

impl fmt::Debug for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recipe").field("stack_size", &self.stack_size).finish_non_exhaustive()
    }
}

/// A thread that was started; it is joined or left to itself.
#[derive(Debug)]
pub(crate) struct Started(thread::JoinHandle<()>);

/// What a thread does: its first act, the body between the hooks, and its last act.
pub(crate) struct Life<F, B, A> {
    pub(crate) before: F,
    pub(crate) body: B,
    pub(crate) after: A,
}

/// The last act of a thread, also if a bug of ours unwinds it.
struct Last<A: FnOnce()>(Option<A>);

impl<A: FnOnce()> Drop for Last<A> {
    fn drop(&mut self) {
        if let Some(act) = self.0.take() {
            act();
        }
    }
}

impl Recipe {
    /// Names for `count` threads, as the user's function gives them.
    pub(crate) fn names(&self, count: usize) -> io::Result<Vec<String>> {
        let names: Vec<String> = (0..count).map(|_| (self.name)()).collect();
        match names.iter().find(|name| name.contains('\0')) {
            None => Ok(names),
            Some(name) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("the thread name {name:?} has a NUL byte in it: leave that out"),
            )),
        }
    }

    /// Starts a thread that runs the body between the hooks, all inside `around`.
    ///
    /// A hook that panics ends its thread's use of it, not the body: what a
    /// worker owes others must not depend on a hook.
    pub(crate) fn start<F, B, A>(
        &self,
        name: String,
        around: Option<Around>,
        life: Life<F, B, A>,
    ) -> io::Result<Started>
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
        let thread = builder.spawn(move || {
            let Life { before, body, after } = life;
            let _last = Last(Some(after));
            before();
            let mut body = Some(body);
            let mut whole = || {
                run_hook(on_start.as_ref());
                body.take().expect("a thread lives once")();
                run_hook(on_stop.as_ref());
            };
            match around {
                Some(around) => around(&mut whole),
                None => whole(),
            }
        })?;
        Ok(Started(thread))
    }
}

impl Started {
    /// Whether it is the calling thread.
    pub(crate) fn is_current(&self) -> bool {
        self.0.thread().id() == thread::current().id()
    }

    /// Waits for the thread's end, unless the caller is that thread.
    pub(crate) fn join(self) {
        if self.is_current() {
            return;
        }
        if let Err(payload) = self.0.join() {
            // Bodies catch what users' code may throw: this is a bug of ours, and
            // hiding it would turn it into a hang.
            std::panic::resume_unwind(payload);
        }
    }
}

/// Calls a hook, if there is one; its panic is reported by the panic hook and ends here.
pub(crate) fn run_hook(hook: Option<&Hook>) {
    if let Some(hook) = hook {
        // The panic hook reports it.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hook()));
        if let Err(payload) = outcome {
            discard(payload);
        }
    }
}
