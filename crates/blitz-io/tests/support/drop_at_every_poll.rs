//! Drops a future after every number of polls, with steps of the other side in between.

use std::{future::Future, pin::Pin, task::Poll};

use super::manual_poll::by_hand;

pub(crate) type Boxed<'a, O> = Pin<Box<dyn Future<Output = O> + 'a>>;

/// A step that the other side takes between two polls.
pub(crate) type Step<S> = fn(&S);

/// Runs a scenario for every number of polls, with and without a last step between the last poll
/// and the drop: creates a new `S`, polls `start`'s future that often with one step after each
/// poll, drops it, takes the steps that are left, and calls `check` with the output if there was
/// one.
pub(crate) fn at_every_poll<S, O>(
    make: impl Fn() -> S,
    start: impl for<'a> Fn(&'a S) -> Boxed<'a, O>,
    steps: &[Step<S>],
    check: impl Fn(&S, Option<O>),
) {
    let (mut completed, mut dropped) = (0, 0);
    for polls in 0..=steps.len() + 1 {
        for step_before_drop in [false, true] {
            let subject = make();
            let mut left = steps.iter();
            let mut future = Some(by_hand(start(&subject)));
            let mut output = None;
            for poll in 0..polls {
                if let Some(polled) = &mut future
                    && let Poll::Ready(value) = polled.poll()
                {
                    output = Some(value);
                    future = None;
                }
                let is_last = poll + 1 == polls;
                if (!is_last || step_before_drop)
                    && let Some(step) = left.next()
                {
                    step(&subject);
                }
            }
            match &output {
                Some(_) => completed += 1,
                None => dropped += 1,
            }
            drop(future);
            left.for_each(|step| step(&subject));
            check(&subject, output);
        }
    }
    // A scenario in which the future never completes, or never is dropped, proves nothing.
    assert!(completed > 0 && dropped > 1, "completed {completed}, dropped {dropped}");
}
