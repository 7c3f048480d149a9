//! Helpers to observe: runtimes, panics, counting wakers, and a log of drops.

use std::{
    any::Any,
    fmt::Debug,
    future::Future,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
};

use tokio::runtime::{Builder, Runtime};

pub mod files;
pub mod sockets;

pub fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

pub fn multi_thread(workers: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap()
}

/// Builds a runtime with a clock that advances only when all tasks wait.
pub fn paused() -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

/// Quotes a text of an error or a panic, in one line. The runner lets such a text of the drop-ins
/// continue after the real one's.
pub fn quoted(text: impl ToString) -> String {
    format!("«{}»", text.to_string().replace('\n', " "))
}

/// Keeps panics from printing from here on.
pub fn quiet() {
    std::panic::set_hook(Box::new(|_| {}));
}

/// Returns the text of a panic, quoted.
pub fn payload(panic: Box<dyn Any + Send>) -> String {
    let text = match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => match panic.downcast::<&'static str>() {
            Ok(text) => text.to_string(),
            Err(_) => return "another payload".to_string(),
        },
    };
    quoted(text)
}

/// Returns the text with which `run` panics, or what it returns.
pub fn caught<R: Debug>(run: impl FnOnce() -> R) -> String {
    quiet();
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(returned) => format!("no panic, {returned:?}"),
        Err(panic) => format!("panic: {}", payload(panic)),
    }
}

/// Returns the text with which `run` panics, or that it does not.
pub fn panics<R>(run: impl FnOnce() -> R) -> String {
    quiet();
    match catch_unwind(AssertUnwindSafe(|| drop(run()))) {
        Ok(()) => "no panic".to_string(),
        Err(panic) => format!("panic: {}", payload(panic)),
    }
}

/// Returns kind and number of an error.
pub fn error(error: &io::Error) -> String {
    format!("{:?} {:?}", error.kind(), error.raw_os_error())
}

/// Counts how often its waker is called.
#[derive(Default)]
pub struct Count(pub AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Count {
    pub fn get(&self) -> usize {
        self.0.load(SeqCst)
    }
}

pub fn counter() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (count.clone(), Waker::from(count))
}

/// A future with a waker of its own that counts.
pub struct Fut<'a, T> {
    pub f: Pin<Box<dyn Future<Output = T> + 'a>>,
    count: Arc<Count>,
    waker: Waker,
}

impl<'a, T> Fut<'a, T> {
    pub fn new(future: impl Future<Output = T> + 'a) -> Self {
        let (count, waker) = counter();
        Fut { f: Box::pin(future), count, waker }
    }

    pub fn poll(&mut self) -> Poll<T> {
        self.f.as_mut().poll(&mut Context::from_waker(&self.waker))
    }

    pub fn ready(&mut self) -> bool {
        self.poll().is_ready()
    }

    pub fn wakes(&self) -> usize {
        self.count.get()
    }
}

/// A log that several values write to.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn new() -> Log {
        Log::default()
    }

    pub fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    pub fn on_drop(&self, name: impl Into<String>) -> OnDrop {
        OnDrop(self.clone(), name.into())
    }
}

/// Writes its own drop to a log.
pub struct OnDrop(Log, String);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.add(format!("drop {}", self.1));
    }
}

impl Debug for OnDrop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OnDrop({})", self.1)
    }
}

/// Runs a closure when it is dropped.
pub struct Defer<F: FnOnce()>(pub Option<F>);

pub fn defer<F: FnOnce()>(run: F) -> Defer<F> {
    Defer(Some(run))
}

impl<F: FnOnce()> Drop for Defer<F> {
    fn drop(&mut self) {
        if let Some(run) = self.0.take() {
            run()
        }
    }
}
