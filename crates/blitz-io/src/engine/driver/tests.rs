//! The requirements on every driver, tested on each selector that this system has.

#[cfg(not(unix))]
use std::net::TcpStream as Stream;
#[cfg(windows)]
use std::os::windows::io::AsSocket as AsDescriptor;
#[cfg(unix)]
use std::os::{fd::AsFd as AsDescriptor, unix::net::UnixStream as Stream};
use std::{
    future::{Future, poll_fn},
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc,
    },
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};

#[cfg(unix)]
use super::IoBackend;
use super::{
    Direction, Driver, DriverConfig, Fd, Registration, backend::Selector, interest::Interest,
    limits::allow_descriptors, polling_selector::PollingSelector, ready::Ready,
};
use crate::engine::{
    wait::test_waker::CountingWaker,
    work::task::budget::{self, Budget},
};

#[cfg(unix)]
mod unix;
#[cfg(target_os = "linux")]
mod linux;

const BOTH: Interest = Interest::READABLE.add(Interest::WRITABLE);

/// The time after which a test fails because an expected event has not come.
const LONG: Duration = Duration::from_secs(30);

/// Creates every selector that this system has.
fn selectors() -> Vec<Selector> {
    #[allow(unused_mut, reason = "only Linux has a fourth")]
    let mut selectors = vec![
        #[cfg(target_os = "linux")]
        Selector::new(Some(IoBackend::Epoll)).unwrap(),
        #[cfg(unix)]
        Selector::new(Some(IoBackend::Poll)).unwrap(),
        Selector::Polling(PollingSelector::new().unwrap()),
    ];
    // Some systems refuse io_uring.
    #[cfg(target_os = "linux")]
    selectors.extend(Selector::new(Some(IoBackend::Uring)));
    selectors
}

/// Runs `f` with a driver on each selector.
fn each(f: impl Fn(&Arc<Driver>)) {
    for selector in selectors() {
        f(&Driver::with(selector, DriverConfig::default().events_per_turn, true));
    }
}

/// Returns true if the driver distinguishes closed ends and errors from data.
fn reports_closed_ends(driver: &Driver) -> bool {
    cfg!(target_os = "linux") && !matches!(driver.selector, Selector::Polling(_))
}

#[cfg(unix)]
fn fd(source: &impl AsDescriptor) -> Fd<'_> {
    source.as_fd()
}

#[cfg(windows)]
fn fd(source: &impl AsDescriptor) -> Fd<'_> {
    source.as_socket()
}

fn turn(driver: &Driver, timeout: Option<Duration>) -> usize {
    driver.try_lock().expect("no thread has it").turn(timeout).unwrap()
}

/// The time that the system may need to notice what this thread did: on Windows other threads
/// deliver it.
const SOON: Duration = Duration::from_millis(if cfg!(windows) { 200 } else { 0 });

/// Takes a turn that waits no longer than an event may be delayed.
fn look(driver: &Driver) -> usize {
    turn(driver, Some(SOON))
}

/// Polls a future to completion, with turns of the driver in between.
#[track_caller]
fn run<F: Future>(driver: &Driver, future: F) -> F::Output {
    let (counter, mut future) = (CountingWaker::new(), pin!(future));
    let waker = counter.waker();
    let start = Instant::now();
    loop {
        let before = counter.wake_count();
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        while counter.wake_count() == before {
            assert!(start.elapsed() < LONG, "nothing comes");
            turn(driver, Some(LONG));
        }
    }
}

#[cfg(unix)]
fn connected() -> (Stream, Stream) {
    Stream::pair().unwrap()
}

#[cfg(not(unix))]
fn connected() -> (Stream, Stream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, _) = listener.accept().unwrap();
    near.set_nodelay(true).unwrap();
    far.set_nodelay(true).unwrap();
    (near, far)
}

fn pair() -> (Stream, Stream) {
    let (near, far) = connected();
    near.set_nonblocking(true).unwrap();
    far.set_nonblocking(true).unwrap();
    (near, far)
}

fn poll_ready(
    registration: &Registration,
    counter: &Arc<CountingWaker>,
    direction: Direction,
) -> Poll<Ready> {
    let waker = counter.waker();
    let polled = registration.poll_ready(&mut Context::from_waker(&waker), direction);
    polled.map(|event| event.unwrap().ready())
}

