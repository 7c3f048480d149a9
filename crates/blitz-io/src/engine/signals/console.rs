//! Windows: the console calls a function of ours, on a thread that it starts for it.
//!
//! So no notifier is needed: that thread wakes the listeners. For three of the events the process
//! is ended when the function returns. So the function does not return if there is a listener, and
//! the program has the time that the system grants it.

use std::{
    io,
    sync::{Mutex, PoisonError},
};

use windows_sys::{
    Win32::System::Console::{
        CTRL_BREAK_EVENT, CTRL_C_EVENT, CTRL_CLOSE_EVENT, CTRL_LOGOFF_EVENT, CTRL_SHUTDOWN_EVENT,
        SetConsoleCtrlHandler,
    },
    core::BOOL,
};

use super::{KINDS, SignalListener, SignalRegistry};
use crate::engine::prim::{OnceLock, thread};

/// An event that the console reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConsoleEvent {
    C,
    Break,
    Close,
    Logoff,
    Shutdown,
}

impl ConsoleEvent {
    fn number(self) -> u32 {
        match self {
            Self::C => CTRL_C_EVENT,
            Self::Break => CTRL_BREAK_EVENT,
            Self::Close => CTRL_CLOSE_EVENT,
            Self::Logoff => CTRL_LOGOFF_EVENT,
            Self::Shutdown => CTRL_SHUTDOWN_EVENT,
        }
    }

    /// Returns the event's index in the registry.
    fn kind(self) -> usize {
        self.number() as usize
    }
}

fn registry() -> &'static SignalRegistry<()> {
    static REGISTRY: OnceLock<SignalRegistry<()>> = OnceLock::new();
    REGISTRY.get_or_init(SignalRegistry::new)
}

static INSTALLED: Mutex<bool> = Mutex::new(false);

/// Creates a listener for an event of the console.
///
/// # Errors
/// If the system refuses to install the handler.
pub(crate) fn install(event: ConsoleEvent) -> io::Result<SignalListener<'static, ()>> {
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*installed {
        // SAFETY: the function has the required signature, and is never unloaded.
        if unsafe { SetConsoleCtrlHandler(Some(called), 1) } == 0 {
            return Err(io::Error::last_os_error());
        }
        *installed = true;
    }
    drop(installed);
    Ok(registry().listen(event.kind()))
}

/// Handles an event of the console; called by the system.
///
/// # Safety
/// 1. There is no obligation: the argument is only a number.
unsafe extern "system" fn called(event: u32) -> BOOL {
    let kind = event as usize;
    if kind >= KINDS || !registry().is_listened_to(kind) {
        // The event is left to the next handler.
        return 0;
    }
    registry().count(kind);
    registry().dispatch(kind);
    if matches!(event, CTRL_CLOSE_EVENT | CTRL_LOGOFF_EVENT | CTRL_SHUTDOWN_EVENT) {
        // Returning would end the process before the listeners were polled.
        loop {
            thread::park();
        }
    }
    1
}
