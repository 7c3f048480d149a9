//! Linux: io_uring as a source of readiness, by a multishot poll for each descriptor.
//!
//! A poll tells every change, as edge-triggered epoll does, and what is ready when it begins.
//! Its completions lie in memory that we share with the kernel: a look at them is no system
//! call. One call submits what was pushed and waits. Time-outs are exact.
//!
//! # Facts of the kernel that this is built on
//! - A poll belongs to the thread that submitted it. Its completion is written by that
//!   thread, which is interrupted for it, or woken; if the thread ends, so does the poll, with
//!   ECANCELED.
//! - A poll keeps its file open, whoever closes the descriptor. To cancel it only marks it;
//!   the thread that it belongs to lets the file go.
//! - A completion without the flag 'more' is the last one of its poll.
//! - What a completion says is what the waker of the file said, which may be less than is
//!   true (an error alone), or more ('urgent' with every byte of a socket).
//!
//! # Protocol
//! ```text
//! who waits                                 who adds, or signals
//! W1 locks, reaps: what was told is kept,   A1 locks, and puts the token on the list
//!    what has ended goes on the list of        of the unarmed, or sets `nudged`
//!    the unarmed                            A2 if `waiting`: clears it, submits an entry
//! W2 pushes a poll for each on the list        that does nothing
//! W3 nothing kept, not `nudged`: sets
//!    `waiting`, lets the lock go
//! W4 submits and sleeps; goes to W1
//! ```
//! The lock puts A1 before W2 or after W3. If before, W2 and W3 find it. If after, A2 finds
//! `waiting`, and the completion of its entry, which A writes itself, ends the sleep or is
//! there before it begins.
//!
//! So polls are submitted by threads that wait for events, never by others: a thread of
//! somebody else's would be interrupted in its calls, with EINTR, for as long as the socket
//! lives; and those of the blocking pool end. Nor does a signal need anybody but W: an
//! eventfd would be heard by a poll, and a poll needs the thread that it belongs to.
//!
//! ```text
//! who removes
//! R1 locks, forgets the token; it was never armed: done
//! R2 submits its cancellation; all polls are this thread's: done
//! R3 reaps, again and again, until the poll's last completion has come; calls as A2 does
//!    if W has something to do now
//! R4 submits an entry that does nothing
//! ```
//! After R2 the file is closed with its descriptor if this thread has armed all polls there
//! are: the kernel lets it go before it returns from R2. Otherwise the thread that it belongs
//! to lets it go under the ring's lock in the kernel, right after it has written the last
//! completion. That is when R3 ends, and R4 has to take that lock.
//!
//! Entries that W pushed may be submitted by R before W enters. Then W's call finds fewer than
//! it was told, does not sleep, and begins again at W1; and R counts as one who arms.
//!
//! # Invariants
//! 1. Both queues of the ring are touched under the lock only.
//! 2. A token on the list of the unarmed, and no other, has no poll that was pushed.
//! 3. No entry has a pointer.
//!
//! # Rejected
//! - `POLL_REMOVE`: of a poll that is about to tell something it answers EALREADY, and leaves
//!   it as it is. A cancellation marks it in any case.
//! - Who adds submits: see above. It would be cheaper to add, and each event would wake two
//!   threads.
//! - COOP_TASKRUN: the owner of a poll would not be interrupted, and a thread that hogs its
//!   core would hold up the sockets that it has armed.
//! - DEFER_TASKRUN: see `docs/design/driver.md`.
//!
//! # Checked by
//! `driver/tests.rs`, which runs all that a driver must do on each mechanism;
//! `uring/tests.rs`, what only this one has to do; and models, with a kernel of a few lines:
//! `a_descriptor_that_is_added_against_a_sleep_is_told`, `a_signal_against_a_sleep_ends_it`,
//! `what_another_reaps_is_told`, `a_poll_whose_end_another_reaps_begins_again`; weakened as
//! `uring_calls`, `uring_reaper_calls`.

