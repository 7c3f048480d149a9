//! The nodes of tokens: who hangs on whom, and what happens to all below one.
//!
//! # Protocol
//! The links of all nodes of a tree belong to whoever has the lock of its first node.
//! ```text
//! a child is born        locks; hangs on its parent, unless that is cancelled: then it
//!                        is cancelled too
//! the last reference     locks; its children hang on its parent from now on; it leaves
//! of a node goes           its siblings, or the list of those who are being cancelled;
//!                        then it is freed
//! a node is cancelled
//! T1 locks; leaves its siblings
//! T2 becomes the head of a list, to which all below it are added, breadth first: the
//!    links to siblings are the list
//! T3 opens the latches of all, from the end: children before their parents
//! T4 dismisses those who wait at the latches, in batches; between them the lock is let
//!    go and the batch is woken; a node that nobody waits at leaves the list
//! ```
//! The head stays alive during T4, for its caller has a reference. Others on the list
//! may end meanwhile: they leave it under the lock, and by then nobody waits at them.
//! Nobody hangs on a node of such a list, nor will: it is cancelled.
//!
//! # Invariants
//! - A node in a tree or a list is alive: it leaves under the lock before it is freed.
//! - Who sees a token cancelled sees all below it cancelled (T3).
//! - The first node of a tree lives as long as any other of it. It has no parent, so it
//!   is in no list but its own.
//! - A lock of a latch may be taken under the lock of the tree, never the other way
//!   round. Wakers are called under neither.
//!
//! # Rejected
//! - A lock per node, as `tokio-util` has it: to take a node out needs the parent's lock
//!   too, which may be another one by the time it is had. Siblings meet at their
//!   parent's lock anyway.
//! - References from children to parents: a deep tree would be freed by recursion, or by
//!   a loop that undoes one, and would keep every dropped ancestor.
//! - `Arc`, with the way out in `Drop`: that has a unique reference to a node which
//!   others still reach through the tree.
//!
//! # Checked by
//! `a_child_born_against_a_cancellation_is_cancelled`,
//! `a_cancellation_against_a_wait_against_a_drop`,
//! `the_drop_of_a_child_against_a_cancellation`,
//! `the_drop_of_a_middle_node_against_a_cancellation`,
//! `a_parent_that_is_cancelled_has_cancelled_children`,
//! `two_cancellations_of_parent_and_child_wake_once`,
//! `a_batch_of_a_cancellation_against_drops`;
//! weakened as `tree_birth_looks`, `tree_children_first`,
//! `tree_children_move_up`, `tree_wakes`, `tree_lock`.

use std::{ops::Deref, ptr::NonNull};

use crate::{
    engine::{
        prim::{
            AtomicUsize, Mutex,
            Ordering::{AcqRel, Relaxed},
            UnsafeCell, lock, weakened,
        },
        wait::batch::Batch,
    },
    sync::latch::Latch,
};

/// More references would let the count wrap; as in std's `Arc`.
const TOO_MANY: usize = isize::MAX as usize;

/// A counted reference to a node.
pub(crate) struct NodeRef(NonNull<Node>);

// SAFETY: a node is shared by threads; see its own.
unsafe impl Send for NodeRef {}
// SAFETY: as above.
unsafe impl Sync for NodeRef {}

/// One token, however many clones it has.
pub(crate) struct Node {
    references: AtomicUsize,
    /// Open: cancelled.
    pub(crate) latch: Latch,
    /// The first of the tree; none if this is it.
    first: Option<NodeRef>,
    /// The lock of the tree, if this is its first.
    tree: Mutex<()>,
    /// Guarded by the lock of the tree.
    links: UnsafeCell<Links>,
}

type Link = Option<NonNull<Node>>;

#[derive(Clone, Copy, Default)]
struct Links {
    parent: Link,
    /// The sibling, or neighbour in a list, on either side.
    before: Link,
    behind: Link,
    child: Link,
}

// SAFETY: links are guarded by a lock, and lead to nodes, which may be reached from any
// thread.
unsafe impl Send for Node {}
// SAFETY: as above.
unsafe impl Sync for Node {}

