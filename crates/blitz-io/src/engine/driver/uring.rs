//! The Linux selector on io_uring: readiness by a multishot poll request for each descriptor.
//!
//! A poll request reports every change, as edge-triggered epoll does, and what is ready when it
//! starts. Its completions lie in memory that is shared with the kernel, so reading them needs no
//! system call. One call submits what was pushed and waits. Timeouts are exact. (An *SQE* is a
//! submission queue entry: a request to the kernel. A *CQE* is a completion queue entry: its
//! result.)
//!
//! # Facts of the kernel that this is built on
//! - A poll belongs to the thread that submitted it. Its completion is written by that thread,
//!   which is interrupted or woken for it; if the thread exits, the poll ends with ECANCELED.
//! - A poll keeps its file open even if the descriptor is closed. Cancelling only marks the poll;
//!   the thread that it belongs to releases the file.
//! - A completion without the flag 'more' is the last one of its poll.
//! - A completion reports what the file's wake-up call in the kernel reported, which may be less
//!   than is true (an error alone) or more ('urgent' with every byte of a socket).
//!
//! # Protocol
//! ```text
//! the thread that waits (W)                 a thread that adds, or signals (A)
//! W1 locks, reaps: keeps what was           A1 locks, and puts the token on the
//!    reported, puts tokens of ended            unarmed list, or sets `nudged`
//!    polls on the unarmed list              A2 if `waiting`, and not `called`: sets
//! W2 pushes a poll for each token on           `called`, submits a no-op SQE
//!    the list
//! W3 nothing kept, not `nudged`: sets
//!    `waiting`, unlocks
//! W4 submits and sleeps; goes to W1
//! ```
//! The lock puts A1 before W2 or after W3. If before, W2 and W3 find it. If after, A2 finds
//! `waiting`, and the completion of its SQE, which A itself writes, ends the sleep or is there
//! before it begins.
//!
//! So polls are submitted by threads that wait for events, never by others: a foreign thread would
//! be interrupted in its system calls, with EINTR, for as long as the socket lives; and threads of
//! the blocking pool exit. Nor does a signal depend on any thread but W: an eventfd would need a
//! poll, and a poll depends on the thread that it belongs to.
//!
//! ```text
//! a thread that removes (R)
//! R1 locks, forgets the token; if it was never armed: done
//! R2 submits its cancellation; if all polls are this thread's: done
//! R3 reaps repeatedly until the poll's last completion has come; calls as A2 does if W has
//!    something to do now. While a call is on its way to W, R reaps nothing
//! R4 submits a no-op SQE
//! ```
//! If this thread has submitted all polls there are, then after R2 closing the descriptor closes
//! the file, because the kernel releases the file before it returns from R2. Otherwise the thread
//! that the poll belongs to releases it, under the kernel's lock of the io_uring, right after it
//! has written the last completion. That completion ends R3, and R4 must take the same lock.
//!
//! SQEs that W pushed may be submitted by R before W enters the kernel. Then W's call finds
//! fewer SQEs than it announced, does not sleep, and goes back to W1; and R counts as a thread
//! that has submitted polls.
//!
//! # Invariants
//! 1. Both queues of the io_uring are accessed only under the lock.
//! 2. Exactly the watched tokens on the unarmed list have no poll pushed for them (besides tokens
//!    with a poll that failed for good, see `UringTable::complete_rare`).
//! 3. No SQE contains a pointer.
//!
//! # Rejected
//! - `POLL_REMOVE`: for a poll that is about to report something it returns EALREADY and leaves the
//!   poll as it is. A cancellation marks it in any case.
//! - Submission by the thread that adds, for the reasons above. Adding would be cheaper, but each
//!   event would wake two threads.
//! - COOP_TASKRUN: the owner of a poll would not be interrupted, so a thread that hogs its core
//!   would delay the events of the polls that it submitted.
//! - DEFER_TASKRUN: see `docs/design/driver.md`.
//!
//! # Checked by
//! `driver/tests.rs`, which runs all that a driver must do on each selector; `uring/tests.rs`, for
//! what only this one must do; and models, with a kernel of a few lines:
//! `a_descriptor_that_is_added_against_a_sleep_is_reported`, `a_signal_against_a_sleep_ends_it`,
//! `completions_reaped_by_another_thread_are_reported`,
//! `a_poll_whose_end_another_thread_reaps_is_armed_again`, `a_call_is_left_to_the_called_thread`;
//! weakened as `uring_calls`, `uring_leaves_calls`, `uring_reaper_calls`.

use std::{
    io,
    os::{fd::AsRawFd, unix::fs::FileTypeExt},
    time::{Duration, Instant},
};

use io_uring::{
    EnterFlags, IoUring, cqueue, opcode,
    squeue::{self, Entry as Sqe},
    types,
};