use std::{
    io,
    os::{fd::AsRawFd, unix::fs::FileTypeExt},
    time::{Duration, Instant},
};

use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue, types};

use super::{
    Fd, backend::Events, epoll::Epoll, interest::Interest, poll, ready::Ready, signs::rest,
    sources::Token,
};
use crate::engine::prim::{bolt::Bolted, thread, thread_id};

mod table;

use self::table::{Removed, Table};

/// Entries that are pushed before a submission: 16 KiB. More at once are submitted in parts.
/// Picked, not measured. In tests so few that they often run out.
const PUSHED: u32 = if cfg!(test) { 16 } else { 256 };

/// Completions that have room: 64 KiB. The kernel keeps those for which there is none, and
/// ends their polls. Picked, not measured. In tests as above.
const TOLD: u32 = if cfg!(test) { 64 } else { 4 * 1024 };

/// Polls that begin at once, each of which may tell something at once: half of the room. If
/// all of very many began for want of room, they would end again for want of room.
const ARMED: usize = TOLD as usize / 2;

/// What an entry is called that does nothing but end a sleep. No registration has such a
/// token: its place is that of [`Token::NUDGE`].
const CALL: u64 = Token::NUDGE.bits();

/// How long a removal waits for the thread that a poll belongs to. It takes some
/// microseconds, or until that thread has a core: with eleven at work for two cores 20 ms
/// were not enough. A thread in a sleep that nothing interrupts (a disk) may need longer.
/// Then the file is closed when it wakes. Picked, not measured.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long it sleeps if another thread was quicker to reap what it sleeps for: rare, so it
/// may be short.
const NAP: Duration = Duration::from_millis(1);

/// Longer than anybody waits, and not so long that the kernel's sum with the present
/// overflows: 30 years.
const ENDLESS: Duration = Duration::from_secs(1_000_000_000);

/// See the module.
pub(super) struct Uring {
    ring: IoUring,
    table: Bolted<Table>,
    /// How to enter for a sleep.
    sleep: EnterFlags,
}

