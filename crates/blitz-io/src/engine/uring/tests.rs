//! Tests of the uring with the real kernel and a driver, without a runtime. Where io_uring is not
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
    OpFuture, OpId, Request, SubmitError, SystemUring, Uring, UringKernel,
    op_future::must_resubmit, op_kind::OpKind,
};
use crate::engine::{
    driver::{Driver, DriverConfig, IoBackend, limits::allow_descriptors},
    wait::test_waker::CountingWaker,
};

type Bytes = Vec<u8>;

fn driver(backend: IoBackend) -> Arc<Driver> {
    Driver::new(DriverConfig { backend: Some(backend), ..DriverConfig::default() }).unwrap()
}

/// Calls the test with a driver and its uring, and then shuts both down.
fn with_uring(test: impl FnOnce(&Arc<Driver>, &Uring)) {
    let driver = driver(IoBackend::Auto);
    if let Some(uring) = Uring::of(&driver) {
        test(&driver, uring);
    }
    driver.shutdown();
}

fn recv<'a>(uring: &'a Uring, from: &impl AsRawFd) -> OpFuture<'a, Bytes> {
    let fd = from.as_raw_fd();
    let kind =
        |buf: &mut Bytes| OpKind::Recv { fd, memory: buf.as_mut_ptr(), length: buf.len() as u32 };
    // SAFETY: 1. the memory is the vector's, on the heap, and moves with it. 2. The descriptor is
    // borrowed.
    unsafe { uring.submit(vec![0; 16], kind) }.unwrap()
}

fn poll<P: Send + 'static>(op: &mut OpFuture<'_, P>, waker: &Waker) -> Poll<(i32, P)> {
    std::pin::Pin::new(op).poll(&mut Context::from_waker(waker))
}

fn turn(driver: &Driver, timeout: Duration) -> usize {
    driver.try_lock().expect("no thread has it").turn(Some(timeout)).unwrap()
}

/// Takes turns of the driver until the operation is complete.
fn finish<P: Send + 'static>(driver: &Driver, mut op: OpFuture<'_, P>) -> (i32, P) {
    let counter = CountingWaker::new();
    loop {
        if let Poll::Ready(output) = poll(&mut op, &counter.waker()) {
            return output;
        }
        turn(driver, Duration::from_secs(30));
    }
}

#[test]
fn operations_that_can_complete_at_once_do() {
    with_uring(|driver, uring| {
        let (mut near, far) = UnixStream::pair().unwrap();
        near.write_all(b"now").unwrap();
        let (result, buf) = finish(driver, recv(uring, &far));
        assert_eq!((result, &buf[..3]), (3, &b"now"[..]));
        assert_eq!(turn(driver, Duration::ZERO), 0, "an eventfd rang for what was done at once");
    });
}

#[test]
fn any_thread_that_takes_a_turn_reaps_completions() {
    with_uring(|driver, uring| {
        for _ in 0..3 {
            let (mut near, far) = UnixStream::pair().unwrap();
            let (mut op, counter) = (recv(uring, &far), CountingWaker::new());
            assert!(poll(&mut op, &counter.waker()).is_pending());
            assert_eq!(turn(driver, Duration::ZERO), 0);
            let writer = thread::spawn(move || near.write_all(b"later").unwrap());
            while counter.wake_count() == 0 {
                turn(driver, Duration::from_secs(30));
            }
            writer.join().unwrap();
            let Poll::Ready((result, buf)) = poll(&mut op, &counter.waker()) else {
                panic!("it was woken without a completion");
            };
            assert_eq!((result, &buf[..5]), (5, &b"later"[..]));
            assert_eq!(uring.in_flight(), 0);
        }
    });
}

/// Counts how often it is dropped.
struct TestPayload(Box<[u8; 16]>, Arc<AtomicUsize>);

impl Drop for TestPayload {
    fn drop(&mut self) {
        self.1.fetch_add(1, SeqCst);
    }
}

fn recv_counted<'a>(
    uring: &'a Uring,
    from: &impl AsRawFd,
    dropped: &Arc<AtomicUsize>,
) -> OpFuture<'a, TestPayload> {
    let fd = from.as_raw_fd();
    let kind = |buf: &mut TestPayload| OpKind::Recv { fd, memory: buf.0.as_mut_ptr(), length: 16 };
    // SAFETY: 1. the memory is the box's, on the heap, and moves with it. 2. The descriptor is
    // borrowed.
    unsafe { uring.submit(TestPayload(Box::new([0; 16]), dropped.clone()), kind) }
        .unwrap_or_else(|(why, _)| panic!("{why:?}"))
}

