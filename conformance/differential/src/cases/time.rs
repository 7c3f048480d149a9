//! Sleeps, intervals, timeouts and the paused clock.

use crate::probe::*;
use futures_util::{FutureExt, StreamExt};
use std::future::Future;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::time::{
    Instant, MissedTickBehavior, advance, interval, interval_at, pause, resume, sleep, sleep_until,
    timeout, timeout_at,
};
use tokio_util::time::DelayQueue;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const fn s(n: u64) -> Duration {
    Duration::from_secs(n)
}

// Sleep.

fn paused_time_jumps_to_the_next_sleep_exactly() {
    paused().block_on(async {
        let t = Instant::now();
        println!("{:?}", t.elapsed());
        sleep(s(1)).await;
        println!("{:?}", t.elapsed());
        sleep(ms(1)).await;
        println!("{:?}", t.elapsed());
        sleep(Duration::ZERO).await;
        println!("{:?}", t.elapsed());
        sleep_until(t).await;
        println!("{:?}", t.elapsed());
        sleep_until(t + s(100)).await;
        println!("{:?}", t.elapsed());
    });
}

fn sleeps_below_a_millisecond_round_up() {
    paused().block_on(async {
        let t = Instant::now();
        sleep(Duration::from_nanos(1)).await;
        println!("{:?}", t.elapsed());
        let t = Instant::now();
        sleep(Duration::from_micros(1500)).await;
        println!("{:?}", t.elapsed());
        let t = Instant::now();
        sleep(Duration::from_micros(2999)).await;
        println!("{:?}", t.elapsed());
    });
}

fn a_zero_sleep_is_ready_at_its_first_poll() {
    paused().block_on(async {
        println!("{:?}", sleep(Duration::ZERO).now_or_never());
        println!("{:?}", sleep_until(Instant::now()).now_or_never());
        println!("{:?}", sleep(ms(1)).now_or_never());
    });
}

fn sleep_knows_its_deadline_and_whether_it_elapsed() {
    paused().block_on(async {
        let t = Instant::now();
        let mut sl = Box::pin(sleep(ms(50)));
        println!("{:?} {}", sl.deadline() - t, sl.is_elapsed());
        sl.as_mut().await;
        println!("{} {:?}", sl.is_elapsed(), sl.deadline() - t);
        sl.as_mut().reset(t + ms(80));
        println!("{} {:?}", sl.is_elapsed(), sl.deadline() - t);
        sl.as_mut().await;
        println!("{} {:?}", sl.is_elapsed(), t.elapsed());
        println!("{:?}", sl.as_mut().now_or_never());
    });
}

fn sleep_reset_earlier_and_later() {
    paused().block_on(async {
        let t = Instant::now();
        let mut sl = Box::pin(sleep(ms(100)));
        println!("{:?}", futures_util::poll!(sl.as_mut()));
        sl.as_mut().reset(t + ms(20));
        sl.as_mut().await;
        println!("{:?}", t.elapsed());
        sl.as_mut().reset(t + ms(40));
        println!("{:?}", futures_util::poll!(sl.as_mut()));
        sl.as_mut().reset(t + ms(400));
        sl.as_mut().await;
        println!("{:?}", t.elapsed());
        sl.as_mut().reset(t);
        println!("{:?}", futures_util::poll!(sl.as_mut()));
    });
}

fn a_reset_sleep_wakes_its_waker_at_the_new_deadline_without_a_poll() {
    paused().block_on(async {
        let t = Instant::now();
        let mut sl = Box::pin(sleep(ms(100)));
        let (c, w) = counter();
        println!("{:?}", sl.as_mut().poll(&mut Context::from_waker(&w)));
        sl.as_mut().reset(t + ms(10));
        sleep(ms(50)).await;
        println!("wakes {} elapsed {}", c.get(), sl.is_elapsed());
        println!("{:?}", sl.as_mut().poll(&mut Context::from_waker(&w)));
    });
}

fn a_sleep_wakes_its_last_waker_once() {
    paused().block_on(async {
        let mut sl = Box::pin(sleep(ms(10)));
        let (c1, w1) = counter();
        let (c2, w2) = counter();
        println!("{:?}", sl.as_mut().poll(&mut Context::from_waker(&w1)));
        println!("{:?}", sl.as_mut().poll(&mut Context::from_waker(&w2)));
        sleep(ms(20)).await;
        println!("{} {}", c1.get(), c2.get());
        println!("{:?}", sl.as_mut().poll(&mut Context::from_waker(&w1)));
        println!("{:?}", sl.as_mut().poll(&mut Context::from_waker(&w1)));
    });
}

