//! Installs the signal handler in the system: once for each kind, when it gets its first listener.
//!
//! `signal-hook-registry` puts its handler in front of the one that was there, which it goes on
//! calling, and preserves `errno`. A handler that was installed stays: to remove it, one would have
//! to know that no other code has put another handler in front of it.

use std::{
    ffi::c_int,
    io,
    sync::{Mutex, PoisonError},
};

use super::{KINDS, SignalRegistry, WakePipe};
use crate::engine::prim::OnceLock;

/// Returns the registry of the process.
pub(crate) fn registry() -> &'static SignalRegistry<WakePipe> {
    static REGISTRY: OnceLock<SignalRegistry<WakePipe>> = OnceLock::new();
    REGISTRY.get_or_init(SignalRegistry::new)
}

/// The kinds for which our handler is installed. The lock is std's, because no model has handlers.
static INSTALLED: Mutex<[bool; KINDS]> = Mutex::new([false; KINDS]);

/// Counts every delivery of that signal from now on, and returns its index in the registry.
///
/// # Errors
/// If the system has no signal of that number, or refuses a handler for it.
pub(crate) fn install(signal: c_int) -> io::Result<usize> {
    let kind = usize::try_from(signal).ok().filter(|kind| (1..KINDS).contains(kind));
    let kind = kind.ok_or_else(|| {
        let text = format!("cannot listen to signal {signal}: the system has none of that number");
        io::Error::other(text)
    })?;
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if !installed[kind] {
        let registry = registry();
        // SAFETY: `deliver` counts, reads words and notifiers, and writes into pipes: it takes no
        // lock, allocates no memory, and cannot panic (`kind` is in bounds).
        unsafe { signal_hook_registry::register(signal, move || registry.deliver(kind)) }?;
        installed[kind] = true;
    }
    Ok(kind)
}
