//! Looks up host names with the system's resolver, on blocking threads.
//!
//! `getaddrinfo` may take arbitrarily long (about half a minute if a name server does not
//! respond), cannot be stopped, and occupies a thread all the while. So the number of look-ups
//! that run at once is limited: each one needs a `TaskPermit`, which is a permit for one thread. A
//! look-up is in one of these states (`InLine`, `Asked` and `Known` in the code):
//!
//! ```text
//! in line    all seats are taken: it waits for one, first come, first served
//! asked      it has a seat, and the system is asked on a thread for blocking work
//! known      it was an address, or no name at all
//! ```
//! The closure on the blocking thread owns the seat. So the seat becomes free when the resolver
//! has returned, or when the closure is dropped without being run, and not when the caller that
//! wanted the result has given up.
//!
//! # Invariants
//! - No more threads look names up than there are seats, whatever callers do with their futures.
//!   The seats are a quarter of the blocking threads, so that stuck look-ups leave the other
//!   threads alone.
//! - A look-up that waits for a seat occupies nothing but its place in the wait queue, and leaves
//!   the queue when it is dropped. A closure that no thread has taken is aborted when its look-up
//!   is dropped.
//! - The runtime's shutdown closes the wait queue (`Admission::close`), so no look-up waits for a
//!   seat that will never become free.
//!
//! # Rejected
//! - A setting for the number of seats: a program with that many threads stuck in look-ups has
//!   another problem, and `max_blocking_threads` scales both.
//! - A time limit: a look-up that no caller waits for any more is as stuck as before.
//!
//! # Checked by
//! `stuck_lookups_leave_threads_for_other_work`, `those_in_line_are_asked_in_order`,
//! `a_lookup_that_leaves_the_line_is_never_asked`, `a_drop_or_time_out_frees_the_caller_at_once`,
//! `a_shutdown_ends_the_wait_of_those_in_line`, `a_stuck_lookup_is_named_at_shutdown`.

#![forbid(unsafe_code)]

use std::{
    fmt,
    future::Future,
    io,
    net::{SocketAddr, ToSocketAddrs},
    option,
    panic::Location,
    pin::Pin,
    task::{Context, Poll, ready},
    vec,
};

use super::error;
use crate::{
    engine::{
        wait::{
            permits::{Closed, NoPermits},
            task_limit::TaskPermit,
        },
        work::task::{
            cell::Label,
            extra::{BlockingMark, Named},
        },
    },
    runtime::Handle,
    task::JoinHandle,
};

/// One in this many blocking threads may run look-ups. The number was picked: three quarters of
/// the threads are left for everything else, and 128 look-ups at once, which the default limit
/// gives, keep a resolver busy.
const SHARE: usize = 4;

/// Returns how many of `threads` blocking threads may run look-ups at once.
pub(crate) fn seats(threads: usize) -> usize {
    (threads / SHARE).max(1)
}

/// Future of a look-up, which may be complete from the start.
#[derive(Debug)]
pub struct Lookup(State);

enum State {
    Known(Option<io::Result<SocketAddr>>),
    InLine {
        seat: Pin<Box<dyn Future<Output = Result<TaskPermit, Closed>> + Send>>,
        question: Question,
    },
    Asked(Asked),
}

/// Host and port to be resolved, and the runtime on which the resolver runs.
#[derive(Debug)]
struct Question {
    host: String,
    port: u16,
    handle: Handle,
}

/// Handle of the closure that runs the resolver. Dropping the handle aborts the closure if no
/// thread has taken it yet.
#[derive(Debug)]
struct Asked(JoinHandle<io::Result<vec::IntoIter<SocketAddr>>>);

impl Lookup {
    /// Creates a look-up that completes immediately with `address`.
    pub(super) fn known(address: SocketAddr) -> Self {
        Self(State::Known(Some(Ok(address))))
    }

    /// Creates a look-up that completes immediately with `error`, because the text is no valid
    /// name.
    pub(super) fn failed(error: io::Error) -> Self {
        Self(State::Known(Some(Err(error))))
    }

    /// Creates a look-up of the name `host` by the system's resolver.
    #[track_caller]
    pub(super) fn ask(host: &str, port: u16) -> Self {
        let question = Question { host: host.to_owned(), port, handle: Handle::current() };
        let seats = question.handle.inner.admission.lookups();
        Self(match seats.try_take() {
            Ok(seat) => State::Asked(question.ask(seat)),
            Err(NoPermits::TooFew) => {
                State::InLine { seat: Box::pin(seats.clone().take()), question }
            }
            Err(NoPermits::Closed) => State::Known(Some(Err(question.too_late()))),
        })
    }
}

impl Question {
    /// Starts the resolver on a blocking thread.
    fn ask(&self, seat: TaskPermit) -> Asked {
        let (host, port) = (self.host.clone(), self.port);
        let name = format!("look-up of `{host}`");
        let label = Label::with(Location::caller(), Named::new(BlockingMark(()), &name));
        Asked(self.handle.spawn_blocking_labelled(
            move || {
                let _seat = seat;
                ask_system(&host, port).map_err(|cause| failed(&host, port, cause))
            },
            label,
        ))
    }

    fn too_late(&self) -> io::Error {
        let why = io::Error::other("the runtime is shutting down: look it up before that");
        failed(&self.host, self.port, why)
    }
}

fn failed(host: &str, port: u16, cause: io::Error) -> io::Error {
    error::of_lookup(format_args!("`{host}:{port}`"), cause)
}

/// Calls the system's resolver, which blocks.
fn ask_system(host: &str, port: u16) -> io::Result<vec::IntoIter<SocketAddr>> {
    #[cfg(all(test, not(blitz_loom)))]
    if let Some(answer) = tests::injected(host, port) {
        return answer;
    }
    (host, port).to_socket_addrs()
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Future for Lookup {
    type Output = io::Result<Addresses>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let state = &mut self.get_mut().0;
        loop {
            match state {
                State::Known(address) => {
                    let address = address.take().transpose()?;
                    return Poll::Ready(Ok(Addresses::One(address.into_iter())));
                }
                State::InLine { seat, question } => {
                    *state = match ready!(seat.as_mut().poll(cx)) {
                        Ok(seat) => State::Asked(question.ask(seat)),
                        Err(Closed) => State::Known(Some(Err(question.too_late()))),
                    };
                }
                State::Asked(asked) => {
                    let answer = ready!(Pin::new(&mut asked.0).poll(cx));
                    return Poll::Ready(Ok(Addresses::Many(answer??)));
                }
            }
        }
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            State::Known(address) => f.debug_tuple("Known").field(address).finish(),
            State::InLine { question, .. } => f.debug_tuple("InLine").field(question).finish(),
            State::Asked(asked) => asked.fmt(f),
        }
    }
}

/// Iterator over the addresses that a look-up found.
#[derive(Debug)]
pub enum Addresses {
    One(option::IntoIter<SocketAddr>),
    Many(vec::IntoIter<SocketAddr>),
}

impl Iterator for Addresses {
    type Item = SocketAddr;

    fn next(&mut self) -> Option<SocketAddr> {
        match self {
            Addresses::One(addresses) => addresses.next(),
            Addresses::Many(addresses) => addresses.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Addresses::One(addresses) => addresses.size_hint(),
            Addresses::Many(addresses) => addresses.size_hint(),
        }
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests;