fn read(registration: &Registration, mut stream: &Stream) -> impl Future<Output = Vec<u8>> {
    poll_fn(move |cx| {
        let mut bytes = [0; 16];
        let polled = registration.poll_io(cx, Direction::Read, || stream.read(&mut bytes));
        polled.map(|count| bytes[..count.unwrap()].to_vec())
    })
}

#[test]
fn an_event_wakes_the_waiting_task() {
    each(|driver| {
        let ((near, mut far), counter) = (pair(), CountingWaker::new());
        let registration = driver.register(fd(&near), BOTH).unwrap();
        assert!(poll_ready(&registration, &counter, Direction::Read).is_pending());
        assert_eq!(look(driver), 1, "it can be written");
        assert_eq!(counter.wake_count(), 0, "which does not concern the reader");
        assert_eq!(
            poll_ready(&registration, &counter, Direction::Write),
            Poll::Ready(Ready::WRITABLE)
        );
        far.write_all(b"x").unwrap();
        assert_eq!(look(driver), 1);
        assert_eq!(counter.wake_count(), 1);
        assert_eq!(
            poll_ready(&registration, &counter, Direction::Read),
            Poll::Ready(Ready::READABLE)
        );
        assert_eq!(driver.ready_count(), 2);
    });
}

#[test]
fn bytes_come_one_after_the_other() {
    each(|driver| {
        let (near, mut far) = pair();
        let registration = driver.register(fd(&near), BOTH).unwrap();
        for round in 0..20u8 {
            let writer = thread::spawn(move || {
                far.write_all(&[round; 3]).unwrap();
                far
            });
            let mut got = 0;
            while got < 3 {
                got += run(driver, read(&registration, &near)).len();
            }
            far = writer.join().unwrap();
        }
    });
}

#[test]
fn any_number_of_futures_wait_for_one_descriptor() {
    each(|driver| {
        let (near, mut far) = pair();
        let registration = driver.register(fd(&near), Interest::READABLE).unwrap();
        let counters: Vec<_> = (0..100).map(|_| CountingWaker::new()).collect();
        let mut waiting: Vec<_> =
            counters.iter().map(|_| Box::pin(registration.readiness(Interest::READABLE))).collect();
        for (future, counter) in waiting.iter_mut().zip(&counters) {
            assert!(future.as_mut().poll(&mut Context::from_waker(&counter.waker())).is_pending());
        }
        drop(waiting.swap_remove(50));
        far.write_all(b"x").unwrap();
        assert_eq!(look(driver), 1);
        assert_eq!(counters.iter().map(|counter| counter.wake_count()).sum::<usize>(), 99);
        for mut future in waiting {
            let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(polled, Poll::Ready(Ok(event)) if event.ready() == Ready::READABLE));
        }
    });
}

#[test]
fn a_wait_for_several_interests_gets_each() {
    each(|driver| {
        let (near, _far) = pair();
        let registration = driver.register(fd(&near), BOTH).unwrap();
        let event = run(driver, registration.readiness(BOTH)).unwrap();
        assert_eq!(event.ready(), Ready::WRITABLE);
        assert_eq!(registration.ready_event(Interest::READABLE).ready(), Ready::EMPTY);
    });
}

#[test]
fn a_wake_ends_a_turn_that_waits() {
    each(|driver| {
        let driver = driver.clone();
        let waiting = thread::spawn({
            let driver = driver.clone();
            move || turn(&driver, None)
        });
        // The wake-up comes before or during the turn: either way it ends the turn.
        driver.wake();
        assert_eq!(waiting.join().unwrap(), 0);
    });
}

#[test]
fn a_wake_is_kept_for_the_next_turn_that_waits() {
    each(|driver| {
        driver.wake();
        driver.wake();
        let found = turn(driver, Some(Duration::ZERO));
        assert_eq!(found, 0, "a turn that does not wait leaves it");
        assert_eq!(turn(driver, None), 0);
        let start = Instant::now();
        turn(driver, Some(Duration::from_millis(5)));
        assert!(start.elapsed() >= Duration::from_millis(5), "two were one");
    });
}

