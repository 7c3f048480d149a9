//! Readers and writers that block, one call at a time on a thread for blocking work.
//!
//! A read that was begun goes on when its future is dropped; what it brings is kept for
//! the next one. A write answers as soon as its bytes are handed over; its error is told
//! to the next write or flush. So one job at most is under way, and bytes keep their
//! order.

use std::{
    io::{self, Read, Write},
    pin::Pin,
    task::{Context, Poll, ready},
};

use crate::{
    engine::work::task::budget,
    io::{AsyncRead, AsyncWrite, ReadBuf, window::Window},
    runtime::Handle,
    task::{JoinHandle, spawn_blocking},
};

/// Bytes per job at most: Tokio's figure. It bounds what a stream holds, and how long one
/// job takes.
pub(super) const MOST: usize = 2 * 1024 * 1024;

/// A device and its buffer, or the job that has them.
#[derive(Debug)]
enum Whose<D, B> {
    Ours(D, B),
    Jobs(JoinHandle<(D, B, io::Result<()>)>),
    /// The job has panicked, or its runtime ended before it had its turn.
    Lost,
}

impl<D: Send + 'static, B: Send + 'static> Whose<D, B> {
    /// Begins a job, if none is under way.
    ///
    /// # Panics
    /// Without a runtime on this thread.
    fn begin(
        &mut self,
        make: impl FnOnce(D, B) -> JoinHandle<(D, B, io::Result<()>)>,
    ) -> io::Result<()> {
        if matches!(self, Self::Jobs(_)) {
            return Ok(());
        }
        // The panic comes before anything is taken.
        drop(Handle::current());
        let Self::Ours(device, buffer) = std::mem::replace(self, Self::Lost) else {
            return Err(io::Error::other(
                "the runtime of an earlier call has shut down: open the stream anew in a new one",
            ));
        };
        *self = Self::Jobs(make(device, buffer));
        Ok(())
    }

    /// Waits for the job that is under way, if one is.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self::Jobs(job) = self else { return Poll::Ready(Ok(())) };
        let ended = ready!(Pin::new(job).poll(cx));
        *self = Self::Lost;
        let (device, buffer, result) = ended?;
        *self = Self::Ours(device, buffer);
        Poll::Ready(result)
    }
}

/// A reader that blocks.
#[derive(Debug)]
pub(crate) struct Reading<R>(Whose<R, Window>);

impl<R> Reading<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self(Whose::Ours(reader, Window::new(0)))
    }
}

impl<R: Read + Send + Unpin + 'static> AsyncRead for Reading<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let unit = ready!(budget::proceed(cx));
        let has_some = matches!(&self.0, Whose::Ours(_, window) if !window.is_empty());
        if !has_some {
            let wanted = buf.remaining().min(MOST);
            self.0.begin(|mut reader, mut window| {
                spawn_blocking(move || {
                    let result = window.read(&mut reader, wanted);
                    (reader, window, result)
                })
            })?;
            ready!(self.0.poll_end(cx))?;
        }
        if let Whose::Ours(_, window) = &mut self.0 {
            hand_out(window, buf);
        }
        unit.spend();
        Poll::Ready(Ok(()))
    }
}

fn hand_out(window: &mut Window, buf: &mut ReadBuf<'_>) {
    let amount = window.held().len().min(buf.remaining());
    buf.put_slice(&window.held()[..amount]);
    window.take(amount);
}

/// A writer that blocks.
#[derive(Debug)]
pub(crate) struct Writing<W> {
    writer: Whose<W, Vec<u8>>,
    /// Something was written since the last flush.
    unflushed: bool,
}

impl<W> Writing<W> {
    pub(crate) fn new(writer: W) -> Self {
        Self { writer: Whose::Ours(writer, Vec::new()), unflushed: false }
    }
}

