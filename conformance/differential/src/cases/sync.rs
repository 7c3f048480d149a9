//! `tokio::sync`, and the `CancellationToken` of tokio-util.

use crate::probe::*;
use futures_util::FutureExt;
use std::error::Error as _;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{
    Barrier, Mutex, MutexGuard, Notify, OnceCell, OwnedMutexGuard, OwnedRwLockReadGuard,
    OwnedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore, SetOnce,
    broadcast, mpsc, oneshot, watch,
};
use tokio_util::sync::{CancellationToken, PollSemaphore, PollSender};

// Mpsc.

fn mpsc_a_dropped_sender_closes_the_channel_after_its_messages() {
    current_thread().block_on(async {
        let (tx, mut rx) = mpsc::channel(4);
        for i in 0..3 {
            tx.send(i).await.unwrap();
        }
        drop(tx);
        println!("{} {} {}", rx.len(), rx.is_closed(), rx.is_empty());
        for _ in 0..5 {
            println!("{:?}", rx.recv().await);
        }
    });
}

fn mpsc_channel_of_zero_or_too_many_panics() {
    println!("{}", caught(|| drop(mpsc::channel::<u8>(0))));
    println!("{}", caught(|| drop(mpsc::channel::<u8>(Semaphore::MAX_PERMITS + 1))));
    println!("{}", caught(|| mpsc::channel::<u8>(Semaphore::MAX_PERMITS).0.capacity()));
}

fn mpsc_error_types_print() {
    let (tx, mut rx) = mpsc::channel::<&str>(1);
    let e = rx.try_recv().unwrap_err();
    println!("{e} | {e:?}");
    tx.try_send("a").unwrap();
    let e = tx.try_send("b").unwrap_err();
    println!("{e} | {e:?} | {:?}", e.into_inner());
    let e = tx.try_reserve().unwrap_err();
    println!("{e} | {e:?}");
    drop(rx);
    let e = tx.try_send("c").unwrap_err();
    println!("{e} | {e:?} | {:?}", e.into_inner());
    let e = tx.send("d").now_or_never().unwrap().unwrap_err();
    println!("{e} | {e:?} | {} | {:?}", e.source().is_none(), e.0);
    let e = tx.reserve().now_or_never().unwrap().unwrap_err();
    println!("{e} | {e:?}");
    let e: mpsc::error::TrySendError<&str> = mpsc::error::SendError("x").into();
    println!("{e:?}");
    let (tx, mut rx) = mpsc::unbounded_channel::<u8>();
    drop(tx);
    let e = rx.try_recv().unwrap_err();
    println!("{e} | {e:?}");
}

fn mpsc_close_lets_permits_still_send() {
    let (tx, mut rx) = mpsc::channel::<u8>(3);
    let p1 = tx.try_reserve().unwrap();
    let p2 = tx.try_reserve().unwrap();
    tx.try_send(1).unwrap();
    rx.close();
    println!("{} {}", tx.is_closed(), rx.is_closed());
    println!("{:?}", tx.try_send(9));
    println!("{:?}", rx.try_recv());
    println!("{:?}", rx.try_recv());
    println!("{:?}", rx.recv().now_or_never());
    p1.send(2);
    println!("{:?}", rx.recv().now_or_never());
    println!("{:?}", rx.recv().now_or_never());
    drop(p2);
    println!("{:?}", rx.recv().now_or_never());
    println!("{:?}", rx.try_recv());
}

fn mpsc_the_last_permit_of_a_closed_channel_wakes_the_receiver() {
    let (tx, mut rx) = mpsc::channel::<u8>(3);
    let p = tx.try_reserve().unwrap();
    let o = tx.clone().try_reserve_owned().unwrap();
    rx.close();
    let mut f = Fut::new(rx.recv());
    println!("{:?} {}", f.poll(), f.wakes());
    drop(p);
    println!("after the permit: woken {}", f.wakes() > 0);
    println!("{:?}", f.poll());
    drop(o.release());
    println!("after the owned one: woken {}", f.wakes() > 0);
    println!("{:?}", f.poll());
}

fn mpsc_a_permit_used_after_the_receiver_is_gone_keeps_its_value_until_the_end() {
    let log = Log::new();
    let (tx, rx) = mpsc::channel(2);
    let p = tx.clone().try_reserve_owned().unwrap();
    drop(rx);
    let tx2 = p.send(log.on_drop("value"));
    println!("{:?}", log.take());
    drop(tx2);
    println!("{:?}", log.take());
    drop(tx);
    println!("{:?}", log.take());
}

fn mpsc_reserve_is_fifo() {
    let (tx, mut rx) = mpsc::channel::<u8>(1);
    tx.try_send(0).unwrap();
    let mut a = Fut::new(tx.reserve());
    let mut b = Fut::new(tx.reserve());
    let mut c = Fut::new(tx.send(7));
    println!("{} {} {}", a.ready(), b.ready(), c.ready());
    rx.try_recv().unwrap();
    println!("wakes {} {} {}", a.wakes(), b.wakes(), c.wakes());
    println!("c {} b {}", c.ready(), b.ready());
    println!("try_send {:?}", tx.try_send(1));
    let Poll::Ready(Ok(p)) = a.poll() else { panic!() };
    p.send(1);
    rx.try_recv().unwrap();
    println!("wakes {} {} {}", a.wakes(), b.wakes(), c.wakes());
    drop(b);
    println!("wakes {} after b is dropped unpolled", c.wakes());
    println!("{:?} {:?}", c.poll(), rx.try_recv());
}

fn mpsc_a_reserve_cancelled_in_the_middle_is_skipped() {
    let (tx, mut rx) = mpsc::channel::<u8>(1);
    tx.try_send(0).unwrap();
    let mut a = Fut::new(tx.reserve());
    let mut b = Fut::new(tx.reserve());
    let mut c = Fut::new(tx.reserve());
    println!("{} {} {}", a.ready(), b.ready(), c.ready());
    drop(b);
    rx.try_recv().unwrap();
    println!("wakes {} {}", a.wakes(), c.wakes());
    drop(a);
    println!("c wakes {} capacity {}", c.wakes(), tx.capacity());
    println!("c {}", c.ready());
    drop(c);
    println!("capacity {}", tx.capacity());
}

fn mpsc_reserve_many_of_nothing_and_of_too_much() {
    let (tx, rx) = mpsc::channel::<u8>(2);
    println!("{:?}", tx.reserve_many(0).now_or_never().map(|r| r.map(|p| p.len())));
    println!("{:?}", tx.reserve_many(3).now_or_never().map(|r| r.map(|p| p.len())));
    println!("{:?}", tx.try_reserve_many(3).map(|p| p.len()));
    println!("{:?}", tx.try_reserve_many(0).map(|p| p.len()));
    println!("{:?}", tx.try_reserve_many(usize::MAX).map(|p| p.len()));
    println!("{:?}", tx.try_reserve_many(2).map(|p| p.len()));
    tx.try_send(1).unwrap();
    println!("{:?}", tx.try_reserve_many(2).map(|p| p.len()));
    drop(rx);
    println!("{:?}", tx.try_reserve_many(1).map(|p| p.len()));
    println!("{:?}", tx.try_reserve_many(3).map(|p| p.len()));
    println!("{:?}", tx.try_reserve_many(0).map(|p| p.len()));
    println!("{:?}", tx.reserve_many(0).now_or_never().map(|r| r.map(|p| p.len())));
}

fn mpsc_a_permit_iterator_gives_back_what_it_did_not_hand_out() {
    let (tx, mut rx) = mpsc::channel::<u8>(5);
    let mut it = tx.reserve_many(4).now_or_never().unwrap().unwrap();
    println!("{} {} {:?}", tx.capacity(), it.len(), it.size_hint());
    it.next().unwrap().send(1);
    let kept = it.next().unwrap();
    drop(it);
    println!("{} {}", tx.capacity(), rx.len());
    drop(kept);
    println!("{}", tx.capacity());
    println!("{:?} {}", rx.try_recv(), tx.capacity());
    let mut it = tx.try_reserve_many(1).unwrap();
    it.next();
    println!("{} {}", it.next().is_none(), it.next().is_none());
}

fn mpsc_reserve_many_waits_for_all_and_blocks_those_behind() {
    let (tx, mut rx) = mpsc::channel::<u8>(3);
    for i in 0..3 {
        tx.try_send(i).unwrap();
    }
    let mut many = Fut::new(tx.reserve_many(2));
    let mut one = Fut::new(tx.reserve());
    println!("{} {}", many.ready(), one.ready());
    rx.try_recv().unwrap();
    println!("{} {} capacity {} {:?}", many.wakes(), one.wakes(), tx.capacity(), tx.try_send(9));
    drop(many);
    println!("{} {}", one.wakes(), one.ready());
    println!("{}", tx.capacity());
}

fn mpsc_owned_permits_give_the_sender_back() {
    let (tx, mut rx) = mpsc::channel::<u8>(1);
    let other = tx.clone();
    let p = tx.reserve_owned().now_or_never().unwrap().unwrap();
    println!("{} {}", p.same_channel_as_sender(&other), other.capacity());
    let e = other.clone().try_reserve_owned().unwrap_err();
    println!("{e} {}", matches!(e, mpsc::error::TrySendError::Full(_)));
    println!("{}", e.into_inner().same_channel(&other));
    let tx = p.send(4);
    println!("{} {:?}", tx.same_channel(&other), rx.try_recv());
    let p = tx.try_reserve_owned().unwrap();
    let tx = p.release();
    println!("{} {:?}", tx.capacity(), rx.try_recv());
    let p = tx.try_reserve_owned().unwrap();
    drop(p);
    println!("{} strong {}", other.capacity(), other.strong_count());
    drop(rx);
    let e = other.clone().try_reserve_owned().unwrap_err();
    println!("{e} {}", matches!(e, mpsc::error::TrySendError::Closed(_)));
    let e = other.reserve_owned().now_or_never().unwrap().unwrap_err();
    println!("{e:?}");
}

fn mpsc_an_owned_permit_keeps_the_channel_open() {
    let (tx, mut rx) = mpsc::channel::<u8>(1);
    let p = tx.try_reserve_owned().unwrap();
    let mut f = Fut::new(rx.recv());
    println!("{:?}", f.poll());
    drop(p);
    println!("woken {} {:?}", f.wakes() > 0, f.poll());
}

fn mpsc_recv_many_limits() {
    let (tx, mut rx) = mpsc::channel::<u8>(8);
    let mut v = vec![100];
    println!("{:?} {v:?}", rx.recv_many(&mut v, 0).now_or_never());
    println!("{:?} {v:?}", rx.recv_many(&mut v, 3).now_or_never());
    for i in 0..5 {
        tx.try_send(i).unwrap();
    }
    println!("{:?}", rx.recv_many(&mut v, 3).now_or_never());
    println!("{v:?} {}", tx.capacity());
    println!("{:?}", rx.recv_many(&mut v, 100).now_or_never());
    println!("{v:?} {}", tx.capacity());
    tx.try_send(9).unwrap();
    drop(tx);
    println!("{:?}", rx.recv_many(&mut v, 10).now_or_never());
    println!("{:?}", rx.recv_many(&mut v, 10).now_or_never());
    println!("{:?} {v:?}", rx.recv_many(&mut v, 0).now_or_never());
}

fn mpsc_recv_many_wakes_every_waiting_sender_it_made_room_for() {
    let (tx, mut rx) = mpsc::channel::<u8>(2);
    tx.try_send(0).unwrap();
    tx.try_send(1).unwrap();
    let mut s: Vec<_> = (0..3).map(|i| Fut::new(tx.send(10 + i))).collect();
    println!("{:?}", s.iter_mut().map(|f| f.ready()).collect::<Vec<_>>());
    let mut v = vec![];
    rx.recv_many(&mut v, 10).now_or_never();
    println!("{v:?} {:?}", s.iter().map(|f| f.wakes()).collect::<Vec<_>>());
    println!("{:?}", s.iter_mut().map(|f| f.ready()).collect::<Vec<_>>());
    rx.recv_many(&mut v, 10).now_or_never();
    println!("{v:?} {:?}", s.iter().map(|f| f.wakes()).collect::<Vec<_>>());
}