#[test]
fn a_turn_without_events_lasts_for_its_timeout() {
    each(|driver| {
        for microseconds in [1, 50, 1_300, 4_000] {
            let (timeout, start) = (Duration::from_micros(microseconds), Instant::now());
            assert_eq!(turn(driver, Some(timeout)), 0);
            assert!(start.elapsed() >= timeout);
        }
    });
}

#[test]
fn one_at_a_time_takes_turns() {
    each(|driver| {
        let first = driver.try_lock().expect("it is free");
        assert!(driver.try_lock().is_none());
        thread::scope(|scope| {
            assert!(scope.spawn(|| driver.try_lock().is_none()).join().unwrap());
        });
        drop(first);
        assert!(driver.try_lock().is_some());
    });
}

/// An event for data that is left unread does not end a second turn.
#[test]
fn a_descriptor_that_stays_ready_lets_turns_wait() {
    each(|driver| {
        let (near, mut far) = pair();
        let registration = driver.register(fd(&near), BOTH).unwrap();
        far.write_all(b"x").unwrap();
        while look(driver) > 0 {}
        assert_eq!(registration.ready_event(BOTH).ready(), Ready::READABLE | Ready::WRITABLE);
        let start = Instant::now();
        assert_eq!(turn(driver, Some(Duration::from_millis(5))), 0);
        assert!(start.elapsed() >= Duration::from_millis(5), "the turn spins");
        // Nor does a closed end, which is reported without a request.
        drop(far);
        while look(driver) > 0 {}
        let start = Instant::now();
        assert_eq!(turn(driver, Some(Duration::from_millis(5))), 0);
        assert!(start.elapsed() >= Duration::from_millis(5), "the turn spins");
    });
}

#[test]
fn a_closed_end_is_reported_and_stays() {
    each(|driver| {
        let (near, far) = pair();
        let registration = driver.register(fd(&near), BOTH).unwrap();
        drop(far);
        while look(driver) > 0 {}
        let event = registration.ready_event(BOTH);
        registration.clear_readiness(event);
        if reports_closed_ends(driver) {
            assert!(event.ready().is_read_closed() && event.ready().is_write_closed());
            let ready = registration.ready_event(BOTH).ready();
            assert!(ready.is_read_closed() && ready.is_write_closed());
        }
        assert_eq!(run(driver, read(&registration, &near)), b"");
    });
}

#[test]
fn a_peer_that_writes_no_more_is_reported() {
    each(|driver| {
        let (near, far) = pair();
        let registration = driver.register(fd(&near), BOTH).unwrap();
        far.shutdown(std::net::Shutdown::Write).unwrap();
        while look(driver) > 0 {}
        let ready = registration.ready_event(BOTH).ready();
        assert!(ready.is_readable() && !ready.is_write_closed(), "{ready:?}");
        if reports_closed_ends(driver) {
            assert!(ready.is_read_closed(), "{ready:?}");
        }
    });
}

/// After an operation that moved fewer bytes than it could, there is no attempt that must fail.
#[test]
fn a_short_read_needs_no_second_one() {
    each(|driver| {
        let (near, mut far) = pair();
        let registration = driver.register(fd(&near), BOTH).unwrap();
        far.write_all(b"abc").unwrap();
        let mut calls = 0;
        let mut bytes = [0; 8];
        let count = run(
            driver,
            poll_fn(|cx| {
                registration.poll_move(cx, Direction::Read, bytes.len(), || {
                    calls += 1;
                    (&near).read(&mut bytes)
                })
            }),
        );
        assert_eq!((count.unwrap(), calls), (3, 1));
        let counter = CountingWaker::new();
        assert!(poll_ready(&registration, &counter, Direction::Read).is_pending());
        far.write_all(b"d").unwrap();
        while look(driver) > 0 {}
        assert_eq!(counter.wake_count(), 1, "the next is reported");
        assert_eq!(
            poll_ready(&registration, &counter, Direction::Read),
            Poll::Ready(Ready::READABLE)
        );
    });
}

