//! Compares every combinator of streams with an iterator, and tests ends, size hints, fairness and
//! time.

use std::{
    cell::Cell,
    future::{pending, poll_fn},
    pin::{Pin, pin},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use blitz_io::{
    channel::mpsc,
    stream::{self, Stream, StreamExt, StreamMap, wrappers::ReceiverStream},
    task,
    time::Instant,
};

use crate::support::{
    gate::Gate,
    manual_poll::poll_once,
    runtimes::{all_kinds_with_drivers, one_thread, workers},
    watchdog,
};

/// A stream with scripted items: `None` is `Pending`, which wakes the task at once.
struct Script<T> {
    polls: std::vec::IntoIter<Option<T>>,
    /// The number of polls after the end.
    late: Rc<Cell<usize>>,
}

/// Returns a stream of all items, with a pending poll before each.
fn with_pauses<T>(items: impl IntoIterator<Item = T>) -> Script<T> {
    let polls: Vec<_> = items.into_iter().flat_map(|item| [None, Some(item)]).collect();
    Script { polls: polls.into_iter(), late: Rc::default() }
}

impl<T> Unpin for Script<T> {}

impl<T> Stream for Script<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        match self.polls.next() {
            Some(Some(item)) => Poll::Ready(Some(item)),
            Some(None) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            None => {
                self.late.set(self.late.get() + 1);
                Poll::Ready(None)
            }
        }
    }
}

/// A foreign stream that is always ready and uses no budget.
struct Endless;

impl Stream for Endless {
    type Item = u64;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<u64>> {
        Poll::Ready(Some(1))
    }
}

/// Collects the items of a stream, in whatever pieces its source comes.
fn all<S: Stream>(stream: S) -> Vec<S::Item> {
    let _watch = watchdog::start();
    one_thread().block_on(stream.collect())
}

#[test]
fn each_does_as_the_iterator_of_that_name() {
    let numbers = || with_pauses(0..20);
    let plain = || 0..20;
    assert_eq!(all(numbers().map(|n| n * 2)), plain().map(|n| n * 2).collect::<Vec<_>>());
    assert_eq!(all(numbers().filter(|n| n % 3 == 0)), [0, 3, 6, 9, 12, 15, 18]);
    let odd = |n| (n % 2 == 1).then_some(n + 100);
    assert_eq!(all(numbers().filter_map(odd)), plain().filter_map(odd).collect::<Vec<_>>());
    let small = |n| (n < 5).then_some(n + 1);
    assert_eq!(all(numbers().map_while(small)), [1, 2, 3, 4, 5]);
    for n in [0, 1, 7, 20, 30] {
        assert_eq!(all(numbers().take(n)), plain().take(n).collect::<Vec<_>>());
        assert_eq!(all(numbers().skip(n)), plain().skip(n).collect::<Vec<_>>());
    }
    assert_eq!(all(numbers().take_while(|n| *n < 3)), [0, 1, 2]);
    assert_eq!(all(numbers().skip_while(|n| *n < 17)), [17, 18, 19]);
    assert_eq!(all(with_pauses([1, 9, 1]).skip_while(|n| *n < 5)), [9, 1]);
    assert_eq!(all(with_pauses([1, 2]).chain(with_pauses([3]))), [1, 2, 3]);
    assert_eq!(all(stream::empty::<u8>()), []);
    assert_eq!(all(stream::once(7)), [7]);
    let slow = numbers().then(async |n| {
        task::yield_now().await;
        n * 3
    });
    assert_eq!(all(slow), plain().map(|n| n * 3).collect::<Vec<_>>());
}

