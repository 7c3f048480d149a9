//! Tests that panics begin with the sentence that Tokio panics with, so that a
//! `#[should_panic(expected = "…")]` written for Tokio passes.
//!
//! The sentences are those that Tokio 1.54.1 printed for the same calls.

use std::{
    future::pending,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use blitz_io::{
    io::{self, AsyncBufReadExt, AsyncReadExt, ReadBuf},
    net, process,
    runtime::{Builder, Handle, LocalRuntime},
    signal::unix::{SignalKind, signal},
    sync::{Mutex, RwLock, Semaphore, broadcast, mpsc, oneshot},
    task::{self, JoinSet, LocalSet},
    time,
};

use crate::support::{
    caught_panic::message,
    manual_poll::{once, poll_once},
    runtimes::{one_thread, one_thread_with_drivers, workers},
    watchdog,
};

const NESTED: &str = "Cannot start a runtime from within a runtime. This happens because a \
    function (like `block_on`) attempted to block the current thread while the thread is being \
    used to drive asynchronous tasks. If you are in an async function, use `.await` on the future \
    instead of blocking on it.";
const BLOCKS: &str = "Cannot block the current thread from within a runtime. This happens because \
    a function attempted to block the current thread while the thread is being used to drive \
    asynchronous tasks.";
const DROPPED: &str = "Cannot drop a runtime in a context where blocking is not allowed. This \
    happens when a runtime is dropped from within an asynchronous context.";
const NO_RUNTIME: &str =
    "there is no reactor running, must be called from the context of a Tokio 1.x runtime";
const NO_IO: &str = "A Tokio 1.x context was found, but IO is disabled. Call `enable_io` on the \
    runtime builder to enable IO.";
const NO_TIME: &str = "A Tokio 1.x context was found, but timers are disabled. Call `enable_time` \
    on the runtime builder to enable timers.";
const SHUT_DOWN: &str = "A Tokio 1.x context was found, but it is being shutdown.";
const NOT_LOCAL: &str =
    "`spawn_local` called from outside of a `task::LocalSet` or `runtime::LocalRuntime`";
const IN_PLACE: &str = "can call blocking only when running on the multi-threaded runtime";
const PAUSE: &str = "`time::pause()` requires the `current_thread` Tokio runtime. This is the \
    default Runtime used by `#[tokio::test].";

/// Calls `f` and asserts that it panics with a message that begins with `sentence`.
#[track_caller]
fn begins<R>(sentence: &str, f: impl FnOnce() -> R) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(f)) else {
        panic!("no panic; expected: {sentence}");
    };
    let text = message(&*payload);
    assert!(text.starts_with(sentence), "\nexpected: {sentence}\n     got: {text}");
}

/// Calls `f` in a `block_on`.
fn inside<R>(f: impl FnOnce() -> R) -> R {
    one_thread_with_drivers().block_on(async { f() })
}

#[test]
fn calls_that_may_not_block_panic_with_tokios_message() {
    let _watch = watchdog::start();
    let other = one_thread_with_drivers();
    begins(NESTED, || inside(|| other.block_on(async {})));
    begins(NESTED, || inside(|| Handle::current().block_on(async {})));
    begins(NESTED, || inside(|| LocalSet::new().block_on(&other, async {})));
    begins(NESTED, || inside(|| LocalRuntime::new().unwrap().block_on(async {})));
    begins(DROPPED, || inside(|| drop(workers(1))));
    begins(DROPPED, || inside(|| workers(1).shutdown_timeout(Duration::from_secs(1))));

    let (sender, mut receiver) = mpsc::channel(1);
    begins(BLOCKS, || inside(|| sender.blocking_send(1)));
    begins(BLOCKS, || inside(|| receiver.blocking_recv()));
    begins(BLOCKS, || inside(|| receiver.blocking_recv_many(&mut Vec::new(), 1)));
    let (_sender, mut receiver) = mpsc::unbounded_channel::<u8>();
    begins(BLOCKS, || inside(|| receiver.blocking_recv()));
    let (_sender, receiver) = oneshot::channel::<u8>();
    begins(BLOCKS, || inside(|| receiver.blocking_recv()));
    let (_sender, mut receiver) = broadcast::channel::<u8>(1);
    begins(BLOCKS, || inside(|| receiver.blocking_recv()));
    let mutex = Arc::new(Mutex::new(()));
    begins(BLOCKS, || inside(|| drop(mutex.blocking_lock())));
    begins(BLOCKS, || inside(|| drop(mutex.clone().blocking_lock_owned())));
    let lock = RwLock::new(());
    begins(BLOCKS, || inside(|| drop(lock.blocking_read())));
    begins(BLOCKS, || inside(|| drop(lock.blocking_write())));

    begins(IN_PLACE, || inside(|| task::block_in_place(|| ())));
    let set = LocalSet::new();
    begins(IN_PLACE, || workers(1).block_on(set.run_until(async { task::block_in_place(|| ()) })));
}