fn a_dropped_sleep_lets_its_waker_go() {
    paused().block_on(async {
        let (c, w) = counter();
        let mut sl = Box::pin(sleep(s(1000)));
        println!("{:?}", sl.as_mut().poll(&mut Context::from_waker(&w)));
        println!("{}", std::sync::Arc::strong_count(&c));
        drop(sl);
        println!("{}", std::sync::Arc::strong_count(&c));
        let t = Instant::now();
        sleep(ms(5)).await;
        println!("{:?} {}", t.elapsed(), c.get());
    });
}

fn sleeping_tasks_wake_in_deadline_order() {
    paused().block_on(async {
        let log = Log::new();
        let t = Instant::now();
        let mut hs = vec![];
        for d in [500u64, 20, 3000, 1, 64, 65, 4096, 63, 4095, 262_144, 300_000] {
            let log = log.clone();
            hs.push(tokio::spawn(async move {
                sleep(ms(d)).await;
                log.add(format!("{}@{:?}", d, t.elapsed()));
            }));
        }
        for h in hs {
            h.await.unwrap();
        }
        println!("{:?}", log.take());
    });
}

fn every_sleep_of_one_deadline_wakes_at_it() {
    paused().block_on(async {
        let t = Instant::now();
        let hs: Vec<_> = (0..50)
            .map(|_| {
                tokio::spawn(async move {
                    sleep_until(t + ms(77)).await;
                    t.elapsed()
                })
            })
            .collect();
        let mut v = vec![];
        for h in hs {
            v.push(h.await.unwrap());
        }
        v.dedup();
        println!("{v:?}");
    });
}

fn far_future_sleeps_do_not_panic() {
    paused().block_on(async {
        let t = Instant::now();
        let mut sl = Box::pin(sleep(Duration::MAX));
        println!("{:?}", futures_util::poll!(sl.as_mut()));
        let far = sl.deadline() - t;
        println!("{}", far > s(29 * 365 * 86400));
        println!("{:?}", timeout(s(1), sl).await);
        println!(
            "{:?}",
            timeout(s(3_000_000_000), async {
                sleep(s(2_000_000_000)).await;
                1
            })
            .await
        );
        println!("{:?}", t.elapsed());
    });
}

fn a_sleep_of_two_years_and_more_than_the_wheel() {
    paused().block_on(async {
        let t = Instant::now();
        sleep(s(70_000_000)).await;
        println!("{:?}", t.elapsed());
        sleep(s(200_000_000)).await;
        println!("{:?}", t.elapsed());
        sleep(ms(1)).await;
        println!("{:?}", t.elapsed());
    });
}

fn instant_arithmetic() {
    paused().block_on(async {
        let t = Instant::now();
        println!("{:?}", t.checked_add(Duration::MAX));
        println!("{:?}", t.checked_sub(Duration::MAX));
        println!("{}", t.checked_add(s(5)).map(|x| x - t) == Some(s(5)));
        println!("{:?} {:?}", t.duration_since(t + s(1)), t.saturating_duration_since(t + s(1)));
        println!("{:?}", t.checked_duration_since(t + s(1)));
        println!("{:?}", (t + s(3)).duration_since(t));
        println!("{:?}", t - (t + s(2)));
        println!("{}", caught(|| (t + Duration::MAX) == t));
        println!("{}", caught(|| (t - Duration::MAX) == t));
        let mut u = t;
        u += s(4);
        u -= s(1);
        println!("{:?} {}", u - t, Instant::from_std(t.into_std()) == t);
    });
}

// Timeout.

fn timeout_error_prints() {
    paused().block_on(async {
        let e = timeout(ms(1), std::future::pending::<()>()).await.unwrap_err();
        println!("{e} | {e:?}");
        let io: std::io::Error = e.into();
        println!("{:?} {io}", io.kind());
    });
}

fn a_zero_timeout_still_polls_the_future_once_first() {
    paused().block_on(async {
        println!("{:?}", timeout(Duration::ZERO, async { 1 }).await);
        println!("{:?}", timeout(Duration::ZERO, std::future::pending::<u8>()).await);
        println!("{:?}", timeout(Duration::ZERO, tokio::task::yield_now()).await);
        println!("{:?}", timeout(Duration::ZERO, sleep(Duration::ZERO)).await);
        println!("{:?}", timeout_at(Instant::now(), sleep(ms(1))).await);
        println!("{:?}", timeout_at(Instant::now() - ms(5), async { 2 }).await);
    });
}

fn an_equal_deadline_favours_the_value() {
    paused().block_on(async {
        println!("{:?}", timeout(ms(10), sleep(ms(10))).await);
        println!("{:?}", timeout(ms(10), sleep(ms(11))).await);
        println!(
            "{:?}",
            timeout(ms(10), async {
                sleep(ms(5)).await;
                sleep(ms(5)).await;
                7
            })
            .await
        );
    });
}

