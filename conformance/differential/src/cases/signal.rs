//! Signals of the process.

use crate::probe::files::*;
use futures_util::FutureExt;
use std::fmt::Debug;
use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

pub const CASES: &[(&str, fn())] = &[
    ("the_numbers_of_the_kinds", the_numbers_of_the_kinds),
    ("kinds_convert_and_compare", kinds_convert_and_compare),
    ("every_named_kind_is_received", every_named_kind_is_received),
    ("other_standard_signals_are_received", other_standard_signals_are_received),
    ("real_time_signals_are_received", real_time_signals_are_received),
    ("forbidden_signals_are_refused", forbidden_signals_are_refused),
    ("numbers_out_of_range_are_refused", numbers_out_of_range_are_refused),
    ("the_signals_of_the_thread_library_are_einval", the_signals_of_the_thread_library_are_einval),
    ("signal_outside_of_a_runtime_panics", signal_outside_of_a_runtime_panics),
    ("signal_without_io_panics", signal_without_io_panics),
    ("signal_with_only_io_enabled_works", signal_with_only_io_enabled_works),
    (
        "signal_in_the_context_of_a_dropped_current_thread_runtime_fails",
        signal_in_the_context_of_a_dropped_current_thread_runtime_fails,
    ),
    (
        "signal_in_the_context_of_a_dropped_multi_thread_runtime",
        signal_in_the_context_of_a_dropped_multi_thread_runtime,
    ),
    ("ctrl_c_is_sigint", ctrl_c_is_sigint),
    ("several_ctrl_c_waiters_all_wake", several_ctrl_c_waiters_all_wake),
    ("ctrl_c_registers_at_the_first_poll", ctrl_c_registers_at_the_first_poll),
    (
        "a_new_ctrl_c_future_does_not_see_an_older_signal",
        a_new_ctrl_c_future_does_not_see_an_older_signal,
    ),
    ("several_listeners_each_get_it", several_listeners_each_get_it),
    ("signals_are_coalesced_until_received", signals_are_coalesced_until_received),
    ("real_time_signals_are_coalesced_too", real_time_signals_are_coalesced_too),
    ("different_signals_are_not_coalesced", different_signals_are_not_coalesced),
    ("signals_one_by_one", signals_one_by_one),
    ("a_listener_does_not_get_what_came_before_it", a_listener_does_not_get_what_came_before_it),
    (
        "a_signal_between_registration_and_recv_is_kept",
        a_signal_between_registration_and_recv_is_kept,
    ),
    ("a_signal_while_no_runtime_is_driven_is_kept", a_signal_while_no_runtime_is_driven_is_kept),
    ("dropping_one_listener_leaves_the_others", dropping_one_listener_leaves_the_others),
    (
        "after_the_last_listener_the_signal_is_still_caught",
        after_the_last_listener_the_signal_is_still_caught,
    ),
    (
        "a_listener_of_a_dropped_runtime_works_on_another",
        a_listener_of_a_dropped_runtime_works_on_another,
    ),
    (
        "a_signal_while_no_runtime_exists_reaches_the_next_one",
        a_signal_while_no_runtime_exists_reaches_the_next_one,
    ),
    ("listeners_in_two_runtimes_both_get_it", listeners_in_two_runtimes_both_get_it),
    ("a_chain_of_runtimes_with_a_listener_each", a_chain_of_runtimes_with_a_listener_each),
    ("a_listener_in_a_task_of_every_flavour", a_listener_in_a_task_of_every_flavour),
    ("recv_is_cancel_safe", recv_is_cancel_safe),
    ("select_between_two_signals", select_between_two_signals),
    ("poll_recv_wakes_its_waker", poll_recv_wakes_its_waker),
    ("a_signal_stream", a_signal_stream),
    ("a_broken_pipe_raises_sigpipe_and_epipe", a_broken_pipe_raises_sigpipe_and_epipe),
    ("sigchld_comes_with_the_end_of_a_child", sigchld_comes_with_the_end_of_a_child),
    ("a_stopped_child_and_sigchld", a_stopped_child_and_sigchld),
    ("an_alarm_and_an_interval_timer", an_alarm_and_an_interval_timer),
    ("a_child_signals_its_parent", a_child_signals_its_parent),
    ("signals_to_a_thread_and_from_a_thread", signals_to_a_thread_and_from_a_thread),
    ("an_earlier_handler_is_still_called", an_earlier_handler_is_still_called),
    ("a_later_handler_takes_the_signal_away", a_later_handler_takes_the_signal_away),
    (
        "an_ignored_signal_is_received_after_registration",
        an_ignored_signal_is_received_after_registration,
    ),
    ("the_flags_of_the_installed_handler", the_flags_of_the_installed_handler),
    ("building_a_runtime_installs_no_handler", building_a_runtime_installs_no_handler),
    ("a_blocked_signal_comes_after_it_is_unblocked", a_blocked_signal_comes_after_it_is_unblocked),
    ("signals_do_not_disturb_blocking_reads", signals_do_not_disturb_blocking_reads),
    ("signals_during_timers_and_io", signals_during_timers_and_io),
    ("a_listener_under_a_paused_clock", a_listener_under_a_paused_clock),
    (
        "the_handlers_of_the_parent_are_not_those_of_the_child",
        the_handlers_of_the_parent_are_not_those_of_the_child,
    ),
    ("a_thousand_listeners", a_thousand_listeners),
    ("listeners_need_no_further_descriptors", listeners_need_no_further_descriptors),
    ("a_signal_is_send_and_sync_and_debug", a_signal_is_send_and_sync_and_debug),
    ("a_listener_moves_between_tasks", a_listener_moves_between_tasks),
    ("a_graceful_shutdown_by_sigterm", a_graceful_shutdown_by_sigterm),
];

