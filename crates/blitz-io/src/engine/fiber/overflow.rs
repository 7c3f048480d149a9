//! Reports the name of a fiber that has overflowed its stack.
//!
//! An overflow touches the guard of the stack, and the system sends SIGSEGV (some systems send
//! SIGBUS). std's handler knows only the guards of threads and takes this for any other fault. So
//! with the first fiber of the process a handler is installed in front of the present one, which is
//! std's or a user's. It reports which fiber has overflowed and aborts; a fault outside of the
//! guard of the stack that the thread runs on is passed on to the handler that was there before.
//!
//! The handler runs on the thread's alternate signal stack, because the fiber's stack is full. std
//! gives its threads one; a carrier that has none creates one.
//!
//! The handler only reads what was written before the fiber was entered, and calls `write`,
//! `abort`, `sigaction` and the handler that was there before: all may be called in a handler.
//!
//! A handler that a user installs later takes the place of this one. If it does not pass on the
//! faults that it does not handle, the process ends all the same, with a message that says less.
//!
//! A signal that was sent (`kill`, `raise`) is no fault, and does not come again: it is ignored if
//! it was ignored before, and ends the process if it had no handler. (std's handler takes it for a
//! fault and restores the system's default: so the first one does nothing where std's handler was
//! there before, with ours or without.)
//!
//! # Limits
//! - The handler that was there before is called as a function: its `sa_mask`, `SA_RESETHAND` and
//!   `SA_NODEFER` are not honoured, and it runs on the alternate stack even if it did not request
//!   one. std's alternate stack has little room; a crash reporter that unwinds there should bring a
//!   larger one.
//! - In a library that was loaded with `dlopen` the first access to the thread-local may allocate
//!   memory, inside of the handler. A carrier has accessed it before.
//!
//! # Checked by
//! tests/fiber/overflow.rs: `an_overflow_names_the_fiber`,
//! `an_overflow_reaches_a_handler_of_the_users_only_if_it_is_no_fibers`,
//! `a_signal_that_is_sent_does_what_it_did`; `a_handler_installed_in_between_is_not_lost`.

use std::{mem::MaybeUninit, ops::Range, panic::Location, ptr};

use crate::engine::{
    prim::OnceLock,
    work::thread_context::{
        erased::ErasedKey,
        fiber::{self, StackRecordKey},
    },
};

/// Data that the handler reads about the fiber that the thread runs.
#[derive(Debug, Clone)]
pub(crate) struct OverflowRecord {
    pub(super) guard: Range<usize>,
    pub(super) room: usize,
    /// The text of the name, which the fiber's task keeps alive; null if the fiber has no name.
    pub(super) name: *const u8,
    pub(super) name_len: usize,
    pub(super) spawned_at: &'static Location<'static>,
    pub(super) id: u64,
}

const SIGNALS: [libc::c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// The handlers that were there before ours, for each of the signals.
static PREVIOUS: [PreviousHandler; 2] = [const { PreviousHandler::unknown() }; 2];

/// The handler that was there before, as far as our handler, which may run meanwhile, can know.
struct PreviousHandler {
    /// The action that was read before ours was installed.
    read: OnceLock<libc::sigaction>,
    /// Another handler that was installed in between.
    replaced: OnceLock<libc::sigaction>,
}

impl PreviousHandler {
    const fn unknown() -> Self {
        Self { read: OnceLock::new(), replaced: OnceLock::new() }
    }

    /// Returns the action, by plain reads only, which are allowed in a handler.
    fn get(&self) -> Option<&libc::sigaction> {
        self.replaced.get().or_else(|| self.read.get())
    }
}

type FaultHandler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Installs the handler in front of the others, once in a process.
pub(super) fn install() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        for (signal, before) in SIGNALS.into_iter().zip(&PREVIOUS) {
            put_in_front(signal, before, installed_action(signal));
        }
    });
}

