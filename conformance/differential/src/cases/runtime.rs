//! Builders, handles, and the end of a runtime.

use crate::probe::*;
use futures_util::FutureExt;
use std::future::{pending, poll_fn};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc as smpsc;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle, LocalOptions, LocalRuntime, Runtime, RuntimeFlavor};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{JoinError, LocalSet, block_in_place, spawn_blocking, spawn_local, yield_now};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn kind(e: &JoinError) -> &'static str {
    match (e.is_cancelled(), e.is_panic()) {
        (true, false) => "cancelled",
        (false, true) => "panic",
        _ => "?",
    }
}

fn each() -> Vec<(&'static str, Runtime)> {
    vec![("ct", current_thread()), ("mt1", multi_thread(1)), ("mt4", multi_thread(4))]
}

// Builder.

fn builder_odd_values_panic() {
    println!(
        "{}",
        caught(|| {
            Builder::new_multi_thread().worker_threads(0);
        })
    );
    println!(
        "{}",
        caught(|| {
            Builder::new_multi_thread().max_blocking_threads(0);
        })
    );
    println!(
        "{}",
        caught(|| {
            Builder::new_current_thread().event_interval(0);
        })
    );
    println!(
        "{}",
        caught(|| {
            Builder::new_current_thread().global_queue_interval(0);
        })
    );
    println!(
        "{}",
        caught(|| {
            Builder::new_current_thread().max_io_events_per_tick(0);
        })
    );
    println!(
        "{}",
        caught(|| {
            Builder::new_current_thread().max_io_events_per_busy_tick(0);
        })
    );
    println!(
        "{}",
        caught(|| {
            Builder::new_current_thread().name(" ");
        })
    );
    println!(
        "{}",
        caught(|| Builder::new_multi_thread().build_local(LocalOptions::default()).map(drop))
    );
}

fn builder_extreme_values_work() {
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(1)
        .event_interval(1)
        .global_queue_interval(1)
        .max_io_events_per_tick(1)
        .thread_keep_alive(Duration::ZERO)
        .enable_all()
        .build()
        .unwrap();
    println!(
        "{}",
        rt.block_on(async {
            tokio::spawn(async { spawn_blocking(|| 3).await.unwrap() }).await.unwrap()
        })
    );
    let rt = Builder::new_current_thread()
        .event_interval(u32::MAX)
        .global_queue_interval(u32::MAX)
        .thread_keep_alive(Duration::MAX)
        .enable_all()
        .build()
        .unwrap();
    println!(
        "{}",
        rt.block_on(async {
            tokio::time::sleep(ms(1)).await;
            tokio::spawn(async { spawn_blocking(|| 4).await.unwrap() }).await.unwrap()
        })
    );
}

fn worker_threads_on_a_current_thread_builder_is_ignored() {
    let rt = Builder::new_current_thread().worker_threads(7).build().unwrap();
    println!("{} {:?}", rt.metrics().num_workers(), rt.handle().runtime_flavor());
}

fn flavours_and_ids() {
    let a = current_thread();
    let b = multi_thread(2);
    println!("{:?} {:?}", a.handle().runtime_flavor(), b.handle().runtime_flavor());
    println!("{}", a.handle().runtime_flavor() == RuntimeFlavor::CurrentThread);
    println!(
        "{} {}",
        a.handle().id() == b.handle().id(),
        a.handle().id() == a.handle().clone().id()
    );
    println!("{}", b.block_on(async { Handle::current().id() }) == b.handle().id());
    println!("{:?}", Runtime::new().unwrap().handle().runtime_flavor());
}

fn runtime_names() {
    let rt = Builder::new_current_thread().name("mine").build().unwrap();
    println!("{:?} {:?}", rt.handle().name(), current_thread().handle().name());
}

fn thread_names() {
    let name = || std::thread::current().name().map(String::from);
    let rt = multi_thread(1);
    println!("{:?}", rt.block_on(async { tokio::spawn(async move { name() }).await.unwrap() }));
    println!("{:?}", rt.block_on(async { spawn_blocking(name).await.unwrap() }));
    let rt = Builder::new_multi_thread().worker_threads(1).thread_name("mine").build().unwrap();
    println!("{:?}", rt.block_on(async { tokio::spawn(async move { name() }).await.unwrap() }));
    println!("{:?}", rt.block_on(async { spawn_blocking(name).await.unwrap() }));
    let n = Arc::new(AtomicUsize::new(0));
    let m = n.clone();
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name_fn(move || format!("t{}", m.fetch_add(1, SeqCst)))
        .build()
        .unwrap();
    println!("{:?}", rt.block_on(async { tokio::spawn(async move { name() }).await.unwrap() }));
    println!("{:?}", rt.block_on(async { spawn_blocking(name).await.unwrap() }));
    drop(rt);
    println!("{}", n.load(SeqCst));
}

fn hooks_run_once_for_each_thread() {
    for (n, blocking) in [(1, 0), (3, 0), (2, 1)] {
        let start = Arc::new(AtomicUsize::new(0));
        let stop = Arc::new(AtomicUsize::new(0));
        let (a, b) = (start.clone(), stop.clone());
        let rt = Builder::new_multi_thread()
            .worker_threads(n)
            .on_thread_start(move || {
                a.fetch_add(1, SeqCst);
            })
            .on_thread_stop(move || {
                b.fetch_add(1, SeqCst);
            })
            .build()
            .unwrap();
        for _ in 0..blocking {
            rt.block_on(async { spawn_blocking(|| ()).await.unwrap() });
        }
        drop(rt);
        println!("{n}+{blocking}: {} {}", start.load(SeqCst), stop.load(SeqCst));
    }
}

fn hooks_of_a_current_thread_runtime_are_for_blocking_threads() {
    let start = Arc::new(AtomicUsize::new(0));
    let stop = Arc::new(AtomicUsize::new(0));
    let (a, b) = (start.clone(), stop.clone());
    let rt = Builder::new_current_thread()
        .on_thread_start(move || {
            a.fetch_add(1, SeqCst);
        })
        .on_thread_stop(move || {
            b.fetch_add(1, SeqCst);
        })
        .build()
        .unwrap();
    rt.block_on(async { yield_now().await });
    println!("{} {}", start.load(SeqCst), stop.load(SeqCst));
    rt.block_on(async { spawn_blocking(|| ()).await.unwrap() });
    println!("{}", start.load(SeqCst));
    drop(rt);
    println!("{} {}", start.load(SeqCst), stop.load(SeqCst));
}

fn park_and_unpark_hooks_come_in_pairs() {
    let park = Arc::new(AtomicUsize::new(0));
    let unpark = Arc::new(AtomicUsize::new(0));
    let (a, b) = (park.clone(), unpark.clone());
    let rt = Builder::new_current_thread()
        .enable_all()
        .on_thread_park(move || {
            a.fetch_add(1, SeqCst);
        })
        .on_thread_unpark(move || {
            b.fetch_add(1, SeqCst);
        })
        .build()
        .unwrap();
    rt.block_on(async {});
    println!("{} {}", park.load(SeqCst), unpark.load(SeqCst));
    rt.block_on(async { tokio::time::sleep(ms(5)).await });
    println!("{} {}", park.load(SeqCst) > 0, park.load(SeqCst) == unpark.load(SeqCst));
}