use futures_util::StreamExt;
use std::process::Stdio;
use tokio::process::Command;
use tokio::signal::ctrl_c;
use tokio::signal::unix::{Signal, SignalKind, signal};

fn raise(s: i32) {
    // SAFETY: the call takes numbers and no memory.
    assert_eq!(unsafe { libc::raise(s) }, 0);
}

fn kill_self(s: i32) {
    // SAFETY: the call takes numbers and no memory.
    assert_eq!(unsafe { libc::kill(libc::getpid(), s) }, 0);
}

/// Waits for the next signal, at most two seconds.
async fn next(s: &mut Signal) -> String {
    match timeout(Duration::from_secs(2), s.recv()).await {
        Ok(r) => format!("{r:?}"),
        Err(_) => "none in time".into(),
    }
}

/// Returns true if no signal comes within 100 ms.
async fn quiet(s: &mut Signal) -> bool {
    timeout(Duration::from_millis(100), s.recv()).await.is_err()
}

fn handler_of(s: i32) -> &'static str {
    // SAFETY: a `sigaction` of zeros is valid; the call writes into a local, and the new action may
    // be null.
    unsafe {
        let mut a: libc::sigaction = std::mem::zeroed();
        libc::sigaction(s, std::ptr::null(), &mut a);
        match a.sa_sigaction {
            libc::SIG_DFL => "default",
            libc::SIG_IGN => "ignored",
            _ => "handler",
        }
    }
}

fn the_numbers_of_the_kinds() {
    for k in [
        SignalKind::hangup(),
        SignalKind::interrupt(),
        SignalKind::quit(),
        SignalKind::user_defined1(),
        SignalKind::user_defined2(),
        SignalKind::pipe(),
        SignalKind::alarm(),
        SignalKind::terminate(),
        SignalKind::child(),
        SignalKind::window_change(),
        SignalKind::io(),
    ] {
        println!("{} {k:?}", k.as_raw_value());
    }
}

fn kinds_convert_and_compare() {
    println!("{}", SignalKind::from_raw(2) == SignalKind::interrupt());
    println!("{}", SignalKind::from(15) == SignalKind::terminate());
    let n: i32 = SignalKind::quit().into();
    println!("{n}");
    let s: std::collections::HashSet<SignalKind> =
        [1, 2, 2, 3].into_iter().map(SignalKind::from_raw).collect();
    println!("{}", s.len());
    const K: SignalKind = SignalKind::from_raw(-7);
    println!("{}", K.as_raw_value());
}

fn every_named_kind_is_received() {
    for n in [0, 2] {
        let rt = runtime(n);
        rt.block_on(async {
            for k in [
                SignalKind::hangup(),
                SignalKind::interrupt(),
                SignalKind::quit(),
                SignalKind::user_defined1(),
                SignalKind::user_defined2(),
                SignalKind::pipe(),
                SignalKind::alarm(),
                SignalKind::terminate(),
                SignalKind::child(),
                SignalKind::window_change(),
                SignalKind::io(),
            ] {
                let mut s = signal(k).unwrap();
                raise(k.as_raw_value());
                println!("{} {}", k.as_raw_value(), next(&mut s).await);
            }
        });
    }
}