fn nested_timeouts() {
    paused().block_on(async {
        let t = Instant::now();
        println!("{:?} {:?}", timeout(ms(50), timeout(ms(20), sleep(s(1)))).await, t.elapsed());
        let t = Instant::now();
        println!("{:?} {:?}", timeout(ms(20), timeout(ms(50), sleep(s(1)))).await, t.elapsed());
        let t = Instant::now();
        println!("{:?} {:?}", timeout(ms(20), timeout(ms(20), sleep(s(1)))).await, t.elapsed());
        println!(
            "{:?}",
            timeout(Duration::ZERO, timeout(Duration::ZERO, std::future::pending::<()>())).await
        );
        println!("{:?}", timeout(Duration::MAX, timeout(Duration::MAX, sleep(s(9)))).await);
    });
}

fn a_timed_out_future_is_dropped_with_its_timeout() {
    paused().block_on(async {
        let log = Log::new();
        let g = log.on_drop("future");
        let mut f = Box::pin(timeout(ms(1), async move {
            let _g = g;
            std::future::pending::<()>().await
        }));
        println!("{:?} {:?}", f.as_mut().await, log.take());
        drop(f);
        println!("{:?}", log.take());
        let to = timeout(ms(1), Box::pin(async { 5 }));
        println!("{:?}", to.into_inner().await);
    });
}

fn timeout_of_a_future_that_uses_up_its_budget_still_elapses() {
    paused().block_on(async {
        // the future is always ready: it only stops when the coop budget makes it
        let (tx, mut rx) = tokio::sync::mpsc::unbounded_channel();
        for i in 0..100_000u32 {
            tx.send(i).unwrap();
        }
        let mut n = 0;
        let r = timeout(Duration::ZERO, async {
            while rx.recv().await.is_some() {
                n += 1;
            }
        })
        .await;
        println!("{r:?} {n}");
    });
}

fn timeout_takes_an_into_future() {
    struct I;
    impl std::future::IntoFuture for I {
        type Output = u8;
        type IntoFuture = std::future::Ready<u8>;
        fn into_future(self) -> Self::IntoFuture {
            std::future::ready(3)
        }
    }
    paused().block_on(async {
        println!("{:?} {:?}", timeout(ms(1), I).await, timeout_at(Instant::now(), I).await);
    });
}

// Interval.

fn interval_of_zero_panics() {
    let rt = paused();
    println!("{}", caught(|| rt.block_on(async { drop(interval(Duration::ZERO)) })));
    println!(
        "{}",
        caught(|| rt.block_on(async { drop(interval_at(Instant::now(), Duration::ZERO)) }))
    );
}

fn interval_first_tick_is_now() {
    paused().block_on(async {
        let t = Instant::now();
        let mut i = interval(ms(10));
        println!(
            "{:?} {:?} {:?}",
            i.period(),
            i.missed_tick_behavior(),
            MissedTickBehavior::default()
        );
        for _ in 0..4 {
            let k = i.tick().await;
            println!("{:?} {:?}", k - t, t.elapsed());
        }
    });
}

fn interval_at_a_later_and_an_earlier_start() {
    paused().block_on(async {
        sleep(s(1)).await;
        let t = Instant::now();
        let mut i = interval_at(t + ms(25), ms(10));
        for _ in 0..3 {
            println!("{:?} {:?}", i.tick().await - t, t.elapsed());
        }
        let t = Instant::now();
        let mut i = interval_at(t - ms(25), ms(10));
        for _ in 0..5 {
            let k = i.tick().await;
            println!("late {:?} {:?}", t.saturating_duration_since(k), t.elapsed());
        }
    });
}

fn missed(b: MissedTickBehavior) {
    paused().block_on(async {
        let t = Instant::now();
        let mut i = interval(ms(50));
        i.set_missed_tick_behavior(b);
        println!("{:?}", i.missed_tick_behavior());
        i.tick().await;
        for wait in [0u64, 125, 0, 0, 20, 0, 200, 0, 0, 0] {
            sleep(ms(wait)).await;
            let k = i.tick().await;
            println!("waited {wait}: tick of {:?} at {:?}", k - t, t.elapsed());
        }
    });
}

fn missed_ticks_burst() {
    missed(MissedTickBehavior::Burst)
}

fn missed_ticks_delay() {
    missed(MissedTickBehavior::Delay)
}

fn missed_ticks_skip() {
    missed(MissedTickBehavior::Skip)
}

fn ticks_up_to_five_milliseconds_late_are_not_missed() {
    for late in [4u64, 5, 6, 7] {
        paused().block_on(async {
            let t = Instant::now();
            let mut i = interval(ms(50));
            i.set_missed_tick_behavior(MissedTickBehavior::Delay);
            i.tick().await;
            sleep(ms(50 + late)).await;
            i.tick().await;
            println!("{late}: next {:?}", i.tick().await - t);
        });
    }
}