fn max_blocking_threads_is_a_limit() {
    let rt = Builder::new_multi_thread().worker_threads(2).max_blocking_threads(3).build().unwrap();
    let now = Arc::new(AtomicUsize::new(0));
    let max = Arc::new(AtomicUsize::new(0));
    rt.block_on(async {
        let hs: Vec<_> = (0..24)
            .map(|_| {
                let (now, max) = (now.clone(), max.clone());
                spawn_blocking(move || {
                    let k = now.fetch_add(1, SeqCst) + 1;
                    max.fetch_max(k, SeqCst);
                    std::thread::sleep(ms(5));
                    now.fetch_sub(1, SeqCst);
                })
            })
            .collect();
        for h in hs {
            h.await.unwrap();
        }
    });
    println!("{}", max.load(SeqCst) <= 3);
}

fn drivers_not_enabled_panic() {
    let rt = Builder::new_current_thread().build().unwrap();
    println!(
        "{}",
        caught(
            || rt.block_on(async { tokio::net::TcpListener::bind("127.0.0.1:0").await.map(drop) })
        )
    );
    println!(
        "{}",
        caught(|| rt.block_on(async { tokio::net::UdpSocket::bind("127.0.0.1:0").await.map(drop) }))
    );
    println!("{}", caught(|| rt.block_on(async { drop(tokio::net::UnixStream::pair()) })));
    println!(
        "{}",
        caught(|| rt.block_on(async {
            drop(tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()))
        }))
    );
    println!("{}", caught(|| drop(tokio::net::UnixStream::pair())));
    let rt = Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
    println!(
        "{}",
        caught(
            || rt.block_on(async { tokio::net::TcpListener::bind("127.0.0.1:0").await.map(drop) })
        )
    );
}

fn tokio_main_flavours() {
    #[tokio::main(flavor = "current_thread")]
    async fn a() -> RuntimeFlavor {
        Handle::current().runtime_flavor()
    }
    #[tokio::main(flavor = "multi_thread", worker_threads = 3)]
    async fn b() -> (RuntimeFlavor, usize) {
        (Handle::current().runtime_flavor(), Handle::current().metrics().num_workers())
    }
    #[tokio::main]
    async fn c() -> Result<u8, String> {
        Err("e".into())
    }
    #[tokio::main(flavor = "current_thread", start_paused = true)]
    async fn d() -> Duration {
        let t = tokio::time::Instant::now();
        tokio::time::sleep(Duration::from_secs(100)).await;
        t.elapsed()
    }
    println!("{:?} {:?} {:?} {:?}", a(), b(), c(), d());
}

// Handle, enter.

fn handle_current_outside_panics() {
    println!("{}", caught(|| drop(Handle::current())));
    let e = Handle::try_current().unwrap_err();
    println!("{} | {} {}", quoted(&e), e.is_missing_context(), e.is_thread_local_destroyed());
    println!("{e:?}");
    println!("{}", std::thread::spawn(|| Handle::try_current().is_err()).join().unwrap());
}

fn enter_gives_a_context_to_plain_code() {
    let rt = multi_thread(1);
    let h = {
        let _e = rt.enter();
        println!("{}", Handle::try_current().is_ok());
        tokio::spawn(async { 5 })
    };
    println!("{} {}", Handle::try_current().is_err(), rt.block_on(h).unwrap());
}

fn enter_nests_and_restores() {
    let a = current_thread();
    let b = current_thread();
    let same = |rt: &Runtime| Handle::current().id() == rt.handle().id();
    let ga = a.enter();
    {
        let _gb = b.enter();
        println!("{} {}", same(&a), same(&b));
        let _ga2 = a.handle().enter();
        println!("{} {}", same(&a), same(&b));
    }
    println!("{} {}", same(&a), same(&b));
    println!("{}", b.block_on(async { Handle::current().id() == b.handle().id() }));
    println!("{}", same(&a));
    drop(ga);
    println!("{}", Handle::try_current().is_err());
}

fn enter_guards_dropped_out_of_order_panic() {
    let a = current_thread();
    let b = current_thread();
    let ga = a.enter();
    let gb = b.enter();
    println!("{}", caught(move || drop(ga)));
    drop(gb);
}

fn block_on_inside_enter_is_allowed() {
    let a = current_thread();
    let b = multi_thread(1);
    let _g = a.enter();
    println!("{}", b.block_on(async { 1 }));
    println!("{}", a.block_on(async { tokio::spawn(async { 2 }).await.unwrap() }));
}

fn enter_inside_block_on_changes_where_spawn_goes() {
    let a = current_thread();
    let b = multi_thread(1);
    a.block_on(async {
        let h = {
            let _g = b.enter();
            tokio::spawn(async { std::thread::current().name().map(String::from) })
        };
        println!("{:?}", h.await.unwrap());
        println!("{}", Handle::current().id() == a.handle().id());
    });
}

fn nested_block_on_panics() {
    let rt = current_thread();
    let other = current_thread();
    println!("{}", caught(|| rt.block_on(async { other.block_on(async { 1 }) })));
    println!("{}", caught(|| rt.block_on(async { rt.block_on(async { 1 }) })));
    println!("{}", caught(|| rt.block_on(async { Handle::current().block_on(async { 1 }) })));
    println!(
        "{}",
        caught(|| multi_thread(1).block_on(async { Handle::current().block_on(async { 1 }) }))
    );
    println!(
        "{}",
        caught(|| multi_thread(1).block_on(async {
            tokio::spawn(async { Handle::current().block_on(async { 1 }) })
                .await
                .map_err(|e| payload(e.into_panic()))
        }))
    );
    println!(
        "{}",
        caught(|| rt.block_on(async {
            spawn_blocking(|| Handle::current().block_on(async { 1 })).await.unwrap()
        }))
    );
    println!("{}", caught(|| rt.block_on(async { 2 })));
}

fn block_on_with_a_panic_leaves_the_runtime_usable() {
    for (n, rt) in each() {
        println!(
            "{n} {}",
            caught(|| rt.block_on(async {
                yield_now().await;
                panic!("inside")
            }))
        );
        println!("{n} {}", rt.block_on(async { tokio::spawn(async { 1 }).await.unwrap() }));
    }
}

fn block_on_drops_its_future_before_it_returns() {
    for (n, rt) in each() {
        let log = Log::new();
        let g = log.on_drop("captured");
        rt.block_on(async move {
            let _g = g;
            yield_now().await;
        });
        println!("{n} {:?}", log.take());
    }
}