fn other_standard_signals_are_received() {
    let rt = runtime(1);
    rt.block_on(async {
        for n in [
            libc::SIGTRAP,
            libc::SIGABRT,
            libc::SIGBUS,
            libc::SIGSTKFLT,
            libc::SIGCONT,
            libc::SIGTSTP,
            libc::SIGTTIN,
            libc::SIGTTOU,
            libc::SIGURG,
            libc::SIGXCPU,
            libc::SIGXFSZ,
            libc::SIGVTALRM,
            libc::SIGPROF,
            libc::SIGPWR,
            libc::SIGSYS,
        ] {
            let mut s = signal(SignalKind::from_raw(n)).unwrap();
            kill_self(n);
            println!("{n} {}", next(&mut s).await);
        }
    });
}

fn real_time_signals_are_received() {
    let rt = runtime(0);
    rt.block_on(async {
        println!("{} {}", libc::SIGRTMIN(), libc::SIGRTMAX());
        for n in libc::SIGRTMIN()..=libc::SIGRTMAX() {
            let mut s = signal(SignalKind::from_raw(n)).unwrap();
            raise(n);
            assert_eq!(next(&mut s).await, "Some(())");
        }
        println!("all");
    });
}

fn forbidden_signals_are_refused() {
    let rt = runtime(2);
    rt.block_on(async {
        for n in [libc::SIGKILL, libc::SIGSTOP, libc::SIGILL, libc::SIGFPE, libc::SIGSEGV] {
            text(&n.to_string(), signal(SignalKind::from_raw(n)).map(|_| ()));
        }
    });
}

fn numbers_out_of_range_are_refused() {
    let rt = runtime(1);
    rt.block_on(async {
        for n in [0, -1, i32::MIN, 65, 100, 1000, i32::MAX] {
            text(&n.to_string(), signal(SignalKind::from_raw(n)).map(|_| ()));
        }
    });
}

fn the_signals_of_the_thread_library_are_einval() {
    let rt = runtime(0);
    rt.block_on(async {
        for n in [32, 33] {
            text(&n.to_string(), signal(SignalKind::from_raw(n)).map(|_| ()));
            text("again", signal(SignalKind::from_raw(n)).map(|_| ()));
        }
    });
}

fn signal_outside_of_a_runtime_panics() {
    panics("usr1", || signal(SignalKind::user_defined1()).map(|_| ()));
    panics("forbidden", || signal(SignalKind::from_raw(9)).map(|_| ()));
    panics("ctrl_c", || ctrl_c().now_or_never().is_some());
    println!("{}", handler_of(libc::SIGUSR1));
}

fn signal_without_io_panics() {
    let rt = Builder::new_current_thread().enable_time().build().unwrap();
    let _g = rt.enter();
    panics("usr1", || signal(SignalKind::user_defined1()).map(|_| ()));
    panics("ctrl_c", || ctrl_c().now_or_never().is_some());
    println!("{} {}", handler_of(libc::SIGUSR1), handler_of(libc::SIGINT));
}

fn signal_with_only_io_enabled_works() {
    let rt = Builder::new_multi_thread().worker_threads(1).enable_io().build().unwrap();
    rt.block_on(async {
        let mut s = signal(SignalKind::user_defined1()).unwrap();
        raise(libc::SIGUSR1);
        println!("{:?}", s.recv().await);
    });
}

fn signal_in_the_context_of_a_dropped_current_thread_runtime_fails() {
    let r = runtime(0);
    let h = r.handle().clone();
    drop(r);
    let _g = h.enter();
    text("usr1", signal(SignalKind::user_defined1()).map(|_| ()));
    text("forbidden", signal(SignalKind::from_raw(9)).map(|_| ()));
    text("too large", signal(SignalKind::from_raw(65)).map(|_| ()));
    text("ctrl_c", ctrl_c().now_or_never().unwrap());
    println!("{}", handler_of(libc::SIGUSR1));
}

fn signal_in_the_context_of_a_dropped_multi_thread_runtime() {
    let r = runtime(2);
    let h = r.handle().clone();
    drop(r);
    let g = h.enter();
    let s = signal(SignalKind::user_defined1());
    match s {
        Err(x) => println!("{x}"),
        Ok(mut s) => {
            println!("ok {}", handler_of(libc::SIGUSR1));
            drop(g);
            raise(libc::SIGUSR1);
            println!("{}", s.recv().now_or_never().is_none());
            println!("{}", runtime(1).block_on(next(&mut s)));
        }
    }
}