impl NodeRef {
    /// The first of a new tree.
    pub(crate) fn new() -> Self {
        Self::of(None, false)
    }

    fn of(first: Option<NodeRef>, cancelled: bool) -> Self {
        let node = Box::new(Node {
            references: AtomicUsize::new(1),
            latch: Latch::new(cancelled),
            first,
            tree: Mutex::new(()),
            links: UnsafeCell::new(Links::default()),
        });
        // A `Box` may not be aliased; a pointer may.
        Self(NonNull::from(Box::leak(node)))
    }

    /// A new node that hangs on this one.
    pub(crate) fn child(&self) -> Self {
        if self.latch.is_open() {
            return Self::of(None, true);
        }
        let child = Self::of(Some(self.first.as_ref().unwrap_or(self).clone()), false);
        let tree = lock(self.tree());
        if self.latch.is_open() && !weakened!("tree_birth_looks") {
            drop(tree);
            child.latch.mark();
            return child;
        }
        // SAFETY: 1. we have the lock, for both are of this tree.
        unsafe {
            let next = self.with_links(|links| links.child.replace(child.0));
            child.with_links(|links| (links.parent, links.behind) = (Some(self.0), next));
            if let Some(next) = next {
                next.as_ref().with_links(|links| links.before = Some(child.0));
            }
        }
        child
    }
}

impl Clone for NodeRef {
    #[inline]
    fn clone(&self) -> Self {
        // Relaxed: we have a reference, so the count does not reach zero.
        if self.references.fetch_add(1, Relaxed) > TOO_MANY {
            std::process::abort();
        }
        Self(self.0)
    }
}

impl Drop for NodeRef {
    #[inline]
    fn drop(&mut self) {
        // AcqRel: all that was done with the node happens before it is freed. Pairs with
        // itself.
        if self.references.fetch_sub(1, AcqRel) == 1 {
            // SAFETY: 1. this was the last reference.
            unsafe { Node::free(self.0) };
        }
    }
}

impl Deref for NodeRef {
    type Target = Node;

    #[inline]
    fn deref(&self) -> &Node {
        // SAFETY: a node lives as long as a reference to it; it is only lent shared.
        unsafe { self.0.as_ref() }
    }
}

impl PartialEq for NodeRef {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Node {
    /// The lock of the tree.
    fn tree(&self) -> &Mutex<()> {
        self.first.as_deref().map_or(&self.tree, |first| &first.tree)
    }

    /// # Safety
    /// 1. The caller has the lock of the tree.
    /// 2. `f` reaches no links of this node by another way.
    unsafe fn with_links<R>(&self, f: impl FnOnce(&mut Links) -> R) -> R {
        // SAFETY: by 1. and 2. nobody else has a reference.
        self.links.with_mut(|links| f(unsafe { &mut *links }))
    }

    /// T1 to T4.
    #[cold]
    pub(crate) fn cancel(&self) {
        let mut batch = Batch::new();
        let mut tree = lock(self.tree());
        if self.latch.is_open() {
            return;
        }
        // SAFETY: 1. we have the lock. 2. It is not cancelled.
        unsafe { self.cancel_all() };
        // SAFETY: 1. we have the lock, also when it was let go and taken again.
        // 2. We have cancelled this node.
        while unsafe { self.dismiss(&mut batch) } {
            drop(tree);
            batch.wake_all();
            tree = lock(self.tree());
        }
        drop(tree);
        batch.wake_all();
    }

    /// T1 to T3.
    ///
    /// # Safety
    /// 1. The caller has the lock of the tree. 2. The node is not in a list.
    unsafe fn cancel_all(&self) {
        let this = NonNull::from(self);
        let (mut end, mut next) = (this, Some(this));
        // SAFETY: 1. by 1., here and below; nodes in a tree or a list are alive, and the
        // steps reach one node at a time.
        unsafe {
            self.unlink();
            while let Some(node) = next {
                end = node.as_ref().move_children(end, None);
                next = node.as_ref().with_links(|links| links.behind);
            }
        }
        let mut next = Some(if weakened!("tree_children_first") { this } else { end });
        while let Some(node) = next {
            // SAFETY: as above.
            unsafe {
                node.as_ref().latch.mark();
                next = node.as_ref().with_links(|links| {
                    if weakened!("tree_children_first") { links.behind } else { links.before }
                });
            }
        }
    }

