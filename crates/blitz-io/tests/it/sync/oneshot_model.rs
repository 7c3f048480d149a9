//! Compares random operations on a oneshot channel with a model.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use blitz_io::sync::oneshot::{self, Receiver, Sender, error::TryRecvError};
use proptest::prelude::*;

use crate::support::drop_tally::{Tally, Token};

#[derive(Clone, Copy, Debug)]
enum Op {
    Send,
    DropSender,
    PollClosed,
    Poll,
    TryRecv,
    Close,
    DropReceiver,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        1 => Just(Op::Send),
        1 => Just(Op::DropSender),
        2 => Just(Op::PollClosed),
        4 => Just(Op::Poll),
        4 => Just(Op::TryRecv),
        1 => Just(Op::Close),
        1 => Just(Op::DropReceiver),
    ]
}

struct Run {
    tally: Tally,
    tx: Option<Sender<Token>>,
    rx: Option<Receiver<Token>>,
    /// True if the channel holds a value.
    full: bool,
    /// True if the receiver has closed the channel.
    closed: bool,
    /// True if the receiver has returned its final result.
    done: bool,
}

impl Run {
    fn apply(&mut self, op: Op) {
        let mut noop = Context::from_waker(Waker::noop());
        match op {
            Op::Send => {
                let Some(tx) = self.tx.take() else { return };
                let sent = tx.send(self.tally.token()).is_ok();
                assert_eq!(sent, self.rx.is_some() && !self.closed);
                self.full = sent;
            }
            Op::DropSender => drop(self.tx.take()),
            Op::PollClosed => {
                let Some(tx) = &mut self.tx else { return };
                let closed = self.rx.is_none() || self.closed;
                assert_eq!(tx.is_closed(), closed);
                assert_eq!(tx.poll_closed(&mut noop).is_ready(), closed);
            }
            Op::Poll => {
                let Some(rx) = self.rx.as_mut().filter(|_| !self.done) else { return };
                match Pin::new(rx).poll(&mut noop) {
                    Poll::Ready(got) => self.completed(got.is_ok()),
                    Poll::Pending => assert!(!self.full && !self.ended()),
                }
            }
            Op::TryRecv => {
                let Some(rx) = &mut self.rx else { return };
                match rx.try_recv() {
                    Ok(token) => {
                        token.keep();
                        self.completed(true);
                    }
                    Err(TryRecvError::Closed) if self.done => {}
                    Err(TryRecvError::Closed) => self.completed(false),
                    Err(TryRecvError::Empty) => {
                        assert!(!self.full && !self.ended() && !self.done);
                    }
                }
            }
            Op::Close => {
                if let Some(rx) = &mut self.rx {
                    rx.close();
                    self.closed = true;
                }
            }
            Op::DropReceiver => {
                drop(self.rx.take());
                self.full = false;
            }
        }
        if let Some(rx) = &self.rx {
            assert_eq!((rx.is_empty(), rx.is_terminated()), (!self.full, self.done));
        }
        assert_eq!(self.tally.made() - self.tally.dropped(), usize::from(self.full));
    }

    /// Returns true if a channel without a value can get none any more.
    fn ended(&self) -> bool {
        self.closed || self.tx.is_none()
    }

    fn completed(&mut self, value: bool) {
        assert!(!self.done, "it completed before");
        assert_eq!(value, self.full);
        assert!(value || self.ended());
        (self.done, self.full) = (true, false);
        // From then on the receiver is gone for the sender.
        self.closed = true;
    }
}

proptest! {
    #[test]
    fn a_oneshot_does_what_its_model_does(ops in prop::collection::vec(op(), 1..20)) {
        let tally = Tally::new();
        let (tx, rx) = oneshot::channel();
        let (tx, rx) = (Some(tx), Some(rx));
        let mut run = Run { tally: tally.clone(), tx, rx, full: false, closed: false, done: false };
        ops.into_iter().for_each(|op| run.apply(op));
        drop(run);
        let made = tally.made();
        tally.assert_all_dropped(made);
    }
}
