//! The signal that captures a stack, its handler, and the resolution of the captured addresses.

use std::{mem::MaybeUninit, ops::Range, ptr, time::Duration};

use super::{super::stall::StalledPoll, StackFrame};
use crate::engine::lease::stack_request::{StackRequest, StackTrace};
use crate::engine::{
    prim::{
        AtomicPtr, OnceLock,
        Ordering::{Acquire, Release},
    },
    work::thread_context,
};

const SIGNAL: libc::c_int = libc::SIGURG;

/// How long the reporter waits for a thread to respond: a runnable thread is scheduled after a few
/// time slices of others. Picked. Other reports wait meanwhile, because it is the reporter thread
/// that waits.
const PATIENCE: Duration = Duration::from_millis(50);

type SigactionHandler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// The address of this static marks the signals that we send.
static MARK: u8 = 0;

/// The action that was installed before ours; leaked, because the handler may be using it.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// Installs the handler in front of the present one, once in a process.
pub(in super::super) fn install() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        // Before the handler is installed, because the handler reads it.
        let before = installed_action();
        remember(before);
        let mut replaced = MaybeUninit::<libc::sigaction>::zeroed();
        let action = our_action(&before);
        // SAFETY: our handler has the signature that SA_SIGINFO requires, and the old action is
        // written to memory of its type. The call cannot fail, because this signal may be handled.
        let replaced = unsafe {
            libc::sigaction(SIGNAL, &raw const action, replaced.as_mut_ptr());
            replaced.assume_init()
        };
        if replaced.sa_sigaction != before.sa_sigaction {
            // Another handler was installed in between.
            remember(replaced);
        }
    });
}

/// Returns the action that is installed for the signal.
fn installed_action() -> libc::sigaction {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null action only reads, and an all-zero `sigaction` is valid if nothing was
    // written.
    unsafe {
        libc::sigaction(SIGNAL, ptr::null(), action.as_mut_ptr());
        action.assume_init()
    }
}

fn remember(before: libc::sigaction) {
    // Release: publishes the action that the pointer refers to. Pairs with the Acquire in
    // `pass_on`.
    BEFORE.store(Box::into_raw(Box::new(before)), Release);
}

fn is_handler(action: &libc::sigaction) -> bool {
    action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN
}

/// Returns our action. It keeps what a handler that was there before has requested: its stack, its
/// mask, and whether system calls are restarted.
fn our_action(before: &libc::sigaction) -> libc::sigaction {
    // SAFETY: `sigaction` consists of plain integers, for which zero is valid.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = on_signal as SigactionHandler as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    if is_handler(before) {
        action.sa_mask = before.sa_mask;
        let kept = libc::SA_RESTART | libc::SA_ONSTACK | libc::SA_NODEFER;
        action.sa_flags = libc::SA_SIGINFO | before.sa_flags & kept;
    }
    action
}

extern "C" fn on_signal(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the system passes valid arguments to a handler (obligation 1 of `is_ours` and
    // `pass_on`), `context` is a `ucontext_t`, and `errno` belongs to this thread.
    unsafe {
        if !is_ours(info) {
            return pass_on(signal, info, context);
        }
        let errno = libc::__errno_location();
        let before = *errno;
        // Our signals go to threads that have run tasks, so their thread-locals exist.
        thread_context::respond_to_stack_request(|trace, stacks| {
            walk(&*context.cast(), stacks, trace)
        });
        *errno = before;
    }
}

/// Returns true if the signal carries our mark.
///
/// # Safety
/// 1. `info` is what the system has passed to a handler.
unsafe fn is_ours(info: *const libc::siginfo_t) -> bool {
    // SAFETY: `info` is valid by obligation 1, and a signal with SI_QUEUE has a value.
    unsafe {
        (*info).si_code == SI_QUEUE
            && (*info).si_value().sival_ptr.addr() == (&raw const MARK).addr()
    }
}

/// Calls the handler that was installed before ours, if there is one.
///
/// # Safety
/// 1. These are the arguments of a handler.
unsafe fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // Acquire: pairs with the Release in `remember`.
    let before = BEFORE.load(Acquire);
    // SAFETY: the pointer is null or that of a leaked action, which is never freed.
    let Some(before) = unsafe { before.as_ref() }.filter(|before| is_handler(before)) else {
        // The signal was ignored before, so it is ignored.
        return;
    };
    if before.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: SA_SIGINFO says that the handler has this signature, and by obligation 1 the
        // arguments are those of a handler.
        let handler: SigactionHandler = unsafe { std::mem::transmute(before.sa_sigaction) };
        handler(signal, info, context);
    } else {
        // SAFETY: without SA_SIGINFO a handler has this signature, and by obligation 1 the argument
        // is that of a handler.
        let handler: extern "C" fn(libc::c_int) =
            unsafe { std::mem::transmute(before.sa_sigaction) };
        handler(signal);
    }
}

/// Registers of a thread where the signal interrupted it.
struct Registers {
    instruction: usize,
    frame: usize,
    stack: usize,
}

