//! Tests that a member of a set costs no allocation besides its cell, and that cells are recycled.

use blitz_io::task::JoinSet;

use crate::{counting_allocator::OfThread, support::runtimes::one_thread};

#[test]
fn a_thousand_members_in_recycled_cells_allocate_for_the_set_alone() {
    let rt = one_thread();
    rt.block_on(rt.spawn(async {
        for round in 0..3 {
            let before = OfThread::now();
            let mut set = JoinSet::new();
            for n in 0..1000u64 {
                set.spawn(async move { n });
            }
            let mut sum = 0;
            while let Some(output) = set.join_next().await {
                sum += output.unwrap();
            }
            drop(set);
            let allocations = OfThread::now().since(before).allocations;
            assert_eq!(sum, 499_500);
            match round {
                0 => assert!(allocations < 1100, "{allocations} for a thousand new members"),
                _ => assert!(allocations <= 1, "{allocations} for recycled ones"),
            }
        }
    }))
    .expect("the counts are right");
}
