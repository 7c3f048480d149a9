//! Readers and writers that block, with one call at a time on a thread of the blocking
//! pool.
//!
//! A read that has begun goes on when its future is dropped; its bytes are kept for the
//! next read. A write returns as soon as its bytes are handed over; the next write or flush
//! returns its error. So at most one job is in progress, and bytes keep their order.
//!
//! A runtime that is shutting down accepts no more calls: they fail with the error of every
//! I/O resource of a runtime that has shut down, as Tokio's do. A write that was accepted
//! before is carried out, and its result is there for the next call, even on another
//! runtime. A write for which no thread can be started is not carried out, and returns an
//! error.

use std::{
    io::{self, Read, Write},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use crate::{
    engine::work::task::budget,
    io::{AsyncRead, AsyncWrite, ReadBuf, window::Window},
    runtime::context,
    task::{JoinHandle, blocking::try_spawn_blocking, write_state::WriteState},
};

/// The most bytes per job: Tokio's value. It bounds the memory of a stream, and the
/// duration of one job.
pub(super) const DEFAULT_MAX_BUF_SIZE: usize = 2 * 1024 * 1024;

/// The result of a job: the device, the buffer, and the result of the call.
type JobOutput<D, B> = (D, B, io::Result<()>);

type SharedWriteState<D, B> = Arc<WriteState<JobOutput<D, B>>>;

/// A device and its buffer, or the job that currently owns them.
#[derive(Debug)]
enum JobSlot<D, B> {
    Idle(D, B),
    Busy(JoinHandle<JobOutput<D, B>>, Option<SharedWriteState<D, B>>),
    /// The job has panicked, its runtime shut down before it ran, or no thread could be
    /// started for it.
    Lost,
}

impl<D: Send + 'static, B: Send + 'static> JobSlot<D, B> {
    /// Starts a job, unless one is in progress.
    ///
    /// # Errors
    /// Returns an error if the runtime has shut down, or if no thread can be started.
    ///
    /// # Panics
    /// Panics if there is no runtime on this thread.
    fn begin(
        &mut self,
        make: impl FnOnce(D, B) -> (Option<JoinHandle<JobOutput<D, B>>>, Option<SharedWriteState<D, B>>),
    ) -> io::Result<()> {
        if matches!(self, Self::Busy(..)) {
            return Ok(());
        }
        // The panic and the error come before the device is taken out.
        match context::with_current(|inner| inner.blocking.is_stopping()) {
            Ok(false) => {}
            Ok(true) => return Err(shut_down_error()),
            Err(error) => panic!("{error}"),
        }
        let Self::Idle(device, buffer) = std::mem::replace(self, Self::Lost) else {
            return Err(io::Error::other(
                "an earlier call was lost with its runtime, or for want of a thread: open the stream anew",
            ));
        };
        let (job, write_state) = make(device, buffer);
        match job {
            Some(job) if write_state.as_ref().is_none_or(|state| state.accept()) => {
                *self = Self::Busy(job, write_state);
                Ok(())
            }
            // The stream is lost with the job, as in Tokio.
            _ => Err(io::Error::other("background task failed")),
        }
    }

    /// Waits for the job that is in progress, if there is one.
    fn poll_job(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self::Busy(job, write_state) = self else { return Poll::Ready(Ok(())) };
        let ended = ready!(Pin::new(job).poll(cx));
        let write_state = write_state.take();
        *self = Self::Lost;
        let (device, buffer, result) =
            ended.or_else(|why| write_state.as_ref().and_then(|state| state.take()).ok_or(why))?;
        *self = Self::Idle(device, buffer);
        Poll::Ready(result)
    }
}

/// Creates the error of a call on a runtime that is shutting down.
#[cold]
fn shut_down_error() -> io::Error {
    #[cfg(feature = "net")]
    return crate::engine::driver::shut_down_error();
    #[cfg(not(feature = "net"))]
    return io::Error::other("A Tokio 1.x context was found, but it is being shutdown.");
}

/// An asynchronous reader over one that blocks.
#[derive(Debug)]
pub(crate) struct BlockingReader<R>(JobSlot<R, Window>);

impl<R> BlockingReader<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self(JobSlot::Idle(reader, Window::new(0)))
    }
}

