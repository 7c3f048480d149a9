//! Tests misuse of a pool: panics caught on the wrong thread, failed builds, a standard error that
//! is not read, jobs that wait for the code that spawned them.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
};

use blitz_io::parallel::{ThreadPoolBuilder, broadcast, current_thread_index, join, spawn};

use crate::support::{pools::pool, watchdog};

/// The builder runs its thread function in place, on a worker of another pool.
#[test]
fn a_worker_cannot_join_another_pool_and_stays_in_its_own() {
    let _watch = watchdog::start();
    let outer = pool(2);
    let caught = outer.install(|| {
        let build = || {
            let builder = ThreadPoolBuilder::new().num_threads(1);
            builder
                .spawn_handler(|thread| {
                    thread.run();
                    Ok(())
                })
                .build()
                .is_ok()
        };
        let payload = catch_unwind(AssertUnwindSafe(build)).unwrap_err();
        // The thread belongs to the outer pool, which exists; the other pool is gone.
        assert!(current_thread_index().is_some_and(|index| index < 2));
        assert_eq!(blitz_io::parallel::current_num_threads(), 2);
        assert_eq!(join(|| 1, || 2), (1, 2));
        payload
    });
    let text = caught.downcast_ref::<&str>().copied().unwrap_or_default();
    assert!(text.contains("this thread is a worker already"), "{text}");
    assert_eq!(outer.join(|| 3, || 4), (3, 4));
}

#[test]
fn a_thread_whose_pool_could_not_be_made_is_as_free_as_before() {
    let _watch = watchdog::start();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let started = AtomicUsize::new(0);
            let builder = || ThreadPoolBuilder::new().num_threads(3).use_current_thread();
            let failed = builder()
                .spawn_handler(|_| match started.fetch_add(1, SeqCst) {
                    0 => Ok(()),
                    _ => Err(io::Error::other("no more")),
                })
                .build();
            assert_eq!(failed.unwrap_err().to_string(), "no more");
            assert_eq!(current_thread_index(), None);
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                builder().thread_name(|_| panic!("no name")).build().is_ok()
            }));
            assert!(panicked.is_err());
            assert_eq!(current_thread_index(), None);
            // The thread is no worker of the failed pool, so it may be one of the next.
            let pool = builder().build().unwrap();
            assert_eq!(current_thread_index(), Some(0));
            assert_eq!(pool.join(|| 1, || 2), (1, 2));
        });
    });
}

/// A thread that was added to a pool belongs to it for ever, and there is no other thread.
#[test]
fn jobs_spawned_on_a_thread_whose_pool_has_ended_run_there() {
    let _watch = watchdog::start();
    let order = std::sync::Arc::new(Mutex::new(Vec::new()));
    let note = |what: &'static str| {
        let order = order.clone();
        move || order.lock().unwrap().push((what, std::thread::current().id()))
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let builder = ThreadPoolBuilder::new().num_threads(1).use_current_thread();
            drop(builder.build().unwrap());
            spawn(note("spawned"));
            blitz_io::parallel::spawn_fifo(note("in a line"));
            let everywhere = note("broadcast");
            blitz_io::parallel::spawn_broadcast(move |context| {
                assert_eq!((context.index(), context.num_threads()), (0, 1));
                everywhere();
            });
            // Run one after the other: to run each inside of the one before takes a deep stack.
            fn chain(left: u32, end: mpsc::Sender<()>) {
                match left {
                    0 => end.send(()).unwrap(),
                    _ => spawn(move || chain(left - 1, end)),
                }
            }
            let (sender, end) = mpsc::channel();
            chain(100_000, sender);
            assert!(end.try_recv().is_ok());
            let here = std::thread::current().id();
            let expected = ["spawned", "in a line", "broadcast"].map(|what| (what, here));
            assert_eq!(*order.lock().unwrap(), expected);
        });
    });
}

#[test]
fn jobs_spawned_by_an_exit_handler_run() {
    let _watch = watchdog::start();
    let (sender, receiver) = mpsc::channel();
    let builder = ThreadPoolBuilder::new().num_threads(2).exit_handler(move |index| {
        let sender = sender.clone();
        spawn(move || sender.send(index).unwrap());
    });
    drop(builder.build().unwrap());
    let mut indices: Vec<_> = receiver.iter().collect();
    indices.sort_unstable();
    assert_eq!(indices, [0, 1]);
}

