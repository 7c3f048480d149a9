//! Primitives: every atomic, cell, lock and thread of the engine comes from this module.
//!
//! A normal build uses `std`; `--cfg blitz_loom` swaps in loom, and then only the models run.
//! This file only selects and lists. Nothing outside `prim` names `std::sync::atomic`,
//! `std::thread` or `UnsafeCell`; tidy checks this.

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
pub(crate) mod store_lock;
#[cfg_attr(not(feature = "io-util"), allow(dead_code, reason = "streams in halves need it"))]
pub(crate) mod pinned;

/// The key of a thread-local that a macro declares in a user's crate. Always `std`'s type, in
/// models too.
pub(crate) use std::thread::LocalKey as ThreadKey;

/// Drops a value of a user's type in a place where a panic has no caller to unwind to.
pub(crate) fn discard<T>(value: T) {
    let Err(payload) = dropped(value) else { return };
    // The panic hook has already reported the panic. A payload is nearly always a string, which
    // drops without a panic. A payload that panics may leave another payload that panics, without
    // end, so the second one is leaked.
    if let Err(another) = dropped(payload) {
        std::mem::forget(another);
    }
}

/// Drops a value and returns the panic payload as `Err` if the drop panics.
fn dropped<T>(value: T) -> std::thread::Result<()> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(value)))
}

/// Returns true if this thread is unwinding from a panic.
pub(crate) fn is_panicking() -> bool {
    std::thread::panicking()
}

/// Identifier of an operating system thread. All threads of a model run on one such thread, so
/// they share an identifier.
pub(crate) use std::thread::ThreadId;

/// Returns the identifier of the calling thread.
pub(crate) fn thread_id() -> ThreadId {
    std::thread::current().id()
}

/// Returns a small number for the calling thread, used to spread threads over a few locks.
pub(crate) fn thread_number() -> usize {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    std::thread_local! {
        static NUMBER: usize = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
    // A thread that is ending may have dropped its thread-local number. Any number is correct,
    // because it only picks a lock.
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

/// Makes a constructor `const`, except in models, because loom's atomics cannot be constructed in
/// constants.
macro_rules! const_unless_loom {
    ($(#[$meta:meta])* $visible:vis fn $($rest:tt)*) => {
        #[cfg(not(blitz_loom))]
        $(#[$meta])*
        $visible const fn $($rest)*

        #[cfg(blitz_loom)]
        $(#[$meta])*
        $visible fn $($rest)*
    };
}
pub(crate) use const_unless_loom;

/// Reports whether this model run plants the bug called `name`.
///
/// A negative control is the same source with one ordering, fence or check taken away:
/// `cargo xtask model --weaken` builds the models once, runs them once per name found in the
/// source (20 names, or all with `--full`) with `BLITZ_WEAKEN=name`, and expects a model to fail each time. Sanitizer builds know
/// the names too, so that `cargo xtask sanitize` can check that a planted bug is reported before
/// it trusts a clean run. In a normal build this is `false` and folds away.
macro_rules! weakened {
    ($name:literal) => {
        cfg!(any(blitz_loom, blitz_sanitize)) && $crate::engine::prim::is_weakened($name)
    };
}
pub(crate) use weakened;

/// Compares `name` with `BLITZ_WEAKEN`. The slow half of [`weakened!`], reached only in model and
/// sanitizer builds.
pub(crate) fn is_weakened(name: &str) -> bool {
    static NAME: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    NAME.get_or_init(|| std::env::var("BLITZ_WEAKEN").ok()).as_deref() == Some(name)
}
