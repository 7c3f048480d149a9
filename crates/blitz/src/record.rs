//! Rayon's figures, from the newest recorded run of `bench/fork`.
//!
//! The build puts the record's text in here (`build.rs`); this file finds the row in its table. A
//! recorded figure is from another day, and may be from another machine, so callers that show it
//! must say so.

// Its tests are run with ours, because cargo does not run those of a build script.
#[cfg(test)]
#[allow(dead_code, reason = "only cargo calls its `main`")]
#[path = "../build.rs"]
mod build;

/// The newest record; empty if the build found none.
const NEWEST: &str = include_str!(concat!(env!("OUT_DIR"), "/fork.md"));

/// The name of the row: a join of a tree of Fibonacci numbers, without a cut-off.
const ROW: &str = "fib (ns)";

/// The figures of the row, in nanoseconds a join.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Recorded {
    /// The date, as 2026-01-31.
    pub(crate) day: String,
    /// The processor that it was measured on.
    pub(crate) processor: String,
    pub(crate) threads: usize,
    pub(crate) rayon: f64,
    pub(crate) blitz: f64,
    pub(crate) sequential: f64,
}

/// Returns the newest record's figures for this many threads, or for the next lower number that was
/// measured.
pub(crate) fn newest(threads: usize) -> Option<Recorded> {
    read(NEWEST, threads)
}

fn read(record: &str, threads: usize) -> Option<Recorded> {
    let day = record.lines().next()?.strip_prefix("# fork, ")?.to_owned();
    let processor = record.lines().find_map(|line| line.strip_prefix("- processor: "));
    let processor = processor.and_then(|text| text.split(',').next()).unwrap_or("unknown");
    let mut table = record.lines().filter_map(cells).skip_while(|cells| cells[0] != "row");
    let heads = table.next()?;
    let rows: Vec<Vec<&str>> = table.filter(|cells| cells[0] == ROW).collect();

    let cell = |row: &[&str], head: &str| -> Option<f64> {
        let column = heads.iter().position(|it| *it == head)?;
        row.get(column)?.parse().ok()
    };
    let recorded = |row: &Vec<&str>| {
        Some(Recorded {
            day: day.clone(),
            processor: processor.to_owned(),
            threads: cell(row, "threads")? as usize,
            rayon: cell(row, "rayon")?,
            blitz: cell(row, "blitz")?,
            sequential: cell(row, "sequential")?,
        })
    };
    let mut rows: Vec<Recorded> = rows.iter().filter_map(recorded).collect();
    rows.sort_by_key(|row| row.threads);
    let below = rows.iter().rposition(|row| row.threads <= threads);
    rows.into_iter().nth(below.unwrap_or(0))
}

/// Returns the cells of a line of a table; there is at least one.
fn cells(line: &str) -> Option<Vec<&str>> {
    let line = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(line.split('|').map(str::trim).collect())
}

#[cfg(test)]
mod tests {
    use super::{NEWEST, newest, read};

    const RECORD: &str = "\
# fork, 2026-01-31

- kernel: Linux 6.18
- processor: A Processor, 4 cores (4 usable), 1 threads a core
- method: 5 rounds

Medians over rounds.

| row | threads | sequential | rayon | rayon-again | blitz | chili | blitz/rayon |
|---|---|---|---|---|---|---|---|
| fib (ns) | 1 | 2.000 | 20.000 | 20.500 | 4.000 | 5.000 | 0.200 |
| fib (ns) | 4 | 2.100 | 6.000 | 6.100 | 1.500 | 1.900 | 0.250 |
| tree_1k (ns) | 4 | 1.000 | 9.000 | 9.000 | 3.000 | – | 0.333 |

## Rows

- `fib`: a join of fibonacci(27) without a cut-off
";

    #[test]
    fn the_row_is_found_with_the_next_number_of_threads_below() {
        let two = read(RECORD, 2).unwrap();
        assert_eq!((two.day.as_str(), two.processor.as_str()), ("2026-01-31", "A Processor"));
        assert_eq!((two.threads, two.rayon, two.blitz, two.sequential), (1, 20.0, 4.0, 2.0));
        let many = read(RECORD, 64).unwrap();
        assert_eq!((many.threads, many.rayon), (4, 6.0));
        // Nothing below was measured, so the lowest is taken.
        assert_eq!(read(&RECORD.replace("| 1 |", "| 2 |"), 1).unwrap().threads, 2);
    }

    #[test]
    fn columns_go_by_their_heads_and_not_by_their_places() {
        let padded = RECORD.replace("| rayon |", "|   rayon   |");
        let swapped = padded.replace("| sequential |   rayon   |", "| rayon | sequential |");
        assert_ne!(swapped, padded);
        assert_eq!(read(&padded, 1).unwrap().rayon, 20.0);
        assert_eq!(read(&swapped, 1).unwrap().rayon, 2.0);
    }

    #[test]
    fn a_record_without_the_row_or_a_figure_gives_none() {
        assert_eq!(read("", 2), None);
        assert_eq!(read("# sched, 2026-01-31\n", 2), None);
        assert_eq!(read(&RECORD.replace("fib (ns)", "fob (ns)"), 2), None);
        assert_eq!(read(&RECORD.replace("20.000", "–").replace("6.000", "–"), 2), None);
    }

    #[test]
    fn the_record_that_was_compiled_in_is_understood() {
        assert_eq!(newest(2).is_some(), !NEWEST.is_empty(), "{NEWEST}");
    }
}
