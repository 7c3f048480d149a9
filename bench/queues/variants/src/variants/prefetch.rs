//! Prefetches the next item's header before it is needed.

use crate::engine::queue::{Linked, ring::RingOwner};

/// Takes the oldest item, and prefetches the header of the item that comes next.
#[inline]
pub(crate) fn pop<T: Linked>(owner: &mut RingOwner<T>) -> Option<T> {
    let item = owner.pop();
    if let Some(next) = owner.next_hint() {
        prefetch(next.as_ptr());
    }
    item
}

/// Gives the processor a prefetch hint. Does nothing where there is no stable way to give one.
#[inline(always)]
fn prefetch<N>(node: *const N) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint: it reads nothing and faults on no address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(node.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = node;
}

#[cfg(test)]
mod tests {
    use crate::engine::{
        prim::model,
        queue::{
            ring::{Pushed, ring},
            test_node::TestNode,
        },
    };

    #[test]
    fn a_hint_survives_the_item_it_points_at() {
        model(|| {
            let (mut owner, thief) = ring();
            for value in 0..3 {
                assert!(matches!(owner.push(TestNode::new(value)), Pushed::Kept));
            }
            let (mut target, _) = ring();
            drop(thief.steal_half_into(&mut target));
            // The owner has not seen the steal yet, so its hint is the address of a freed node.
            assert!(owner.next_hint().is_some());
            assert_eq!(super::pop(&mut owner).map(|item| item.value()), Some(2));
            assert!(owner.next_hint().is_none());
        });
    }
}
