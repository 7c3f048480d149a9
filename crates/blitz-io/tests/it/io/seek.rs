//! Tests `seek`, `rewind` and `stream_position`.

use std::{
    io::{self, Cursor},
    pin::Pin,
    task::{Context, Poll},
};

use blitz_io::io::{AsyncReadExt, AsyncSeek, AsyncSeekExt, ErrorKind, SeekFrom};

use crate::support::{
    manual_io::kind,
    manual_poll::{finish_after, give_up, now},
};

#[test]
fn positions_count_from_the_start() {
    let mut file = Cursor::new("0123456789");
    assert_eq!(now(file.seek(SeekFrom::Start(4))).unwrap(), 4);
    assert_eq!(now(file.seek(SeekFrom::Current(-1))).unwrap(), 3);
    assert_eq!(now(file.stream_position()).unwrap(), 3);
    assert_eq!(now(file.seek(SeekFrom::End(5))).unwrap(), 15);
    assert_eq!(now(file.rewind()).unwrap(), 0);
    assert_eq!(kind(now(file.seek(SeekFrom::End(-11)))), ErrorKind::InvalidInput);
    assert_eq!(now(file.stream_position()).unwrap(), 0);
}

/// A seekable value whose seeks take one pending poll; only one seek may be in progress.
#[derive(Default)]
struct Slow {
    position: u64,
    under_way: Option<u64>,
    polled: bool,
    log: Vec<&'static str>,
}

impl AsyncSeek for Slow {
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        let this = self.get_mut();
        assert!(this.under_way.is_none(), "a second move was begun");
        let SeekFrom::Start(position) = position else { return Err(ErrorKind::Unsupported.into()) };
        this.log.push("start");
        (this.under_way, this.polled) = (Some(position), false);
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let this = self.get_mut();
        if this.under_way.is_some() && !std::mem::replace(&mut this.polled, true) {
            this.log.push("wait");
            return Poll::Pending;
        }
        this.position = this.under_way.take().unwrap_or(this.position);
        this.log.push("complete");
        Poll::Ready(Ok(this.position))
    }
}

#[test]
fn a_move_is_begun_once_and_waited_for() {
    let mut slow = Slow::default();
    let (moved, waits) = finish_after(slow.seek(SeekFrom::Start(5)));
    assert_eq!((moved.unwrap(), waits), (5, 1));
    assert_eq!(slow.log, ["complete", "start", "wait", "complete"]);
}

#[test]
fn a_move_under_way_is_waited_for_first() {
    let mut slow = Slow::default();
    give_up(slow.seek(SeekFrom::Start(5)));
    assert_eq!(finish_after(slow.seek(SeekFrom::Start(7))).0.unwrap(), 7);
    assert_eq!(slow.log[3..], ["complete", "start", "wait", "complete"]);
}

#[test]
fn a_move_that_is_refused_is_an_error() {
    let mut slow = Slow::default();
    assert_eq!(kind(now(slow.seek(SeekFrom::End(0)))), ErrorKind::Unsupported);
    assert_eq!(slow.log, ["complete"]);
}

#[test]
fn a_cursor_seeks_as_that_of_std() {
    let mut cursor = Cursor::new(b"0123456789".to_vec());
    assert_eq!(now(cursor.seek(SeekFrom::End(-3))).unwrap(), 7);
    assert_eq!(now(cursor.read_u8()).unwrap(), b'7');
    assert_eq!(now(cursor.seek(SeekFrom::Current(-2))).unwrap(), 6);
    assert_eq!(now(cursor.stream_position()).unwrap(), 6);
    now(cursor.rewind()).unwrap();
    assert_eq!(now(cursor.read_u8()).unwrap(), b'0');
    assert!(now(cursor.seek(SeekFrom::Current(-100))).is_err());
    assert_eq!(now(cursor.seek(SeekFrom::Start(1000))).unwrap(), 1000);
    assert_eq!(now(cursor.read(&mut [0; 1])).unwrap(), 0);
}