/// The last bytes are a short read, and the end of the stream comes without another event.
#[test]
fn the_end_after_a_short_read_is_not_waited_for() {
    each(|driver| {
        let (near, mut far) = pair();
        let registration = driver.register(fd(&near), BOTH).unwrap();
        far.write_all(b"abc").unwrap();
        drop(far);
        let mut bytes = [0; 8];
        for expected in [3, 0, 0] {
            let count = run(
                driver,
                poll_fn(|cx| {
                    registration.poll_move(cx, Direction::Read, 8, || (&near).read(&mut bytes))
                }),
            );
            assert_eq!(count.unwrap(), expected);
        }
        let read = registration.try_op(Interest::READABLE, || (&near).read(&mut bytes));
        assert_eq!(read.unwrap(), 0);
    });
}

#[test]
fn an_attempt_that_would_block_is_not_made_again_until_an_event() {
    each(|driver| {
        let (near, mut far) = pair();
        let registration = driver.register(fd(&near), BOTH).unwrap();
        registration.assume_ready(Ready::READABLE);
        let attempt = || {
            let mut calls = 0;
            let result = registration.try_io(Interest::READABLE, || {
                calls += 1;
                (&near).read(&mut [0; 4])
            });
            (result.map_err(|why| why.kind()), calls)
        };
        assert_eq!(attempt(), (Err(ErrorKind::WouldBlock), 1));
        assert_eq!(attempt(), (Err(ErrorKind::WouldBlock), 0));
        far.write_all(b"ab").unwrap();
        while look(driver) > 0 {}
        assert_eq!(attempt(), (Ok(2), 1));
    });
}

#[test]
fn an_async_operation_is_retried_until_it_works() {
    each(|driver| {
        let (near, far) = pair();
        let registration = driver.register(fd(&near), BOTH).unwrap();
        // Fills the send buffer, so that the next write has to wait.
        let chunk = vec![7; 1 << 16];
        let mut filled = 0;
        while let Ok(count) = (&near).write(&chunk) {
            filled += count;
        }
        let reader = thread::spawn(move || {
            far.set_nonblocking(false).unwrap();
            let mut all = vec![0; filled + 1];
            (&far).read_exact(&mut all).unwrap();
        });
        let count = run(driver, registration.async_io(Interest::WRITABLE, || (&near).write(&[9])));
        assert_eq!(count.unwrap(), 1);
        reader.join().unwrap();
    });
}

#[test]
fn after_a_shutdown_every_wait_fails() {
    each(|driver| {
        let ((near, _far), counter) = (pair(), CountingWaker::new());
        let registration = driver.register(fd(&near), Interest::READABLE).unwrap();
        let mut waiting = pin!(registration.readiness(Interest::READABLE));
        let waker = counter.waker();
        assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(poll_ready(&registration, &counter, Direction::Write).is_pending());
        driver.shutdown();
        assert_eq!(counter.wake_count(), 2);
        let polled = waiting.as_mut().poll(&mut Context::from_waker(&waker));
        let Poll::Ready(Err(why)) = polled else { panic!("{polled:?}") };
        assert!(why.to_string().contains("is being shutdown"), "{why}");
        let mut cx = Context::from_waker(&waker);
        assert!(matches!(registration.poll_ready(&mut cx, Direction::Read), Poll::Ready(Err(_))));
        let why = registration.try_io(Interest::READABLE, || Ok(())).unwrap_err();
        assert_eq!(why.kind(), ErrorKind::WouldBlock, "as on Tokio");
        assert!(driver.register(fd(&near), Interest::READABLE).is_err());
        registration.deregister(fd(&near)).unwrap();
    });
}

#[test]
fn a_wait_for_a_wake_ends_with_the_driver() {
    each(|driver| {
        let waiting = thread::spawn({
            let driver = driver.clone();
            move || turn(&driver, None)
        });
        driver.shutdown();
        waiting.join().unwrap();
    });
}

/// The number of a descriptor is reused at once, as the kernel does.
#[test]
fn an_event_of_a_closed_descriptor_does_not_reach_the_next_of_its_number() {
    each(|driver| {
        for _ in 0..50 {
            let (near, mut far) = pair();
            let first = driver.register(fd(&near), BOTH).unwrap();
            far.write_all(b"x").unwrap();
            first.deregister(fd(&near)).unwrap();
            drop((first, near));
            let (near, _far) = pair();
            let second = driver.register(fd(&near), Interest::READABLE).unwrap();
            while look(driver) > 0 {}
            let ready = second.ready_event(Interest::READABLE).ready();
            assert_eq!(ready, Ready::EMPTY);
            second.deregister(fd(&near)).unwrap();
        }
        assert_eq!((driver.registered_count(), driver.deregistered_count()), (100, 100));
    });
}

