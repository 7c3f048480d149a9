//! Test items for the queues: numbered nodes that count their drops.

use std::{ptr::NonNull, sync::Arc};

use super::{
    Chain, Link, Linked,
    list::{Links, Listed},
};

/// Counts, per value, how often a test node was dropped.
///
/// The counters are plain and behind a standard lock, because a model must not explore this
/// counter.
#[derive(Clone)]
pub(crate) struct DropCounter(Arc<std::sync::Mutex<Vec<u32>>>);

impl DropCounter {
    pub(crate) fn new(values: u32) -> Self {
        Self(Arc::new(std::sync::Mutex::new(vec![0; values as usize])))
    }

    pub(crate) fn dropped(&self, value: u32) -> u32 {
        self.0.lock().unwrap()[value as usize]
    }

    #[track_caller]
    pub(crate) fn assert_each_dropped_once(&self) {
        let drops = self.0.lock().unwrap();
        assert!(drops.iter().all(|&count| count == 1), "drops per value: {drops:?}");
    }
}

/// The node that a [`TestNode`] owns.
pub(crate) struct TestNodeData {
    link: Link<TestNodeData>,
    links: Links<TestNodeData>,
    value: u32,
    panics: bool,
    counter: Option<DropCounter>,
}

/// An owned, numbered item. Not a box, because tests keep its address as well.
pub(crate) struct TestNode(NonNull<TestNodeData>);

// SAFETY: a test node is the only owner of its node, and all parts of a node are `Send`.
unsafe impl Send for TestNode {}

impl TestNode {
    /// Creates a node without a counter.
    pub(crate) fn new(value: u32) -> Self {
        Self::create(value, false, None)
    }

    /// Creates a test node that counts its drop in `counter`.
    pub(crate) fn counted(value: u32, counter: &DropCounter) -> Self {
        Self::create(value, false, Some(counter.clone()))
    }

    /// Creates a test node that panics when it is dropped, after it was counted.
    pub(crate) fn that_panics(value: u32, counter: &DropCounter) -> Self {
        Self::create(value, true, Some(counter.clone()))
    }

    fn create(value: u32, panics: bool, counter: Option<DropCounter>) -> Self {
        let (link, links) = (Link::new(), Links::new());
        let data = Box::new(TestNodeData { link, links, value, panics, counter });
        Self(NonNull::from(Box::leak(data)))
    }

    pub(crate) fn value(&self) -> u32 {
        // SAFETY: the node lives as long as its test node.
        unsafe { self.0.as_ref() }.value
    }

    /// Returns the node's address, as the remover of a list member knows it.
    pub(crate) fn ptr(&self) -> NonNull<TestNodeData> {
        self.0
    }
}

impl Drop for TestNode {
    fn drop(&mut self) {
        // SAFETY: `create` leaked this box, and a test node is dropped once.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl Drop for TestNodeData {
    fn drop(&mut self) {
        if let Some(counter) = &self.counter {
            counter.0.lock().unwrap()[self.value as usize] += 1;
        }
        assert!(!self.panics, "this node panics when it is dropped");
    }
}

/// Returns the values of a chain, in its order.
pub(crate) fn values(mut chain: Chain<TestNode>) -> Vec<u32> {
    std::iter::from_fn(|| chain.pop_front()).map(|item| item.value()).collect()
}

// SAFETY: 1. a test node is its pointer. 2. the node is on the heap until a test node is dropped.
// 3. the link is a private field that nothing else here touches.
unsafe impl Linked for TestNode {
    type Node = TestNodeData;

    fn into_ptr(self) -> NonNull<TestNodeData> {
        std::mem::ManuallyDrop::new(self).0
    }

    unsafe fn from_ptr(ptr: NonNull<TestNodeData>) -> Self {
        Self(ptr)
    }

    unsafe fn link(ptr: NonNull<TestNodeData>) -> NonNull<Link<TestNodeData>> {
        // SAFETY: the node is alive (obligation 1 of `link`), so its field has an address.
        unsafe { NonNull::new_unchecked(&raw mut (*ptr.as_ptr()).link) }
    }
}

// SAFETY: 1. a test node is its pointer. 2. the node is on the heap until a test node is dropped.
// 3. `links` is a private field that nothing else here touches.
unsafe impl Listed for TestNode {
    type Node = TestNodeData;

    fn into_ptr(self) -> NonNull<TestNodeData> {
        Linked::into_ptr(self)
    }

    unsafe fn from_ptr(ptr: NonNull<TestNodeData>) -> Self {
        // SAFETY: `Linked::from_ptr` demands what `Listed::from_ptr` does, and our caller meets it.
        unsafe { <Self as Linked>::from_ptr(ptr) }
    }

    unsafe fn links(ptr: NonNull<TestNodeData>) -> NonNull<Links<TestNodeData>> {
        // SAFETY: the node is alive (obligation 1 of `links`), so its field has an address.
        unsafe { NonNull::new_unchecked(&raw mut (*ptr.as_ptr()).links) }
    }
}
