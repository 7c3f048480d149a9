//! The tree of cancellation tokens: how nodes are linked, and how a subtree is cancelled.
//!
//! # Protocol
//! The links of all nodes of a tree belong to the thread that holds the lock of its first
//! node.
//! ```text
//! a child is created     locks; is linked to its parent, unless that is cancelled: then
//!                        it is cancelled too
//! the last reference     locks; its children become children of its parent; it leaves
//! to a node is dropped     its siblings, or the list of nodes that are being cancelled;
//!                        then it is freed
//! a node is cancelled
//! T1 locks; leaves its siblings
//! T2 becomes the head of a list, to which all below it are added, breadth first: the
//!    links to siblings are the list
//! T3 opens the latches of all, from the end: children before their parents
//! T4 dismisses the waiters of the latches, one wake list at a time; in between the
//!    lock is released and the list is woken; a node without waiters leaves the list
//!    of nodes
//! ```
//! The head stays alive during T4, because the caller has a reference to it. Other nodes on
//! the list may end meanwhile: they leave it under the lock, and by then no task waits on
//! them. A node of such a list has no children and gets none, because it is cancelled.
//!
//! # Invariants
//! - A node in a tree or a list is alive: it leaves under the lock before it is freed.
//! - A thread that sees a token cancelled sees all below it cancelled (T3).
//! - The first node of a tree lives as long as any other node of it. It has no parent, so it
//!   is in no list but its own.
//! - The lock of a latch may be taken under the lock of the tree, never the other way
//!   round. Wakers are called under neither.
//!
//! # Rejected
//! - A lock per node, as in `tokio-util`: to take a node out also needs the parent's lock,
//!   and the node may have another parent by the time that lock is acquired. Siblings contend
//!   for their parent's lock anyway.
//! - References from children to parents: a deep tree would be freed by recursion, or by
//!   a loop that avoids it, and would keep every dropped ancestor alive.
//! - `Arc`, with the removal in `Drop`: `Drop` has an exclusive reference to a node that
//!   other threads still reach through the tree.
//!
//! # Checked by
//! `a_child_born_against_a_cancellation_is_cancelled`,
//! `a_cancellation_against_a_wait_against_a_drop`, `the_drop_of_a_child_against_a_cancellation`,
//! `the_drop_of_a_middle_node_against_a_cancellation`,
//! `a_parent_that_is_cancelled_has_cancelled_children`,
//! `two_cancellations_of_parent_and_child_wake_once`,
//! `a_wake_list_of_a_cancellation_against_drops`; weakened as `tree_birth_looks`,
//! `tree_children_first`, `tree_children_move_up`, `tree_wakes`, `tree_lock`.

use std::{ops::Deref, ptr::NonNull};

use crate::{
    engine::{
        prim::{
            AtomicUsize, Mutex,
            Ordering::{AcqRel, Relaxed},
            UnsafeCell, lock, weakened,
        },
        wait::wake_list::WakeList,
    },
    sync::latch::Latch,
};

/// Reference count above which `clone` aborts, so that the count cannot wrap; the limit of
/// std's `Arc`.
const TOO_MANY: usize = isize::MAX as usize;

/// A counted reference to a node.
pub(crate) struct NodeRef(NonNull<Node>);

// SAFETY: a node is `Sync`, so references to it may be sent to other threads, and any thread
// may free it.
unsafe impl Send for NodeRef {}
// SAFETY: a shared `NodeRef` only gives out `&Node`, and a node is `Sync`.
unsafe impl Sync for NodeRef {}

/// State of one token, shared by all its clones.
pub(crate) struct Node {
    references: AtomicUsize,
    /// Open if the token is cancelled.
    pub(crate) latch: Latch,
    /// The first node of the tree; `None` if this is the first.
    first: Option<NodeRef>,
    /// The lock of the tree; used only in its first node.
    tree: Mutex<()>,
    /// The neighbours in the tree; guarded by the lock of the tree.
    links: UnsafeCell<Links>,
}

type Link = Option<NonNull<Node>>;

#[derive(Clone, Copy, Default)]
struct Links {
    parent: Link,
    /// The previous sibling, or the previous node of a list; `behind` is the next one.
    before: Link,
    behind: Link,
    child: Link,
}

// SAFETY: the links are guarded by the lock of the tree, and lead to nodes, which may be
// reached from any thread.
unsafe impl Send for Node {}
// SAFETY: the links are guarded by the lock of the tree, the other fields are `Sync`
// themselves.
unsafe impl Sync for Node {}

impl NodeRef {
    /// Creates the first node of a new tree.
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
        // A pointer instead of the `Box`, because a `Box` may not be aliased.
        Self(NonNull::from(Box::leak(node)))
    }

    /// Creates a new node that is a child of this one.
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
        // SAFETY: 1. we hold the lock, and all three nodes are of this tree. 2. The closures reach
        // no links but those they are given.
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
        // AcqRel: everything done with the node happens before it is freed. Pairs with itself.
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
        // SAFETY: a node lives as long as a reference to it, and only shared references to it are
        // given out.
        unsafe { self.0.as_ref() }
    }
}

impl PartialEq for NodeRef {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Node {
    /// Returns the lock of the tree.
    fn tree(&self) -> &Mutex<()> {
        self.first.as_deref().map_or(&self.tree, |first| &first.tree)
    }

