//! Tests `CancellationToken`: a tree of any shape that is cancelled from any node down, and wakers
//! that use a token.

use std::{
    future::{pending, poll_fn, ready},
    pin::{Pin, pin},
    sync::{Arc, Mutex},
    task::Poll,
};

use blitz_io::sync::{CancellationToken, WaitForCancellationFutureOwned};
use proptest::prelude::*;

use crate::support::{
    budget::completed_in_one_poll,
    drop_tally::Tally,
    manual_poll::{by_hand, now, poll_once, waiting},
    runtimes::workers,
    wakers::WakeCount,
    watchdog,
};

#[test]
fn cancelling_wakes_every_waiter() {
    let token = CancellationToken::new();
    assert!(!token.is_cancelled());
    let mut waiters: Vec<_> = (0..50).map(|_| waiting(token.cancelled())).collect();
    let mut owned = waiting(token.clone().cancelled_owned());
    let mut unpolled = by_hand(token.cancelled());
    token.cancel();
    assert!(token.is_cancelled());
    for waiter in &mut waiters {
        waiter.woken_and_ready();
    }
    owned.woken_and_ready();
    unpolled.ready();
    now(token.cancelled());
}

#[test]
fn clones_are_one_token() {
    let token = CancellationToken::new();
    let clone = token.clone();
    clone.cancel();
    clone.cancel();
    assert!(token.is_cancelled());
    now(token.cancelled());
}

#[test]
fn a_child_is_cancelled_with_its_parent_but_not_the_other_way() {
    let parent = CancellationToken::new();
    let (one, two) = (parent.child_token(), parent.child_token());
    let mut waits_for_two = waiting(two.cancelled());
    one.cancel();
    assert!(one.is_cancelled() && !parent.is_cancelled() && !two.is_cancelled());
    waits_for_two.still_waits();
    parent.cancel();
    assert!(two.is_cancelled());
    waits_for_two.woken_and_ready();
}

#[test]
fn grandchildren_are_cancelled_too() {
    let root = CancellationToken::new();
    let middle = root.child_token();
    let leaf = middle.child_token();
    let mut waiter = waiting(leaf.cancelled());
    root.cancel();
    waiter.woken_and_ready();
    assert!(middle.is_cancelled() && leaf.is_cancelled());
}

#[test]
fn a_child_of_a_cancelled_token_is_cancelled_at_birth() {
    let token = CancellationToken::new();
    token.cancel();
    let child = token.child_token();
    assert!(child.is_cancelled() && child.child_token().is_cancelled());
    now(child.cancelled());
}

#[test]
fn children_of_a_dropped_middle_token_still_belong_to_the_root() {
    let root = CancellationToken::new();
    let middle = root.child_token();
    let leaves: Vec<_> = (0..10).map(|_| middle.child_token()).collect();
    let mut waiters: Vec<_> = leaves.iter().map(|leaf| waiting(leaf.cancelled())).collect();
    drop(middle);
    for waiter in &mut waiters {
        waiter.still_waits();
    }
    root.cancel();
    for waiter in &mut waiters {
        waiter.woken_and_ready();
    }
}

#[test]
fn dropping_a_parent_cancels_no_child() {
    let root = CancellationToken::new();
    let child = root.child_token();
    let mut waiter = waiting(child.cancelled());
    drop(root);
    assert!(!child.is_cancelled());
    waiter.still_waits();
    child.cancel();
    waiter.woken_and_ready();
}

#[test]
fn a_cancelled_child_that_is_dropped_leaves_its_parent_in_order() {
    let root = CancellationToken::new();
    let keep = root.child_token();
    for round in 0..1000 {
        let child = root.child_token();
        if round % 2 == 0 {
            child.cancel();
        }
    }
    assert!(!keep.is_cancelled());
    root.cancel();
    assert!(keep.is_cancelled());
}

#[test]
fn a_guard_cancels_when_dropped_unless_disarmed() {
    let token = CancellationToken::new();
    let guard = token.clone().drop_guard();
    assert!(!guard.token().is_cancelled());
    let kept = guard.disarm();
    assert!(!kept.is_cancelled());
    drop(kept.drop_guard());
    assert!(token.is_cancelled());
    let token = CancellationToken::new();
    let guard = token.drop_guard_ref();
    assert!(!guard.token().is_cancelled());
    assert!(!guard.disarm().is_cancelled());
    drop(token.drop_guard_ref());
    assert!(token.is_cancelled());
}