fn interval_resets() {
    paused().block_on(async {
        let t = Instant::now();
        let mut i = interval(ms(100));
        i.tick().await;
        sleep(ms(50)).await;
        i.reset();
        println!("{:?} {:?}", i.tick().await - t, t.elapsed());
        i.reset_immediately();
        println!("{:?} {:?}", i.tick().await - t, t.elapsed());
        i.reset_after(ms(30));
        println!("{:?} {:?}", i.tick().await - t, t.elapsed());
        i.reset_at(t + s(1));
        println!("{:?} {:?}", i.tick().await - t, t.elapsed());
        println!("{:?} {:?}", i.tick().await - t, t.elapsed());
    });
}

fn interval_with_the_longest_period() {
    paused().block_on(async {
        let mut i = interval(Duration::MAX);
        i.tick().await;
        println!("{:?}", timeout(s(1), i.tick()).await.is_err());
        i.reset();
        i.set_missed_tick_behavior(MissedTickBehavior::Skip);
        println!("{:?}", timeout(s(1), i.tick()).await.is_err());
    });
}

fn a_cancelled_tick_is_not_consumed() {
    paused().block_on(async {
        let t = Instant::now();
        let mut i = interval(ms(10));
        i.tick().await;
        for _ in 0..3 {
            println!("{:?}", timeout(ms(4), i.tick()).await.map(|k| k - t));
        }
        println!("{:?}", t.elapsed());
    });
}

fn interval_stream_of_tokio_stream() {
    paused().block_on(async {
        let t = Instant::now();
        let v: Vec<_> = tokio_stream::wrappers::IntervalStream::new(interval(ms(10)))
            .take(3)
            .map(|k| k - t)
            .collect()
            .await;
        println!("{v:?}");
    });
}

// Pause, advance.

fn pausing_twice_panics_and_so_does_resuming_twice() {
    let rt = paused();
    println!("{}", caught(|| rt.block_on(async { pause() })));
    println!(
        "{}",
        caught(|| rt.block_on(async {
            resume();
            resume()
        }))
    );
    println!("{}", caught(|| rt.block_on(async { pause() })));
    println!("{}", caught(|| current_thread().block_on(async { resume() })));
}

fn pause_needs_a_current_thread_runtime() {
    println!("{}", caught(|| multi_thread(1).block_on(async { pause() })));
    println!(
        "{}",
        caught(|| multi_thread(2)
            .block_on(async { tokio::spawn(async { pause() }).await.unwrap_err().is_panic() }))
    );
    println!(
        "{}",
        caught(|| Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .start_paused(true)
            .build()
            .map(drop))
    );
    println!("{}", caught(pause));
    println!("{}", caught(resume));
    println!("{}", caught(|| advance(ms(1)).now_or_never()));
}

fn advance_needs_paused_time() {
    println!("{}", caught(|| current_thread().block_on(advance(ms(1)))));
    println!("{}", caught(|| paused().block_on(advance(Duration::MAX))));
    println!("{}", caught(|| multi_thread(1).block_on(advance(ms(1)))));
}

fn advance_moves_now_and_wakes_what_is_due() {
    paused().block_on(async {
        let t = Instant::now();
        let a = tokio::spawn(async move {
            sleep(ms(10)).await;
            t.elapsed()
        });
        let b = tokio::spawn(async move {
            sleep(ms(200)).await;
            t.elapsed()
        });
        tokio::task::yield_now().await;
        advance(ms(100)).await;
        println!("{:?}", t.elapsed());
        println!("{:?} {}", a.await.unwrap(), b.is_finished());
        println!("{:?} {:?}", b.await.unwrap(), t.elapsed());
    });
}

fn advance_by_zero_and_by_parts_of_a_millisecond() {
    paused().block_on(async {
        let t = Instant::now();
        advance(Duration::ZERO).await;
        println!("{:?}", t.elapsed());
        advance(Duration::from_nanos(500)).await;
        advance(Duration::from_micros(250)).await;
        println!("{:?}", t.elapsed());
        sleep(ms(1)).await;
        println!("{}", t.elapsed() >= Duration::from_nanos(1_250_500));
    });
}

fn advance_past_an_interval_gives_a_burst() {
    paused().block_on(async {
        let t = Instant::now();
        let mut i = interval(ms(10));
        i.tick().await;
        advance(ms(35)).await;
        for _ in 0..4 {
            println!("{:?} {:?}", i.tick().await - t, t.elapsed());
        }
    });
}

fn a_ready_task_stops_the_auto_advance() {
    paused().block_on(async {
        let t = Instant::now();
        let h = tokio::spawn(async move {
            for _ in 0..500 {
                tokio::task::yield_now().await;
            }
            t.elapsed()
        });
        let sl = tokio::spawn(async move {
            sleep(s(1)).await;
            t.elapsed()
        });
        println!("{:?} {:?}", h.await.unwrap(), sl.await.unwrap());
    });
}

fn a_blocking_task_stops_the_auto_advance() {
    paused().block_on(async {
        let t = Instant::now();
        let r = timeout(s(100), tokio::task::spawn_blocking(|| std::thread::sleep(ms(50)))).await;
        println!("{:?} {:?}", r.is_ok(), t.elapsed());
        sleep(s(1)).await;
        println!("{:?}", t.elapsed());
    });
}

