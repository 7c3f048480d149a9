//! Rayon: `join`, `scope`, pools, iterators and panics.

use crate::probe::*;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder, Yield};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn pool(n: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(n).build().unwrap()
}

/// Waits until `f` returns true, at most two seconds.
fn until(f: impl Fn() -> bool) -> bool {
    let t = Instant::now();
    while !f() {
        if t.elapsed() > Duration::from_secs(2) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Counts how many values are created and dropped.
#[derive(Default)]
struct Tally {
    made: AtomicUsize,
    dropped: AtomicUsize,
}

struct Item<'a>(usize, &'a Tally);
impl<'a> Item<'a> {
    fn new(i: usize, t: &'a Tally) -> Self {
        t.made.fetch_add(1, SeqCst);
        Item(i, t)
    }
}

impl Drop for Item<'_> {
    fn drop(&mut self) {
        self.1.dropped.fetch_add(1, SeqCst);
    }
}

impl Tally {
    fn even(&self) -> bool {
        self.made.load(SeqCst) == self.dropped.load(SeqCst)
    }
}

// Join.

fn join_gives_both_results() {
    println!("{:?}", rayon::join(|| 1, || "b"));
    for n in [1, 2, 4] {
        println!("{:?}", pool(n).join(|| vec![1], || ()));
    }
}

fn join_on_one_thread_runs_a_before_b() {
    let log = Log::new();
    pool(1).install(|| {
        rayon::join(|| log.add("a"), || log.add("b"));
        rayon::join(
            || rayon::join(|| log.add("aa"), || log.add("ab")),
            || rayon::join(|| log.add("ba"), || log.add("bb")),
        );
    });
    println!("{:?}", log.take());
}

fn join_with_a_panic_in_a_still_finishes_b() {
    for n in [1, 2] {
        let ran = AtomicUsize::new(0);
        let p = pool(n);
        let r = caught(|| {
            p.join(
                || panic!("a"),
                || {
                    ran.fetch_add(1, SeqCst);
                },
            )
        });
        println!("{n} {r} {}", ran.load(SeqCst));
        println!("{n} {}", p.join(|| 1, || 2).0);
    }
}

fn join_with_a_panic_in_b() {
    for n in [1, 2, 4] {
        println!("{}", caught(|| pool(n).join(|| 1, || panic!("b"))));
    }
}

fn join_with_two_panics_gives_the_first() {
    for n in [1, 2, 4] {
        println!("{}", caught(|| pool(n).join(|| panic!("a"), || panic!("b"))));
    }
    println!(
        "{}",
        caught(|| rayon::join(
            || rayon::join(|| panic!("aa"), || panic!("ab")),
            || rayon::join(|| panic!("ba"), || panic!("bb")),
        ))
    );
}

fn join_keeps_a_panics_payload() {
    quiet();
    let r = std::panic::catch_unwind(|| rayon::join(|| (), || std::panic::panic_any(42u16)));
    println!("{:?}", r.unwrap_err().downcast_ref::<u16>());
}

fn join_drops_the_result_of_the_other_side_when_one_panics() {
    let t = Tally::default();
    let r = caught(|| {
        pool(2).join(|| Item::new(1, &t), || panic!("b"));
    });
    println!("{r} {}", t.even());
    let r = caught(|| {
        pool(2).join(|| panic!("a"), || Item::new(2, &t));
    });
    println!("{r} {}", t.even());
}

fn join_borrows_from_the_stack() {
    let mut v: Vec<u32> = (0..1000).rev().collect();
    fn quick(v: &mut [u32]) {
        if v.len() > 1 {
            let p = v.len() - 1;
            let mut i = 0;
            for j in 0..p {
                if v[j] <= v[p] {
                    v.swap(i, j);
                    i += 1;
                }
            }
            v.swap(i, p);
            let (lo, hi) = v.split_at_mut(i);
            rayon::join(|| quick(lo), || quick(&mut hi[1..]));
        }
    }
    quick(&mut v);
    println!("{}", v.windows(2).all(|w| w[0] <= w[1]));
}

fn join_context_on_one_thread() {
    let p = pool(1);
    println!("{:?}", p.install(|| rayon::join_context(|c| c.migrated(), |c| c.migrated())));
    println!(
        "{:?}",
        p.install(|| rayon::join(|| 0, || rayon::join_context(|c| c.migrated(), |c| c.migrated())))
    );
}

fn join_context_from_outside_the_pool() {
    ThreadPoolBuilder::new().num_threads(1).build_global().unwrap();
    println!("{:?}", rayon::join_context(|c| c.migrated(), |c| c.migrated()));
}

fn joins_nested_ten_thousand_deep() {
    let p = ThreadPoolBuilder::new().num_threads(2).stack_size(256 << 20).build().unwrap();
    fn deep(n: usize) -> usize {
        if n == 0 {
            0
        } else {
            let (a, b) = rayon::join(|| deep(n - 1), || 1);
            a + b
        }
    }
    println!("{}", p.install(|| deep(10_000)));
}

fn join_fib() {
    fn fib(n: u32) -> u64 {
        if n < 2 {
            n as u64
        } else {
            let (a, b) = rayon::join(|| fib(n - 1), || fib(n - 2));
            a + b
        }
    }
    for n in [1, 4] {
        println!("{}", pool(n).install(|| fib(20)));
    }
}

// Scope.

fn scope_waits_for_all_it_spawned() {
    for n in [1, 2, 4] {
        let c = AtomicUsize::new(0);
        let r = pool(n).scope(|s| {
            for _ in 0..10 {
                s.spawn(|s| {
                    c.fetch_add(1, SeqCst);
                    s.spawn(|_| {
                        c.fetch_add(1, SeqCst);
                    });
                });
            }
            "value"
        });
        println!("{r} {}", c.load(SeqCst));
    }
}

fn scope_on_one_thread_runs_the_last_spawned_first() {
    let log = Log::new();
    pool(1).scope(|s| {
        for i in 0..5 {
            let log = &log;
            s.spawn(move |_| log.add(i.to_string()));
        }
        log.add("body");
    });
    println!("{:?}", log.take());
}

fn scope_fifo_on_one_thread_runs_the_first_spawned_first() {
    let log = Log::new();
    pool(1).scope_fifo(|s| {
        for i in 0..5 {
            let log = &log;
            s.spawn_fifo(move |_| log.add(i.to_string()));
        }
        log.add("body");
    });
    println!("{:?}", log.take());
}

fn scope_panics_when_a_job_panics_and_runs_the_others() {
    for n in [1, 2] {
        let c = AtomicUsize::new(0);
        let r = caught(|| {
            pool(n).scope(|s| {
                for i in 0..10 {
                    let c = &c;
                    s.spawn(move |_| {
                        if i == 4 {
                            panic!("job")
                        }
                        c.fetch_add(1, SeqCst);
                    });
                }
            })
        });
        println!("{n} {r} {}", c.load(SeqCst));
    }
}

fn scope_panics_when_its_body_panics_after_the_jobs() {
    for n in [1, 2] {
        let c = AtomicUsize::new(0);
        let r = caught(|| {
            pool(n).scope(|s| {
                let c = &c;
                s.spawn(move |_| {
                    c.fetch_add(1, SeqCst);
                });
                panic!("body");
            })
        });
        println!("{n} {r} {}", c.load(SeqCst));
    }
}

fn scope_with_many_panics_gives_one_of_them() {
    let r = caught(|| {
        pool(2).scope(|s| {
            for _ in 0..10 {
                s.spawn(|_| panic!("one of many"));
            }
        })
    });
    println!("{r}");
}