#[test]
fn a_registration_that_is_dropped_lets_its_waker_go() {
    each(|driver| {
        let ((near, _far), counter) = (pair(), CountingWaker::new());
        let registration = driver.register(fd(&near), Interest::READABLE).unwrap();
        assert!(poll_ready(&registration, &counter, Direction::Read).is_pending());
        assert_eq!(Arc::strong_count(&counter), 2);
        registration.deregister(fd(&near)).unwrap();
        registration.deregister(fd(&near)).unwrap();
        assert_eq!((counter.wake_count(), driver.deregistered_count()), (0, 1), "it wakes no task");
        drop(registration);
        assert_eq!((counter.wake_count(), Arc::strong_count(&counter)), (0, 1));
    });
}

#[test]
fn files_that_cannot_be_watched_are_refused() {
    each(|driver| {
        let (near, _far) = pair();
        let registration = driver.register(fd(&near), BOTH).unwrap();
        let twice = driver.register(fd(&near), BOTH).unwrap_err();
        assert_eq!(twice.kind(), ErrorKind::AlreadyExists);
        drop(registration);
        assert_eq!(driver.registered_count(), 1);
    });
}

/// The registration ended without `deregister`, so the `polling` crate still has the descriptor.
#[test]
fn a_descriptor_dropped_without_deregister_can_be_registered_again() {
    let driver = Driver::with(Selector::Polling(PollingSelector::new().unwrap()), 16, false);
    let (near, mut far) = pair();
    drop(driver.register(fd(&near), BOTH).unwrap());
    let again = driver.register(fd(&near), BOTH).unwrap();
    far.write_all(b"x").unwrap();
    assert_eq!(run(&driver, read(&again, &near)), b"x");
}

/// A socket that was registered with one runtime is registered with another.
#[test]
fn a_descriptor_goes_from_one_driver_to_another() {
    each(|driver| {
        let other = Driver::new(DriverConfig::default()).unwrap();
        let (near, mut far) = pair();
        let first = driver.register(fd(&near), BOTH).unwrap();
        first.deregister(fd(&near)).unwrap();
        let second = other.register(fd(&near), BOTH).unwrap();
        far.write_all(b"x").unwrap();
        assert_eq!(run(&other, read(&second, &near)), b"x");
        assert_eq!(look(driver), 0);
    });
}

/// More descriptors than fit into a wake list, a block of records, and the events of a turn.
#[test]
fn many_descriptors_are_all_reported() {
    const PAIRS: u64 = 150;
    if !allow_descriptors(2 * PAIRS) {
        return;
    }
    for selector in selectors() {
        let driver = Driver::with(selector, 16, false);
        let counter = CountingWaker::new();
        let all: Vec<_> = (0..PAIRS)
            .map(|_| {
                let (near, far) = pair();
                let registration = driver.register(fd(&near), Interest::READABLE).unwrap();
                assert!(poll_ready(&registration, &counter, Direction::Read).is_pending());
                (registration, near, far)
            })
            .collect();
        for (_, _, far) in &all {
            (&*far).write_all(b"x").unwrap();
        }
        while counter.wake_count() < all.len() {
            assert!(turn(&driver, Some(LONG)) > 0);
        }
        for (registration, near, _) in &all {
            assert_eq!(run(&driver, read(registration, near)), b"x");
        }
    }
}

#[test]
fn a_ready_descriptor_costs_a_unit_of_budget_for_each_operation() {
    each(|driver| {
        let (near, _far) = pair();
        let registration = driver.register(fd(&near), BOTH).unwrap();
        while look(driver) > 0 {}
        let mut done = 0;
        budget::with_budget(Budget::Remaining(5), || {
            let mut cx = Context::from_waker(Waker::noop());
            while registration.poll_io(&mut cx, Direction::Write, || Ok(())).is_ready() {
                done += 1;
            }
        });
        assert_eq!(done, 5);
    });
}