fn a_panicking_or_forgotten_blocking_task_lets_time_go_on_afterwards() {
    quiet();
    paused().block_on(async {
        let t = Instant::now();
        println!("{}", tokio::task::spawn_blocking(|| panic!("x")).await.unwrap_err().is_panic());
        drop(tokio::task::spawn_blocking(|| std::thread::sleep(ms(30))));
        sleep(s(2)).await;
        println!("{:?}", t.elapsed());
    });
}

fn a_blocking_task_queued_behind_another_stops_it_too() {
    let rt = Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .max_blocking_threads(1)
        .build()
        .unwrap();
    rt.block_on(async {
        let t = Instant::now();
        let a = tokio::task::spawn_blocking(|| std::thread::sleep(ms(20)));
        let b = tokio::task::spawn_blocking(|| std::thread::sleep(ms(20)));
        println!(
            "{:?}",
            timeout(s(5), async {
                a.await.unwrap();
                b.await.unwrap();
            })
            .await
        );
        println!("{:?}", t.elapsed());
    });
}

fn resume_lets_real_time_flow_from_where_it_was() {
    paused().block_on(async {
        let t = Instant::now();
        sleep(s(1000)).await;
        resume();
        let u = Instant::now();
        println!("{}", u - t >= s(1000) && u - t < s(1100));
        sleep(ms(5)).await;
        println!("{}", u.elapsed() >= ms(5));
        pause();
        let w = Instant::now();
        std::thread::sleep(ms(5));
        println!("{:?}", w.elapsed());
    });
}

fn paused_time_stands_still_while_a_thread_sleeps() {
    paused().block_on(async {
        let t = Instant::now();
        std::thread::sleep(ms(20));
        println!("{:?}", t.elapsed());
        let std_before = t.into_std();
        println!("{}", std_before.elapsed() >= ms(20));
    });
}

fn each_runtime_has_its_own_paused_clock() {
    let a = paused();
    let b = paused();
    a.block_on(async {
        let t = Instant::now();
        sleep(s(3600)).await;
        println!("{:?}", t.elapsed());
    });
    b.block_on(async {
        let t = Instant::now();
        sleep(s(1)).await;
        println!("{:?}", t.elapsed());
    });
    println!("{}", Instant::now().elapsed() < s(3600));
}

fn time_goes_on_between_block_ons_only_as_it_was() {
    let rt = paused();
    let t = rt.block_on(async { Instant::now() });
    std::thread::sleep(ms(10));
    println!("{:?}", rt.block_on(async { t.elapsed() }));
    rt.block_on(sleep_on(s(1)));
    println!("{:?}", rt.block_on(async { t.elapsed() }));
}

async fn sleep_on(d: Duration) {
    sleep(d).await
}

fn a_sleep_made_outside_block_on_needs_a_context() {
    let rt = paused();
    println!("{}", caught(|| rt.block_on(sleep(ms(1)))));
    println!("{}", caught(|| drop(sleep(ms(1)))));
    println!("{}", caught(|| drop(timeout(ms(1), async {}))));
    println!("{}", caught(|| drop(interval(ms(1)))));
    let sl = {
        let _e = rt.enter();
        sleep(ms(1))
    };
    println!("{:?}", rt.block_on(sl));
}

fn time_without_enable_time_panics() {
    let rt = Builder::new_current_thread().build().unwrap();
    println!("{}", caught(|| rt.block_on(async { sleep(ms(1)).await })));
    println!("{}", caught(|| rt.block_on(async { timeout(ms(1), async {}).await.is_ok() })));
    println!("{}", caught(|| rt.block_on(async { drop(interval(ms(1))) })));
    let rt = Builder::new_multi_thread().worker_threads(1).enable_io().build().unwrap();
    println!("{}", caught(|| rt.block_on(async { sleep_until(Instant::now()).await })));
    println!("{}", rt.block_on(async { Instant::now().elapsed() < s(100) }));
    println!(
        "{}",
        caught(|| rt.block_on(async {
            tokio::spawn(async { sleep(ms(1)).await })
                .await
                .unwrap_err()
                .to_string()
                .starts_with("task")
        }))
    );
}

fn a_multi_thread_runtime_sleeps_at_least_that_long() {
    for n in [1, 2, 4] {
        multi_thread(n).block_on(async {
            let t = std::time::Instant::now();
            let hs: Vec<_> = (1..10u64)
                .map(|i| {
                    tokio::spawn(async move {
                        let t = std::time::Instant::now();
                        sleep(ms(i * 3)).await;
                        t.elapsed() >= ms(i * 3)
                    })
                })
                .collect();
            let mut all = true;
            for h in hs {
                all &= h.await.unwrap();
            }
            println!("{n} {all} {}", t.elapsed() >= ms(27));
        });
    }
}

