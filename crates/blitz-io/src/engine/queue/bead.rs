//! Test items for the queues: numbered beads that count their drops.

use std::{ptr::NonNull, sync::Arc};

use super::{
    Chain, Link, Linked,
    list::{Links, Listed},
};

/// Counts, per value, how often a bead was dropped.
///
/// The counters are plain and behind a standard lock, because a model must not explore the
/// ledger.
#[derive(Clone)]
pub(crate) struct Ledger(Arc<std::sync::Mutex<Vec<u32>>>);

impl Ledger {
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

/// The node that a [`Bead`] owns.
pub(crate) struct Strung {
    link: Link<Strung>,
    links: Links<Strung>,
    value: u32,
    panics: bool,
    ledger: Option<Ledger>,
}

/// An owned, numbered item. Not a box, because tests keep its address as well.
pub(crate) struct Bead(NonNull<Strung>);

// SAFETY: a bead is the only owner of its node, and all parts of a node are `Send`.
unsafe impl Send for Bead {}

impl Bead {
    /// Creates a bead without a ledger.
    pub(crate) fn new(value: u32) -> Self {
        Self::string(value, false, None)
    }

    /// Creates a bead that counts its drop in `ledger`.
    pub(crate) fn in_ledger(value: u32, ledger: &Ledger) -> Self {
        Self::string(value, false, Some(ledger.clone()))
    }

    /// Creates a bead that panics when it is dropped, after it was counted.
    pub(crate) fn that_panics(value: u32, ledger: &Ledger) -> Self {
        Self::string(value, true, Some(ledger.clone()))
    }

    fn string(value: u32, panics: bool, ledger: Option<Ledger>) -> Self {
        let (link, links) = (Link::new(), Links::new());
        let strung = Box::new(Strung { link, links, value, panics, ledger });
        Self(NonNull::from(Box::leak(strung)))
    }

    pub(crate) fn value(&self) -> u32 {
        // SAFETY: the node lives as long as its bead.
        unsafe { self.0.as_ref() }.value
    }

    /// Returns the node's address, as the remover of a list member knows it.
    pub(crate) fn ptr(&self) -> NonNull<Strung> {
        self.0
    }
}

impl Drop for Bead {
    fn drop(&mut self) {
        // SAFETY: `string` leaked this box, and a bead is dropped once.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl Drop for Strung {
    fn drop(&mut self) {
        if let Some(ledger) = &self.ledger {
            ledger.0.lock().unwrap()[self.value as usize] += 1;
        }
        assert!(!self.panics, "this bead was told to panic");
    }
}

/// Returns the values of a chain, in its order.
pub(crate) fn values(mut chain: Chain<Bead>) -> Vec<u32> {
    std::iter::from_fn(|| chain.pop_front()).map(|bead| bead.value()).collect()
}

// SAFETY: 1. a bead is its pointer. 2. the node is on the heap until a bead is dropped. 3. the
// link is a private field that nothing else here touches.
unsafe impl Linked for Bead {
    type Node = Strung;

    fn into_ptr(self) -> NonNull<Strung> {
        std::mem::ManuallyDrop::new(self).0
    }

    unsafe fn from_ptr(ptr: NonNull<Strung>) -> Self {
        Self(ptr)
    }

    unsafe fn link(ptr: NonNull<Strung>) -> NonNull<Link<Strung>> {
        // SAFETY: the node is alive (obligation 1 of `link`), so its field has an address.
        unsafe { NonNull::new_unchecked(&raw mut (*ptr.as_ptr()).link) }
    }
}

// SAFETY: 1. a bead is its pointer. 2. the node is on the heap until a bead is dropped. 3.
// `links` is a private field that nothing else here touches.
unsafe impl Listed for Bead {
    type Node = Strung;

    fn into_ptr(self) -> NonNull<Strung> {
        Linked::into_ptr(self)
    }

    unsafe fn from_ptr(ptr: NonNull<Strung>) -> Self {
        // SAFETY: obligations 1 and 2 are the same, and our caller meets them.
        unsafe { <Self as Linked>::from_ptr(ptr) }
    }

    unsafe fn links(ptr: NonNull<Strung>) -> NonNull<Links<Strung>> {
        // SAFETY: the node is alive (obligation 1 of `links`), so its field has an address.
        unsafe { NonNull::new_unchecked(&raw mut (*ptr.as_ptr()).links) }
    }
}