#[test]
fn a_guard_cancels_when_its_holder_panics() {
    let token = CancellationToken::new();
    crate::support::caught_panic::panic_of(|| {
        let _guard = token.clone().drop_guard();
        panic!("with the guard");
    });
    assert!(token.is_cancelled());
}

#[test]
fn run_until_cancelled_gives_the_output_or_nothing() {
    let token = CancellationToken::new();
    assert_eq!(now(token.run_until_cancelled(ready(1))), Some(1));
    assert_eq!(now(token.clone().run_until_cancelled_owned(ready(2))), Some(2));
    let tally = Tally::new();
    let inside = tally.token();
    let mut running = waiting(token.run_until_cancelled(async move {
        inside.keep();
        pending::<()>().await;
    }));
    let mut owned = waiting(token.clone().run_until_cancelled_owned(pending::<()>()));
    token.cancel();
    assert_eq!(running.woken_and_ready(), None);
    assert_eq!(owned.woken_and_ready(), None);
    drop(running);
    tally.assert_all_dropped(1);
    // The token is checked first.
    assert_eq!(now(token.run_until_cancelled(ready(1))), None);
}

#[test]
fn a_dropped_waiter_is_not_woken_and_does_not_block_the_others() {
    let token = CancellationToken::new();
    let first = waiting(token.cancelled());
    let mut second = waiting(token.cancelled());
    drop(first);
    token.cancel();
    second.woken_and_ready();
}

#[test]
fn an_owned_waiter_needs_no_other_handle_of_its_token() {
    let root = CancellationToken::new();
    let mut waiter = waiting(root.child_token().cancelled_owned());
    waiter.still_waits();
    root.cancel();
    waiter.woken_and_ready();
}

#[test]
fn a_wide_tree_is_cancelled_whole() {
    let _watch = watchdog::start();
    let root = CancellationToken::default();
    let children: Vec<_> = (0..1000).map(|_| root.child_token()).collect();
    let leaves: Vec<_> = children.iter().map(CancellationToken::child_token).collect();
    root.cancel();
    assert!(children.iter().chain(&leaves).all(CancellationToken::is_cancelled));
}

#[test]
fn cancelling_while_children_come_and_go_misses_none() {
    let _watch = watchdog::start();
    for _ in 0..200 {
        let root = CancellationToken::new();
        let children: Vec<_> = std::thread::scope(|scope| {
            let makers: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        (0..20).map(|_| root.child_token().child_token()).collect::<Vec<_>>()
                    })
                })
                .collect();
            root.cancel();
            makers.into_iter().flat_map(|maker| maker.join().unwrap()).collect()
        });
        assert!(children.iter().all(CancellationToken::is_cancelled));
    }
}

type Waiting = Pin<Box<WaitForCancellationFutureOwned>>;

/// Starts a wait for the cancellation, with this waker.
#[track_caller]
fn in_line(token: &CancellationToken, calls: &Arc<WakeCount>) -> Waiting {
    let mut waiting = Box::pin(token.clone().cancelled_owned());
    assert!(calls.poll(waiting.as_mut()).is_pending());
    waiting
}

/// Creates `length` tokens, each of which is the child of the one before.
fn chain(length: usize) -> Vec<CancellationToken> {
    let first = CancellationToken::new();
    let next = |token: &CancellationToken| Some(token.child_token());
    std::iter::successors(Some(first), next).take(length).collect()
}

#[test]
fn a_deep_tree_is_cancelled_and_dropped_without_recursion() {
    const DEPTH: usize = 100_000;
    let _watch = watchdog::start();
    // On a stack that is too small for a recursion of that depth.
    let thread = std::thread::Builder::new().stack_size(64 << 10).spawn(|| {
        let tokens = chain(DEPTH);
        let (calls, last) = (WakeCount::new(), &tokens[DEPTH - 1]);
        let waiting = in_line(last, &calls);
        tokens[0].cancel();
        assert!(tokens.iter().all(CancellationToken::is_cancelled));
        assert_eq!(calls.count(), 1);
        drop((waiting, tokens));
        // Dropped from the top, from the bottom, and all but the ends.
        chain(DEPTH).into_iter().for_each(drop);
        chain(DEPTH).into_iter().rev().for_each(drop);
        let mut tokens = chain(DEPTH);
        tokens.drain(1..DEPTH - 1);
        tokens[0].cancel();
        assert!(tokens[1].is_cancelled());
    });
    thread.expect("a thread").join().expect("no overflow");
}

