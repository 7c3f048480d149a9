//! Linux's io_uring as the uring uses it: the queues, one system call, and an eventfd.
//!
//! The uring is created without flags that bind it to a thread: any thread may submit and any may
//! reap, and a completion does not wait until the submitting thread enters the kernel again. (With
//! `SINGLE_ISSUER` and `DEFER_TASKRUN`, the kernel would admit only one thread, and withhold
//! completions from all others. `COOP_TASKRUN` would withhold them as long as the thread is busy.)
//!
//! # The eventfd
//! The kernel writes to the eventfd with each completion, and a driver watches it edge-triggered,
//! so it is never read. Most operations complete during the system call that submits them, and the
//! submitting thread checks for completions anyway: for those the eventfd would wake another thread
//! for nothing, which costs more than the operation. So the eventfd is muted during that call.
//!
//! ```text
//! a thread that submits              the kernel, with any completion
//! S1 mutes the eventfd               K1 puts the completion into the queue
//! S2 enters the kernel               K2 a full barrier
//! S3 unmutes the eventfd             K3 reads whether it is muted, and signals it if not
//! S4 fence(SeqCst)
//! S5 checks the queue
//! ```
//! If K3 finds the eventfd muted, it comes before S3, and S5 sees K1. Only one thread submits at a
//! time, so S3 does not end the muting of another one. (K2 is part of how the kernel checks for
//! threads that sleep in it.)
//!
//! # Invariants
//! `push`, `enter` and `backlog` are called by one thread at a time, and so are `take`,
//! `disable_eventfd` and `enable_eventfd`: the uring has a lock for each group.
//!
//! # Rejected
//! - Watching the uring's own descriptor: it wakes the thread that sleeps in the driver for each
//!   completion, also for those that no task ever waited for.
//! - The eventfd for asynchronous completions only (`IORING_REGISTER_EVENTFD_ASYNC`): that means
//!   those of the kernel's own worker threads, and operations on sockets do not use them.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    time::Duration,
};

use io_uring::{
    IoUring, Probe, cqueue, opcode,
    squeue::{self, Entry as Sqe},
    types,
};

use super::{EnterError, Request, UringKernel, op_kind::OpKind, op_table::OpId};
use crate::engine::prim::{Ordering::SeqCst, fence};

/// The number of entries in the submission queue. Each operation is submitted as it is pushed, so
/// only a close that cancels many uses more than one or two.
const SUBMISSIONS: u32 = 64;

/// The number of entries in the completion queue, 16 KiB. The kernel keeps what does not fit, and
/// fetching it costs a system call.
const COMPLETIONS: u32 = 1024;

/// Flags of `io_uring_enter`, which the crate does not export.
const GETEVENTS: u32 = 1;
const EXT_ARG: u32 = 8;

/// The optional features of this kernel's io_uring that the uring can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UringFeatures {
    /// A cancel that succeeds can be submitted without a completion of its own.
    pub(crate) quiet: bool,
}

/// An io_uring with its eventfd.
pub(crate) struct SystemUring {
    uring: IoUring,
    eventfd: OwnedFd,
    features: UringFeatures,
}

/// Detects whether a uring for operations can be created here, by creating one.
///
/// # Errors
/// Returns the kernel's error: EPERM, ENOSYS, ENOMEM, EINVAL and others; or `Unsupported` if it is
/// too old.
pub(crate) fn probe() -> io::Result<UringFeatures> {
    SystemUring::new().map(|system| system.features)
}

/// The operations that a uring requires.
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

impl SystemUring {
    pub(crate) fn new() -> io::Result<Self> {
        Self::with_completions(COMPLETIONS)
    }

    pub(super) fn with_completions(completions: u32) -> io::Result<Self> {
        let uring = IoUring::builder().dontfork().setup_cqsize(completions).build(SUBMISSIONS)?;
        let features = Self::check(&uring)?;
        // SAFETY: the call takes no pointers.
        let eventfd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if eventfd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call above has just created the descriptor, so nothing else owns it.
        let eventfd = unsafe { OwnedFd::from_raw_fd(eventfd) };
        uring.submitter().register_eventfd(eventfd.as_raw_fd())?;
        Ok(Self { uring, eventfd, features })
    }

    fn check(uring: &IoUring) -> io::Result<UringFeatures> {
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
        Ok(UringFeatures { quiet: params.is_feature_skip_cqe_on_success() })
    }