/// Readers and writers of many sockets on threads of their own, while one thread takes turns.
#[test]
fn under_load_no_wake_up_is_lost() {
    const BYTES: usize = 2_000;
    each(|driver| {
        let stop = Arc::new(AtomicBool::new(false));
        let turning = thread::spawn({
            let (driver, stop) = (driver.clone(), stop.clone());
            move || {
                while !stop.load(SeqCst) {
                    turn(&driver, None);
                }
            }
        });
        let (done, finished) = mpsc::channel();
        for _ in 0..3 {
            let (near, far) = pair();
            for (stream, writes) in [(near, true), (far, false)] {
                let (driver, done) = (driver.clone(), done.clone());
                thread::spawn(move || {
                    let registration = driver.register(fd(&stream), BOTH).unwrap();
                    if writes {
                        send(&registration, &stream)
                    } else {
                        receive(&registration, &stream)
                    }
                    registration.deregister(fd(&stream)).unwrap();
                    done.send(()).unwrap();
                });
            }
        }
        for _ in 0..6 {
            finished.recv_timeout(LONG).expect("a task was not woken");
        }
        stop.store(true, SeqCst);
        driver.wake();
        turning.join().unwrap();
    });

    fn send(registration: &Registration, mut stream: &Stream) {
        let mut sent = 0;
        while sent < BYTES {
            let future = registration.async_io(Interest::WRITABLE, || stream.write(&[5; 7]));
            sent += crate::engine::wait::test_waker::block_on(future).unwrap();
        }
    }

    fn receive(registration: &Registration, mut stream: &Stream) {
        let mut got = 0;
        while got < BYTES {
            let mut bytes = [0; 16];
            let future = poll_fn(|cx| {
                registration.poll_move(cx, Direction::Read, 16, || stream.read(&mut bytes))
            });
            got += crate::engine::wait::test_waker::block_on(future).unwrap();
        }
    }
}

/// A wait in the kernel must not keep a closed socket open.
#[test]
fn a_socket_that_is_closed_during_a_turn_is_closed_for_its_peer() {
    each(|driver| {
        let (near, far) = pair();
        let registration = driver.register(fd(&near), Interest::READABLE).unwrap();
        let (begun, has_begun) = mpsc::channel();
        let waiting = thread::spawn({
            let driver = driver.clone();
            move || {
                let mut role = driver.try_lock().unwrap();
                begun.send(()).unwrap();
                role.turn(None).unwrap()
            }
        });
        has_begun.recv().unwrap();
        registration.deregister(fd(&near)).unwrap();
        drop((registration, near));
        far.set_nonblocking(false).unwrap();
        far.set_read_timeout(Some(LONG)).unwrap();
        assert_eq!((&far).read(&mut [0; 1]).unwrap(), 0);
        driver.wake();
        waiting.join().unwrap();
    });
}

/// Checks what `docs/design/driver.md` says about sockets that are assumed to be ready: the number
/// of turns and reads until an accepted socket has its first bytes.
#[test]
fn to_assume_readiness_saves_a_turn_or_costs_a_read() {
    each(|driver| {
        for (assumes, bytes_are_there, expected) in [
            (false, true, (1, 1)),
            (true, true, (0, 1)),
            (false, false, (1, 1)),
            (true, false, (1, 2)),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (near, _) = listener.accept().unwrap();
            if bytes_are_there {
                far.write_all(b"request").unwrap();
                near.peek(&mut [0; 1]).unwrap();
            }
            near.set_nonblocking(true).unwrap();
            let registration = driver.register(fd(&near), BOTH).unwrap();
            if assumes {
                registration.assume_ready(Ready::READABLE | Ready::WRITABLE);
            }
            let (mut turns, mut reads, counter) = (0, 0, CountingWaker::new());
            let waker = counter.waker();
            loop {
                let mut cx = Context::from_waker(&waker);
                let polled = registration.poll_io(&mut cx, Direction::Read, || {
                    reads += 1;
                    (&near).read(&mut [0; 64])
                });
                if let Poll::Ready(count) = polled {
                    assert_eq!(count.unwrap(), 7);
                    break;
                }
                if !bytes_are_there {
                    far.write_all(b"request").unwrap();
                }
                let before = counter.wake_count();
                // Turns that only report writability do not count.
                while counter.wake_count() == before {
                    turn(driver, Some(LONG));
                }
                turns += 1;
            }
            assert_eq!((turns, reads), expected, "assumed: {assumes}, there: {bytes_are_there}");
        }
    });
}
