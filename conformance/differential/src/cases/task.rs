//! Spawning, joining, aborting, local tasks, and the cooperative budget.

use crate::probe::*;
use futures_util::FutureExt;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tokio::task::{
    self, JoinError, JoinSet, LocalSet, block_in_place, coop, spawn_blocking, spawn_local,
    yield_now,
};
use tokio_util::task::{AbortOnDropHandle, JoinMap, TaskTracker};

/// Returns the error's two texts, with its task ID written as N.
fn show(e: &JoinError) -> String {
    let id = e.id().to_string();
    let a = format!("{e}").replacen(&id, "N", 1);
    let b = format!("{e:?}").replacen(&format!("({id})"), "(N)", 1);
    format!("{a} | {b} | cancelled {} panic {}", e.is_cancelled(), e.is_panic())
}

struct Polls<F>(F, Arc<AtomicUsize>);
impl<F: Future + Unpin> Future for Polls<F> {
    type Output = F::Output;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.1.fetch_add(1, SeqCst);
        Pin::new(&mut self.0).poll(cx)
    }
}

fn polls<F: Future>(f: F) -> (Polls<Pin<Box<F>>>, Arc<AtomicUsize>) {
    let c = Arc::new(AtomicUsize::new(0));
    (Polls(Box::pin(f), c.clone()), c)
}

// Spawn, join.

fn spawn_outside_a_runtime_panics() {
    println!("{}", caught(|| drop(tokio::spawn(async {}))));
    println!("{}", caught(|| drop(spawn_blocking(|| ()))));
    println!("{}", caught(|| drop(spawn_local(async {}))));
    let rt = current_thread();
    println!("{}", caught(|| rt.block_on(async { drop(spawn_local(async {})) })));
    println!("{}", caught(|| multi_thread(1).block_on(async { drop(spawn_local(async {})) })));
}

fn a_spawned_task_does_not_run_before_the_spawner_yields_on_current_thread() {
    current_thread().block_on(async {
        let log = Log::new();
        for i in 0..4 {
            let log = log.clone();
            tokio::spawn(async move {
                log.add(format!("a{i}"));
            });
        }
        log.add("main");
        yield_now().await;
        log.add("main2");
        println!("{:?}", log.take());
    });
}

fn a_task_spawned_from_outside_block_on_waits_for_it() {
    let rt = current_thread();
    let log = Log::new();
    let l = log.clone();
    let h = rt.spawn(async move { l.add("task") });
    std::thread::sleep(Duration::from_millis(20));
    println!("{:?} {}", log.take(), h.is_finished());
    rt.block_on(async {});
    let early = log.take();
    println!("{:?}", early.len() <= 1);
    rt.block_on(h).unwrap();
    println!("{}", early.len() + log.take().len());
}

fn join_errors_print() {
    quiet();
    current_thread().block_on(async {
        let h = tokio::spawn(std::future::pending::<()>());
        h.abort();
        println!("{}", show(&h.await.unwrap_err()));
        println!("{}", show(&tokio::spawn(async { panic!("a literal") }).await.unwrap_err()));
        println!(
            "{}",
            show(&tokio::spawn(async { panic!("format {}", "ted \"q\"") }).await.unwrap_err())
        );
        println!(
            "{}",
            show(&tokio::spawn(async { std::panic::panic_any(7u8) }).await.unwrap_err())
        );
        println!("{}", show(&spawn_blocking(|| panic!("blocking")).await.unwrap_err()));
    });
}

fn into_panic_gives_the_payload() {
    quiet();
    current_thread().block_on(async {
        let e = tokio::spawn(async { std::panic::panic_any(7u8) }).await.unwrap_err();
        println!("{:?}", e.into_panic().downcast_ref::<u8>());
        let e = tokio::spawn(async { panic!("p") }).await.unwrap_err();
        println!("{:?}", e.try_into_panic().map(payload).map_err(|e| show(&e)));
        let h = tokio::spawn(std::future::pending::<()>());
        h.abort();
        let e = h.await.unwrap_err();
        let e = e.try_into_panic().unwrap_err();
        println!("{}", show(&e));
        println!("{}", caught(move || drop(e.into_panic())).replace(char::is_numeric, "N"));
    });
}

fn join_errors_become_io_errors() {
    quiet();
    current_thread().block_on(async {
        let e: std::io::Error = tokio::spawn(async { panic!("p") }).await.unwrap_err().into();
        println!("{:?} {e}", e.kind());
        let h = tokio::spawn(std::future::pending::<()>());
        h.abort();
        let e: std::io::Error = h.await.unwrap_err().into();
        println!("{:?} {e}", e.kind());
    });
}

fn a_join_handle_polled_after_completion_panics() {
    let rt = current_thread();
    rt.block_on(async {
        let mut h = tokio::spawn(async { 1 });
        println!("{:?}", (&mut h).await.map_err(|e| show(&e)));
        println!("{}", h.is_finished());
        println!("{}", caught(|| (&mut h).now_or_never().is_some()));
        h.abort();
    });
}

fn a_dropped_join_handle_detaches() {
    current_thread().block_on(async {
        let (tx, rx) = oneshot::channel();
        drop(tokio::spawn(async move {
            yield_now().await;
            tx.send(5).unwrap();
        }));
        println!("{:?}", rx.await);
    });
}

fn is_finished_follows_the_task() {
    current_thread().block_on(async {
        let h = tokio::spawn(async {});
        println!("{}", h.is_finished());
        yield_now().await;
        println!("{}", h.is_finished());
        println!("{:?}", h.await.is_ok());
        let h = tokio::spawn(std::future::pending::<()>());
        let a = h.abort_handle();
        a.abort();
        println!("{} {}", h.is_finished(), a.is_finished());
        yield_now().await;
        println!("{} {}", h.is_finished(), a.is_finished());
        println!("{} {}", a.id() == h.id(), a.clone().id() == a.id());
    });
}

fn the_destructor_has_run_before_the_task_is_finished() {
    let rt = multi_thread(2);
    rt.block_on(async {
        for _ in 0..10 {
            let done = Arc::new(AtomicBool::new(false));
            let d = done.clone();
            let g = defer(move || {
                std::thread::yield_now();
                d.store(true, SeqCst)
            });
            let h = tokio::spawn(async move {
                let _g = g;
                std::future::pending::<()>().await;
            });
            yield_now().await;
            h.abort();
            let _ = h.await;
            assert!(done.load(SeqCst));
        }
        println!("ok");
    });
}

fn a_join_handles_last_waker_is_woken_once() {
    current_thread().block_on(async {
        let n = Arc::new(Notify::new());
        let n2 = n.clone();
        let mut h = tokio::spawn(async move { n2.notified().await });
        let (c1, w1) = counter();
        let (c2, w2) = counter();
        println!("{}", Pin::new(&mut h).poll(&mut Context::from_waker(&w1)).is_pending());
        println!("{}", Pin::new(&mut h).poll(&mut Context::from_waker(&w2)).is_pending());
        yield_now().await;
        n.notify_one();
        yield_now().await;
        println!("{} {}", c1.get(), c2.get());
        println!("{}", Pin::new(&mut h).poll(&mut Context::from_waker(&w1)).is_ready());
        drop(h);
        println!("{} {}", Arc::strong_count(&c1), Arc::strong_count(&c2));
    });
}

fn a_waker_that_panics_when_the_task_ends_harms_nothing_else() {
    struct Bad;
    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            panic!("bad waker")
        }
    }
    quiet();
    for rt in [current_thread(), multi_thread(1)] {
        rt.block_on(async {
            let (tx, rx) = oneshot::channel::<()>();
            let mut h = tokio::spawn(async move { rx.await.is_ok() });
            let w = Waker::from(Arc::new(Bad));
            println!("{}", Pin::new(&mut h).poll(&mut Context::from_waker(&w)).is_pending());
            tx.send(()).unwrap();
            while !h.is_finished() {
                yield_now().await;
            }
            println!("{:?}", h.await.map_err(|e| show(&e)));
            println!("{:?}", tokio::spawn(async { 3 }).await.unwrap());
        });
    }
}