    /// Its children come behind `end`, under another parent or none; answers with the new
    /// end.
    ///
    /// # Safety
    /// 1. The caller has the lock of the tree, to which `end` belongs too.
    unsafe fn move_children(&self, mut end: NonNull<Node>, parent: Link) -> NonNull<Node> {
        // SAFETY: 1. by 1., here and below; nodes in a tree or a list are alive.
        unsafe {
            let mut next = self.with_links(|links| links.child.take());
            while let Some(child) = next {
                end.as_ref().with_links(|links| links.behind = Some(child));
                next = child.as_ref().with_links(|links| {
                    (links.parent, links.before) = (parent, Some(end));
                    links.behind
                });
                end = child;
            }
        }
        end
    }

    /// T4, until the batch is full: `true` then.
    ///
    /// # Safety
    /// 1. The caller has the lock of the tree. 2. It has cancelled this node.
    unsafe fn dismiss(&self, batch: &mut Batch) -> bool {
        if self.latch.dismiss(batch) {
            return true;
        }
        // SAFETY: 1. by 1., here and below; nodes in a list are alive.
        while let Some(next) = unsafe { self.with_links(|links| links.behind) } {
            // SAFETY: as above.
            let next = unsafe { next.as_ref() };
            if !weakened!("tree_wakes") && next.latch.dismiss(batch) {
                return true;
            }
            // SAFETY: as above.
            unsafe { next.unlink() };
        }
        false
    }

    /// Out of its tree or list; its children come in its place.
    ///
    /// # Safety
    /// 1. The caller has the lock of the tree.
    unsafe fn leave(&self) {
        let this = NonNull::from(self);
        // SAFETY: 1. by 1., here and below; nodes in a tree or a list are alive.
        unsafe {
            if weakened!("tree_children_move_up") {
                while let Some(child) = self.with_links(|links| links.child) {
                    child.as_ref().unlink();
                }
            }
            let Links { parent, behind, .. } = self.with_links(|links| *links);
            let end = self.move_children(this, parent);
            if end != this {
                end.as_ref().with_links(|links| links.behind = behind);
                if let Some(behind) = behind {
                    behind.as_ref().with_links(|links| links.before = Some(end));
                }
            }
            self.unlink();
        }
    }

    /// Out of the list of its siblings, or of those who are being cancelled.
    ///
    /// # Safety
    /// 1. The caller has the lock of the tree.
    unsafe fn unlink(&self) {
        // SAFETY: 1. by 1., here and below; neighbours are alive.
        unsafe {
            let Links { parent, before, behind, .. } = self.with_links(|links| {
                std::mem::replace(links, Links { child: links.child, ..Links::default() })
            });
            if let Some(behind) = behind {
                behind.as_ref().with_links(|links| links.before = before);
            }
            if let Some(before) = before {
                before.as_ref().with_links(|links| links.behind = behind);
            } else if let Some(parent) = parent {
                parent.as_ref().with_links(|links| links.child = behind);
            }
        }
    }

    /// Takes a node out of its tree and frees it.
    ///
    /// # Safety
    /// 1. The last reference is gone.
    #[cold]
    unsafe fn free(node: NonNull<Node>) {
        // SAFETY: by 1. nobody frees it but us.
        let this = unsafe { node.as_ref() };
        // The first of a tree goes last: nobody hangs on it, and it on nobody.
        if this.first.is_some() {
            let tree = (!weakened!("tree_lock")).then(|| lock(this.tree()));
            // SAFETY: 1. we have the lock.
            unsafe { this.leave() };
            drop(tree);
        }
        // SAFETY: it was made by a `Box`, nobody has a reference, and no link leads here.
        // What it drops is at most one more node: the first of the tree.
        drop(unsafe { Box::from_raw(node.as_ptr()) });
    }
}

#[cfg(test)]
mod models;
#[cfg(all(test, not(blitz_loom)))]
mod tests;