fn scope_jobs_borrow_and_may_outlive_nothing() {
    let mut v = vec![1, 2, 3];
    let mut sum = 0;
    rayon::scope(|s| {
        let (a, b) = v.split_at_mut(1);
        s.spawn(move |_| a[0] = 10);
        s.spawn(move |_| b.iter_mut().for_each(|x| *x *= 2));
        s.spawn(|_| sum = 5);
    });
    println!("{v:?} {sum}");
}

fn in_place_scope_runs_its_body_here() {
    let p = pool(2);
    let me = std::thread::current().id();
    let inside = Mutex::new(None);
    let r = p.in_place_scope(|s| {
        s.spawn(|_| *inside.lock().unwrap() = Some(rayon::current_thread_index().is_some()));
        (std::thread::current().id() == me, rayon::current_thread_index())
    });
    println!("{r:?} {:?}", inside.lock().unwrap());
    println!("{}", p.scope(|_| std::thread::current().id() == me));
    println!("{}", caught(|| p.in_place_scope(|s| s.spawn(|_| panic!("in place")))));
    let c = AtomicUsize::new(0);
    p.in_place_scope_fifo(|s| {
        for _ in 0..5 {
            s.spawn_fifo(|_| {
                c.fetch_add(1, SeqCst);
            })
        }
    });
    println!("{}", c.load(SeqCst));
}

fn scopes_nest() {
    let c = AtomicUsize::new(0);
    rayon::scope(|s| {
        for _ in 0..4 {
            s.spawn(|_| {
                rayon::scope(|s| {
                    for _ in 0..4 {
                        s.spawn(|_| {
                            c.fetch_add(1, SeqCst);
                        });
                    }
                });
            });
        }
    });
    println!("{}", c.load(SeqCst));
}

fn scope_broadcast_runs_on_every_thread() {
    for n in [1, 3] {
        let seen = Mutex::new(vec![]);
        pool(n).scope(|s| {
            s.spawn_broadcast(|_, ctx| seen.lock().unwrap().push((ctx.index(), ctx.num_threads())))
        });
        let mut v = seen.into_inner().unwrap();
        v.sort();
        println!("{v:?}");
    }
}

// Spawn, broadcast.

fn spawn_order_on_one_thread() {
    let (tx, rx) = std::sync::mpsc::channel();
    let p = pool(1);
    let t = tx.clone();
    p.install(move || {
        for i in 0..4 {
            let t = t.clone();
            rayon::spawn(move || t.send(format!("lifo{i}")).unwrap());
        }
    });
    println!("{:?}", rx.iter().take(4).collect::<Vec<_>>());
    let t = tx.clone();
    p.install(move || {
        for i in 0..4 {
            let t = t.clone();
            rayon::spawn_fifo(move || t.send(format!("fifo{i}")).unwrap());
        }
    });
    println!("{:?}", rx.iter().take(4).collect::<Vec<_>>());
}

fn spawn_from_outside_is_first_come_first_served() {
    let (tx, rx) = std::sync::mpsc::channel();
    let p = pool(1);
    let (gtx, grx) = std::sync::mpsc::channel::<()>();
    p.spawn(move || grx.recv().unwrap());
    for i in 0..5 {
        let t = tx.clone();
        p.spawn(move || t.send(i).unwrap());
    }
    gtx.send(()).unwrap();
    println!("{:?}", rx.iter().take(5).collect::<Vec<_>>());
}

fn a_panic_in_spawn_goes_to_the_panic_handler() {
    quiet();
    let (tx, rx) = std::sync::mpsc::channel();
    let tx = Mutex::new(tx);
    let p = ThreadPoolBuilder::new()
        .num_threads(1)
        .panic_handler(move |e| tx.lock().unwrap().send(payload(e)).unwrap())
        .build()
        .unwrap();
    p.spawn(|| panic!("spawned"));
    println!("{:?}", rx.recv().unwrap());
    p.spawn_fifo(|| panic!("fifo {}", 2));
    println!("{:?}", rx.recv().unwrap());
    p.spawn_broadcast(|_| panic!("broadcast"));
    println!("{:?}", rx.recv().unwrap());
    println!("{}", caught(|| p.join(|| (), || panic!("not the handler's"))));
    println!("{:?}", rx.try_recv());
    println!("{}", p.install(|| 1));
}

/// Runs `f` in a forked child and returns how the child ends.
fn fate(f: impl FnOnce()) -> String {
    // SAFETY: the path is a static string, and the other pointers are to values that outlive their
    // calls. The child of `fork` has only this thread; it runs `f` and exits without returning.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            let n = libc::open(b"/dev/null\0".as_ptr() as *const _, libc::O_WRONLY);
            libc::dup2(n, 2);
            libc::setrlimit(libc::RLIMIT_CORE, &libc::rlimit { rlim_cur: 0, rlim_max: 0 });
            quiet();
            f();
            libc::_exit(0);
        }
        let mut st = 0;
        libc::waitpid(pid, &mut st, 0);
        if libc::WIFSIGNALED(st) {
            format!("signal {}", libc::WTERMSIG(st))
        } else {
            format!("exit {}", libc::WEXITSTATUS(st))
        }
    }
}

fn a_panic_in_spawn_without_a_handler_aborts() {
    println!(
        "{}",
        fate(|| {
            pool(1).spawn(|| panic!("nobody"));
            std::thread::sleep(Duration::from_secs(2));
        })
    );
}

fn a_panic_in_the_panic_handler_aborts() {
    println!(
        "{}",
        fate(|| {
            let p = ThreadPoolBuilder::new()
                .num_threads(1)
                .panic_handler(|_| panic!("handler"))
                .build()
                .unwrap();
            p.spawn(|| panic!("job"));
            std::thread::sleep(Duration::from_secs(2));
        })
    );
}

fn a_panicking_start_handler_goes_to_the_panic_handler() {
    quiet();
    let (tx, rx) = std::sync::mpsc::channel();
    let tx = Mutex::new(tx);
    let p = ThreadPoolBuilder::new()
        .num_threads(2)
        .start_handler(|i| {
            if i == 0 {
                panic!("start")
            }
        })
        .panic_handler(move |e| tx.lock().unwrap().send(payload(e)).unwrap())
        .build()
        .unwrap();
    println!("{:?}", rx.recv());
    println!("{}", p.install(|| 3));
}

fn broadcast_results_come_in_index_order() {
    for n in [1, 2, 4] {
        let p = pool(n);
        println!("{:?}", p.broadcast(|c| c.index()));
        println!(
            "{:?}",
            p.broadcast(
                |c| Some(c.index()) == rayon::current_thread_index() && c.num_threads() == n
            )
        );
        println!("{:?}", p.install(|| rayon::broadcast(|c| c.index() * 10)));
    }
}

fn broadcast_with_a_panic() {
    let p = pool(3);
    let c = AtomicUsize::new(0);
    println!(
        "{}",
        caught(|| p.broadcast(|ctx| {
            c.fetch_add(1, SeqCst);
            if ctx.index() == 1 {
                panic!("one")
            }
        }))
    );
    println!("{}", c.load(SeqCst));
    println!("{:?}", p.broadcast(|ctx| ctx.index()));
}

fn spawn_broadcast_runs_once_on_each_thread() {
    let p = pool(3);
    let (tx, rx) = std::sync::mpsc::channel();
    p.spawn_broadcast(move |c| tx.send(c.index()).unwrap());
    let mut v: Vec<_> = rx.iter().collect();
    v.sort();
    println!("{v:?}");
}

// Pools.

