//! Tests streams over receivers, intervals, listeners and lines.

use std::time::Duration;

use blitz_io::{
    channel::{broadcast, mpsc, watch as watch_channel},
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    stream::{
        Stream, StreamExt,
        wrappers::{
            BroadcastStream, IntervalStream, LinesStream, ReceiverStream, SplitStream,
            TcpListenerStream, UnboundedReceiverStream, WatchStream,
            errors::BroadcastStreamRecvError,
        },
    },
    task,
};

use crate::support::{manual_poll::poll_once, runtimes::all_kinds_with_drivers, watchdog};

fn is_send_and_sync<T: Send + Sync + Unpin>(_: &T) {}

#[test]
fn receivers_end_with_their_senders() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        rt.block_on(async {
            let (sender, receiver) = mpsc::channel(2);
            let mut stream = ReceiverStream::from(receiver);
            is_send_and_sync(&stream);
            let sends = task::spawn(async move {
                for n in 0..100 {
                    sender.send(n).await.unwrap();
                }
            });
            assert_eq!((&mut stream).collect::<Vec<_>>().await, (0..100).collect::<Vec<_>>());
            assert_eq!(stream.next().await, None);
            sends.await.unwrap();
            let (sender, receiver) = mpsc::unbounded_channel();
            let mut stream = UnboundedReceiverStream::new(receiver);
            sender.send(1).unwrap();
            assert_eq!(stream.size_hint(), (1, None));
            stream.close();
            assert!(sender.send(2).is_err());
            assert_eq!(stream.next().await, Some(1));
            assert_eq!(stream.next().await, None);
            assert!(stream.as_ref().is_closed() && stream.as_mut().try_recv().is_err());
            assert!(stream.into_inner().is_empty());
        });
    }
}

#[test]
fn a_broadcast_stream_returns_the_number_of_missed_messages() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        rt.block_on(async {
            let (sender, receiver) = broadcast::channel(2);
            let mut stream = BroadcastStream::new(receiver);
            is_send_and_sync(&stream);
            assert!(poll_once(&mut stream.next()).is_pending(), "in a box, from here on");
            for n in 0..5 {
                sender.send(n).unwrap();
            }
            let lagged = stream.next().await.unwrap().unwrap_err();
            assert_eq!(lagged, BroadcastStreamRecvError::Lagged(3));
            assert!(lagged.to_string().contains("lagged by 3"), "{lagged}");
            assert_eq!(stream.next().await, Some(Ok(3)));
            assert_eq!(stream.next().await, Some(Ok(4)));
            let waits = task::spawn(async move { stream.collect::<Vec<_>>().await });
            task::yield_now().await;
            sender.send(5).unwrap();
            drop(sender);
            assert_eq!(waits.await.unwrap(), [Ok(5)]);
        });
    }
}

#[test]
fn a_watch_begins_with_what_is_there() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        rt.block_on(async {
            let (sender, receiver) = watch_channel::channel(1);
            let mut changes = WatchStream::from_changes(receiver.clone());
            let mut stream = WatchStream::new(receiver);
            is_send_and_sync(&stream);
            assert_eq!(stream.next().await, Some(1));
            assert!(poll_once(&mut stream.next()).is_pending());
            assert!(poll_once(&mut changes.next()).is_pending());
            sender.send(2).unwrap();
            sender.send(3).unwrap();
            assert_eq!(stream.next().await, Some(3));
            assert_eq!(changes.next().await, Some(3));
            sender.send(4).unwrap();
            drop(sender);
            assert_eq!(stream.next().await, Some(4), "the last one is seen");
            assert_eq!(stream.next().await, None);
            assert_eq!(stream.next().await, None);
        });
    }
}

#[test]
fn ticks_do_not_end() {
    let _watch = watchdog::start();
    let rt = all_kinds_with_drivers().remove(0);
    rt.block_on(async {
        let period = Duration::from_millis(2);
        let mut ticks = IntervalStream::new(blitz_io::time::interval(period));
        let first = ticks.next().await.unwrap();
        assert_eq!(ticks.next().await.unwrap() - first, period);
        assert_eq!(ticks.as_ref().period(), period);
    });
}

#[test]
fn a_listener_gives_one_connection_after_the_other() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        rt.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let clients = task::spawn(async move {
                for n in 0..10_u8 {
                    let mut client = TcpStream::connect(address).await.unwrap();
                    client.write_all(&[b'0' + n, b'\n']).await.unwrap();
                }
            });
            let lines = TcpListenerStream::new(listener).take(10).then(async |accepted| {
                let mut lines = LinesStream::new(BufReader::new(accepted.unwrap()).lines());
                lines.try_next().await.unwrap().unwrap()
            });
            assert_eq!(lines.collect::<String>().await, "0123456789");
            clients.await.unwrap();
        });
    }
}

#[test]
#[cfg(unix)]
fn a_unix_listener_does_too() {
    use blitz_io::{
        net::{UnixListener, UnixStream},
        stream::wrappers::UnixListenerStream,
    };

    let _watch = watchdog::start();
    let rt = all_kinds_with_drivers().remove(0);
    rt.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let mut accepted = UnixListenerStream::new(UnixListener::bind(&path).unwrap());
        assert!(poll_once(&mut accepted.next()).is_pending());
        let _client = UnixStream::connect(&path).await.unwrap();
        accepted.next().await.unwrap().unwrap();
    });
}

#[test]
fn pieces_end_with_their_source_and_errors_are_items() {
    let _watch = watchdog::start();
    let rt = all_kinds_with_drivers().remove(0);
    rt.block_on(async {
        let mut lines = LinesStream::new(b"one\n\xff\nthree".as_slice().lines());
        assert_eq!(lines.next().await.unwrap().unwrap(), "one");
        assert!(lines.next().await.unwrap().is_err());
        assert_eq!(lines.next().await.unwrap().unwrap(), "three");
        assert!(lines.next().await.is_none());
        let pieces = SplitStream::new(BufReader::new(b"a,b,,c".as_slice()).split(b','));
        let pieces: Vec<Vec<u8>> = pieces.map(Result::unwrap).collect().await;
        assert_eq!(pieces, [b"a".as_slice(), b"b", b"", b"c"]);
    });
}