#[test]
fn a_dropped_operation_ends_and_its_payload_with_it() {
    with_uring(|driver, uring| {
        let ((mut near, far), dropped) = (UnixStream::pair().unwrap(), Arc::default());
        drop(recv_counted(uring, &far, &dropped));
        while dropped.load(SeqCst) == 0 {
            turn(driver, Duration::from_secs(30));
        }
        assert_eq!((dropped.load(SeqCst), uring.in_flight()), (1, 0));
        near.write_all(b"mine").unwrap();
        let (result, buf) = finish(driver, recv(uring, &far));
        assert_eq!((result, &buf[..4]), (4, &b"mine"[..]), "the dropped one took nothing");
        assert_eq!(uring.counters().cancelled, 1);
    });
}

#[test]
fn a_leaked_operation_keeps_its_payload_until_the_end() {
    with_uring(|driver, uring| {
        let ((mut near, far), dropped) = (UnixStream::pair().unwrap(), Arc::default());
        std::mem::forget(recv_counted(uring, &far, &dropped));
        drop(far);
        near.write_all(b"into what is not read").unwrap();
        while uring.in_flight() > 0 {
            turn(driver, Duration::from_secs(30));
        }
        assert_eq!(dropped.load(SeqCst), 0, "its other end was leaked");
    });
}

/// The operation ends at once, or when there would have been something to do: kernels differ.
#[test]
fn operations_of_a_thread_that_exits_end_and_must_be_resubmitted() {
    with_uring(|driver, uring| {
        let (mut near, far) = UnixStream::pair().unwrap();
        let op = thread::scope(|scope| scope.spawn(|| recv(uring, &far)).join().unwrap());
        near.write_all(b"kept").unwrap();
        let (result, _) = finish(driver, op);
        assert!(must_resubmit(result), "{result}");
        let (result, buf) = finish(driver, recv(uring, &far));
        assert_eq!((result, &buf[..4]), (4, &b"kept"[..]), "nothing was taken");
    });
}