/// The function that names the threads of the global pool uses that pool, so the build panics and
/// says why. The next attempt works like a first one.
#[test]
fn a_thread_name_function_that_uses_the_global_pool_panics() {
    use crate::support::child;

    let _watch = watchdog::start();
    const NAME: &str = "parallel::hostile::a_thread_name_function_that_uses_the_global_pool_panics";
    if child::role().is_none() {
        child::succeed(&mut child::command(NAME, "names"));
        return;
    }
    let name = |_| blitz_io::parallel::current_num_threads().to_string();
    let build = || ThreadPoolBuilder::new().thread_name(name).build_global();
    let payload = catch_unwind(AssertUnwindSafe(build)).unwrap_err();
    let text = payload.downcast_ref::<&str>().copied().unwrap_or_default();
    assert!(text.contains("making the global pool"), "{text}");
    ThreadPoolBuilder::new().num_threads(3).build_global().unwrap();
    assert_eq!(blitz_io::parallel::current_num_threads(), 3);
}

/// Any thread may drop the last reference to the pool, between two joins of others.
#[test]
fn threads_that_join_while_others_drop_the_pool_are_served() {
    const CALLERS: usize = 4;
    let _watch = watchdog::start();
    for round in 0..200 {
        let pool = std::sync::Arc::new(pool(2));
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let pool = pool.clone();
                std::thread::spawn(move || {
                    for number in 0..(round + caller) % 7 {
                        assert_eq!(pool.join(|| number, || caller), (number, caller));
                    }
                    pool.spawn(move || assert_eq!(join(|| 1, || 2), (1, 2)));
                })
            })
            .collect();
        drop(pool);
        callers.into_iter().for_each(|caller| caller.join().unwrap());
    }
}

/// A value whose destructor panics this many times, each with a payload that panics again.
struct Bomb(u8);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 > 0 {
            resume_unwind(Box::new(Bomb(self.0 - 1)));
        }
    }
}

fn explode<T>() -> T {
    resume_unwind(Box::new(Bomb(9)))
}

/// The first panic is propagated, whatever the destructors of other payloads and of results do.
#[test]
fn payloads_and_results_whose_destructors_panic_end_nothing() {
    let _watch = watchdog::start();
    let pool = pool(3);
    let leaves = |what: &str, panics: &dyn Fn()| {
        let payload = catch_unwind(AssertUnwindSafe(panics)).expect_err(what);
        let first = payload.downcast::<Bomb>().unwrap_or_else(|_| panic!("{what}: another panic"));
        assert_eq!(first.0, 9, "{what}");
        std::mem::forget(first);
    };
    leaves("join", &|| _ = pool.join(explode::<()>, explode::<()>));
    leaves("join", &|| _ = pool.join(explode::<()>, || Bomb(2)));
    leaves("scope", &|| pool.scope(|scope| (0..9).for_each(|_| scope.spawn(|_| explode::<()>()))));
    leaves("scope", &|| {
        let _ = pool.scope(|scope| {
            scope.spawn(|_| explode::<()>());
            Bomb(2)
        });
    });
    leaves("broadcast", &|| _ = pool.broadcast(|_| explode::<()>()));
    leaves("broadcast", &|| {
        let _ = pool.broadcast(|context| match context.index() {
            1 => explode(),
            _ => Bomb(2),
        });
    });
    assert_eq!(pool.join(|| 1, || 2), (1, 2));
}

/// If a worker waited for the others on the caller's behalf, it would find the spawned job
/// meanwhile and never return.
///
/// The second worker is inside the broadcast when the job is spawned, because otherwise it might
/// steal that job and run it first. It stays there until the job has begun.
#[test]
fn a_broadcast_from_outside_returns_before_the_jobs_that_it_spawned() {
    let _watch = watchdog::start();
    for _ in 0..100 {
        let pool = pool(2);
        let (second, both) = mpsc::channel::<()>();
        let (begun, begin) = mpsc::channel::<()>();
        let (sender, receiver) = mpsc::channel::<()>();
        let (ended, end) = mpsc::channel();
        let first = Mutex::new(Some((both, begun, receiver)));
        let other = Mutex::new(begin);
        let indices = pool.broadcast(|context| {
            if context.index() == 0 {
                let (both, begun, receiver) = first.lock().unwrap().take().unwrap();
                let ended = ended.clone();
                both.recv().unwrap();
                spawn(move || {
                    begun.send(()).unwrap();
                    receiver.recv().unwrap();
                    ended.send(()).unwrap();
                });
            } else {
                second.send(()).unwrap();
                other.lock().unwrap().recv().unwrap();
            }
            context.index()
        });
        assert_eq!(indices, [0, 1]);
        sender.send(()).unwrap();
        end.recv().unwrap();
    }
}