fn a_sleep_may_be_polled_on_another_runtime() {
    let a = multi_thread(1);
    let b = current_thread();
    let sl = {
        let _e = a.enter();
        sleep(ms(5))
    };
    println!("{:?}", b.block_on(sl));
    let no_time = Builder::new_current_thread().build().unwrap();
    let sl = {
        let _e = a.enter();
        sleep(ms(5))
    };
    println!("{:?}", no_time.block_on(sl));
}

fn select_between_two_sleeps_takes_the_earlier() {
    paused().block_on(async {
        let t = Instant::now();
        let r = tokio::select! {
            _ = sleep(ms(30)) => "long",
            _ = sleep(ms(10)) => "short",
        };
        println!("{r} {:?}", t.elapsed());
        let r = tokio::select! {
            biased;
            _ = sleep(ms(10)) => "first",
            _ = sleep(ms(10)) => "second",
        };
        println!("{r} {:?}", t.elapsed());
    });
}

fn timers_in_a_local_set() {
    let rt = paused();
    let l = tokio::task::LocalSet::new();
    l.block_on(&rt, async {
        let t = Instant::now();
        let h = tokio::task::spawn_local(async move {
            sleep(ms(40)).await;
            t.elapsed()
        });
        let k = tokio::task::spawn_local(async move {
            timeout(ms(7), std::future::pending::<()>()).await.is_err()
        });
        println!("{} {:?}", k.await.unwrap(), t.elapsed());
        println!("{:?}", h.await.unwrap());
    });
}

fn a_thousand_timers_set_and_dropped_leave_nothing() {
    paused().block_on(async {
        let t = Instant::now();
        for i in 0..1000u64 {
            let mut sl = Box::pin(sleep(ms(1 + i)));
            let _ = futures_util::poll!(sl.as_mut());
        }
        sleep(s(5)).await;
        println!("{:?}", t.elapsed());
    });
}

fn now_inside_a_paused_runtimes_blocking_task() {
    paused().block_on(async {
        let t = Instant::now();
        sleep(s(50)).await;
        let e = tokio::task::spawn_blocking(move || t.elapsed()).await.unwrap();
        println!("{e:?}");
        let e = std::thread::spawn(move || t.elapsed() < s(50)).join().unwrap();
        println!("{e}");
    });
}

// `DelayQueue`.

fn delay_queue_gives_items_in_deadline_order() {
    paused().block_on(async {
        let t = Instant::now();
        let mut q = DelayQueue::new();
        for (n, d) in [("c", 300u64), ("a", 10), ("d", 100_000), ("b", 20)] {
            q.insert(n, ms(d));
        }
        println!("{} {}", q.len(), q.is_empty());
        while let Some(e) = q.next().await {
            println!("{} {:?} {:?}", e.get_ref(), e.deadline() - t, t.elapsed());
        }
        println!("{:?} {}", q.next().now_or_never().map(|o| o.is_none()), q.is_empty());
    });
}

fn delay_queue_reset_and_remove() {
    paused().block_on(async {
        let t = Instant::now();
        let mut q = DelayQueue::new();
        let a = q.insert("a", ms(10));
        let b = q.insert("b", ms(20));
        let c = q.insert_at("c", t + ms(30));
        println!("{:?} {:?}", q.deadline(&b) - t, q.peek() == Some(a));
        q.reset(&a, ms(50));
        println!("{:?}", q.remove(&b).into_inner());
        println!("{:?}", q.try_remove(&b).is_none());
        q.reset_at(&c, t + ms(5));
        while let Some(e) = q.next().await {
            println!("{} {:?}", e.into_inner(), t.elapsed());
        }
        println!("{}", caught(|| q.remove(&a).into_inner()));
        println!("{}", caught(|| q.reset(&a, ms(1))));
        println!("{}", caught(|| q.deadline(&a)).starts_with("panic"));
    });
}

fn delay_queue_poll_expired_wakes() {
    paused().block_on(async {
        let mut q = DelayQueue::with_capacity(4);
        let (c, w) = counter();
        let mut cx = Context::from_waker(&w);
        println!("{:?}", q.poll_expired(&mut cx).map(|o| o.map(|e| e.into_inner())));
        q.insert(1, ms(10));
        println!("woken by the insert: {}", c.get() > 0);
        println!("{:?}", q.poll_expired(&mut cx).map(|o| o.map(|e| e.into_inner())));
        let before = c.get();
        sleep(ms(20)).await;
        println!("{}", c.get() - before);
        println!("{:?}", q.poll_expired(&mut cx).map(|o| o.map(|e| e.into_inner())));
        q.insert(2, Duration::ZERO);
        println!("{:?}", q.poll_expired(&mut cx).map(|o| o.map(|e| e.into_inner())));
        q.insert(3, ms(5));
        q.clear();
        println!("{} {:?}", q.len(), q.poll_expired(&mut cx).map(|o| o.is_none()));
    });
}