fn mpsc_poll_recv_wakes_the_last_registered_waker_once() {
    let (tx, mut rx) = mpsc::unbounded_channel::<u8>();
    let (c1, w1) = counter();
    let (c2, w2) = counter();
    println!("{:?}", rx.poll_recv(&mut Context::from_waker(&w1)));
    println!("{:?}", rx.poll_recv(&mut Context::from_waker(&w2)));
    for i in 0..3 {
        tx.send(i).unwrap();
    }
    println!("{} {}", c1.get(), c2.get());
    println!("{:?}", rx.poll_recv(&mut Context::from_waker(&w1)));
    tx.send(3).unwrap();
    println!("{} {}", c1.get(), c2.get());
    let mut v = vec![];
    println!("{:?} {v:?}", rx.poll_recv_many(&mut Context::from_waker(&w1), &mut v, 2));
    println!("{:?} {v:?}", rx.poll_recv_many(&mut Context::from_waker(&w1), &mut v, 2));
    println!("{:?}", rx.poll_recv_many(&mut Context::from_waker(&w1), &mut v, 2));
    drop(tx);
    println!("{} {}", c1.get(), c2.get());
    println!("{:?}", rx.poll_recv(&mut Context::from_waker(&w1)));
}

fn mpsc_dropping_a_sender_that_is_not_the_last_wakes_no_task() {
    let (tx, mut rx) = mpsc::channel::<u8>(1);
    let tx2 = tx.clone();
    let mut f = Fut::new(rx.recv());
    println!("{:?}", f.poll());
    drop(tx);
    println!("{}", f.wakes());
    drop(tx2);
    println!("{} {:?}", f.wakes(), f.poll());
}

fn mpsc_weak_senders_do_not_keep_the_channel_open() {
    let (tx, mut rx) = mpsc::channel::<u8>(2);
    let weak = tx.downgrade();
    let weak2 = weak.clone();
    println!(
        "{} {} {} {}",
        tx.strong_count(),
        tx.weak_count(),
        weak.strong_count(),
        weak.weak_count()
    );
    println!("{} {}", rx.sender_strong_count(), rx.sender_weak_count());
    let up = weak.upgrade().unwrap();
    println!("{} {}", tx.strong_count(), tx.weak_count());
    drop(weak2);
    println!("{} {}", tx.strong_count(), tx.weak_count());
    up.try_send(1).unwrap();
    drop(up);
    drop(tx);
    println!("{} {}", weak.upgrade().is_none(), weak.strong_count());
    println!("{:?} {:?}", rx.try_recv(), rx.try_recv());
    println!("{} {}", rx.sender_strong_count(), rx.sender_weak_count());
}

fn mpsc_weak_unbounded_senders_after_the_receiver_is_gone() {
    let (tx, rx) = mpsc::unbounded_channel::<u8>();
    let weak = tx.downgrade();
    drop(rx);
    let up = weak.upgrade();
    println!("{} {:?}", up.is_some(), up.as_ref().map(|u| u.is_closed()));
    println!("{:?}", up.unwrap().send(3));
    println!("{} {}", tx.strong_count(), tx.weak_count());
    drop(tx);
    println!("{}", weak.upgrade().is_none());
}

fn mpsc_is_closed_len_and_capacity() {
    let (tx, mut rx) = mpsc::channel::<u8>(4);
    println!("{} {} {} {}", tx.capacity(), tx.max_capacity(), rx.capacity(), rx.max_capacity());
    let p = tx.try_reserve().unwrap();
    println!("{} {} {}", tx.capacity(), rx.len(), rx.is_empty());
    p.send(1);
    println!("{} {} {}", tx.capacity(), rx.len(), rx.is_empty());
    println!("{} {}", tx.is_closed(), rx.is_closed());
    rx.close();
    rx.close();
    println!("{} {} {} {}", tx.is_closed(), rx.is_closed(), rx.len(), tx.capacity());
    println!("{:?}", rx.try_recv());
    println!("{} {}", rx.len(), tx.capacity());
    println!("{:?}", rx.try_recv());
    let (tx, rx) = mpsc::channel::<u8>(1);
    drop(tx);
    println!("{} {}", rx.is_closed(), rx.len());
}

fn mpsc_closed_resolves_when_the_receiver_goes_or_closes() {
    let (tx, mut rx) = mpsc::channel::<u8>(1);
    let tx2 = tx.clone();
    let mut a = Fut::new(tx.closed());
    let mut b = Fut::new(tx2.closed());
    println!("{} {}", a.ready(), b.ready());
    rx.close();
    println!("{} {} {} {}", a.wakes(), b.wakes(), a.ready(), b.ready());
    println!("{:?}", tx.closed().now_or_never());
    let (tx, rx) = mpsc::unbounded_channel::<u8>();
    let mut a = Fut::new(tx.closed());
    println!("{}", a.ready());
    drop(rx);
    println!("{} {}", a.wakes(), a.ready());
}

fn mpsc_same_channel() {
    let (a, _ra) = mpsc::channel::<u8>(1);
    let (b, _rb) = mpsc::channel::<u8>(1);
    println!("{} {}", a.same_channel(&a.clone()), a.same_channel(&b));
    let (a, _ra) = mpsc::unbounded_channel::<u8>();
    let (b, _rb) = mpsc::unbounded_channel::<u8>();
    println!("{} {}", a.same_channel(&a.clone()), a.same_channel(&b));
}

fn mpsc_blocking_ends_work_between_threads_and_panic_in_async() {
    let (tx, mut rx) = mpsc::channel::<u8>(1);
    let t = std::thread::spawn(move || {
        for i in 0..4 {
            tx.blocking_send(i).unwrap();
        }
    });
    let mut got = vec![];
    while let Some(x) = rx.blocking_recv() {
        got.push(x);
    }
    t.join().unwrap();
    println!("{got:?}");
    let mut v = vec![];
    println!("{}", rx.blocking_recv_many(&mut v, 4));
    let (tx, mut rx) = mpsc::channel::<u8>(1);
    let rt = current_thread();
    println!("{}", caught(|| rt.block_on(async { rx.blocking_recv() })));
    println!("{}", caught(|| rt.block_on(async { tx.blocking_send(1) })));
    println!("{}", caught(|| rt.block_on(async { rx.blocking_recv_many(&mut v, 1) })));
    println!(
        "{}",
        caught(|| {
            let _e = rt.enter();
            tx.blocking_send(1)
        })
    );
    println!("{:?}", rx.blocking_recv());
    drop(rx);
    println!("{:?}", tx.blocking_send(2));
}

fn mpsc_send_timeout_errors() {
    paused().block_on(async {
        let (tx, mut rx) = mpsc::channel::<u8>(1);
        println!("{:?}", tx.send_timeout(1, Duration::from_secs(1)).await);
        let e = tx.send_timeout(2, Duration::from_secs(1)).await.unwrap_err();
        println!("{e} | {e:?} | {}", e.into_inner());
        let e = tx.send_timeout(2, Duration::ZERO).await.unwrap_err();
        println!("{e:?}");
        println!("{:?} {:?}", rx.recv().await, rx.recv().now_or_never());
        println!("{:?}", tx.send_timeout(3, Duration::ZERO).await);
        drop(rx);
        let e = tx.send_timeout(4, Duration::from_secs(1)).await.unwrap_err();
        println!("{e} | {e:?}");
    });
}

fn mpsc_a_dropped_receiver_drops_the_messages_at_once_in_order() {
    let log = Log::new();
    let (tx, rx) = mpsc::unbounded_channel();
    for i in 0..3 {
        tx.send(log.on_drop(i.to_string())).unwrap();
    }
    drop(rx);
    println!("{:?}", log.take());
    println!("{}", tx.send(log.on_drop("late")).is_err());
    println!("{:?}", log.take());
}

fn mpsc_a_dropped_receiver_fails_every_waiting_sender() {
    let (tx, rx) = mpsc::channel::<u8>(1);
    tx.try_send(0).unwrap();
    let mut s: Vec<_> = (1..4).map(|i| Fut::new(tx.send(i))).collect();
    println!("{:?}", s.iter_mut().map(|f| f.ready()).collect::<Vec<_>>());
    drop(rx);
    println!("{:?}", s.iter().map(|f| f.wakes()).collect::<Vec<_>>());
    println!("{:?}", s.iter_mut().map(|f| f.poll()).collect::<Vec<_>>());
}

fn mpsc_a_message_that_panics_when_dropped_does_not_leak_the_others() {
    struct P(u8, Log);
    impl Drop for P {
        fn drop(&mut self) {
            self.1.add(format!("{}", self.0));
            if self.0 == 1 {
                panic!("drop {}", self.0);
            }
        }
    }
    let log = Log::new();
    let (tx, rx) = mpsc::channel(8);
    for i in 0..4 {
        tx.try_send(P(i, log.clone())).ok().unwrap();
    }
    println!("{}", caught(|| drop(rx)));
    println!("{:?} capacity {}", log.take(), tx.capacity());
}

fn mpsc_a_waker_of_a_dropped_receiver_is_let_go() {
    let (tx, mut rx) = mpsc::channel::<u8>(1);
    let (c, w) = counter();
    let _ = rx.poll_recv(&mut Context::from_waker(&w));
    println!("{}", Arc::strong_count(&c));
    drop(rx);
    println!("{}", Arc::strong_count(&c));
    drop(tx);
    println!("{} wakes {}", Arc::strong_count(&c), c.get());
}

fn mpsc_receivers_are_not_waiters_when_dropped_after_a_wake() {
    let rt = current_thread();
    rt.block_on(async {
        let (tx, mut rx) = mpsc::channel::<u8>(1);
        {
            let mut f = Fut::new(rx.recv());
            println!("{:?}", f.poll());
            tx.send(5).await.unwrap();
            println!("{}", f.wakes());
        }
        println!("{:?}", rx.recv().await);
    });
}

fn mpsc_two_workers_keep_each_senders_order() {
    let rt = multi_thread(2);
    rt.block_on(async {
        let (tx, mut rx) = mpsc::channel::<(u8, u32)>(3);
        for who in 0..4 {
            let tx = tx.clone();
            tokio::spawn(async move {
                for i in 0..50 {
                    tx.send((who, i)).await.unwrap();
                }
            });
        }
        drop(tx);
        let mut next = [0u32; 4];
        let mut n = 0;
        while let Some((w, i)) = rx.recv().await {
            assert_eq!(next[w as usize], i);
            next[w as usize] += 1;
            n += 1;
        }
        println!("{n} {next:?}");
    });
}

fn mpsc_poll_sender_of_tokio_util() {
    let (tx, mut rx) = mpsc::channel::<u8>(1);
    let mut ps = PollSender::new(tx);
    let (c, w) = counter();
    let mut cx = Context::from_waker(&w);
    println!("{:?}", ps.poll_reserve(&mut cx).map(|r| r.is_ok()));
    println!("{:?}", ps.poll_reserve(&mut cx).map(|r| r.is_ok()));
    println!("{}", ps.send_item(1).is_ok());
    println!("{:?}", ps.poll_reserve(&mut cx).map(|r| r.is_ok()));
    println!("abort {} {}", ps.abort_send(), ps.abort_send());
    println!("{:?}", ps.poll_reserve(&mut cx).map(|r| r.is_ok()));
    println!("{:?} wakes {}", rx.try_recv(), c.get());
    println!("{}", caught(|| ps.send_item(2).is_ok()));
    println!("{:?}", ps.poll_reserve(&mut cx).map(|r| r.is_ok()));
    ps.close();
    println!("{} {}", ps.is_closed(), ps.get_ref().is_none());
    println!(
        "{:?} {:?}",
        ps.send_item(3).map_err(|e| (e.to_string(), e.into_inner())),
        rx.try_recv()
    );
    println!("{:?}", ps.poll_reserve(&mut cx).map(|r| r.map_err(|e| e.to_string())));
    println!("{:?}", rx.try_recv());
}

// Oneshot.

fn oneshot_errors_print() {
    let (tx, mut rx) = oneshot::channel::<u8>();
    let e = rx.try_recv().unwrap_err();
    println!("{e} | {e:?}");
    drop(tx);
    let e = rx.try_recv().unwrap_err();
    println!("{e} | {e:?}");
    println!("{}", caught(|| (&mut rx).now_or_never()));
    let (tx, rx) = oneshot::channel::<u8>();
    drop(tx);
    let e = rx.now_or_never().unwrap().unwrap_err();
    println!("{e} | {e:?}");
}

fn oneshot_polled_after_its_value_panics() {
    let (tx, mut rx) = oneshot::channel::<u8>();
    tx.send(1).unwrap();
    println!("{:?}", (&mut rx).now_or_never());
    println!("{}", rx.is_terminated());
    println!("{}", caught(|| (&mut rx).now_or_never()));
    println!("{:?} {}", rx.try_recv(), rx.is_empty());
    rx.close();
    println!("{:?}", rx.try_recv());
}