#[test]
fn calls_without_a_runtime_panic_with_tokios_message() {
    let _watch = watchdog::start();
    let udp = || {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    };
    begins(NO_RUNTIME, Handle::current);
    begins(NO_RUNTIME, || blitz_io::spawn(async {}));
    begins(NO_RUNTIME, || task::spawn_blocking(|| ()));
    begins(NO_RUNTIME, || JoinSet::new().spawn(async {}));
    begins(NO_RUNTIME, || JoinSet::new().spawn_blocking(|| ()));
    begins(NO_RUNTIME, || drop(time::sleep(Duration::from_secs(1))));
    begins(NO_RUNTIME, || drop(time::sleep_until(time::Instant::now())));
    begins(NO_RUNTIME, || drop(time::timeout(Duration::from_secs(1), pending::<()>())));
    begins(NO_RUNTIME, || time::interval(Duration::from_secs(1)));
    begins(NO_RUNTIME, || net::UdpSocket::from_std(udp()));
    begins(NO_RUNTIME, || once(net::TcpListener::bind("127.0.0.1:0")));
    begins(NO_RUNTIME, || once(net::TcpStream::connect("127.0.0.1:1")));
    begins(NO_RUNTIME, net::UnixStream::pair);
    begins(NO_RUNTIME, || once(blitz_io::fs::metadata("/nowhere/there")));
    begins(NO_RUNTIME, || signal(SignalKind::hangup()));
    begins(NO_RUNTIME, || once(blitz_io::signal::ctrl_c()));
    begins(NO_RUNTIME, || process::Command::new("true").spawn());
    begins(NO_RUNTIME, || once(io::stdin().read(&mut [0; 1])));

    begins(NO_IO, || one_thread().block_on(net::TcpListener::bind("127.0.0.1:0")));
    begins(NO_IO, || one_thread().block_on(async { signal(SignalKind::hangup()) }));
    begins(NO_IO, || one_thread().block_on(async { process::Command::new("true").spawn() }));
    begins(NO_TIME, || one_thread().block_on(async { time::sleep(Duration::from_secs(1)).await }));

    let runtime = one_thread_with_drivers();
    let handle = runtime.handle().clone();
    drop(runtime);
    let _entered = handle.enter();
    begins(SHUT_DOWN, || once(time::sleep(Duration::from_secs(9))));
}

#[test]
fn a_context_left_out_of_order_panics_with_tokios_message() {
    let _watch = watchdog::start();
    let (first, second) = (one_thread_with_drivers(), one_thread_with_drivers());
    let text = "`EnterGuard` values dropped out of order. Guards returned by \
        `tokio::runtime::Handle::enter()` must be dropped in the reverse order as they were \
        acquired.";
    begins(text, || {
        let outer = first.enter();
        let _inner = second.enter();
        drop(outer);
    });
}

