//! Tests that futures and types of `io` are `Send`, `Sync` and `Unpin` where Tokio's are.

use std::{
    cell::Cell,
    io::{Cursor, IoSlice, SeekFrom},
    marker::PhantomData,
};

use blitz_io::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncSeekExt, AsyncWriteExt, Chain, Lines, ReadBuf, Split, Take,
};

use crate::support::{
    auto_traits::{OrNotSend, OrNotSync, OrNotUnpin, Probe},
    manual_poll::now,
};

fn result_of<T>(_: impl FnOnce() -> T) -> Probe<T> {
    Probe(PhantomData)
}

fn some<T>() -> T {
    unreachable!("nothing calls the closures of this table")
}

/// Returns one letter for each of `S`end, s`Y`nc and `U`npin that the type implements.
macro_rules! letters {
    ($probe:expr) => {{
        let probe = $probe;
        [(probe.is_send(), 'S'), (probe.is_sync(), 'Y'), (probe.is_unpin(), 'U')]
            .map(|(has, letter)| if has { letter } else { '-' })
            .iter()
            .collect::<String>()
    }};
}

/// A reader and writer in memory; `Unshared`, next to it, is `Send` but not `Sync`.
type Plain = Cursor<Vec<u8>>;
type Unshared = (Cursor<Vec<u8>>, Cell<u8>);

macro_rules! futures {
    ($($call:ident($($argument:expr),*);)+) => {[
        $((
            stringify!($call),
            letters!(result_of(|| some::<&'static mut Plain>().$call($($argument),*))),
        )),+
    ]};
}

#[test]
fn futures_cross_threads_and_stay_where_they_are() {
    let found = futures! {
        read(some());
        read_buf(some::<&mut Vec<u8>>());
        read_exact(some());
        read_u8();
        read_i16();
        read_u128_le();
        read_f64();
        read_to_end(some());
        read_to_string(some());
        write(some());
        write_vectored(some::<&'static [IoSlice<'static>]>());
        write_buf(some::<&mut &'static [u8]>());
        write_all_buf(some::<&mut &'static [u8]>());
        write_all(some());
        write_u8(1);
        write_i16(1);
        write_u128_le(1);
        write_f64(1.0);
        flush();
        shutdown();
        seek(SeekFrom::Start(0));
        rewind();
        stream_position();
        read_until(1, some());
        read_line(some());
        fill_buf();
    };
    let wrong: Vec<_> = found.iter().filter(|(_, letters)| letters != "SY-").collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// A source that is not `Sync`.
struct Single(Unshared);

impl blitz_io::io::AsyncRead for Single {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _cx: &mut std::task::Context<'_>,
        _buf: &mut ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        self.0.1.set(1);
        std::task::Poll::Ready(Ok(()))
    }
}

#[test]
fn a_future_is_shared_only_if_its_source_is() {
    let single = || some::<&'static mut Single>();
    assert_eq!(letters!(result_of(|| single().read(some()))), "S--");
    assert_eq!(letters!(result_of(|| single().read_u64())), "S--");
    assert_eq!(letters!(result_of(|| single().read_to_end(some()))), "S--");
}

#[test]
fn types_are_what_their_sources_are() {
    type Pinned = std::marker::PhantomPinned;
    assert_eq!(letters!(Probe::<Take<Plain>>(PhantomData)), "SYU");
    assert_eq!(letters!(Probe::<Take<Cell<u8>>>(PhantomData)), "S-U");
    assert_eq!(letters!(Probe::<Take<Pinned>>(PhantomData)), "SY-");
    assert_eq!(letters!(Probe::<Chain<Plain, Plain>>(PhantomData)), "SYU");
    assert_eq!(letters!(Probe::<Chain<Plain, Pinned>>(PhantomData)), "SY-");
    assert_eq!(letters!(Probe::<Chain<Pinned, *mut u8>>(PhantomData)), "---");
    assert_eq!(letters!(Probe::<Lines<Plain>>(PhantomData)), "SYU");
    assert_eq!(letters!(Probe::<Lines<Pinned>>(PhantomData)), "SY-");
    assert_eq!(letters!(Probe::<Split<*mut u8>>(PhantomData)), "--U");
    assert_eq!(letters!(Probe::<ReadBuf<'static>>(PhantomData)), "SYU");
}

#[test]
fn a_buffer_can_be_used_while_the_future_that_filled_it_is_in_scope() {
    let mut reader = b"ab\ncd".as_slice();
    let (mut line, mut rest, mut text) = (String::new(), Vec::new(), String::new());
    let mut future = std::pin::pin!(reader.read_line(&mut line));
    assert!(crate::support::manual_poll::poll_once(&mut future).is_ready());
    assert_eq!(line, "ab\n");
    let mut future = std::pin::pin!(reader.read_to_end(&mut rest));
    assert!(crate::support::manual_poll::poll_once(&mut future).is_ready());
    assert_eq!(rest, b"cd");
    let mut future = std::pin::pin!(reader.read_to_string(&mut text));
    assert!(crate::support::manual_poll::poll_once(&mut future).is_ready());
    assert_eq!(text, "");
}

#[test]
fn trait_objects_have_the_methods_too() {
    let mut bytes = b"\x01\x02\x03ab\n".as_slice();
    let reader: &mut (dyn blitz_io::io::AsyncBufRead + Unpin + Send) = &mut bytes;
    assert_eq!(now(reader.read_u8()).unwrap(), 1);
    assert_eq!(now(reader.read_exact(&mut [0; 2])).unwrap(), 2);
    let mut line = String::new();
    assert_eq!(now(reader.read_line(&mut line)).unwrap(), 3);
    let mut sink = Vec::new();
    let writer: &mut (dyn blitz_io::io::AsyncWrite + Unpin) = &mut sink;
    now(writer.write_all(line.as_bytes())).unwrap();
    now(writer.write_u16(7)).unwrap();
    assert_eq!(sink, b"ab\n\x00\x07");
}

/// Compiles only if a generic caller can rely on the futures being `Send`; that is the test.
#[allow(clippy::manual_async_fn, reason = "`Send` is to be said, not found out")]
fn cross_threads<R, W>(reader: &mut R, writer: &mut W) -> impl Future<Output = ()> + Send
where
    R: blitz_io::io::AsyncBufRead + blitz_io::io::AsyncSeek + Unpin + Send,
    W: blitz_io::io::AsyncWrite + Unpin + Send,
{
    async move {
        let mut text = String::new();
        reader.read_line(&mut text).await.unwrap();
        reader.rewind().await.unwrap();
        writer.write_all(text.as_bytes()).await.unwrap();
        writer.write_u32(reader.read_u32().await.unwrap()).await.unwrap();
        writer.flush().await.unwrap();
    }
}

#[test]
fn generic_code_can_spawn_them() {
    let mut sink = Vec::new();
    now(cross_threads(&mut Cursor::new("abcd\n"), &mut sink));
    assert_eq!(sink, b"abcd\nabcd");
}
