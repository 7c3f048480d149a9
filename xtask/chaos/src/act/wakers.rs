//! Wakers that panic when they are called.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use blitz_io::{channel::oneshot, io::AsyncWriteExt, net::UnixStream, time};

use super::{micros, tasks::judge};
use crate::{
    ledger::{Kind, Token},
    plan::Wakes,
    world::{self, StepContext},
};

struct Panics {
    _token: Token,
}

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("{}: a waker", world::PLANNED);
    }
}

/// Polls a future once with a waker that panics.
async fn poll_with_panicking_waker<F: Future>(cx: &StepContext, mut future: Pin<&mut F>) -> bool {
    let waker = Waker::from(Arc::new(Panics { _token: cx.token(Kind::Waker) }));
    poll_fn(|_| Poll::Ready(future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()))
        .await
}

/// Calls a waker that panics. The panic reaches the code that calls the waker, or the runtime,
/// which must survive it; the operation that called the waker must have taken effect all the same.
pub(super) async fn step(cx: &StepContext, wakes: Wakes) {
    let token = cx.token(Kind::Task);
    match wakes {
        Wakes::Join(after) => {
            let mut task = pin!(blitz_io::spawn(async move {
                let _token = token;
                time::sleep(micros(after)).await;
            }));
            if !poll_with_panicking_waker(cx, task.as_mut()).await {
                time::sleep(micros(after)).await;
                judge(cx, task.await, false);
            }
        }
        Wakes::Oneshot(after) => {
            let (sender, receiver) = oneshot::channel();
            let mut receiver = pin!(receiver);
            let task = blitz_io::spawn(async move {
                time::sleep(micros(after)).await;
                sender.send(token)
            });
            if !poll_with_panicking_waker(cx, receiver.as_mut()).await {
                // The send panics, or the task was cancelled.
                judge(cx, task.await.map(drop), false);
                let received = receiver.await;
                cx.ensure(received.is_ok() || cx.is_ending(), || {
                    "a message is lost whose waker panicked".into()
                });
            }
        }
        Wakes::Timer(after) => {
            drop(token);
            let mut timer = pin!(time::sleep(micros(after)));
            if !poll_with_panicking_waker(cx, timer.as_mut()).await {
                time::sleep(micros(after)).await;
                timer.await;
            }
        }
        Wakes::Socket(after) => {
            drop(token);
            let Some((left, mut right)) = cx.check("a pair", UnixStream::pair()) else { return };
            {
                let mut readable = pin!(left.readable());
                if !poll_with_panicking_waker(cx, readable.as_mut()).await {
                    cx.check("a write", right.write_all(b"x").await);
                    time::sleep(micros(after)).await;
                }
            }
            cx.check("readable", left.readable().await);
        }
    }
}
