//! Tests of the ring with the real kernel and a driver, without a runtime. Where io_uring is not
//! available there is nothing to test.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::{
        fd::AsRawFd,
        unix::net::{UnixDatagram, UnixStream},
    },
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};

use super::{
    InFlight, Kernel, NoRing, Number, Request, Ring, System, flight::must_begin_again, verb::Verb,
};
use crate::engine::{
    driver::{Driver, DriverConfig, IoBackend, limits::allow_descriptors},
    wait::bell::Bell,
};

type Buf = Vec<u8>;

fn driver(backend: IoBackend) -> Arc<Driver> {
    Driver::new(DriverConfig { backend: Some(backend), ..DriverConfig::default() }).unwrap()
}

/// Calls the test with a driver and its ring, and then shuts both down.
fn with_ring(test: impl FnOnce(&Arc<Driver>, &Ring)) {
    let driver = driver(IoBackend::Auto);
    if let Some(ring) = Ring::of(&driver) {
        test(&driver, ring);
    }
    driver.shutdown();
}

fn recv<'a>(ring: &'a Ring, from: &impl AsRawFd) -> InFlight<'a, Buf> {
    let fd = from.as_raw_fd();
    let verb =
        |buf: &mut Buf| Verb::Recv { fd, memory: buf.as_mut_ptr(), length: buf.len() as u32 };
    // SAFETY: 1. the memory is the vector's, on the heap, and moves with it. 2. The descriptor is
    // borrowed.
    unsafe { ring.submit(vec![0; 16], verb) }.unwrap()
}

fn poll<P: Send + 'static>(flight: &mut InFlight<'_, P>, waker: &Waker) -> Poll<(i32, P)> {
    std::pin::Pin::new(flight).poll(&mut Context::from_waker(waker))
}

fn turn(driver: &Driver, timeout: Duration) -> usize {
    driver.try_hold().expect("nobody has it").turn(Some(timeout)).unwrap()
}

/// Takes turns of the driver until the operation is complete.
fn finish<P: Send + 'static>(driver: &Driver, mut flight: InFlight<'_, P>) -> (i32, P) {
    let bell = Bell::new();
    loop {
        if let Poll::Ready(answer) = poll(&mut flight, &bell.waker()) {
            return answer;
        }
        turn(driver, Duration::from_secs(30));
    }
}

#[test]
fn what_can_be_done_at_once_is() {
    with_ring(|driver, ring| {
        let (mut near, far) = UnixStream::pair().unwrap();
        near.write_all(b"now").unwrap();
        let (result, buf) = finish(driver, recv(ring, &far));
        assert_eq!((result, &buf[..3]), (3, &b"now"[..]));
        assert_eq!(turn(driver, Duration::ZERO), 0, "a bell rang for what was done at once");
    });
}

#[test]
fn whoever_takes_a_turn_reaps() {
    with_ring(|driver, ring| {
        for _ in 0..3 {
            let (mut near, far) = UnixStream::pair().unwrap();
            let (mut flight, bell) = (recv(ring, &far), Bell::new());
            assert!(poll(&mut flight, &bell.waker()).is_pending());
            assert_eq!(turn(driver, Duration::ZERO), 0);
            let writer = thread::spawn(move || near.write_all(b"later").unwrap());
            while bell.rung() == 0 {
                turn(driver, Duration::from_secs(30));
            }
            writer.join().unwrap();
            let Poll::Ready((result, buf)) = poll(&mut flight, &bell.waker()) else {
                panic!("it was woken without an answer");
            };
            assert_eq!((result, &buf[..5]), (5, &b"later"[..]));
            assert_eq!(ring.in_flight(), 0);
        }
    });
}

/// Counts how often it is dropped.
struct Counted(Box<[u8; 16]>, Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_add(1, SeqCst);
    }
}

fn recv_counted<'a>(
    ring: &'a Ring,
    from: &impl AsRawFd,
    dropped: &Arc<AtomicUsize>,
) -> InFlight<'a, Counted> {
    let fd = from.as_raw_fd();
    let verb = |buf: &mut Counted| Verb::Recv { fd, memory: buf.0.as_mut_ptr(), length: 16 };
    // SAFETY: 1. the memory is the box's, on the heap, and moves with it. 2. The descriptor is
    // borrowed.
    unsafe { ring.submit(Counted(Box::new([0; 16]), dropped.clone()), verb) }
        .unwrap_or_else(|(why, _)| panic!("{why:?}"))
}