use super::{
    Fd, backend::Events, epoll::Epoll, interest::Interest, poll, poll_flags::remaining,
    ready::Ready, record_table::Token,
};
use crate::engine::prim::{store_lock::StoreLock, thread, thread_id};

mod table;

use self::table::{Removed, UringTable};

/// The number of SQEs that can be pushed before a submission: 16 KiB. More are submitted in
/// parts. Picked, not measured. Tests have so few that they often run out.
const PUSHED: u32 = if cfg!(test) { 16 } else { 256 };

/// The number of completions that fit into the queue: 64 KiB. The kernel keeps those that do not
/// fit, and ends their polls. Picked, not measured. Tests have so few that the queue often
/// overflows.
const COMPLETIONS: u32 = if cfg!(test) { 64 } else { 4 * 1024 };

/// The number of polls that are submitted at once, each of which may complete at once: half of the
/// queue. If very many polls had ended for want of room and all were restarted together, they would
/// end again for want of room.
const ARMED: usize = COMPLETIONS as usize / 2;

/// The user data of a no-op SQE that only ends a sleep. No registration has this token, because
/// its slot is that of [`Token::NUDGE`].
const CALL: u64 = Token::NUDGE.bits();

/// The time that a removal waits for the thread that a poll belongs to. Usually that takes a few
/// microseconds, or until the thread gets a processor: with eleven busy threads on two processors,
/// 20 ms were not enough. A thread in an uninterruptible sleep (a disk) may need longer; then the
/// file is closed when it wakes. Picked, not measured.
const PATIENCE: Duration = Duration::from_secs(1);

/// The longest sleep of a removal, in case another thread has reaped the completion that it sleeps
/// for. That is rare, so the sleep may be short.
const SHORT_SLEEP: Duration = Duration::from_millis(1);

/// Timeouts from here on count as infinite: 30 years, longer than any wait, and short enough that
/// the kernel's sum with the current time does not overflow.
const ENDLESS: Duration = Duration::from_secs(1_000_000_000);

/// The io_uring selector.
pub(super) struct UringSelector {
    uring: IoUring,
    table: StoreLock<UringTable>,
    /// The flags of the system call that sleeps.
    sleep: EnterFlags,
}

