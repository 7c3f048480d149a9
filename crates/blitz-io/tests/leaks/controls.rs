//! Leaks on purpose, which the check must detect.

use std::{
    future::{pending, poll_fn},
    sync::{Mutex, mpsc},
    task::{Poll, Waker},
};

use blitz_io::{runtime::Handle, task::JoinHandle};

use crate::{
    Scenario,
    support::runtimes::{one_thread, workers},
};

/// The scenarios, each of which keeps one block or more each time.
pub(crate) const CONTROLS: &[Scenario] = &[
    ("a box is kept", || keep(Kept::Box(Box::new(1)))),
    ("the waker of a task is kept", a_waker),
    ("a join handle is kept", || keep(Kept::Join(one_thread().spawn(pending())))),
    ("the handle of a runtime is kept", || keep(Kept::Handle(workers(1).handle().clone()))),
];

/// A value that is kept. It is not boxed, because the box would be what is detected.
#[allow(dead_code, reason = "kept, and not read")]
enum Kept {
    Box(Box<u64>),
    Waker(Waker),
    Join(JoinHandle<()>),
    Handle(Handle),
}

static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

fn keep(what: Kept) {
    KEPT.lock().unwrap().push(what);
}

/// Frees what a control has kept, so that the next one starts clean.
pub(crate) fn give_back() {
    *KEPT.lock().unwrap() = Vec::new();
}

fn a_waker() {
    let (rt, (sender, receiver)) = (workers(1), mpsc::channel());
    rt.spawn(poll_fn(move |cx| {
        sender.send(cx.waker().clone()).unwrap();
        Poll::<()>::Pending
    }));
    keep(Kept::Waker(receiver.recv().unwrap()));
}