fn big_futures_can_be_spawned() {
    let rt = multi_thread(1);
    rt.block_on(async {
        let h = tokio::spawn(async {
            let big = [7u8; 200_000];
            yield_now().await;
            big.iter().map(|b| *b as u64).sum::<u64>()
        });
        println!("{}", h.await.unwrap());
    });
}

fn wakes_during_a_poll_make_one_more_poll() {
    current_thread().block_on(async {
        let n = Arc::new(AtomicUsize::new(0));
        let n2 = n.clone();
        let h = tokio::spawn(poll_fn(move |cx| {
            let k = n2.fetch_add(1, SeqCst);
            if k < 3 {
                for _ in 0..5 {
                    cx.waker().wake_by_ref();
                }
                let w = cx.waker().clone();
                w.wake();
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        }));
        h.await.unwrap();
        println!("{}", n.load(SeqCst));
    });
}

fn wakes_before_a_poll_make_one_poll() {
    current_thread().block_on(async {
        let n = Arc::new(AtomicUsize::new(0));
        let slot: Arc<Mutex<Option<Waker>>> = Default::default();
        let (n2, s2) = (n.clone(), slot.clone());
        let h = tokio::spawn(poll_fn(move |cx| {
            n2.fetch_add(1, SeqCst);
            *s2.lock().unwrap() = Some(cx.waker().clone());
            Poll::<()>::Pending
        }));
        yield_now().await;
        let w = slot.lock().unwrap().clone().unwrap();
        println!("{}", n.load(SeqCst));
        for _ in 0..10 {
            w.wake_by_ref();
        }
        yield_now().await;
        yield_now().await;
        println!("{}", n.load(SeqCst));
        h.abort();
        w.wake_by_ref();
        println!("{}", h.await.unwrap_err().is_cancelled());
        w.wake_by_ref();
        yield_now().await;
        println!("{}", n.load(SeqCst));
        w.wake();
    });
}

fn wakers_of_one_task_will_wake_each_other() {
    current_thread().block_on(async {
        let v: Vec<Waker> = {
            let mut v = vec![];
            poll_fn(|cx| {
                v.push(cx.waker().clone());
                v.push(cx.waker().clone());
                Poll::Ready(())
            })
            .await;
            v
        };
        println!("{}", v[0].will_wake(&v[1]));
        let a = tokio::spawn(poll_fn(|cx| Poll::Ready(cx.waker().clone()))).await.unwrap();
        let b = tokio::spawn(async {
            let w1 = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
            yield_now().await;
            let w2 = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
            (w1.will_wake(&w2), w1)
        })
        .await
        .unwrap();
        println!("{} {}", a.will_wake(&b.1), b.0);
    });
}

fn a_panic_in_one_task_leaves_the_others_alone() {
    quiet();
    for rt in [current_thread(), multi_thread(1), multi_thread(4)] {
        rt.block_on(async {
            let hs: Vec<_> = (0..20)
                .map(|i| {
                    tokio::spawn(async move {
                        yield_now().await;
                        if i % 3 == 0 {
                            panic!("{i}")
                        }
                        i
                    })
                })
                .collect();
            let mut v = vec![];
            for h in hs {
                v.push(h.await.ok());
            }
            println!("{v:?}");
        });
    }
}

// Abort.

fn a_task_aborted_before_its_first_poll_never_runs() {
    for rt in [current_thread(), multi_thread(1)] {
        rt.block_on(async {
            let log = Log::new();
            let g = log.on_drop("captured");
            let l = log.clone();
            // one worker kept busy: the task cannot start before the abort
            let (tx, rx) = std::sync::mpsc::channel::<()>();
            let busy = tokio::runtime::Handle::current().runtime_flavor()
                == tokio::runtime::RuntimeFlavor::MultiThread;
            let (stx, srx) = oneshot::channel();
            let b = busy.then(|| {
                tokio::spawn(async move {
                    stx.send(()).unwrap();
                    let _ = rx.recv();
                })
            });
            if busy {
                srx.await.unwrap();
            }
            let h = tokio::spawn(async move {
                let _g = g;
                l.add("ran");
            });
            h.abort();
            h.abort();
            drop(tx);
            println!("{:?} {:?}", show(&h.await.unwrap_err()), log.take());
            if let Some(b) = b {
                b.await.unwrap();
            }
        });
    }
}

fn abort_after_completion_keeps_the_value() {
    current_thread().block_on(async {
        let h = tokio::spawn(async { 9 });
        yield_now().await;
        h.abort();
        println!("{:?}", h.await.unwrap());
        let mut h = tokio::spawn(async { 9 });
        h.abort();
        println!("{}", (&mut h).await.is_err());
    });
}

fn an_aborted_task_drops_its_locals_in_reverse_order() {
    current_thread().block_on(async {
        let log = Log::new();
        let l = log.clone();
        let cap = log.on_drop("captured");
        let h = tokio::spawn(async move {
            let _c = cap;
            let _a = l.on_drop("a");
            let _b = l.on_drop("b");
            std::future::pending::<()>().await;
            l.add("never");
        });
        yield_now().await;
        println!("{:?}", log.take());
        h.abort();
        println!("{:?}", log.take());
        println!("{}", h.await.unwrap_err().is_cancelled());
        println!("{:?}", log.take());
    });
}

fn a_task_that_aborts_itself_ends_at_its_next_await() {
    current_thread().block_on(async {
        let log = Log::new();
        let l = log.clone();
        let (tx, rx) = oneshot::channel::<task::AbortHandle>();
        let h = tokio::spawn(async move {
            let me = rx.await.unwrap();
            me.abort();
            l.add("after abort");
            yield_now().await;
            l.add("never");
        });
        tx.send(h.abort_handle()).unwrap();
        println!("{} {:?}", h.await.unwrap_err().is_cancelled(), log.take());
        let (tx, rx) = oneshot::channel::<task::AbortHandle>();
        let h = tokio::spawn(async move {
            rx.await.unwrap().abort();
            42
        });
        tx.send(h.abort_handle()).unwrap();
        println!("{:?}", h.await.map_err(|e| show(&e)));
    });
}

fn a_ready_await_does_not_notice_an_abort() {
    current_thread().block_on(async {
        let log = Log::new();
        let l = log.clone();
        let (tx, rx) = oneshot::channel::<task::AbortHandle>();
        let h = tokio::spawn(async move {
            rx.await.unwrap().abort();
            std::future::ready(()).await;
            async {}.await;
            l.add("went on");
            std::future::pending::<()>().await;
        });
        tx.send(h.abort_handle()).unwrap();
        println!("{} {:?}", h.await.unwrap_err().is_cancelled(), log.take());
    });
}

fn a_panic_in_the_drop_of_an_aborted_task_is_its_error() {
    quiet();
    current_thread().block_on(async {
        let h = tokio::spawn(async {
            let _g = defer(|| panic!("in drop"));
            std::future::pending::<()>().await
        });
        yield_now().await;
        h.abort();
        println!("{}", show(&h.await.unwrap_err()));
    });
}

fn a_panic_in_the_drop_of_a_finished_future() {
    struct F;
    impl Future for F {
        type Output = u8;
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u8> {
            Poll::Ready(1)
        }
    }
    impl Drop for F {
        fn drop(&mut self) {
            panic!("drop of F")
        }
    }
    quiet();
    current_thread().block_on(async {
        println!("{:?}", tokio::spawn(F).await.map_err(|e| show(&e)));
        drop(tokio::spawn(F));
        yield_now().await;
        println!("{:?}", tokio::spawn(async { 2 }).await.unwrap());
    });
}

fn a_panic_in_the_drop_of_an_output_is_swallowed() {
    struct O(Arc<AtomicUsize>);
    impl Drop for O {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
            panic!("drop of the output")
        }
    }
    quiet();
    current_thread().block_on(async {
        let n = Arc::new(AtomicUsize::new(0));
        let m = n.clone();
        let h = tokio::spawn(async move { O(m) });
        yield_now().await;
        println!("{}", h.is_finished());
        println!("{} {}", caught(move || drop(h)), n.load(SeqCst));
        let m = n.clone();
        drop(tokio::spawn(async move { O(m) }));
        yield_now().await;
        println!("{}", n.load(SeqCst));
    });
}

