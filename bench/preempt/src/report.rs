//! The table of lateness, with a line for each contender of a row, and the bars that blitz-io must
//! meet.

use harness::report::{Line, Run, cell, plain};

/// The paragraph above the table in a record.
pub(crate) const INTRO: &str = "Medians over rounds. Lateness of a clock of 1 ms on a fixed \
schedule, every deadline counted, also those that were missed. `hogs' work` is what the hogs got \
done, against plain threads; Go's is not counted, because its loop is another compiler's, and its \
threads are those at the end, without one that counts them. In `own-slot` the figures are how long \
the task was blocked, a second at the most; in `200-sleeps` how long all took.";

/// The metrics of lateness, in milliseconds.
const LATENESS: [&str; 4] = ["p50", "p90", "p99", "max"];

/// The most that blitz-io may be late, in milliseconds: row, metric, limit. They were set for the
/// first of the records, and all of these meet them.
const BARS: [(&str, &str, f64); 11] = [
    ("2x100", "p50", 0.3),
    ("2x100", "p99", 5.0),
    ("2x100", "max", 15.0),
    ("8x100", "p50", 0.3),
    ("8x100", "p99", 10.0),
    ("8x100", "max", 30.0),
    ("sleeps", "p50", 0.5),
    ("sleeps", "p99", 25.0),
    ("sleeps", "max", 40.0),
    ("own-slot", "max", 30.0),
    ("200-sleeps", "max", 2500.0),
];

/// The least work that the hogs of [`WITH_WORK`] must get done on blitz-io, against plain threads.
const WORK_BAR: f64 = 0.95;
const WITH_WORK: [&str; 3] = ["2x100", "8x100", "sleeps"];

/// Returns the table, as Markdown, and below it the bars that were missed.
pub(crate) fn table(run: &Run) -> String {
    let lateness = LATENESS.map(|metric| format!("{metric} ms"));
    let heads = ["row", "contender"].map(str::to_owned).into_iter().chain(lateness);
    let mut rows: Vec<Vec<String>> =
        vec![heads.chain(["hogs' work", "threads"].map(str::to_owned)).collect()];
    for row in run.comparison.rows {
        for contender in run.contenders_of(row.name) {
            let mut cells = vec![row.name.to_owned(), contender.to_owned()];
            let late = |metric: &&str| run.cell(&line(row.name, metric), contender, 2);
            cells.extend(LATENESS.iter().map(late));
            cells.push(cell(work(run, row.name, contender), 3));
            cells.push(run.cell(&line(row.name, "threads"), contender, 0));
            rows.push(cells);
        }
    }
    format!("{}\n{}\n", plain(&rows), bars(run))
}

fn line(row: &'static str, metric: &str) -> Line {
    Line { row, workers: 1, metric: metric.to_owned(), unit: String::new() }
}

/// Returns the hogs' work, as a fraction of what they get done on plain threads.
fn work(run: &Run, row: &'static str, contender: &str) -> Option<f64> {
    let line = line(row, "work");
    let on_threads = run.figure(&line, "threads").filter(|work| *work > 0.0)?;
    run.figure(&line, contender).map(|work| work / on_threads)
}

/// Returns the sentence on the bars of the rows that were measured.
fn bars(run: &Run) -> String {
    let late = BARS.iter().filter_map(|&(row, metric, bar)| {
        let late = run.figure(&line(row, metric), "blitz")?;
        Some((late > bar).then(|| format!("{row} {metric} {late:.2} ms, above {bar}")))
    });
    let idle = WITH_WORK.iter().filter_map(|&row| {
        let work = work(run, row, "blitz")?;
        Some((work < WORK_BAR).then(|| format!("{row} hogs' work {work:.3}, below {WORK_BAR}")))
    });
    let bars: Vec<Option<String>> = late.chain(idle).collect();
    let missed: Vec<&str> = bars.iter().flatten().map(String::as_str).collect();
    match (bars.len(), missed.as_slice()) {
        (0, _) => "Bars of blitz: none was measured.".into(),
        (all, []) => format!("Bars of blitz: all {all} are met."),
        (all, missed) => {
            format!("Bars of blitz: {} of {all} MISSED: {}.", missed.len(), missed.join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use harness::Metric;
    use harness::check::{run, sample};

    use super::{BARS, WITH_WORK};
    use crate::{COMPARISON, ROWS};

    fn metrics(late: f64, work: Option<f64>) -> Vec<Metric> {
        let late = ["p50", "p90", "p99", "max"].map(|name| Metric::new(name, "ms", late, None));
        let work = work.map(|work| Metric::new("work", "turns", work, None));
        late.into_iter().chain(work).chain([Metric::new("threads", "threads", 8.0, None)]).collect()
    }

    #[test]
    fn work_is_against_threads_and_missed_bars_are_named() {
        let table = run(
            &COMPARISON,
            vec![
                sample(0, "threads", "2x100", metrics(0.1, Some(200.0))),
                sample(0, "blitz", "2x100", metrics(0.3, Some(180.0))),
                sample(0, "go", "2x100", metrics(9.0, None)),
            ],
        )
        .table();
        assert!(table.contains("| 2x100 | blitz | 0.30 | 0.30 | 0.30 | 0.30 | 0.900 | 8 |"));
        assert!(table.contains("| 2x100 | go | 9.00 | 9.00 | 9.00 | 9.00 | – | 8 |"), "{table}");
        assert!(table.contains("1 of 4 MISSED: 2x100 hogs' work 0.900, below 0.95."), "{table}");
    }

    #[test]
    fn bars_that_are_met_are_counted_without_hogs_too() {
        let table =
            run(&COMPARISON, vec![sample(0, "blitz", "own-slot", metrics(16.0, Some(0.0)))]);
        let table = table.table();
        assert!(table.contains("| own-slot | blitz | 16.00 |") && table.contains("| – | 8 |"));
        assert!(table.contains("all 1 are met"), "{table}");
    }

    #[test]
    fn bars_are_of_rows_that_there_are() {
        let bars = BARS.iter().map(|(row, ..)| row).chain(&WITH_WORK);
        assert!(bars.into_iter().all(|bar| ROWS.iter().any(|row| row.name == *bar)));
    }
}
