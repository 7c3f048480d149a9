//! Seeks, through the bridges that support them.

use std::{
    io::{self, Cursor, ErrorKind, SeekFrom},
    pin::Pin,
    task::{Context, Poll, Waker},
};

use blitz_io::io as ours;
use blitz_io_compat::{FuturesIo, TokioIo};
use futures_util::io as futures;

const DIGITS: &str = "0123456789";

/// A file in which every seek takes a second poll, with all traits. A second seek that begins
/// before the first has ended is refused.
#[derive(Debug, Default)]
struct Slow {
    under_way: Option<(SeekFrom, bool)>,
    position: i64,
    moves: u32,
}

impl Slow {
    fn start(&mut self, position: SeekFrom) -> io::Result<()> {
        if self.under_way.is_some() {
            return Err(ErrorKind::ResourceBusy.into());
        }
        self.under_way = Some((position, false));
        Ok(())
    }

    fn complete(&mut self) -> Poll<io::Result<u64>> {
        match &mut self.under_way {
            Some((_, seen @ false)) => {
                *seen = true;
                return Poll::Pending;
            }
            Some((to, true)) => {
                let position = match *to {
                    SeekFrom::Start(n) => n as i64,
                    SeekFrom::Current(n) => self.position + n,
                    SeekFrom::End(n) => 10 + n,
                };
                self.under_way = None;
                self.moves += 1;
                if position < 0 {
                    return Poll::Ready(Err(ErrorKind::InvalidInput.into()));
                }
                self.position = position;
            }
            None => {}
        }
        Poll::Ready(Ok(self.position as u64))
    }
}

impl ours::AsyncSeek for Slow {
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        self.get_mut().start(position)
    }

    fn poll_complete(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        self.get_mut().complete()
    }
}

impl futures::AsyncSeek for Slow {
    fn poll_seek(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        pos: SeekFrom,
    ) -> Poll<io::Result<u64>> {
        let this = self.get_mut();
        if this.under_way.is_none() {
            this.start(pos)?;
        }
        this.complete()
    }
}

fn seek(file: &mut FuturesIo<Slow>, pos: SeekFrom) -> Poll<io::Result<u64>> {
    let mut cx = Context::from_waker(Waker::noop());
    futures::AsyncSeek::poll_seek(Pin::new(file), &mut cx, pos)
}

#[test]
fn one_move_by_futures_io_is_one_move_of_ours() {
    let mut file = FuturesIo::new(Slow::default());
    for (pos, end) in [(SeekFrom::Start(4), 4), (SeekFrom::Current(3), 7), (SeekFrom::End(-1), 9)] {
        assert!(seek(&mut file, pos).is_pending());
        assert!(matches!(seek(&mut file, pos), Poll::Ready(Ok(at)) if at == end), "{pos:?}");
    }
    assert_eq!(file.get_ref().moves, 3);
}

#[test]
fn a_move_that_was_given_up_ends_before_another_begins() {
    let mut file = FuturesIo::new(Slow::default());
    assert!(seek(&mut file, SeekFrom::Start(4)).is_pending());
    // The first seek ends at this poll, and the second has begun.
    assert!(seek(&mut file, SeekFrom::Current(1)).is_pending());
    assert!(matches!(seek(&mut file, SeekFrom::Current(1)), Poll::Ready(Ok(5))));
    assert_eq!(file.get_ref().moves, 2);
}

#[test]
fn a_move_that_fails_is_over() {
    let mut file = FuturesIo::new(Slow::default());
    let before_the_start = SeekFrom::Current(-1);
    for _ in 0..2 {
        assert!(seek(&mut file, before_the_start).is_pending());
        let refused = seek(&mut file, before_the_start);
        assert!(
            matches!(&refused, Poll::Ready(Err(error)) if error.kind() == ErrorKind::InvalidInput),
            "{refused:?}"
        );
    }
}

#[test]
fn two_moves_of_ours_on_futures_io_are_refused_until_the_first_has_ended() {
    use ours::AsyncSeek;

    let mut cx = Context::from_waker(Waker::noop());
    let mut file = FuturesIo::new(Slow::default());
    let mut file = Pin::new(&mut file);
    let at = AsyncSeek::poll_complete(file.as_mut(), &mut cx);
    assert!(matches!(at, Poll::Ready(Ok(0))), "without a move it is ready at once");
    AsyncSeek::start_seek(file.as_mut(), SeekFrom::Start(3)).unwrap();
    let refused = AsyncSeek::start_seek(file.as_mut(), SeekFrom::Start(5)).unwrap_err();
    assert!(refused.to_string().contains("poll_complete"), "{refused}");
    assert!(AsyncSeek::poll_complete(file.as_mut(), &mut cx).is_pending());
    for _ in 0..2 {
        let at = AsyncSeek::poll_complete(file.as_mut(), &mut cx);
        assert!(matches!(at, Poll::Ready(Ok(3))), "{at:?}");
    }
    AsyncSeek::start_seek(file.as_mut(), SeekFrom::Start(5)).unwrap();
    assert_eq!(file.get_ref().moves, 1);
}

#[blitz_io::test]
async fn a_seek_and_a_read_find_the_same_place_by_futures_io() {
    let file = FuturesIo::new(futures::Cursor::new(DIGITS));
    let mut file = FuturesIo::new(file);
    assert_eq!(futures_util::AsyncSeekExt::seek(&mut file, SeekFrom::End(-4)).await.unwrap(), 6);
    let mut rest = String::new();
    futures_util::AsyncReadExt::read_to_string(&mut file, &mut rest).await.unwrap();
    assert_eq!(rest, "6789");
}

#[blitz_io::test]
async fn a_seek_and_a_read_find_the_same_place_by_tokios_trait() {
    let mut file = TokioIo::new(ours::BufReader::new(Cursor::new(DIGITS)));
    assert_eq!(tokio::io::AsyncSeekExt::seek(&mut file, SeekFrom::Start(2)).await.unwrap(), 2);
    let mut two = [0; 2];
    tokio::io::AsyncReadExt::read_exact(&mut file, &mut two).await.unwrap();
    assert_eq!(&two, b"23");
    let at = tokio::io::AsyncSeekExt::seek(&mut file, SeekFrom::Current(1)).await.unwrap();
    assert_eq!(at, 5);
}

#[blitz_io::test]
async fn a_seek_and_a_read_find_the_same_place_by_our_trait_on_tokios() {
    let mut file = TokioIo::new(tokio::io::BufReader::new(Cursor::new(DIGITS)));
    assert_eq!(ours::AsyncSeekExt::seek(&mut file, SeekFrom::Start(2)).await.unwrap(), 2);
    let mut two = [0; 2];
    ours::AsyncReadExt::read_exact(&mut file, &mut two).await.unwrap();
    assert_eq!(&two, b"23");
    assert_eq!(ours::AsyncSeekExt::seek(&mut file, SeekFrom::Current(1)).await.unwrap(), 5);
    assert_eq!(ours::AsyncSeekExt::rewind(&mut file).await.unwrap(), 0);
}