#[test]
fn a_broadcast_to_another_pool_runs_its_own_pools_jobs_meanwhile() {
    let _watch = watchdog::start();
    let (one, two) = (pool(1), pool(2));
    let counts = one.install(|| {
        // The only thread of the first pool must run this job while it waits.
        let (sender, receiver) = mpsc::channel();
        spawn(move || (0..2).for_each(|_| sender.send(()).unwrap()));
        let receiver = Mutex::new(receiver);
        two.broadcast(|_| receiver.lock().unwrap().recv().is_ok())
    });
    assert_eq!(counts, [true, true]);
    assert_eq!(two.install(|| broadcast(|context| context.index())), [0, 1]);
}

/// A detached job panics on the stack of a join, and standard error is a pipe without a reader.
#[cfg(unix)]
#[test]
fn a_detached_panic_aborts_though_stderr_has_no_reader() {
    use std::os::unix::process::ExitStatusExt;

    use std::process::Stdio;

    use crate::support::child;

    let _watch = watchdog::start();
    const NAME: &str = "parallel::hostile::a_detached_panic_aborts_though_stderr_has_no_reader";
    if child::role().is_some() {
        // With one thread, the join returns to its second half, and runs the job that is above it.
        let unwound =
            catch_unwind(|| pool(1).install(|| join(|| spawn(|| panic!("on purpose")), || ())));
        panic!("the process goes on, unwound: {}", unwound.is_err());
    }
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let mut process =
        child::start(child::command(NAME, "panics").stdout(Stdio::null()).stderr(writer)).unwrap();
    let status = process.wait().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGABRT), "{status}");
}

/// A sandbox is entered after the pool has begun to rely on `membarrier`.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_barrier_that_is_refused_later_aborts_and_says_what_to_do() {
    use std::os::unix::process::ExitStatusExt;

    use crate::support::child;

    let _watch = watchdog::start();
    const NAME: &str =
        "parallel::hostile::a_barrier_that_is_refused_later_aborts_and_says_what_to_do";
    if let Some(role) = child::role() {
        assert_eq!(pool(2).join(|| 1, || 2), (1, 2));
        crate::support::syscall_filter::forbid(libc::SYS_membarrier, 0);
        // Threads that are started here inherit the filter, and use the barrier before they sleep.
        let pool = pool(2);
        assert_eq!(pool.join(|| 1, || 2), (1, 2));
        if role == "has fences" {
            return;
        }
        crate::support::gate::Gate::new().block();
    }
    let output = child::output(&mut child::command(NAME, "relies on it")).unwrap();
    let text = child::text(&output);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{text}");
    assert!(text.contains("set BLITZ_BARRIER=fences"), "{text}");
    assert!(!text.contains("panicked"), "nothing unwinds: {text}");
    child::succeed(child::command(NAME, "has fences").env("BLITZ_BARRIER", "fences"));
}

#[cfg(target_os = "linux")]
#[test]
fn an_unknown_kind_of_barrier_is_reported() {
    use crate::support::child;

    let _watch = watchdog::start();
    const NAME: &str = "parallel::hostile::an_unknown_kind_of_barrier_is_reported";
    if child::role().is_some() {
        assert_eq!(pool(2).join(|| 1, || 2), (1, 2));
        return;
    }
    let text = |wish| child::succeed(child::command(NAME, "joins").env("BLITZ_BARRIER", wish));
    assert!(text("fence").contains("BLITZ_BARRIER is \"fence\" and is ignored: write `fences`"));
    for known in ["fences", "membarrier", ""] {
        assert!(!text(known).contains("BLITZ_BARRIER"));
    }
}