impl Registers {
    fn of(context: &libc::ucontext_t) -> Self {
        let machine = &context.uc_mcontext;
        #[cfg(target_arch = "x86_64")]
        return Self {
            instruction: machine.gregs[libc::REG_RIP as usize] as usize,
            frame: machine.gregs[libc::REG_RBP as usize] as usize,
            stack: machine.gregs[libc::REG_RSP as usize] as usize,
        };
        #[cfg(target_arch = "aarch64")]
        Self {
            instruction: machine.pc as usize,
            frame: machine.regs[29] as usize,
            stack: machine.sp as usize,
        }
    }
}

/// Follows the chain of frame pointers. Each points to two words: the next frame pointer, and the
/// return address of the function. The thread runs on one of the two `stacks`.
fn walk(context: &libc::ucontext_t, stacks: [Range<usize>; 2], trace: &mut StackTrace) {
    const WORD: usize = size_of::<usize>();
    let Registers { instruction, mut frame, stack: top } = Registers::of(context);
    trace.push(instruction);
    let Some(stack) = stacks.into_iter().find(|stack| stack.contains(&top)) else {
        // In another handler, or on a stack that is not ours.
        return;
    };
    // Memory beyond the top of the stack belongs to no frame.
    let mut innermost = top;
    loop {
        let ends = frame.checked_add(2 * WORD).is_some_and(|end| end <= stack.end);
        if frame < innermost || !frame.is_multiple_of(WORD) || !ends {
            return;
        }
        let words = ptr::with_exposed_provenance::<usize>(frame);
        // SAFETY: these are aligned words between the top of the stack that this thread runs on and
        // its end, which are mapped. The thread is in this handler and changes none of them.
        let (next, address) = unsafe { (words.read_volatile(), words.add(1).read_volatile()) };
        if address == 0 || !trace.push(address) {
            return;
        }
        innermost = frame + 2 * WORD;
        frame = next;
    }
}

/// Creates the [`StackRequest`] of this thread. Returns `None` if the handler has no room or the
/// system does not report the stack's bounds.
pub(in super::super) fn stack_request() -> Option<StackRequest> {
    if !has_room_for_the_handler() {
        return None;
    }
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::zeroed();
    // SAFETY: the calling thread is alive; the attributes are written to memory of their type, are
    // read only if that succeeded, and are destroyed afterwards.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let (mut lowest, mut size) = (ptr::null_mut(), 0);
        let refused =
            libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        let stack = lowest.addr()..lowest.addr().checked_add(size)?;
        (refused == 0).then(|| StackRequest::new(stack))
    }
}

/// Stack that the handler needs beyond what the system puts there; several times what it was seen
/// to take.
const HANDLER: usize = 4096;

/// Returns true if the alternate signal stack of this thread has room for the registers that the
/// system saves, which may be many (AMX, SME), and for the handler. Without an alternate stack the
/// thread's own is used, which has room.
fn has_room_for_the_handler() -> bool {
    let mut stack = MaybeUninit::<libc::stack_t>::zeroed();
    // SAFETY: the system writes to memory of its type, for which zeroes are valid too.
    let stack = unsafe {
        if libc::sigaltstack(ptr::null(), stack.as_mut_ptr()) != 0 {
            return false;
        }
        stack.assume_init()
    };
    if stack.ss_flags & libc::SS_DISABLE != 0 {
        return true;
    }
    // SAFETY: `getauxval` takes a number, and returns 0 for an entry that the system does not have.
    let registers = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) };
    stack.ss_size >= HANDLER + usize::try_from(registers).unwrap_or(usize::MAX / 2)
}

/// Layout in which the system reads a signal with a value, on 64-bit systems.
#[repr(C)]
struct QueuedSignal {
    signal: libc::c_int,
    error: libc::c_int,
    code: libc::c_int,
    _gap: libc::c_int,
    process: libc::pid_t,
    user: libc::uid_t,
    value: *const u8,
    _rest: [u8; 96],
}

/// Linux's code for a signal with a value. Versions of `libc` before 0.2.170 lack it, and programs
/// that use the drop-ins may have an older one in their lock files.
const SI_QUEUE: libc::c_int = -1;

const _: () = assert!(size_of::<QueuedSignal>() == size_of::<libc::siginfo_t>());

/// Sends a signal with our mark; returns `false` if the system refused it.
fn send(thread: i64) -> bool {
    // SAFETY: plain system calls, which only read.
    let (process, user) = unsafe { (libc::getpid(), libc::getuid()) };
    let queued = QueuedSignal {
        signal: SIGNAL,
        error: 0,
        code: SI_QUEUE,
        _gap: 0,
        process,
        user,
        value: &raw const MARK,
        _rest: [0; 96],
    };
    // SAFETY: the system reads `queued`, which is alive and has the size of `siginfo_t`. A thread
    // that has ended is refused; a new thread with the same ID does nothing, because no capture was
    // requested of it.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_rt_tgsigqueueinfo,
            process,
            thread as libc::pid_t,
            SIGNAL,
            &raw const queued,
        )
    };
    outcome == 0
}