fn building_the_global_pool_twice_fails() {
    println!(
        "{:?}",
        ThreadPoolBuilder::new().num_threads(2).build_global().map_err(|e| e.to_string())
    );
    println!("{}", rayon::current_num_threads());
    let e = ThreadPoolBuilder::new().num_threads(3).build_global().unwrap_err();
    println!("{e} | {e:?} | {}", std::error::Error::source(&e).is_none());
    println!("{}", rayon::current_num_threads());
}

fn the_global_pool_starts_at_its_first_use() {
    println!("{:?}", rayon::current_thread_index());
    println!("{}", rayon::current_num_threads() >= 1);
    let e = ThreadPoolBuilder::new().build_global().unwrap_err();
    println!("{e}");
}

fn zero_threads_means_the_default_number() {
    std::env::remove_var("RAYON_NUM_THREADS");
    std::env::remove_var("RAYON_RS_NUM_CPUS");
    let n = std::thread::available_parallelism().unwrap().get();
    println!("{}", pool(0).current_num_threads() == n);
    std::env::set_var("RAYON_NUM_THREADS", "3");
    println!("{} {}", pool(0).current_num_threads(), pool(2).current_num_threads());
    std::env::set_var("RAYON_NUM_THREADS", "0");
    println!("{}", pool(0).current_num_threads() == n);
    std::env::set_var("RAYON_NUM_THREADS", "many");
    println!("{}", pool(0).current_num_threads() == n);
}

fn max_num_threads_is_a_constant() {
    println!("{}", rayon::max_num_threads());
}

fn thread_names_and_indices() {
    let p =
        ThreadPoolBuilder::new().num_threads(3).thread_name(|i| format!("w{i}")).build().unwrap();
    println!("{:?}", p.broadcast(|_| std::thread::current().name().map(String::from)));
    println!("{:?}", pool(1).install(|| std::thread::current().name().map(String::from)));
    println!("{:?} {:?}", rayon::current_thread_index(), p.current_thread_index());
    println!(
        "{:?}",
        pool(1).install(|| (
            rayon::current_thread_index(),
            p.current_thread_index(),
            rayon::current_num_threads()
        ))
    );
}

fn start_and_exit_handlers_run_once_for_each_thread() {
    let start = Arc::new(Mutex::new(vec![]));
    let exit = Arc::new(Mutex::new(vec![]));
    let (a, b) = (start.clone(), exit.clone());
    let p = ThreadPoolBuilder::new()
        .num_threads(3)
        .start_handler(move |i| a.lock().unwrap().push(i))
        .exit_handler(move |i| b.lock().unwrap().push(i))
        .build()
        .unwrap();
    p.broadcast(|_| ());
    let mut v = start.lock().unwrap().clone();
    v.sort();
    println!("{v:?} {:?}", exit.lock().unwrap());
    drop(p);
    until(|| exit.lock().unwrap().len() == 3);
    let mut v = exit.lock().unwrap().clone();
    v.sort();
    println!("{v:?}");
}

fn a_dropped_pool_still_finishes_its_work() {
    for n in [1, 3] {
        let c = Arc::new(AtomicUsize::new(0));
        let p = pool(n);
        for _ in 0..50 {
            let c = c.clone();
            p.spawn(move || {
                c.fetch_add(1, SeqCst);
            });
        }
        drop(p);
        println!("{} {}", until(|| c.load(SeqCst) == 50), c.load(SeqCst));
    }
}

fn a_job_of_a_dropped_pool_may_spawn_more() {
    let c = Arc::new(AtomicUsize::new(0));
    let p = pool(1);
    let c2 = c.clone();
    let (gtx, grx) = std::sync::mpsc::channel::<()>();
    p.spawn(move || {
        grx.recv().unwrap();
        for _ in 0..3 {
            let c = c2.clone();
            rayon::spawn(move || {
                let c2 = c.clone();
                rayon::spawn(move || {
                    c2.fetch_add(1, SeqCst);
                });
                c.fetch_add(1, SeqCst);
            });
        }
    });
    drop(p);
    gtx.send(()).unwrap();
    println!("{} {}", until(|| c.load(SeqCst) == 6), c.load(SeqCst));
}

fn a_pool_may_be_dropped_inside_itself() {
    let p = pool(2);
    let (tx, rx) = std::sync::mpsc::channel();
    let p = Arc::new(p);
    let q = p.clone();
    p.spawn(move || {
        drop(q);
        tx.send("dropped inside").unwrap();
    });
    drop(p);
    println!("{:?}", rx.recv());
}

fn install_runs_in_the_pool_and_gives_the_value() {
    let p = pool(2);
    let me = std::thread::current().id();
    println!("{}", p.install(|| std::thread::current().id() == me));
    println!("{}", p.install(|| rayon::current_num_threads()));
    println!("{:?}", p.install(|| p.install(|| p.current_thread_index().is_some())));
    println!("{}", caught(|| p.install(|| panic!("installed"))));
    println!("{}", p.install(|| (0..100).into_par_iter().sum::<i32>()));
}

fn install_across_pools() {
    let a = pool(1);
    let b = pool(2);
    let r = a.install(|| {
        let x = (
            a.current_thread_index(),
            b.current_thread_index().is_some(),
            rayon::current_num_threads(),
        );
        let y = b.install(|| {
            (
                a.current_thread_index(),
                b.current_thread_index().is_some(),
                rayon::current_num_threads(),
            )
        });
        let z = b.install(|| a.install(|| rayon::current_num_threads()));
        (x, y, z, rayon::current_num_threads())
    });
    println!("{r:?}");
    println!("{}", caught(|| a.install(|| b.install(|| panic!("from b")))));
}

fn a_thread_waiting_in_install_of_another_pool_runs_its_own_jobs() {
    let a = pool(1);
    let b = pool(1);
    let log = Log::new();
    let (tx, rx) = std::sync::mpsc::channel::<()>();
    let l = log.clone();
    a.install(|| {
        rayon::spawn(move || {
            l.add("own job");
            tx.send(()).unwrap();
        });
        // b's job only ends when a's job has run: a must run it while it waits
        let rx = Mutex::new(rx);
        b.install(|| rx.lock().unwrap().recv().unwrap());
        log.add("install returned");
    });
    println!("{:?}", log.take());
}

fn yields_outside_and_inside_a_pool() {
    println!("{:?} {:?}", rayon::yield_now().is_none(), rayon::yield_local().is_none());
    let p = pool(1);
    println!("{:?}", p.yield_now().is_none());
    let log = Log::new();
    let l = log.clone();
    p.install(move || {
        println!("{}", rayon::yield_local() == Some(Yield::Idle));
        let l2 = l.clone();
        rayon::spawn(move || l2.add("one"));
        let l2 = l.clone();
        rayon::spawn(move || l2.add("two"));
        println!("{}", rayon::yield_local() == Some(Yield::Executed));
        println!("{:?}", l.take());
        println!("{}", rayon::yield_now() == Some(Yield::Executed));
        println!("{:?}", l.take());
        println!("{:?} {:?}", rayon::yield_now(), rayon::yield_local());
    });
    println!("{:?}", log.take());
}

fn pending_tasks_are_seen() {
    println!("{:?}", pool(1).current_thread_has_pending_tasks());
    let p = pool(1);
    println!(
        "{:?}",
        p.install(|| {
            let a = p.current_thread_has_pending_tasks();
            rayon::spawn(|| ());
            let b = p.current_thread_has_pending_tasks();
            rayon::yield_local();
            (a, b, p.current_thread_has_pending_tasks())
        })
    );
}

