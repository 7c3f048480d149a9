//! `CancellationToken`: a tree that is cancelled from any node down.

use std::future::{pending, ready};

use blitz_io::sync::CancellationToken;

use crate::{
    polled::{by_hand, now, waiting},
    tally::Tally,
    watch,
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
    crate::caught::panic_of(|| {
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
    let _watch = watch::begin();
    let root = CancellationToken::default();
    let children: Vec<_> = (0..1000).map(|_| root.child_token()).collect();
    let leaves: Vec<_> = children.iter().map(CancellationToken::child_token).collect();
    root.cancel();
    assert!(children.iter().chain(&leaves).all(CancellationToken::is_cancelled));
}

#[test]
fn cancelling_while_children_come_and_go_misses_none() {
    let _watch = watch::begin();
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
