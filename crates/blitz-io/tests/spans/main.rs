//! Tests the feature `tracing`: a span for each task, events of its wakers, one event for each
//! panic, and one for each task that does not let others run.
//!
//! A program of its own, because no other test is built with the feature.
#![allow(clippy::waker_clone_wake, reason = "the events of wakers are what is tested")]
#![cfg(all(feature = "tracing", feature = "rt-multi-thread", not(blitz_loom)))]

use std::{
    fmt::Debug,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use blitz_io::{
    runtime::{Builder, worker_index},
    task,
};
use tracing::{
    Event, Id, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Record},
    subscriber::with_default,
};

#[path = "../support/mod.rs"]
mod support;
use support::{child, runtimes::one_thread, watchdog};

/// A subscriber that records everything.
#[derive(Clone, Default)]
struct Recorder {
    next: Arc<AtomicU64>,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    fn note(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }

    fn lines_with(&self, words: &[&str]) -> usize {
        let lines = self.lines.lock().unwrap();
        lines.iter().filter(|line| words.iter().all(|word| line.contains(word))).count()
    }
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push_str(&format!(" {}={value:?}", field.name()));
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.next.fetch_add(1, Relaxed) + 1;
        let mut fields = Fields(String::new());
        span.record(&mut fields);
        let meta = span.metadata();
        self.note(format!("new {id} {} {}{}", meta.target(), meta.name(), fields.0));
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        self.note(format!("event {}{}", event.metadata().target(), fields.0));
    }

    fn enter(&self, id: &Id) {
        self.note(format!("enter {}", id.into_u64()));
    }

    fn exit(&self, id: &Id) {
        self.note(format!("exit {}", id.into_u64()));
    }

    fn try_close(&self, id: Id) -> bool {
        self.note(format!("close {}", id.into_u64()));
        true
    }
}

/// A subscriber of the whole process receives an event for a task that does not let others run.
#[test]
fn a_task_that_lasts_is_an_event() {
    let _watch = watchdog::start();
    if child::role().is_none() {
        let text = child::succeed(&mut child::command("a_task_that_lasts_is_an_event", "hogs"));
        assert!(!text.contains("spawned at"), "it is on standard error, too: {text}");
        return;
    }
    let recorder = Recorder::default();
    tracing::subscriber::set_global_default(recorder.clone()).unwrap();
    let rt = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let hog = rt.spawn(async { watchdog::until(|| worker_index().is_none()) });
    rt.block_on(hog).unwrap();
    let words = ["event blitz_io::stall", "spawned at", "spans/main.rs", "in one poll on worker 0"];
    watchdog::until(|| recorder.lines_with(&words) == 1);
}

#[test]
fn a_task_has_one_span_with_the_fields_that_consoles_read() {
    let recorder = Recorder::default();
    let id = with_default(recorder.clone(), || {
        one_thread().block_on(async {
            let task = task::Builder::new().name("reader").spawn(task::yield_now()).unwrap();
            let id = task.id();
            task.await.unwrap();
            id
        })
    });
    let id = format!("task.id={id}");
    let words = ["new 1 ", "tokio::task ", "runtime.spawn", "kind=task", "task.name=reader", &id];
    assert_eq!(recorder.lines_with(&words), 1, "{:#?}", recorder.lines.lock().unwrap());
    let place = ["loc.file=", "spans/main.rs", "loc.line=", "loc.col=", "size.bytes="];
    assert_eq!(recorder.lines_with(&place), 1);
    // Two polls, and the drop of the future.
    assert_eq!(recorder.lines_with(&["enter 1"]), 3);
    assert_eq!(recorder.lines_with(&["exit 1"]), 3);
    assert_eq!(recorder.lines_with(&["close 1"]), 1);
}

#[test]
fn wakers_record_every_operation_on_them() {
    let recorder = Recorder::default();
    with_default(recorder.clone(), || {
        one_thread().block_on(async {
            let polled = std::cell::Cell::new(false);
            let wakes = std::future::poll_fn(move |cx| {
                if polled.replace(true) {
                    return std::task::Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                cx.waker().clone().wake();
                drop(cx.waker().clone());
                std::task::Poll::Pending
            });
            task::spawn(wakes).await.unwrap();
        });
    });
    for (op, count) in
        [("waker.clone", 2), ("waker.wake_by_ref", 1), ("waker.wake\"", 1), ("waker.drop", 1)]
    {
        let words = ["event tokio::task::waker", op, "task.id=1"];
        assert_eq!(recorder.lines_with(&words), count, "{op}");
    }
}

#[test]
fn a_panic_adds_one_event_that_names_the_task() {
    let recorder = Recorder::default();
    with_default(recorder.clone(), || {
        one_thread().block_on(async {
            let task = task::Builder::new().name("clumsy").spawn(async { panic!("on purpose") });
            assert!(task.unwrap().await.unwrap_err().is_panic());
        });
    });
    let words = ["event blitz_io::task", "a task panicked", "task.name=clumsy", "spans/main.rs"];
    assert_eq!(recorder.lines_with(&words), 1, "{:#?}", recorder.lines.lock().unwrap());
}

/// A subscriber that panics at each event of a waker, and ignores the rest.
struct Clumsy;

impl Subscriber for Clumsy {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        if event.metadata().target() == "tokio::task::waker" {
            panic!("a subscriber panics on purpose");
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn a_subscriber_that_panics_costs_a_task_neither_a_wake_nor_a_reference() {
    let alive = Arc::new(());
    with_default(Clumsy, || {
        let hook = alive.clone();
        let rt = blitz_io::runtime::Builder::new_current_thread()
            .on_thread_park(move || drop(hook.clone()))
            .build()
            .unwrap();
        rt.block_on(async {
            let polled = std::cell::Cell::new(false);
            let wakes = std::future::poll_fn(move |cx| {
                if polled.replace(true) {
                    return std::task::Poll::Ready(());
                }
                drop(cx.waker().clone());
                cx.waker().clone().wake();
                std::task::Poll::Pending
            });
            task::spawn(wakes).await.unwrap();
        });
    });
    assert_eq!(Arc::strong_count(&alive), 1, "a reference to the task keeps its runtime");
}
