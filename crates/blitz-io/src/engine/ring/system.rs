//! Linux's io_uring, as the ring uses it: the queues, one system call, and a bell.
//!
//! The ring has no flags that bind it to a thread: any may submit and any may reap, and an
//! answer does not wait until the thread that submitted comes back to the kernel. (Asked
//! for `SINGLE_ISSUER` and `DEFER_TASKRUN`, the kernel lets only one thread in, and keeps
//! answers back from all others. `COOP_TASKRUN` keeps them back as long as the thread
//! computes.)
//!
//! # The bell
//! An eventfd, which the kernel writes with each answer and a driver watches; edges, so
//! nobody reads it. Most answers come while the system call that submitted is under way, to
//! the very thread that will look: for those a bell would wake another thread for nothing,
//! which costs more than the operation. So the bell is muffled during that call.
//!
//! ```text
//! who submits                        the kernel, with an answer to anything
//! S1 muffles the bell                K1 puts the answer into the queue
//! S2 enters the kernel               K2 a full barrier
//! S3 lets it ring again              K3 reads whether it is muffled, and rings
//! S4 fence(SeqCst)
//! S5 looks into the queue
//! ```
//! If K3 finds it muffled, it comes before S3, and S5 sees K1. One submits at a time, so S3
//! ends nobody else's silence. (K2 is in what the kernel does to see who sleeps in it.)
//!
//! # Invariants
//! `push`, `enter` and `backlog` are called by one thread at a time, and so are `take`,
//! `muffle` and `unmuffle`: the ring has a lock for each.
//!
//! # Rejected
//! - Watching the ring's own descriptor: it wakes who sleeps in the driver for each answer,
//!   also for those that were never waited for.
//! - The bell for asynchronous answers only (`IORING_REGISTER_EVENTFD_ASYNC`): that means
//!   those of the kernel's own threads, and sockets have none.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    time::Duration,
};

use io_uring::{IoUring, Probe, cqueue, opcode, squeue, types};

use super::{Kernel, Refused, Request, flights::Number, verb::Verb};
use crate::engine::prim::{Ordering::SeqCst, fence};

/// Entries of the queue towards the kernel. Each operation is submitted as it is pushed, so
/// only an end that cancels many uses more than one or two.
const ENTRIES: u32 = 64;

/// Entries of the queue of answers, 16 KiB. The kernel keeps what does not fit, at the price
/// of a system call for us to get it.
const ANSWERS: u32 = 1024;

/// Flags of `io_uring_enter`, which the crate keeps to itself.
const GETEVENTS: u32 = 1;
const EXT_ARG: u32 = 8;

/// What this kernel's io_uring has of what the ring can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Features {
    /// A cancel that succeeds need not be answered.
    pub(crate) quiet: bool,
}

/// See the module.
pub(crate) struct System {
    uring: IoUring,
    bell: OwnedFd,
    features: Features,
}

/// Whether a ring for operations can be made here, by making one.
///
/// # Errors
/// What the kernel says: EPERM, ENOSYS, ENOMEM, EINVAL and others; or `Unsupported` if it is
/// too old.
pub(crate) fn probe() -> io::Result<Features> {
    System::new().map(|system| system.features)
}

/// The operations without which there is no ring.
const NEEDED: [(u8, &str); 5] = [
    (opcode::Recv::CODE, "RECV"),
    (opcode::Send::CODE, "SEND"),
    (opcode::Read::CODE, "READ"),
    (opcode::Write::CODE, "WRITE"),
    (opcode::AsyncCancel::CODE, "ASYNC_CANCEL"),
];

fn too_old(what: &str) -> io::Error {
    let why = format!("this kernel's io_uring lacks {what}: Linux 5.11 has it");
    io::Error::new(io::ErrorKind::Unsupported, why)
}

impl System {
    pub(crate) fn new() -> io::Result<Self> {
        Self::with_answers(ANSWERS)
    }

    pub(super) fn with_answers(answers: u32) -> io::Result<Self> {
        let uring = IoUring::builder().dontfork().setup_cqsize(answers).build(ENTRIES)?;
        let features = Self::check(&uring)?;
        // SAFETY: no pointers.
        let bell = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if bell < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor, which nobody else knows.
        let bell = unsafe { OwnedFd::from_raw_fd(bell) };
        uring.submitter().register_eventfd(bell.as_raw_fd())?;
        Ok(Self { uring, bell, features })
    }

    fn check(uring: &IoUring) -> io::Result<Features> {
        let params = uring.params();
        let has = [
            (params.is_feature_nodrop(), "NODROP"),
            (params.is_feature_fast_poll(), "FAST_POLL"),
            (params.is_feature_rw_cur_pos(), "RW_CUR_POS"),
            (params.is_feature_ext_arg(), "EXT_ARG"),
        ];
        if let Some((_, missing)) = has.iter().find(|(has, _)| !has) {
            return Err(too_old(missing));
        }
        let mut probe = Probe::new();
        uring.submitter().register_probe(&mut probe)?;
        if let Some((_, missing)) = NEEDED.iter().find(|(code, _)| !probe.is_supported(*code)) {
            return Err(too_old(missing));
        }
        Ok(Features { quiet: params.is_feature_skip_cqe_on_success() })
    }