fn oneshot_polled_after_its_error_panics() {
    let (tx, mut rx) = oneshot::channel::<u8>();
    drop(tx);
    println!("{}", rx.is_terminated());
    println!("{:?}", (&mut rx).now_or_never());
    println!("{}", rx.is_terminated());
    println!("{}", caught(|| (&mut rx).now_or_never()));
}

fn oneshot_send_without_a_receiver_gives_the_value_back() {
    let (tx, rx) = oneshot::channel();
    drop(rx);
    println!("{} {:?}", tx.is_closed(), tx.send("v"));
    let (tx, mut rx) = oneshot::channel();
    rx.close();
    println!("{} {:?}", tx.is_closed(), tx.send("w"));
    println!("{:?} {}", rx.try_recv(), rx.is_terminated());
    println!("{}", caught(|| rx.now_or_never()));
}

fn oneshot_a_value_sent_before_close_is_still_there() {
    let (tx, mut rx) = oneshot::channel();
    tx.send("v").unwrap();
    println!("{} {}", rx.is_empty(), rx.is_terminated());
    rx.close();
    println!("{} {}", rx.is_empty(), rx.is_terminated());
    println!("{:?} {:?}", rx.try_recv(), rx.try_recv());
    println!("{} {}", rx.is_empty(), rx.is_terminated());
}

fn oneshot_wakes_once_for_a_value_and_once_for_a_drop() {
    let (tx, rx) = oneshot::channel::<u8>();
    let mut f = Fut::new(rx);
    println!("{:?} {:?} {}", f.poll(), f.poll(), f.wakes());
    tx.send(3).unwrap();
    println!("{} {:?} {}", f.wakes(), f.poll(), f.wakes());
    let (tx, rx) = oneshot::channel::<u8>();
    let mut f = Fut::new(rx);
    println!("{:?}", f.poll());
    drop(tx);
    println!("{} {:?}", f.wakes(), f.poll());
}

fn oneshot_the_last_waker_counts() {
    let (tx, mut rx) = oneshot::channel::<u8>();
    let (c1, w1) = counter();
    let (c2, w2) = counter();
    println!("{:?}", rx.poll_unpin_with(&w1));
    println!("{:?}", rx.poll_unpin_with(&w2));
    tx.send(1).unwrap();
    println!("{} {}", c1.get(), c2.get());
    println!("refs {} {}", Arc::strong_count(&c1), Arc::strong_count(&c2));
}

trait PollWith: std::future::Future + Unpin {
    fn poll_unpin_with(&mut self, w: &std::task::Waker) -> Poll<Self::Output> {
        std::pin::Pin::new(self).poll(&mut Context::from_waker(w))
    }
}

impl<F: std::future::Future + Unpin> PollWith for F {}

fn oneshot_sender_closed_and_poll_closed() {
    let (mut tx, mut rx) = oneshot::channel::<u8>();
    let (c, w) = counter();
    println!(
        "{:?} {:?}",
        tx.poll_closed(&mut Context::from_waker(&w)),
        tx.poll_closed(&mut Context::from_waker(&w))
    );
    rx.close();
    println!("{} {:?}", c.get(), tx.poll_closed(&mut Context::from_waker(&w)));
    println!("{:?}", tx.closed().now_or_never());
    let (mut tx, rx) = oneshot::channel::<u8>();
    let mut f = Fut::new(tx.closed());
    println!("{}", f.ready());
    drop(rx);
    println!("{} {}", f.wakes(), f.ready());
}

fn oneshot_the_receiver_drops_an_unread_value() {
    let log = Log::new();
    let (tx, rx) = oneshot::channel();
    tx.send(log.on_drop("v")).unwrap();
    println!("{:?}", log.take());
    drop(rx);
    println!("{:?}", log.take());
}

fn oneshot_blocking_recv() {
    let (tx, rx) = oneshot::channel();
    let t = std::thread::spawn(move || rx.blocking_recv());
    tx.send(8).unwrap();
    println!("{:?}", t.join().unwrap());
    let (tx, rx) = oneshot::channel::<u8>();
    drop(tx);
    println!("{:?}", rx.blocking_recv());
    let rt = multi_thread(1);
    let (_tx, rx) = oneshot::channel::<u8>();
    println!("{}", caught(|| rt.block_on(async move { rx.blocking_recv() })));
}

fn oneshot_a_sender_dropped_by_a_panicking_task_closes() {
    quiet();
    let rt = multi_thread(2);
    rt.block_on(async {
        let (tx, rx) = oneshot::channel::<u8>();
        let j = tokio::spawn(async move {
            let _tx = tx;
            tokio::task::yield_now().await;
            panic!("no value");
        });
        println!("{:?}", rx.await);
        println!("{}", j.await.unwrap_err().is_panic());
    });
}

// Broadcast.

fn broadcast_odd_capacities_panic() {
    println!("{}", caught(|| drop(broadcast::channel::<u8>(0))));
    println!("{}", caught(|| drop(broadcast::channel::<u8>((usize::MAX >> 1) + 1))));
    println!("{}", caught(|| drop(broadcast::Sender::<u8>::new(0))));
}

fn broadcast_errors_print() {
    let (tx, mut rx) = broadcast::channel::<u8>(1);
    let e = rx.try_recv().unwrap_err();
    println!("{e} | {e:?}");
    println!("{:?} {:?}", tx.send(1), tx.send(2));
    let e = rx.try_recv().unwrap_err();
    println!("{e} | {e:?}");
    tx.send(3).unwrap();
    let e = rx.recv().now_or_never().unwrap().unwrap_err();
    println!("{e} | {e:?}");
    rx.try_recv().unwrap();
    drop(rx);
    let e = tx.send(4).unwrap_err();
    println!("{e} | {e:?} | {}", e.0);
    let mut rx = tx.subscribe();
    drop(tx);
    let e = rx.try_recv().unwrap_err();
    println!("{e} | {e:?}");
    let e = rx.recv().now_or_never().unwrap().unwrap_err();
    println!("{e} | {e:?}");
}

fn broadcast_lag_counts_what_was_missed() {
    let (tx, mut rx) = broadcast::channel::<u32>(4);
    for i in 0..10 {
        tx.send(i).unwrap();
    }
    println!("{} {}", rx.len(), tx.len());
    println!("{:?}", rx.try_recv());
    println!("{} {}", rx.len(), tx.len());
    for _ in 0..5 {
        println!("{:?}", rx.try_recv());
    }
    for i in 10..14 {
        tx.send(i).unwrap();
    }
    println!("{:?} {:?}", rx.try_recv(), rx.len());
    tx.send(14).unwrap();
    tx.send(15).unwrap();
    println!("{:?} {:?}", rx.try_recv(), rx.try_recv());
}

fn broadcast_capacity_is_rounded_up_to_a_power_of_two() {
    for cap in [1, 2, 3, 5] {
        let (tx, mut rx) = broadcast::channel::<u32>(cap);
        for i in 0..20 {
            tx.send(i).unwrap();
        }
        println!("{cap}: {:?} {:?}", rx.try_recv(), rx.try_recv());
    }
}

fn broadcast_a_lagging_receiver_of_a_closed_channel_still_reads_the_rest() {
    let (tx, mut rx) = broadcast::channel::<u32>(2);
    for i in 0..5 {
        tx.send(i).unwrap();
    }
    drop(tx);
    println!("{}", rx.is_closed());
    for _ in 0..5 {
        println!("{:?}", rx.try_recv());
    }
}

fn broadcast_every_receiver_gets_every_value_sent_after_it() {
    let (tx, mut a) = broadcast::channel::<u32>(8);
    tx.send(1).unwrap();
    let mut b = tx.subscribe();
    println!("{} {} {:?}", a.len(), b.len(), tx.send(2));
    let mut c = a.resubscribe();
    tx.send(3).unwrap();
    println!("{} {} {} sender {}", a.len(), b.len(), c.len(), tx.len());
    let drain = |r: &mut broadcast::Receiver<u32>| {
        let mut v = vec![];
        while let Ok(x) = r.try_recv() {
            v.push(x)
        }
        v
    };
    println!("{:?}", drain(&mut c));
    println!("{:?}", drain(&mut b));
    println!("sender {} {}", tx.len(), tx.is_empty());
    println!("{:?}", drain(&mut a));
    println!("sender {} {}", tx.len(), tx.is_empty());
}

fn broadcast_counts_and_weak_senders() {
    let (tx, rx) = broadcast::channel::<u32>(2);
    let tx2 = tx.clone();
    let weak = tx.downgrade();
    println!("{} {} {}", tx.receiver_count(), tx.strong_count(), tx.weak_count());
    println!("{} {}", rx.sender_strong_count(), rx.sender_weak_count());
    println!("{} {}", tx.same_channel(&tx2), rx.same_channel(&rx.resubscribe()));
    let up = weak.upgrade().unwrap();
    println!("{}", up.strong_count());
    drop((tx, tx2, up));
    println!("{} {} {}", weak.upgrade().is_none(), weak.strong_count(), weak.weak_count());
    println!("{}", rx.is_closed());
}

fn broadcast_send_wakes_every_waiter_once() {
    let (tx, mut a) = broadcast::channel::<u32>(2);
    let mut b = tx.subscribe();
    let mut fa = Fut::new(a.recv());
    let mut fb = Fut::new(b.recv());
    println!("{:?} {:?}", fa.poll(), fb.poll());
    println!("{:?}", tx.send(1));
    tx.send(2).unwrap();
    println!("{} {}", fa.wakes(), fb.wakes());
    println!("{:?} {:?}", fa.poll(), fb.poll());
    drop(fa);
    let mut fa = Fut::new(a.recv());
    println!("{:?}", fa.poll());
    drop(fa);
    let mut fa = Fut::new(a.recv());
    println!("{:?}", fa.poll());
    drop(tx);
    println!("{} {:?}", fa.wakes(), fa.poll());
}

fn broadcast_sender_closed_waits_for_the_last_receiver() {
    let (tx, a) = broadcast::channel::<u32>(2);
    let b = tx.subscribe();
    let mut f = Fut::new(tx.closed());
    println!("{}", f.ready());
    drop(a);
    println!("{}", f.ready());
    drop(b);
    println!("{} {}", f.wakes() > 0, f.ready());
    let _c = tx.subscribe();
    println!("{:?}", tx.closed().now_or_never());
}

fn broadcast_values_are_dropped_when_every_receiver_has_them() {
    let log = Log::new();
    let (tx, mut a) = broadcast::channel::<Arc<OnDrop>>(4);
    let mut b = tx.subscribe();
    tx.send(Arc::new(log.on_drop("1"))).unwrap();
    tx.send(Arc::new(log.on_drop("2"))).unwrap();
    drop(a.try_recv().unwrap());
    println!("{:?}", log.take());
    drop(b.try_recv().unwrap());
    println!("{:?}", log.take());
    drop(a);
    println!("{:?}", log.take());
    drop(b);
    println!("{:?}", log.take());
    println!("{}", tx.send(Arc::new(log.on_drop("3"))).is_err());
    println!("{:?}", log.take());
}

fn broadcast_an_overwritten_value_is_dropped_by_the_sender() {
    let log = Log::new();
    let (tx, rx) = broadcast::channel::<Arc<OnDrop>>(2);
    for i in 0..3 {
        tx.send(Arc::new(log.on_drop(i.to_string()))).unwrap();
        println!("{:?}", log.take());
    }
    drop(rx);
    println!("{:?}", log.take());
}

fn broadcast_blocking_recv_and_its_panic() {
    let (tx, mut rx) = broadcast::channel::<u8>(2);
    tx.send(1).unwrap();
    println!("{:?}", rx.blocking_recv());
    let rt = current_thread();
    println!("{}", caught(|| rt.block_on(async { rx.blocking_recv() })));
    let t = std::thread::spawn(move || (rx.blocking_recv(), rx.blocking_recv()));
    tx.send(2).unwrap();
    drop(tx);
    println!("{:?}", t.join().unwrap());
}

fn broadcast_resubscribe_to_a_closed_channel() {
    let (tx, rx) = broadcast::channel::<u8>(2);
    tx.send(1).unwrap();
    drop(tx);
    let mut r2 = rx.resubscribe();
    println!("{:?} {}", r2.try_recv(), r2.is_closed());
    let mut rx = rx;
    println!("{:?} {:?}", rx.try_recv(), rx.try_recv());
}

// Watch.

