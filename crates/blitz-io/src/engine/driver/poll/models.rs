//! Models of a whole driver, with a kernel made for them: threads that register, read and close,
//! against threads that take turns.
//!
//! A task that is not woken, and a turn that is not ended, show up as deadlocks.

use std::{
    future::poll_fn,
    os::fd::{BorrowedFd, RawFd},
    sync::Arc,
    task::Waker,
    time::Duration,
};

use super::PollKernel;
use crate::engine::{
    driver::{
        Direction, Driver, DriverConfig, IoBackend, Registration, backend::Selector,
        interest::Interest, ready::Ready,
    },
    prim::{
        AtomicBool,
        Ordering::{Acquire, Release},
        model, thread,
    },
    wait::test_waker::block_on,
};

impl Driver {
    /// Returns the kernel of a model's driver.
    pub(crate) fn kernel(&self) -> &PollKernel {
        match &self.selector {
            Selector::Poll(poll) => &poll.kernel,
            _ => panic!("models have drivers of `of_a_model`"),
        }
    }

    /// Creates a driver on `poll(2)` with the kernel for models.
    pub(crate) fn of_a_model() -> Arc<Self> {
        let config = DriverConfig { backend: Some(IoBackend::Poll), ..DriverConfig::default() };
        Self::new(config).expect("nothing can fail")
    }

    /// Registers a descriptor that is ready for `signs`.
    pub(crate) fn registered(self: &Arc<Self>, fd: RawFd, signs: libc::c_short) -> Registration {
        self.kernel().set(fd, signs);
        self.register(borrowed(fd), Interest::READABLE).expect("nothing can fail")
    }
}

/// Borrows a descriptor of a model.
fn borrowed(fd: RawFd) -> BorrowedFd<'static> {
    // SAFETY: only the kernel for models sees the descriptor, as a mere number. Besides, it is the
    // number of a standard stream, and these stay open.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// Deregisters a descriptor and closes it right after.
fn close(driver: &Driver, registration: &Registration, fd: RawFd) {
    registration.deregister(borrowed(fd)).expect("nothing can fail");
    driver.kernel().close(fd);
}

/// A thread that takes turns until it is stopped.
struct TurnThread {
    driver: Arc<Driver>,
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl TurnThread {
    fn of(driver: &Arc<Driver>) -> Self {
        let (driver, stop) = (driver.clone(), Arc::new(AtomicBool::new(false)));
        let thread = thread::spawn({
            let (driver, stop) = (driver.clone(), stop.clone());
            move || {
                let mut role = driver.try_lock().expect("no other thread wants it");
                // Acquire: pairs with the Release in `end`.
                while !stop.load(Acquire) {
                    role.turn(None).expect("nothing can fail");
                }
            }
        });
        Self { driver, stop, thread }
    }

    fn end(self) {
        // Release: pairs with the Acquire in `of`.
        self.stop.store(true, Release);
        self.driver.wake();
        self.thread.join().unwrap();
    }
}

/// Runs a task that waits until it has read, as a socket does.
fn read(driver: &Driver, registration: &Registration, fd: RawFd) {
    let read = || driver.kernel().read(fd);
    block_on(poll_fn(|cx| registration.poll_io(cx, Direction::Read, read)))
        .expect("there is something to read");
}

/// The kernel for models refuses to close a descriptor that is waited for, and to wait for one that
/// is closed.
#[test]
fn a_descriptor_is_closed_when_no_thread_waits_for_it() {
    model(|| {
        let driver = Driver::of_a_model();
        let registration = driver.registered(0, 0);
        let turns = TurnThread::of(&driver);
        close(&driver, &registration, 0);
        turns.end();
    });
}

/// Both removals wait for the end of the same wait, or each for the end of another one.
#[test]
fn two_removed_at_once_are_both_closed() {
    model(|| {
        let driver = Driver::of_a_model();
        let (first, second) = (driver.registered(0, 0), driver.registered(1, 0));
        let turns = TurnThread::of(&driver);
        let closing = thread::spawn({
            let driver = driver.clone();
            move || close(&driver, &first, 0)
        });
        close(&driver, &second, 1);
        closing.join().unwrap();
        turns.end();
    });
}

#[test]
fn an_event_against_a_read_that_would_block_is_not_lost() {
    model(|| {
        let driver = Driver::of_a_model();
        let registration = driver.registered(0, libc::POLLIN);
        // The input that is reported has been consumed when the task reads.
        assert_eq!(driver.try_lock().unwrap().turn(None).unwrap(), 1);
        driver.kernel().read(0).unwrap();
        let turns = TurnThread::of(&driver);
        let peer = thread::spawn({
            let driver = driver.clone();
            move || driver.kernel().set(0, libc::POLLIN)
        });
        read(&driver, &registration, 0);
        peer.join().unwrap();
        turns.end();
    });
}

/// A FIFO has lost its writer, which was reported, and has a new one, which writes.
#[test]
fn a_refuted_end_is_armed_again() {
    model(|| {
        let driver = Driver::of_a_model();
        let registration = driver.registered(0, libc::POLLHUP);
        assert_eq!(driver.try_lock().unwrap().turn(None).unwrap(), 1);
        assert!(registration.ready_event(Interest::READABLE).ready().is_read_closed());
        driver.kernel().set(0, 0);
        let turns = TurnThread::of(&driver);
        let writer = thread::spawn({
            let driver = driver.clone();
            move || driver.kernel().set(0, libc::POLLIN)
        });
        read(&driver, &registration, 0);
        writer.join().unwrap();
        turns.end();
    });
}

/// A turn has collected an event of the first descriptor, or is about to, when that one is closed
/// and another gets its number and its slot.
#[test]
fn an_event_of_a_closed_descriptor_does_not_reach_its_successor() {
    model(|| {
        let driver = Driver::of_a_model();
        let first = driver.registered(0, libc::POLLIN);
        let turns = thread::spawn({
            let driver = driver.clone();
            move || drop(driver.try_lock().unwrap().turn(Some(Duration::ZERO)))
        });
        close(&driver, &first, 0);
        drop(first);
        let second = driver.registered(0, 0);
        turns.join().unwrap();
        let ready = second.ready_event(Interest::READABLE).ready();
        assert_eq!(ready, Ready::EMPTY, "the second got the event of the first");
        // The second descriptor's own event reaches it.
        driver.kernel().set(0, libc::POLLIN);
        assert_eq!(driver.try_lock().unwrap().turn(None).unwrap(), 1);
        read(&driver, &second, 0);
    });
}

/// Two threads take turns whenever the other one does not, as awake workers do; each event is
/// reported once, and the next turn sees the effects of the one before.
#[test]
fn a_turn_goes_from_one_to_the_next_with_its_events() {
    model(|| {
        let driver = Driver::of_a_model();
        let registrations =
            [driver.registered(0, libc::POLLIN), driver.registered(1, libc::POLLIN)];
        let look = |driver: &Driver| {
            let found = driver.try_lock().map(|mut role| role.turn(Some(Duration::ZERO)).unwrap());
            found.unwrap_or(0)
        };
        let other = thread::spawn({
            let driver = driver.clone();
            move || look(&driver) + look(&driver)
        });
        let found = look(&driver) + other.join().unwrap();
        assert_eq!(found, 2, "each is reported once");
        for (fd, registration) in (0..).zip(&registrations) {
            let cx = &mut std::task::Context::from_waker(Waker::noop());
            let read = || driver.kernel().read(fd);
            assert!(registration.poll_io(cx, Direction::Read, read).is_ready());
        }
    });
}