#[test]
fn values_are_made_of_all_items() {
    let _watch = watchdog::start();
    one_thread().block_on(async {
        assert_eq!(with_pauses(1..=4).fold(10, |sum, n| sum + n).await, 20);
        assert!(with_pauses(1..4).all(|n| n < 4).await);
        assert!(!with_pauses(1..4).all(|n| n < 3).await);
        assert!(with_pauses(1..4).any(|n| n == 3).await);
        assert!(!with_pauses(1..4).any(|n| n == 4).await);
        let boxed: Box<[i32]> = with_pauses(1..3).collect().await;
        assert_eq!(*boxed, [1, 2]);
        let text: String = with_pauses(["a", "b"]).collect().await;
        assert_eq!(text, "ab");
        let map: std::collections::HashMap<_, _> =
            with_pauses([(1, 'a'), (2, 'b')]).collect().await;
        assert_eq!(map[&2], 'b');
        let set: std::collections::BTreeSet<_> = with_pauses([2, 1, 2]).collect().await;
        assert_eq!(set.into_iter().collect::<Vec<_>>(), [1, 2]);
        let good: Result<Vec<_>, ()> = with_pauses([Ok(1), Ok(2)]).collect().await;
        assert_eq!(good, Ok(vec![1, 2]));
        let mut source = with_pauses([Ok(1), Err("no"), Ok(3)]);
        let bad: Result<Vec<i32>, _> = (&mut source).collect().await;
        assert_eq!(bad, Err("no"));
        assert_eq!(source.try_next().await, Ok(Some(3)), "an error ends it, and takes no more");
        assert_eq!(source.try_next().await, Ok(None));
        let mut peekable = with_pauses([1, 2]).peekable();
        assert_eq!(peekable.peek().await, Some(&1));
        assert_eq!(peekable.peek().await, Some(&1));
        assert_eq!(peekable.next().await, Some(1));
        assert_eq!(peekable.next().await, Some(2));
        assert_eq!(peekable.peek().await, None);
    });
}

#[test]
fn fused_streams_do_not_poll_their_source_after_the_end() {
    let _watch = watchdog::start();
    type Made = Pin<Box<dyn Stream<Item = i32>>>;
    let cases: [fn(Script<i32>) -> Made; 8] = [
        |s| Box::pin(s.fuse()),
        |s| Box::pin(s.take(9)),
        |s| Box::pin(s.take_while(|_| true)),
        |s| Box::pin(s.map_while(Some)),
        |s| Box::pin(s.merge(stream::empty())),
        |s| Box::pin(s.then(std::future::ready)),
        |s| Box::pin(s.peekable()),
        |s| Box::pin(s.chain(stream::empty())),
    ];
    for (at, case) in cases.into_iter().enumerate() {
        one_thread().block_on(async {
            let source = with_pauses([1]);
            let late = source.late.clone();
            let mut stream = case(source);
            assert_eq!(stream.next().await, Some(1));
            for _ in 0..3 {
                assert_eq!(stream.next().await, None, "case {at}");
            }
            assert_eq!(late.get(), 1, "case {at} polls after the end");
        });
    }
}

#[test]
fn hints_are_what_is_left() {
    let _watch = watchdog::start();
    let ten = || stream::iter(0..10);
    assert_eq!(ten().size_hint(), (10, Some(10)));
    assert_eq!(ten().map(|n| n).size_hint(), (10, Some(10)));
    assert_eq!(ten().filter(|_| true).size_hint(), (0, Some(10)));
    assert_eq!(ten().filter_map(Some).size_hint(), (0, Some(10)));
    assert_eq!(ten().map_while(Some).size_hint(), (0, Some(10)));
    assert_eq!(ten().take(3).size_hint(), (3, Some(3)));
    assert_eq!(ten().take(30).size_hint(), (10, Some(10)));
    assert_eq!(stream::iter(0..).take(3).size_hint(), (3, Some(3)));
    assert_eq!(ten().skip(3).size_hint(), (7, Some(7)));
    assert_eq!(ten().skip(30).size_hint(), (0, Some(0)));
    assert_eq!(ten().skip_while(|_| true).size_hint(), (0, Some(10)));
    assert_eq!(ten().take_while(|_| true).size_hint(), (0, Some(10)));
    assert_eq!(ten().chain(ten()).size_hint(), (20, Some(20)));
    assert_eq!(ten().merge(stream::iter(0..)).size_hint().1, None);
    assert_eq!(stream::once(1).size_hint(), (1, Some(1)));
    assert_eq!(stream::empty::<u8>().size_hint(), (0, Some(0)));
    one_thread().block_on(async {
        let mut peeked = ten().peekable();
        peeked.peek().await;
        assert_eq!(peeked.size_hint(), (10, Some(10)));
        let mut then = Box::pin(ten().then(|_| pending::<()>()));
        assert!(poll_once(&mut then.next()).is_pending());
        assert_eq!(then.size_hint(), (10, Some(10)), "the one under way counts");
        let mut map = StreamMap::new();
        map.insert(1, ten());
        map.insert(2, ten());
        assert_eq!(map.size_hint(), (20, Some(20)));
    });
}

