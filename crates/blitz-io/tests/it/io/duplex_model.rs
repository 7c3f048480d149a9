//! Compares random reads and writes on a `duplex` with a queue of bytes.

use std::{collections::VecDeque, task::Poll};

use blitz_io::io::{AsyncReadExt, AsyncWriteExt, duplex};
use proptest::{collection::vec, prelude::*};

use crate::support::manual_poll::{by_hand, now};

#[derive(Debug, Clone)]
enum Step {
    Write(usize),
    Read(usize),
    Shutdown,
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..40_usize).prop_map(Step::Write),
        6 => (1..40_usize).prop_map(Step::Read),
        1 => Just(Step::Shutdown),
    ]
}

proptest! {
    #[test]
    fn a_pipe_is_a_queue_with_a_bound(room in 1..50_usize, steps in vec(steps(), 1..80)) {
        let (mut near, mut far) = duplex(room);
        let (mut model, mut next, mut shut) = (VecDeque::new(), 0_u8, false);
        for step in steps {
            match step {
                Step::Write(size) => {
                    let bytes: Vec<u8> = (0..size).map(|at| next.wrapping_add(at as u8)).collect();
                    match by_hand(near.write(&bytes)).poll() {
                        Poll::Pending => prop_assert!(!shut && model.len() == room),
                        Poll::Ready(Err(_)) => prop_assert!(shut),
                        Poll::Ready(Ok(count)) => {
                            prop_assert!(!shut && count == size.min(room - model.len()));
                            model.extend(&bytes[..count]);
                            next = next.wrapping_add(count as u8);
                        }
                    }
                }
                Step::Read(size) => {
                    let mut bytes = vec![0; size];
                    match by_hand(far.read(&mut bytes)).poll() {
                        Poll::Pending => prop_assert!(model.is_empty() && !shut),
                        Poll::Ready(count) => {
                            let count = count.unwrap();
                            prop_assert_eq!(count, size.min(model.len()));
                            prop_assert!(count > 0 || shut);
                            let wanted: Vec<u8> = model.drain(..count).collect();
                            prop_assert_eq!(&bytes[..count], &wanted[..]);
                        }
                    }
                }
                Step::Shutdown => {
                    now(near.shutdown()).unwrap();
                    shut = true;
                }
            }
        }
    }
}
