//! Looks up host names with the system's resolver, on blocking threads.
//!
//! `getaddrinfo` may take arbitrarily long (about half a minute if a name server does not
//! respond), cannot be stopped, and occupies a thread all the while. So the number of look-ups
//! that run at once is limited: each one needs a `TaskPermit`, which is a permit for one thread. A
//! look-up is in one of these states:
//!
//! ```text
//! Waiting    all permits are taken: it waits for one, first come, first served
//! Running    it has a permit, and the resolver runs on a blocking thread
//! Resolved   it was an address, or no name at all
//! ```
//! The closure on the blocking thread owns the permit. So the permit becomes free when the resolver
//! has returned, or when the closure is dropped without being run, and not when the caller that
//! wanted the result has given up.
//!
//! # Invariants
//! - No more threads look names up than there are permits, whatever callers do with their futures.
//!   The permits are a quarter of the blocking threads, so that stuck look-ups leave the other
//!   threads alone.
//! - A look-up that waits for a permit occupies nothing but its node in the wait queue, and leaves
//!   the queue when it is dropped. A closure that no thread has taken is aborted when its look-up
//!   is dropped.
//! - The runtime's shutdown closes the wait queue (`Admission::close`), so no look-up waits for a
//!   permit that will never become free.
//!
//! # Rejected
//! - A setting for the number of permits: a program with that many threads stuck in look-ups has
//!   another problem, and `max_blocking_threads` scales both.
//! - A time limit: a look-up that no caller waits for any more is as stuck as before.
//!
//! # Checked by
//! `stuck_lookups_leave_threads_for_other_work`, `lookups_that_wait_start_in_order`,
//! `a_lookup_that_stops_waiting_never_starts`, `a_drop_or_time_out_frees_the_caller_at_once`,
//! `a_shutdown_ends_the_wait_of_lookups`, `a_stuck_lookup_is_named_at_shutdown`.

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
pub(crate) fn max_lookups(threads: usize) -> usize {
    (threads / SHARE).max(1)
}

/// Future of a look-up, which may be complete from the start.
#[derive(Debug)]
pub struct Lookup(State);

enum State {
    Resolved(Option<io::Result<SocketAddr>>),
    Waiting {
        permit: Pin<Box<dyn Future<Output = Result<TaskPermit, Closed>> + Send>>,
        query: Query,
    },
    Running(BlockingLookup),
}

/// Host and port to be resolved, and the runtime on which the resolver runs.
#[derive(Debug)]
struct Query {
    host: String,
    port: u16,
    handle: Handle,
}

/// Handle of the closure that runs the resolver. Dropping the handle aborts the closure if no
/// thread has taken it yet.
#[derive(Debug)]
struct BlockingLookup(JoinHandle<io::Result<vec::IntoIter<SocketAddr>>>);

impl Lookup {
    /// Creates a look-up that completes immediately with `address`.
    pub(super) fn resolved(address: SocketAddr) -> Self {
        Self(State::Resolved(Some(Ok(address))))
    }

    /// Creates a look-up that completes immediately with `error`, because the text is no valid
    /// name.
    pub(super) fn failed(error: io::Error) -> Self {
        Self(State::Resolved(Some(Err(error))))
    }

    /// Creates a look-up of the name `host` by the system's resolver.
    #[track_caller]
    pub(super) fn start(host: &str, port: u16) -> Self {
        let query = Query { host: host.to_owned(), port, handle: Handle::current() };
        let permits = query.handle.inner.admission.lookups();
        Self(match permits.try_take() {
            Ok(permit) => State::Running(query.start(permit)),
            Err(NoPermits::TooFew) => {
                State::Waiting { permit: Box::pin(permits.clone().take()), query }
            }
            Err(NoPermits::Closed) => State::Resolved(Some(Err(query.shut_down_error()))),
        })
    }
}

impl Query {
    /// Starts the resolver on a blocking thread.
    fn start(&self, permit: TaskPermit) -> BlockingLookup {
        let (host, port) = (self.host.clone(), self.port);
        let name = format!("look-up of `{host}`");
        let label = Label::with(Location::caller(), Named::new(BlockingMark(()), &name));
        BlockingLookup(self.handle.spawn_blocking_labelled(
            move || {
                let _permit = permit;
                call_resolver(&host, port).map_err(|cause| failed(&host, port, cause))
            },
            label,
        ))
    }

    fn shut_down_error(&self) -> io::Error {
        let why = io::Error::other("the runtime is shutting down: resolve names before that");
        failed(&self.host, self.port, why)
    }
}

fn failed(host: &str, port: u16, cause: io::Error) -> io::Error {
    error::lookup_failed(format_args!("`{host}:{port}`"), cause)
}

/// Calls the system's resolver, which blocks.
fn call_resolver(host: &str, port: u16) -> io::Result<vec::IntoIter<SocketAddr>> {
    #[cfg(all(test, not(blitz_loom)))]
    if let Some(result) = tests::injected(host, port) {
        return result;
    }
    (host, port).to_socket_addrs()
}

impl Drop for BlockingLookup {
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
                State::Resolved(address) => {
                    let address = address.take().transpose()?;
                    return Poll::Ready(Ok(Addresses::One(address.into_iter())));
                }
                State::Waiting { permit, query } => {
                    *state = match ready!(permit.as_mut().poll(cx)) {
                        Ok(permit) => State::Running(query.start(permit)),
                        Err(Closed) => State::Resolved(Some(Err(query.shut_down_error()))),
                    };
                }
                State::Running(running) => {
                    let result = ready!(Pin::new(&mut running.0).poll(cx));
                    return Poll::Ready(Ok(Addresses::Many(result??)));
                }
            }
        }
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            State::Resolved(address) => f.debug_tuple("Resolved").field(address).finish(),
            State::Waiting { query, .. } => f.debug_tuple("Waiting").field(query).finish(),
            State::Running(running) => running.fmt(f),
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