fn ctrl_c_is_sigint() {
    for n in [0, 1, 4] {
        let rt = runtime(n);
        rt.block_on(async {
            let j = ctrl_c();
            tokio::pin!(j);
            println!("{}", (&mut j).now_or_never().is_none());
            raise(libc::SIGINT);
            show("ctrl_c", timeout(Duration::from_secs(2), j).await.unwrap());
        });
    }
}

fn several_ctrl_c_waiters_all_wake() {
    let rt = runtime(4);
    rt.block_on(async {
        let ready = Arc::new(AtomicUsize::new(0));
        let mut set = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let ready = ready.clone();
            set.spawn(async move {
                let c = ctrl_c();
                tokio::pin!(c);
                assert!((&mut c).now_or_never().is_none());
                ready.fetch_add(1, Ordering::SeqCst);
                c.await.is_ok()
            });
        }
        println!("{}", until_async(|| ready.load(Ordering::SeqCst) == 8).await);
        kill_self(libc::SIGINT);
        println!("{:?}", timeout(Duration::from_secs(2), set.join_all()).await.unwrap());
    });
}

fn ctrl_c_registers_at_the_first_poll() {
    let rt = runtime(1);
    rt.block_on(async {
        let c = ctrl_c();
        println!("{}", handler_of(libc::SIGINT));
        tokio::pin!(c);
        println!("{}", (&mut c).now_or_never().is_none());
        println!("{}", handler_of(libc::SIGINT));
    });
}

fn a_new_ctrl_c_future_does_not_see_an_older_signal() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut keep = signal(SignalKind::interrupt()).unwrap();
        println!("{}", timeout(Duration::from_millis(10), ctrl_c()).await.is_err());
        raise(libc::SIGINT);
        println!("{}", next(&mut keep).await);
        println!("{}", timeout(Duration::from_millis(100), ctrl_c()).await.is_err());
    });
}

fn several_listeners_each_get_it() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut v: Vec<Signal> =
            (0..5).map(|_| signal(SignalKind::user_defined1()).unwrap()).collect();
        raise(libc::SIGUSR1);
        for s in &mut v {
            println!("{}", next(s).await);
        }
        for s in &mut v {
            println!("{}", s.recv().now_or_never().is_none());
        }
    });
}

fn signals_are_coalesced_until_received() {
    for n in [0, 1] {
        let rt = runtime(n);
        rt.block_on(async {
            let mut s = signal(SignalKind::user_defined1()).unwrap();
            for _ in 0..1000 {
                raise(libc::SIGUSR1);
            }
            sleep(Duration::from_millis(30)).await;
            println!("{}", next(&mut s).await);
            println!("{}", quiet(&mut s).await);
            raise(libc::SIGUSR1);
            println!("{}", next(&mut s).await);
        });
    }
}

fn real_time_signals_are_coalesced_too() {
    let rt = runtime(0);
    rt.block_on(async {
        let n = libc::SIGRTMIN() + 2;
        let mut s = signal(SignalKind::from_raw(n)).unwrap();
        for _ in 0..5 {
            raise(n);
        }
        println!("{}", next(&mut s).await);
        println!("{}", quiet(&mut s).await);
    });
}

fn different_signals_are_not_coalesced() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut a = signal(SignalKind::user_defined1()).unwrap();
        let mut b = signal(SignalKind::user_defined2()).unwrap();
        raise(libc::SIGUSR1);
        raise(libc::SIGUSR2);
        println!("{} {}", next(&mut b).await, next(&mut a).await);
        raise(libc::SIGUSR2);
        println!("{} {}", next(&mut b).await, quiet(&mut a).await);
    });
}

fn signals_one_by_one() {
    for n in [0, 1, 2, 4] {
        let rt = runtime(n);
        let c = rt.block_on(async {
            let mut s = signal(SignalKind::user_defined1()).unwrap();
            let mut c = 0;
            for _ in 0..50 {
                raise(libc::SIGUSR1);
                if next(&mut s).await == "Some(())" {
                    c += 1;
                }
            }
            c
        });
        println!("{n}: {c}");
    }
}

fn a_listener_does_not_get_what_came_before_it() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut a = signal(SignalKind::user_defined1()).unwrap();
        raise(libc::SIGUSR1);
        println!("{}", next(&mut a).await);
        let mut b = signal(SignalKind::user_defined1()).unwrap();
        println!("{}", quiet(&mut b).await);
        raise(libc::SIGUSR1);
        println!("{} {}", next(&mut a).await, next(&mut b).await);
    });
}