fn two_threads_may_block_on_one_current_thread_runtime() {
    let rt = Arc::new(current_thread());
    let (tx, rx) = oneshot::channel();
    let (tx2, rx2) = oneshot::channel();
    let r2 = rt.clone();
    let t = std::thread::spawn(move || {
        r2.block_on(async move {
            tx.send(1).unwrap();
            rx2.await.unwrap()
        })
    });
    let a: u8 = rt.block_on(async {
        let v = rx.await.unwrap();
        tx2.send(v + 1).unwrap();
        v
    });
    println!("{a} {}", t.join().unwrap());
}

fn handle_block_on_of_a_current_thread_runtime_does_not_drive_it() {
    let rt = current_thread();
    let h = rt.handle().clone();
    println!("{}", h.block_on(async { 1 }));
    let ran = Arc::new(AtomicBool::new(false));
    let r = ran.clone();
    let _j = rt.spawn(async move { r.store(true, SeqCst) });
    let (tx, rx) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        std::thread::sleep(ms(50));
        tx.send(()).unwrap();
    });
    h.block_on(rx).unwrap();
    println!("{}", ran.load(SeqCst));
    rt.block_on(yield_now());
    println!("{}", ran.load(SeqCst));
}

fn the_future_of_block_on_runs_on_the_calling_thread() {
    for (n, rt) in each() {
        let me = std::thread::current().id();
        println!(
            "{n} {}",
            rt.block_on(async move {
                let mut ok = true;
                for _ in 0..20 {
                    tokio::spawn(async {}).await.unwrap();
                    ok &= std::thread::current().id() == me;
                }
                ok
            })
        );
    }
}

fn current_thread_tasks_only_move_inside_block_on() {
    let rt = current_thread();
    let n = Arc::new(AtomicUsize::new(0));
    let m = n.clone();
    rt.spawn(async move {
        loop {
            m.fetch_add(1, SeqCst);
            yield_now().await;
        }
    });
    std::thread::sleep(ms(10));
    println!("{}", n.load(SeqCst));
    rt.block_on(async {
        for _ in 0..3 {
            yield_now().await
        }
    });
    let k = n.load(SeqCst);
    println!("{}", k > 0);
    std::thread::sleep(ms(10));
    println!("{}", n.load(SeqCst) == k);
}

fn worker_index_of_each_place() {
    let idx = tokio::runtime::worker_index;
    println!("{:?}", idx());
    let rt = multi_thread(1);
    println!("{:?}", rt.block_on(async move { idx() }));
    println!("{:?}", rt.block_on(async move { tokio::spawn(async move { idx() }).await.unwrap() }));
    println!("{:?}", rt.block_on(async move { spawn_blocking(idx).await.unwrap() }));
    let rt = current_thread();
    println!("{:?}", rt.block_on(async move { idx() }));
    println!("{:?}", rt.block_on(async move { tokio::spawn(async move { idx() }).await.unwrap() }));
    println!("{:?}", rt.block_on(async move { spawn_blocking(idx).await.unwrap() }));
    let rt = multi_thread(3);
    println!(
        "{}",
        rt.block_on(async move { tokio::spawn(async move { idx() }).await.unwrap() }).unwrap() < 3
    );
}

// Metrics.

fn metrics_that_are_exact() {
    let rt = multi_thread(3);
    println!("{}", rt.metrics().num_workers());
    let rt = current_thread();
    let m = rt.metrics();
    println!("{} {} {}", m.num_workers(), m.num_alive_tasks(), m.global_queue_depth());
    let h = rt.spawn(pending::<()>());
    let _h2 = rt.spawn(async {});
    println!("{} {}", m.num_alive_tasks(), m.global_queue_depth());
    rt.block_on(async {
        for _ in 0..3 {
            yield_now().await
        }
    });
    println!("{} {}", m.num_alive_tasks(), m.global_queue_depth());
    h.abort();
    println!("{}", m.num_alive_tasks());
    rt.block_on(async { println!("{}", h.await.unwrap_err().is_cancelled()) });
    println!("{}", m.num_alive_tasks());
    rt.block_on(async {
        let hs: Vec<_> = (0..10).map(|_| tokio::spawn(yield_now())).collect();
        println!("{}", m.num_alive_tasks());
        for h in hs {
            h.await.unwrap();
        }
        println!("{}", m.num_alive_tasks());
        spawn_blocking(|| ()).await.unwrap();
        println!("{}", m.num_alive_tasks());
    });
}

fn alive_tasks_of_many_workers_come_back_to_zero() {
    let rt = multi_thread(4);
    rt.block_on(async {
        let hs: Vec<_> = (0..100).map(|_| tokio::spawn(yield_now())).collect();
        for h in hs {
            h.await.unwrap();
        }
    });
    let m = rt.metrics();
    let t = Instant::now();
    while m.num_alive_tasks() != 0 && t.elapsed() < Duration::from_secs(2) {
        std::thread::yield_now();
    }
    println!("{}", m.num_alive_tasks());
}

// The end: tasks.

fn drop_drops_every_pending_task() {
    for (n, rt) in each() {
        let log = Log::new();
        let hs: Vec<_> = (0..5)
            .map(|i| {
                let g = log.on_drop(i.to_string());
                rt.spawn(async move {
                    let _g = g;
                    pending::<()>().await
                })
            })
            .collect();
        drop(rt);
        let mut v = log.take();
        v.sort();
        println!("{n} {v:?} {:?}", hs.iter().all(|h| h.is_finished()));
        let other = current_thread();
        for h in hs {
            assert_eq!(kind(&other.block_on(h).unwrap_err()), "cancelled");
        }
    }
}

fn drop_drops_tasks_that_never_ran() {
    let rt = current_thread();
    let log = Log::new();
    let g = log.on_drop("never polled");
    let h = rt.spawn(async move {
        let _g = g;
        unreachable!()
    });
    drop(rt);
    println!("{:?} {:?}", log.take(), h.now_or_never().map(|r| kind(&r.unwrap_err())));
}

fn handles_of_finished_tasks_keep_their_value_after_the_end() {
    for (n, rt) in each() {
        let h = rt.spawn(async { 7 });
        let b = rt.spawn_blocking(|| 8);
        while !h.is_finished() || !b.is_finished() {
            rt.block_on(yield_now());
        }
        drop(rt);
        println!(
            "{n} {:?} {:?}",
            h.now_or_never().unwrap().unwrap(),
            b.now_or_never().unwrap().unwrap()
        );
    }
}

fn a_spawn_in_a_destructor_at_the_end_is_cancelled_at_once() {
    for (n, rt) in each() {
        let (tx, rx) = smpsc::channel();
        let guard = defer(move || {
            let log = Log::new();
            let g = log.on_drop("inner");
            let h = tokio::spawn(async move {
                let _g = g;
                1
            });
            let d = log.take();
            tx.send((d, h.now_or_never().map(|r| r.map_err(|e| kind(&e))))).unwrap();
        });
        rt.spawn(async move {
            let _g = guard;
            pending::<()>().await
        });
        rt.block_on(async { yield_now().await });
        std::thread::sleep(ms(10));
        drop(rt);
        println!("{n} {:?}", rx.recv());
    }
}