#[test]
fn local_tasks_in_the_wrong_place_panic_with_tokios_message() {
    let _watch = watchdog::start();
    begins(NOT_LOCAL, || task::spawn_local(async {}));
    begins(NOT_LOCAL, || JoinSet::new().spawn_local(async {}));
    begins(NOT_LOCAL, || workers(1).block_on(async { task::spawn_local(async {}) }));
    begins("multi_thread is not supported for LocalRuntime", || {
        Builder::new_multi_thread().build_local(Default::default())
    });
    let local = LocalRuntime::new().unwrap();
    let handle = local.handle().clone();
    let elsewhere = std::thread::spawn(move || {
        let _entered = handle.enter();
        let text = "Local tasks can only be spawned on a LocalRuntime from the thread the runtime \
            was created on";
        begins(text, || task::spawn_local(async {}));
    });
    elsewhere.join().unwrap();
}

#[test]
fn handles_and_ids_panic_with_tokios_message() {
    let _watch = watchdog::start();
    begins("JoinHandle polled after completion", || {
        one_thread_with_drivers().block_on(async {
            let mut handle = blitz_io::spawn(async {});
            (&mut handle).await.unwrap();
            let _ = poll_once(&mut handle);
        });
    });
    begins("`JoinError` reason is not a panic.", || {
        one_thread_with_drivers().block_on(async {
            let handle = blitz_io::spawn(pending::<()>());
            handle.abort();
            handle.await.unwrap_err().into_panic();
        });
    });
    begins("Can't get a task id when not inside a task", task::id);
    let runtime = workers(1);
    begins("index out of bounds: the len is 1 but the index is 7", || {
        runtime.metrics().worker_park_count(7)
    });
}

#[test]
fn refused_counts_panic_with_tokios_message() {
    let _watch = watchdog::start();
    let max = Semaphore::MAX_PERMITS;
    let many = format!("a semaphore may not have more than MAX_PERMITS permits ({max})");
    begins(&many, || Semaphore::new(max + 1));
    begins(&many, || mpsc::channel::<u8>(usize::MAX));
    let added = format!("number of added permits ({max}) would overflow MAX_PERMITS ({max})");
    begins(&added, || Semaphore::new(1).add_permits(max));
    let adding = format!("cannot add more than MAX_PERMITS permits ({max})");
    begins(&adding, || Semaphore::new(1).add_permits(max + 1));
    begins("merging permits from different semaphore instances", || {
        let (one, other) = (Semaphore::new(1), Semaphore::new(1));
        one.try_acquire().unwrap().merge(other.try_acquire().unwrap());
    });
    begins("mpsc bounded channel requires buffer > 0", || mpsc::channel::<u8>(0));
    begins("broadcast channel capacity cannot be zero", || broadcast::channel::<u8>(0));
    begins("broadcast channel capacity exceeded `usize::MAX / 2`", || {
        broadcast::channel::<u8>(usize::MAX)
    });
    begins("called after complete", || {
        let (sender, mut receiver) = oneshot::channel();
        sender.send(1).unwrap();
        assert!(poll_once(&mut receiver).is_ready());
        poll_once(&mut receiver)
    });
    begins("a RwLock may not be created with 0 readers", || RwLock::with_max_readers(0, 0));
    begins("a RwLock may not be created with more than 536870911 readers", || {
        RwLock::with_max_readers(0, u32::MAX)
    });

    begins("Worker threads cannot be set to 0", || {
        Builder::new_multi_thread().worker_threads(0);
    });
    begins("Max blocking threads cannot be set to 0", || {
        Builder::new_multi_thread().max_blocking_threads(0);
    });
    begins("runtime name shouldn't be empty", || {
        Builder::new_multi_thread().name(" ");
    });
    begins("global_queue_interval must be greater than 0", || {
        Builder::new_multi_thread().global_queue_interval(0);
    });
    begins("event_interval must be greater than 0", || {
        Builder::new_multi_thread().event_interval(0);
    });
    begins("max_io_events_per_tick must be non-zero", || {
        Builder::new_multi_thread().max_io_events_per_tick(0);
    });
    begins("max_io_events_per_busy_tick must be non-zero", || {
        Builder::new_multi_thread().max_io_events_per_busy_tick(0);
    });
}