#[test]
fn a_tree_of_tokens_may_be_deep() {
    const DEPTH: usize = 100_000;
    let _watch = watchdog::start();
    let cancelled = chain(DEPTH);
    let leaf = cancelled[DEPTH - 1].clone();
    let mut waiter = waiting(leaf.cancelled());
    cancelled[0].cancel();
    waiter.woken_and_ready();
    drop(waiter);
    drop(cancelled);
    // Dropped from the root down, from the leaf up, and only the leaf kept.
    drop(chain(DEPTH));
    chain(DEPTH).into_iter().rev().for_each(drop);
    let leaf = chain(DEPTH).pop();
    drop(leaf);
}

#[test]
fn children_of_a_dropped_token_hang_on_its_parent() {
    let root = CancellationToken::new();
    let [before, middle, after] = [(); 3].map(|()| root.child_token());
    let leaves = [(); 3].map(|()| middle.child_token());
    drop(middle);
    leaves[1].cancel();
    assert!(!leaves[0].is_cancelled() && !root.is_cancelled());
    root.cancel();
    let all = [&before, &after, &leaves[0], &leaves[2]];
    assert!(all.into_iter().all(CancellationToken::is_cancelled));
}

#[test]
fn children_outlive_the_token_they_began_with() {
    let root = CancellationToken::new();
    let child = root.child_token();
    drop(root);
    let grandchild = child.child_token();
    assert!(!grandchild.is_cancelled());
    child.cancel();
    assert!(grandchild.is_cancelled());
}

#[test]
fn tokens_are_equal_to_their_clones() {
    let token = CancellationToken::new();
    assert_eq!(token, token.clone());
    assert_ne!(token, token.child_token());
    assert_eq!(format!("{token:?}"), "CancellationToken { is_cancelled: false }");
    assert!(format!("{:?}{:?}", token.cancelled(), token.drop_guard_ref()).contains("Wait"));
}

#[test]
fn all_waiters_in_a_tree_are_woken_once() {
    let (root, calls) = (CancellationToken::new(), WakeCount::new());
    let mut tokens = vec![root.clone()];
    let mut waiting = Vec::new();
    for number in 0..100 {
        tokens.push(tokens[number / 3].child_token());
        waiting.extend([(); 3].map(|()| in_line(&tokens[number], &calls)));
    }
    drop(waiting.split_off(200));
    root.cancel();
    root.cancel();
    assert_eq!(calls.count(), 200);
    assert!(waiting.iter_mut().all(|waiting| poll_once(waiting).is_ready()));
    assert!(waiting.iter_mut().all(|waiting| poll_once(waiting).is_ready()), "they stay so");
}

/// No lock is held while wakers are called, so they may do anything with the tree.
#[test]
fn a_waker_may_change_the_tree() {
    let _watch = watchdog::start();
    let root = CancellationToken::new();
    let children = [(); 100].map(|()| root.child_token());
    let others = Arc::new(Mutex::new(children[50..].to_vec()));
    let calls = WakeCount::doing({
        let (root, others) = (root.clone(), others.clone());
        move || {
            assert!(root.child_token().is_cancelled());
            root.cancel();
            let other = others.lock().unwrap().pop();
            drop(other);
        }
    });
    let mut waiting: Vec<_> = children[..50].iter().map(|child| in_line(child, &calls)).collect();
    drop(children);
    root.cancel();
    assert_eq!((calls.count(), others.lock().unwrap().len()), (50, 0));
    assert!(waiting.iter_mut().all(|waiting| poll_once(waiting).is_ready()));
}

#[test]
fn a_waker_that_panics_does_not_keep_others_from_being_cancelled() {
    let (root, bad, calls) = (CancellationToken::new(), WakeCount::panicking(), WakeCount::new());
    let child = root.child_token();
    let mut waiting = [(&root, &bad), (&root, &calls), (&child, &bad), (&child, &calls)]
        .map(|(token, calls)| in_line(token, calls));
    root.cancel();
    assert_eq!((bad.count(), calls.count()), (2, 2));
    assert!(waiting.iter_mut().all(|waiting| poll_once(waiting).is_ready()));
}