fn watch_the_first_value_counts_as_seen() {
    let (tx, mut rx) = watch::channel(1);
    println!("{:?} {:?} {}", rx.has_changed(), rx.changed().now_or_never(), *rx.borrow());
    tx.send(2).unwrap();
    println!("{:?} {}", rx.has_changed(), *rx.borrow());
    println!("{:?} {:?}", rx.has_changed(), rx.changed().now_or_never());
    println!("{:?} {:?}", rx.has_changed(), rx.changed().now_or_never());
    tx.send(3).unwrap();
    let v = *rx.borrow_and_update();
    println!("{v} {:?}", rx.has_changed());
    tx.send(3).unwrap();
    println!("equal values count: {:?}", rx.has_changed());
}

fn watch_errors_print() {
    let (tx, mut rx) = watch::channel(1);
    drop(tx);
    let e = rx.changed().now_or_never().unwrap().unwrap_err();
    println!("{e} | {e:?}");
    let e = rx.has_changed().unwrap_err();
    println!("{e} | {e:?}");
    let (tx, rx) = watch::channel(1);
    drop(rx);
    let e = tx.send(5).unwrap_err();
    println!("{e} | {e:?} | {}", e.0);
    println!("{}", *tx.borrow());
}

fn watch_the_last_value_of_a_dropped_sender_is_still_a_change() {
    let (tx, mut rx) = watch::channel(1);
    tx.send(2).unwrap();
    drop(tx);
    println!("{:?}", rx.has_changed());
    println!("{:?} {}", rx.changed().now_or_never(), *rx.borrow());
    println!("{:?}", rx.changed().now_or_never());
    println!("{}", rx.is_closed());
}

fn watch_send_if_modified_wakes_only_on_true() {
    let (tx, mut rx) = watch::channel(1);
    let mut f = Fut::new(rx.changed());
    println!("{:?}", f.poll());
    println!(
        "{}",
        tx.send_if_modified(|v| {
            *v = 5;
            false
        })
    );
    println!("{} {} {:?}", f.wakes(), *tx.borrow(), f.poll());
    println!(
        "{}",
        tx.send_if_modified(|v| {
            *v = 6;
            true
        })
    );
    println!("{} {:?}", f.wakes(), f.poll());
    drop(f);
    println!("{:?} {}", rx.has_changed(), *rx.borrow());
    tx.send_modify(|v| *v += 1);
    println!("{:?} {}", rx.has_changed(), *rx.borrow());
    println!("{}", tx.send_replace(20));
    println!("{}", *rx.borrow());
}

fn watch_a_panic_in_modify_keeps_the_lock_usable() {
    let (tx, mut rx) = watch::channel(1);
    println!(
        "{}",
        caught(|| tx.send_modify(|v| {
            *v = 9;
            panic!("in modify")
        }))
    );
    let v = *rx.borrow();
    println!("{v} {:?} {:?}", rx.has_changed(), rx.changed().now_or_never());
    println!("{:?} {:?}", tx.send(10), rx.has_changed());
    println!("{}", caught(|| tx.send_if_modified(|_| panic!("in if_modified"))));
    println!("{}", *rx.borrow_and_update());
}

fn watch_send_replace_works_without_receivers() {
    let tx = watch::Sender::new("a");
    println!("{} {}", tx.receiver_count(), tx.is_closed());
    println!("{:?} {}", tx.send("b"), *tx.borrow());
    println!("{} {}", tx.send_replace("c"), *tx.borrow());
    tx.send_modify(|v| *v = "d");
    println!(
        "{}",
        tx.send_if_modified(|v| {
            *v = "e";
            true
        })
    );
    let mut rx = tx.subscribe();
    let v = *rx.borrow();
    println!("{v} {:?} {:?}", rx.has_changed(), rx.changed().now_or_never());
    println!("{} {}", tx.receiver_count(), tx.is_closed());
}

fn watch_mark_changed_and_unchanged() {
    let (tx, mut rx) = watch::channel(1);
    rx.mark_changed();
    println!("{:?} {:?} {:?}", rx.has_changed(), rx.changed().now_or_never(), rx.has_changed());
    tx.send(2).unwrap();
    rx.mark_unchanged();
    println!("{:?} {:?}", rx.has_changed(), rx.changed().now_or_never());
    rx.mark_changed();
    let mut c = rx.clone();
    println!("{:?} {:?}", c.has_changed(), c.changed().now_or_never());
    println!("{:?}", rx.has_changed());
    drop(tx);
    println!(
        "{:?} {:?} {:?}",
        rx.has_changed(),
        rx.changed().now_or_never(),
        rx.changed().now_or_never()
    );
}

fn watch_wait_for() {
    let (tx, mut rx) = watch::channel(1);
    println!("{:?}", rx.wait_for(|v| *v == 1).now_or_never().map(|r| r.map(|v| *v)));
    let mut f = Fut::new(async { rx.wait_for(|v| *v > 4).await.map(|v| *v) });
    println!("{:?}", f.poll());
    tx.send(3).unwrap();
    println!("{} {:?}", f.wakes(), f.poll());
    tx.send(5).unwrap();
    println!("{} {:?}", f.wakes(), f.poll());
    drop(f);
    println!("{:?}", rx.has_changed());
    tx.send(7).unwrap();
    drop(tx);
    println!("{:?}", rx.wait_for(|v| *v == 7).now_or_never().map(|r| r.map(|v| *v)));
    println!("{:?}", rx.wait_for(|v| *v == 8).now_or_never().map(|r| r.map(|v| *v)));
    println!("{:?}", rx.wait_for(|v| *v == 7).now_or_never().map(|r| r.map(|v| *v)));
}

fn watch_a_panicking_predicate_does_not_poison() {
    let (tx, mut rx) = watch::channel(1);
    println!(
        "{}",
        caught(|| rx.wait_for(|_| panic!("predicate")).now_or_never().map(|r| r.map(|v| *v)))
    );
    println!("{:?} {}", tx.send(2), *rx.borrow_and_update());
}

fn watch_refs_know_whether_they_changed() {
    let (tx, mut rx) = watch::channel(1);
    println!("{}", rx.borrow().has_changed());
    tx.send(2).unwrap();
    println!("{} {}", rx.borrow().has_changed(), rx.borrow().has_changed());
    println!("{}", rx.borrow_and_update().has_changed());
    println!("{} {}", rx.borrow().has_changed(), tx.borrow().has_changed());
}

fn watch_closed_and_counts() {
    let (tx, rx) = watch::channel(1);
    let tx2 = tx.clone();
    let rx2 = rx.clone();
    println!("{} {} {}", tx.receiver_count(), tx.sender_count(), tx.same_channel(&tx2));
    println!("{}", rx.same_channel(&rx2));
    let mut f = Fut::new(tx.closed());
    println!("{}", f.ready());
    drop(rx);
    println!("{} {}", f.wakes(), f.ready());
    drop(rx2);
    println!("{} {}", f.wakes(), f.ready());
    drop(f);
    let r = tx.subscribe();
    println!("{} {:?}", tx.is_closed(), tx.closed().now_or_never());
    drop(tx);
    println!("{} {:?}", r.is_closed(), r.has_changed());
    drop(tx2);
    println!("{} {:?}", r.is_closed(), r.has_changed().is_err());
}

fn watch_every_waiter_is_woken_by_a_send_and_by_the_end() {
    let (tx, rx) = watch::channel(1);
    let mut rs: Vec<_> = (0..10).map(|_| rx.clone()).collect();
    let mut fs: Vec<_> = rs.iter_mut().map(|r| Fut::new(r.changed())).collect();
    println!("{}", fs.iter_mut().filter_map(|f| f.ready().then_some(())).count());
    tx.send(2).unwrap();
    println!("{:?}", fs.iter().map(|f| f.wakes()).collect::<Vec<_>>());
    println!("{}", fs.iter_mut().filter_map(|f| f.ready().then_some(())).count());
    drop(fs);
    let mut fs: Vec<_> = rs.iter_mut().map(|r| Fut::new(r.changed())).collect();
    println!("{}", fs.iter_mut().filter_map(|f| f.ready().then_some(())).count());
    drop(tx);
    println!("{:?}", fs.iter().map(|f| f.wakes()).collect::<Vec<_>>());
    println!("{:?}", fs[0].poll());
}

fn watch_a_reader_only_sees_the_newest_value() {
    let rt = multi_thread(2);
    rt.block_on(async {
        let (tx, mut rx) = watch::channel(0u32);
        let j = tokio::spawn(async move {
            let mut last = 0;
            while rx.changed().await.is_ok() {
                let v = *rx.borrow_and_update();
                assert!(v > last);
                last = v;
            }
            last
        });
        for i in 1..=1000 {
            tx.send(i).unwrap();
        }
        drop(tx);
        println!("{}", j.await.unwrap());
    });
}

fn watch_debug_of_ref_and_default() {
    let (tx, rx) = watch::channel(vec![1, 2]);
    println!("{:?} {}", *rx.borrow(), tx.borrow().len());
    let t: watch::Sender<u8> = Default::default();
    println!("{} {}", *t.borrow(), t.receiver_count());
}

// Semaphore.

fn semaphore_errors_print() {
    let s = Semaphore::new(0);
    let e = s.try_acquire().unwrap_err();
    println!("{e} | {e:?}");
    s.close();
    let e = s.try_acquire().unwrap_err();
    println!("{e} | {e:?}");
    let e = s.acquire().now_or_never().unwrap().unwrap_err();
    println!("{e} | {e:?}");
}

fn semaphore_limits_panic() {
    println!("{}", Semaphore::MAX_PERMITS == usize::MAX >> 3);
    println!("{}", caught(|| Semaphore::new(Semaphore::MAX_PERMITS + 1).available_permits()));
    let s = Semaphore::new(Semaphore::MAX_PERMITS);
    println!("{}", caught(|| s.add_permits(1)));
    let s = Semaphore::new(1);
    println!("{}", caught(|| s.add_permits(Semaphore::MAX_PERMITS)));
    let s = Semaphore::new(0);
    println!("{}", caught(|| s.add_permits(Semaphore::MAX_PERMITS + 1)));
    println!("{}", caught(|| s.add_permits(usize::MAX)));
    s.add_permits(0);
}

fn semaphore_is_fifo_even_when_the_first_wants_many() {
    let s = Semaphore::new(0);
    let mut many = Fut::new(s.acquire_many(3));
    let mut one = Fut::new(s.acquire());
    println!("{} {}", many.ready(), one.ready());
    s.add_permits(2);
    println!(
        "{} {} available {} {:?}",
        many.wakes(),
        one.wakes(),
        s.available_permits(),
        s.try_acquire().is_err()
    );
    s.add_permits(2);
    println!("{} {} available {}", many.wakes(), one.wakes(), s.available_permits());
    println!("{} {}", one.ready(), many.ready());
}

fn semaphore_a_cancelled_waiter_gives_its_partial_permits_to_the_next() {
    let s = Semaphore::new(0);
    let mut many = Fut::new(s.acquire_many(3));
    let mut one = Fut::new(s.acquire());
    let mut two = Fut::new(s.acquire_many(2));
    println!("{} {} {}", many.ready(), one.ready(), two.ready());
    s.add_permits(2);
    drop(many);
    println!("{} {} available {}", one.wakes(), two.wakes(), s.available_permits());
    drop(one);
    println!("{} available {}", two.wakes(), s.available_permits());
    println!("{}", two.ready());
    drop(two);
    println!("available {}", s.available_permits());
}

fn semaphore_a_queued_waiter_takes_what_is_there() {
    let s = Semaphore::new(2);
    let mut f = Fut::new(s.acquire_many(3));
    println!("{} {}", f.ready(), s.available_permits());
    println!("{:?}", s.try_acquire().is_err());
    drop(f);
    println!("{}", s.available_permits());
}

fn semaphore_close_wakes_all_and_keeps_permits_of_the_others() {
    let s = Semaphore::new(1);
    let p = s.try_acquire().unwrap();
    let mut a = Fut::new(s.acquire());
    let mut b = Fut::new(s.acquire_many(2));
    println!("{} {}", a.ready(), b.ready());
    s.close();
    s.close();
    println!("{} {} {}", a.wakes(), b.wakes(), s.is_closed());
    println!("{:?} {:?}", a.poll().map(|r| r.is_err()), b.poll().map(|r| r.is_err()));
    drop(p);
    println!("{}", s.available_permits());
    s.add_permits(3);
    println!("{} {:?}", s.available_permits(), s.try_acquire().map(|_| ()));
    println!("{:?}", s.try_acquire_many(0).map(|_| ()));
    println!("{}", s.forget_permits(2));
    println!("{} {}", s.available_permits(), s.is_closed());
}