    /// Returns the eventfd that the driver watches.
    pub(crate) fn eventfd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }

    fn sqe(&self, request: Request) -> Sqe {
        match request {
            Request::Begin(id, kind) => begin(kind).user_data(id.bits()),
            Request::Cancel(id) => {
                let sqe = opcode::AsyncCancel::new(id.bits()).build();
                let sqe = sqe.user_data(OpId::NONE_ID.bits());
                if self.features.quiet { sqe.flags(squeue::Flags::SKIP_SUCCESS) } else { sqe }
            }
        }
    }

    /// Makes a system call that submits nothing and waits for `wanted` completions.
    fn enter_to_reap(&self, wanted: u32, timeout: Option<Duration>) -> io::Result<()> {
        let submitter = self.uring.submitter();
        let completion = match timeout {
            // SAFETY: nothing is submitted, and there is no argument.
            None => unsafe { submitter.enter::<libc::sigset_t>(0, wanted, GETEVENTS, None) },
            Some(timeout) => {
                let time = types::Timespec::from(timeout);
                let args = types::SubmitArgs::new().timespec(&time);
                // SAFETY: nothing is submitted; the argument has the type that EXT_ARG requires,
                // and outlives the call, as does the time that it points to.
                unsafe { submitter.enter(0, wanted, GETEVENTS | EXT_ARG, Some(&args)) }
            }
        };
        completion.map(drop)
    }
}

fn begin(kind: OpKind) -> Sqe {
    match kind {
        OpKind::Recv { fd, memory, length } => {
            opcode::Recv::new(types::Fd(fd), memory, length).build()
        }
        OpKind::Send { fd, memory, length } => {
            opcode::Send::new(types::Fd(fd), memory, length).flags(libc::MSG_NOSIGNAL).build()
        }
        OpKind::Read { fd, memory, length, offset } => {
            opcode::Read::new(types::Fd(fd), memory, length).offset(offset).build()
        }
        OpKind::Write { fd, memory, length, offset } => {
            opcode::Write::new(types::Fd(fd), memory, length).offset(offset).build()
        }
    }
}

impl UringKernel for SystemUring {
    unsafe fn push(&self, request: Request) -> bool {
        // SAFETY: the caller holds `submission` (its obligation 1), so no other thread uses the
        // queue.
        let mut queue = unsafe { self.uring.submission_shared() };
        // SAFETY: what an operation points to outlives its completion, by the caller's obligation
        // 2.
        unsafe { queue.push(&self.sqe(request)) }.is_ok()
    }

    unsafe fn backlog(&self) -> usize {
        // SAFETY: the caller holds `submission` (its obligation 1), so no other thread uses the
        // queue.
        unsafe { self.uring.submission_shared() }.len()
    }

    unsafe fn enter(&self) -> Result<(), EnterError> {
        loop {
            // SAFETY: 1. the caller holds `submission`, which is its own obligation too.
            if unsafe { self.backlog() } == 0 {
                return Ok(());
            }
            match self.uring.submitter().submit() {
                Ok(_) => {}
                Err(why) => match why.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN | libc::EBUSY) => return Err(EnterError::NoRoom),
                    code => return Err(EnterError::Never(code.unwrap_or(libc::EIO))),
                },
            }
        }
    }

    unsafe fn disable_eventfd(&self) {
        // SAFETY: the caller holds `reaping` (its obligation 1), so no other thread uses the queue.
        unsafe { self.uring.completion_shared() }.disable_eventfd();
    }

    unsafe fn enable_eventfd(&self) {
        // SAFETY: the caller holds `reaping` (its obligation 1), so no other thread uses the queue.
        unsafe { self.uring.completion_shared() }.enable_eventfd();
        // SeqCst: S4, before the check that follows. Pairs with K2.
        fence(SeqCst);
    }

    unsafe fn take(&self, mut each: impl FnMut(OpId, i32), most: usize) -> (usize, bool) {
        // SAFETY: the caller holds `reaping` (its obligation 1), so no other thread uses the queue.
        let mut queue = unsafe { self.uring.completion_shared() };
        let was_full = queue.is_full();
        let mut taken = 0;
        for cqe in queue.by_ref().take(most) {
            debug_assert!(!cqueue::more(cqe.flags()), "each operation has one completion");
            each(OpId::from_bits(cqe.user_data()), cqe.result());
            taken += 1;
        }
        (taken, was_full)
    }

    fn fetch(&self) {
        // An error is ignored, because there is nothing else to try: the next completion comes here
        // again.
        let _ = self.enter_to_reap(0, None);
    }

    fn wait(&self, timeout: Duration) {
        let Err(why) = self.enter_to_reap(1, Some(timeout)) else { return };
        // After an interrupt or a timeout, the caller checks what has completed.
        if !matches!(why.raw_os_error(), Some(libc::EINTR | libc::ETIME)) {
            // The kernel refuses the call. Completions come all the same, so the caller checks for
            // them after this sleep.
            let milliseconds = timeout.as_millis().try_into().unwrap_or(libc::c_int::MAX);
            // SAFETY: the number of descriptors is zero, so the null pointer is not accessed: the
            // call only sleeps.
            unsafe { libc::poll(std::ptr::null_mut(), 0, milliseconds) };
        }
    }
}

impl std::fmt::Debug for SystemUring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SystemUring").field("features", &self.features).finish_non_exhaustive()
    }
}