fn a_signal_between_registration_and_recv_is_kept() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut a = signal(SignalKind::user_defined1()).unwrap();
        raise(libc::SIGUSR1);
        sleep(Duration::from_millis(50)).await;
        println!("{}", next(&mut a).await);
    });
}

fn a_signal_while_no_runtime_is_driven_is_kept() {
    let rt = runtime(0);
    let mut a = rt.block_on(async { signal(SignalKind::user_defined1()).unwrap() });
    raise(libc::SIGUSR1);
    std::thread::sleep(Duration::from_millis(20));
    println!("{}", rt.block_on(next(&mut a)));
}

fn dropping_one_listener_leaves_the_others() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut a = signal(SignalKind::user_defined1()).unwrap();
        let b = signal(SignalKind::user_defined1()).unwrap();
        drop(b);
        raise(libc::SIGUSR1);
        println!("{}", next(&mut a).await);
    });
}

fn after_the_last_listener_the_signal_is_still_caught() {
    let rt1 = runtime(2);
    rt1.block_on(async {
        let mut a = signal(SignalKind::terminate()).unwrap();
        raise(libc::SIGTERM);
        println!("{}", next(&mut a).await);
    });
    println!("{}", handler_of(libc::SIGTERM));
    raise(libc::SIGTERM);
    println!("alive");
    drop(rt1);
    raise(libc::SIGTERM);
    println!("alive without a runtime");
    let rt2 = runtime(0);
    rt2.block_on(async {
        let mut a = signal(SignalKind::terminate()).unwrap();
        raise(libc::SIGTERM);
        println!("{}", next(&mut a).await);
    });
}

fn a_listener_of_a_dropped_runtime_works_on_another() {
    let a = runtime(1);
    let mut s = {
        let _g = a.enter();
        signal(SignalKind::user_defined1()).unwrap()
    };
    drop(a);
    let b = runtime(0);
    b.block_on(async {
        raise(libc::SIGUSR1);
        println!("{}", next(&mut s).await);
    });
}

fn a_signal_while_no_runtime_exists_reaches_the_next_one() {
    let a = runtime(0);
    let mut s = a.block_on(async { signal(SignalKind::user_defined1()).unwrap() });
    drop(a);
    println!("{}", s.recv().now_or_never().is_none());
    raise(libc::SIGUSR1);
    println!("{}", s.recv().now_or_never().is_none());
    let b = runtime(0);
    println!("{}", b.block_on(next(&mut s)));
}

fn listeners_in_two_runtimes_both_get_it() {
    let a = runtime(1);
    let b = runtime(2);
    let (tx, rx) = mpsc::channel();
    for r in [&a, &b] {
        let tx = tx.clone();
        let _g = r.enter();
        let mut s = signal(SignalKind::user_defined1()).unwrap();
        r.spawn(async move {
            for _ in 0..3 {
                s.recv().await;
                tx.send(()).unwrap();
            }
        });
    }
    for _ in 0..3 {
        kill_self(libc::SIGUSR1);
        let x = rx.recv_timeout(Duration::from_secs(1)).is_ok();
        let y = rx.recv_timeout(Duration::from_secs(1)).is_ok();
        println!("{x} {y}");
    }
}

fn a_chain_of_runtimes_with_a_listener_each() {
    for i in 0..10 {
        let r = runtime(i % 3);
        let x = r.block_on(async {
            let mut s = signal(SignalKind::user_defined2()).unwrap();
            raise(libc::SIGUSR2);
            next(&mut s).await
        });
        println!("{x}");
    }
}

fn a_listener_in_a_task_of_every_flavour() {
    for n in [0, 1, 2, 4] {
        let rt = runtime(n);
        rt.block_on(async {
            let (tx, rx) = tokio::sync::oneshot::channel();
            let j = tokio::spawn(async move {
                let mut s = signal(SignalKind::user_defined1()).unwrap();
                tx.send(()).unwrap();
                next(&mut s).await
            });
            rx.await.unwrap();
            kill_self(libc::SIGUSR1);
            println!("{}", j.await.unwrap());
        });
    }
}

fn recv_is_cancel_safe() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut s = signal(SignalKind::user_defined1()).unwrap();
        for _ in 0..3 {
            println!("{}", timeout(Duration::from_millis(10), s.recv()).await.is_err());
        }
        raise(libc::SIGUSR1);
        println!("{}", next(&mut s).await);
        raise(libc::SIGUSR1);
        tokio::select! {
            biased;
            _ = std::future::ready(()) => println!("ready"),
            _ = s.recv() => println!("signal"),
        }
        println!("{}", next(&mut s).await);
    });
}