/// Installs the handler in place of `read`.
fn put_in_front(signal: libc::c_int, before: &PreviousHandler, read: libc::sigaction) {
    // Before the handler is installed, because the handler reads it.
    before.read.get_or_init(|| read);
    // SAFETY: `sigaction` consists of plain integers, for which zero is valid.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    let handler: FaultHandler = on_fault;
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    let mut replaced = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: our handler has the signature that SA_SIGINFO requires, and the old action is written
    // to memory of its type, for which zero is valid. The call cannot fail, because both signals
    // may be handled.
    let replaced = unsafe {
        libc::sigaction(signal, &raw const action, replaced.as_mut_ptr());
        replaced.assume_init()
    };
    if replaced.sa_sigaction != read.sa_sigaction || replaced.sa_flags != read.sa_flags {
        before.replaced.get_or_init(|| replaced);
    }
}

/// Returns the action that is installed for a signal.
fn installed_action(signal: libc::c_int) -> libc::sigaction {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null action only reads, and an all-zero `sigaction` is valid if nothing was
    // written.
    unsafe {
        libc::sigaction(signal, ptr::null(), action.as_mut_ptr());
        action.assume_init()
    }
}

extern "C" fn on_fault(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    let record = fiber::stack_record().get();
    // SAFETY: the record is alive while the thread runs on the stack that it describes, and the
    // system passes a valid `info` (obligation 1 of `is_sent` and of `pass_on`).
    unsafe {
        if let Some(record) = record.as_ref()
            && !is_sent(info)
            && record.guard.contains(&(*info).si_addr().addr())
        {
            record.report();
            libc::abort();
        }
        pass_on(signal, info, context);
    }
}

/// Returns true if the signal was sent by a process, and is no fault.
///
/// # Safety
/// 1. `info` was passed to a handler by the system.
unsafe fn is_sent(info: *const libc::siginfo_t) -> bool {
    // SAFETY: `info` is valid by obligation 1.
    let code = unsafe { (*info).si_code };
    // For sent signals Linux has codes up to zero, the BSDs and macOS have large ones; faults have
    // small positive codes everywhere.
    code <= 0 || code >= 0x1_0000
}

/// Calls the handler that was there before, or does what the system would have done.
///
/// # Safety
/// 1. These are the arguments of a handler.
unsafe fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let which = usize::from(signal != SIGNALS[0]);
    let before = PREVIOUS[which].get();
    let handler = before.map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    if handler != libc::SIG_DFL && handler != libc::SIG_IGN {
        if before.is_some_and(|before| before.sa_flags & libc::SA_SIGINFO != 0) {
            // SAFETY: SA_SIGINFO says that the handler has this signature, and by obligation 1 the
            // arguments are those of a handler.
            let handler: FaultHandler = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        } else {
            // SAFETY: without SA_SIGINFO a handler has this signature, and by obligation 1 the
            // argument is that of a handler.
            let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
        return;
    }
    // SAFETY: obligation 1: `info` was passed to a handler by the system.
    let sent = unsafe { is_sent(info) };
    if sent && handler == libc::SIG_IGN {
        return;
    }
    // There was no handler: a fault comes again as soon as we return, and ends the process as it
    // would have without us, even if it was to be ignored. A signal that was sent is sent again.
    // SAFETY: `sigaction` consists of plain integers, for which zero is valid: the default action.
    let action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: this restores the system's default action; both functions may be called in a handler.
    // The signal is blocked until we return.
    unsafe {
        libc::sigaction(signal, &raw const action, ptr::null_mut());
        if sent {
            libc::raise(signal);
        }
    }
}

impl ErasedKey for StackRecordKey {
    type Target = OverflowRecord;
}

impl OverflowRecord {
    /// Reports which fiber has overflowed, without allocating memory or taking locks.
    fn report(&self) {
        write_text("\nfiber ");
        if self.name.is_null() {
            write_number(self.id);
        } else {
            // SAFETY: pointer and length are those of the name, which the fiber's task keeps alive
            // while it runs.
            let name = unsafe { std::slice::from_raw_parts(self.name, self.name_len) };
            write_text("'");
            write_bytes(name);
            write_text("'");
        }
        write_text(", spawned at ");
        write_text(self.spawned_at.file());
        write_text(":");
        write_number(self.spawned_at.line().into());
        write_text(":");
        write_number(self.spawned_at.column().into());
        write_text(", has overflowed its stack of ");
        write_number(self.room as u64 / 1024);
        write_text(
            " KiB\nfatal runtime error: stack overflow, aborting; a larger stack is given by \
             `fiber::Builder::stack_size`, or to all by `runtime::Builder::fiber_stack_size`\n",
        );
    }
}

