//! Tests that a tree keeps nothing of tokens that were dropped.

use super::NodeRef;
use crate::engine::prim::{Ordering::Relaxed, lock};

/// Returns the number of children of a node, and the number of references to it.
fn shape(node: &NodeRef) -> (usize, usize) {
    let _tree = lock(node.tree());
    let mut count = 0;
    // SAFETY: 1. we hold the lock of the tree. 2. The closures only read a field. Nodes in a
    // tree are alive.
    unsafe {
        let mut next = node.with_links(|links| links.child);
        while let Some(child) = next {
            count += 1;
            next = child.as_ref().with_links(|links| links.behind);
        }
    }
    (count, node.references.load(Relaxed))
}

#[test]
fn a_million_children_that_come_and_go_leave_nothing() {
    let root = NodeRef::new();
    let kept = [root.child(), root.child()];
    for _ in 0..1_000_000 {
        drop(root.child());
    }
    assert_eq!(shape(&root), (2, 3));
    drop(kept);
    assert_eq!(shape(&root), (0, 1));
}

#[test]
fn a_chain_of_descendants_of_which_one_lives_stays_short() {
    let root = NodeRef::new();
    let mut last = root.child();
    for _ in 0..1_000 {
        last = last.child();
    }
    assert_eq!(shape(&root), (1, 2), "the root, and the one that lives");
    drop(last);
    assert_eq!(shape(&root), (0, 1));
}

#[test]
fn a_cancelled_tree_hangs_on_nothing() {
    let root = NodeRef::new();
    let child = root.child();
    let leaves = [child.child(), child.child()];
    child.cancel();
    assert_eq!((shape(&root).0, shape(&child).0), (0, 0));
    // A child of a cancelled token is cancelled from the start, and is a tree of its own.
    assert!(child.child().first.is_none());
    drop((leaves, child));
    assert_eq!(shape(&root), (0, 1));
}

#[test]
fn a_node_is_small() {
    assert!(size_of::<super::Node>() <= 96, "{}", size_of::<super::Node>());
}
