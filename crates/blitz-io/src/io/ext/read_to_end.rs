//! Futures that read a source to its end.
//!
//! The amount is not known in advance, so the vector grows as it fills: it doubles, as any
//! vector does, and a reader always gets all the spare capacity. A vector that came with
//! capacity may have been allocated to exactly the right size. If it is full, or nearly,
//! the next read goes into a few bytes of the stack first: most often it finds the end, and
//! nothing has to grow.

use std::{
    io,
    mem::{self, MaybeUninit},
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::{read_until::IntoText, retry_interrupted};
use crate::io::{AsyncRead, ReadBuf, raw::VecReader};

/// The least room for a read, and the size of the probe on the stack: the value of std and
/// of Tokio.
const PROBE: usize = 32;

/// A vector that is being filled up to the end of a source.
#[derive(Debug)]
pub(super) struct ReadToVec<'a> {
    vec_reader: VecReader<'a>,
    /// The vector's length and capacity before the first read.
    length: usize,
    capacity: usize,
}

impl<'a> ReadToVec<'a> {
    fn new(vec_reader: VecReader<'a>) -> Self {
        let (length, capacity) = (vec_reader.get().len(), vec_reader.get().capacity());
        Self { vec_reader, length, capacity }
    }

    pub(super) fn borrowed(vec: &'a mut Vec<u8>) -> Self {
        Self::new(VecReader::borrowed(vec))
    }

    /// Reads to the end. Bytes read before an error or a wait are in the vector.
    fn poll_all<R: AsyncRead + Unpin + ?Sized>(
        &mut self,
        reader: &mut R,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        while ready!(retry_interrupted(|| self.poll_some(reader, cx)))? > 0 {}
        Poll::Ready(Ok(self.vec_reader.get().len() - self.length))
    }

    /// Reads once, directly into the vector or through the probe on the stack.
    fn poll_some<R: AsyncRead + Unpin + ?Sized>(
        &mut self,
        reader: &mut R,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let vec = self.vec_reader.get();
        if vec.capacity() - vec.len() < PROBE {
            if vec.capacity() == self.capacity && self.capacity >= PROBE {
                return self.poll_probe(reader, cx);
            }
            self.vec_reader.get_mut().try_reserve(PROBE)?;
        }
        let (polled, n) = self.vec_reader.append(|buf| Pin::new(reader).poll_read(cx, buf));
        polled.map_ok(|()| n)
    }

    /// Reads once into the stack, and makes room in the vector only if bytes were read.
    fn poll_probe<R: AsyncRead + Unpin + ?Sized>(
        &mut self,
        reader: &mut R,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let mut bytes = [MaybeUninit::uninit(); PROBE];
        let mut probe = ReadBuf::uninit(&mut bytes);
        ready!(Pin::new(reader).poll_read(cx, &mut probe))?;
        self.vec_reader.get_mut().extend_from_slice(probe.filled());
        Poll::Ready(Ok(probe.filled().len()))
    }
}

future! {
    /// Future of [`read_to_end`](super::AsyncReadExt::read_to_end).
    ReadToEnd<'a, R> { reader: &'a mut R, to_vec: ReadToVec<'a> }
}

impl<R: AsyncRead + Unpin + ?Sized> Future for ReadToEnd<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.project();
        this.to_vec.poll_all(&mut **this.reader, cx)
    }
}

future! {
    /// Future of [`read_to_string`](super::AsyncReadExt::read_to_string).
    ReadToString<'a, R> { reader: &'a mut R, to_vec: ReadToVec<'a>, output: &'a mut String }
}

impl<'a, R: ?Sized> ReadToString<'a, R> {
    /// Creates the future. The string is empty as long as its bytes are not known to be
    /// text.
    pub(super) fn of(reader: &'a mut R, output: &'a mut String) -> Self {
        let bytes = mem::take(output).into_bytes();
        Self::new(reader, ReadToVec::new(VecReader::owned(bytes)), output)
    }
}

impl<R: AsyncRead + Unpin + ?Sized> Future for ReadToString<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.project();
        let read = ready!(this.to_vec.poll_all(&mut **this.reader, cx));
        let bytes = mem::take(this.to_vec.vec_reader.get_mut());
        let text = IntoText { bytes, length: mem::take(&mut this.to_vec.length) };
        Poll::Ready(match read {
            Ok(_) => text.finish(this.output),
            Err(error) => {
                text.undo(this.output);
                Err(error)
            }
        })
    }
}