fn write_text(text: &str) {
    write_bytes(text.as_bytes());
}

fn write_bytes(bytes: &[u8]) {
    // An error is ignored, because there is nowhere left to report it.
    // SAFETY: pointer and length are those of a live slice.
    unsafe { libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), bytes.len()) };
}

fn write_number(mut number: u64) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return write_bytes(&digits[first..]);
        }
    }
}

/// An alternate signal stack for a thread that has none from std, which creates one only if its own
/// handler was installed when the thread began.
#[derive(Debug)]
pub(super) struct Alternate(Option<*mut libc::c_void>);

/// Size of the alternate stack: more than the registers of any processor need, and what the handler
/// calls.
const ALTERNATE: usize = 64 * 1024;

impl Alternate {
    /// Creates an alternate stack for this thread, if it has none.
    pub(super) fn ensure() -> Self {
        let mut existing = MaybeUninit::<libc::stack_t>::zeroed();
        // SAFETY: a null argument only reads, and an all-zero `stack_t` is valid if nothing was
        // written.
        let existing = unsafe {
            libc::sigaltstack(ptr::null(), existing.as_mut_ptr());
            existing.assume_init()
        };
        if existing.ss_flags & libc::SS_DISABLE == 0 {
            return Self(None);
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
        // SAFETY: creates a new mapping, at an address that the system chooses.
        let memory = unsafe { libc::mmap(ptr::null_mut(), ALTERNATE, access, flags, -1, 0) };
        if memory == libc::MAP_FAILED {
            // Without one an overflow ends the process without a report.
            return Self(None);
        }
        let stack = libc::stack_t { ss_sp: memory.cast(), ss_flags: 0, ss_size: ALTERNATE };
        // SAFETY: the memory is valid until `drop`, which disables the stack first.
        if unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) } != 0 {
            // SAFETY: this mapping is ours, and the system has not accepted it as a stack.
            unsafe { libc::munmap(memory, ALTERNATE) };
            return Self(None);
        }
        Self(Some(memory))
    }
}

impl Drop for Alternate {
    fn drop(&mut self) {
        let Some(memory) = self.0 else { return };
        let none = libc::stack_t {
            ss_sp: ptr::null_mut(),
            ss_flags: libc::SS_DISABLE,
            ss_size: ALTERNATE,
        };
        // SAFETY: the alternate stack is this thread's own and not in use now; after it is disabled
        // the system does not refer to it.
        unsafe {
            libc::sigaltstack(&raw const none, ptr::null_mut());
            libc::munmap(memory, ALTERNATE);
        }
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::ptr;

    use super::{PreviousHandler, installed_action, put_in_front};

    extern "C" fn nothing(_: libc::c_int) {}

    /// With a signal that no other code in this process handles or sends.
    #[test]
    fn a_handler_installed_in_between_is_not_lost() {
        const SIGNAL: libc::c_int = libc::SIGXFSZ;
        let handler: extern "C" fn(libc::c_int) = nothing;
        let handler = handler as *const () as usize;
        let first = installed_action(SIGNAL);
        assert_ne!(first.sa_sigaction, handler);
        // SAFETY: the handler has this signature, and does nothing.
        unsafe { libc::signal(SIGNAL, handler) };
        let before = PreviousHandler::unknown();
        put_in_front(SIGNAL, &before, first);
        // SAFETY: restores the action that was installed at the beginning.
        unsafe { libc::sigaction(SIGNAL, &raw const first, ptr::null_mut()) };
        assert_eq!(before.get().map(|action| action.sa_sigaction), Some(handler));
    }
}