fn an_output_is_dropped_with_its_handle() {
    struct O(Arc<Mutex<Vec<String>>>);
    impl Drop for O {
        fn drop(&mut self) {
            self.0.lock().unwrap().push(std::thread::current().name().unwrap_or("?").to_string());
        }
    }
    let rt = multi_thread(1);
    let log: Arc<Mutex<Vec<String>>> = Default::default();
    let l = log.clone();
    let h = rt.spawn(async move { O(l) });
    while !h.is_finished() {
        std::thread::yield_now();
    }
    std::thread::Builder::new()
        .name("dropper".into())
        .spawn(move || drop(h))
        .unwrap()
        .join()
        .unwrap();
    println!("{:?}", log.lock().unwrap());
}

fn an_aborted_task_is_dropped_on_its_runtimes_thread() {
    let rt = multi_thread(1);
    let (tx, rx) = std::sync::mpsc::channel();
    let (stx, srx) = std::sync::mpsc::channel();
    let h = rt.spawn(async move {
        let _g = defer(move || tx.send(std::thread::current().name().map(String::from)).unwrap());
        stx.send(()).unwrap();
        std::future::pending::<()>().await
    });
    srx.recv().unwrap();
    h.abort();
    println!("{:?}", rx.recv().unwrap());
}

fn a_local_task_aborted_from_another_thread_is_dropped_on_its_own_thread() {
    let rt = current_thread();
    let l = LocalSet::new();
    l.block_on(&rt, async {
        let home = std::thread::current().id();
        let same = Rc::new(Cell::new(None));
        let s = same.clone();
        let h = spawn_local(async move {
            let _g = defer(move || s.set(Some(std::thread::current().id() == home)));
            std::future::pending::<()>().await
        });
        yield_now().await;
        let a = h.abort_handle();
        std::thread::spawn(move || a.abort()).join().unwrap();
        println!("{:?}", same.get());
        println!("{} {:?}", h.await.unwrap_err().is_cancelled(), same.get());
    });
}

fn an_aborted_waiter_gives_its_permit_on() {
    current_thread().block_on(async {
        let s = Arc::new(Semaphore::new(0));
        let s1 = s.clone();
        let a = tokio::spawn(async move { s1.acquire().await.unwrap().forget() });
        let s2 = s.clone();
        let b = tokio::spawn(async move { s2.acquire().await.unwrap().forget() });
        yield_now().await;
        s.add_permits(1);
        a.abort();
        println!("{:?} {:?}", a.await.is_err(), b.await.is_ok());
        println!("{}", s.available_permits());
    });
}

fn abort_on_drop_handle_of_tokio_util() {
    current_thread().block_on(async {
        let log = Log::new();
        let g = log.on_drop("task");
        let h = AbortOnDropHandle::new(tokio::spawn(async move {
            let _g = g;
            std::future::pending::<()>().await
        }));
        yield_now().await;
        println!("{} {:?}", h.is_finished(), log.take());
        drop(h);
        yield_now().await;
        println!("{:?}", log.take());
        let h = AbortOnDropHandle::new(tokio::spawn(async { 4 }));
        println!("{:?}", h.await.unwrap());
        let h = AbortOnDropHandle::new(tokio::spawn(async { 5 }));
        println!("{:?}", h.detach().await.unwrap());
    });
}

// `JoinSet`.

fn join_set_basics() {
    current_thread().block_on(async {
        let mut s = JoinSet::new();
        println!(
            "{} {} {:?} {:?}",
            s.len(),
            s.is_empty(),
            s.join_next().await.is_none(),
            s.try_join_next().is_none()
        );
        for i in 0..4 {
            s.spawn(async move { i });
        }
        println!("{} {:?}", s.len(), s.try_join_next().is_none());
        let mut v = vec![];
        while let Some(r) = s.join_next().await {
            v.push(r.unwrap());
        }
        println!("{v:?} {}", s.len());
    });
}

fn join_set_gives_results_in_completion_order() {
    paused().block_on(async {
        let mut s = JoinSet::new();
        for i in [30u64, 10, 20] {
            s.spawn(async move {
                tokio::time::sleep(Duration::from_millis(i)).await;
                i
            });
        }
        let mut v = vec![];
        while let Some(r) = s.join_next().await {
            v.push(r.unwrap());
        }
        println!("{v:?}");
    });
}

fn join_set_with_ids_and_errors() {
    quiet();
    current_thread().block_on(async {
        let mut s = JoinSet::new();
        let a = s.spawn(async { 1 });
        let (id, v) = s.join_next_with_id().await.unwrap().unwrap();
        println!("{} {v} {}", id == a.id(), a.is_finished());
        let b = s.spawn(async { panic!("b") });
        let e = s.join_next_with_id().await.unwrap().unwrap_err();
        println!("{} {}", e.id() == b.id(), show(&e));
        let c = s.spawn(std::future::pending());
        c.abort();
        let e = s.join_next().await.unwrap().unwrap_err();
        println!("{} {}", e.id() == c.id(), e.is_cancelled());
        s.spawn(async { 5 });
        yield_now().await;
        println!("{:?}", s.try_join_next_with_id().map(|r| r.unwrap().1));
        println!("{:?}", s.try_join_next_with_id().is_none());
    });
}

fn join_set_abort_all_leaves_the_errors_to_be_read() {
    current_thread().block_on(async {
        let mut s = JoinSet::new();
        for _ in 0..3 {
            s.spawn(std::future::pending::<()>());
        }
        s.spawn(async {});
        yield_now().await;
        s.abort_all();
        println!("{}", s.len());
        let (mut c, mut ok) = (0, 0);
        while let Some(r) = s.join_next().await {
            match r {
                Ok(()) => ok += 1,
                Err(e) if e.is_cancelled() => c += 1,
                Err(_) => unreachable!(),
            }
        }
        println!("{c} {ok}");
    });
}

fn join_set_shutdown_and_detach() {
    current_thread().block_on(async {
        let log = Log::new();
        let mut s = JoinSet::new();
        let g = log.on_drop("x");
        s.spawn(async move {
            let _g = g;
            std::future::pending::<()>().await
        });
        yield_now().await;
        s.shutdown().await;
        println!("{} {:?}", s.len(), log.take());
        let l = log.clone();
        s.spawn(async move {
            yield_now().await;
            l.add("detached ran")
        });
        s.detach_all();
        println!("{}", s.len());
        drop(s);
        for _ in 0..5 {
            yield_now().await;
        }
        println!("{:?}", log.take());
    });
}

fn join_set_dropped_aborts() {
    current_thread().block_on(async {
        let log = Log::new();
        let mut s = JoinSet::new();
        for i in 0..3 {
            let g = log.on_drop(i.to_string());
            s.spawn(async move {
                let _g = g;
                std::future::pending::<()>().await
            });
        }
        yield_now().await;
        drop(s);
        println!("{:?}", log.take());
        yield_now().await;
        let mut v = log.take();
        v.sort();
        println!("{v:?}");
    });
}

fn join_set_join_all() {
    quiet();
    let rt = current_thread();
    rt.block_on(async {
        let mut v = (0..5).map(|i| async move { i }).collect::<JoinSet<_>>().join_all().await;
        v.sort();
        println!("{v:?}");
    });
    println!(
        "{}",
        caught(|| rt.block_on(async {
            let mut s = JoinSet::new();
            s.spawn(async { panic!("one panics") });
            s.join_all().await
        }))
    );
    println!(
        "{}",
        caught(|| rt.block_on(async {
            let mut s = JoinSet::new();
            s.spawn(async {}).abort();
            s.join_all().await
        }))
        .replace(char::is_numeric, "N")
    );
}