fn select_between_two_signals() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut a = signal(SignalKind::user_defined1()).unwrap();
        let mut b = signal(SignalKind::terminate()).unwrap();
        for n in [libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR1] {
            raise(n);
            tokio::select! {
                _ = a.recv() => println!("usr1"),
                _ = b.recv() => println!("term"),
            }
        }
    });
}

fn poll_recv_wakes_its_waker() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut s = signal(SignalKind::user_defined1()).unwrap();
        let p = poll_fn(|cx| Poll::Ready(s.poll_recv(cx).is_pending())).await;
        println!("{p}");
        raise(libc::SIGUSR1);
        println!(
            "{:?}",
            timeout(Duration::from_secs(2), poll_fn(|cx| s.poll_recv(cx))).await.unwrap()
        );
        let p = poll_fn(|cx| Poll::Ready(s.poll_recv(cx).is_pending())).await;
        println!("{p}");
    });
}

fn a_signal_stream() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut s =
            tokio_stream::wrappers::SignalStream::new(signal(SignalKind::hangup()).unwrap());
        for _ in 0..2 {
            raise(libc::SIGHUP);
            println!("{:?}", timeout(Duration::from_secs(2), s.next()).await.unwrap());
        }
        println!("{}", s.next().now_or_never().is_none());
        let mut i = s.into_inner();
        raise(libc::SIGHUP);
        println!("{}", next(&mut i).await);
    });
}

fn a_broken_pipe_raises_sigpipe_and_epipe() {
    let rt = runtime(0);
    rt.block_on(async {
        println!("{}", handler_of(libc::SIGPIPE));
        let mut s = signal(SignalKind::pipe()).unwrap();
        println!("{}", handler_of(libc::SIGPIPE));
        let (r, mut w) = io::pipe().unwrap();
        drop(r);
        show("write", w.write(b"x"));
        println!("{}", next(&mut s).await);
        let (a, b) = tokio::net::UnixStream::pair().unwrap();
        drop(b);
        show("socket", a.try_write(b"x"));
        println!("{}", quiet(&mut s).await);
    });
}

fn sigchld_comes_with_the_end_of_a_child() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut s = signal(SignalKind::child()).unwrap();
        let mut c = std::process::Command::new("/bin/true").spawn().unwrap();
        println!("{}", next(&mut s).await);
        println!("{}", c.wait().unwrap().success());
        let c = Command::new("/bin/true").status().await.unwrap();
        println!("{} {}", c.success(), next(&mut s).await);
    });
}

fn a_stopped_child_and_sigchld() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut s = signal(SignalKind::child()).unwrap();
        let mut c = std::process::Command::new("/bin/sleep").arg("100").spawn().unwrap();
        // SAFETY: the call takes numbers and no memory.
        unsafe { libc::kill(c.id() as i32, libc::SIGSTOP) };
        println!("{}", next(&mut s).await);
        c.kill().unwrap();
        println!("{}", next(&mut s).await);
        c.wait().unwrap();
    });
}

fn an_alarm_and_an_interval_timer() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut s = signal(SignalKind::alarm()).unwrap();
        // SAFETY: the call reads a local that outlives it, and the old value may be null.
        unsafe {
            let t = libc::itimerval {
                it_interval: libc::timeval { tv_sec: 0, tv_usec: 20_000 },
                it_value: libc::timeval { tv_sec: 0, tv_usec: 20_000 },
            };
            libc::setitimer(libc::ITIMER_REAL, &t, std::ptr::null_mut());
        }
        for _ in 0..3 {
            println!("{}", next(&mut s).await);
        }
    });
}

fn a_child_signals_its_parent() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut s = signal(SignalKind::user_defined1()).unwrap();
        let r = Command::new("/bin/sh").args(["-c", "kill -USR1 $PPID"]).status().await.unwrap();
        println!("{} {}", r.success(), next(&mut s).await);
    });
}

