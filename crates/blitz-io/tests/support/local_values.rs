//! Provides values and futures that must stay on the thread that created them.

use std::{
    future::{Future, pending, poll_fn},
    rc::Rc,
    sync::{Arc, Mutex},
    task::{Poll, Waker},
    thread,
};

use super::drop_tally::{Tally, Token};

/// A value that is not `Send`, and is counted when it is dropped.
pub(crate) struct Stays {
    token: Token,
    _not_send: Rc<()>,
}

impl Stays {
    pub(crate) fn new(tally: &Tally) -> Self {
        Self { token: tally.token(), _not_send: Rc::new(()) }
    }

    pub(crate) fn keep(&self) {
        self.token.keep();
    }
}

/// Asserts that all tokens were dropped once, and on this thread.
#[track_caller]
pub(crate) fn assert_all_dropped_here(tally: &Tally, expected: usize) {
    tally.assert_all_dropped(expected);
    let here = thread::current().id();
    assert!(tally.dropped_on().iter().all(|on| *on == here), "one was dropped elsewhere");
}

/// Clones its waker into `left`, and then waits for ever with `stays` inside.
pub(crate) fn parks(
    stays: Stays,
    left: &Arc<Mutex<Vec<Waker>>>,
) -> impl Future<Output = ()> + use<> {
    let left = left.clone();
    async move {
        poll_fn(|cx| {
            left.lock().unwrap().push(cx.waker().clone());
            Poll::Ready(())
        })
        .await;
        pending::<()>().await;
        stays.keep();
    }
}