fn delay_queue_of_the_same_deadline_gives_all() {
    paused().block_on(async {
        let t = Instant::now();
        let mut q = DelayQueue::new();
        for i in 0..20 {
            q.insert_at(i, t + ms(15));
        }
        let mut v = vec![];
        while let Some(e) = q.next().await {
            assert_eq!(t.elapsed(), ms(15));
            v.push(e.into_inner());
        }
        v.sort();
        println!("{v:?}");
    });
}

fn delay_queue_drops_its_items() {
    paused().block_on(async {
        let log = Log::new();
        let mut q = DelayQueue::new();
        q.insert(log.on_drop("x"), s(1));
        let k = q.insert(log.on_drop("y"), s(2));
        drop(q.remove(&k));
        println!("{:?}", log.take());
        drop(q);
        println!("{:?}", log.take());
    });
}

fn delay_queue_too_far_panics() {
    paused().block_on(async {
        let mut q = DelayQueue::new();
        println!(
            "{}",
            caught(|| {
                q.insert(1, s(86_400 * 365 * 3));
            })
        );
        println!("{}", q.len());
    });
}

fn time_errors_print() {
    use tokio::time::error::Error;
    for e in [Error::shutdown(), Error::at_capacity(), Error::invalid()] {
        println!(
            "{} | {e:?} | {} {} {}",
            quoted(e),
            e.is_shutdown(),
            e.is_at_capacity(),
            e.is_invalid()
        );
    }
}

fn stream_timeouts_of_tokio_stream() {
    paused().block_on(async {
        use tokio_stream::StreamExt as _;
        let st = tokio_stream::wrappers::IntervalStream::new(interval_at(
            Instant::now() + ms(30),
            ms(30),
        ));
        let mut st = Box::pin(tokio_stream::StreamExt::take(st, 2).timeout(ms(20)));
        while let Some(r) = tokio_stream::StreamExt::next(&mut st).await {
            println!("{:?}", r.map(|_| ()).map_err(|e| e.to_string()));
        }
    });
}

fn sleep_polled_after_its_runtime_ended_panics() {
    let rt = current_thread();
    let mut sl = {
        let _e = rt.enter();
        Box::pin(sleep(s(10)))
    };
    let (c, w) = counter();
    println!("{:?}", sl.as_mut().poll(&mut Context::from_waker(&w)));
    drop(rt);
    println!("woken {}", c.get() > 0);
    println!(
        "{}",
        caught(|| {
            let r: Poll<()> = sl.as_mut().poll(&mut Context::from_waker(&w));
            r
        })
    );
}

fn a_sleep_first_polled_after_the_end_panics() {
    let rt = multi_thread(1);
    let mut sl = {
        let _e = rt.enter();
        Box::pin(sleep(s(10)))
    };
    drop(rt);
    println!("{}", caught(|| sl.as_mut().now_or_never()));
    println!("{:?}", sl.is_elapsed());
}