fn semaphore_acquire_of_zero_permits() {
    let s = Semaphore::new(0);
    println!("{:?}", s.acquire_many(0).now_or_never().map(|r| r.map(|p| p.num_permits())));
    println!("{:?}", s.try_acquire_many(0).map(|p| p.num_permits()));
    let mut f = Fut::new(s.acquire());
    println!("{}", f.ready());
    println!("{:?}", s.acquire_many(0).now_or_never().map(|r| r.map(|p| p.num_permits())));
}

fn semaphore_forget_permits_takes_at_most_what_is_there() {
    let s = Semaphore::new(5);
    let p = s.try_acquire_many(2).unwrap();
    println!("{} {}", s.forget_permits(0), s.available_permits());
    println!("{} {}", s.forget_permits(2), s.available_permits());
    println!("{} {}", s.forget_permits(10), s.available_permits());
    drop(p);
    println!("{}", s.available_permits());
    s.try_acquire().unwrap().forget();
    println!("{}", s.available_permits());
}

fn semaphore_permits_merge_and_split() {
    let s = Arc::new(Semaphore::new(10));
    let mut a = s.clone().try_acquire_many_owned(4).unwrap();
    let b = s.clone().try_acquire_many_owned(3).unwrap();
    a.merge(b);
    println!("{} {}", a.num_permits(), s.available_permits());
    println!("{}", a.split(8).is_none());
    let c = a.split(7).unwrap();
    println!("{} {}", a.num_permits(), c.num_permits());
    drop(c);
    println!("{}", s.available_permits());
    let z = a.split(0);
    println!("{:?}", z.map(|z| z.num_permits()));
    let other = Arc::new(Semaphore::new(1));
    let o = other.clone().try_acquire_owned().unwrap();
    println!("{}", caught(|| a.merge(o)));
    println!("{} {}", other.available_permits(), Arc::ptr_eq(c_sem(&s), &s));
    let mut p = s.try_acquire_many(3).unwrap();
    let q = other.try_acquire().unwrap();
    println!("{}", caught(|| p.merge(q)));
    println!("{}", std::ptr::eq(p.semaphore(), &*s));
}

fn c_sem(s: &Arc<Semaphore>) -> &Arc<Semaphore> {
    s
}

fn semaphore_blocking_acquire() {
    let s = Arc::new(Semaphore::new(1));
    println!("{:?}", s.blocking_acquire().map(|p| p.num_permits()));
    println!("{:?}", s.clone().blocking_acquire_many_owned(1).map(|p| p.num_permits()));
    let s2 = s.clone();
    let t = std::thread::spawn(move || s2.blocking_acquire_many(3).map(|p| p.num_permits()));
    s.add_permits(2);
    println!("{:?}", t.join().unwrap());
    println!("{}", caught(|| current_thread().block_on(async { s.blocking_acquire().is_ok() })));
    s.close();
    println!("{:?}", s.blocking_acquire().map(|_| ()));
}

fn semaphore_const_new_in_a_static() {
    let s = Semaphore::new(3);
    let n = s.available_permits();
    println!("{n} {}", s.is_closed());
    static S: Semaphore = Semaphore::const_new(2);
    let _p = S.try_acquire().unwrap();
    println!("{}", S.available_permits());
}

fn semaphore_a_waiter_dropped_after_being_woken_passes_it_on() {
    let s = Semaphore::new(0);
    let mut fs: Vec<_> = (0..4).map(|_| Fut::new(s.acquire())).collect();
    for f in fs.iter_mut() {
        f.ready();
    }
    s.add_permits(1);
    let w = |fs: &Vec<Fut<_>>| fs.iter().map(|f| f.wakes()).collect::<Vec<_>>();
    println!("{:?}", w(&fs));
    fs.remove(0);
    println!("{:?}", w(&fs));
    fs.remove(1);
    println!("{:?}", w(&fs));
    fs.remove(0);
    println!("{:?} {}", w(&fs), s.available_permits());
    fs.remove(0);
    println!("{}", s.available_permits());
}

fn semaphore_a_new_acquire_cannot_pass_a_woken_waiter() {
    let s = Semaphore::new(0);
    let mut a = Fut::new(s.acquire());
    a.ready();
    s.add_permits(1);
    let mut b = Fut::new(s.acquire());
    println!("{} {} {}", b.ready(), s.try_acquire().is_err(), s.available_permits());
    println!("{}", a.ready());
}

fn semaphore_a_changed_waker_is_used() {
    let s = Semaphore::new(0);
    let mut f = Box::pin(s.acquire());
    let (c1, w1) = counter();
    let (c2, w2) = counter();
    println!("{}", std::future::Future::poll(f.as_mut(), &mut Context::from_waker(&w1)).is_ready());
    println!("{}", std::future::Future::poll(f.as_mut(), &mut Context::from_waker(&w2)).is_ready());
    println!("refs {} {}", Arc::strong_count(&c1), Arc::strong_count(&c2));
    s.add_permits(1);
    println!("{} {}", c1.get(), c2.get());
}

fn semaphore_poll_semaphore_of_tokio_util() {
    let mut p = PollSemaphore::new(Arc::new(Semaphore::new(1)));
    let (c, w) = counter();
    let mut cx = Context::from_waker(&w);
    let Poll::Ready(Some(first)) = p.poll_acquire(&mut cx) else { panic!() };
    println!("{}", p.poll_acquire(&mut cx).is_pending());
    drop(first);
    println!("{}", c.get());
    println!("{:?}", p.poll_acquire(&mut cx).map(|o| o.map(|p| p.num_permits())));
    println!("{}", p.poll_acquire_many(&mut cx, 2).is_pending());
    p.add_permits(1);
    println!("{:?}", p.poll_acquire_many(&mut cx, 2).map(|o| o.map(|p| p.num_permits())));
    p.close();
    println!("{:?}", p.poll_acquire(&mut cx).map(|o| o.is_none()));
}

// Mutex.

fn mutex_try_lock_error_prints() {
    let m = Mutex::new(1);
    let g = m.try_lock().unwrap();
    let e = m.try_lock().unwrap_err();
    println!("{e} | {e:?}");
    println!("{g:?} {g}");
    println!("{m:?}");
    drop(g);
    println!("{m:?}");
}

fn mutex_is_not_poisoned_by_a_panic() {
    let m = Arc::new(Mutex::new(1));
    let m2 = m.clone();
    println!(
        "{}",
        caught(move || {
            let mut g = m2.try_lock().unwrap();
            *g = 5;
            panic!("holding");
        })
    );
    println!("{:?}", m.try_lock().map(|g| *g));
}

fn mutex_is_fifo_and_a_cancelled_waiter_is_skipped() {
    let m = Mutex::new(0);
    let g = m.try_lock().unwrap();
    let mut a = Fut::new(m.lock());
    let mut b = Fut::new(m.lock());
    let mut c = Fut::new(m.lock());
    println!("{} {} {}", a.ready(), b.ready(), c.ready());
    drop(b);
    drop(g);
    println!("{} {} try {}", a.wakes(), c.wakes(), m.try_lock().is_ok());
    drop(a);
    println!("{} try {}", c.wakes(), m.try_lock().is_ok());
    drop(c);
    println!("try {}", m.try_lock().is_ok());
}

fn mutex_owned_guards() {
    let m = Arc::new(Mutex::new(vec![1, 2]));
    let mut g = m.clone().try_lock_owned().unwrap();
    g.push(3);
    println!("{g:?} {}", Arc::ptr_eq(OwnedMutexGuard::mutex(&g), &m));
    println!("{:?}", m.clone().try_lock_owned().map(|_| ()));
    let mapped = OwnedMutexGuard::map(g, |v| &mut v[0]);
    println!("{mapped:?} {mapped}");
    drop(mapped);
    let g = m.clone().lock_owned().now_or_never().unwrap();
    let r = OwnedMutexGuard::try_map(g, |v| v.get_mut(7));
    let g = r.map(|_| ()).unwrap_err();
    println!("{} {}", g.len(), m.try_lock().is_err());
    drop(g);
    println!("{} {}", Arc::strong_count(&m), m.try_lock().is_ok());
    println!("{:?}", m.clone().blocking_lock_owned());
}

fn mutex_mapped_guards_hold_the_lock() {
    let mut m = Mutex::new((1, "x".to_string()));
    {
        let g = m.try_lock().unwrap();
        println!("{}", std::ptr::eq(MutexGuard::mutex(&g), &m));
        let mut s = MutexGuard::map(g, |t| &mut t.1);
        s.push('y');
        println!("{s} {s:?} {}", m.try_lock().is_err());
        let s = tokio::sync::MappedMutexGuard::map(s, |s| s);
        println!("{s}");
        let r = tokio::sync::MappedMutexGuard::try_map(s, |_| None::<&mut u8>);
        println!("{}", m.try_lock().is_err());
        drop(r);
        println!("{}", m.try_lock().is_ok());
    }
    m.get_mut().0 = 4;
    println!("{:?}", m.into_inner());
}

fn mutex_blocking_lock_in_async_panics() {
    let m = Mutex::new(1);
    println!("{}", caught(|| current_thread().block_on(async { *m.blocking_lock() })));
    println!("{}", caught(|| multi_thread(1).block_on(async { *m.blocking_lock() })));
    println!("{}", *m.blocking_lock());
    let rt = current_thread();
    let _e = rt.enter();
    println!("{}", caught(|| *m.blocking_lock()));
}

fn mutex_from_and_default() {
    let m: Mutex<u8> = 3.into();
    println!("{:?} {:?}", m, Mutex::<String>::default());
    static M: Mutex<u8> = Mutex::const_new(8);
    println!("{:?}", M.try_lock().map(|g| *g));
}