impl Uring {
    /// # Errors
    /// What the kernel or a sandbox says, or that the kernel is too old.
    pub(super) fn new() -> io::Result<Self> {
        let ring = IoUring::builder().setup_clamp().setup_cqsize(TOLD).build(PUSHED)?;
        let can = ring.params();
        let exact = can.is_feature_ext_arg() && can.is_feature_nodrop();
        // The youngest of what is needed: its multishot polls are those of today, too.
        if !exact || !can.is_feature_skip_cqe_on_success() {
            let why = "its io_uring is too old: Linux 5.17 or newer has what is needed";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let mut sleep = EnterFlags::EXT_ARG | EnterFlags::GETEVENTS;
        if can.is_feature_no_iowait() {
            // A runtime that waits for its clients does not wait for a disk.
            sleep |= EnterFlags::NO_IOWAIT;
        }
        let this = Self { ring, table: Bolted::new(Table::default()), sleep };
        // A sandbox may allow to make a ring and not to use it.
        this.pass(&mut this.table.lock())?;
        Ok(this)
    }

    pub(super) fn add(&self, fd: Fd<'_>, token: Token, interest: Interest) -> io::Result<()> {
        let kind = poll::kernel::kind_of(fd)?;
        if !kind.is_socket() && !kind.is_fifo() {
            // A poll of a file says at once that it is ready, and no more. What epoll takes
            // can be polled, so it is asked; that is rare.
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
            table.ends(token);
            drop(table);
            return self.see_it_end(token);
        }
        Ok(())
    }

    /// As [`remove`](Self::remove), but nobody waits until the file is closed.
    pub(super) fn forget(&self, token: Token) {
        let _ = self.take_out(&mut self.table.lock(), token);
    }

    /// It tells every change anyway.
    #[inline]
    pub(super) fn rearm(&self, _: Token, _: Ready) {}

    pub(super) fn signal(&self) {
        let mut table = self.table.lock();
        table.nudged = true;
        self.call(&mut table);
    }

    /// A2.
    fn call(&self, table: &mut Table) {
        if table.takes_call() {
            let nothing = opcode::Nop::new().build().user_data(CALL);
            // The only error there can be is that there is no room for completions: then
            // nobody sleeps.
            let _ = self.submit_one(table, &nothing);
        }
    }

    /// R1 and R2.
    fn take_out(&self, table: &mut Table, token: Token) -> io::Result<Removed> {
        let removed = table.remove(token, thread_id());
        if removed != Removed::Unarmed {
            self.submit_one(table, &cancellation(token))?;
            // Each is a completion, and there may be thousands in one poll of a task.
            if self.told(table) > ARMED {
                self.reap_for_another(table);
            }
        }
        Ok(removed)
    }

    /// R3 and R4.
    #[cold]
    fn see_it_end(&self, token: Token) -> io::Result<()> {
        let begun = Instant::now();
        loop {
            let mut table = self.table.lock();
            self.reap_for_another(&mut table);
            let patient = begun.elapsed() < PATIENCE;
            if !table.is_ending(token) || !patient {
                table.ended(token);
                return if patient { self.pass(&mut table) } else { Ok(()) };
            }
            drop(table);
            // Beside who waits, and with a core for the thread that has to do it. It ends with
            // any completion, unless another has reaped that before.
            let _ = self.sleep(0, Some(NAP));
        }
    }

    /// R3. Who is about to sleep may have found nothing because we have it, and is called.
    fn reap_for_another(&self, table: &mut Table) {
        self.reap(table);
        if table.has_work() {
            self.call(table);
        }
    }

    /// R4: submits nothing, under the kernel's lock.
    fn pass(&self, table: &mut Table) -> io::Result<()> {
        let silent = squeue::Flags::SKIP_SUCCESS;
        let nothing = opcode::Nop::new().build().user_data(CALL).flags(silent);
        self.submit_one(table, &nothing)
    }

    pub(super) fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        let waits = timeout != Some(Duration::ZERO);
        let timeout = timeout.filter(|timeout| *timeout < ENDLESS);
        let begun = timeout.filter(|_| waits).map(|_| Instant::now());
        let mut left = timeout;
        loop {
            let mut table = self.table.lock();
            table.waiting = false;
            self.reap(&mut table);
            let armed = self.arm(&mut table);
            let nudged = waits && std::mem::take(&mut table.nudged);
            if nudged || table.has_kept() || left == Some(Duration::ZERO) {
                return self.look(&mut table, armed, events);
            }
            armed?;
            if table.has_unarmed() {
                self.submit(&mut table)?;
                continue;
            }
            table.waiting = true;
            let pushed = self.pushed(&table);
            drop(table);
            left = match self.sleep(pushed, left) {
                Ok(()) => rest(timeout, begun),
                Err(why) => match why.raw_os_error() {
                    Some(libc::ETIME) => Some(Duration::ZERO),
                    Some(libc::EINTR | libc::EAGAIN | libc::EBUSY) => rest(timeout, begun),
                    Some(libc::EBADR) => self.renew(),
                    _ => return self.give_up(why),
                },
            };
        }
    }