    /// Calls `f` with the links of this node.
    ///
    /// # Safety
    /// 1. The caller holds the lock of the tree.
    /// 2. `f` reaches the links of this node in no other way.
    unsafe fn with_links<R>(&self, f: impl FnOnce(&mut Links) -> R) -> R {
        // SAFETY: by our obligation 1 no other thread has a reference to the links, and by 2 this
        // thread has none either.
        self.links.with_mut(|links| f(unsafe { &mut *links }))
    }

    /// Cancels this node and all below it, and wakes their waiters (T1 to T4).
    #[cold]
    pub(crate) fn cancel(&self) {
        let mut wake_list = WakeList::new();
        let mut tree = lock(self.tree());
        if self.latch.is_open() {
            return;
        }
        // SAFETY: 1. we hold the lock. 2. The node is not cancelled, and only cancelled nodes are
        // in a list.
        unsafe { self.cancel_all() };
        // SAFETY: 1. we hold the lock, and take it again after each release below. 2. We have
        // cancelled this node.
        while unsafe { self.dismiss(&mut wake_list) } {
            drop(tree);
            wake_list.wake_all();
            tree = lock(self.tree());
        }
        drop(tree);
        wake_list.wake_all();
    }

    /// Cancels this node and all below it, and makes them a list, without waking (T1 to T3).
    ///
    /// # Safety
    /// 1. The caller holds the lock of the tree.
    /// 2. The node is not in a list.
    unsafe fn cancel_all(&self) {
        let this = NonNull::from(self);
        let (mut end, mut next) = (this, Some(this));
        // SAFETY: 1. by our obligation 1 the lock is held, here and below. 2. The steps reach one
        // node at a time. Nodes in a tree or a list are alive.
        unsafe {
            self.unlink();
            while let Some(node) = next {
                end = node.as_ref().move_children(end, None);
                next = node.as_ref().with_links(|links| links.behind);
            }
        }
        let mut next = Some(if weakened!("tree_children_first") { this } else { end });
        while let Some(node) = next {
            // SAFETY: 1. the lock is held by our obligation 1. 2. The closure reaches one node.
            // Nodes in a list are alive.
            unsafe {
                node.as_ref().latch.mark();
                next = node.as_ref().with_links(|links| {
                    if weakened!("tree_children_first") { links.behind } else { links.before }
                });
            }
        }
    }

    /// Moves the children of this node behind `end`, under another parent or none; returns the
    /// new end.
    ///
    /// # Safety
    /// 1. The caller holds the lock of the tree, to which `end` belongs too.
    unsafe fn move_children(&self, mut end: NonNull<Node>, parent: Link) -> NonNull<Node> {
        // SAFETY: 1. by our obligation 1 the lock is held, here and below. 2. The closures reach
        // one node at a time. Nodes in a tree or a list are alive.
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

    /// Dismisses waiters of a cancelled subtree (T4); returns `true` if it stopped because the wake
    /// list is full.
    ///
    /// # Safety
    /// 1. The caller holds the lock of the tree.
    /// 2. It has cancelled this node.
    unsafe fn dismiss(&self, wake_list: &mut WakeList) -> bool {
        if self.latch.dismiss(wake_list) {
            return true;
        }
        // SAFETY: 1. by our obligation 1 the lock is held. 2. The closure only reads a field.
        while let Some(next) = unsafe { self.with_links(|links| links.behind) } {
            // SAFETY: nodes in a list are alive while the lock is held.
            let next = unsafe { next.as_ref() };
            if !weakened!("tree_wakes") && next.latch.dismiss(wake_list) {
                return true;
            }
            // SAFETY: 1. by our obligation 1 the lock is held.
            unsafe { next.unlink() };
        }
        false
    }

    /// Takes the node out of its tree or list; its children take its place.
    ///
    /// # Safety
    /// 1. The caller holds the lock of the tree.
    unsafe fn leave(&self) {
        let this = NonNull::from(self);
        // SAFETY: 1. by our obligation 1 the lock is held, here and below. 2. The closures reach
        // one node at a time. Nodes in a tree or a list are alive.
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

    /// Takes the node out of the list of its siblings, or of the nodes being cancelled.
    ///
    /// # Safety
    /// 1. The caller holds the lock of the tree.
    unsafe fn unlink(&self) {
        // SAFETY: 1. by our obligation 1 the lock is held, here and below. 2. The closures reach
        // one node at a time. Neighbours are alive.
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
        // SAFETY: by our obligation 1 there is no other reference, so only we free the node.
        let this = unsafe { node.as_ref() };
        // The first node of a tree is freed last, when it has neither children nor a parent.
        if this.first.is_some() {
            let tree = (!weakened!("tree_lock")).then(|| lock(this.tree()));
            // SAFETY: 1. we hold the lock.
            unsafe { this.leave() };
            drop(tree);
        }
        // SAFETY: the node was created by a `Box`, there is no reference to it, and no link leads
        // here. Dropping it drops at most one more node: the first of the tree.
        drop(unsafe { Box::from_raw(node.as_ptr()) });
    }
}

#[cfg(test)]
mod models;
#[cfg(all(test, not(blitz_loom)))]
mod tests;
