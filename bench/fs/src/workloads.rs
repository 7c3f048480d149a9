//! The rows, and the workload of each.

use std::time::Duration;

use harness::{Metric, Row};

use crate::files::{files, not_cached};

pub(crate) const ROWS: [Row; 9] = [
    Row::new("read_4k", "fs::read of a cached file of 4 KiB, one by one"),
    Row::new("read_4k_32", "the same by 32 tasks"),
    Row::new("small_files", "fs::read of one of 10,000 cached files of 1 KiB, by 32 tasks"),
    Row::new("random_4k", "seek and read of 4 KiB at random in one cached File"),
    Row::new("cold_4k_32", "4 KiB at random in one File that is not cached, by 32 tasks"),
    Row::new("read_1m", "a read of 1 MiB in sequence from one cached File"),
    Row::new("write_1m", "a write of 1 MiB in sequence to one File"),
    Row::new("walk_1000", "an entry of a directory of 1000, with its kind"),
    Row::new("copy_1g", "fs::copy of 1 GiB").slow().with_own_threads(),
];

/// Defines a contender's module for a runtime crate.
macro_rules! contender {
    ($run:ident, $module:ident, $runtime:ident, $opened:expr, |$file:ident, $at:ident| $read:expr) => {
        mod $module {
            use super::*;

            files!($runtime);
            not_cached!($opened, |$file, $at| $read);
        }

        /// Runs a row; `None` if there is no such row.
        pub(crate) fn $run(row: &str, workers: usize, budget: Duration) -> Option<Vec<Metric>> {
            $module::on_files(row, workers, budget)
        }
    };
}

contender!(on_tokio, tokio_rows, tokio, std::convert::identity, |file, at| {
    // Tokio has no reads at an offset, so this is what its users do.
    let read = move || {
        let mut block = vec![0; BLOCK];
        std::os::unix::fs::FileExt::read_exact_at(&*file, &mut block, at).map(|()| block)
    };
    tokio::task::spawn_blocking(read).await.expect("no panic").expect("a block")
});
#[cfg(feature = "blitz")]
contender!(on_blitz, blitz_rows, blitz_io, File::from_std, |file, at| {
    let (result, block) = file.read_exact_at_owned(Vec::with_capacity(BLOCK), at).await;
    result.expect("a block");
    block
});

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that every row, with the smallest budget, ends on its own and gives plausible
    /// figures. The rows run one after the other, because they share the folder of this process.
    #[test]
    fn every_row_ends_on_every_contender() {
        for row in &ROWS {
            for workers in [1, 2].into_iter().filter(|&workers| row.runs_with(workers)) {
                let mut results = vec![on_tokio(row.name, workers, Duration::ZERO)];
                #[cfg(feature = "blitz")]
                results.push(on_blitz(row.name, workers, Duration::ZERO));
                results.push(crate::plain::run(row.name, Duration::ZERO));
                for metrics in results {
                    let metrics = metrics.unwrap_or_else(|| panic!("{} is missing", row.name));
                    let true_ish = |metric: &Metric| metric.value.is_finite() && metric.value > 0.0;
                    assert!(metrics.iter().all(true_ish), "{metrics:?}");
                }
            }
        }
        assert!(on_tokio("read_5k", 1, Duration::ZERO).is_none());
        assert!(crate::plain::run("read_5k", Duration::ZERO).is_none());
    }

    #[test]
    fn row_names_are_unique_and_lacked_by_contenders_that_there_are() {
        harness::check::names(&crate::COMPARISON);
    }
}