#[test]
fn a_dropped_operation_ends_and_its_payload_with_it() {
    with_ring(|driver, ring| {
        let ((mut near, far), dropped) = (UnixStream::pair().unwrap(), Arc::default());
        drop(recv_counted(ring, &far, &dropped));
        while dropped.load(SeqCst) == 0 {
            turn(driver, Duration::from_secs(30));
        }
        assert_eq!((dropped.load(SeqCst), ring.in_flight()), (1, 0));
        near.write_all(b"mine").unwrap();
        let (result, buf) = finish(driver, recv(ring, &far));
        assert_eq!((result, &buf[..4]), (4, &b"mine"[..]), "the dropped one took nothing");
        assert_eq!(ring.figures().cancelled, 1);
    });
}

#[test]
fn a_leaked_operation_keeps_its_payload_until_the_end() {
    with_ring(|driver, ring| {
        let ((mut near, far), dropped) = (UnixStream::pair().unwrap(), Arc::default());
        std::mem::forget(recv_counted(ring, &far, &dropped));
        drop(far);
        near.write_all(b"into what nobody looks at").unwrap();
        while ring.in_flight() > 0 {
            turn(driver, Duration::from_secs(30));
        }
        assert_eq!(dropped.load(SeqCst), 0, "its other end was leaked");
    });
}

/// The operation ends at once, or when there would have been something to do: kernels differ.
#[test]
fn a_thread_that_exits_ends_what_it_submitted_and_says_so() {
    with_ring(|driver, ring| {
        let (mut near, far) = UnixStream::pair().unwrap();
        let flight = thread::scope(|scope| scope.spawn(|| recv(ring, &far)).join().unwrap());
        near.write_all(b"kept").unwrap();
        let (result, _) = finish(driver, flight);
        assert!(must_begin_again(result), "{result}");
        let (result, buf) = finish(driver, recv(ring, &far));
        assert_eq!((result, &buf[..4]), (4, &b"kept"[..]), "nothing was taken");
    });
}

#[test]
fn a_thread_that_computes_delays_no_answer() {
    with_ring(|driver, ring| {
        let (mut near, far) = UnixStream::pair().unwrap();
        let (begun, done) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let hog = scope.spawn(|| {
                let (mut flight, bell) = (recv(ring, &far), Bell::new());
                assert!(poll(&mut flight, &bell.waker()).is_pending());
                begun.store(true, SeqCst);
                // Makes no system call until the operation is complete.
                while bell.rung() == 0 {
                    std::hint::spin_loop();
                }
                done.store(true, SeqCst);
                finish(driver, flight).0
            });
            while !begun.load(SeqCst) {
                thread::yield_now();
            }
            near.write_all(b"to a hog").unwrap();
            while !done.load(SeqCst) {
                turn(driver, Duration::from_millis(10));
            }
            assert_eq!(hog.join().unwrap(), 8);
        });
    });
}

/// The kernel keeps completions for which there is no room, and delivers them on request.
#[test]
fn more_answers_than_there_is_room_for_all_come() {
    const COUNT: usize = 300;
    let Ok(system) = System::with_answers(64) else { return };
    if !allow_descriptors(2 * COUNT as u64) {
        return;
    }
    let ring = Ring::new(system);
    let pairs: Vec<_> = (0..COUNT).map(|_| UnixDatagram::pair().unwrap()).collect();
    let flights: Vec<_> = pairs.iter().map(|(_, far)| recv(&ring, far)).collect();
    assert_eq!(ring.in_flight(), COUNT);
    for (number, (near, _)) in pairs.iter().enumerate() {
        near.send(&(number as u32).to_be_bytes()).unwrap();
    }
    while ring.in_flight() > 0 {
        ring.glance();
    }
    for (number, mut flight) in flights.into_iter().enumerate() {
        let Poll::Ready((result, buf)) = poll(&mut flight, Waker::noop()) else {
            panic!("{number} has no answer");
        };
        assert_eq!((result, &buf[..4]), (4, &(number as u32).to_be_bytes()[..]));
    }
}

#[test]
fn operations_and_the_calls_that_submit_them_are_as_many() {
    with_ring(|driver, ring| {
        let (mut near, far) = UnixStream::pair().unwrap();
        for _ in 0..10 {
            near.write_all(b"x").unwrap();
            assert_eq!(finish(driver, recv(ring, &far)).0, 1);
        }
        let figures = ring.figures();
        assert_eq!((figures.begun, figures.entered, figures.cancelled), (10, 10, 0));
    });
}