fn join_set_spawns_on_other_places() {
    let rt = current_thread();
    let other = multi_thread(1);
    let l = LocalSet::new();
    l.block_on(&rt, async {
        let mut s = JoinSet::new();
        s.spawn_on(async { std::thread::current().name().map(String::from) }, other.handle());
        println!("{:?}", s.join_next().await.unwrap().unwrap());
        s.spawn_blocking(|| Some("blocking".to_string()));
        println!("{:?}", s.join_next().await.unwrap().unwrap());
        s.spawn_blocking_on(|| std::thread::current().name().map(String::from), other.handle());
        println!("{:?}", s.join_next().await.unwrap().unwrap());
        let rc = Rc::new("local".to_string());
        s.spawn_local(async move { Some((*rc).clone()) });
        println!("{:?}", s.join_next().await.unwrap().unwrap());
    });
    let mut s = JoinSet::new();
    let rc = Rc::new(3);
    s.spawn_local_on(async move { *rc }, &l);
    println!("{:?}", l.block_on(&rt, async { s.join_next().await.unwrap().unwrap() }));
    println!(
        "{}",
        caught(|| {
            JoinSet::new().spawn(async {});
        })
    );
}

fn join_set_poll_join_next_wakes() {
    current_thread().block_on(async {
        let n = Arc::new(Notify::new());
        let n2 = n.clone();
        let mut s = JoinSet::new();
        s.spawn(async move { n2.notified().await });
        let (c, w) = counter();
        let mut cx = Context::from_waker(&w);
        println!("{}", s.poll_join_next(&mut cx).is_pending());
        println!("{}", c.get());
        yield_now().await;
        n.notify_one();
        yield_now().await;
        println!("{}", c.get());
        println!("{:?}", s.poll_join_next(&mut cx).map(|o| o.map(|r| r.is_ok())));
        println!("{:?}", s.poll_join_next(&mut cx).map(|o| o.is_none()));
    });
}

fn join_set_a_cancelled_join_next_loses_nothing() {
    paused().block_on(async {
        let mut s = JoinSet::new();
        s.spawn(async {
            tokio::time::sleep(Duration::from_millis(25)).await;
            1
        });
        let mut tries = 0;
        let r = loop {
            tries += 1;
            if let Ok(r) = tokio::time::timeout(Duration::from_millis(10), s.join_next()).await {
                break r;
            }
        };
        println!("{tries} {:?}", r.map(|r| r.unwrap()));
    });
}

// `JoinMap`, `TaskTracker`.

fn join_map_replaces_a_task_of_the_same_key() {
    current_thread().block_on(async {
        let log = Log::new();
        let mut m = JoinMap::new();
        let g = log.on_drop("first");
        m.spawn("k", async move {
            let _g = g;
            std::future::pending::<u8>().await
        });
        yield_now().await;
        m.spawn("k", async { 2 });
        println!("{} {}", m.len(), m.contains_key("k"));
        println!("{:?}", m.join_next().await.map(|(k, r)| (k, r.unwrap())));
        println!("{:?} {:?}", m.join_next().await.is_none(), log.take());
    });
}

fn join_map_aborts_by_key() {
    current_thread().block_on(async {
        let mut m = JoinMap::new();
        for k in ["a", "b", "ab"] {
            m.spawn(k, std::future::pending::<()>());
        }
        println!("{} {}", m.abort("a"), m.abort("zz"));
        let (k, r) = m.join_next().await.unwrap();
        println!("{k} {}", r.unwrap_err().is_cancelled());
        m.abort_matching(|k| k.starts_with('a'));
        let (k, r) = m.join_next().await.unwrap();
        println!("{k} {}", r.unwrap_err().is_cancelled());
        println!("{:?} {}", m.keys().collect::<Vec<_>>(), m.len());
        m.shutdown().await;
        println!("{}", m.is_empty());
    });
}

fn task_tracker_waits_for_close_and_emptiness() {
    current_thread().block_on(async {
        let t = TaskTracker::new();
        println!("{} {}", t.is_closed(), t.is_empty());
        println!("{:?}", t.wait().now_or_never());
        let n = Arc::new(Notify::new());
        let n2 = n.clone();
        let h = t.spawn(async move { n2.notified().await });
        println!("{} {} {}", t.len(), t.close(), t.close());
        let mut f = Fut::new(t.wait());
        println!("{}", f.ready());
        let tok = t.token();
        n.notify_one();
        h.await.unwrap();
        println!("{} {}", t.len(), f.ready());
        drop(tok);
        println!("{} {} {}", t.len(), f.wakes() > 0, f.ready());
        println!("{} {:?}", t.reopen(), t.wait().now_or_never());
    });
}

// `LocalSet`.

fn local_tasks_only_run_inside_their_set() {
    let rt = current_thread();
    let l = LocalSet::new();
    let n = Rc::new(Cell::new(0));
    let m = n.clone();
    l.spawn_local(async move {
        for _ in 0..3 {
            m.set(m.get() + 1);
            yield_now().await;
        }
    });
    rt.block_on(async { yield_now().await });
    println!("{}", n.get());
    l.block_on(&rt, async { yield_now().await });
    println!("{}", n.get() > 0);
    rt.block_on(l);
    println!("{}", n.get());
}

fn a_local_set_awaited_runs_all_its_tasks() {
    let rt = current_thread();
    let l = LocalSet::new();
    let log = Log::new();
    for i in 0..3 {
        let log = log.clone();
        l.spawn_local(async move {
            yield_now().await;
            let log2 = log.clone();
            spawn_local(async move { log2.add(format!("child {i}")) });
            log.add(format!("task {i}"));
        });
    }
    rt.block_on(l);
    let mut v = log.take();
    v.sort();
    println!("{v:?}");
}

fn run_until_stops_at_its_future_and_goes_on_later() {
    let rt = current_thread();
    let l = LocalSet::new();
    rt.block_on(async {
        let n = Arc::new(Notify::new());
        let n2 = n.clone();
        let h = l
            .run_until(async move {
                spawn_local(async move {
                    n2.notified().await;
                    7
                })
            })
            .await;
        println!("{}", h.is_finished());
        n.notify_one();
        yield_now().await;
        println!("{}", h.is_finished());
        println!("{}", l.run_until(h).await.unwrap());
    });
}

fn a_dropped_local_set_drops_its_tasks() {
    let log = Log::new();
    let rt = current_thread();
    let l = LocalSet::new();
    let g = log.on_drop("started");
    l.spawn_local(async move {
        let _g = g;
        std::future::pending::<()>().await
    });
    l.block_on(&rt, async { yield_now().await });
    let g = log.on_drop("never started");
    let h = l.spawn_local(async move {
        let _g = g;
    });
    println!("{:?}", log.take());
    drop(l);
    let mut v = log.take();
    v.sort();
    println!("{v:?}");
    println!("{}", rt.block_on(h).unwrap_err().is_cancelled());
}

fn a_local_tasks_destructor_may_spawn_local() {
    let rt = current_thread();
    let l = LocalSet::new();
    let log = Log::new();
    let lg = log.clone();
    l.block_on(&rt, async {
        spawn_local(async move {
            let _g = defer(move || {
                let g = lg.on_drop("spawned in drop");
                let h = spawn_local(async move { drop(g) });
                lg.add(format!("finished at once: {}", h.is_finished()));
            });
            std::future::pending::<()>().await
        });
        yield_now().await;
    });
    println!("{}", caught(move || drop(l)));
    println!("{:?}", log.take());
}

fn spawn_local_goes_to_the_innermost_set() {
    let rt = current_thread();
    rt.block_on(async {
        let outer = LocalSet::new();
        let log = Log::new();
        let lg = log.clone();
        outer
            .run_until(async {
                let inner = LocalSet::new();
                let l2 = lg.clone();
                inner
                    .run_until(
                        async move { spawn_local(async move { l2.add("inner") }).await.unwrap() },
                    )
                    .await;
                let l2 = lg.clone();
                let h = inner
                    .run_until(async move {
                        spawn_local(async move {
                            yield_now().await;
                            l2.add("inner late")
                        })
                    })
                    .await;
                drop(inner);
                println!("{}", h.await.unwrap_err().is_cancelled());
                let l2 = lg.clone();
                spawn_local(async move { l2.add("outer") }).await.unwrap();
            })
            .await;
        println!("{:?}", log.take());
    });
}