fn use_current_thread_makes_this_one_number_zero() {
    let p = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().unwrap();
    let me = std::thread::current().id();
    println!("{:?} {}", p.current_thread_index(), p.current_num_threads());
    println!("{:?}", rayon::current_thread_index());
    println!("{}", p.install(|| std::thread::current().id() == me));
    println!("{:?}", p.install(|| rayon::join(|| 1, || 2)));
    let c = Arc::new(AtomicUsize::new(0));
    let c2 = c.clone();
    p.spawn(move || {
        c2.fetch_add(1, SeqCst);
    });
    println!("{}", c.load(SeqCst));
    println!("{:?} {}", p.yield_now(), c.load(SeqCst));
    println!(
        "{}",
        p.scope(|s| {
            s.spawn(|_| {
                c.fetch_add(1, SeqCst);
            });
            5
        })
    );
    println!("{}", c.load(SeqCst));
}

fn use_current_thread_twice_fails() {
    let p = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().unwrap();
    let e =
        ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().map(drop).unwrap_err();
    println!("{e} | {e:?}");
    let e = pool(1)
        .install(|| ThreadPoolBuilder::new().num_threads(2).use_current_thread().build().map(drop))
        .unwrap_err();
    println!("{e}");
    drop(p);
}

fn a_spawn_handler_that_fails_is_the_builds_error() {
    let e = ThreadPoolBuilder::new()
        .num_threads(2)
        .spawn_handler(|_| Err(std::io::Error::new(std::io::ErrorKind::Other, "no threads today")))
        .build()
        .map(drop)
        .unwrap_err();
    println!("{e} | {}", std::error::Error::source(&e).is_some());
}

fn a_spawn_handler_runs_the_threads() {
    let names = Arc::new(Mutex::new(vec![]));
    let n2 = names.clone();
    let p = ThreadPoolBuilder::new()
        .num_threads(2)
        .stack_size(1 << 20)
        .thread_name(|i| format!("custom{i}"))
        .spawn_handler(move |t| {
            n2.lock().unwrap().push((t.index(), t.name().map(String::from), t.stack_size()));
            std::thread::spawn(move || t.run());
            Ok(())
        })
        .build()
        .unwrap();
    println!("{:?} {}", names.lock().unwrap(), p.install(|| 4));
}

fn a_scoped_pool_borrows_and_ends() {
    let v = vec![1, 2, 3];
    let r = ThreadPoolBuilder::new()
        .num_threads(2)
        .build_scoped(|t| t.run(), |p| p.install(|| v.par_iter().sum::<i32>()));
    println!("{:?}", r.map_err(|e| e.to_string()));
}

fn a_pool_survives_panics() {
    let p = pool(2);
    for i in 0..50 {
        assert!(
            caught(|| p.install(|| (0..100).into_par_iter().for_each(|x| if x == i {
                panic!("p")
            })))
            .starts_with("panic")
        );
    }
    println!("{:?}", p.broadcast(|c| c.index()));
}

// Iterators: order.

fn collect_keeps_the_order() {
    for n in [1, 4] {
        pool(n).install(|| {
            println!("{:?}", (0..10).into_par_iter().map(|x| x * x).collect::<Vec<_>>());
            println!("{:?}", (0..20).into_par_iter().filter(|x| x % 3 == 0).collect::<Vec<_>>());
            println!("{:?}", (0..4).into_par_iter().flat_map(|x| vec![x; x]).collect::<Vec<_>>());
            println!("{:?}", (0..4).into_par_iter().flat_map_iter(|x| 0..x).collect::<Vec<_>>());
            println!(
                "{:?}",
                vec![vec![1], vec![], vec![2, 3]].into_par_iter().flatten().collect::<Vec<_>>()
            );
            println!(
                "{:?}",
                (0..9)
                    .into_par_iter()
                    .filter_map(|x| (x % 2 == 1).then_some(x * 10))
                    .collect::<Vec<_>>()
            );
        });
    }
}

fn indexed_adaptors_keep_positions() {
    let r = || (0..10).into_par_iter();
    println!("{:?}", r().rev().collect::<Vec<_>>());
    println!("{:?}", r().skip(7).collect::<Vec<_>>());
    println!("{:?}", r().take(3).collect::<Vec<_>>());
    println!("{:?} {:?}", r().skip(70).collect::<Vec<_>>(), r().take(70).len());
    println!("{:?}", r().step_by(4).collect::<Vec<_>>());
    println!("{:?}", r().chain(20..22).collect::<Vec<_>>());
    println!("{:?}", r().enumerate().skip(8).collect::<Vec<_>>());
    println!("{:?}", r().interleave(100..103).collect::<Vec<_>>());
    println!("{:?}", r().interleave_shortest(100..103).collect::<Vec<_>>());
    println!("{:?}", r().take(3).intersperse(-1).collect::<Vec<_>>());
    println!("{:?}", r().positions(|x| x % 4 == 1).collect::<Vec<_>>());
    println!("{:?}", r().chunks(4).collect::<Vec<_>>());
    println!("{:?}", r().fold_chunks(4, || 0, |a, b| a + b).collect::<Vec<_>>());
    println!("{:?}", r().fold_chunks_with(3, 100, |a, b| a + b).collect::<Vec<_>>());
}

fn zip_stops_at_the_shorter() {
    println!("{:?}", (0..5).into_par_iter().zip(10..13).collect::<Vec<_>>());
    println!("{}", (0..5).into_par_iter().zip(10..13).len());
    println!("{:?}", (0..3).into_par_iter().zip_eq(5..8).collect::<Vec<_>>());
    println!("{}", caught(|| (0..3).into_par_iter().zip_eq(5..9).count()));
    println!("{:?}", (vec![1, 2, 3], vec!["a", "b"], 0..9).into_par_iter().collect::<Vec<_>>());
    let (a, b): (Vec<_>, Vec<_>) = (0..4).into_par_iter().map(|x| (x, x * 10)).unzip();
    println!("{a:?} {b:?}");
}

fn odd_arguments_panic() {
    println!("{}", caught(|| (0..3).into_par_iter().chunks(0).count()));
    println!("{}", caught(|| (0..3).into_par_iter().step_by(0).count()));
    println!("{}", caught(|| [1, 2].par_chunks(0).count()));
    println!("{}", caught(|| [1, 2].par_chunks_exact(0).count()));
    println!("{}", caught(|| [1, 2].par_rchunks(0).count()));
    println!("{}", caught(|| [1, 2].par_windows(0).count()));
    println!("{}", caught(|| (0..3).into_par_iter().fold_chunks(0, || 0, |a, b| a + b).count()));
    println!("{}", caught(|| (0..3).into_par_iter().by_uniform_blocks(0).count()));
}

fn slices_in_chunks_and_windows() {
    let v: Vec<_> = (0..10).collect();
    println!("{:?}", v.par_chunks(4).collect::<Vec<_>>());
    println!("{:?}", v.par_rchunks(4).collect::<Vec<_>>());
    let e = v.par_chunks_exact(4);
    println!("{:?} {:?}", e.remainder(), e.collect::<Vec<_>>());
    println!("{:?}", v.par_windows(8).collect::<Vec<_>>());
    println!("{:?}", v.par_windows(11).count());
    println!("{:?}", v.par_split(|x| x % 4 == 0).collect::<Vec<_>>());
    println!("{:?}", v.par_chunk_by(|a, b| a / 4 == b / 4).collect::<Vec<_>>());
    let mut w = v.clone();
    w.par_chunks_mut(3)
        .enumerate()
        .for_each(|(i, c)| c.iter_mut().for_each(|x| *x += i as i32 * 100));
    println!("{w:?}");
}

