//! The ground: every atomic, cell, lock and thread of the engine comes from here.
//!
//! A normal build gets `std`; `--cfg blitz_loom` swaps in loom, and then only
//! the models run. This file only chooses and lists. Nothing outside `prim`
//! names `std::sync::atomic`, `std::thread` or `UnsafeCell` (tidy looks).

#[cfg(not(blitz_loom))]
mod real;
#[cfg(not(blitz_loom))]
pub(crate) use self::real::*;

#[cfg(blitz_loom)]
mod model;
#[cfg(blitz_loom)]
pub(crate) use self::model::*;

pub(crate) mod barrier;
pub(crate) mod futex;
pub(crate) mod parker;
pub(crate) mod pad;
pub(crate) mod backoff;
pub(crate) mod rng;
pub(crate) mod ids;
pub(crate) mod clock;
pub(crate) mod cpu;
pub(crate) mod gauge;
#[cfg_attr(not(feature = "rt"), allow(dead_code, reason = "only runtimes are watched"))]
pub(crate) mod process;
#[cfg(not(blitz_loom))]
#[cfg_attr(not(feature = "rt"), allow(dead_code, reason = "only runtimes are watched"))]
pub(crate) mod per_process;
pub(crate) mod biased;
pub(crate) mod bolt;
#[cfg_attr(not(feature = "io-util"), allow(dead_code, reason = "streams in halves need it"))]
pub(crate) mod pinned;

/// The key of a thread-local that a macro declares in a user's crate: std's, in
/// models too.
pub(crate) use std::thread::LocalKey as ThreadKey;

/// Drops a value of a user's type where a panic has nobody to go to.
pub(crate) fn discard<T>(value: T) {
    let Err(payload) = dropped(value) else { return };
    // The panic hook has reported it. A payload is nearly always a text, whose drop is
    // quiet. One that panics as well may leave a payload that does, without end: that
    // one is leaked.
    if let Err(another) = dropped(payload) {
        std::mem::forget(another);
    }
}

/// Drops a value; the answer is the payload of its panic.
fn dropped<T>(value: T) -> std::thread::Result<()> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(value)))
}

/// Whether this thread unwinds from a panic.
pub(crate) fn is_panicking() -> bool {
    std::thread::panicking()
}

/// The system's threads have these; those of a model are all one thread.
pub(crate) use std::thread::ThreadId;

/// The calling thread's.
pub(crate) fn thread_id() -> ThreadId {
    std::thread::current().id()
}

/// A small number of the calling thread, to spread threads over a few locks.
pub(crate) fn thread_number() -> usize {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    std::thread_local! {
        static NUMBER: usize = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
    // A thread that is ending may have lost its number; any will do.
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

/// Makes a constructor `const`, except in models: the model checker's words are not made
/// in constants.
macro_rules! made_in_constants {
    ($(#[$meta:meta])* $visible:vis fn $($rest:tt)*) => {
        #[cfg(not(blitz_loom))]
        $(#[$meta])*
        $visible const fn $($rest)*

        #[cfg(blitz_loom)]
        $(#[$meta])*
        $visible fn $($rest)*
    };
}
pub(crate) use made_in_constants;

/// Whether a model run plants the bug called `name`.
///
/// A negative control is the same source with one ordering, fence or check
/// taken away: `cargo xtask model --weaken` builds the models once, runs them
/// once per name found in the source with `BLITZ_WEAKEN=name`, and expects a
/// model to fail each time. Builds for sanitizers know the names too, so that
/// `cargo xtask sanitize` can see that a bug is reported before it believes that
/// there is none. In a normal build this is `false` and folds away.
macro_rules! weakened {
    ($name:literal) => {
        cfg!(any(blitz_loom, blitz_sanitize)) && $crate::engine::prim::is_weakened($name)
    };
}
pub(crate) use weakened;

/// Slow half of [`weakened!`]; reached in builds for models and sanitizers only.
pub(crate) fn is_weakened(name: &str) -> bool {
    static NAME: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    NAME.get_or_init(|| std::env::var("BLITZ_WEAKEN").ok()).as_deref() == Some(name)
}
