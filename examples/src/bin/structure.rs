//! Tasks that belong together: a scope, a set, blocking work, and a dump of live tasks.
//!
//! A scope ends after everything that was started in it, so no task is left behind to run by
//! itself. Blocking work runs on threads of its own, and its queue has a bound that can be awaited.

#![forbid(unsafe_code)]

use blitz_io::{
    runtime::{Builder, Handle},
    task::{self, JoinSet},
};

fn main() -> std::io::Result<()> {
    let runtime = Builder::new_multi_thread().max_blocking_queue(4).build()?;
    let (lines, squares) = runtime.block_on(async {
        task::scope(|scope| async move {
            // Both run concurrently; the scope waits for both, whatever happens.
            let lines = scope.spawn(count_lines());
            let squares = scope.spawn(sum_of_squares(100));
            (lines.await.expect("it does not panic"), squares.await.expect("nor does this"))
        })
        .await
    });
    println!("{lines} lines of source, and squares that sum to {squares}");
    assert!(lines > 0);
    assert_eq!(squares, 338_350);
    assert_eq!(runtime.handle().dump_now().tasks().iter().count(), 0, "nothing was left behind");
    Ok(())
}

/// Counts lines. Reading blocks, so it runs on blocking threads; no more than four readers wait for
/// one at a time.
async fn count_lines() -> usize {
    let mut readers = Vec::new();
    for text in [include_str!("structure.rs"), include_str!("hello_tasks.rs")] {
        let reader = task::spawn_blocking_bounded(move || text.lines().count()).await;
        readers.push(reader.expect("the runtime is not shutting down"));
    }
    let mut lines = 0;
    for reader in readers {
        lines += reader.await.expect("reading does not panic");
    }
    lines
}

/// Sums squares with a set, which yields results in the order in which its tasks end.
async fn sum_of_squares(up_to: u64) -> u64 {
    let mut set = JoinSet::new();
    for n in 1..=up_to {
        set.build_task().name("square").spawn(async move { n * n }).expect("it always works");
    }
    // A dump lists all live tasks, and what they do.
    let alive = Handle::current().dump().await.tasks().iter().count();
    assert!(alive >= 1, "this task, at least");
    let mut sum = 0;
    while let Some(square) = set.join_next().await {
        sum += square.expect("no square panics");
    }
    sum
}
