//! One `Stream` trait for all: `blitz_io::stream` beside futures-util and tokio-stream.

use std::{pin::pin, time::Duration};

use blitz_io::{
    channel::{broadcast, mpsc},
    stream::{
        StreamExt as Ours, StreamMap,
        wrappers::{BroadcastStream, IntervalStream, ReceiverStream},
    },
};
use futures_util::stream::{self as theirs, StreamExt as Theirs, TryStreamExt as _};
use tokio_stream::StreamExt as Tokios;

/// Sums a stream of futures-util's trait.
async fn summed(stream: impl futures_util::Stream<Item = u32>) -> u32 {
    Theirs::fold(stream, 0, async |sum, n| sum + n).await
}

#[test]
fn methods_of_futures_util_work_on_our_streams() {
    blitz_io::run(async {
        let (sender, receiver) = mpsc::channel(4);
        blitz_io::spawn(async move {
            for n in 1..=10 {
                sender.send(n).await.unwrap();
            }
        });
        let stream = Ours::filter(ReceiverStream::new(receiver), |n| n % 2 == 0);
        let buffered = Theirs::buffer_unordered(Theirs::map(stream, async |n| n * 10), 3);
        assert_eq!(summed(buffered).await, 300);

        let ticks = IntervalStream::new(blitz_io::time::interval(Duration::from_millis(1)));
        let ticks = Theirs::enumerate(Theirs::take(ticks, 3));
        assert_eq!(Theirs::collect::<Vec<_>>(ticks).await.len(), 3);

        let (sender, receiver) = broadcast::channel(4);
        sender.send(1).unwrap();
        drop(sender);
        let all: Result<Vec<i32>, _> = BroadcastStream::new(receiver).try_collect().await;
        assert_eq!(all, Ok(vec![1]));
    });
}

#[test]
fn our_methods_work_on_streams_of_futures_util() {
    blitz_io::run(async {
        let numbers = theirs::unfold(0, async |n| Some((n, n + 1)));
        let chunks = Ours::chunks_timeout(Ours::take(numbers, 5), 2, Duration::from_secs(60));
        let chunks: Vec<Vec<i32>> = Ours::collect(chunks).await;
        assert_eq!(chunks, [vec![0, 1], vec![2, 3], vec![4]]);

        let mut map = StreamMap::new();
        map.insert("a", theirs::iter(vec![1]).boxed());
        map.insert("b", Theirs::boxed(theirs::once(async { 2 })));
        let mut items: Vec<_> = Ours::collect(map).await;
        items.sort_unstable();
        assert_eq!(items, [("a", 1), ("b", 2)]);

        let never = theirs::pending::<()>();
        let mut timed = pin!(Ours::timeout(never, Duration::from_millis(1)));
        assert!(Ours::next(&mut timed).await.unwrap().is_err());
    });
}

#[test]
fn methods_of_tokio_stream_work_on_ours_and_ours_on_its() {
    blitz_io::run(async {
        let (sender, receiver) = mpsc::channel(4);
        blitz_io::spawn(async move {
            for n in 1..=4 {
                sender.send(n).await.unwrap();
            }
        });
        let ours = ReceiverStream::new(receiver);
        let merged = Tokios::merge(ours, tokio_stream::iter([10, 20]));
        let mapped = Ours::map(merged, |n| n + 1);
        let mut all: Vec<i32> = Tokios::collect(mapped).await;
        all.sort_unstable();
        assert_eq!(all, [2, 3, 4, 5, 11, 21]);
    });
}

/// Both libraries' pipelines must yield the same items.
#[test]
fn pipelines_give_the_same_as_those_of_tokio_stream() {
    macro_rules! pipeline {
        ($trait:ident, $iter:path) => {{
            let numbers = $trait::skip($iter(0..100), 3);
            let numbers = $trait::filter(numbers, |n| n % 3 != 0);
            let numbers = $trait::merge(numbers, $iter([1_000, 2_000, 3_000]));
            let numbers = $trait::skip_while(numbers, |n| *n < 5);
            let numbers = $trait::chain($trait::take(numbers, 40), $iter([7]));
            let numbers = $trait::filter_map(numbers, |n| (n != 8).then_some(n * 2));
            let numbers = $trait::take_while($trait::then(numbers, async |n| n), |n| *n != 150);
            $trait::collect::<Vec<i32>>(numbers)
        }};
    }
    blitz_io::run(async {
        let ours = pipeline!(Ours, blitz_io::stream::iter).await;
        let theirs = pipeline!(Tokios, tokio_stream::iter).await;
        assert!(!ours.is_empty());
        assert_eq!(ours, theirs);
    });
}