fn a_chain_of_spawns_in_destructors_ends() {
    fn chain(n: Arc<AtomicUsize>, left: usize) -> impl std::future::Future<Output = ()> + Send {
        let g = defer(move || {
            n.fetch_add(1, SeqCst);
            if left > 0 {
                let f: std::pin::Pin<Box<dyn std::future::Future<Output = ()> + Send>> =
                    Box::pin(chain(n, left - 1));
                drop(tokio::spawn(f));
            }
        });
        async move {
            let _g = g;
            pending::<()>().await
        }
    }
    for (name, rt) in each() {
        let n = Arc::new(AtomicUsize::new(0));
        rt.spawn(chain(n.clone(), 9));
        drop(rt);
        println!("{name} {}", n.load(SeqCst));
    }
}

fn destructors_at_the_end_are_in_the_runtimes_context() {
    for (n, rt) in each() {
        let (tx, rx) = smpsc::channel();
        let id = rt.handle().id();
        let guard = defer(move || {
            tx.send((
                Handle::try_current().map(|h| h.id() == id).is_ok(),
                tokio::task::try_id().is_some(),
            ))
            .unwrap()
        });
        rt.spawn(async move {
            let _g = guard;
            pending::<()>().await
        });
        rt.block_on(yield_now());
        std::thread::sleep(ms(10));
        drop(rt);
        println!("{n} {:?}", rx.recv());
    }
}

fn drop_waits_for_slow_destructors() {
    for (n, rt) in each() {
        let done = Arc::new(AtomicBool::new(false));
        let d = done.clone();
        let guard = defer(move || {
            std::thread::sleep(ms(50));
            d.store(true, SeqCst)
        });
        rt.spawn(async move {
            let _g = guard;
            pending::<()>().await
        });
        rt.block_on(yield_now());
        std::thread::sleep(ms(10));
        drop(rt);
        println!("{n} {}", done.load(SeqCst));
    }
}

fn destructors_at_the_end_may_use_channels_and_locks() {
    for (n, rt) in each() {
        let (tx, mut rx) = mpsc::unbounded_channel();
        let (otx, orx) = oneshot::channel();
        let m = Arc::new(tokio::sync::Mutex::new(0));
        let nt = Arc::new(Notify::new());
        let (m2, n2) = (m.clone(), nt.clone());
        let guard = defer(move || {
            tx.send(1).unwrap();
            otx.send(2).unwrap();
            *m2.try_lock().unwrap() += 3;
            n2.notify_one();
        });
        rt.spawn(async move {
            let _g = guard;
            pending::<()>().await
        });
        rt.block_on(yield_now());
        std::thread::sleep(ms(10));
        drop(rt);
        println!("{n} {:?} {:?} {:?}", rx.try_recv(), orx.now_or_never(), m.try_lock().map(|g| *g));
        println!("{n} {:?} {:?}", nt.notified().now_or_never(), rx.try_recv());
    }
}

fn a_destructor_at_the_end_wakes_another_task_of_the_same_runtime() {
    for (n, rt) in each() {
        let log = Arc::new(Mutex::new(Vec::new()));
        let l = log.clone();
        let (tx, rx) = oneshot::channel::<()>();
        let g = defer(move || drop(tx));
        rt.spawn(async move {
            let r = rx.await;
            l.lock().unwrap().push(format!("polled at the end {r:?}"));
        });
        rt.block_on(yield_now());
        rt.spawn(async move {
            let _g = g;
            pending::<()>().await
        });
        drop(rt);
        println!("{n} {:?}", log.lock().unwrap().len() <= 1);
    }
}

fn a_destructor_at_the_end_may_block_in_place_and_block_on() {
    for (n, rt) in [("mt1", multi_thread(1)), ("mt4", multi_thread(4))] {
        let (tx, rx) = smpsc::channel();
        let guard = defer(move || {
            let r = std::panic::catch_unwind(|| {
                block_in_place(|| {
                    Handle::current().block_on(async {
                        let plain = async { 1 }.await;
                        let spawned = tokio::spawn(async { 2 }).await.map_err(|e| kind(&e));
                        (plain, spawned)
                    })
                })
            });
            tx.send(r.map_err(payload)).unwrap();
        });
        rt.spawn(async move {
            let _g = guard;
            pending::<()>().await
        });
        std::thread::sleep(ms(20));
        drop(rt);
        println!("{n} {:?}", rx.recv());
    }
}

fn a_destructor_at_the_end_of_a_current_thread_runtime_may_block_on() {
    quiet();
    let rt = current_thread();
    let (tx, rx) = smpsc::channel();
    let guard = defer(move || {
        let r = std::panic::catch_unwind(|| {
            Handle::current()
                .block_on(async { tokio::spawn(async { 2 }).await.map_err(|e| kind(&e)) })
        });
        tx.send(r.map_err(payload)).unwrap();
    });
    rt.spawn(async move {
        let _g = guard;
        pending::<()>().await
    });
    rt.block_on(yield_now());
    drop(rt);
    println!("{:?}", rx.recv());
}

fn a_panic_in_a_destructor_at_the_end_harms_nothing_else() {
    quiet();
    for (n, rt) in each() {
        let log = Log::new();
        let guard = defer(|| panic!("at the end"));
        let h = rt.spawn(async move {
            let _g = guard;
            pending::<()>().await
        });
        let g = log.on_drop("other");
        rt.spawn(async move {
            let _g = g;
            pending::<()>().await
        });
        rt.block_on(yield_now());
        std::thread::sleep(ms(10));
        println!("{n} {} {:?}", caught(move || drop(rt)), log.take());
        println!("{n} {:?}", h.now_or_never().map(|r| payload(r.unwrap_err().into_panic())));
    }
}

fn a_task_that_awaits_another_at_the_end_is_dropped_not_polled() {
    for (n, rt) in [("ct", current_thread()), ("mt1", multi_thread(1))] {
        let seen = Arc::new(AtomicBool::new(false));
        let s = seen.clone();
        let h = rt.spawn(pending::<()>());
        let w = rt.spawn(async move {
            let _ = h.await;
            s.store(true, SeqCst);
        });
        rt.block_on(yield_now());
        std::thread::sleep(ms(10));
        drop(rt);
        println!("{n} {:?} {}", w.now_or_never().map(|r| kind(&r.unwrap_err())), seen.load(SeqCst));
    }
}

fn a_task_that_never_yields_is_waited_for() {
    let rt = multi_thread(1);
    let done = Arc::new(AtomicBool::new(false));
    let d = done.clone();
    let (tx, rx) = smpsc::channel();
    let h = rt.spawn(async move {
        tx.send(()).unwrap();
        std::thread::sleep(ms(80));
        d.store(true, SeqCst);
        5
    });
    rx.recv().unwrap();
    drop(rt);
    println!("{} {:?}", done.load(SeqCst), h.now_or_never().map(|r| r.unwrap()));
}