fn strings_in_parallel() {
    println!("{:?}", "héllo".par_chars().collect::<String>());
    println!("{:?}", "a b  c".par_split(' ').collect::<Vec<_>>());
    println!("{:?}", "x\ny\r\nz".par_lines().collect::<Vec<_>>());
    println!("{:?}", "one two\tthree".par_split_whitespace().collect::<Vec<_>>());
    println!("{:?}", "añb".par_char_indices().collect::<Vec<_>>());
    println!("{:?}", "ab".par_bytes().collect::<Vec<_>>());
    println!("{:?}", "a1b2".par_matches(char::is_numeric).collect::<Vec<_>>());
}

fn collect_into_existing_vectors() {
    let mut v = vec![9; 3];
    (0..4).into_par_iter().collect_into_vec(&mut v);
    println!("{v:?}");
    let (mut a, mut b) = (vec![1], vec!["x"]);
    (0..2).into_par_iter().map(|x| (x, "y")).unzip_into_vecs(&mut a, &mut b);
    println!("{a:?} {b:?}");
    let mut e = vec![1, 2];
    e.par_extend(5..8);
    println!("{e:?}");
    let mut s = String::from("a");
    s.par_extend(vec!['b', 'c']);
    println!("{s}");
}

fn collect_into_result_and_option() {
    for n in [1, 4] {
        pool(n).install(|| {
            println!(
                "{:?}",
                (0..5).into_par_iter().map(Ok::<_, String>).collect::<Result<Vec<_>, _>>()
            );
            println!(
                "{:?}",
                (0..500)
                    .into_par_iter()
                    .map(|x| if x == 77 { Err(x) } else { Ok(x) })
                    .collect::<Result<Vec<_>, _>>()
            );
            println!("{:?}", (0..5).into_par_iter().map(Some).collect::<Option<Vec<_>>>());
            println!(
                "{:?}",
                (0..500)
                    .into_par_iter()
                    .map(|x| (x != 100).then_some(x))
                    .collect::<Option<Vec<_>>>()
            );
            println!(
                "{:?}",
                (0..3)
                    .into_par_iter()
                    .map(|x| x as u8 as char)
                    .map(|c| c.is_control())
                    .collect::<Vec<bool>>()
            );
        });
    }
}

fn collect_into_maps_and_sets() {
    let m: std::collections::BTreeMap<_, _> = (0..5).into_par_iter().map(|x| (x % 3, x)).collect();
    println!("{:?}", m.keys().collect::<Vec<_>>());
    let h: std::collections::HashSet<_> = (0..100).into_par_iter().map(|x| x % 7).collect();
    println!("{}", h.len());
    let l: std::collections::LinkedList<_> = (0..5).into_par_iter().collect();
    println!("{l:?}");
    let d: std::collections::VecDeque<_> = (0..5).into_par_iter().collect();
    println!("{d:?}");
    let b: Box<[i32]> = (0..3).into_par_iter().collect();
    println!("{b:?}");
    let m: std::collections::BTreeMap<_, _> =
        (0..100).into_par_iter().map(|x| (x % 3, x)).collect();
    println!("the last of each key: {m:?}");
}

fn partitions() {
    let (a, b): (Vec<_>, Vec<_>) = (0..10).into_par_iter().partition(|x| x % 3 == 0);
    println!("{a:?} {b:?}");
    let (a, b): (Vec<_>, Vec<_>) = (0..6).into_par_iter().partition_map(|x| {
        if x % 2 == 0 {
            rayon::iter::Either::Left(x)
        } else {
            rayon::iter::Either::Right(x.to_string())
        }
    });
    println!("{a:?} {b:?}");
}

fn first_and_last_are_exact_on_many_threads() {
    for n in [1, 4] {
        pool(n).install(|| {
            let r = || (0..10_000).into_par_iter();
            println!(
                "{:?} {:?}",
                r().find_first(|x| x % 100 == 37),
                r().find_last(|x| x % 100 == 37)
            );
            println!(
                "{:?} {:?}",
                r().position_first(|x| x > 5000),
                r().position_last(|x| x < 5000)
            );
            println!(
                "{:?} {:?}",
                r().find_map_first(|x| (x > 123).then_some(x * 2)),
                r().find_map_last(|x| (x < 123).then_some(x * 2))
            );
            println!("{:?} {:?}", r().find_any(|x| *x == 5), r().find_any(|x| *x > 10_000));
            println!("{:?} {:?}", r().position_any(|x| x == 9), r().find_first(|x| *x > 10_000));
            println!("{} {}", r().any(|x| x == 9), r().all(|x| x < 10));
        });
    }
}

fn min_and_max_with_ties() {
    for n in [1, 4] {
        pool(n).install(|| {
            let v: Vec<(i32, usize)> = (0..1000).map(|i| ((i % 10) as i32, i)).collect();
            println!(
                "{:?} {:?}",
                v.par_iter().min_by_key(|t| t.0),
                v.par_iter().max_by_key(|t| t.0)
            );
            println!(
                "{:?} {:?}",
                v.par_iter().min_by(|a, b| a.0.cmp(&b.0)),
                v.par_iter().max_by(|a, b| a.0.cmp(&b.0))
            );
            println!(
                "{:?} {:?}",
                Vec::<u8>::new().par_iter().min(),
                Vec::<u8>::new().par_iter().max()
            );
        });
    }
}

fn comparisons() {
    let a = [1, 2, 3];
    println!(
        "{:?} {:?}",
        a.par_iter().cmp([1, 2, 4].par_iter()),
        a.par_iter().cmp([1, 2].par_iter())
    );
    println!("{:?}", [1.0, f64::NAN].par_iter().partial_cmp([1.0, 2.0].par_iter()));
    println!(
        "{} {} {}",
        a.par_iter().eq([1, 2, 3].par_iter()),
        a.par_iter().lt([1, 3].par_iter()),
        a.par_iter().ne([1].par_iter())
    );
    println!(
        "{} {}",
        a.par_iter().le([1, 2, 3].par_iter()),
        a.par_iter().ge([1, 2, 3, 0].par_iter())
    );
}

fn reduce_keeps_the_order_of_an_associative_operation() {
    for n in [1, 4] {
        pool(n).install(|| {
            println!(
                "{}",
                (0..30)
                    .into_par_iter()
                    .map(|x| (b'a' + x % 26) as char)
                    .map(String::from)
                    .reduce(String::new, |a, b| a + &b)
            );
            println!("{:?}", (0..0).into_par_iter().reduce_with(|a: i32, b| a + b));
            println!("{:?}", (1..=5).into_par_iter().reduce_with(|a, b| a * b));
            println!("{}", (0..0).into_par_iter().reduce(|| 7, |a: i32, b| a + b));
            println!(
                "{} {}",
                (1..=10).into_par_iter().sum::<u32>(),
                (1..=5).into_par_iter().product::<u32>()
            );
            println!(
                "{:?}",
                (0..100)
                    .into_par_iter()
                    .fold(Vec::new, |mut v, x| {
                        v.push(x);
                        v
                    })
                    .reduce(Vec::new, |mut a, b| {
                        a.extend(b);
                        a
                    })
                    .len()
            );
        });
    }
}