#[test]
fn the_end_answers_all_and_refuses_more() {
    with_ring(|driver, ring| {
        let dropped = Arc::default();
        let pairs: Vec<_> = (0..100).map(|_| UnixStream::pair().unwrap()).collect();
        let mut waiting: Vec<_> =
            pairs.iter().map(|(_, far)| recv_counted(ring, far, &dropped)).collect();
        let bell = Bell::new();
        for flight in &mut waiting {
            assert!(poll(flight, &bell.waker()).is_pending());
        }
        waiting.drain(50..).for_each(std::mem::forget);
        driver.shutdown();
        assert_eq!((ring.in_flight(), bell.rung()), (0, 100));
        for flight in &mut waiting {
            let answer = poll(flight, Waker::noop()).map(|(result, _)| result);
            assert_eq!(answer, Poll::Ready(-libc::ECANCELED));
        }
        assert_eq!(dropped.load(SeqCst), 50);
        let verb = |(): &mut ()| Verb::Recv { fd: -1, memory: std::ptr::null_mut(), length: 0 };
        // SAFETY: 1. and 2. the ring is closed, so the operation is refused and neither the memory
        // nor the descriptor is used.
        let refused = unsafe { ring.submit((), verb) };
        assert_eq!(refused.unwrap_err().0, NoRing::Closed);
    });
}

#[test]
fn a_driver_that_has_ended_is_not_kept_by_its_ring() {
    let driver = driver(IoBackend::Auto);
    let registered = usize::from(Ring::of(&driver).is_some()) as u64;
    assert_eq!(driver.registered_count(), registered);
    let weak = Arc::downgrade(&driver);
    driver.shutdown();
    assert_eq!(driver.registered_count(), driver.deregistered_count());
    drop(driver);
    assert!(weak.upgrade().is_none(), "the driver is kept, and its ring with it");
}

#[test]
fn a_runtime_that_asks_for_another_mechanism_has_no_ring() {
    // The environment variable would override the request.
    if std::env::var_os("BLITZ_IO_BACKEND").is_some() {
        return;
    }
    for backend in [IoBackend::Epoll, IoBackend::Poll] {
        assert!(Ring::of(&driver(backend)).is_none(), "{backend}");
    }
    let driver = driver(IoBackend::Auto);
    assert_eq!(Ring::of(&driver).is_some(), super::probe().is_ok());
    driver.shutdown();
    assert!(Ring::of(&self::driver(IoBackend::Epoll)).is_none());
}

#[test]
fn a_ring_after_the_end_of_its_driver_is_none() {
    let driver = driver(IoBackend::Auto);
    driver.shutdown();
    assert!(Ring::of(&driver).is_none());
}

/// Measures the figures of docs/design/owned.md; needs a release build and a quiet machine:
/// `cargo test --release -p blitz-io --lib -- --ignored --nocapture what_an_entrance_costs`.
#[test]
#[ignore = "measures, and judges nothing"]
fn what_an_entrance_costs() {
    const AT_ONCE: usize = 60;
    const ROUNDS: usize = 400;
    let Ok(system) = System::new() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pair = || {
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        near.set_nodelay(true).unwrap();
        (near, listener.accept().unwrap().0)
    };
    let pairs: Vec<_> = (0..AT_ONCE).map(|_| pair()).collect();
    let memory = &mut [7_u8; 64];
    let (memory, length) = (memory.as_mut_ptr(), 64);
    let sends = pairs.iter().map(|(near, _)| Verb::Send { fd: near.as_raw_fd(), memory, length });
    let receives = pairs.iter().map(|(_, far)| Verb::Recv { fd: far.as_raw_fd(), memory, length });
    let verbs: Vec<Verb> = sends.chain(receives).collect();
    let number = Number::NOBODY;
    let by_ring = |at_once: usize| {
        for verbs in verbs.chunks(at_once) {
            // SAFETY: no other thread uses `system`, and the memory lives until the end of the
            // test. All completions are taken, because every operation can complete at once.
            unsafe {
                for &verb in verbs {
                    assert!(system.push(Request::Begin(number, verb)));
                }
                system.enter().unwrap();
                let all_moved = |_, result| assert_eq!(result, 64);
                assert_eq!(system.take(all_moved, verbs.len()).0, verbs.len());
            }
        }
    };
    let by_call = || {
        let mut bytes = [7; 64];
        for (near, _) in &pairs {
            assert_eq!((&mut &*near).write(&bytes).unwrap(), 64);
        }
        for (_, far) in &pairs {
            assert_eq!((&mut &*far).read(&mut bytes).unwrap(), 64);
        }
    };
    let mut times: [Vec<Duration>; 3] = Default::default();
    for _ in 0..ROUNDS {
        let ways: [&dyn Fn(); 3] = [&|| by_ring(1), &|| by_ring(AT_ONCE), &by_call];
        for (way, times) in ways.iter().zip(&mut times) {
            let begun = Instant::now();
            way();
            times.push(begun.elapsed());
        }
    }
    for (name, times) in ["an entrance each", "one for 60", "plain calls"].iter().zip(&mut times) {
        times.sort_unstable();
        println!("{name}: {} ns", times[ROUNDS / 2].as_nanos() / verbs.len() as u128);
    }
}