/// Returns the stack of the thread, if it responds in time and is in that poll.
pub(in super::super) fn frames(stalled_poll: &StalledPoll) -> Option<Vec<StackFrame>> {
    let trace = stalled_poll.examine(|watch_record| {
        // A thread that computed before but is blocked just now is not interrupted.
        if !stalled_poll.interrupts_waits() && watch_record.cpu.is_runnable() != Some(true) {
            return None;
        }
        let pending = watch_record.lease().stack_request()?.request()?;
        if !send(watch_record.cpu.thread()?) {
            return None;
        }
        pending.wait(PATIENCE);
        pending.read().filter(|trace| stalled_poll.is_of(trace.poll))
    })?;
    let code = Code::of_this_process();
    let mut frames = Vec::new();
    for (depth, &address) in trace.addresses().iter().enumerate() {
        if depth > 0 && !code.contains(address) {
            break;
        }
        resolve(address, depth == 0, &mut frames);
    }
    Some(frames)
}

/// Ranges of executable memory.
struct Code(Vec<Range<usize>>);

impl Code {
    fn of_this_process() -> Self {
        // If this fails, only the innermost address is certain.
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        Self(maps.lines().filter_map(Self::parse).collect())
    }

    /// Parses a line such as `7f72-7f80 r-xp …`; `None` if the memory is not executable.
    fn parse(line: &str) -> Option<Range<usize>> {
        let mut words = line.split_ascii_whitespace();
        let (begins, ends) = words.next()?.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        let range = number(begins)?..number(ends)?;
        words.next()?.contains('x').then_some(range)
    }

    fn contains(&self, address: usize) -> bool {
        self.0.iter().any(|range| range.contains(&address))
    }
}

/// Finds the symbols of an address: several, if functions were inlined there.
#[cfg(feature = "stall-stacks")]
fn resolve(address: usize, is_innermost: bool, frames: &mut Vec<StackFrame>) {
    // The address after a call may belong to the next line, or to the next function.
    let within = if is_innermost { address } else { address.saturating_sub(1) };
    let before = frames.len();
    backtrace::resolve(ptr::without_provenance_mut(within), |symbol| {
        frames.push(StackFrame {
            address,
            // Without the hash that distinguishes versions of a crate.
            name: symbol.name().map(|name| format!("{name:#}")),
            file: symbol.filename().map(Into::into),
            line: symbol.lineno(),
        });
    });
    if frames.len() == before {
        frames.push(StackFrame { address, name: None, file: None, line: None });
    }
}

#[cfg(not(feature = "stall-stacks"))]
fn resolve(address: usize, _: bool, frames: &mut Vec<StackFrame>) {
    frames.push(StackFrame { address, name: None, file: None, line: None });
}

#[cfg(test)]
mod tests {
    use super::{Code, install, send, stack_request};
    use crate::engine::{lease::Lease, prim::cpu::CpuClock, work::thread_context::LeaseGuard};

    /// Sends our signal to the calling thread: when this returns, the handler has run.
    fn signal() {
        assert!(send(CpuClock::of_this_thread().thread().unwrap()));
    }

    #[test]
    fn only_a_thread_with_a_request_responds() {
        install();
        // The thread has no lease, like a new thread with the ID of one that has ended.
        signal();
        let lease = Lease::new(false).with_stack_request(stack_request());
        // SAFETY: obligation 1: the lease is dropped after the guard.
        let lease_guard = unsafe { LeaseGuard::new(Some(&lease)) };
        signal();
        let stack_request = lease.stack_request().unwrap();
        let pending = stack_request.request().unwrap();
        assert!(pending.read().is_none(), "that one came before");
        signal();
        let trace = pending.read().expect("its handler has run");
        assert!(!trace.addresses().is_empty());
        assert!(lease.is_in(trace.poll));
        drop(lease_guard);
        drop(pending);
        let pending = stack_request.request().unwrap();
        signal();
        assert!(pending.read().is_none(), "it is not this thread's any more");
    }

    #[test]
    fn the_stack_of_a_thread_is_known_to_it() {
        let local = 0_u8;
        let stack = stack_request().expect("the system reports it").stack();
        assert!(stack.contains(&(&raw const local).addr()), "{stack:x?}");
    }

    #[test]
    fn code_is_distinguished_from_data() {
        let (code, local) = (Code::of_this_process(), 0_u8);
        assert!(code.contains(code_is_distinguished_from_data as fn() as usize));
        assert!(!code.contains((&raw const local).addr()));
        assert_eq!(Code::parse("7f72-7f80 r-xp 0 0:0 0 /lib"), Some(0x7f72..0x7f80));
        for none in ["7f72-7f80 r--p 0", "", "7f72 r-xp", "x-y r-xp"] {
            assert_eq!(Code::parse(none), None, "{none}");
        }
    }
}