fn try_operations_stop_at_an_error() {
    for n in [1, 4] {
        pool(n).install(|| {
            println!(
                "{:?}",
                (0..1000u32)
                    .into_par_iter()
                    .map(|x| if x == 300 { None } else { Some(x) })
                    .try_reduce(|| 0, |a, b| a.checked_add(b))
            );
            println!(
                "{:?}",
                (0..1000u32).into_par_iter().map(Some).try_reduce(|| 0, |a, b| a.checked_add(b))
            );
            println!(
                "{:?}",
                (0..10u8)
                    .into_par_iter()
                    .map(|x| x * 20)
                    .map(Some)
                    .try_reduce(|| 0, |a, b| a.checked_add(b))
            );
            println!(
                "{:?}",
                (0..100)
                    .into_par_iter()
                    .try_fold(|| 0, |a: i32, x: i32| if x == 50 { Err(x) } else { Ok(a + x) })
                    .try_reduce(|| 0, |a, b| Ok(a + b))
            );
            println!(
                "{:?}",
                (0..100).into_par_iter().try_for_each(|x| if x == 42 {
                    Err("stop")
                } else {
                    Ok(())
                })
            );
            println!("{:?}", (0..10).into_par_iter().try_for_each(|_| Some(())));
            println!(
                "{:?}",
                (0..0).into_par_iter().map(Some).try_reduce_with(|a: i32, b| Some(a + b))
            );
            println!(
                "{:?}",
                (0..4).into_par_iter().map(Some).try_reduce_with(|a: i32, b| Some(a + b))
            );
        });
    }
}

fn sorts_are_stable_where_they_say_so() {
    for n in [1, 4] {
        pool(n).install(|| {
            let v: Vec<(u32, u32)> =
                (0..8_000u32).map(|i| (i.wrapping_mul(2_654_435_761) % 50, i)).collect();
            let mut a = v.clone();
            a.par_sort_by_key(|t| t.0);
            println!("{}", a.windows(2).all(|w| w[0] < w[1]));
            let mut a = v.clone();
            a.par_sort_by(|x, y| y.0.cmp(&x.0));
            println!(
                "{}",
                a.windows(2).all(|w| w[0].0 > w[1].0 || (w[0].0 == w[1].0 && w[0].1 < w[1].1))
            );
            let mut a = v.clone();
            a.par_sort_by_cached_key(|t| t.0);
            println!("{}", a.windows(2).all(|w| w[0] < w[1]));
            let mut a = v.clone();
            a.par_sort_unstable();
            println!("{}", a.windows(2).all(|w| w[0] < w[1]));
            let mut a: Vec<u32> = vec![];
            a.par_sort();
            a.par_sort_unstable_by_key(|x| *x);
            println!("{a:?}");
        });
    }
}