#[test]
fn a_merge_polls_both_streams_though_one_is_always_ready() {
    let _watch = watchdog::start();
    one_thread().block_on(async {
        for swapped in [false, true] {
            let (loud, quiet) = (stream::iter(std::iter::repeat(0)), stream::iter(1..=1000));
            let merged: Pin<Box<dyn Stream<Item = i32>>> =
                if swapped { Box::pin(quiet.merge(loud)) } else { Box::pin(loud.merge(quiet)) };
            let heard: Vec<i32> = merged.take(2000).filter(|n| *n != 0).collect().await;
            assert_eq!(heard, (1..=1000).collect::<Vec<_>>(), "each second one");
        }
    });
}

#[test]
fn a_merge_ends_after_both() {
    let _watch = watchdog::start();
    let mut merged = all(with_pauses(0..100).merge(with_pauses(100..150)));
    merged.sort_unstable();
    assert_eq!(merged, (0..150).collect::<Vec<_>>());
    let (sender, receiver) = mpsc::channel(4);
    one_thread().block_on(async {
        let mut merged = stream::empty().merge(ReceiverStream::new(receiver));
        assert!(poll_once(&mut merged.next()).is_pending(), "one of them goes on");
        sender.send(1).await.unwrap();
        assert_eq!(merged.next().await, Some(1));
        drop(sender);
        assert_eq!(merged.next().await, None);
    });
}

/// Asserts that another task of the same thread runs while a stream is polled without an end.
fn lets_others_run(endless: impl Future<Output = ()> + Send + 'static) {
    let rt = all_kinds_with_drivers().remove(0);
    let others = Arc::new(AtomicUsize::new(0));
    let counted = others.clone();
    rt.spawn(async move {
        loop {
            counted.fetch_add(1, Relaxed);
            task::yield_now().await;
        }
    });
    let hog = rt.spawn(endless);
    rt.block_on(async {
        while others.load(Relaxed) < 100 {
            task::yield_now().await;
        }
    });
    assert!(!hog.is_finished());
}

#[test]
fn a_stream_that_is_always_ready_lets_others_run() {
    let _watch = watchdog::start();
    lets_others_run(async { while Endless.next().await.is_some() {} });
    lets_others_run(async {
        let _ = Endless.filter(|_| false).next().await;
    });
    lets_others_run(async {
        let _ = Endless.filter_map(|_| None::<u8>).next().await;
    });
    lets_others_run(async {
        let _ = Endless.skip(usize::MAX).next().await;
    });
    lets_others_run(async {
        let _ = Endless.skip_while(|_| true).next().await;
    });
    lets_others_run(async {
        let _ = Endless.fold(0_u64, u64::wrapping_add).await;
    });
    lets_others_run(async {
        let _ = Endless.all(|_| true).await;
    });
    lets_others_run(async {
        let _ = Endless.any(|_| false).await;
    });
    lets_others_run(async {
        let mut merged = Endless.merge(Endless);
        while merged.next().await.is_some() {}
    });
    lets_others_run(async {
        let mut numbers = stream::iter(0_u64..);
        while poll_fn(|cx| Pin::new(&mut numbers).poll_next(cx)).await.is_some() {}
    });
    lets_others_run(async {
        let mut map: StreamMap<_, _> = [(1, Endless), (2, Endless)].into_iter().collect();
        while map.next().await.is_some() {}
    });
    lets_others_run(async {
        let mut chunks = pin!(Endless.chunks_timeout(1_000_000_000, Duration::from_secs(3600)));
        chunks.next().await;
    });
}

#[test]
fn an_item_costs_one_unit_of_budget_through_any_number_of_adapters() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let items = rt.spawn(async {
        let mut layers = stream::iter(0..).filter(|_| true).map(|n: u64| n).skip(0).fuse();
        let mut count = 0;
        poll_fn(move |cx| {
            while let Poll::Ready(item) = Pin::new(&mut layers).poll_next(cx) {
                assert!(item.is_some());
                count += 1;
            }
            Poll::Ready(count)
        })
        .await
    });
    assert_eq!(rt.block_on(items).unwrap(), 128, "a poll's budget");
}

#[test]
fn a_next_that_is_dropped_loses_nothing() {
    let _watch = watchdog::start();
    let (sender, receiver) = mpsc::channel(64);
    one_thread().block_on(async {
        let gate = Gate::new();
        let opened = gate.clone();
        let mut stream = Box::pin(ReceiverStream::new(receiver).then(move |n: u32| {
            let opened = opened.opened();
            async move {
                opened.await;
                n
            }
        }));
        assert!(poll_once(&mut stream.next()).is_pending());
        for n in 0..10 {
            sender.send(n).await.unwrap();
            // The stream has taken the first item, whose future waits and is dropped.
            assert!(poll_once(&mut stream.next()).is_pending());
        }
        gate.open();
        drop(sender);
        assert_eq!(stream.collect::<Vec<_>>().await, (0..10).collect::<Vec<_>>());
    });
}