fn local_set_enter_sets_where_spawn_local_goes() {
    let rt = current_thread();
    let l = LocalSet::new();
    let h = {
        let _g = l.enter();
        spawn_local(async { 3 })
    };
    println!("{}", caught(|| drop(spawn_local(async {}))));
    println!("{}", l.block_on(&rt, h).unwrap());
}

fn spawn_inside_a_local_set_goes_to_the_runtime() {
    let rt = current_thread();
    let l = LocalSet::new();
    l.block_on(&rt, async {
        let h = tokio::spawn(async {
            quiet();
            caught(|| drop(spawn_local(async {})))
        });
        println!("{}", h.await.unwrap());
        println!(
            "{}",
            spawn_local(async { spawn_local(async { 4 }).await.unwrap() }).await.unwrap()
        );
        println!("{}", spawn_blocking(|| caught(|| drop(spawn_local(async {})))).await.unwrap());
    });
}

fn block_in_place_inside_a_local_set_panics() {
    let rt = multi_thread(2);
    let l = LocalSet::new();
    println!("{}", caught(|| l.block_on(&rt, async { block_in_place(|| 1) })));
    println!(
        "{}",
        caught(|| l.block_on(&rt, async {
            spawn_local(async { block_in_place(|| 1) }).await.map_err(|e| show(&e))
        }))
    );
    println!(
        "{}",
        caught(|| l.block_on(&rt, async {
            tokio::spawn(async { block_in_place(|| 1) }).await.map_err(|e| show(&e))
        }))
    );
}

fn local_tasks_panic_alone() {
    quiet();
    let rt = current_thread();
    let l = LocalSet::new();
    l.block_on(&rt, async {
        let h = spawn_local(async { panic!("local") });
        println!("{}", show(&h.await.unwrap_err()));
        println!("{}", spawn_local(async { 1 }).await.unwrap());
    });
}

fn a_local_set_on_a_multi_thread_runtime_stays_on_its_thread() {
    let rt = multi_thread(4);
    let l = LocalSet::new();
    l.block_on(&rt, async {
        let me = std::thread::current().id();
        let mut ok = true;
        for _ in 0..30 {
            ok &= spawn_local(async move {
                tokio::spawn(async {}).await.unwrap();
                yield_now().await;
                std::thread::current().id() == me
            })
            .await
            .unwrap();
        }
        println!("{ok}");
    });
}

fn local_tasks_run_in_the_order_they_were_spawned() {
    let rt = current_thread();
    let l = LocalSet::new();
    let v = Rc::new(RefCell::new(vec![]));
    let w = v.clone();
    l.block_on(&rt, async move {
        let hs: Vec<_> = (0..6)
            .map(|i| {
                let w = w.clone();
                spawn_local(async move { w.borrow_mut().push(i) })
            })
            .collect();
        for h in hs {
            h.await.unwrap();
        }
    });
    println!("{:?}", v.borrow());
}

// Blocking.

fn spawn_blocking_results_and_panics() {
    quiet();
    for rt in [current_thread(), multi_thread(1)] {
        rt.block_on(async {
            println!("{:?}", spawn_blocking(|| 5).await.unwrap());
            println!("{}", show(&spawn_blocking(|| panic!("b")).await.unwrap_err()));
            println!(
                "{:?}",
                spawn_blocking(|| std::thread::current().name().map(String::from)).await.unwrap()
            );
            println!(
                "{:?}",
                spawn_blocking(|| tokio::runtime::Handle::try_current().is_ok()).await.unwrap()
            );
            println!(
                "{:?}",
                spawn_blocking(|| tokio::runtime::Handle::current()
                    .block_on(async { tokio::spawn(async { 6 }).await.unwrap() }))
                .await
                .unwrap()
            );
        });
    }
}

fn a_running_blocking_task_cannot_be_aborted() {
    current_thread().block_on(async {
        let (tx, rx) = std::sync::mpsc::channel::<()>();
        let (stx, srx) = oneshot::channel();
        let h = spawn_blocking(move || {
            stx.send(()).unwrap();
            rx.recv().unwrap();
            8
        });
        srx.await.unwrap();
        h.abort();
        println!("{}", h.is_finished());
        tx.send(()).unwrap();
        println!("{:?}", h.await.map_err(|e| show(&e)));
    });
}

fn a_queued_blocking_task_can_be_aborted() {
    let rt = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    rt.block_on(async {
        let log = Log::new();
        let (tx, rx) = std::sync::mpsc::channel::<()>();
        let first = spawn_blocking(move || rx.recv().unwrap());
        let g = log.on_drop("closure");
        let l = log.clone();
        let second = spawn_blocking(move || {
            let _g = g;
            l.add("ran")
        });
        second.abort();
        yield_now().await;
        println!("{} {:?}", second.is_finished(), log.take());
        tx.send(()).unwrap();
        first.await.unwrap();
        println!("{}", show(&second.await.unwrap_err()));
        println!("{:?}", log.take());
    });
}

fn blocking_tasks_of_one_thread_run_in_order() {
    let rt = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(1)
        .build()
        .unwrap();
    rt.block_on(async {
        let log = Log::new();
        let hs: Vec<_> = (0..8)
            .map(|i| {
                let l = log.clone();
                spawn_blocking(move || l.add(i.to_string()))
            })
            .collect();
        for h in hs {
            h.await.unwrap();
        }
        println!("{:?}", log.take());
    });
}

fn block_in_place_where_it_may_and_where_not() {
    println!("{}", caught(|| block_in_place(|| 1)));
    println!("{}", caught(|| current_thread().block_on(async { block_in_place(|| 2) })));
    println!(
        "{}",
        caught(|| current_thread().block_on(async {
            tokio::spawn(async { block_in_place(|| 3) }).await.map_err(|e| show(&e))
        }))
    );
    println!("{}", caught(|| multi_thread(1).block_on(async { block_in_place(|| 4) })));
    println!(
        "{}",
        caught(|| multi_thread(1).block_on(async {
            tokio::spawn(async { block_in_place(|| 5) }).await.map_err(|e| show(&e))
        }))
    );
    println!(
        "{}",
        caught(|| multi_thread(1).block_on(async {
            tokio::spawn(async { block_in_place(|| block_in_place(|| 6)) })
                .await
                .map_err(|e| show(&e))
        }))
    );
    println!(
        "{}",
        caught(|| current_thread().block_on(async {
            spawn_blocking(|| block_in_place(|| 7)).await.map_err(|e| show(&e))
        }))
    );
}

fn block_in_place_may_block_on() {
    multi_thread(1).block_on(async {
        let r = tokio::spawn(async {
            block_in_place(|| {
                tokio::runtime::Handle::current().block_on(async {
                    yield_now().await;
                    tokio::spawn(async { 11 }).await.unwrap()
                })
            })
        });
        println!("{}", r.await.unwrap());
        println!(
            "{}",
            block_in_place(|| tokio::runtime::Handle::current()
                .block_on(async { tokio::spawn(async { 12 }).await.unwrap() }))
        );
    });
}

fn a_panic_in_block_in_place_is_the_tasks() {
    quiet();
    multi_thread(2).block_on(async {
        let h = tokio::spawn(async { block_in_place(|| panic!("placed")) });
        println!("{}", show(&h.await.unwrap_err()));
        println!("{}", tokio::spawn(async { 1 }).await.unwrap());
        let h = tokio::spawn(async {
            let r = std::panic::catch_unwind(|| block_in_place(|| panic!("caught")));
            yield_now().await;
            r.is_err()
        });
        println!("{}", h.await.unwrap());
    });
}

fn other_tasks_run_while_one_blocks_in_place() {
    multi_thread(1).block_on(async {
        let (tx, rx) = std::sync::mpsc::channel();
        let h = tokio::spawn(async move {
            tokio::spawn(async move { tx.send(4).unwrap() });
            block_in_place(|| rx.recv().unwrap())
        });
        println!("{}", h.await.unwrap());
    });
}

// Ids.