fn signals_to_a_thread_and_from_a_thread() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut s = signal(SignalKind::user_defined1()).unwrap();
        std::thread::spawn(|| raise(libc::SIGUSR1)).join().unwrap();
        println!("{}", next(&mut s).await);
        tokio::task::spawn_blocking(|| raise(libc::SIGUSR1)).await.unwrap();
        println!("{}", next(&mut s).await);
        tokio::spawn(async { raise(libc::SIGUSR1) }).await.unwrap();
        println!("{}", next(&mut s).await);
        // SAFETY: the pointer in the value is only passed along, and never dereferenced.
        unsafe {
            let v = libc::sigval { sival_ptr: std::ptr::null_mut() };
            libc::sigqueue(libc::getpid(), libc::SIGUSR1, v);
        }
        println!("{}", next(&mut s).await);
    });
}

static COUNT: AtomicUsize = AtomicUsize::new(0);
extern "C" fn count(_: libc::c_int) {
    COUNT.fetch_add(1, Ordering::SeqCst);
}

fn an_earlier_handler_is_still_called() {
    // SAFETY: the handler has the right signature and only increments an atomic, which is
    // async-signal-safe.
    unsafe { libc::signal(libc::SIGUSR1, count as *const () as usize) };
    let rt = runtime(0);
    rt.block_on(async {
        raise(libc::SIGUSR1);
        println!("{}", COUNT.load(Ordering::SeqCst));
        let mut s = signal(SignalKind::user_defined1()).unwrap();
        raise(libc::SIGUSR1);
        println!("{} {}", next(&mut s).await, COUNT.load(Ordering::SeqCst));
        drop(s);
        raise(libc::SIGUSR1);
        println!("{}", COUNT.load(Ordering::SeqCst));
    });
}

fn a_later_handler_takes_the_signal_away() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut s = signal(SignalKind::user_defined1()).unwrap();
        // SAFETY: the handler has the right signature and only increments an atomic, which is
        // async-signal-safe.
        unsafe { libc::signal(libc::SIGUSR1, count as *const () as usize) };
        raise(libc::SIGUSR1);
        println!("{} {}", quiet(&mut s).await, COUNT.load(Ordering::SeqCst));
        let mut t = signal(SignalKind::user_defined1()).unwrap();
        raise(libc::SIGUSR1);
        println!("{} {}", quiet(&mut t).await, COUNT.load(Ordering::SeqCst));
    });
}

fn an_ignored_signal_is_received_after_registration() {
    // SAFETY: the call takes numbers and no memory.
    unsafe { libc::signal(libc::SIGUSR1, libc::SIG_IGN) };
    let rt = runtime(2);
    rt.block_on(async {
        raise(libc::SIGUSR1);
        let mut s = signal(SignalKind::user_defined1()).unwrap();
        println!("{}", handler_of(libc::SIGUSR1));
        println!("{}", quiet(&mut s).await);
        raise(libc::SIGUSR1);
        println!("{}", next(&mut s).await);
    });
}

fn the_flags_of_the_installed_handler() {
    let rt = runtime(0);
    let _g = rt.enter();
    println!("{}", handler_of(libc::SIGUSR1));
    let s = signal(SignalKind::user_defined1()).unwrap();
    println!("{}", handler_of(libc::SIGUSR1));
    println!("{}", handler_of(libc::SIGUSR2));
    // SAFETY: a `sigaction` of zeros is valid; the call writes into a local, and the new action may
    // be null.
    unsafe {
        let mut a: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGUSR1, std::ptr::null(), &mut a);
        println!("restart {}", a.sa_flags & libc::SA_RESTART != 0);
        println!("onstack {}", a.sa_flags & libc::SA_ONSTACK != 0);
        println!("resethand {}", a.sa_flags & libc::SA_RESETHAND != 0);
    }
    drop(s);
    println!("{}", handler_of(libc::SIGUSR1));
}

fn building_a_runtime_installs_no_handler() {
    let rt = runtime(2);
    rt.block_on(async { sleep(Duration::from_millis(5)).await });
    for n in
        [libc::SIGINT, libc::SIGTERM, libc::SIGCHLD, libc::SIGHUP, libc::SIGUSR1, libc::SIGPIPE]
    {
        println!("{n} {}", handler_of(n));
    }
    rt.block_on(async { Command::new("/bin/true").status().await.unwrap() });
    println!("{}", handler_of(libc::SIGCHLD));
}

fn a_blocked_signal_comes_after_it_is_unblocked() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut s = signal(SignalKind::user_defined1()).unwrap();
        // SAFETY: the pointers are to a local that outlives the calls, and the old mask may be
        // null; a set of zeros is valid.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGUSR1);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            raise(libc::SIGUSR1);
            println!("{}", quiet(&mut s).await);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        }
        println!("{}", next(&mut s).await);
    });
}