impl<W: Write + Send + Unpin + 'static> AsyncWrite for Writing<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.writer.poll_end(cx))?;
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let unit = ready!(budget::proceed(cx));
        let amount = buf.len().min(MOST);
        self.writer.begin(|writer, mut bytes| {
            bytes.clear();
            bytes.extend_from_slice(&buf[..amount]);
            let chunk = Chunk(Some((writer, bytes)));
            spawn_blocking(move || chunk.write())
        })?;
        self.unflushed = true;
        unit.spend();
        Poll::Ready(Ok(amount))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.writer.poll_end(cx))?;
        if !self.unflushed {
            return Poll::Ready(Ok(()));
        }
        self.writer.begin(|mut writer, bytes| {
            spawn_blocking(move || {
                let result = writer.flush();
                (writer, bytes, result)
            })
        })?;
        self.unflushed = false;
        self.writer.poll_end(cx)
    }

    /// The process may still need the stream: it is flushed, not closed.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

/// Bytes that the caller was told are written. They are, also if the runtime ends before
/// their job had its turn: whoever drops the job writes them.
struct Chunk<W: Write>(Option<(W, Vec<u8>)>);

impl<W: Write> Chunk<W> {
    fn write(mut self) -> (W, Vec<u8>, io::Result<()>) {
        let (mut writer, bytes) = self.0.take().expect("a chunk is written once");
        let result = writer.write_all(&bytes);
        (writer, bytes, result)
    }
}

impl<W: Write> Drop for Chunk<W> {
    fn drop(&mut self) {
        if let Some((mut writer, bytes)) = self.0.take() {
            // Nobody is left to be told.
            let _ = writer.write_all(&bytes);
        }
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::{
        future::poll_fn,
        io::{self, Read, Write},
        pin::Pin,
        sync::{
            Arc, Mutex,
            mpsc::{Receiver, Sender, channel},
        },
        task::{Context, Poll, Waker},
    };

    use super::{MOST, Reading, Writing};
    use crate::{
        io::{AsyncRead, AsyncWrite, ReadBuf},
        runtime::{Builder, Runtime},
    };

    fn runtime() -> Runtime {
        Builder::new_current_thread().max_blocking_threads(1).build().unwrap()
    }

    /// Reads what is sent; blocks until then.
    struct Source(Receiver<io::Result<&'static [u8]>>);

    impl Read for Source {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let Ok(next) = self.0.recv() else { return Ok(0) };
            let bytes = next?;
            buf[..bytes.len()].copy_from_slice(bytes);
            Ok(bytes.len())
        }
    }

    fn source() -> (Sender<io::Result<&'static [u8]>>, Reading<Source>) {
        let (sender, receiver) = channel();
        (sender, Reading::new(Source(receiver)))
    }

    async fn read(reading: &mut Reading<Source>, size: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; size];
        let mut buf = ReadBuf::new(&mut bytes);
        poll_fn(|cx| Pin::new(&mut *reading).poll_read(cx, &mut buf)).await?;
        Ok(buf.filled().to_vec())
    }

    #[test]
    fn a_read_that_is_given_up_loses_nothing() {
        let (sender, mut reading) = source();
        runtime().block_on(async {
            let mut bytes = [0; 8];
            let first = poll_fn(|cx| {
                Poll::Ready(Pin::new(&mut reading).poll_read(cx, &mut ReadBuf::new(&mut bytes)))
            });
            assert!(first.await.is_pending());
            sender.send(Ok(b"abcdef")).unwrap();
            assert_eq!(read(&mut reading, 4).await.unwrap(), b"abcd");
            assert_eq!(read(&mut reading, 0).await.unwrap(), b"");
            assert_eq!(read(&mut reading, 4).await.unwrap(), b"ef");
            drop(sender);
            assert_eq!(read(&mut reading, 4).await.unwrap(), b"");
        });
    }