fn spawns_through_a_handle_after_the_end_are_cancelled() {
    for (n, rt) in each() {
        let h = rt.handle().clone();
        drop(rt);
        let log = Log::new();
        let g = log.on_drop("future");
        let j = h.spawn(async move {
            let _g = g;
            1
        });
        println!(
            "{n} {} {:?} {:?}",
            j.is_finished(),
            log.take(),
            j.now_or_never().map(|r| r.map_err(|e| kind(&e)))
        );
        let g = log.on_drop("closure");
        let j = h.spawn_blocking(move || {
            let _g = g;
            2
        });
        println!(
            "{n} {} {:?} {:?}",
            j.is_finished(),
            log.take(),
            j.now_or_never().map(|r| r.map_err(|e| kind(&e)))
        );
        println!("{n} {}", h.metrics().num_alive_tasks());
    }
}

fn a_handle_after_the_end_may_still_block_on() {
    for (n, rt) in each() {
        let h = rt.handle().clone();
        drop(rt);
        println!("{n} {}", h.block_on(async { 1 }));
        println!(
            "{n} {:?}",
            h.block_on(async { tokio::spawn(async { 2 }).await.map_err(|e| kind(&e)) })
        );
        println!("{n} {}", caught(|| h.block_on(async { tokio::time::sleep(ms(1)).await })));
        let _e = h.enter();
        println!(
            "{n} {:?}",
            tokio::spawn(async {}).now_or_never().map(|r| r.map_err(|e| kind(&e)))
        );
    }
}

fn wakers_called_after_the_end_do_nothing() {
    for (n, rt) in each() {
        let slot: Arc<Mutex<Option<Waker>>> = Default::default();
        let polls = Arc::new(AtomicUsize::new(0));
        let (s, p) = (slot.clone(), polls.clone());
        let h = rt.spawn(poll_fn(move |cx| {
            p.fetch_add(1, SeqCst);
            *s.lock().unwrap() = Some(cx.waker().clone());
            Poll::<()>::Pending
        }));
        while slot.lock().unwrap().is_none() {
            rt.block_on(yield_now());
        }
        drop(rt);
        let w = slot.lock().unwrap().take().unwrap();
        w.wake_by_ref();
        w.clone().wake();
        h.abort();
        println!("{n} {} {}", polls.load(SeqCst), h.is_finished());
        drop(h);
        w.wake();
    }
}

fn the_waker_of_block_on_after_the_end() {
    for (n, rt) in each() {
        let w = rt.block_on(poll_fn(|cx| Poll::Ready(cx.waker().clone())));
        w.wake_by_ref();
        drop(rt);
        w.wake_by_ref();
        w.wake();
        println!("{n} ok");
    }
}

fn a_join_handle_waited_for_on_another_runtime_when_its_own_ends() {
    let a = multi_thread(2);
    let b = current_thread();
    let h = a.spawn(pending::<()>());
    let t = std::thread::spawn(move || {
        std::thread::sleep(ms(30));
        drop(a);
    });
    println!("{:?}", b.block_on(h).map_err(|e| kind(&e)));
    t.join().unwrap();
}

fn tasks_of_two_runtimes_holding_each_others_handles_end() {
    let a = multi_thread(1);
    let b = multi_thread(1);
    let log = Log::new();
    let (g1, g2) = (log.on_drop("on a"), log.on_drop("on b"));
    let (ha, hb) = (a.handle().clone(), b.handle().clone());
    let ja = a.spawn(async move {
        let _g = g1;
        let _ = hb.spawn(pending::<()>()).await;
        pending::<()>().await
    });
    let jb = b.spawn(async move {
        let _g = g2;
        let _ = ha.spawn(pending::<()>()).await;
        pending::<()>().await
    });
    std::thread::sleep(ms(10));
    drop(a);
    println!("{:?} {}", log.take(), ja.is_finished());
    drop(b);
    println!("{:?} {}", log.take(), jb.is_finished());
}

// The end: where it may happen.

fn dropping_a_runtime_in_async_code_panics() {
    let rt = current_thread();
    println!("{}", caught(|| rt.block_on(async { drop(current_thread()) })));
    println!("{}", caught(|| rt.block_on(async { drop(multi_thread(1)) })));
    println!(
        "{}",
        caught(|| multi_thread(1).block_on(async {
            tokio::spawn(async { drop(current_thread()) })
                .await
                .map_err(|e| payload(e.into_panic()))
        }))
    );
    println!("{}", caught(|| rt.block_on(async { current_thread().shutdown_timeout(ms(5)) })));
    println!(
        "{}",
        caught(|| rt.block_on(async { current_thread().shutdown_timeout(Duration::ZERO) }))
    );
    println!("{}", caught(|| rt.block_on(async { multi_thread(1).shutdown_background() })));
    println!(
        "{}",
        caught(|| rt.block_on(async { spawn_blocking(|| drop(multi_thread(1))).await.unwrap() }))
    );
    println!(
        "{}",
        caught(|| multi_thread(1).block_on(async { block_in_place(|| drop(current_thread())) }))
    );
    println!(
        "{}",
        caught(|| {
            let _e = rt.enter();
            drop(current_thread())
        })
    );
}

fn a_runtime_dropped_by_its_own_task_panics_there() {
    quiet();
    let rt = Arc::new(multi_thread(2));
    let r2 = rt.clone();
    let (tx, rx) = oneshot::channel();
    let h = rt.spawn(async move {
        let own = r2;
        rx.await.ok();
        drop(own);
    });
    // The task now holds the last reference.
    drop(rt);
    tx.send(()).unwrap();
    println!("{:?}", current_thread().block_on(h).map_err(|e| payload(e.into_panic())));
}

fn shutdown_background_does_not_wait() {
    let rt = multi_thread(1);
    let (tx, rx) = smpsc::channel::<()>();
    let (dtx, drx) = smpsc::channel();
    rt.spawn_blocking(move || {
        rx.recv().unwrap();
        dtx.send("went on").unwrap();
    });
    rt.shutdown_background();
    println!("returned");
    tx.send(()).unwrap();
    println!("{:?}", drx.recv());
}

fn shutdown_timeout_waits_at_most_that_long() {
    let rt = current_thread();
    let (tx, rx) = smpsc::channel::<()>();
    let h = rt.spawn_blocking(move || rx.recv().is_ok());
    let t = Instant::now();
    rt.shutdown_timeout(ms(50));
    println!("{} {}", t.elapsed() >= ms(50), h.is_finished());
    tx.send(()).unwrap();
    println!("{:?}", current_thread().block_on(h).unwrap());
    let rt = current_thread();
    rt.spawn_blocking(|| ());
    rt.shutdown_timeout(Duration::MAX);
    println!("returned");
}

fn shutdown_of_a_current_thread_runtime_drops_its_tasks_before_it_returns() {
    for how in 0..3 {
        let rt = current_thread();
        let log = Log::new();
        let g = log.on_drop("task");
        let h = rt.spawn(async move {
            let _g = g;
            pending::<()>().await
        });
        match how {
            0 => drop(rt),
            1 => rt.shutdown_background(),
            _ => rt.shutdown_timeout(ms(1)),
        }
        println!("{how} {:?} {:?}", log.take(), h.now_or_never().map(|r| kind(&r.unwrap_err())));
    }
}

