//! A fiber that has used up its stack is told by its name.
//!
//! An overflow touches the guard of the stack, and the system sends SIGSEGV (some send
//! SIGBUS). std's handler knows the guards of threads and takes this for any other fault. So
//! with the first fiber of the process a handler is put in front of whoever is there: std's,
//! or a user's. It says which fiber it was and aborts; a fault that is not in the guard of the
//! fiber on whose stack the thread is goes on to whom it was meant for.
//!
//! The handler runs on the thread's alternate stack, since the other one is full. std gives
//! its threads one; a carrier that has none makes one.
//!
//! The handler only reads what was written before the fiber was entered, and calls `write`,
//! `abort`, `sigaction` and whoever was there before: all may be called in a handler.
//!
//! A handler that a user installs later takes the place of this one. If it does not pass on
//! what it does not know, the end is the same with less to read.
//!
//! A signal that somebody has sent (`kill`, `raise`) is no fault, and does not come again: it is
//! ignored if it was, and ends the process if nobody handled it. (std's handler takes it for a
//! fault and makes way for the system's: so the first one does nothing where std's was there
//! before, with us or without.)
//!
//! # Limits
//! - Whoever was there before is called as a function: its `sa_mask`, `SA_RESETHAND` and
//!   `SA_NODEFER` are not honoured, and it runs on the alternate stack even if it did not ask for
//!   one. std's has room for little; a reporter that unwinds there should bring a larger one.
//! - In a library that was loaded with `dlopen` the first touch of the thread-local may ask for
//!   memory, inside of the handler. A carrier has touched it before.
//!
//! # Checked by
//! tests/fiber/overflow.rs: `an_overflow_names_the_fiber`,
//! `an_overflow_reaches_a_handler_of_the_users_only_if_it_is_no_fibers`,
//! `a_signal_that_is_sent_does_what_it_did`; `who_comes_in_between_is_not_lost`.

use std::{mem::MaybeUninit, ops::Range, panic::Location, ptr};

use crate::engine::{prim::OnceLock, work::current};

/// What the handler reads of the fiber on whose stack a thread is.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) guard: Range<usize>,
    pub(super) room: usize,
    /// The name's text, which the fiber's task keeps; null if it has none.
    pub(super) name: *const u8,
    pub(super) name_len: usize,
    pub(super) spawned_at: &'static Location<'static>,
    pub(super) id: u64,
}

const SIGNALS: [libc::c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// Who was there before, for each of them.
static BEFORE: [Before; 2] = [const { Before::unknown() }; 2];

/// Who was there before, as far as the handler, which may run meanwhile, can know.
struct Before {
    /// Noted first.
    asked: OnceLock<libc::sigaction>,
    /// Somebody else's that was installed in between.
    replaced: OnceLock<libc::sigaction>,
}

impl Before {
    const fn unknown() -> Self {
        Self { asked: OnceLock::new(), replaced: OnceLock::new() }
    }

    /// Only looks, as a handler may.
    fn get(&self) -> Option<&libc::sigaction> {
        self.replaced.get().or_else(|| self.asked.get())
    }
}

type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Puts the handler in front of the others, once in a process.
pub(super) fn install() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        for (signal, before) in SIGNALS.into_iter().zip(&BEFORE) {
            put_in_front(signal, before, asked(signal));
        }
    });
}

/// Installs the handler in the place of `asked`.
fn put_in_front(signal: libc::c_int, before: &Before, asked: libc::sigaction) {
    // First of all, since the handler reads it.
    before.asked.get_or_init(|| asked);
    // SAFETY: plain words, of which zero is one.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    let handler: Handler = on_fault;
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    let mut replaced = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a handler of that form, and room for the answer, of which zero is one. It cannot
    // fail: both signals may be handled.
    let replaced = unsafe {
        libc::sigaction(signal, &raw const action, replaced.as_mut_ptr());
        replaced.assume_init()
    };
    if replaced.sa_sigaction != asked.sa_sigaction || replaced.sa_flags != asked.sa_flags {
        before.replaced.get_or_init(|| replaced);
    }
}

