//! Tests that a runtime with a seed repeats its decisions.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use blitz_io::{
    macros::support::thread_rng_n,
    runtime::{Builder, RngSeed, Runtime},
    task::yield_now,
};

use crate::support::watchdog;

fn seeded(mut builder: Builder, seed: &[u8]) -> Runtime {
    builder.worker_threads(1).rng_seed(RngSeed::from_bytes(seed)).build().unwrap()
}

fn both(seed: &[u8]) -> [Runtime; 2] {
    [Builder::new_current_thread(), Builder::new_multi_thread()]
        .map(|builder| seeded(builder, seed))
}

fn draws() -> [u32; 8] {
    std::array::from_fn(|_| thread_rng_n(u32::MAX))
}

type Log = Arc<Mutex<Vec<(u64, u32)>>>;

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Returns a task that draws random numbers for how often it yields, and whether it spawns another.
fn gamble(name: u64, log: Log, poll: Duration) -> Boxed {
    Box::pin(async move {
        let lot = thread_rng_n(6);
        log.lock().unwrap().push((name, lot));
        if lot == 0 && name < 1 << 40 {
            blitz_io::spawn(gamble(name << 10, log.clone(), poll));
        }
        for _ in 0..lot {
            let began = Instant::now();
            while began.elapsed() < poll {}
            yield_now().await;
            log.lock().unwrap().push((name, thread_rng_n(1_000)));
        }
    })
}

/// Returns the order of events on a current-thread runtime with this seed, if polls take `poll`.
fn history(seed: &[u8], poll: Duration) -> Vec<(u64, u32)> {
    let rt = seeded(Builder::new_current_thread(), seed);
    let log = Log::default();
    // More tasks than one batch from the injector; they mix with tasks that are spawned inside.
    for name in 1..300 {
        rt.spawn(gamble(name, log.clone(), poll));
    }
    for round in 0..3 {
        let inside = log.clone();
        rt.block_on(async move {
            for name in 300..330 {
                blitz_io::spawn(gamble(name + 100 * round, inside.clone(), poll));
                if thread_rng_n(2) == 0 {
                    yield_now().await;
                }
            }
        });
    }
    let metrics = rt.metrics();
    rt.block_on(async {
        while metrics.num_alive_tasks() > 0 {
            yield_now().await;
        }
    });
    Arc::into_inner(log).expect("all tasks have ended").into_inner().unwrap()
}

#[test]
fn a_seeded_current_thread_runtime_repeats_itself_whatever_polls_take() {
    let _watch = watchdog::start();
    let first = history(b"one", Duration::ZERO);
    assert!(first.len() > 1_000, "{}", first.len());
    assert_eq!(history(b"one", Duration::ZERO), first);
    // Slow enough to change an interval that follows the clock.
    assert_eq!(history(b"one", Duration::from_micros(200)), first);
    assert_ne!(history(b"two", Duration::ZERO), first);
}

#[test]
fn each_block_on_has_the_next_stream_of_the_seed() {
    let _watch = watchdog::start();
    for (one, two) in both(b"seed").into_iter().zip(both(b"seed")) {
        let of = |rt: &Runtime| {
            [rt.block_on(async { draws() }), rt.handle().block_on(async { draws() })]
        };
        let (first, second) = (of(&one), of(&two));
        assert_eq!(first, second);
        assert_ne!(first[0], first[1]);
        assert_ne!(of(&one), first);
    }
}

#[test]
fn tasks_on_a_seeded_worker_draw_the_same_again() {
    let _watch = watchdog::start();
    for (one, two) in both(b"seed").into_iter().zip(both(b"seed")) {
        let of = |rt: &Runtime| rt.block_on(rt.spawn(async { draws() })).unwrap();
        assert_eq!(of(&one), of(&two));
    }
}

#[test]
fn seeds_of_other_bytes_are_others() {
    let _watch = watchdog::start();
    let seeds: [&[u8]; 8] = [b"", b"\0", b"\0\0", b"a", b"b", b"ab", b"ba", b"a\0"];
    let mut seen: Vec<_> = seeds
        .iter()
        .map(|seed| seeded(Builder::new_current_thread(), seed).block_on(async { draws() }))
        .collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 8);
}

#[test]
fn without_a_seed_nothing_repeats() {
    let _watch = watchdog::start();
    let draw = || std::thread::spawn(draws).join().unwrap();
    assert_ne!(draw(), draw());
    let rt = || Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let of = |rt: Runtime| rt.block_on(rt.spawn(async { draws() })).unwrap();
    assert_ne!(of(rt()), of(rt()));
}

#[test]
fn a_thread_has_its_own_generator_back_after_block_on() {
    let _watch = watchdog::start();
    for (one, two) in both(b"seed").into_iter().zip(both(b"seed")) {
        let [first, second] = one.block_on(async { [draws(), draws()] });
        assert_eq!(two.block_on(async { draws() }), first);
        assert_ne!(draws(), second, "the stream of the runtime goes on outside of it");
    }
}