impl UringSelector {
    /// Creates a selector with an io_uring of its own.
    ///
    /// # Errors
    /// Returns the error of the kernel or a sandbox, or `Unsupported` if the kernel is too old.
    pub(super) fn new() -> io::Result<Self> {
        let uring = IoUring::builder().setup_clamp().setup_cqsize(COMPLETIONS).build(PUSHED)?;
        let can = uring.params();
        let exact = can.is_feature_ext_arg() && can.is_feature_nodrop();
        // The newest of the required features; kernels that have it also have today's multishot
        // polls.
        if !exact || !can.is_feature_skip_cqe_on_success() {
            let why = "its io_uring is too old: Linux 5.17 or newer has what is needed";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let mut sleep = EnterFlags::EXT_ARG | EnterFlags::GETEVENTS;
        if can.is_feature_no_iowait() {
            // A runtime that waits for its clients must not be accounted as waiting for a disk.
            sleep |= EnterFlags::NO_IOWAIT;
        }
        let this = Self { uring, table: StoreLock::new(UringTable::default()), sleep };
        // A sandbox may allow an io_uring to be created but not to be used, so it is tried at once.
        this.submit_nop(&mut this.table.lock())?;
        Ok(this)
    }

    pub(super) fn add(&self, fd: Fd<'_>, token: Token, interest: Interest) -> io::Result<()> {
        let kind = poll::kernel::kind_of(fd)?;
        if !kind.is_socket() && !kind.is_fifo() {
            // A poll of a regular file reports readiness once and then ends. Whatever epoll accepts
            // can be polled, so a temporary epoll instance decides; such descriptors are rare.
            Epoll::new()?.add(fd, token, interest)?;
        }
        let mut table = self.table.lock();
        if !table.add(fd.as_raw_fd(), token, interest) {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        self.call(&mut table);
        Ok(())
    }

    pub(super) fn remove(&self, _: Fd<'_>, token: Token) -> io::Result<()> {
        let mut table = self.table.lock();
        if self.take_out(&mut table, token)? == Removed::Others {
            table.begin_ending(token);
            drop(table);
            return self.wait_for_end(token);
        }
        Ok(())
    }

    /// Removes a token like [`remove`](Self::remove), without waiting until its poll has released
    /// the file.
    pub(super) fn forget(&self, token: Token) {
        let _ = self.take_out(&mut self.table.lock(), token);
    }

    /// No-op: multishot polls report every change.
    #[inline]
    pub(super) fn rearm(&self, _: Token, _: Ready) {}

    pub(super) fn signal(&self) {
        let mut table = self.table.lock();
        table.nudged = true;
        self.call(&mut table);
    }

    /// Ends the sleep of the waiting thread, unless it was called already (A2).
    fn call(&self, table: &mut UringTable) {
        if table.take_call() {
            let nothing = opcode::Nop::new().build().user_data(CALL);
            // The only possible error is that there is no room for completions; then no thread
            // sleeps.
            let _ = self.submit_one(table, &nothing);
        }
    }

    /// Forgets a token and cancels its poll (R1 and R2).
    fn take_out(&self, table: &mut UringTable, token: Token) -> io::Result<Removed> {
        let removed = table.remove(token, thread_id());
        if removed != Removed::Unarmed {
            self.submit_one(table, &cancellation(token))?;
            // Each cancellation adds a completion, and one poll of a task may cancel thousands.
            if self.completion_count(table) > ARMED {
                self.reap_for_another(table);
            }
        }
        Ok(removed)
    }

    /// Waits until the last completion of a removed poll has come (R3 and R4).
    #[cold]
    fn wait_for_end(&self, token: Token) -> io::Result<()> {
        let begun = Instant::now();
        loop {
            let mut table = self.table.lock();
            self.reap_for_another(&mut table);
            let patient = begun.elapsed() < PATIENCE;
            if !table.is_ending(token) || !patient {
                table.finish_ending(token);
                return if patient { self.submit_nop(&mut table) } else { Ok(()) };
            }
            let is_left_to_waiter = !table.may_be_reaped();
            drop(table);
            if is_left_to_waiter {
                // The thread that was called will return soon, and reap.
                thread::yield_now();
            } else {
                // Sleeps beside the waiting thread, which leaves a processor to the thread that
                // must complete the poll. Any completion ends the sleep, unless another thread has
                // reaped it first.
                let _ = self.sleep(0, Some(SHORT_SLEEP));
            }
        }
    }

    /// Reaps for the waiting thread, and calls it if that gave it work: it may be about to sleep,
    /// and finds no completions because we have taken them (R3).
    fn reap_for_another(&self, table: &mut UringTable) {
        if table.may_be_reaped() {
            self.reap(table);
            if table.has_work() {
                self.call(table);
            }
        }
    }

    /// Submits a no-op SQE without a completion, which takes the kernel's lock of the io_uring
    /// (R4).
    fn submit_nop(&self, table: &mut UringTable) -> io::Result<()> {
        let silent = squeue::Flags::SKIP_SUCCESS;
        let nothing = opcode::Nop::new().build().user_data(CALL).flags(silent);
        self.submit_one(table, &nothing)
    }

    pub(super) fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        let waits = timeout != Some(Duration::ZERO);
        let timeout = timeout.filter(|timeout| *timeout < ENDLESS);
        let begun = timeout.filter(|_| waits).map(|_| Instant::now());
        let mut time_left = timeout;
        loop {
            let mut table = self.table.lock();
            table.set_awake();
            self.reap(&mut table);
            let armed = self.arm(&mut table);
            let nudged = waits && std::mem::take(&mut table.nudged);
            if nudged || table.has_kept() || time_left == Some(Duration::ZERO) {
                return self.finish_wait(&mut table, armed, events);
            }
            armed?;
            if table.has_unarmed() {
                self.submit(&mut table)?;
                continue;
            }
            table.set_asleep();
            let pushed = self.pushed(&table);
            drop(table);
            time_left = match self.sleep(pushed, time_left) {
                Ok(()) => remaining(timeout, begun),
                Err(why) => match why.raw_os_error() {
                    Some(libc::ETIME) => Some(Duration::ZERO),
                    Some(libc::EINTR | libc::EAGAIN | libc::EBUSY) => remaining(timeout, begun),
                    Some(libc::EBADR) => self.renew(),
                    _ => return self.give_up(why),
                },
            };
        }
    }

    /// Ends a wait: submits what was pushed, which may complete at once, and hands the events out.
    /// An error is returned only if there are no events.
    fn finish_wait(
        &self,
        table: &mut UringTable,
        armed: io::Result<()>,
        events: &mut Events,
    ) -> io::Result<()> {
        let mut result = armed;
        if self.pushed(table) > 0 {
            result = result.and(self.submit(table));
            self.reap(table);
        }
        table.hand_out(events);
        if events.found.is_empty() { result } else { Ok(()) }
    }

    /// Takes all completions out of the queue (W1).
    fn reap(&self, table: &mut UringTable) {
        loop {
            // SAFETY: by the first invariant there is no other user of the queue: the caller holds
            // the lock.
            for cqe in unsafe { self.uring.completion_shared() } {
                let token = Token::from_bits(cqe.user_data());
                table.complete(token, cqe.result(), cqueue::more(cqe.flags()));
            }
            // SAFETY: by the first invariant there is no other user of the queue: the caller holds
            // the lock.
            let overflown = unsafe { self.uring.submission_shared() }.cq_overflow();
            if !overflown {
                return;
            }
            // The kernel keeps completions for which there was no room; a submission makes it write
            // them.
            self.note_armer(table);
            if self.uring.submit().is_err() {
                return;
            }
        }
    }

    /// Returns the number of completions in the queue.
    fn completion_count(&self, _: &UringTable) -> usize {
        // SAFETY: by the first invariant there is no other user of the queue: the caller holds the
        // lock.
        unsafe { self.uring.completion_shared() }.len()
    }

    /// Pushes polls for unarmed tokens, as many as there is room for in the completion queue (W2).
    fn arm(&self, table: &mut UringTable) -> io::Result<()> {
        for _ in 0..ARMED {
            let Some((token, fd, events)) = table.next_unarmed() else { break };
            let poll = opcode::PollAdd::new(types::Fd(fd), events).multi(true).build();
            if let Err(why) = self.push(table, &poll.user_data(token.bits())) {
                table.set_unarmed(token);
                return Err(why);
            }
        }
        self.note_armer(table);
        Ok(())
    }

    /// Records that this thread submits what was pushed, because polls belong to the submitting
    /// thread.
    fn note_armer(&self, table: &mut UringTable) {
        if self.pushed(table) > 0 {
            table.add_armer(thread_id());
        }
    }

    /// Submits `pushed` SQEs and sleeps until there is a completion (W4).
    fn sleep(&self, pushed: u32, timeout: Option<Duration>) -> io::Result<()> {
        let (time, mut how) = (timeout.map(types::Timespec::from), types::SubmitArgs::new());
        if let Some(time) = &time {
            how = how.timespec(time);
        }
        // SAFETY: `how` has the type that EXT_ARG requires. It and the time that it points to
        // outlive the call. What is submitted has no pointers, by the third invariant.
        let result =
            unsafe { self.uring.submitter().enter(pushed, 1, self.sleep.bits(), Some(&how)) };
        result.map(drop)
    }

    /// Cleans up after a failed sleep: other threads must not believe that this one sleeps.
    #[cold]
    fn give_up(&self, why: io::Error) -> io::Result<()> {
        self.table.lock().set_awake();
        Err(why)
    }

    /// Restarts every poll, after the kernel had no memory to keep a completion and it is unknown
    /// which one. Each poll is cancelled, and is submitted again when its last completion arrives,
    /// with what is ready then. Ends the wait.
    #[cold]
    fn renew(&self) -> Option<Duration> {
        let mut table = self.table.lock();
        for token in table.armed() {
            let _ = self.push(&mut table, &cancellation(token));
        }
        let _ = self.submit(&mut table);
        Some(Duration::ZERO)
    }

    /// Submits an SQE, together with any polls that a waiting thread has pushed and not submitted
    /// yet.
    fn submit_one(&self, table: &mut UringTable, sqe: &Sqe) -> io::Result<()> {
        self.note_armer(table);
        self.push(table, sqe)?;
        self.submit(table)
    }

    fn push(&self, table: &mut UringTable, sqe: &Sqe) -> io::Result<()> {
        loop {
            // SAFETY: by the first invariant there is no other user of the queue, as the caller
            // holds the lock. By the third invariant the SQE has no pointers, so there is nothing
            // that must outlive it.
            if unsafe { self.uring.submission_shared().push(sqe) }.is_ok() {
                return Ok(());
            }
            self.submit(table)?;
        }
    }

    /// Returns the number of SQEs that the kernel has not taken yet.
    fn pushed(&self, _: &UringTable) -> u32 {
        // SAFETY: by the first invariant there is no other user of the queue: the caller holds the
        // lock.
        unsafe { self.uring.submission_shared() }.len() as u32
    }

    /// Makes the kernel take and start everything that was pushed.
    fn submit(&self, table: &mut UringTable) -> io::Result<()> {
        while self.pushed(table) > 0 {
            match self.uring.submit() {
                Ok(_) => {}
                // Interrupted, or temporarily out of memory.
                Err(why) if matches!(why.raw_os_error(), Some(libc::EINTR | libc::EAGAIN)) => {
                    thread::yield_now();
                }
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }
}

/// Creates an SQE that cancels a poll. If there is no such poll, the SQE's own completion,
/// which has the same token, says so.
fn cancellation(token: Token) -> Sqe {
    let cancel = opcode::AsyncCancel::new(token.bits()).build();
    cancel.user_data(token.bits()).flags(squeue::Flags::SKIP_SUCCESS)
}

impl std::fmt::Debug for UringSelector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UringSelector").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod models;

#[cfg(all(test, not(blitz_loom)))]
mod tests;