fn a_runtime_made_in_async_code_can_be_given_to_a_thread_to_drop() {
    let rt = current_thread();
    println!(
        "{}",
        rt.block_on(async {
            let inner = multi_thread(1);
            let v = inner.spawn(async { 5 }).await.unwrap();
            std::thread::spawn(move || drop(inner)).join().unwrap();
            v
        })
    );
}

fn a_runtime_dropped_while_panicking_does_not_abort() {
    println!(
        "{}",
        caught(|| current_thread().block_on(async {
            let _inner = multi_thread(1);
            panic!("first");
        }))
    );
}

// The end: blocking tasks.

fn a_blocking_task_spawned_just_before_the_end_runs() {
    for (n, rt) in each() {
        let ran = Arc::new(AtomicBool::new(false));
        let r = ran.clone();
        rt.spawn_blocking(move || {
            std::thread::sleep(ms(20));
            r.store(true, SeqCst)
        });
        drop(rt);
        println!("{n} {}", ran.load(SeqCst));
    }
}

fn drop_waits_for_a_running_blocking_task() {
    for (n, rt) in each() {
        let done = Arc::new(AtomicBool::new(false));
        let d = done.clone();
        let (tx, rx) = smpsc::channel();
        let h = rt.spawn_blocking(move || {
            tx.send(()).unwrap();
            std::thread::sleep(ms(40));
            d.store(true, SeqCst);
            3
        });
        rx.recv().unwrap();
        drop(rt);
        println!("{n} {} {:?}", done.load(SeqCst), h.now_or_never().map(|r| r.unwrap()));
    }
}

fn blocking_tasks_queued_behind_a_running_one_at_the_end() {
    let rt = Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
    let (tx, rx) = smpsc::channel();
    let first = rt.spawn_blocking(move || {
        tx.send(()).unwrap();
        std::thread::sleep(ms(40));
        1
    });
    rx.recv().unwrap();
    let second = rt.spawn_blocking(|| 2);
    let third = rt.spawn_blocking(|| 3);
    third.abort();
    drop(rt);
    println!("{:?}", first.now_or_never().map(|r| r.unwrap()));
    println!("{:?}", second.now_or_never().map(|r| r.map_err(|e| kind(&e))));
    println!("{:?}", third.now_or_never().map(|r| r.map_err(|e| kind(&e))));
}

fn a_blocking_task_may_use_its_runtime_while_it_ends() {
    for (n, rt) in [("ct", current_thread()), ("mt1", multi_thread(1))] {
        let (tx, rx) = smpsc::channel::<()>();
        let (stx, srx) = smpsc::channel::<()>();
        let probe = rt.spawn(pending::<()>());
        rt.block_on(yield_now());
        let h = rt.spawn_blocking(move || {
            stx.send(()).unwrap();
            rx.recv().unwrap();
            // the runtime has ended its tasks by now
            let s = Handle::current().spawn(async { 1 });
            let v = Handle::current().block_on(async { 3 });
            (s.now_or_never().map(|r| r.map_err(|e| kind(&e))), v)
        });
        srx.recv().unwrap();
        let t = std::thread::spawn(move || drop(rt));
        while !probe.is_finished() {
            std::thread::yield_now();
        }
        std::thread::sleep(ms(20));
        tx.send(()).unwrap();
        t.join().unwrap();
        println!("{n} {:?}", h.now_or_never().map(|r| r.unwrap()));
    }
}

fn a_blocking_tasks_panic_at_the_end_is_kept() {
    quiet();
    let rt = multi_thread(1);
    let h = rt.spawn_blocking(|| {
        std::thread::sleep(ms(20));
        panic!("late")
    });
    drop(rt);
    println!("{:?}", h.now_or_never().map(|r: Result<(), _>| payload(r.unwrap_err().into_panic())));
}

// The end: drivers.

fn sockets_used_after_the_end_give_errors() {
    for (n, rt) in [("ct", current_thread()), ("mt1", multi_thread(1))] {
        let (l, a, b) = rt.block_on(async {
            let l = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let (a, b) = tokio::net::UnixStream::pair().unwrap();
            (l, a, b)
        });
        drop(rt);
        println!("{n} {}", l.local_addr().is_ok());
        let other = current_thread();
        let e = other.block_on(async { l.accept().await.map(|_| ()) }).unwrap_err();
        println!("{n} {:?} {} {}", e.kind(), quoted(&e), tokio::runtime::is_rt_shutdown_err(&e));
        let e = other.block_on(async { a.readable().await }).unwrap_err();
        println!("{n} {:?} {}", e.kind(), quoted(&e));
        let mut buf = [0; 1];
        println!("{n} {:?}", b.try_read(&mut buf).map_err(|e| e.kind()));
        drop((l, a, b));
    }
}

fn a_pending_read_on_another_runtime_fails_when_the_sockets_runtime_ends() {
    let rt = multi_thread(1);
    let (a, _b) = rt.block_on(async { tokio::net::UnixStream::pair().unwrap() });
    let other = current_thread();
    let t = std::thread::spawn(move || {
        std::thread::sleep(ms(30));
        drop(rt);
    });
    println!(
        "{:?}",
        other.block_on(async { a.readable().await }).map_err(|e| (e.kind(), quoted(e)))
    );
    t.join().unwrap();
}

fn new_sockets_and_timers_after_the_end() {
    let rt = current_thread();
    let h = rt.handle().clone();
    drop(rt);
    let _e = h.enter();
    println!("{:?}", tokio::net::UnixStream::pair().map(|_| ()).map_err(quoted));
    println!("{}", caught(|| tokio::time::sleep(ms(1)).now_or_never()));
    println!("{}", caught(|| tokio::time::timeout(ms(1), async { 1 }).now_or_never()));
    println!("{}", caught(|| tokio::time::timeout(ms(1), pending::<()>()).now_or_never()));
}

// `LocalRuntime`.

fn local_runtime_spawns_local_tasks_without_a_set() {
    let rt = LocalRuntime::new().unwrap();
    println!(
        "{}",
        rt.block_on(async {
            let rc = Rc::new(3);
            let a = spawn_local(async move { *rc }).await.unwrap();
            let b = tokio::spawn(async { 4 }).await.unwrap();
            a + b
        })
    );
    let rc = Rc::new(5);
    let h = rt.spawn_local(async move { *rc });
    println!("{}", rt.block_on(h).unwrap());
    println!("{:?}", rt.handle().runtime_flavor());
}