/// The handler of a signal.
fn asked(signal: libc::c_int) -> libc::sigaction {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: only asks; zero is a valid action too.
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
    let record = current::with(|current| current.stack.get()).cast::<Record>();
    // SAFETY: the record is there while the thread is on the stack it describes, and the
    // system passes an `info` that is there.
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

/// Whether somebody has sent the signal, and nothing is wrong here.
///
/// # Safety
/// 1. It was passed to a handler.
unsafe fn is_sent(info: *const libc::siginfo_t) -> bool {
    // SAFETY: 1.
    let code = unsafe { (*info).si_code };
    // Linux has numbers up to zero for that, the BSDs and macOS large ones; faults have small ones
    // everywhere.
    code <= 0 || code >= 0x1_0000
}

/// # Safety
/// 1. These are the arguments of a handler.
unsafe fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let which = usize::from(signal != SIGNALS[0]);
    let before = BEFORE[which].get();
    let handler = before.map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    if handler != libc::SIG_DFL && handler != libc::SIG_IGN {
        if before.is_some_and(|before| before.sa_flags & libc::SA_SIGINFO != 0) {
            // SAFETY: its flags say that it has this form. 1.
            let handler: Handler = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        } else {
            // SAFETY: its flags say that it has this form. 1.
            let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
        return;
    }
    // SAFETY: 1.
    let sent = unsafe { is_sent(info) };
    if sent && handler == libc::SIG_IGN {
        return;
    }
    // Nobody: a fault comes again as soon as we return, and ends the process as it would have
    // without us; it does so even if it is to be ignored. What was sent is sent again.
    // SAFETY: plain words, of which zero is one: the default.
    let action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the system's own handler; and both may be called in a handler. The signal is
    // blocked until we return.
    unsafe {
        libc::sigaction(signal, &raw const action, ptr::null_mut());
        if sent {
            libc::raise(signal);
        }
    }
}

impl Record {
    /// Says whose stack it was, without memory and without locks.
    fn report(&self) {
        say("\nfiber ");
        if self.name.is_null() {
            say_number(self.id);
        } else {
            // SAFETY: the text of a name, which the fiber's task keeps while it runs.
            let name = unsafe { std::slice::from_raw_parts(self.name, self.name_len) };
            say("'");
            say_bytes(name);
            say("'");
        }
        say(", spawned at ");
        say(self.spawned_at.file());
        say(":");
        say_number(self.spawned_at.line().into());
        say(":");
        say_number(self.spawned_at.column().into());
        say(", has overflowed its stack of ");
        say_number(self.room as u64 / 1024);
        say(" KiB\nfatal runtime error: stack overflow, aborting; a larger stack is given by \
             `fiber::Builder::stack_size`, or to all by `runtime::Builder::fiber_stack_size`\n");
    }
}

fn say(text: &str) {
    say_bytes(text.as_bytes());
}

fn say_bytes(bytes: &[u8]) {
    // Whoever reads it may be gone; there is nobody left to tell.
    // SAFETY: bytes that are there.
    unsafe { libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), bytes.len()) };
}

fn say_number(mut number: u64) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return say_bytes(&digits[first..]);
        }
    }
}

/// An alternate stack for a thread that std gave none: it does so only if its own handler was
/// there when the thread began.
#[derive(Debug)]
pub(super) struct Alternate(Option<*mut libc::c_void>);

/// More than the registers of any processor need, and what the handler calls.
const ALTERNATE: usize = 64 * 1024;

impl Alternate {
    /// Looks after this thread's.
    pub(super) fn ensure() -> Self {
        let mut there = MaybeUninit::<libc::stack_t>::zeroed();
        // SAFETY: only asks; plain words, of which zero is one.
        let there = unsafe {
            libc::sigaltstack(ptr::null(), there.as_mut_ptr());
            there.assume_init()
        };
        if there.ss_flags & libc::SS_DISABLE == 0 {
            return Self(None);
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
        // SAFETY: a new mapping, wherever the system likes.
        let memory = unsafe { libc::mmap(ptr::null_mut(), ALTERNATE, access, flags, -1, 0) };
        if memory == libc::MAP_FAILED {
            // Without one an overflow ends the process without a word.
            return Self(None);
        }
        let stack = libc::stack_t { ss_sp: memory.cast(), ss_flags: 0, ss_size: ALTERNATE };
        // SAFETY: the memory is there until `drop`, which says so first.
        if unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) } != 0 {
            // SAFETY: a mapping that nobody was told of.
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
        // SAFETY: this thread's own, on which it is not now; and then nobody's.
        unsafe {
            libc::sigaltstack(&raw const none, ptr::null_mut());
            libc::munmap(memory, ALTERNATE);
        }
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::ptr;

    use super::{Before, asked, put_in_front};

    extern "C" fn nothing(_: libc::c_int) {}

    /// With a signal that nobody else here has or sends.
    #[test]
    fn who_comes_in_between_is_not_lost() {
        const SIGNAL: libc::c_int = libc::SIGXFSZ;
        let handler: extern "C" fn(libc::c_int) = nothing;
        let handler = handler as *const () as usize;
        let first = asked(SIGNAL);
        assert_ne!(first.sa_sigaction, handler);
        // SAFETY: a handler of that form, which does nothing.
        unsafe { libc::signal(SIGNAL, handler) };
        let before = Before::unknown();
        put_in_front(SIGNAL, &before, first);
        // SAFETY: what was there at the beginning.
        unsafe { libc::sigaction(SIGNAL, &raw const first, ptr::null_mut()) };
        assert_eq!(before.get().map(|action| action.sa_sigaction), Some(handler));
    }
}