fn mutex_tasks_get_it_in_the_order_they_asked() {
    current_thread().block_on(async {
        let m = Arc::new(Mutex::new(Vec::new()));
        let g = m.lock().await;
        let hs: Vec<_> = (0..6)
            .map(|i| {
                let m = m.clone();
                tokio::spawn(async move {
                    m.lock().await.push(i);
                    m.lock().await.push(i + 10);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        drop(g);
        for h in hs {
            h.await.unwrap();
        }
        println!("{:?}", m.lock().await);
    });
}

// `RwLock`.

fn rwlock_readers_share_and_writers_do_not() {
    let l = RwLock::new(1);
    let a = l.try_read().unwrap();
    let b = l.try_read().unwrap();
    println!("{} {}", *a + *b, l.try_write().map(|_| ()).unwrap_err());
    drop((a, b));
    let w = l.try_write().unwrap();
    println!("{:?} {:?}", l.try_read().map(|_| ()), l.try_write().map(|_| ()));
    println!("{w:?} {w} {l:?}");
    drop(w);
    println!("{l:?}");
}

fn rwlock_a_waiting_writer_stops_new_readers() {
    let l = RwLock::new(1);
    let r = l.try_read().unwrap();
    let mut w = Fut::new(l.write());
    println!("{}", w.ready());
    let mut r2 = Fut::new(l.read());
    println!("{} try_read {}", r2.ready(), l.try_read().is_ok());
    drop(r);
    println!("{} {}", w.wakes(), r2.wakes());
    let g = w.poll();
    println!("{} {}", g.is_ready(), r2.ready());
    drop(g);
    println!("{} {}", r2.wakes(), r2.ready());
}

fn rwlock_a_cancelled_writer_lets_the_readers_behind_it_go() {
    let l = RwLock::new(1);
    let _r = l.try_read().unwrap();
    let mut w = Fut::new(l.write());
    let mut r2 = Fut::new(l.read());
    let mut r3 = Fut::new(l.read());
    println!("{} {} {}", w.ready(), r2.ready(), r3.ready());
    drop(w);
    println!("{} {} {} {}", r2.wakes(), r3.wakes(), r2.ready(), r3.ready());
}

fn rwlock_downgrade_lets_readers_in_and_no_writer() {
    let l = RwLock::new(1);
    let mut w = l.try_write().unwrap();
    *w = 2;
    let mut r = Fut::new(l.read());
    let mut w2 = Fut::new(l.write());
    let mut r3 = Fut::new(l.read());
    println!("{} {} {}", r.ready(), w2.ready(), r3.ready());
    let d = w.downgrade();
    println!("{} wakes {} {} {}", *d, r.wakes(), w2.wakes(), r3.wakes());
    let g = r.poll();
    println!("{} {}", g.is_ready(), w2.ready());
    drop(g);
    drop(d);
    println!("wakes {} {}", w2.wakes(), r3.wakes());
}

fn rwlock_max_readers() {
    println!("{}", caught(|| drop(RwLock::with_max_readers(1, 0))));
    println!("{}", caught(|| drop(RwLock::with_max_readers(1, u32::MAX))));
    println!("{}", caught(|| drop(RwLock::with_max_readers(1, u32::MAX >> 3))));
    let l = RwLock::with_max_readers(1, 2);
    let a = l.try_read().unwrap();
    let _b = l.try_read().unwrap();
    println!("{}", l.try_read().is_err());
    drop(a);
    println!("{}", l.try_read().is_ok());
}

fn rwlock_mapped_guards() {
    let l = Arc::new(RwLock::new((1, "x".to_string())));
    let r = RwLockReadGuard::map(l.try_read().unwrap(), |t| &t.1);
    println!("{r} {}", l.try_write().is_err());
    let r = RwLockReadGuard::try_map(r, |s| s.get(5..)).map(|_| ()).unwrap_err();
    println!("{r}");
    drop(r);
    let mut w = RwLockWriteGuard::map(l.try_write().unwrap(), |t| &mut t.1);
    w.push('z');
    println!("{w} {w:?} {}", l.try_read().is_err());
    drop(w);
    let r = RwLockWriteGuard::downgrade_map(l.try_write().unwrap(), |t| &t.0);
    println!("{r} {} {}", l.try_read().is_ok(), l.try_write().is_err());
    drop(r);
    let w = RwLockWriteGuard::try_map(l.try_write().unwrap(), |_| None::<&mut u8>)
        .map(|_| ())
        .unwrap_err();
    println!("{:?}", *w);
    let r = RwLockWriteGuard::try_downgrade_map(w, |_| None::<&u8>).map(|_| ()).unwrap_err();
    println!("{:?} {}", *r, l.try_read().is_err());
    let m = RwLockWriteGuard::into_mapped(r);
    println!("{m:?}");
}

fn rwlock_owned_guards() {
    let l = Arc::new(RwLock::new(vec![1]));
    let r = l.clone().try_read_owned().unwrap();
    println!(
        "{r:?} {} {}",
        Arc::ptr_eq(OwnedRwLockReadGuard::rwlock(&r), &l),
        Arc::strong_count(&l)
    );
    println!("{:?}", l.clone().try_write_owned().map(|_| ()));
    let r = OwnedRwLockReadGuard::map(r, |v| &v[0]);
    println!("{r}");
    drop(r);
    let mut w = l.clone().write_owned().now_or_never().unwrap();
    w.push(2);
    println!("{:?}", l.clone().try_read_owned().map(|_| ()));
    let r = w.downgrade();
    println!("{r:?} {}", l.try_read().is_ok());
    drop(r);
    let w = OwnedRwLockWriteGuard::map(l.clone().try_write_owned().unwrap(), |v| &mut v[1]);
    println!("{w} {}", l.try_read().is_err());
    drop(w);
    println!("{} {:?}", Arc::strong_count(&l), Arc::try_unwrap(l).unwrap().into_inner());
}

fn rwlock_blocking_calls() {
    let l = RwLock::new(3);
    println!("{}", *l.blocking_read());
    *l.blocking_write() += 1;
    println!("{}", caught(|| current_thread().block_on(async { *l.blocking_read() })));
    println!("{}", caught(|| multi_thread(2).block_on(async { *l.blocking_write() })));
    println!("{:?} {:?}", l, RwLock::<u8>::from(1));
}

// Notify.

fn notify_one_before_waiting_is_kept_once() {
    let n = Notify::new();
    n.notify_one();
    n.notify_one();
    println!("{:?} {:?}", n.notified().now_or_never(), n.notified().now_or_never());
    n.notify_last();
    println!("{:?} {:?}", n.notified().now_or_never(), n.notified().now_or_never());
    n.notify_waiters();
    println!("{:?}", n.notified().now_or_never());
}

fn notify_order_of_one_and_last() {
    let n = Notify::new();
    let mut fs: Vec<_> = (0..5).map(|_| Fut::new(n.notified())).collect();
    for f in fs.iter_mut() {
        f.ready();
    }
    let w = |fs: &Vec<Fut<_>>| fs.iter().map(|f| f.wakes()).collect::<Vec<_>>();
    n.notify_one();
    println!("{:?}", w(&fs));
    n.notify_last();
    println!("{:?}", w(&fs));
    n.notify_last();
    n.notify_one();
    println!("{:?}", w(&fs));
    n.notify_one();
    n.notify_one();
    println!("{:?} {:?}", w(&fs), fs.iter_mut().map(|f| f.ready()).collect::<Vec<_>>());
    println!("{:?}", n.notified().now_or_never());
}

fn notify_one_dropped_unpolled_is_passed_on() {
    let n = Notify::new();
    let mut a = Fut::new(n.notified());
    let mut b = Fut::new(n.notified());
    let mut c = Fut::new(n.notified());
    println!("{} {} {}", a.ready(), b.ready(), c.ready());
    n.notify_one();
    drop(a);
    println!("{} {}", b.wakes(), c.wakes());
    drop(b);
    println!("{}", c.wakes());
    drop(c);
    println!("{:?} {:?}", n.notified().now_or_never(), n.notified().now_or_never());
}

fn notify_last_dropped_unpolled_is_passed_to_the_last() {
    let n = Notify::new();
    let mut fs: Vec<_> = (0..4).map(|_| Fut::new(n.notified())).collect();
    for f in fs.iter_mut() {
        f.ready();
    }
    n.notify_last();
    fs.pop();
    println!("{:?}", fs.iter().map(|f| f.wakes()).collect::<Vec<_>>());
    fs.pop();
    println!("{:?}", fs.iter().map(|f| f.wakes()).collect::<Vec<_>>());
}

fn notify_waiters_reaches_futures_created_before_it() {
    let n = Notify::new();
    let mut created = Fut::new(n.notified());
    let mut polled = Fut::new(n.notified());
    println!("{}", polled.ready());
    n.notify_waiters();
    let mut late = Fut::new(n.notified());
    println!("{} {} {}", created.ready(), polled.ready(), late.ready());
    println!("wakes {} {} {}", created.wakes(), polled.wakes(), late.wakes());
}

fn notify_waiters_does_not_store_and_a_drop_does_not_pass_it_on() {
    let n = Notify::new();
    let mut a = Fut::new(n.notified());
    a.ready();
    n.notify_waiters();
    let mut b = Fut::new(n.notified());
    b.ready();
    drop(a);
    println!("{} {}", b.wakes(), b.ready());
    n.notify_one();
    println!("{} {}", b.wakes(), b.ready());
}

fn notify_one_after_waiters_survives_the_drop_of_a_woken_waiter() {
    let n = Notify::new();
    let mut a = Fut::new(n.notified());
    a.ready();
    n.notify_waiters();
    n.notify_one();
    drop(a);
    println!("{:?}", n.notified().now_or_never());
}

fn notify_one_goes_before_notify_waiters_for_an_unpolled_future() {
    let n = Notify::new();
    let a = n.notified();
    n.notify_waiters();
    n.notify_one();
    println!("{:?}", a.now_or_never());
    println!("{:?}", n.notified().now_or_never());
    let mut a = Fut::new(n.notified());
    a.ready();
    n.notify_waiters();
    n.notify_one();
    println!("{}", a.ready());
    println!("{:?}", n.notified().now_or_never());
}

fn notify_enable_registers_without_a_waker() {
    let n = Notify::new();
    let mut a = Box::pin(n.notified());
    println!("{}", a.as_mut().enable());
    n.notify_one();
    println!("{} {}", a.as_mut().enable(), a.as_mut().enable());
    println!("{:?}", a.as_mut().now_or_never());
    println!("{:?}", n.notified().now_or_never());
    n.notify_one();
    let mut b = Box::pin(n.notified());
    println!("{}", b.as_mut().enable());
    println!("{:?}", b.now_or_never());
    println!("{:?}", n.notified().now_or_never());
}

fn notify_an_enabled_future_dropped_passes_the_permit_on() {
    let n = Notify::new();
    let mut a = Box::pin(n.notified());
    a.as_mut().enable();
    n.notify_one();
    drop(a);
    println!("{:?}", n.notified().now_or_never());
}

fn notify_owned_futures() {
    let n = Arc::new(Notify::new());
    let mut a = Fut::new(n.clone().notified_owned());
    println!("{} {}", a.ready(), Arc::strong_count(&n));
    n.notify_one();
    println!("{} {}", a.wakes(), a.ready());
    drop(a);
    println!("{}", Arc::strong_count(&n));
    let mut p = Box::pin(n.clone().notified_owned());
    println!("{}", p.as_mut().enable());
    n.notify_waiters();
    println!("{}", p.as_mut().enable());
}

fn notify_two_sent_to_two_dropped_waiters_reach_two_new_ones() {
    let n = Notify::new();
    let mut a = Fut::new(n.notified());
    let mut b = Fut::new(n.notified());
    a.ready();
    b.ready();
    n.notify_one();
    n.notify_one();
    let mut c = Fut::new(n.notified());
    let mut d = Fut::new(n.notified());
    println!("{} {}", c.ready(), d.ready());
    drop(a);
    drop(b);
    println!("{} {} {} {}", c.wakes(), d.wakes(), c.ready(), d.ready());
}

fn notify_more_waiters_than_a_batch() {
    let n = Notify::new();
    let mut fs: Vec<_> = (0..100).map(|_| Fut::new(n.notified())).collect();
    for f in fs.iter_mut() {
        f.ready();
    }
    n.notify_waiters();
    println!("{}", fs.iter().filter(|f| f.wakes() == 1).count());
    println!("{}", fs.iter_mut().filter_map(|f| f.ready().then_some(())).count());
}

fn notify_a_waker_that_notifies_again_does_not_deadlock() {
    struct Again(Notify, std::sync::atomic::AtomicUsize);
    impl std::task::Wake for Again {
        fn wake(self: Arc<Self>) {
            if self.1.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 3 {
                self.0.notify_one();
                self.0.notify_waiters();
            }
        }
    }
    let a = Arc::new(Again(Notify::new(), Default::default()));
    let w = std::task::Waker::from(a.clone());
    let mut f1 = Box::pin(a.0.notified());
    let mut f2 = Box::pin(a.0.notified());
    let mut cx = Context::from_waker(&w);
    println!("{}", std::future::Future::poll(f1.as_mut(), &mut cx).is_ready());
    println!("{}", std::future::Future::poll(f2.as_mut(), &mut cx).is_ready());
    a.0.notify_waiters();
    println!("{}", a.1.load(std::sync::atomic::Ordering::SeqCst));
    println!(
        "{} {}",
        std::future::Future::poll(f1.as_mut(), &mut cx).is_ready(),
        std::future::Future::poll(f2.as_mut(), &mut cx).is_ready()
    );
    println!("{:?}", a.0.notified().now_or_never());
}

// Barrier.

fn barrier_the_last_to_come_leads() {
    let b = Barrier::new(3);
    let mut x = Fut::new(b.wait());
    let mut y = Fut::new(b.wait());
    let mut z = Fut::new(b.wait());
    println!("{} {}", x.ready(), y.ready());
    println!("{:?}", z.poll().map(|r| r.is_leader()));
    println!("{} {}", x.wakes(), y.wakes());
    println!("{:?} {:?}", x.poll().map(|r| r.is_leader()), y.poll().map(|r| r.is_leader()));
}

fn barrier_of_zero_and_one_never_wait() {
    for n in [0, 1] {
        let b = Barrier::new(n);
        for _ in 0..3 {
            println!("{n} {:?}", b.wait().now_or_never().map(|r| r.is_leader()));
        }
    }
}

fn barrier_a_dropped_wait_still_counts() {
    let b = Barrier::new(3);
    let mut x = Fut::new(b.wait());
    println!("{}", x.ready());
    drop(x);
    let mut y = Fut::new(b.wait());
    println!("{}", y.ready());
    let mut z = Fut::new(b.wait());
    println!("{:?}", z.poll().map(|r| r.is_leader()));
    println!("{} {:?}", y.wakes(), y.poll().map(|r| r.is_leader()));
    let mut unpolled = Fut::new(b.wait());
    drop(Fut::new(b.wait()));
    println!("{}", unpolled.ready());
}

fn barrier_is_reusable_and_has_one_leader_each_round() {
    let rt = multi_thread(4);
    rt.block_on(async {
        let b = Arc::new(Barrier::new(5));
        let hs: Vec<_> = (0..5)
            .map(|_| {
                let b = b.clone();
                tokio::spawn(async move {
                    let mut n = 0;
                    for _ in 0..50 {
                        n += b.wait().await.is_leader() as u32;
                    }
                    n
                })
            })
            .collect();
        let mut total = 0;
        for h in hs {
            total += h.await.unwrap();
        }
        println!("{total}");
    });
}

// `OnceCell`, `SetOnce`.

fn once_cell_set_errors_print() {
    let c = OnceCell::new();
    println!("{:?} {:?}", c.get(), c.initialized());
    println!("{:?}", c.set(1));
    let e = c.set(2).unwrap_err();
    println!("{e} | {e:?} | {} {}", e.is_already_init_err(), e.is_initializing_err());
    let c = OnceCell::new();
    let mut f = Fut::new(c.get_or_init(|| std::future::pending::<u8>()));
    println!("{}", f.ready());
    let e = c.set(3).unwrap_err();
    println!("{e} | {e:?} | {} {}", e.is_already_init_err(), e.is_initializing_err());
    drop(f);
    println!("{:?} {:?}", c.set(4), c.get());
}

fn once_cell_a_cancelled_initialiser_lets_the_next_one_try() {
    let c = OnceCell::new();
    let mut a = Fut::new(c.get_or_init(|| std::future::pending::<u8>()));
    let mut b = Fut::new(c.get_or_init(|| async { 2 }));
    let mut d = Fut::new(c.get_or_init(|| async { 3 }));
    println!("{} {} {}", a.ready(), b.ready(), d.ready());
    drop(a);
    println!("{} {}", b.wakes(), d.wakes());
    println!("{:?}", b.poll());
    println!("{} {:?}", d.wakes(), d.poll());
}

fn once_cell_a_failed_initialiser_lets_the_next_one_try() {
    let c = OnceCell::new();
    println!("{:?}", c.get_or_try_init(|| async { Err::<u8, _>("no") }).now_or_never());
    println!("{:?}", c.get());
    println!("{:?}", c.get_or_try_init(|| async { Ok::<u8, &str>(4) }).now_or_never());
    println!("{:?}", c.get_or_try_init(|| async { Err::<u8, _>("no") }).now_or_never());
    println!("{:?}", c.get_or_init(|| async { panic!("not called") }).now_or_never());
}

fn once_cell_a_panicking_initialiser_does_not_poison() {
    let c = OnceCell::new();
    println!("{}", caught(|| c.get_or_init(|| async { panic!("init") }).now_or_never()));
    println!("{:?} {:?}", c.initialized(), c.get_or_init(|| async { 5 }).now_or_never());
}

fn once_cell_values() {
    let mut c = OnceCell::new_with(Some(1));
    println!("{c:?} {:?}", c.clone() == c);
    println!("{:?}", c.get_mut());
    println!("{:?} {:?} {:?}", c.take(), c.take(), c.get());
    println!("{:?}", c.set(2));
    println!("{:?}", c.into_inner());
    println!("{:?} {:?}", OnceCell::from(3), OnceCell::<u8>::default());
    println!("{:?}", OnceCell::<u8>::new_with(None).into_inner());
    let log = Log::new();
    drop(OnceCell::from(log.on_drop("v")));
    println!("{:?}", log.take());
}

fn set_once_wakes_every_waiter() {
    let s = SetOnce::new();
    let mut a = Fut::new(s.wait());
    let mut b = Fut::new(s.wait());
    println!("{} {} {:?} {}", a.ready(), b.ready(), s.get(), s.initialized());
    println!("{:?}", s.set(4));
    println!("{} {} {:?} {:?}", a.wakes(), b.wakes(), a.poll(), b.poll());
    let e = s.set(5).unwrap_err();
    println!("{e} | {e:?} | {}", e.0);
    println!("{:?} {:?}", s.wait().now_or_never(), s);
    drop((a, b));
    println!("{:?} {:?}", s.clone() == s, s.into_inner());
    println!("{:?} {:?}", SetOnce::from(1), SetOnce::<u8>::new_with(None).get());
}

// `CancellationToken`.

fn token_children_follow_parents_and_not_the_other_way() {
    let p = CancellationToken::new();
    let c = p.child_token();
    let g = c.child_token();
    let other = p.child_token();
    c.cancel();
    println!(
        "{} {} {} {}",
        p.is_cancelled(),
        c.is_cancelled(),
        g.is_cancelled(),
        other.is_cancelled()
    );
    p.cancel();
    println!("{} {}", p.is_cancelled(), other.is_cancelled());
    println!("{}", p.child_token().is_cancelled());
    let q = CancellationToken::new();
    let r = q.clone();
    r.cancel();
    println!("{}", q.is_cancelled());
}

fn token_a_dropped_middle_token_hands_its_children_up() {
    let p = CancellationToken::new();
    let c = p.child_token();
    let g = c.child_token();
    drop(c);
    println!("{}", g.is_cancelled());
    p.cancel();
    println!("{}", g.is_cancelled());
    let p = CancellationToken::new();
    let c = p.child_token();
    drop(p);
    println!("{}", c.is_cancelled());
}

fn token_waiters_are_woken() {
    let t = CancellationToken::new();
    let c = t.child_token();
    let mut a = Fut::new(t.cancelled());
    let mut b = Fut::new(c.clone().cancelled_owned());
    println!("{} {}", a.ready(), b.ready());
    t.cancel();
    t.cancel();
    println!("{} {} {} {}", a.wakes(), b.wakes(), a.ready(), b.ready());
    println!("{:?}", c.cancelled().now_or_never());
}

fn token_drop_guards() {
    let t = CancellationToken::new();
    drop(t.clone().drop_guard());
    println!("{}", t.is_cancelled());
    let t = CancellationToken::new();
    let g = t.clone().drop_guard();
    let back = g.disarm();
    drop(back);
    println!("{}", t.is_cancelled());
    drop(t.drop_guard_ref());
    println!("{}", t.is_cancelled());
}

fn token_run_until_cancelled() {
    let t = CancellationToken::new();
    println!("{:?}", t.run_until_cancelled(async { 1 }).now_or_never());
    let mut f = Fut::new(t.run_until_cancelled(std::future::pending::<u8>()));
    println!("{:?}", f.poll());
    t.cancel();
    println!("{} {:?}", f.wakes(), f.poll());
    println!("{:?}", t.run_until_cancelled(async { 2 }).now_or_never());
    println!("{:?}", t.clone().run_until_cancelled_owned(async { 3 }).now_or_never());
}

// Mixed.

fn many_cancelled_waiters_lose_no_permit() {
    let rt = multi_thread(4);
    rt.block_on(async {
        let s = Arc::new(Semaphore::new(3));
        let hs: Vec<_> = (0..40u32)
            .map(|i| {
                let s = s.clone();
                tokio::spawn(async move {
                    for k in 0..20 {
                        let n = 1 + (i + k) % 3;
                        if (i + k) % 4 == 0 {
                            let _ = tokio::time::timeout(Duration::ZERO, s.acquire_many(n)).await;
                        } else {
                            let _p = s.acquire_many(n).await.unwrap();
                            tokio::task::yield_now().await;
                        }
                    }
                })
            })
            .collect();
        for h in hs {
            h.await.unwrap();
        }
        println!("{}", s.available_permits());
    });
}

fn aborted_tasks_in_a_lock_queue_lose_no_lock() {
    let rt = multi_thread(2);
    rt.block_on(async {
        let m = Arc::new(Mutex::new(0u32));
        let g = m.clone().lock_owned().await;
        let hs: Vec<_> = (0..20)
            .map(|_| {
                let m = m.clone();
                tokio::spawn(async move { *m.lock().await += 1 })
            })
            .collect();
        for (i, h) in hs.iter().enumerate() {
            if i % 2 == 0 {
                h.abort();
            }
        }
        drop(g);
        let (mut ok, mut cancelled) = (0, 0);
        for (i, h) in hs.into_iter().enumerate() {
            match h.await {
                Ok(()) => ok += 1,
                Err(e) => {
                    assert!(e.is_cancelled() && i % 2 == 0);
                    cancelled += 1
                }
            }
        }
        println!("{} {}", ok + cancelled, *m.lock().await == ok);
    });
}

fn a_waiting_task_of_a_runtime_can_be_served_from_another_one() {
    let a = current_thread();
    let b = multi_thread(1);
    let (tx, rx) = oneshot::channel();
    let (tx2, mut rx2) = mpsc::channel(1);
    b.spawn(async move {
        let v: u8 = rx.await.unwrap();
        tx2.send(v + 1).await.unwrap();
    });
    a.block_on(async {
        tx.send(1).unwrap();
        println!("{:?} {:?}", rx2.recv().await, rx2.recv().await);
    });
}

fn sync_primitives_work_without_a_runtime() {
    let n = Arc::new(Notify::new());
    let n2 = n.clone();
    let t = std::thread::spawn(move || n2.notify_one());
    futures_block(n.notified());
    t.join().unwrap();
    let (tx, rx) = oneshot::channel();
    let t = std::thread::spawn(move || tx.send(3).unwrap());
    println!("{:?}", futures_block(rx));
    t.join().unwrap();
}

fn futures_block<F: std::future::Future>(f: F) -> F::Output {
    struct T(std::thread::Thread);
    impl std::task::Wake for T {
        fn wake(self: Arc<Self>) {
            self.0.unpark()
        }
    }
    let w = std::task::Waker::from(Arc::new(T(std::thread::current())));
    let mut f = Box::pin(f);
    loop {
        match std::future::Future::poll(f.as_mut(), &mut Context::from_waker(&w)) {
            Poll::Ready(v) => return v,
            Poll::Pending => std::thread::park(),
        }
    }
}

pub const CASES: &[(&str, fn())] = &[
    (
        "mpsc_a_dropped_sender_closes_the_channel_after_its_messages",
        mpsc_a_dropped_sender_closes_the_channel_after_its_messages,
    ),
    ("mpsc_channel_of_zero_or_too_many_panics", mpsc_channel_of_zero_or_too_many_panics),
    ("mpsc_error_types_print", mpsc_error_types_print),
    ("mpsc_close_lets_permits_still_send", mpsc_close_lets_permits_still_send),
    (
        "mpsc_the_last_permit_of_a_closed_channel_wakes_the_receiver",
        mpsc_the_last_permit_of_a_closed_channel_wakes_the_receiver,
    ),
    (
        "mpsc_a_permit_used_after_the_receiver_is_gone_keeps_its_value_until_the_end",
        mpsc_a_permit_used_after_the_receiver_is_gone_keeps_its_value_until_the_end,
    ),
    ("mpsc_reserve_is_fifo", mpsc_reserve_is_fifo),
    (
        "mpsc_a_reserve_cancelled_in_the_middle_is_skipped",
        mpsc_a_reserve_cancelled_in_the_middle_is_skipped,
    ),
    ("mpsc_reserve_many_of_nothing_and_of_too_much", mpsc_reserve_many_of_nothing_and_of_too_much),
    (
        "mpsc_a_permit_iterator_gives_back_what_it_did_not_hand_out",
        mpsc_a_permit_iterator_gives_back_what_it_did_not_hand_out,
    ),
    (
        "mpsc_reserve_many_waits_for_all_and_blocks_those_behind",
        mpsc_reserve_many_waits_for_all_and_blocks_those_behind,
    ),
    ("mpsc_owned_permits_give_the_sender_back", mpsc_owned_permits_give_the_sender_back),
    ("mpsc_an_owned_permit_keeps_the_channel_open", mpsc_an_owned_permit_keeps_the_channel_open),
    ("mpsc_recv_many_limits", mpsc_recv_many_limits),
    (
        "mpsc_recv_many_wakes_every_waiting_sender_it_made_room_for",
        mpsc_recv_many_wakes_every_waiting_sender_it_made_room_for,
    ),
    (
        "mpsc_poll_recv_wakes_the_last_registered_waker_once",
        mpsc_poll_recv_wakes_the_last_registered_waker_once,
    ),
    (
        "mpsc_dropping_a_sender_that_is_not_the_last_wakes_no_task",
        mpsc_dropping_a_sender_that_is_not_the_last_wakes_no_task,
    ),
    (
        "mpsc_weak_senders_do_not_keep_the_channel_open",
        mpsc_weak_senders_do_not_keep_the_channel_open,
    ),
    (
        "mpsc_weak_unbounded_senders_after_the_receiver_is_gone",
        mpsc_weak_unbounded_senders_after_the_receiver_is_gone,
    ),
    ("mpsc_is_closed_len_and_capacity", mpsc_is_closed_len_and_capacity),
    (
        "mpsc_closed_resolves_when_the_receiver_goes_or_closes",
        mpsc_closed_resolves_when_the_receiver_goes_or_closes,
    ),
    ("mpsc_same_channel", mpsc_same_channel),
    (
        "mpsc_blocking_ends_work_between_threads_and_panic_in_async",
        mpsc_blocking_ends_work_between_threads_and_panic_in_async,
    ),
    ("mpsc_send_timeout_errors", mpsc_send_timeout_errors),
    (
        "mpsc_a_dropped_receiver_drops_the_messages_at_once_in_order",
        mpsc_a_dropped_receiver_drops_the_messages_at_once_in_order,
    ),
    (
        "mpsc_a_dropped_receiver_fails_every_waiting_sender",
        mpsc_a_dropped_receiver_fails_every_waiting_sender,
    ),
    (
        "mpsc_a_message_that_panics_when_dropped_does_not_leak_the_others",
        mpsc_a_message_that_panics_when_dropped_does_not_leak_the_others,
    ),
    ("mpsc_a_waker_of_a_dropped_receiver_is_let_go", mpsc_a_waker_of_a_dropped_receiver_is_let_go),
    (
        "mpsc_receivers_are_not_waiters_when_dropped_after_a_wake",
        mpsc_receivers_are_not_waiters_when_dropped_after_a_wake,
    ),
    ("mpsc_two_workers_keep_each_senders_order", mpsc_two_workers_keep_each_senders_order),
    ("mpsc_poll_sender_of_tokio_util", mpsc_poll_sender_of_tokio_util),
    ("oneshot_errors_print", oneshot_errors_print),
    ("oneshot_polled_after_its_value_panics", oneshot_polled_after_its_value_panics),
    ("oneshot_polled_after_its_error_panics", oneshot_polled_after_its_error_panics),
    (
        "oneshot_send_without_a_receiver_gives_the_value_back",
        oneshot_send_without_a_receiver_gives_the_value_back,
    ),
    (
        "oneshot_a_value_sent_before_close_is_still_there",
        oneshot_a_value_sent_before_close_is_still_there,
    ),
    (
        "oneshot_wakes_once_for_a_value_and_once_for_a_drop",
        oneshot_wakes_once_for_a_value_and_once_for_a_drop,
    ),
    ("oneshot_the_last_waker_counts", oneshot_the_last_waker_counts),
    ("oneshot_sender_closed_and_poll_closed", oneshot_sender_closed_and_poll_closed),
    ("oneshot_the_receiver_drops_an_unread_value", oneshot_the_receiver_drops_an_unread_value),
    ("oneshot_blocking_recv", oneshot_blocking_recv),
    (
        "oneshot_a_sender_dropped_by_a_panicking_task_closes",
        oneshot_a_sender_dropped_by_a_panicking_task_closes,
    ),
    ("broadcast_odd_capacities_panic", broadcast_odd_capacities_panic),
    ("broadcast_errors_print", broadcast_errors_print),
    ("broadcast_lag_counts_what_was_missed", broadcast_lag_counts_what_was_missed),
    (
        "broadcast_capacity_is_rounded_up_to_a_power_of_two",
        broadcast_capacity_is_rounded_up_to_a_power_of_two,
    ),
    (
        "broadcast_a_lagging_receiver_of_a_closed_channel_still_reads_the_rest",
        broadcast_a_lagging_receiver_of_a_closed_channel_still_reads_the_rest,
    ),
    (
        "broadcast_every_receiver_gets_every_value_sent_after_it",
        broadcast_every_receiver_gets_every_value_sent_after_it,
    ),
    ("broadcast_counts_and_weak_senders", broadcast_counts_and_weak_senders),
    ("broadcast_send_wakes_every_waiter_once", broadcast_send_wakes_every_waiter_once),
    (
        "broadcast_sender_closed_waits_for_the_last_receiver",
        broadcast_sender_closed_waits_for_the_last_receiver,
    ),
    (
        "broadcast_values_are_dropped_when_every_receiver_has_them",
        broadcast_values_are_dropped_when_every_receiver_has_them,
    ),
    (
        "broadcast_an_overwritten_value_is_dropped_by_the_sender",
        broadcast_an_overwritten_value_is_dropped_by_the_sender,
    ),
    ("broadcast_blocking_recv_and_its_panic", broadcast_blocking_recv_and_its_panic),
    ("broadcast_resubscribe_to_a_closed_channel", broadcast_resubscribe_to_a_closed_channel),
    ("watch_the_first_value_counts_as_seen", watch_the_first_value_counts_as_seen),
    ("watch_errors_print", watch_errors_print),
    (
        "watch_the_last_value_of_a_dropped_sender_is_still_a_change",
        watch_the_last_value_of_a_dropped_sender_is_still_a_change,
    ),
    ("watch_send_if_modified_wakes_only_on_true", watch_send_if_modified_wakes_only_on_true),
    (
        "watch_a_panic_in_modify_keeps_the_lock_usable",
        watch_a_panic_in_modify_keeps_the_lock_usable,
    ),
    ("watch_send_replace_works_without_receivers", watch_send_replace_works_without_receivers),
    ("watch_mark_changed_and_unchanged", watch_mark_changed_and_unchanged),
    ("watch_wait_for", watch_wait_for),
    ("watch_a_panicking_predicate_does_not_poison", watch_a_panicking_predicate_does_not_poison),
    ("watch_refs_know_whether_they_changed", watch_refs_know_whether_they_changed),
    ("watch_closed_and_counts", watch_closed_and_counts),
    (
        "watch_every_waiter_is_woken_by_a_send_and_by_the_end",
        watch_every_waiter_is_woken_by_a_send_and_by_the_end,
    ),
    ("watch_a_reader_only_sees_the_newest_value", watch_a_reader_only_sees_the_newest_value),
    ("watch_debug_of_ref_and_default", watch_debug_of_ref_and_default),
    ("semaphore_errors_print", semaphore_errors_print),
    ("semaphore_limits_panic", semaphore_limits_panic),
    (
        "semaphore_is_fifo_even_when_the_first_wants_many",
        semaphore_is_fifo_even_when_the_first_wants_many,
    ),
    (
        "semaphore_a_cancelled_waiter_gives_its_partial_permits_to_the_next",
        semaphore_a_cancelled_waiter_gives_its_partial_permits_to_the_next,
    ),
    (
        "semaphore_a_queued_waiter_takes_what_is_there",
        semaphore_a_queued_waiter_takes_what_is_there,
    ),
    (
        "semaphore_close_wakes_all_and_keeps_permits_of_the_others",
        semaphore_close_wakes_all_and_keeps_permits_of_the_others,
    ),
    ("semaphore_acquire_of_zero_permits", semaphore_acquire_of_zero_permits),
    (
        "semaphore_forget_permits_takes_at_most_what_is_there",
        semaphore_forget_permits_takes_at_most_what_is_there,
    ),
    ("semaphore_permits_merge_and_split", semaphore_permits_merge_and_split),
    ("semaphore_blocking_acquire", semaphore_blocking_acquire),
    ("semaphore_const_new_in_a_static", semaphore_const_new_in_a_static),
    (
        "semaphore_a_waiter_dropped_after_being_woken_passes_it_on",
        semaphore_a_waiter_dropped_after_being_woken_passes_it_on,
    ),
    (
        "semaphore_a_new_acquire_cannot_pass_a_woken_waiter",
        semaphore_a_new_acquire_cannot_pass_a_woken_waiter,
    ),
    ("semaphore_a_changed_waker_is_used", semaphore_a_changed_waker_is_used),
    ("semaphore_poll_semaphore_of_tokio_util", semaphore_poll_semaphore_of_tokio_util),
    ("mutex_try_lock_error_prints", mutex_try_lock_error_prints),
    ("mutex_is_not_poisoned_by_a_panic", mutex_is_not_poisoned_by_a_panic),
    (
        "mutex_is_fifo_and_a_cancelled_waiter_is_skipped",
        mutex_is_fifo_and_a_cancelled_waiter_is_skipped,
    ),
    ("mutex_owned_guards", mutex_owned_guards),
    ("mutex_mapped_guards_hold_the_lock", mutex_mapped_guards_hold_the_lock),
    ("mutex_blocking_lock_in_async_panics", mutex_blocking_lock_in_async_panics),
    ("mutex_from_and_default", mutex_from_and_default),
    ("mutex_tasks_get_it_in_the_order_they_asked", mutex_tasks_get_it_in_the_order_they_asked),
    ("rwlock_readers_share_and_writers_do_not", rwlock_readers_share_and_writers_do_not),
    ("rwlock_a_waiting_writer_stops_new_readers", rwlock_a_waiting_writer_stops_new_readers),
    (
        "rwlock_a_cancelled_writer_lets_the_readers_behind_it_go",
        rwlock_a_cancelled_writer_lets_the_readers_behind_it_go,
    ),
    (
        "rwlock_downgrade_lets_readers_in_and_no_writer",
        rwlock_downgrade_lets_readers_in_and_no_writer,
    ),
    ("rwlock_max_readers", rwlock_max_readers),
    ("rwlock_mapped_guards", rwlock_mapped_guards),
    ("rwlock_owned_guards", rwlock_owned_guards),
    ("rwlock_blocking_calls", rwlock_blocking_calls),
    ("notify_one_before_waiting_is_kept_once", notify_one_before_waiting_is_kept_once),
    ("notify_order_of_one_and_last", notify_order_of_one_and_last),
    ("notify_one_dropped_unpolled_is_passed_on", notify_one_dropped_unpolled_is_passed_on),
    (
        "notify_last_dropped_unpolled_is_passed_to_the_last",
        notify_last_dropped_unpolled_is_passed_to_the_last,
    ),
    (
        "notify_waiters_reaches_futures_created_before_it",
        notify_waiters_reaches_futures_created_before_it,
    ),
    (
        "notify_waiters_does_not_store_and_a_drop_does_not_pass_it_on",
        notify_waiters_does_not_store_and_a_drop_does_not_pass_it_on,
    ),
    (
        "notify_one_after_waiters_survives_the_drop_of_a_woken_waiter",
        notify_one_after_waiters_survives_the_drop_of_a_woken_waiter,
    ),
    (
        "notify_one_goes_before_notify_waiters_for_an_unpolled_future",
        notify_one_goes_before_notify_waiters_for_an_unpolled_future,
    ),
    ("notify_enable_registers_without_a_waker", notify_enable_registers_without_a_waker),
    (
        "notify_an_enabled_future_dropped_passes_the_permit_on",
        notify_an_enabled_future_dropped_passes_the_permit_on,
    ),
    ("notify_owned_futures", notify_owned_futures),
    (
        "notify_two_sent_to_two_dropped_waiters_reach_two_new_ones",
        notify_two_sent_to_two_dropped_waiters_reach_two_new_ones,
    ),
    ("notify_more_waiters_than_a_batch", notify_more_waiters_than_a_batch),
    (
        "notify_a_waker_that_notifies_again_does_not_deadlock",
        notify_a_waker_that_notifies_again_does_not_deadlock,
    ),
    ("barrier_the_last_to_come_leads", barrier_the_last_to_come_leads),
    ("barrier_of_zero_and_one_never_wait", barrier_of_zero_and_one_never_wait),
    ("barrier_a_dropped_wait_still_counts", barrier_a_dropped_wait_still_counts),
    (
        "barrier_is_reusable_and_has_one_leader_each_round",
        barrier_is_reusable_and_has_one_leader_each_round,
    ),
    ("once_cell_set_errors_print", once_cell_set_errors_print),
    (
        "once_cell_a_cancelled_initialiser_lets_the_next_one_try",
        once_cell_a_cancelled_initialiser_lets_the_next_one_try,
    ),
    (
        "once_cell_a_failed_initialiser_lets_the_next_one_try",
        once_cell_a_failed_initialiser_lets_the_next_one_try,
    ),
    (
        "once_cell_a_panicking_initialiser_does_not_poison",
        once_cell_a_panicking_initialiser_does_not_poison,
    ),
    ("once_cell_values", once_cell_values),
    ("set_once_wakes_every_waiter", set_once_wakes_every_waiter),
    (
        "token_children_follow_parents_and_not_the_other_way",
        token_children_follow_parents_and_not_the_other_way,
    ),
    (
        "token_a_dropped_middle_token_hands_its_children_up",
        token_a_dropped_middle_token_hands_its_children_up,
    ),
    ("token_waiters_are_woken", token_waiters_are_woken),
    ("token_drop_guards", token_drop_guards),
    ("token_run_until_cancelled", token_run_until_cancelled),
    ("many_cancelled_waiters_lose_no_permit", many_cancelled_waiters_lose_no_permit),
    ("aborted_tasks_in_a_lock_queue_lose_no_lock", aborted_tasks_in_a_lock_queue_lose_no_lock),
    (
        "a_waiting_task_of_a_runtime_can_be_served_from_another_one",
        a_waiting_task_of_a_runtime_can_be_served_from_another_one,
    ),
    ("sync_primitives_work_without_a_runtime", sync_primitives_work_without_a_runtime),
];