fn task_ids() {
    let rt = current_thread();
    println!(
        "{}",
        caught(|| {
            task::id();
        })
    );
    println!("{:?}", task::try_id());
    rt.block_on(async {
        println!("{:?}", task::try_id());
        println!(
            "{}",
            caught(|| {
                task::id();
            })
        );
        let h = tokio::spawn(async { task::id() });
        let hid = h.id();
        println!("{}", h.await.unwrap() == hid);
        let h = spawn_blocking(task::id);
        let hid = h.id();
        println!("{}", h.await.unwrap() == hid);
        let h =
            tokio::spawn(async { (task::id(), tokio::spawn(async { task::id() }).await.unwrap()) });
        let (a, b) = h.await.unwrap();
        println!("{}", a != b);
        let ids: std::collections::HashSet<_> =
            (0..100).map(|_| tokio::spawn(async {}).id()).collect();
        println!("{}", ids.len());
    });
    println!("{}", multi_thread(1).block_on(async { task::try_id().is_none() }));
}

fn the_task_id_is_there_in_the_destructor() {
    current_thread().block_on(async {
        let (tx, rx) = oneshot::channel();
        let h = tokio::spawn(async move {
            let _g = defer(move || tx.send(task::try_id()).unwrap());
            std::future::pending::<()>().await
        });
        yield_now().await;
        let id = h.id();
        h.abort();
        println!("{}", rx.await.unwrap() == Some(id));
        println!("{:?}", task::try_id());
    });
}

fn block_in_place_and_nested_block_on_keep_or_hide_the_id() {
    multi_thread(1).block_on(async {
        let h = tokio::spawn(async {
            let me = task::id();
            block_in_place(|| {
                let in_place = task::try_id() == Some(me);
                let nested = tokio::runtime::Handle::current()
                    .block_on(async { task::try_id() == Some(me) });
                (in_place, nested, task::try_id() == Some(me))
            })
        });
        println!("{:?}", h.await.unwrap());
    });
}

// Task-locals.

tokio::task_local! {
    static KEY: u32;
    static TEXT: String;
    static CELL: RefCell<u32>;
}

fn task_locals_errors() {
    println!("{}", caught(|| KEY.with(|v| *v)));
    println!("{}", caught(|| KEY.get()));
    let e = KEY.try_with(|v| *v).unwrap_err();
    println!("{e} | {e:?}");
    println!("{:?}", KEY.try_get());
}

fn task_locals_scopes_nest() {
    current_thread().block_on(KEY.scope(1, async {
        println!("{}", KEY.get());
        KEY.scope(2, async {
            println!("{}", KEY.get());
            yield_now().await;
            println!("{}", KEY.get());
        })
        .await;
        println!("{} {}", KEY.get(), KEY.sync_scope(3, || KEY.get()));
        println!("{}", KEY.get());
    }));
    println!("{:?}", KEY.try_get());
}

fn task_locals_are_not_inherited() {
    current_thread().block_on(KEY.scope(1, async {
        println!("{:?}", tokio::spawn(async { KEY.try_get() }).await.unwrap());
        println!("{:?}", spawn_blocking(|| KEY.try_get()).await.unwrap());
        println!("{:?}", tokio::spawn(KEY.scope(5, async { KEY.try_get() })).await.unwrap());
    }));
}

fn task_locals_keep_tasks_apart() {
    current_thread().block_on(async {
        let hs: Vec<_> = (0..3u32)
            .map(|i| {
                tokio::spawn(KEY.scope(i, async move {
                    let mut ok = true;
                    for _ in 0..5 {
                        ok &= KEY.get() == i;
                        yield_now().await;
                    }
                    ok
                }))
            })
            .collect();
        for h in hs {
            println!("{}", h.await.unwrap());
        }
    });
}

fn task_locals_are_there_when_the_future_is_dropped() {
    let log = Log::new();
    let l = log.clone();
    let mut f = Box::pin(KEY.scope(9, async move {
        let _g = defer(move || l.add(format!("{:?}", KEY.try_get())));
        std::future::pending::<()>().await
    }));
    println!("{:?}", f.as_mut().now_or_never());
    drop(f);
    println!("{:?}", log.take());
    current_thread().block_on(async {
        let l = log.clone();
        let h = tokio::spawn(KEY.scope(10, async move {
            let _g = defer(move || l.add(format!("{:?}", KEY.try_get())));
            std::future::pending::<()>().await
        }));
        yield_now().await;
        h.abort();
        let _ = h.await;
    });
    println!("{:?}", log.take());
}

fn task_locals_take_value_and_poll_after_the_end() {
    let mut f = Box::pin(TEXT.scope("v".to_string(), async { TEXT.with(|t| t.len()) }));
    println!("{:?}", f.as_mut().now_or_never());
    println!("{}", caught(|| f.as_mut().now_or_never()));
    println!("{:?} {:?}", f.as_mut().take_value(), f.as_mut().take_value());
    let mut f =
        Box::pin(TEXT.scope("w".to_string(), async { TEXT.try_with(|t| t.len()).is_err() }));
    println!("{:?}", f.as_mut().take_value());
    println!("{:?}", f.as_mut().now_or_never());
}

fn task_locals_a_panic_in_a_scope_restores_the_outer_value() {
    KEY.sync_scope(1, || {
        println!("{}", caught(|| KEY.sync_scope(2, || panic!("in {}", KEY.get()))));
        println!("{}", KEY.get());
    });
    println!("{}", KEY.try_get().is_err());
}

fn task_locals_a_scope_entered_while_borrowed_panics() {
    println!(
        "{}",
        CELL.sync_scope(RefCell::new(1), || {
            caught(|| {
                CELL.with(|c| {
                    *c.borrow_mut() += 1;
                    CELL.sync_scope(RefCell::new(5), || CELL.with(|c| *c.borrow()))
                })
            })
        })
    );
}

// Yield, coop.

fn yield_now_lets_every_ready_task_go_first() {
    current_thread().block_on(async {
        let log = Log::new();
        for i in 0..10 {
            let l = log.clone();
            tokio::spawn(async move { l.add(i.to_string()) });
        }
        yield_now().await;
        println!("{:?}", log.take());
    });
}

fn yield_now_outside_a_runtime_wakes_at_once() {
    let mut f = Fut::new(yield_now());
    println!("{} {} {}", f.ready(), f.wakes(), f.ready());
}

fn a_task_yields_after_128_receives() {
    for rt in [current_thread(), multi_thread(1)] {
        rt.block_on(async {
            let (tx, mut rx) = mpsc::unbounded_channel();
            for i in 0..1000u32 {
                tx.send(i).unwrap();
            }
            drop(tx);
            let (f, n) = polls(async move {
                let mut k = 0;
                while rx.recv().await.is_some() {
                    k += 1;
                }
                k
            });
            println!("{} {}", tokio::spawn(f).await.unwrap(), n.load(SeqCst));
        });
    }
}

fn the_future_of_block_on_yields_too() {
    for rt in [current_thread(), multi_thread(1)] {
        let (tx, mut rx) = mpsc::channel(512);
        for i in 0..512u32 {
            tx.try_send(i).unwrap();
        }
        drop(tx);
        let (f, n) = polls(async move {
            let mut k = 0;
            while rx.recv().await.is_some() {
                k += 1;
            }
            k
        });
        println!("{} {}", rt.block_on(f), n.load(SeqCst));
    }
}

fn unconstrained_does_not_yield() {
    current_thread().block_on(async {
        let (tx, mut rx) = mpsc::unbounded_channel();
        for i in 0..1000u32 {
            tx.send(i).unwrap();
        }
        drop(tx);
        let (f, n) = polls(task::unconstrained(async move {
            let mut k = 0;
            while rx.recv().await.is_some() {
                k += 1;
            }
            (k, coop::has_budget_remaining())
        }));
        println!("{:?} {}", tokio::spawn(f).await.unwrap(), n.load(SeqCst));
    });
}