#[test]
fn a_thread_that_computes_delays_no_completion() {
    with_uring(|driver, uring| {
        let (mut near, far) = UnixStream::pair().unwrap();
        let (begun, done) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let hog = scope.spawn(|| {
                let (mut op, counter) = (recv(uring, &far), CountingWaker::new());
                assert!(poll(&mut op, &counter.waker()).is_pending());
                begun.store(true, SeqCst);
                // Makes no system call until the operation is complete.
                while counter.wake_count() == 0 {
                    std::hint::spin_loop();
                }
                done.store(true, SeqCst);
                finish(driver, op).0
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
fn more_completions_than_there_is_room_for_all_come() {
    const COUNT: usize = 300;
    let Ok(system) = SystemUring::with_completions(64) else { return };
    if !allow_descriptors(2 * COUNT as u64) {
        return;
    }
    let uring = Uring::new(system);
    let pairs: Vec<_> = (0..COUNT).map(|_| UnixDatagram::pair().unwrap()).collect();
    let ops: Vec<_> = pairs.iter().map(|(_, far)| recv(&uring, far)).collect();
    assert_eq!(uring.in_flight(), COUNT);
    for (id, (near, _)) in pairs.iter().enumerate() {
        near.send(&(id as u32).to_be_bytes()).unwrap();
    }
    while uring.in_flight() > 0 {
        uring.wait_and_reap();
    }
    for (id, mut op) in ops.into_iter().enumerate() {
        let Poll::Ready((result, buf)) = poll(&mut op, Waker::noop()) else {
            panic!("{id} is not complete");
        };
        assert_eq!((result, &buf[..4]), (4, &(id as u32).to_be_bytes()[..]));
    }
}

#[test]
fn operations_and_the_calls_that_submit_them_are_as_many() {
    with_uring(|driver, uring| {
        let (mut near, far) = UnixStream::pair().unwrap();
        for _ in 0..10 {
            near.write_all(b"x").unwrap();
            assert_eq!(finish(driver, recv(uring, &far)).0, 1);
        }
        let counters = uring.counters();
        assert_eq!((counters.begun, counters.entered, counters.cancelled), (10, 10, 0));
    });
}

#[test]
fn the_end_completes_all_and_refuses_more() {
    with_uring(|driver, uring| {
        let dropped = Arc::default();
        let pairs: Vec<_> = (0..100).map(|_| UnixStream::pair().unwrap()).collect();
        let mut waiting: Vec<_> =
            pairs.iter().map(|(_, far)| recv_counted(uring, far, &dropped)).collect();
        let counter = CountingWaker::new();
        for op in &mut waiting {
            assert!(poll(op, &counter.waker()).is_pending());
        }
        waiting.drain(50..).for_each(std::mem::forget);
        driver.shutdown();
        assert_eq!((uring.in_flight(), counter.wake_count()), (0, 100));
        for op in &mut waiting {
            let output = poll(op, Waker::noop()).map(|(result, _)| result);
            assert_eq!(output, Poll::Ready(-libc::ECANCELED));
        }
        assert_eq!(dropped.load(SeqCst), 50);
        let kind = |(): &mut ()| OpKind::Recv { fd: -1, memory: std::ptr::null_mut(), length: 0 };
        // SAFETY: 1. and 2. the uring is closed, so the operation is refused and neither the memory
        // nor the descriptor is used.
        let refused = unsafe { uring.submit((), kind) };
        assert_eq!(refused.unwrap_err().0, SubmitError::Closed);
    });
}

#[test]
fn a_driver_that_has_ended_is_not_kept_by_its_uring() {
    let driver = driver(IoBackend::Auto);
    let registered = usize::from(Uring::of(&driver).is_some()) as u64;
    assert_eq!(driver.registered_count(), registered);
    let weak = Arc::downgrade(&driver);
    driver.shutdown();
    assert_eq!(driver.registered_count(), driver.deregistered_count());
    drop(driver);
    assert!(weak.upgrade().is_none(), "the driver is kept, and its uring with it");
}

#[test]
fn a_runtime_with_another_backend_has_no_uring() {
    // The environment variable would override the request.
    if std::env::var_os("BLITZ_IO_BACKEND").is_some() {
        return;
    }
    for backend in [IoBackend::Epoll, IoBackend::Poll] {
        assert!(Uring::of(&driver(backend)).is_none(), "{backend}");
    }
    let driver = driver(IoBackend::Auto);
    assert_eq!(Uring::of(&driver).is_some(), super::probe().is_ok());
    driver.shutdown();
    assert!(Uring::of(&self::driver(IoBackend::Epoll)).is_none());
}

#[test]
fn a_uring_after_the_end_of_its_driver_is_none() {
    let driver = driver(IoBackend::Auto);
    driver.shutdown();
    assert!(Uring::of(&driver).is_none());
}

/// Measures the figures of docs/design/owned.md; needs a release build and a quiet machine:
/// `cargo test --release -p blitz-io --lib -- --ignored --nocapture cost_of_entering_the_kernel`.
#[test]
#[ignore = "measures, and judges nothing"]
fn cost_of_entering_the_kernel() {
    const AT_ONCE: usize = 60;
    const ROUNDS: usize = 400;
    let Ok(system) = SystemUring::new() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pair = || {
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        near.set_nodelay(true).unwrap();
        (near, listener.accept().unwrap().0)
    };
    let pairs: Vec<_> = (0..AT_ONCE).map(|_| pair()).collect();
    let memory = &mut [7_u8; 64];
    let (memory, length) = (memory.as_mut_ptr(), 64);
    let sends = pairs.iter().map(|(near, _)| OpKind::Send { fd: near.as_raw_fd(), memory, length });
    let receives =
        pairs.iter().map(|(_, far)| OpKind::Recv { fd: far.as_raw_fd(), memory, length });
    let kinds: Vec<OpKind> = sends.chain(receives).collect();
    let id = OpId::NONE_ID;
    let by_uring = |at_once: usize| {
        for kinds in kinds.chunks(at_once) {
            // SAFETY: no other thread uses `system`, and the memory lives until the end of the
            // test. All completions are taken, because every operation can complete at once.
            unsafe {
                for &kind in kinds {
                    assert!(system.push(Request::Begin(id, kind)));
                }
                system.enter().unwrap();
                let all_moved = |_, result| assert_eq!(result, 64);
                assert_eq!(system.take(all_moved, kinds.len()).0, kinds.len());
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
        let ways: [&dyn Fn(); 3] = [&|| by_uring(1), &|| by_uring(AT_ONCE), &by_call];
        for (way, times) in ways.iter().zip(&mut times) {
            let begun = Instant::now();
            way();
            times.push(begun.elapsed());
        }
    }
    for (name, times) in ["an entrance each", "one for 60", "plain calls"].iter().zip(&mut times) {
        times.sort_unstable();
        println!("{name}: {} ns", times[ROUNDS / 2].as_nanos() / kinds.len() as u128);
    }
}