fn local_runtime_from_the_builder_and_its_end() {
    let rt = Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build_local(LocalOptions::default())
        .unwrap();
    let log = Log::new();
    let g = log.on_drop("local");
    let h = rt.spawn_local(async move {
        let _g = g;
        pending::<()>().await
    });
    rt.block_on(async {
        let t = tokio::time::Instant::now();
        tokio::time::sleep(Duration::from_secs(9)).await;
        println!("{:?}", t.elapsed());
        println!("{}", spawn_blocking(|| 6).await.unwrap());
        println!("{}", caught(|| block_in_place(|| 1)));
    });
    drop(rt);
    println!("{:?} {:?}", log.take(), h.now_or_never().map(|r| kind(&r.unwrap_err())));
}

fn spawn_local_on_another_thread_of_a_local_runtime_panics() {
    let rt = LocalRuntime::new().unwrap();
    let h = rt.handle().clone();
    println!(
        "{}",
        std::thread::spawn(move || {
            let _e = h.enter();
            let ok = h.spawn(async { 1 });
            let r = caught(|| drop(spawn_local(async {})));
            drop(ok);
            r
        })
        .join()
        .unwrap()
    );
    println!("{}", rt.block_on(async { tokio::spawn(async { 2 }).await.unwrap() }));
    println!(
        "{}",
        caught(|| rt.block_on(async {
            spawn_blocking(|| caught(|| drop(spawn_local(async {})))).await.unwrap()
        }))
    );
}

fn a_local_set_inside_a_local_runtime() {
    let rt = LocalRuntime::new().unwrap();
    rt.block_on(async {
        let l = LocalSet::new();
        println!("{}", l.run_until(async { spawn_local(async { 1 }).await.unwrap() }).await);
        drop(l);
        println!("{}", spawn_local(async { 2 }).await.unwrap());
    });
}

// Mixed.