fn consume_budget_yields_after_128() {
    current_thread().block_on(async {
        let (f, n) = polls(async {
            for _ in 0..128 {
                task::consume_budget().await;
            }
            let left = coop::has_budget_remaining();
            task::consume_budget().await;
            (left, coop::has_budget_remaining())
        });
        println!("{:?} {}", tokio::spawn(f).await.unwrap(), n.load(SeqCst));
        println!("{}", task::consume_budget().now_or_never().is_some());
    });
    println!(
        "outside {} {:?}",
        coop::has_budget_remaining(),
        (0..1000).all(|_| task::consume_budget().now_or_never().is_some())
    );
}

fn pending_operations_give_their_budget_back() {
    current_thread().block_on(async {
        tokio::spawn(async {
            let (_tx, mut rx) = mpsc::channel::<u8>(1);
            for _ in 0..500 {
                assert!(rx.recv().now_or_never().is_none());
            }
            println!("{}", coop::has_budget_remaining());
            let s = Semaphore::new(1);
            for _ in 0..127 {
                drop(s.acquire().now_or_never().unwrap());
            }
            println!("{}", coop::has_budget_remaining());
            println!("{}", s.acquire().now_or_never().is_some());
            println!("{} {}", coop::has_budget_remaining(), s.acquire().now_or_never().is_some());
            println!("{} {}", s.available_permits(), s.try_acquire().is_ok());
            yield_now().await;
            println!("{} {}", coop::has_budget_remaining(), s.acquire().now_or_never().is_some());
        })
        .await
        .unwrap();
    });
}

fn what_takes_budget() {
    async fn left<F: Future>(mut make: impl FnMut() -> F) -> usize {
        yield_now().await;
        let mut n = 0;
        while coop::has_budget_remaining() && n < 1000 {
            if make().now_or_never().is_none() {
                break;
            }
            n += 1;
        }
        n
    }
    paused().block_on(async {
        tokio::spawn(async {
            let (tx, _rx) = mpsc::channel::<u8>(10_000);
            println!("send {}", left(|| tx.send(1)).await);
            let (utx, mut urx) = mpsc::unbounded_channel::<u8>();
            for _ in 0..2000 {
                utx.send(1).unwrap();
            }
            println!(
                "recv {}",
                left(|| poll_fn(|cx| urx.poll_recv(cx))
                    .map(|_| ())
                    .now_or_never()
                    .map(std::future::ready)
                    .unwrap_or(std::future::ready(())))
                .await
            );
            let m = tokio::sync::Mutex::new(());
            println!("mutex {}", left(|| m.lock()).await);
            let l = tokio::sync::RwLock::new(());
            println!("rwlock {}", left(|| l.read()).await);
            println!(
                "oneshot {}",
                left(|| {
                    let (t, r) = oneshot::channel();
                    t.send(()).unwrap();
                    r
                })
                .await
            );
            let (wtx, wrx) = tokio::sync::watch::channel(0);
            println!(
                "watch {}",
                left(|| {
                    let mut r = wrx.clone();
                    r.mark_changed();
                    async move { r.changed().await.unwrap() }
                })
                .await
            );
            drop(wtx);
            let n = Notify::new();
            println!(
                "notify {}",
                left(|| {
                    n.notify_one();
                    n.notified()
                })
                .await
            );
            println!("sleep {}", left(|| tokio::time::sleep(Duration::ZERO)).await);
            println!("cooperative {}", left(|| coop::cooperative(async {})).await);
            println!("ready {}", left(|| std::future::ready(())).await);
        })
        .await
        .unwrap();
    });
}

fn a_future_that_used_up_its_budget_is_woken() {
    current_thread().block_on(async {
        tokio::spawn(async {
            let s = Semaphore::new(1000);
            while coop::has_budget_remaining() {
                s.acquire().now_or_never().unwrap().unwrap().forget();
            }
            let (c, w) = counter();
            let mut f = Box::pin(coop::cooperative(async { 1 }));
            println!("{}", f.as_mut().poll(&mut Context::from_waker(&w)).is_pending());
            yield_now().await;
            println!("{}", c.get());
            println!("{:?}", f.as_mut().poll(&mut Context::from_waker(&w)));
        })
        .await
        .unwrap();
    });
}

fn a_fifo_lock_order_survives_budget_exhaustion() {
    current_thread().block_on(async {
        tokio::spawn(async {
            let m = tokio::sync::Mutex::new(());
            for _ in 0..128 {
                drop(m.lock().await);
            }
            let mut a = Box::pin(m.lock());
            println!(
                "{} left {}",
                futures_util::poll!(a.as_mut()).is_ready(),
                coop::has_budget_remaining()
            );
            println!("free {}", m.try_lock().is_ok());
            yield_now().await;
            println!("{}", futures_util::poll!(a.as_mut()).is_ready());
        })
        .await
        .unwrap();
    });
}

fn join_handles_and_select_share_the_budget_with_others() {
    current_thread().block_on(async {
        // a select loop over an always ready channel still lets a sibling in
        let (tx, mut rx) = mpsc::unbounded_channel::<()>();
        for _ in 0..10_000 {
            tx.send(()).unwrap();
        }
        let flag = Arc::new(AtomicBool::new(false));
        let f2 = flag.clone();
        let h = tokio::spawn(async move {
            let mut n = 0;
            while !f2.load(SeqCst) {
                tokio::select! {
                    biased;
                    _ = rx.recv() => n += 1,
                }
            }
            n
        });
        let f3 = flag.clone();
        tokio::spawn(async move { f3.store(true, SeqCst) });
        println!("{}", h.await.unwrap());
    });
}

// Macros.

fn join_macro_polls_all_and_keeps_order() {
    current_thread().block_on(async {
        let log = Log::new();
        let f = |n: &'static str, k: usize| {
            let l = log.clone();
            async move {
                for _ in 0..k {
                    yield_now().await;
                }
                l.add(n);
                n
            }
        };
        println!("{:?}", tokio::join!(f("a", 2), f("b", 0), f("c", 1)));
        println!("{:?}", log.take());
        println!("{:?}", tokio::try_join!(async { Ok::<_, u8>(1) }, async { Ok::<_, u8>("x") }));
        let r: Result<((), ()), u8> =
            tokio::try_join!(std::future::pending::<Result<(), u8>>(), async { Err(3) });
        println!("{r:?}");
    });
}

fn select_macro_else_and_disabled_branches() {
    let rt = current_thread();
    rt.block_on(async {
        let r = tokio::select! {
            Some(x) = async { None::<u8> } => x,
            else => 99,
        };
        println!("{r}");
        let on = false;
        let r = tokio::select! {
            _ = async {}, if on => 1,
            _ = async { yield_now().await } => 2,
        };
        println!("{r}");
        let log = Log::new();
        let g = log.on_drop("loser");
        let r = tokio::select! {
            biased;
            _ = async { yield_now().await } => "winner",
            _ = async move { let _g = g; std::future::pending::<()>().await } => "loser",
        };
        println!("{r} {:?}", log.take());
    });
    println!(
        "{}",
        caught(|| rt.block_on(async {
            tokio::select! {
                Some(x) = async { None::<u8> } => x,
            }
        }))
    );
}