fn a_panicking_comparison_keeps_every_element() {
    for n in [1, 4] {
        pool(n).install(|| {
            let mut v: Vec<u32> = (0..10_000u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
            let mut want = v.clone();
            want.sort();
            let c = AtomicUsize::new(0);
            let r = caught(|| {
                v.par_sort_by(|a, b| {
                    if c.fetch_add(1, SeqCst) == 5_000 {
                        panic!("compare")
                    }
                    a.cmp(b)
                })
            });
            v.sort();
            println!("{r} {}", v == want);
        });
    }
}

// Iterators: panics, drops.

fn a_panic_in_map_drops_everything_made() {
    for n in [1, 4] {
        let t = Tally::default();
        let r = caught(|| {
            pool(n).install(|| {
                (0..1000)
                    .into_par_iter()
                    .map(|i| {
                        if i == 500 {
                            panic!("map")
                        }
                        Item::new(i, &t)
                    })
                    .collect::<Vec<_>>()
            });
        });
        println!("{r} {}", t.even());
    }
}

fn a_panic_while_consuming_a_vec_drops_the_rest() {
    for n in [1, 4] {
        let t = Tally::default();
        let v: Vec<_> = (0..1000).map(|i| Item::new(i, &t)).collect();
        let r = caught(|| {
            pool(n).install(|| {
                v.into_par_iter().for_each(|x| {
                    if x.0 == 333 {
                        panic!("each")
                    }
                })
            })
        });
        println!("{r} {} {}", t.even(), t.made.load(SeqCst));
    }
}

fn an_unused_or_partly_used_vec_iterator_drops_all() {
    let t = Tally::default();
    let make = || (0..100).map(|i| Item::new(i, &t)).collect::<Vec<_>>();
    drop(make().into_par_iter());
    println!("{}", t.even());
    let f = make().into_par_iter().find_first(|x| x.0 == 10).map(|x| x.0);
    println!("{f:?} {}", t.even());
    let k = make().into_par_iter().take(3).collect::<Vec<_>>().len();
    println!("{k} {}", t.even());
    let k = make().into_par_iter().zip(0..2).count();
    println!("{k} {}", t.even());
}

fn par_drain_takes_its_range_out() {
    let mut v: Vec<i32> = (0..10).collect();
    println!("{:?} {v:?}", {
        let d: Vec<_> = v.par_drain(2..5).collect();
        d
    });
    println!("{v:?}");
    println!("{:?}", v.par_drain(3..3).count());
    println!("{v:?}");
    drop(v.par_drain(..2));
    println!("{v:?}");
    println!("{:?}", v.par_drain(..).sum::<i32>());
    println!("{v:?}");
    let mut s = String::from("hello");
    println!("{:?}", s.par_drain(1..3).collect::<String>());
    println!("{s}");
}

fn par_drain_with_a_panic() {
    let t = Tally::default();
    let mut v: Vec<_> = (0..10).map(|i| Item::new(i, &t)).collect();
    let r = caught(|| {
        v.par_drain(2..6).for_each(|x| {
            if x.0 == 3 {
                panic!("drain")
            }
        })
    });
    println!("{r} {:?}", v.iter().map(|x| x.0).collect::<Vec<_>>());
    drop(v);
    println!("{}", t.even());
}

fn panic_fuse_lets_the_panic_through() {
    println!(
        "{}",
        caught(|| (0..100_000).into_par_iter().panic_fuse().for_each(|x| if x == 10 {
            panic!("fused")
        }))
    );
}

fn a_panic_in_a_reduce_or_filter_goes_through() {
    println!(
        "{}",
        caught(|| (0..100)
            .into_par_iter()
            .filter(|x| {
                if *x == 3 {
                    panic!("filter")
                }
                true
            })
            .count())
    );
    println!("{}", caught(|| (0..100).into_par_iter().reduce(|| 0, |_, _| panic!("reduce"))));
    println!("{}", caught(|| (0..100).into_par_iter().reduce_with(|_, _| panic!("reduce_with"))));
    println!("{}", caught(|| (0..1).into_par_iter().reduce_with(|_, _| panic!("never called"))));
    println!(
        "{}",
        caught(|| (0..100).into_par_iter().try_for_each(|_| -> Option<()> { panic!("try") }))
    );
}

// Iterators: other.

fn par_bridge_gives_each_item_once() {
    for n in [1, 4] {
        pool(n).install(|| {
            let mut v: Vec<_> = (0..500).par_bridge().map(|x| x * 2).collect();
            v.sort();
            println!("{} {}", v.len(), v.windows(2).all(|w| w[1] - w[0] == 2));
            println!("{}", std::iter::empty::<u8>().par_bridge().count());
            let (tx, rx) = std::sync::mpsc::channel();
            for i in 0..10 {
                tx.send(i).unwrap();
            }
            drop(tx);
            println!("{}", rx.into_iter().par_bridge().sum::<i32>());
        });
    }
}

fn par_bridge_with_panics() {
    for n in [1, 4] {
        let p = pool(n);
        println!(
            "{}",
            caught(|| p.install(|| (0..100).par_bridge().for_each(|x| if x == 50 {
                panic!("body")
            })))
        );
        println!(
            "{}",
            caught(|| p.install(|| (0..100)
                .map(|x| if x == 50 { panic!("source") } else { x })
                .par_bridge()
                .count()))
        );
        println!("{}", p.install(|| (0..10).par_bridge().count()));
    }
}

fn min_len_and_max_len_bound_the_splits() {
    for n in [1, 4] {
        pool(n).install(|| {
            let v = || (0..64usize).collect::<Vec<_>>().into_par_iter();
            println!(
                "{}",
                v().with_max_len(1).fold(|| 0usize, |a, _| a + 1).collect::<Vec<_>>().len()
            );
            println!(
                "{:?}",
                v().with_min_len(64).fold(|| 0usize, |a, _| a + 1).collect::<Vec<_>>()
            );
            println!("{}", v().with_min_len(10).fold(|| 0usize, |a, _| a + 1).all(|k| k >= 10));
            println!("{}", v().with_max_len(10).fold(|| 0usize, |a, _| a + 1).all(|k| k <= 10));
            println!(
                "{:?}",
                v().with_min_len(1000).fold(|| 0usize, |a, _| a + 1).collect::<Vec<_>>()
            );
        });
    }
}

fn while_some_and_the_any_adaptors() {
    for n in [1, 4] {
        pool(n).install(|| {
            println!("{:?}", (0..100).into_par_iter().map(Some).while_some().count());
            println!(
                "{}",
                (0..100)
                    .into_par_iter()
                    .map(|x| if x == 0 { None } else { Some(x) })
                    .while_some()
                    .all(|x| x > 0)
            );
            println!("{}", (0..1000).into_par_iter().filter(|_| true).take_any(30).count());
            println!("{}", (0..1000).into_par_iter().filter(|_| true).skip_any(30).count());
            println!("{}", (0..1000).into_par_iter().take_any(0).count());
            println!("{}", (0..1000).into_par_iter().take_any_while(|_| true).count());
            println!("{}", (0..1000).into_par_iter().skip_any_while(|_| true).count());
            println!("{}", (0..1000).into_par_iter().take_any(5000).count());
        });
    }
}

fn sources_of_items() {
    println!("{:?}", rayon::iter::once(3).collect::<Vec<_>>());
    println!("{:?}", rayon::iter::empty::<u8>().collect::<Vec<_>>());
    println!("{:?}", rayon::iter::repeat_n("x", 3).collect::<Vec<_>>());
    println!("{:?}", rayon::iter::repeat(1).take(4).sum::<i32>());
    println!("{:?}", Some(5).into_par_iter().chain(None).collect::<Vec<_>>());
    println!("{:?}", Ok::<u8, ()>(1).into_par_iter().count());
    println!("{:?}", ('a'..='e').into_par_iter().collect::<String>());
    println!("{:?}", (0u8..=255).into_par_iter().count());
    println!("{:?}", (i64::MAX - 2..=i64::MAX).into_par_iter().collect::<Vec<_>>());
    println!("{:?}", (5..2).into_par_iter().collect::<Vec<i32>>());
    println!("{:?}", [1, 2, 3].into_par_iter().map(|x| x + 1).collect::<Vec<_>>());
    println!(
        "{:?}",
        rayon::iter::walk_tree_prefix(1, |&n: &i32| if n < 8 {
            vec![n * 2, n * 2 + 1]
        } else {
            vec![]
        })
        .collect::<Vec<_>>()
    );
    println!(
        "{:?}",
        rayon::iter::walk_tree_postfix(1, |&n: &i32| if n < 4 {
            vec![n * 2, n * 2 + 1]
        } else {
            vec![]
        })
        .collect::<Vec<_>>()
    );
    println!(
        "{:?}",
        rayon::iter::split(0..10, |r: std::ops::Range<i32>| {
            let m = (r.start + r.end) / 2;
            if r.len() > 3 { (r.start..m, Some(m..r.end)) } else { (r, None) }
        })
        .flat_map_iter(|r| r)
        .collect::<Vec<_>>()
    );
}

fn side_effect_adaptors() {
    let seen = AtomicUsize::new(0);
    let v: Vec<_> = (0..10)
        .into_par_iter()
        .inspect(|_| {
            seen.fetch_add(1, SeqCst);
        })
        .update(|x| *x *= 2)
        .collect();
    println!("{v:?} {}", seen.load(SeqCst));
    let v: Vec<_> = (0..6).into_par_iter().map_with(100, |b, x| *b + x).collect();
    println!("{v:?}");
    let v: Vec<_> = (0..6).into_par_iter().map_init(|| 7, |s, x| x + *s).collect();
    println!("{v:?}");
    println!("{:?}", [Some(1), None].par_iter().copied().collect::<Vec<_>>());
    println!("{:?}", vec!["a".to_string()].par_iter().cloned().collect::<Vec<_>>());
    let mut w = vec![1, 2, 3];
    w.par_iter_mut().for_each(|x| *x += 1);
    w.par_iter_mut().rev().enumerate().for_each(|(i, x)| *x += i * 10);
    println!("{w:?}");
}

fn blocks_cover_everything_in_order() {
    for n in [1, 4] {
        pool(n).install(|| {
            println!(
                "{:?}",
                (0..23).into_par_iter().by_uniform_blocks(5).collect::<Vec<_>>().len()
            );
            println!(
                "{:?}",
                (0..1000).into_par_iter().by_exponential_blocks().find_first(|x| *x == 700)
            );
            println!(
                "{:?}",
                (0..10).into_par_iter().by_uniform_blocks(3).map(|x| x * x).collect::<Vec<_>>()
            );
        });
    }
}

fn iterators_run_in_the_pool_they_are_installed_in() {
    let p = pool(3);
    let out = p.install(|| (0..200).into_par_iter().all(|_| rayon::current_num_threads() == 3));
    println!("{out}");
    let q = pool(2);
    println!(
        "{}",
        p.install(|| (0..50)
            .into_par_iter()
            .all(|_| q.install(|| rayon::current_num_threads() == 2)))
    );
}

fn nested_parallel_iterators() {
    for n in [1, 2, 4] {
        println!(
            "{}",
            pool(n).install(|| (0..50u64)
                .into_par_iter()
                .map(|i| (0..i).into_par_iter().map(|j| i * j).sum::<u64>())
                .sum::<u64>())
        );
    }
}

fn lengths_are_known() {
    println!("{} {}", (0..10).into_par_iter().len(), vec![1; 3].par_iter().len());
    println!(
        "{:?} {:?}",
        (0..10).into_par_iter().opt_len(),
        (0..10).into_par_iter().filter(|_| true).opt_len()
    );
    println!("{:?}", (0..10).into_par_iter().chain(0..5).opt_len());
    println!(
        "{} {}",
        (0..10).into_par_iter().chunks(3).len(),
        (0..10).into_par_iter().step_by(3).len()
    );
    println!("{}", (0..10).into_par_iter().interleave_shortest(0..3).len());
}

fn huge_ranges_stop_early() {
    for n in [1, 4] {
        pool(n).install(|| {
            println!("{:?}", (0..u64::MAX).into_par_iter().find_any(|x| *x == 0).is_some());
            println!("{:?}", (0..u32::MAX).into_par_iter().any(|_| true));
            println!("{:?}", (0..1u64 << 40).into_par_iter().find_first(|x| x % 2 == 1));
        });
    }
}

pub const CASES: &[(&str, fn())] = &[
    ("join_gives_both_results", join_gives_both_results),
    ("join_on_one_thread_runs_a_before_b", join_on_one_thread_runs_a_before_b),
    ("join_with_a_panic_in_a_still_finishes_b", join_with_a_panic_in_a_still_finishes_b),
    ("join_with_a_panic_in_b", join_with_a_panic_in_b),
    ("join_with_two_panics_gives_the_first", join_with_two_panics_gives_the_first),
    ("join_keeps_a_panics_payload", join_keeps_a_panics_payload),
    (
        "join_drops_the_result_of_the_other_side_when_one_panics",
        join_drops_the_result_of_the_other_side_when_one_panics,
    ),
    ("join_borrows_from_the_stack", join_borrows_from_the_stack),
    ("join_context_on_one_thread", join_context_on_one_thread),
    ("join_context_from_outside_the_pool", join_context_from_outside_the_pool),
    ("joins_nested_ten_thousand_deep", joins_nested_ten_thousand_deep),
    ("join_fib", join_fib),
    ("scope_waits_for_all_it_spawned", scope_waits_for_all_it_spawned),
    (
        "scope_on_one_thread_runs_the_last_spawned_first",
        scope_on_one_thread_runs_the_last_spawned_first,
    ),
    (
        "scope_fifo_on_one_thread_runs_the_first_spawned_first",
        scope_fifo_on_one_thread_runs_the_first_spawned_first,
    ),
    (
        "scope_panics_when_a_job_panics_and_runs_the_others",
        scope_panics_when_a_job_panics_and_runs_the_others,
    ),
    (
        "scope_panics_when_its_body_panics_after_the_jobs",
        scope_panics_when_its_body_panics_after_the_jobs,
    ),
    ("scope_with_many_panics_gives_one_of_them", scope_with_many_panics_gives_one_of_them),
    ("scope_jobs_borrow_and_may_outlive_nothing", scope_jobs_borrow_and_may_outlive_nothing),
    ("in_place_scope_runs_its_body_here", in_place_scope_runs_its_body_here),
    ("scopes_nest", scopes_nest),
    ("scope_broadcast_runs_on_every_thread", scope_broadcast_runs_on_every_thread),
    ("spawn_order_on_one_thread", spawn_order_on_one_thread),
    (
        "spawn_from_outside_is_first_come_first_served",
        spawn_from_outside_is_first_come_first_served,
    ),
    ("a_panic_in_spawn_goes_to_the_panic_handler", a_panic_in_spawn_goes_to_the_panic_handler),
    ("a_panic_in_spawn_without_a_handler_aborts", a_panic_in_spawn_without_a_handler_aborts),
    ("a_panic_in_the_panic_handler_aborts", a_panic_in_the_panic_handler_aborts),
    (
        "a_panicking_start_handler_goes_to_the_panic_handler",
        a_panicking_start_handler_goes_to_the_panic_handler,
    ),
    ("broadcast_results_come_in_index_order", broadcast_results_come_in_index_order),
    ("broadcast_with_a_panic", broadcast_with_a_panic),
    ("spawn_broadcast_runs_once_on_each_thread", spawn_broadcast_runs_once_on_each_thread),
    ("building_the_global_pool_twice_fails", building_the_global_pool_twice_fails),
    ("the_global_pool_starts_at_its_first_use", the_global_pool_starts_at_its_first_use),
    ("zero_threads_means_the_default_number", zero_threads_means_the_default_number),
    ("max_num_threads_is_a_constant", max_num_threads_is_a_constant),
    ("thread_names_and_indices", thread_names_and_indices),
    (
        "start_and_exit_handlers_run_once_for_each_thread",
        start_and_exit_handlers_run_once_for_each_thread,
    ),
    ("a_dropped_pool_still_finishes_its_work", a_dropped_pool_still_finishes_its_work),
    ("a_job_of_a_dropped_pool_may_spawn_more", a_job_of_a_dropped_pool_may_spawn_more),
    ("a_pool_may_be_dropped_inside_itself", a_pool_may_be_dropped_inside_itself),
    ("install_runs_in_the_pool_and_gives_the_value", install_runs_in_the_pool_and_gives_the_value),
    ("install_across_pools", install_across_pools),
    (
        "a_thread_waiting_in_install_of_another_pool_runs_its_own_jobs",
        a_thread_waiting_in_install_of_another_pool_runs_its_own_jobs,
    ),
    ("yields_outside_and_inside_a_pool", yields_outside_and_inside_a_pool),
    ("pending_tasks_are_seen", pending_tasks_are_seen),
    (
        "use_current_thread_makes_this_one_number_zero",
        use_current_thread_makes_this_one_number_zero,
    ),
    ("use_current_thread_twice_fails", use_current_thread_twice_fails),
    (
        "a_spawn_handler_that_fails_is_the_builds_error",
        a_spawn_handler_that_fails_is_the_builds_error,
    ),
    ("a_spawn_handler_runs_the_threads", a_spawn_handler_runs_the_threads),
    ("a_scoped_pool_borrows_and_ends", a_scoped_pool_borrows_and_ends),
    ("a_pool_survives_panics", a_pool_survives_panics),
    ("collect_keeps_the_order", collect_keeps_the_order),
    ("indexed_adaptors_keep_positions", indexed_adaptors_keep_positions),
    ("zip_stops_at_the_shorter", zip_stops_at_the_shorter),
    ("odd_arguments_panic", odd_arguments_panic),
    ("slices_in_chunks_and_windows", slices_in_chunks_and_windows),
    ("strings_in_parallel", strings_in_parallel),
    ("collect_into_existing_vectors", collect_into_existing_vectors),
    ("collect_into_result_and_option", collect_into_result_and_option),
    ("collect_into_maps_and_sets", collect_into_maps_and_sets),
    ("partitions", partitions),
    ("first_and_last_are_exact_on_many_threads", first_and_last_are_exact_on_many_threads),
    ("min_and_max_with_ties", min_and_max_with_ties),
    ("comparisons", comparisons),
    (
        "reduce_keeps_the_order_of_an_associative_operation",
        reduce_keeps_the_order_of_an_associative_operation,
    ),
    ("try_operations_stop_at_an_error", try_operations_stop_at_an_error),
    ("sorts_are_stable_where_they_say_so", sorts_are_stable_where_they_say_so),
    ("a_panicking_comparison_keeps_every_element", a_panicking_comparison_keeps_every_element),
    ("a_panic_in_map_drops_everything_made", a_panic_in_map_drops_everything_made),
    ("a_panic_while_consuming_a_vec_drops_the_rest", a_panic_while_consuming_a_vec_drops_the_rest),
    (
        "an_unused_or_partly_used_vec_iterator_drops_all",
        an_unused_or_partly_used_vec_iterator_drops_all,
    ),
    ("par_drain_takes_its_range_out", par_drain_takes_its_range_out),
    ("par_drain_with_a_panic", par_drain_with_a_panic),
    ("panic_fuse_lets_the_panic_through", panic_fuse_lets_the_panic_through),
    ("a_panic_in_a_reduce_or_filter_goes_through", a_panic_in_a_reduce_or_filter_goes_through),
    ("par_bridge_gives_each_item_once", par_bridge_gives_each_item_once),
    ("par_bridge_with_panics", par_bridge_with_panics),
    ("min_len_and_max_len_bound_the_splits", min_len_and_max_len_bound_the_splits),
    ("while_some_and_the_any_adaptors", while_some_and_the_any_adaptors),
    ("sources_of_items", sources_of_items),
    ("side_effect_adaptors", side_effect_adaptors),
    ("blocks_cover_everything_in_order", blocks_cover_everything_in_order),
    (
        "iterators_run_in_the_pool_they_are_installed_in",
        iterators_run_in_the_pool_they_are_installed_in,
    ),
    ("nested_parallel_iterators", nested_parallel_iterators),
    ("lengths_are_known", lengths_are_known),
    ("huge_ranges_stop_early", huge_ranges_stop_early),
];