#[test]
fn a_map_of_streams_gives_all_of_each() {
    let _watch = watchdog::start();
    for count in [1, 2, 7, 40] {
        one_thread().block_on(async {
            let mut map: StreamMap<_, _> =
                (0..count).map(|key| (key, with_pauses(0..key + 3))).collect();
            let mut seen = vec![Vec::new(); count];
            while let Some((key, item)) = map.next().await {
                seen[key].push(item);
            }
            for (key, items) in seen.into_iter().enumerate() {
                assert_eq!(items, (0..key + 3).collect::<Vec<_>>(), "of {count}");
            }
            assert!(map.is_empty());
        });
    }
}

#[test]
fn a_stream_map_polls_every_stream_though_one_is_always_ready() {
    let _watch = watchdog::start();
    one_thread().block_on(async {
        let mut map: StreamMap<u8, Pin<Box<dyn Stream<Item = u64>>>> = StreamMap::new();
        map.insert(0, Box::pin(Endless));
        map.insert(1, Box::pin(Endless));
        map.insert(2, Box::pin(Endless));
        let mut heard = [0; 3];
        for _ in 0..3_000 {
            let (key, _) = map.next().await.unwrap();
            heard[usize::from(key)] += 1;
        }
        // Each is expected to be first a thousand times; a tenth of that is beyond chance.
        assert!(heard.iter().all(|count| *count > 100), "{heard:?}");
    });
}

#[test]
fn a_map_may_change_while_it_is_used() {
    let _watch = watchdog::start();
    one_thread().block_on(async {
        let mut map = StreamMap::new();
        assert_eq!(map.next().await, None);
        assert!(map.insert("a", stream::iter(vec![1])).is_none());
        assert!(map.insert("a", stream::iter(vec![2, 3])).is_some());
        assert_eq!(map.next().await, Some(("a", 2)));
        assert!(map.remove("a").is_some() && map.remove("a").is_none());
        assert_eq!(map.next().await, None);
        map.insert("b", stream::iter(vec![4, 5, 6]));
        let mut items = Vec::new();
        assert_eq!(map.next_many(&mut items, 0).await, 0);
        assert_eq!(map.next_many(&mut items, 2).await, 2);
        assert_eq!(map.next_many(&mut items, 2).await, 1);
        assert_eq!(map.next_many(&mut items, 2).await, 0);
        assert_eq!(items, [("b", 4), ("b", 5), ("b", 6)]);
    });
}

#[test]
fn a_task_that_waits_for_a_map_is_woken_by_each() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..8).map(|_| mpsc::channel(1)).unzip();
        let mut map: StreamMap<_, _> =
            receivers.into_iter().map(ReceiverStream::new).enumerate().collect();
        let reads = rt.spawn(async move {
            let mut sums = [0; 8];
            while let Some((key, item)) = map.next().await {
                sums[key] += item;
            }
            sums
        });
        for (key, sender) in senders.into_iter().enumerate() {
            rt.spawn(async move {
                for n in 0..100 {
                    sender.send(n * key).await.unwrap();
                    task::yield_now().await;
                }
            });
        }
        let sums = rt.block_on(reads).unwrap();
        assert_eq!(sums, std::array::from_fn(|key| 4950 * key));
    }
}

#[test]
fn a_timeout_is_reported_once_and_the_stream_goes_on() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        rt.block_on(async {
            let (sender, receiver) = mpsc::channel(4);
            let limit = Duration::from_millis(5);
            let mut timed = pin!(ReceiverStream::new(receiver).timeout(limit));
            let start = Instant::now();
            assert!(timed.next().await.unwrap().is_err());
            assert!(start.elapsed() >= limit);
            // The timeout is not reported again: the stream waits for an item.
            assert!(poll_once(&mut timed.next()).is_pending());
            sender.send(1).await.unwrap();
            assert!(matches!(timed.next().await, Some(Ok(1))));
            assert!(timed.next().await.unwrap().is_err(), "each item has its time");
            drop(sender);
            assert!(timed.next().await.is_none());
        });
    }
}

