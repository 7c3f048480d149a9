//! How the system is asked to call us: once for each kind, when somebody first listens.
//!
//! `signal-hook-registry` puts its handler in front of the one that was there, which it goes
//! on calling, and keeps `errno`. A handler that was installed stays: to take it out would
//! mean to know that nobody has put another in front of it.

use std::{
    ffi::c_int,
    io,
    sync::{Mutex, PoisonError},
};

use super::{Hall, KINDS, Pipe};
use crate::engine::prim::OnceLock;

/// That of the process.
pub(crate) fn hall() -> &'static Hall<Pipe> {
    static HALL: OnceLock<Hall<Pipe>> = OnceLock::new();
    HALL.get_or_init(Hall::new)
}

/// Which kinds call us. Std's lock: no model has handlers.
static INSTALLED: Mutex<[bool; KINDS]> = Mutex::new([false; KINDS]);

/// Has every delivery of that signal counted from now on. Answers with its place in the hall.
///
/// # Errors
/// What the system says of the number.
pub(crate) fn install(signal: c_int) -> io::Result<usize> {
    let kind = usize::try_from(signal).ok().filter(|kind| (1..KINDS).contains(kind));
    let kind = kind.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if !installed[kind] {
        let hall = hall();
        // SAFETY: `deliver` counts, looks at words and bells, and writes into pipes: no lock,
        // no memory, no panic (`kind` is in bounds).
        unsafe { signal_hook_registry::register(signal, move || hall.deliver(kind)) }?;
        installed[kind] = true;
    }
    Ok(kind)
}
