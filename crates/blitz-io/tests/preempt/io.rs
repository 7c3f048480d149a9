//! Tests that socket operations complete although a thread is stuck, even if it is the thread that
//! submitted them to the system.

use std::{
    io::Write,
    net::{Ipv4Addr, TcpListener, TcpStream as Peer},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    time::{Duration, Instant},
};

use blitz_io::{
    io::AsyncReadExt,
    net::TcpStream,
    runtime::{Builder, IoBackend, Runtime},
    task::JoinHandle,
};

use crate::support::watchdog;

fn connected() -> (TcpStream, Peer) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let peer = Peer::connect(listener.local_addr().unwrap()).unwrap();
    let (stream, _) = listener.accept().unwrap();
    stream.set_nonblocking(true).unwrap();
    (TcpStream::from_std(stream).unwrap(), peer)
}

/// Spawns a task that computes until `over` is set.
fn hog(rt: &Runtime, over: &Arc<AtomicBool>) -> JoinHandle<()> {
    let over = over.clone();
    rt.spawn(async move {
        while !over.load(Relaxed) {
            std::hint::spin_loop();
        }
    })
}

/// Returns the time until a byte from the peer reaches a task that waits in an owned read, if the
/// thread that submitted the read is stuck meanwhile.
fn round_trip(rt: &Runtime, stream: &Arc<TcpStream>, peer: &mut Peer) -> Duration {
    let (stream, (starts, started)) = (stream.clone(), mpsc::channel());
    let reads = rt.spawn(async move {
        starts.send(()).unwrap();
        let (result, _) = stream.read_owned(vec![0; 1]).await;
        assert_eq!(result.unwrap(), 1);
        Instant::now()
    });
    started.recv().unwrap();
    // There is only one worker, so it has submitted the read when it runs this task.
    let over = Arc::new(AtomicBool::new(false));
    let hog = hog(rt, &over);
    watchdog::until(|| rt.metrics().preemption_detached_threads() == 1);
    let began = Instant::now();
    peer.write_all(&[9]).unwrap();
    let took = rt.block_on(reads).unwrap() - began;
    assert!(!hog.is_finished());
    over.store(true, Relaxed);
    rt.block_on(hog).unwrap();
    watchdog::until(|| rt.metrics().preemption_detached_threads() == 0);
    took
}

/// One worker submits reads from a peer, by readiness and with an owned buffer, and is then stuck
/// in another task. Each read completes meanwhile.
#[test]
fn reads_complete_beside_a_hog_on_the_thread_that_submitted_them() {
    let _watch = watchdog::start();
    let backends = [IoBackend::Auto, IoBackend::Poll, IoBackend::Uring];
    for backend in backends {
        let rt =
            Builder::new_multi_thread().worker_threads(1).io_backend(backend).enable_all().build();
        // Some systems refuse io_uring.
        let rt = match rt {
            Ok(rt) => rt,
            Err(error) => {
                eprintln!("skipped: {backend:?} ({error})");
                continue;
            }
        };
        let (over, begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let _entered = rt.enter();
        let ((mut first, mut peer), (second, mut other)) = (connected(), connected());
        let by_readiness = rt.spawn({
            let begun = begun.clone();
            async move {
                begun.fetch_add(1, Relaxed);
                first.read_u8().await.unwrap()
            }
        });
        let by_completion = rt.spawn({
            let begun = begun.clone();
            async move {
                begun.fetch_add(1, Relaxed);
                let (result, buf) = second.read_owned(vec![0; 1]).await;
                assert_eq!((result.unwrap(), buf[0]), (1, 8));
                Arc::new(second)
            }
        });
        let hog = hog(&rt, &over);
        watchdog::until(|| begun.load(Relaxed) == 2);
        peer.write_all(&[7]).unwrap();
        other.write_all(&[8]).unwrap();
        assert_eq!(rt.block_on(by_readiness).unwrap(), 7);
        let second = rt.block_on(by_completion).unwrap();
        assert!(!hog.is_finished());
        over.store(true, Relaxed);
        rt.block_on(hog).unwrap();
        watchdog::until(|| rt.metrics().preemption_detached_threads() == 0);
        let mut median = || {
            let mut times: Vec<_> = (0..7).map(|_| round_trip(&rt, &second, &mut other)).collect();
            times.sort_unstable();
            times[3]
        };
        // Repeated, because other processes may need the processors for a while.
        watchdog::until(|| median() < Duration::from_millis(20));
    }
}