    /// The end of a wait: what was pushed is submitted, and may tell something at once. What
    /// is there already is worth more than an error.
    fn look(
        &self,
        table: &mut Table,
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

    /// W1.
    fn reap(&self, table: &mut Table) {
        loop {
            // SAFETY: 1. by the first invariant there is no other: the caller has the lock.
            for entry in unsafe { self.ring.completion_shared() } {
                let token = Token::from_bits(entry.user_data());
                table.told(token, entry.result(), cqueue::more(entry.flags()));
            }
            // SAFETY: 1. as above.
            let overflown = unsafe { self.ring.submission_shared() }.cq_overflow();
            if !overflown {
                return;
            }
            // The kernel has some for which there was no room: to submit makes it write them.
            self.note_armer(table);
            if self.ring.submit().is_err() {
                return;
            }
        }
    }

    /// How many completions there are.
    fn told(&self, _: &Table) -> usize {
        // SAFETY: 1. as in `reap`.
        unsafe { self.ring.completion_shared() }.len()
    }

    /// W2, as far as there is room for what they may tell.
    fn arm(&self, table: &mut Table) -> io::Result<()> {
        for _ in 0..ARMED {
            let Some((token, fd, events)) = table.next_unarmed() else { break };
            let poll = opcode::PollAdd::new(types::Fd(fd), events).multi(true).build();
            if let Err(why) = self.push(table, &poll.user_data(token.bits())) {
                table.is_unarmed(token);
                return Err(why);
            }
        }
        self.note_armer(table);
        Ok(())
    }

    /// Whoever submits polls has them.
    fn note_armer(&self, table: &mut Table) {
        if self.pushed(table) > 0 {
            table.is_armed_by(thread_id());
        }
    }

    /// W4.
    fn sleep(&self, pushed: u32, timeout: Option<Duration>) -> io::Result<()> {
        let (time, mut how) = (timeout.map(types::Timespec::from), types::SubmitArgs::new());
        if let Some(time) = &time {
            how = how.timespec(time);
        }
        // SAFETY: `how` is what EXT_ARG says it is. It and the time, to which it points, live
        // during the call. What is submitted has no pointers (3.).
        let answer =
            unsafe { self.ring.submitter().enter(pushed, 1, self.sleep.bits(), Some(&how)) };
        answer.map(drop)
    }

    /// The sleep failed, and others must not think that there is one.
    #[cold]
    fn give_up(&self, why: io::Error) -> io::Result<()> {
        self.table.lock().waiting = false;
        Err(why)
    }

    /// The kernel had no memory to keep a completion for which there was no room, and nobody
    /// knows which. Every poll is cancelled, and begins again when it says so, with what is
    /// ready then. Ends the wait.
    #[cold]
    fn renew(&self) -> Option<Duration> {
        let mut table = self.table.lock();
        for token in table.armed() {
            let _ = self.push(&mut table, &cancellation(token));
        }
        let _ = self.submit(&mut table);
        Some(Duration::ZERO)
    }

    /// Submits an entry, and the polls of somebody who is about to.
    fn submit_one(&self, table: &mut Table, entry: &squeue::Entry) -> io::Result<()> {
        self.note_armer(table);
        self.push(table, entry)?;
        self.submit(table)
    }

    fn push(&self, table: &mut Table, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: 1. as in `reap`. 2. Nothing that it points to has to live: by the third
            // invariant it does not point.
            if unsafe { self.ring.submission_shared().push(entry) }.is_ok() {
                return Ok(());
            }
            self.submit(table)?;
        }
    }

    /// How many entries the kernel has not taken yet.
    fn pushed(&self, _: &Table) -> u32 {
        // SAFETY: 1. as in `reap`.
        unsafe { self.ring.submission_shared() }.len() as u32
    }

    /// Has the kernel take all that was pushed, and do it.
    fn submit(&self, table: &mut Table) -> io::Result<()> {
        while self.pushed(table) > 0 {
            match self.ring.submit() {
                Ok(_) => {}
                // Interrupted, or out of memory for a moment.
                Err(why) if matches!(why.raw_os_error(), Some(libc::EINTR | libc::EAGAIN)) => {
                    thread::yield_now();
                }
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }
}

/// Ends a poll. If there is none, the completion says so in its stead.
fn cancellation(token: Token) -> squeue::Entry {
    let cancel = opcode::AsyncCancel::new(token.bits()).build();
    cancel.user_data(token.bits()).flags(squeue::Flags::SKIP_SUCCESS)
}

impl std::fmt::Debug for Uring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uring").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod models;

#[cfg(all(test, not(blitz_loom)))]
mod tests;