#[test]
fn a_run_is_not_polled_if_its_token_is_cancelled_and_else_comes_first() {
    let token = CancellationToken::new();
    {
        let mut run = pin!(token.run_until_cancelled(async {
            // The token is cancelled in the poll in which the future completes.
            token.cancel();
            5
        }));
        assert_eq!(poll_once(&mut run), Poll::Ready(Some(5)));
    }
    let never = poll_fn(|_| -> Poll<()> { panic!("it was polled") });
    assert_eq!(now(token.run_until_cancelled(never)), None);
    let never = poll_fn(|_| -> Poll<()> { panic!("it was polled") });
    assert_eq!(now(token.run_until_cancelled_owned(never)), None);
}

#[test]
fn a_run_that_is_cancelled_drops_its_future() {
    let (tally, token, calls) = (Tally::new(), CancellationToken::new(), WakeCount::new());
    let held = tally.token();
    let mut run = Box::pin(token.child_token().run_until_cancelled_owned(async move {
        held.keep();
        pending::<()>().await
    }));
    assert!(calls.poll(run.as_mut()).is_pending());
    token.cancel();
    assert_eq!((calls.count(), calls.poll(run.as_mut())), (1, Poll::Ready(None)));
    tally.assert_all_dropped(1);
}

#[test]
fn waiting_for_a_cancellation_takes_budget() {
    let token = CancellationToken::new();
    token.cancel();
    assert_eq!(completed_in_one_poll(|| token.cancelled()), 128);
}

#[test]
fn a_tree_that_many_threads_change_is_cancelled_whole() {
    let _watch = watchdog::start();
    let rt = workers(4);
    for _round in 0..50 {
        let root = CancellationToken::new();
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let token = root.child_token();
                rt.spawn(async move {
                    let mut tokens = vec![token.clone()];
                    // Creates and drops children until all tokens are cancelled.
                    while !token.is_cancelled() {
                        let child = tokens[tokens.len() / 2].child_token();
                        tokens.push(child);
                        if tokens.len() > 20 {
                            tokens.swap_remove(7);
                            tokens.truncate(10);
                        }
                        blitz_io::task::yield_now().await;
                    }
                    for token in &tokens {
                        assert!(token.is_cancelled(), "one was forgotten");
                        token.cancelled().await;
                    }
                })
            })
            .collect();
        let waiting = rt.spawn(root.child_token().child_token().cancelled_owned());
        root.cancel();
        rt.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
            waiting.await.unwrap();
        });
    }
}

/// A simple model of the tree, in which every node knows its parent.
#[derive(Default)]
struct Simple {
    /// The parent of each node, and whether the node is cancelled.
    nodes: Vec<(Option<usize>, bool)>,
}

impl Simple {
    fn is_cancelled(&self, node: usize) -> bool {
        self.nodes[node].1 || self.nodes[node].0.is_some_and(|parent| self.is_cancelled(parent))
    }
}

proptest! {
    #[test]
    fn a_tree_behaves_as_a_simple_one(steps in prop::collection::vec((0u8..10, 0usize..64), 0..120)) {
        let mut simple = Simple { nodes: vec![(None, false)] };
        let mut tokens = vec![(0, CancellationToken::new())];
        for (step, at) in steps {
            if tokens.is_empty() {
                break;
            }
            let at = at % tokens.len();
            match step {
                0..=5 => {
                    let (parent, child) = (tokens[at].0, tokens[at].1.child_token());
                    simple.nodes.push((Some(parent), false));
                    tokens.push((simple.nodes.len() - 1, child));
                }
                6 => {
                    tokens[at].1.cancel();
                    simple.nodes[tokens[at].0].1 = true;
                }
                7 => {
                    let (node, token) = (tokens[at].0, tokens[at].1.clone());
                    tokens.push((node, token));
                }
                _ => drop(tokens.swap_remove(at)),
            }
            for (node, token) in &tokens {
                prop_assert_eq!(token.is_cancelled(), simple.is_cancelled(*node));
            }
        }
    }
}