#[test]
fn a_repeating_timeout_is_reported_at_every_tick() {
    let _watch = watchdog::start();
    let rt = all_kinds_with_drivers().remove(0);
    rt.block_on(async {
        let (_sender, receiver) = mpsc::channel::<u32>(4);
        let interval = blitz_io::time::interval(Duration::from_secs(3600));
        let mut timed = pin!(ReceiverStream::new(receiver).timeout_repeating(interval));
        assert!(poll_once(&mut timed.next()).is_pending(), "the first tick is a period away");

        let (sender, receiver) = mpsc::channel(4);
        let interval = blitz_io::time::interval(Duration::from_millis(2));
        let mut timed = pin!(ReceiverStream::new(receiver).timeout_repeating(interval));
        for _ in 0..3 {
            assert!(timed.next().await.unwrap().is_err());
        }
        sender.send(1).await.unwrap();
        assert!(matches!(timed.next().await, Some(Ok(1))));
        drop(sender);
        assert!(timed.next().await.is_none());
    });
}

#[test]
fn a_throttle_pauses_between_items() {
    let _watch = watchdog::start();
    let rt = all_kinds_with_drivers().remove(0);
    rt.block_on(async {
        let pause = Duration::from_millis(3);
        let start = Instant::now();
        let mut slow = pin!(stream::iter(0..4).throttle(pause));
        for n in 0..4 {
            assert_eq!(slow.next().await, Some(n));
            assert!(start.elapsed() >= pause * n, "{n}");
        }
        let none = stream::iter(0..1000).throttle(Duration::ZERO);
        assert_eq!(none.collect::<Vec<_>>().await.len(), 1000);
    });
}

#[test]
fn chunks_are_full_or_their_time_is_over() {
    let _watch = watchdog::start();
    let rt = all_kinds_with_drivers().remove(0);
    rt.block_on(async {
        let (sender, receiver) = mpsc::channel(16);
        let mut chunks =
            Box::pin(ReceiverStream::new(receiver).chunks_timeout(3, Duration::from_millis(500)));
        assert!(poll_once(&mut chunks.next()).is_pending());
        for n in 0..7 {
            sender.send(n).await.unwrap();
        }
        assert_eq!(chunks.next().await, Some(vec![0, 1, 2]));
        assert_eq!(chunks.next().await, Some(vec![3, 4, 5]));
        // This item was received in a `next` that is dropped, and is not lost.
        assert!(poll_once(&mut chunks.next()).is_pending());
        let start = Instant::now();
        assert_eq!(chunks.next().await, Some(vec![6]));
        assert!(start.elapsed() < Duration::from_secs(5));
        sender.send(7).await.unwrap();
        drop(sender);
        assert_eq!(chunks.next().await, Some(vec![7]));
        assert_eq!(chunks.next().await, None);
    });
}

#[test]
fn a_chunk_of_nothing_is_refused() {
    let rt = all_kinds_with_drivers().remove(0);
    let _inside = rt.enter();
    let caught = crate::support::caught_panic::panic_of(|| {
        drop(stream::iter([1]).chunks_timeout(0, Duration::from_secs(1)));
    });
    assert!(caught.message.contains("non-zero"), "{}", caught.message);
    assert!(caught.file.ends_with("combinators.rs"), "{}", caught.file);
}

#[test]
fn a_long_time_is_no_overflow() {
    let _watch = watchdog::start();
    let rt = all_kinds_with_drivers().remove(0);
    rt.block_on(async {
        let mut timed = pin!(stream::iter([1, 2]).timeout(Duration::MAX));
        assert!(matches!(timed.next().await, Some(Ok(1))));
        let mut chunks = pin!(stream::iter([1, 2]).chunks_timeout(usize::MAX, Duration::MAX));
        assert_eq!(chunks.next().await, Some(vec![1, 2]));
        let mut slow = pin!(stream::iter([1, 2]).throttle(Duration::MAX));
        assert_eq!(slow.next().await, Some(1));
        assert!(poll_once(&mut slow.next()).is_pending());
    });
}

#[test]
fn streams_are_sent_to_other_threads() {
    fn is_send<T: Send + Sync>(_: &T) {}
    let _watch = watchdog::start();
    let rt = workers(2);
    let _inside = rt.enter();
    let done = Arc::new(AtomicBool::new(false));
    let finished = done.clone();
    let stream =
        stream::iter(0..100).filter(|n| n % 2 == 0).merge(stream::once(1)).then(async |n| n);
    is_send(&stream);
    let task = rt.spawn(async move {
        let sum = stream.fold(0, |sum, n| sum + n).await;
        finished.store(true, Relaxed);
        sum
    });
    assert_eq!(rt.block_on(task).unwrap(), 2451);
    assert!(done.load(Relaxed));
}