pub const CASES: &[(&str, fn())] = &[
    ("paused_time_jumps_to_the_next_sleep_exactly", paused_time_jumps_to_the_next_sleep_exactly),
    ("sleeps_below_a_millisecond_round_up", sleeps_below_a_millisecond_round_up),
    ("a_zero_sleep_is_ready_at_its_first_poll", a_zero_sleep_is_ready_at_its_first_poll),
    (
        "sleep_knows_its_deadline_and_whether_it_elapsed",
        sleep_knows_its_deadline_and_whether_it_elapsed,
    ),
    ("sleep_reset_earlier_and_later", sleep_reset_earlier_and_later),
    (
        "a_reset_sleep_wakes_its_waker_at_the_new_deadline_without_a_poll",
        a_reset_sleep_wakes_its_waker_at_the_new_deadline_without_a_poll,
    ),
    ("a_sleep_wakes_its_last_waker_once", a_sleep_wakes_its_last_waker_once),
    ("a_dropped_sleep_lets_its_waker_go", a_dropped_sleep_lets_its_waker_go),
    ("sleeping_tasks_wake_in_deadline_order", sleeping_tasks_wake_in_deadline_order),
    ("every_sleep_of_one_deadline_wakes_at_it", every_sleep_of_one_deadline_wakes_at_it),
    ("far_future_sleeps_do_not_panic", far_future_sleeps_do_not_panic),
    ("a_sleep_of_two_years_and_more_than_the_wheel", a_sleep_of_two_years_and_more_than_the_wheel),
    ("instant_arithmetic", instant_arithmetic),
    ("timeout_error_prints", timeout_error_prints),
    (
        "a_zero_timeout_still_polls_the_future_once_first",
        a_zero_timeout_still_polls_the_future_once_first,
    ),
    ("an_equal_deadline_favours_the_value", an_equal_deadline_favours_the_value),
    ("nested_timeouts", nested_timeouts),
    (
        "a_timed_out_future_is_dropped_with_its_timeout",
        a_timed_out_future_is_dropped_with_its_timeout,
    ),
    (
        "timeout_of_a_future_that_uses_up_its_budget_still_elapses",
        timeout_of_a_future_that_uses_up_its_budget_still_elapses,
    ),
    ("timeout_takes_an_into_future", timeout_takes_an_into_future),
    ("interval_of_zero_panics", interval_of_zero_panics),
    ("interval_first_tick_is_now", interval_first_tick_is_now),
    ("interval_at_a_later_and_an_earlier_start", interval_at_a_later_and_an_earlier_start),
    ("missed_ticks_burst", missed_ticks_burst),
    ("missed_ticks_delay", missed_ticks_delay),
    ("missed_ticks_skip", missed_ticks_skip),
    (
        "ticks_up_to_five_milliseconds_late_are_not_missed",
        ticks_up_to_five_milliseconds_late_are_not_missed,
    ),
    ("interval_resets", interval_resets),
    ("interval_with_the_longest_period", interval_with_the_longest_period),
    ("a_cancelled_tick_is_not_consumed", a_cancelled_tick_is_not_consumed),
    ("interval_stream_of_tokio_stream", interval_stream_of_tokio_stream),
    (
        "pausing_twice_panics_and_so_does_resuming_twice",
        pausing_twice_panics_and_so_does_resuming_twice,
    ),
    ("pause_needs_a_current_thread_runtime", pause_needs_a_current_thread_runtime),
    ("advance_needs_paused_time", advance_needs_paused_time),
    ("advance_moves_now_and_wakes_what_is_due", advance_moves_now_and_wakes_what_is_due),
    (
        "advance_by_zero_and_by_parts_of_a_millisecond",
        advance_by_zero_and_by_parts_of_a_millisecond,
    ),
    ("advance_past_an_interval_gives_a_burst", advance_past_an_interval_gives_a_burst),
    ("a_ready_task_stops_the_auto_advance", a_ready_task_stops_the_auto_advance),
    ("a_blocking_task_stops_the_auto_advance", a_blocking_task_stops_the_auto_advance),
    (
        "a_panicking_or_forgotten_blocking_task_lets_time_go_on_afterwards",
        a_panicking_or_forgotten_blocking_task_lets_time_go_on_afterwards,
    ),
    (
        "a_blocking_task_queued_behind_another_stops_it_too",
        a_blocking_task_queued_behind_another_stops_it_too,
    ),
    ("resume_lets_real_time_flow_from_where_it_was", resume_lets_real_time_flow_from_where_it_was),
    (
        "paused_time_stands_still_while_a_thread_sleeps",
        paused_time_stands_still_while_a_thread_sleeps,
    ),
    ("each_runtime_has_its_own_paused_clock", each_runtime_has_its_own_paused_clock),
    (
        "time_goes_on_between_block_ons_only_as_it_was",
        time_goes_on_between_block_ons_only_as_it_was,
    ),
    (
        "a_sleep_made_outside_block_on_needs_a_context",
        a_sleep_made_outside_block_on_needs_a_context,
    ),
    ("time_without_enable_time_panics", time_without_enable_time_panics),
    (
        "a_multi_thread_runtime_sleeps_at_least_that_long",
        a_multi_thread_runtime_sleeps_at_least_that_long,
    ),
    ("a_sleep_may_be_polled_on_another_runtime", a_sleep_may_be_polled_on_another_runtime),
    ("select_between_two_sleeps_takes_the_earlier", select_between_two_sleeps_takes_the_earlier),
    ("timers_in_a_local_set", timers_in_a_local_set),
    (
        "a_thousand_timers_set_and_dropped_leave_nothing",
        a_thousand_timers_set_and_dropped_leave_nothing,
    ),
    ("now_inside_a_paused_runtimes_blocking_task", now_inside_a_paused_runtimes_blocking_task),
    ("delay_queue_gives_items_in_deadline_order", delay_queue_gives_items_in_deadline_order),
    ("delay_queue_reset_and_remove", delay_queue_reset_and_remove),
    ("delay_queue_poll_expired_wakes", delay_queue_poll_expired_wakes),
    ("delay_queue_of_the_same_deadline_gives_all", delay_queue_of_the_same_deadline_gives_all),
    ("delay_queue_drops_its_items", delay_queue_drops_its_items),
    ("delay_queue_too_far_panics", delay_queue_too_far_panics),
    ("time_errors_print", time_errors_print),
    ("stream_timeouts_of_tokio_stream", stream_timeouts_of_tokio_stream),
    ("sleep_polled_after_its_runtime_ended_panics", sleep_polled_after_its_runtime_ended_panics),
    ("a_sleep_first_polled_after_the_end_panics", a_sleep_first_polled_after_the_end_panics),
];