impl<R: Read + Send + Unpin + 'static> AsyncRead for BlockingReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let unit = ready!(budget::poll_proceed(cx));
        let has_some = matches!(&self.0, JobSlot::Idle(_, window) if !window.is_empty());
        if !has_some {
            let wanted = buf.remaining().min(DEFAULT_MAX_BUF_SIZE);
            self.0.begin(|mut reader, mut window| {
                let read = try_spawn_blocking(move || {
                    let result = window.read(&mut reader, wanted);
                    (reader, window, result)
                });
                (read, None)
            })?;
            ready!(self.0.poll_job(cx))?;
        }
        if let JobSlot::Idle(_, window) = &mut self.0 {
            copy_buffered(window, buf);
        }
        unit.spend();
        Poll::Ready(Ok(()))
    }
}

fn copy_buffered(window: &mut Window, buf: &mut ReadBuf<'_>) {
    let amount = window.buffered().len().min(buf.remaining());
    buf.put_slice(&window.buffered()[..amount]);
    window.take(amount);
}

/// An asynchronous writer over one that blocks.
#[derive(Debug)]
pub(crate) struct BlockingWriter<W> {
    writer: JobSlot<W, Vec<u8>>,
    /// True if bytes were written since the last flush.
    unflushed: bool,
}

impl<W> BlockingWriter<W> {
    pub(crate) fn new(writer: W) -> Self {
        Self { writer: JobSlot::Idle(writer, Vec::new()), unflushed: false }
    }
}

impl<W: Write + Send + Unpin + 'static> AsyncWrite for BlockingWriter<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.writer.poll_job(cx))?;
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let unit = ready!(budget::poll_proceed(cx));
        let amount = buf.len().min(DEFAULT_MAX_BUF_SIZE);
        self.writer.begin(|writer, mut bytes| {
            bytes.clear();
            bytes.extend_from_slice(&buf[..amount]);
            let write_state = SharedWriteState::new(WriteState::new());
            let write_job =
                WriteJob { parts: Some((writer, bytes)), write_state: write_state.clone() };
            (try_spawn_blocking(move || write_job.write()), Some(write_state))
        })?;
        self.unflushed = true;
        unit.spend();
        Poll::Ready(Ok(amount))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.writer.poll_job(cx))?;
        if !self.unflushed {
            return Poll::Ready(Ok(()));
        }
        self.writer.begin(|mut writer, bytes| {
            let flush = try_spawn_blocking(move || {
                let result = writer.flush();
                (writer, bytes, result)
            });
            (flush, None)
        })?;
        self.unflushed = false;
        self.writer.poll_job(cx)
    }

    /// Flushes the stream and does not close it, because the process may still need it.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

/// Bytes for a job to write. Once the write has reported them as accepted they are written,
/// even if the runtime shuts down before the job runs: the thread that drops the job writes
/// them.
struct WriteJob<W: Write> {
    parts: Option<(W, Vec<u8>)>,
    write_state: SharedWriteState<W, Vec<u8>>,
}

impl<W: Write> WriteJob<W> {
    fn write(mut self) -> (W, Vec<u8>, io::Result<()>) {
        let (mut writer, bytes) = self.parts.take().expect("a write job runs once");
        let result = writer.write_all(&bytes);
        (writer, bytes, result)
    }
}