    /// What the driver watches.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn entry(&self, request: Request) -> squeue::Entry {
        match request {
            Request::Begin(number, verb) => begin(verb).user_data(number.bits()),
            Request::Cancel(number) => {
                let entry = opcode::AsyncCancel::new(number.bits()).build();
                let entry = entry.user_data(Number::NOBODY.bits());
                if self.features.quiet { entry.flags(squeue::Flags::SKIP_SUCCESS) } else { entry }
            }
        }
    }

    /// A system call that submits nothing.
    fn enter_to_reap(&self, wanted: u32, timeout: Option<Duration>) -> io::Result<()> {
        let submitter = self.uring.submitter();
        let answer = match timeout {
            // SAFETY: nothing is submitted, and no argument is given.
            None => unsafe { submitter.enter::<libc::sigset_t>(0, wanted, GETEVENTS, None) },
            Some(timeout) => {
                let time = types::Timespec::from(timeout);
                let args = types::SubmitArgs::new().timespec(&time);
                // SAFETY: nothing is submitted; the argument is of the kind that the flag
                // says, and lives during the call, as does the time in it.
                unsafe { submitter.enter(0, wanted, GETEVENTS | EXT_ARG, Some(&args)) }
            }
        };
        answer.map(drop)
    }
}

fn begin(verb: Verb) -> squeue::Entry {
    match verb {
        Verb::Recv { fd, memory, length } => {
            opcode::Recv::new(types::Fd(fd), memory, length).build()
        }
        Verb::Send { fd, memory, length } => {
            opcode::Send::new(types::Fd(fd), memory, length).flags(libc::MSG_NOSIGNAL).build()
        }
        Verb::Read { fd, memory, length, offset } => {
            opcode::Read::new(types::Fd(fd), memory, length).offset(offset).build()
        }
        Verb::Write { fd, memory, length, offset } => {
            opcode::Write::new(types::Fd(fd), memory, length).offset(offset).build()
        }
    }
}

impl Kernel for System {
    unsafe fn push(&self, request: Request) -> bool {
        // SAFETY: one at a time, by the caller's promise.
        let mut queue = unsafe { self.uring.submission_shared() };
        // SAFETY: what a verb points to outlives the answer, by the caller's promise.
        unsafe { queue.push(&self.entry(request)) }.is_ok()
    }

    unsafe fn backlog(&self) -> usize {
        // SAFETY: one at a time, by the caller's promise.
        unsafe { self.uring.submission_shared() }.len()
    }

    unsafe fn enter(&self) -> Result<(), Refused> {
        loop {
            // SAFETY: one at a time, by the caller's promise.
            if unsafe { self.backlog() } == 0 {
                return Ok(());
            }
            match self.uring.submitter().submit() {
                Ok(_) => {}
                Err(why) => match why.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN | libc::EBUSY) => return Err(Refused::NotNow),
                    code => return Err(Refused::Never(code.unwrap_or(libc::EIO))),
                },
            }
        }
    }

    unsafe fn muffle(&self) {
        // SAFETY: one at a time, by the caller's promise.
        unsafe { self.uring.completion_shared() }.disable_eventfd();
    }

    unsafe fn unmuffle(&self) {
        // SAFETY: one at a time, by the caller's promise.
        unsafe { self.uring.completion_shared() }.enable_eventfd();
        // SeqCst: S4, before the look that follows. Pairs with K2.
        fence(SeqCst);
    }

    unsafe fn take(&self, mut each: impl FnMut(Number, i32), most: usize) -> (usize, bool) {
        // SAFETY: one at a time, by the caller's promise.
        let mut queue = unsafe { self.uring.completion_shared() };
        let was_full = queue.is_full();
        let mut taken = 0;
        for answer in queue.by_ref().take(most) {
            debug_assert!(!cqueue::more(answer.flags()), "each operation has one answer");
            each(Number::from_bits(answer.user_data()), answer.result());
            taken += 1;
        }
        (taken, was_full)
    }

    fn fetch(&self) {
        // Whatever it says, there is nothing else to try: the next answer comes here again.
        let _ = self.enter_to_reap(0, None);
    }

    fn wait(&self, timeout: Duration) {
        let Err(why) = self.enter_to_reap(1, Some(timeout)) else { return };
        // Interrupted or timed out, the caller looks at what has come.
        if !matches!(why.raw_os_error(), Some(libc::EINTR | libc::ETIME)) {
            // The kernel lets nobody in. Answers come all the same, and are looked for.
            let milliseconds = timeout.as_millis().try_into().unwrap_or(libc::c_int::MAX);
            // SAFETY: no descriptors, so that nothing is read or written: it sleeps.
            unsafe { libc::poll(std::ptr::null_mut(), 0, milliseconds) };
        }
    }
}

impl std::fmt::Debug for System {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("System").field("features", &self.features).finish_non_exhaustive()
    }
}