#[test]
fn clocks_that_cannot_be_paused_panic_with_tokios_message() {
    let _watch = watchdog::start();
    let zero = "`period` must be non-zero.";
    begins(zero, || inside(|| time::interval(Duration::ZERO)));
    begins(zero, || inside(|| time::interval_at(time::Instant::now(), Duration::ZERO)));
    begins(PAUSE, || {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async { time::pause() });
    });
    begins(PAUSE, || Builder::new_multi_thread().enable_all().start_paused(true).build());
    begins("time is already frozen", || {
        inside(|| {
            time::pause();
            time::pause();
        })
    });
    begins("time is not frozen", || inside(time::resume));
    begins("time is not frozen", || inside(|| once(time::advance(Duration::ZERO))));
}

#[test]
fn buffers_that_do_not_fit_panic_with_tokios_message() {
    let _watch = watchdog::start();
    let larger = "filled must not become larger than initialized";
    begins(larger, || ReadBuf::new(&mut [0; 2]).advance(3));
    begins(larger, || ReadBuf::new(&mut [0; 2]).set_filled(3));
    begins("buf.len() must fit in remaining(); buf.len() = 3, remaining() = 2", || {
        ReadBuf::new(&mut [0; 2]).put_slice(&[1; 3]);
    });
    begins("n overflows remaining", || {
        ReadBuf::new(&mut [0; 2]).initialize_unfilled_to(3);
    });
    begins("filled overflow", || {
        let mut bytes = [0; 2];
        let mut buf = ReadBuf::new(&mut bytes);
        buf.advance(1);
        buf.advance(usize::MAX);
    });
    begins("capacity must be greater than zero", || io::BufReader::with_capacity(0, io::empty()));
    begins("`max_buf_size` must be greater than 0", || io::duplex(0));
    begins("`max_buf_size` must be greater than 0", || {
        let file = std::fs::File::open("/dev/null").unwrap();
        blitz_io::fs::File::from_std(file).set_max_buf_size(0);
    });
    let (mut a, mut b) = (io::duplex(1).0, io::duplex(1).0);
    begins("`a_to_b_buf_size` must be greater than 0", || {
        once(io::copy_bidirectional_with_sizes(&mut a, &mut b, 0, 1))
    });
    begins("`b_to_a_buf_size` must be greater than 0", || {
        once(io::copy_bidirectional_with_sizes(&mut a, &mut b, 1, 0))
    });
    begins("Unrelated `split::Write` passed to `split::Read::unsplit`.", || {
        io::split(a).0.unsplit(io::split(b).1)
    });
    begins("Polled after completion.", || {
        let mut reader = io::BufReader::new(io::empty());
        let mut fill = pin!(reader.fill_buf());
        assert!(poll_once(&mut fill).is_ready());
        let _ = once(fill);
    });
}

#[test]
fn macros_and_task_locals_panic_with_tokios_message() {
    let _watch = watchdog::start();
    blitz_io::task_local! {
        static KEY: u32;
    }
    begins("cannot access a task-local storage value without setting it first", || KEY.get());
    let borrowed = "cannot enter a task-local scope while the task-local storage is borrowed";
    begins(borrowed, || KEY.sync_scope(1, || KEY.with(|_| KEY.sync_scope(2, || ()))));
    begins("`TaskLocalFuture` polled after completion", || {
        let mut future = pin!(KEY.scope(1, async {}));
        assert!(poll_once(&mut future).is_ready());
        let _ = once(future);
    });
    begins("all branches are disabled and there is no else branch", || {
        inside(|| {
            once(async {
                blitz_io::select! { () = pending(), if false => {} }
            })
        })
    });
}