pub const CASES: &[(&str, fn())] = &[
    ("spawn_outside_a_runtime_panics", spawn_outside_a_runtime_panics),
    (
        "a_spawned_task_does_not_run_before_the_spawner_yields_on_current_thread",
        a_spawned_task_does_not_run_before_the_spawner_yields_on_current_thread,
    ),
    (
        "a_task_spawned_from_outside_block_on_waits_for_it",
        a_task_spawned_from_outside_block_on_waits_for_it,
    ),
    ("join_errors_print", join_errors_print),
    ("into_panic_gives_the_payload", into_panic_gives_the_payload),
    ("join_errors_become_io_errors", join_errors_become_io_errors),
    ("a_join_handle_polled_after_completion_panics", a_join_handle_polled_after_completion_panics),
    ("a_dropped_join_handle_detaches", a_dropped_join_handle_detaches),
    ("is_finished_follows_the_task", is_finished_follows_the_task),
    (
        "the_destructor_has_run_before_the_task_is_finished",
        the_destructor_has_run_before_the_task_is_finished,
    ),
    ("a_join_handles_last_waker_is_woken_once", a_join_handles_last_waker_is_woken_once),
    (
        "a_waker_that_panics_when_the_task_ends_harms_nothing_else",
        a_waker_that_panics_when_the_task_ends_harms_nothing_else,
    ),
    ("big_futures_can_be_spawned", big_futures_can_be_spawned),
    ("wakes_during_a_poll_make_one_more_poll", wakes_during_a_poll_make_one_more_poll),
    ("wakes_before_a_poll_make_one_poll", wakes_before_a_poll_make_one_poll),
    ("wakers_of_one_task_will_wake_each_other", wakers_of_one_task_will_wake_each_other),
    ("a_panic_in_one_task_leaves_the_others_alone", a_panic_in_one_task_leaves_the_others_alone),
    (
        "a_task_aborted_before_its_first_poll_never_runs",
        a_task_aborted_before_its_first_poll_never_runs,
    ),
    ("abort_after_completion_keeps_the_value", abort_after_completion_keeps_the_value),
    (
        "an_aborted_task_drops_its_locals_in_reverse_order",
        an_aborted_task_drops_its_locals_in_reverse_order,
    ),
    (
        "a_task_that_aborts_itself_ends_at_its_next_await",
        a_task_that_aborts_itself_ends_at_its_next_await,
    ),
    ("a_ready_await_does_not_notice_an_abort", a_ready_await_does_not_notice_an_abort),
    (
        "a_panic_in_the_drop_of_an_aborted_task_is_its_error",
        a_panic_in_the_drop_of_an_aborted_task_is_its_error,
    ),
    ("a_panic_in_the_drop_of_a_finished_future", a_panic_in_the_drop_of_a_finished_future),
    (
        "a_panic_in_the_drop_of_an_output_is_swallowed",
        a_panic_in_the_drop_of_an_output_is_swallowed,
    ),
    ("an_output_is_dropped_with_its_handle", an_output_is_dropped_with_its_handle),
    (
        "an_aborted_task_is_dropped_on_its_runtimes_thread",
        an_aborted_task_is_dropped_on_its_runtimes_thread,
    ),
    (
        "a_local_task_aborted_from_another_thread_is_dropped_at_home",
        a_local_task_aborted_from_another_thread_is_dropped_on_its_own_thread,
    ),
    ("an_aborted_waiter_gives_its_permit_on", an_aborted_waiter_gives_its_permit_on),
    ("abort_on_drop_handle_of_tokio_util", abort_on_drop_handle_of_tokio_util),
    ("join_set_basics", join_set_basics),
    ("join_set_gives_results_in_completion_order", join_set_gives_results_in_completion_order),
    ("join_set_with_ids_and_errors", join_set_with_ids_and_errors),
    (
        "join_set_abort_all_leaves_the_errors_to_be_read",
        join_set_abort_all_leaves_the_errors_to_be_read,
    ),
    ("join_set_shutdown_and_detach", join_set_shutdown_and_detach),
    ("join_set_dropped_aborts", join_set_dropped_aborts),
    ("join_set_join_all", join_set_join_all),
    ("join_set_spawns_on_other_places", join_set_spawns_on_other_places),
    ("join_set_poll_join_next_wakes", join_set_poll_join_next_wakes),
    ("join_set_a_cancelled_join_next_loses_nothing", join_set_a_cancelled_join_next_loses_nothing),
    ("join_map_replaces_a_task_of_the_same_key", join_map_replaces_a_task_of_the_same_key),
    ("join_map_aborts_by_key", join_map_aborts_by_key),
    ("task_tracker_waits_for_close_and_emptiness", task_tracker_waits_for_close_and_emptiness),
    ("local_tasks_only_run_inside_their_set", local_tasks_only_run_inside_their_set),
    ("a_local_set_awaited_runs_all_its_tasks", a_local_set_awaited_runs_all_its_tasks),
    (
        "run_until_stops_at_its_future_and_goes_on_later",
        run_until_stops_at_its_future_and_goes_on_later,
    ),
    ("a_dropped_local_set_drops_its_tasks", a_dropped_local_set_drops_its_tasks),
    ("a_local_tasks_destructor_may_spawn_local", a_local_tasks_destructor_may_spawn_local),
    ("spawn_local_goes_to_the_innermost_set", spawn_local_goes_to_the_innermost_set),
    ("local_set_enter_sets_where_spawn_local_goes", local_set_enter_sets_where_spawn_local_goes),
    ("spawn_inside_a_local_set_goes_to_the_runtime", spawn_inside_a_local_set_goes_to_the_runtime),
    ("block_in_place_inside_a_local_set_panics", block_in_place_inside_a_local_set_panics),
    ("local_tasks_panic_alone", local_tasks_panic_alone),
    (
        "a_local_set_on_a_multi_thread_runtime_stays_on_its_thread",
        a_local_set_on_a_multi_thread_runtime_stays_on_its_thread,
    ),
    (
        "local_tasks_run_in_the_order_they_were_spawned",
        local_tasks_run_in_the_order_they_were_spawned,
    ),
    ("spawn_blocking_results_and_panics", spawn_blocking_results_and_panics),
    ("a_running_blocking_task_cannot_be_aborted", a_running_blocking_task_cannot_be_aborted),
    ("a_queued_blocking_task_can_be_aborted", a_queued_blocking_task_can_be_aborted),
    ("blocking_tasks_of_one_thread_run_in_order", blocking_tasks_of_one_thread_run_in_order),
    ("block_in_place_where_it_may_and_where_not", block_in_place_where_it_may_and_where_not),
    ("block_in_place_may_block_on", block_in_place_may_block_on),
    ("a_panic_in_block_in_place_is_the_tasks", a_panic_in_block_in_place_is_the_tasks),
    ("other_tasks_run_while_one_blocks_in_place", other_tasks_run_while_one_blocks_in_place),
    ("task_ids", task_ids),
    ("the_task_id_is_there_in_the_destructor", the_task_id_is_there_in_the_destructor),
    (
        "block_in_place_and_nested_block_on_keep_or_hide_the_id",
        block_in_place_and_nested_block_on_keep_or_hide_the_id,
    ),
    ("task_locals_errors", task_locals_errors),
    ("task_locals_scopes_nest", task_locals_scopes_nest),
    ("task_locals_are_not_inherited", task_locals_are_not_inherited),
    ("task_locals_keep_tasks_apart", task_locals_keep_tasks_apart),
    (
        "task_locals_are_there_when_the_future_is_dropped",
        task_locals_are_there_when_the_future_is_dropped,
    ),
    (
        "task_locals_take_value_and_poll_after_the_end",
        task_locals_take_value_and_poll_after_the_end,
    ),
    (
        "task_locals_a_panic_in_a_scope_restores_the_outer_value",
        task_locals_a_panic_in_a_scope_restores_the_outer_value,
    ),
    (
        "task_locals_a_scope_entered_while_borrowed_panics",
        task_locals_a_scope_entered_while_borrowed_panics,
    ),
    ("yield_now_lets_every_ready_task_go_first", yield_now_lets_every_ready_task_go_first),
    ("yield_now_outside_a_runtime_wakes_at_once", yield_now_outside_a_runtime_wakes_at_once),
    ("a_task_yields_after_128_receives", a_task_yields_after_128_receives),
    ("the_future_of_block_on_yields_too", the_future_of_block_on_yields_too),
    ("unconstrained_does_not_yield", unconstrained_does_not_yield),
    ("consume_budget_yields_after_128", consume_budget_yields_after_128),
    ("pending_operations_give_their_budget_back", pending_operations_give_their_budget_back),
    ("what_takes_budget", what_takes_budget),
    ("a_future_that_used_up_its_budget_is_woken", a_future_that_used_up_its_budget_is_woken),
    ("a_fifo_lock_order_survives_budget_exhaustion", a_fifo_lock_order_survives_budget_exhaustion),
    (
        "join_handles_and_select_share_the_budget_with_others",
        join_handles_and_select_share_the_budget_with_others,
    ),
    ("join_macro_polls_all_and_keeps_order", join_macro_polls_all_and_keeps_order),
    ("select_macro_else_and_disabled_branches", select_macro_else_and_disabled_branches),
];