    #[test]
    fn an_error_of_a_read_is_told_and_an_interrupted_one_is_tried_again() {
        let (sender, mut reading) = source();
        sender.send(Err(io::ErrorKind::Interrupted.into())).unwrap();
        sender.send(Err(io::ErrorKind::NotConnected.into())).unwrap();
        sender.send(Ok(b"a")).unwrap();
        runtime().block_on(async {
            let error = read(&mut reading, 4).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotConnected);
            assert_eq!(read(&mut reading, 4).await.unwrap(), b"a");
        });
    }

    /// Keeps what is written; each write waits until it is let through.
    #[derive(Clone)]
    struct Target {
        kept: Arc<Mutex<Vec<u8>>>,
        sizes: Arc<Mutex<Vec<usize>>>,
        fails: bool,
    }

    impl Target {
        fn new(fails: bool) -> Self {
            Self { kept: Arc::default(), sizes: Arc::default(), fails }
        }
    }

    impl Write for Target {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            if self.fails {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.sizes.lock().unwrap().push(buf.len());
            self.kept.lock().unwrap().extend_from_slice(buf);
            Ok(buf.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            self.sizes.lock().unwrap().push(0);
            Ok(())
        }
    }

    async fn write(writing: &mut Writing<Target>, bytes: &[u8]) -> io::Result<usize> {
        poll_fn(|cx| Pin::new(&mut *writing).poll_write(cx, bytes)).await
    }

    async fn flush(writing: &mut Writing<Target>) -> io::Result<()> {
        poll_fn(|cx| Pin::new(&mut *writing).poll_flush(cx)).await
    }

    #[test]
    fn chunks_are_written_whole_in_order_and_flushed_once() {
        let target = Target::new(false);
        let mut writing = Writing::new(target.clone());
        runtime().block_on(async {
            flush(&mut writing).await.unwrap();
            assert_eq!(write(&mut writing, b"ab").await.unwrap(), 2);
            assert_eq!(write(&mut writing, b"").await.unwrap(), 0);
            assert_eq!(write(&mut writing, b"cde").await.unwrap(), 3);
            flush(&mut writing).await.unwrap();
            flush(&mut writing).await.unwrap();
        });
        assert_eq!(*target.kept.lock().unwrap(), b"abcde");
        assert_eq!(*target.sizes.lock().unwrap(), [2, 3, 0], "and 0 is a flush");
    }

    #[test]
    fn a_large_write_takes_what_one_job_may_hold() {
        let target = Target::new(false);
        let mut writing = Writing::new(target.clone());
        let bytes = vec![7; MOST + 1];
        runtime().block_on(async {
            assert_eq!(write(&mut writing, &bytes).await.unwrap(), MOST);
            flush(&mut writing).await.unwrap();
        });
        assert_eq!(target.kept.lock().unwrap().len(), MOST);
    }

    #[test]
    fn the_error_of_a_write_is_told_to_the_next() {
        let mut writing = Writing::new(Target::new(true));
        runtime().block_on(async {
            assert_eq!(write(&mut writing, b"ab").await.unwrap(), 2);
            let error = write(&mut writing, b"cd").await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
            assert_eq!(write(&mut writing, b"ef").await.unwrap(), 2);
            assert_eq!(flush(&mut writing).await.unwrap_err().kind(), io::ErrorKind::StorageFull);
        });
    }

    #[test]
    fn what_was_taken_is_written_also_if_the_runtime_ends_first() {
        let target = Target::new(false);
        let mut writing = Writing::new(target.clone());
        let (open, gate) = channel::<()>();
        let runtime = runtime();
        runtime.block_on(async {
            // The only thread waits until the runtime has begun to end, so that the
            // write does not get its turn.
            drop(crate::task::spawn_blocking(move || gate.recv()));
            assert_eq!(write(&mut writing, b"last words").await.unwrap(), 10);
        });
        assert!(target.kept.lock().unwrap().is_empty());
        runtime.shutdown_background();
        drop(open);
        while target.kept.lock().unwrap().is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(*target.kept.lock().unwrap(), b"last words");
    }

    #[test]
    fn a_stream_of_a_runtime_that_ended_says_so_for_ever() {
        let (sender, mut reading) = source();
        let poll = |reading: &mut Reading<Source>| {
            let mut bytes = [0; 1];
            let mut cx = Context::from_waker(Waker::noop());
            Pin::new(reading).poll_read(&mut cx, &mut ReadBuf::new(&mut bytes))
        };
        let (open, gate) = channel::<()>();
        let first = runtime();
        let guard = first.enter();
        drop(crate::task::spawn_blocking(move || gate.recv()));
        assert!(poll(&mut reading).is_pending());
        drop(guard);
        first.shutdown_background();
        drop((open, sender));
        let second = runtime();
        let _guard = second.enter();
        let mut errors = 0;
        while errors < 2 {
            match poll(&mut reading) {
                Poll::Ready(result) => {
                    result.unwrap_err();
                    errors += 1;
                }
                Poll::Pending => std::thread::yield_now(),
            }
        }
    }
}