impl<W: Write> Drop for WriteJob<W> {
    fn drop(&mut self) {
        let Some((mut writer, bytes)) = self.parts.take() else { return };
        if !self.write_state.refuse(|| ()) {
            let result = writer.write_all(&bytes);
            // The job ends after this, so the next call finds the result.
            self.write_state.finish((writer, bytes, result));
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

    use super::{BlockingReader, BlockingWriter, DEFAULT_MAX_BUF_SIZE};
    use crate::{
        io::{AsyncRead, AsyncWrite, ReadBuf},
        runtime::{Builder, Runtime},
    };

    fn runtime() -> Runtime {
        Builder::new_current_thread().max_blocking_threads(1).build().unwrap()
    }

    /// Returns the bytes that are sent to it; blocks until then.
    struct Source(Receiver<io::Result<&'static [u8]>>);

    impl Read for Source {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let Ok(next) = self.0.recv() else { return Ok(0) };
            let bytes = next?;
            buf[..bytes.len()].copy_from_slice(bytes);
            Ok(bytes.len())
        }
    }

    fn source() -> (Sender<io::Result<&'static [u8]>>, BlockingReader<Source>) {
        let (sender, receiver) = channel();
        (sender, BlockingReader::new(Source(receiver)))
    }

    async fn read(reading: &mut BlockingReader<Source>, size: usize) -> io::Result<Vec<u8>> {
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
    fn a_read_error_is_returned_and_an_interrupted_read_is_retried() {
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

    /// Keeps the bytes that are written, and the size of each write; can be made to fail.
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

    async fn write(writing: &mut BlockingWriter<Target>, bytes: &[u8]) -> io::Result<usize> {
        poll_fn(|cx| Pin::new(&mut *writing).poll_write(cx, bytes)).await
    }

    async fn flush(writing: &mut BlockingWriter<Target>) -> io::Result<()> {
        poll_fn(|cx| Pin::new(&mut *writing).poll_flush(cx)).await
    }

    #[test]
    fn chunks_are_written_whole_in_order_and_flushed_once() {
        let target = Target::new(false);
        let mut writing = BlockingWriter::new(target.clone());
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
        let mut writing = BlockingWriter::new(target.clone());
        let bytes = vec![7; DEFAULT_MAX_BUF_SIZE + 1];
        runtime().block_on(async {
            assert_eq!(write(&mut writing, &bytes).await.unwrap(), DEFAULT_MAX_BUF_SIZE);
            flush(&mut writing).await.unwrap();
        });
        assert_eq!(target.kept.lock().unwrap().len(), DEFAULT_MAX_BUF_SIZE);
    }

    #[test]
    fn a_write_error_is_returned_by_the_next_write() {
        let mut writing = BlockingWriter::new(Target::new(true));
        runtime().block_on(async {
            assert_eq!(write(&mut writing, b"ab").await.unwrap(), 2);
            let error = write(&mut writing, b"cd").await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
            assert_eq!(write(&mut writing, b"ef").await.unwrap(), 2);
            assert_eq!(flush(&mut writing).await.unwrap_err().kind(), io::ErrorKind::StorageFull);
        });
    }

    #[test]
    fn accepted_bytes_are_written_even_if_the_runtime_ends_first() {
        let target = Target::new(false);
        let mut writing = BlockingWriter::new(target.clone());
        let (open, gate) = channel::<()>();
        let runtime = runtime();
        runtime.block_on(async {
            // The only thread waits until the runtime has begun to shut down, so that the
            // job of the write does not run.
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
        // The stream can be used on another runtime.
        self::runtime().block_on(async {
            flush(&mut writing).await.unwrap();
            assert_eq!(write(&mut writing, b", and more").await.unwrap(), 10);
            flush(&mut writing).await.unwrap();
        });
        assert_eq!(*target.kept.lock().unwrap(), b"last words, and more");
    }

    #[test]
    fn a_write_on_an_ended_runtime_returns_an_error() {
        let target = Target::new(false);
        let mut writing = BlockingWriter::new(target.clone());
        let ended = runtime();
        let handle = ended.handle().clone();
        ended.shutdown_background();
        {
            let _entered = handle.enter();
            let mut cx = Context::from_waker(Waker::noop());
            let written = Pin::new(&mut writing).poll_write(&mut cx, b"late");
            let Poll::Ready(Err(error)) = written else { panic!("it was taken") };
            #[cfg(feature = "net")]
            assert!(crate::runtime::is_rt_shutdown_err(&error), "{error}");
            assert_eq!(error.kind(), io::ErrorKind::Other);
        }
        assert!(target.kept.lock().unwrap().is_empty());
        runtime().block_on(async {
            assert_eq!(write(&mut writing, b"x").await.unwrap(), 1);
            flush(&mut writing).await.unwrap();
        });
        assert_eq!(*target.kept.lock().unwrap(), b"x");
    }

    #[test]
    fn a_stream_of_an_ended_runtime_returns_the_error_every_time() {
        let (_sender, mut reading) = source();
        let poll = |reading: &mut BlockingReader<Source>| {
            let mut bytes = [0; 1];
            let mut cx = Context::from_waker(Waker::noop());
            Pin::new(reading).poll_read(&mut cx, &mut ReadBuf::new(&mut bytes))
        };
        let ended = runtime();
        let handle = ended.handle().clone();
        drop(ended);
        let _guard = handle.enter();
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