fn tasks_spawned_from_many_threads_all_run() {
    for (n, rt) in each() {
        let rt = Arc::new(rt);
        let sum = Arc::new(AtomicUsize::new(0));
        let ts: Vec<_> = (0..4)
            .map(|_| {
                let (rt, sum) = (rt.clone(), sum.clone());
                std::thread::spawn(move || {
                    (0..100)
                        .map(|i| {
                            let s = sum.clone();
                            rt.spawn(async move {
                                s.fetch_add(i, SeqCst);
                            })
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        for t in ts {
            for h in t.join().unwrap() {
                rt.block_on(h).unwrap();
            }
        }
        println!("{n} {}", sum.load(SeqCst));
    }
}

fn a_task_that_hogs_one_worker_does_not_stop_the_other() {
    let rt = multi_thread(2);
    let (tx, rx) = smpsc::channel::<()>();
    let (stx, srx) = oneshot::channel();
    rt.block_on(async {
        let hog = tokio::spawn(async move {
            stx.send(()).unwrap();
            rx.recv().unwrap()
        });
        srx.await.unwrap();
        let mut v = vec![];
        for i in 0..20 {
            v.push(
                tokio::spawn(async move {
                    yield_now().await;
                    i
                })
                .await
                .unwrap(),
            );
        }
        println!("{}", v.len());
        tx.send(()).unwrap();
        hog.await.unwrap();
    });
}

fn a_runtime_built_and_dropped_many_times() {
    let mut n = 0;
    for i in 0..30 {
        let rt = if i % 2 == 0 { multi_thread(2) } else { current_thread() };
        n += rt.block_on(async { tokio::spawn(async { 1 }).await.unwrap() });
    }
    println!("{n}");
}

fn a_runtime_in_a_static_is_never_dropped() {
    static RT: std::sync::OnceLock<Runtime> = std::sync::OnceLock::new();
    let rt = RT.get_or_init(|| multi_thread(1));
    let log = Log::new();
    let g = log.on_drop("x");
    rt.spawn(async move {
        let _g = g;
        pending::<()>().await
    });
    println!("{} {:?}", rt.block_on(async { 1 }), log.take());
}

fn panics_while_spawning_under_a_lock_do_not_break_the_runtime() {
    let rt = multi_thread(2);
    for _ in 0..20 {
        let r =
            caught(|| rt.block_on(async { tokio::spawn(async { panic!("task") }).await.unwrap() }));
        assert!(r.starts_with("panic: «called `Result::unwrap()`"), "{r}");
    }
    println!("{}", rt.block_on(async { tokio::spawn(async { 1 }).await.unwrap() }));
}

/// Prints text and `Debug` as they are, not quoted.
fn the_error_of_an_ended_runtime_is_known_by_kind_and_text() {
    use std::io::{Error, ErrorKind};
    let is = tokio::runtime::is_rt_shutdown_err;
    let rt = current_thread();
    let l = rt.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    drop(rt);
    let e = current_thread().block_on(l.accept()).map(|_| ()).unwrap_err();
    println!("{e}\n{e:?}\n{}", is(&e));
    let text = e.to_string();
    println!("made again {}", is(&Error::other(text.clone())));
    println!("another kind {}", is(&Error::new(ErrorKind::BrokenPipe, text.clone())));
    println!("another text {}", is(&Error::other(format!("{text} "))));
    println!("the beginning {}", is(&Error::other(&text[..20])));
    println!("inside of another {}", is(&Error::other(Error::other(text))));
    println!("no text {}", is(&ErrorKind::Other.into()));
    println!("a number {}", is(&Error::from_raw_os_error(libc::EINVAL)));
}

pub const CASES: &[(&str, fn())] = &[
    ("builder_odd_values_panic", builder_odd_values_panic),
    ("builder_extreme_values_work", builder_extreme_values_work),
    (
        "worker_threads_on_a_current_thread_builder_is_ignored",
        worker_threads_on_a_current_thread_builder_is_ignored,
    ),
    ("flavours_and_ids", flavours_and_ids),
    ("runtime_names", runtime_names),
    ("thread_names", thread_names),
    ("hooks_run_once_for_each_thread", hooks_run_once_for_each_thread),
    (
        "hooks_of_a_current_thread_runtime_are_for_blocking_threads",
        hooks_of_a_current_thread_runtime_are_for_blocking_threads,
    ),
    ("park_and_unpark_hooks_come_in_pairs", park_and_unpark_hooks_come_in_pairs),
    ("max_blocking_threads_is_a_limit", max_blocking_threads_is_a_limit),
    ("drivers_not_enabled_panic", drivers_not_enabled_panic),
    ("tokio_main_flavours", tokio_main_flavours),
    ("handle_current_outside_panics", handle_current_outside_panics),
    ("enter_gives_a_context_to_plain_code", enter_gives_a_context_to_plain_code),
    ("enter_nests_and_restores", enter_nests_and_restores),
    ("enter_guards_dropped_out_of_order_panic", enter_guards_dropped_out_of_order_panic),
    ("block_on_inside_enter_is_allowed", block_on_inside_enter_is_allowed),
    (
        "enter_inside_block_on_changes_where_spawn_goes",
        enter_inside_block_on_changes_where_spawn_goes,
    ),
    ("nested_block_on_panics", nested_block_on_panics),
    (
        "block_on_with_a_panic_leaves_the_runtime_usable",
        block_on_with_a_panic_leaves_the_runtime_usable,
    ),
    ("block_on_drops_its_future_before_it_returns", block_on_drops_its_future_before_it_returns),
    (
        "two_threads_may_block_on_one_current_thread_runtime",
        two_threads_may_block_on_one_current_thread_runtime,
    ),
    (
        "handle_block_on_of_a_current_thread_runtime_does_not_drive_it",
        handle_block_on_of_a_current_thread_runtime_does_not_drive_it,
    ),
    (
        "the_future_of_block_on_runs_on_the_calling_thread",
        the_future_of_block_on_runs_on_the_calling_thread,
    ),
    (
        "current_thread_tasks_only_move_inside_block_on",
        current_thread_tasks_only_move_inside_block_on,
    ),
    ("worker_index_of_each_place", worker_index_of_each_place),
    ("metrics_that_are_exact", metrics_that_are_exact),
    (
        "alive_tasks_of_many_workers_come_back_to_zero",
        alive_tasks_of_many_workers_come_back_to_zero,
    ),
    ("drop_drops_every_pending_task", drop_drops_every_pending_task),
    ("drop_drops_tasks_that_never_ran", drop_drops_tasks_that_never_ran),
    (
        "handles_of_finished_tasks_keep_their_value_after_the_end",
        handles_of_finished_tasks_keep_their_value_after_the_end,
    ),
    (
        "a_spawn_in_a_destructor_at_the_end_is_cancelled_at_once",
        a_spawn_in_a_destructor_at_the_end_is_cancelled_at_once,
    ),
    ("a_chain_of_spawns_in_destructors_ends", a_chain_of_spawns_in_destructors_ends),
    (
        "destructors_at_the_end_are_in_the_runtimes_context",
        destructors_at_the_end_are_in_the_runtimes_context,
    ),
    ("drop_waits_for_slow_destructors", drop_waits_for_slow_destructors),
    (
        "destructors_at_the_end_may_use_channels_and_locks",
        destructors_at_the_end_may_use_channels_and_locks,
    ),
    (
        "a_destructor_at_the_end_wakes_another_task_of_the_same_runtime",
        a_destructor_at_the_end_wakes_another_task_of_the_same_runtime,
    ),
    (
        "a_destructor_at_the_end_may_block_in_place_and_block_on",
        a_destructor_at_the_end_may_block_in_place_and_block_on,
    ),
    (
        "a_destructor_at_the_end_of_a_current_thread_runtime_may_block_on",
        a_destructor_at_the_end_of_a_current_thread_runtime_may_block_on,
    ),
    (
        "a_panic_in_a_destructor_at_the_end_harms_nothing_else",
        a_panic_in_a_destructor_at_the_end_harms_nothing_else,
    ),
    (
        "a_task_that_awaits_another_at_the_end_is_dropped_not_polled",
        a_task_that_awaits_another_at_the_end_is_dropped_not_polled,
    ),
    ("a_task_that_never_yields_is_waited_for", a_task_that_never_yields_is_waited_for),
    (
        "spawns_through_a_handle_after_the_end_are_cancelled",
        spawns_through_a_handle_after_the_end_are_cancelled,
    ),
    ("a_handle_after_the_end_may_still_block_on", a_handle_after_the_end_may_still_block_on),
    ("wakers_called_after_the_end_do_nothing", wakers_called_after_the_end_do_nothing),
    ("the_waker_of_block_on_after_the_end", the_waker_of_block_on_after_the_end),
    (
        "a_join_handle_waited_for_on_another_runtime_when_its_own_ends",
        a_join_handle_waited_for_on_another_runtime_when_its_own_ends,
    ),
    (
        "tasks_of_two_runtimes_holding_each_others_handles_end",
        tasks_of_two_runtimes_holding_each_others_handles_end,
    ),
    ("dropping_a_runtime_in_async_code_panics", dropping_a_runtime_in_async_code_panics),
    (
        "a_runtime_dropped_by_its_own_task_panics_there",
        a_runtime_dropped_by_its_own_task_panics_there,
    ),
    ("shutdown_background_does_not_wait", shutdown_background_does_not_wait),
    ("shutdown_timeout_waits_at_most_that_long", shutdown_timeout_waits_at_most_that_long),
    (
        "shutdown_of_a_current_thread_runtime_drops_its_tasks_before_it_returns",
        shutdown_of_a_current_thread_runtime_drops_its_tasks_before_it_returns,
    ),
    (
        "a_runtime_made_in_async_code_can_be_given_to_a_thread_to_drop",
        a_runtime_made_in_async_code_can_be_given_to_a_thread_to_drop,
    ),
    (
        "a_runtime_dropped_while_panicking_does_not_abort",
        a_runtime_dropped_while_panicking_does_not_abort,
    ),
    (
        "a_blocking_task_spawned_just_before_the_end_runs",
        a_blocking_task_spawned_just_before_the_end_runs,
    ),
    ("drop_waits_for_a_running_blocking_task", drop_waits_for_a_running_blocking_task),
    (
        "blocking_tasks_queued_behind_a_running_one_at_the_end",
        blocking_tasks_queued_behind_a_running_one_at_the_end,
    ),
    (
        "a_blocking_task_may_use_its_runtime_while_it_ends",
        a_blocking_task_may_use_its_runtime_while_it_ends,
    ),
    ("a_blocking_tasks_panic_at_the_end_is_kept", a_blocking_tasks_panic_at_the_end_is_kept),
    ("sockets_used_after_the_end_give_errors", sockets_used_after_the_end_give_errors),
    (
        "a_pending_read_on_another_runtime_fails_when_the_sockets_runtime_ends",
        a_pending_read_on_another_runtime_fails_when_the_sockets_runtime_ends,
    ),
    ("new_sockets_and_timers_after_the_end", new_sockets_and_timers_after_the_end),
    (
        "local_runtime_spawns_local_tasks_without_a_set",
        local_runtime_spawns_local_tasks_without_a_set,
    ),
    ("local_runtime_from_the_builder_and_its_end", local_runtime_from_the_builder_and_its_end),
    (
        "spawn_local_on_another_thread_of_a_local_runtime_panics",
        spawn_local_on_another_thread_of_a_local_runtime_panics,
    ),
    ("a_local_set_inside_a_local_runtime", a_local_set_inside_a_local_runtime),
    ("tasks_spawned_from_many_threads_all_run", tasks_spawned_from_many_threads_all_run),
    (
        "a_task_that_hogs_one_worker_does_not_stop_the_other",
        a_task_that_hogs_one_worker_does_not_stop_the_other,
    ),
    ("a_runtime_built_and_dropped_many_times", a_runtime_built_and_dropped_many_times),
    ("a_runtime_in_a_static_is_never_dropped", a_runtime_in_a_static_is_never_dropped),
    (
        "panics_while_spawning_under_a_lock_do_not_break_the_runtime",
        panics_while_spawning_under_a_lock_do_not_break_the_runtime,
    ),
    (
        "the_error_of_an_ended_runtime_is_known_by_kind_and_text",
        the_error_of_an_ended_runtime_is_known_by_kind_and_text,
    ),
];