fn signals_do_not_disturb_blocking_reads() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut s = signal(SignalKind::user_defined1()).unwrap();
        let (mut r, mut w) = io::pipe().unwrap();
        let t = std::thread::spawn(move || {
            let mut b = [0; 4];
            r.read(&mut b)
        });
        use std::os::unix::thread::JoinHandleExt;
        sleep(Duration::from_millis(30)).await;
        // SAFETY: the thread is not joined yet, so its handle is valid.
        unsafe { libc::pthread_kill(t.as_pthread_t(), libc::SIGUSR1) };
        println!("{}", next(&mut s).await);
        w.write_all(b"abc").unwrap();
        show("read", t.join().unwrap());
    });
}

fn signals_during_timers_and_io() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut s = signal(SignalKind::user_defined1()).unwrap();
        let (mut a, mut b) = tokio::io::duplex(10);
        let j = tokio::spawn(async move { a.read_u8().await.unwrap() });
        for _ in 0..5 {
            raise(libc::SIGUSR1);
            sleep(Duration::from_millis(5)).await;
        }
        b.write_all(b"x").await.unwrap();
        println!("{}", j.await.unwrap());
        println!("{} {}", next(&mut s).await, quiet(&mut s).await);
    });
}

fn a_listener_under_a_paused_clock() {
    let rt = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    rt.block_on(async {
        let mut s = signal(SignalKind::user_defined1()).unwrap();
        raise(libc::SIGUSR1);
        println!("{:?}", s.recv().await);
        println!("{}", timeout(Duration::from_secs(1000), s.recv()).await.is_err());
    });
}

fn the_handlers_of_the_parent_are_not_those_of_the_child() {
    let rt = runtime(2);
    rt.block_on(async {
        use std::os::unix::process::ExitStatusExt;
        let mut s = signal(SignalKind::user_defined1()).unwrap();
        let r = Command::new("/bin/sh")
            .args(["-c", "kill -USR1 $$; echo alive"])
            .stdout(Stdio::null())
            .status()
            .await
            .unwrap();
        println!("{:?}", r.signal());
        println!("{}", quiet(&mut s).await);
    });
}

fn a_thousand_listeners() {
    let rt = runtime(4);
    rt.block_on(async {
        let mut set = tokio::task::JoinSet::new();
        for _ in 0..1000 {
            let mut s = signal(SignalKind::user_defined1()).unwrap();
            set.spawn(async move { s.recv().await });
        }
        kill_self(libc::SIGUSR1);
        let v = timeout(Duration::from_secs(2), set.join_all()).await.unwrap();
        println!("{}", v.iter().filter(|x| x.is_some()).count());
    });
}

fn listeners_need_no_further_descriptors() {
    let rt = runtime(1);
    rt.block_on(async {
        let _first = signal(SignalKind::user_defined1()).unwrap();
        let before = open_fds();
        let v: Vec<_> = (0..50).map(|_| signal(SignalKind::user_defined2()).unwrap()).collect();
        println!("{} {}", v.len(), open_fds() - before);
    });
}

fn a_signal_is_send_and_sync_and_debug() {
    fn is<T: Send + Sync + Unpin + Debug>(_: &T) {}
    let rt = runtime(0);
    let _g = rt.enter();
    let s = signal(SignalKind::user_defined1()).unwrap();
    is(&s);
    println!("{}", format!("{s:?}").starts_with("Signal"));
}

fn a_listener_moves_between_tasks() {
    let rt = runtime(4);
    rt.block_on(async {
        let mut s = signal(SignalKind::user_defined1()).unwrap();
        for _ in 0..5 {
            s = tokio::spawn(async move {
                let _ = s.recv().now_or_never();
                raise(libc::SIGUSR1);
                println!("{}", next(&mut s).await);
                s
            })
            .await
            .unwrap();
        }
    });
}

fn a_graceful_shutdown_by_sigterm() {
    let rt = runtime(2);
    rt.block_on(async {
        let (tx, mut rx) = tokio::sync::watch::channel(false);
        let mut s = signal(SignalKind::terminate()).unwrap();
        let j = tokio::spawn(async move {
            rx.changed().await.unwrap();
            "worker done"
        });
        tokio::spawn(async move {
            s.recv().await;
            tx.send(true).unwrap();
            // Keeps the sender alive until the worker has seen it.
            tx.closed().await;
        });
        kill_self(libc::SIGTERM);
        println!("{}", timeout(Duration::from_secs(2), j).await.unwrap().unwrap());
    });
}
