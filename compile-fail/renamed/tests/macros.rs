//! Tests the macros in a crate that calls the runtime otherwise, has no feature but
//! `macros`, and forbids what it can.
#![deny(warnings)]
#![forbid(unsafe_code)]

use std::{
    future::{Future, pending, ready},
    pin::pin,
    task::{Context, Poll, Waker},
};

// What the macros expand to must not find these.
#[allow(unused_imports, dead_code, reason = "they are in the way, that is all")]
mod core {}
#[allow(unused_imports, dead_code, reason = "they are in the way, that is all")]
mod blitz_io {}

fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn all_macros_expand() {
    now(async {
        assert_eq!(flash::join!(ready(1), ready(2)), (1, 2));
        assert_eq!(flash::try_join!(biased; ready(Ok::<_, ()>(1))), Ok((1,)));
        let future = async { 3 };
        flash::pin!(future);
        let three = flash::select! {
            three = &mut future => three,
            () = pending() => 0,
            else => 1,
        };
        assert_eq!(three, 3);
    });
}

#[test]
fn random_numbers_are_below_their_bound() {
    let drawn = |_| flash::macros::support::thread_rng_n(3);
    let numbers: std::collections::BTreeSet<u32> = (0..1_000).map(drawn).collect();
    assert_eq!(numbers.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
}
