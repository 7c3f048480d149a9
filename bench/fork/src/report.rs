//! The table of ratios, which are against several contenders.

use harness::report::{Line, Run, cell, plain};

/// Ratios of two contenders' medians: the column's head, and the two.
const RATIOS: [(&str, &str, &str); 8] = [
    ("blitz/rayon", "blitz", "rayon"),
    ("blitz/sequential", "blitz", "sequential"),
    ("blitz/chili", "blitz", "chili"),
    ("native/chili", "native", "chili"),
    ("native/sequential", "native", "sequential"),
    ("on-blitz/rayon", "on-blitz", "rayon"),
    ("blitz/futex", "blitz", "futex"),
    ("noise (again/rayon)", "rayon-again", "rayon"),
];

/// Ratios of processor time, where it was measured.
const CPU_RATIOS: [(&str, &str, &str); 2] =
    [("cpu blitz/rayon", "blitz", "rayon"), ("cpu on-blitz/rayon", "on-blitz", "rayon")];

/// Trees that have a row for each order of visit. chili runs the second closure first, so its
/// figure for one of a pair is comparable with the others' figure for the other one.
const BOTH_ORDERS: [(&str, &str); 2] = [("tree_1m", "tree_1m_right"), ("tree_8m", "tree_8m_right")];

/// The note below the table.
const NOTE: &str = "`*`: chili runs the second closure first, so this is against its figure in the \
row of the other order, where it visits a tree as the others do here.";

/// Returns the row in which chili visits a tree in the order of this one, if there is one.
fn crossed(row: &str) -> Option<&'static str> {
    BOTH_ORDERS.iter().find_map(|&(left, right)| match row {
        _ if row == left => Some(right),
        _ if row == right => Some(left),
        _ => None,
    })
}

/// Returns the table, as Markdown.
pub(crate) fn table(run: &Run) -> String {
    let names: Vec<&str> = run.comparison.contenders.iter().map(|it| it.name).collect();
    let ratios = RATIOS.iter().chain(&CPU_RATIOS).map(|(head, ..)| *head);
    let heads = ["row", "threads"].into_iter().chain(names.iter().copied()).chain(ratios);
    let mut rows = vec![heads.map(str::to_owned).collect::<Vec<_>>()];
    for line in run.lines() {
        let mut cells = vec![format!("{} ({})", line.name(), line.unit), line.workers.to_string()];
        cells.extend(names.iter().map(|name| run.cell(&line, name, 3)));
        cells.extend(RATIOS.iter().map(|&(_, over, under)| ratio(run, &line, over, under)));
        cells.extend(CPU_RATIOS.iter().map(|&(_, over, under)| {
            let both = run.cpu(&line, over).zip(run.cpu(&line, under));
            cell(both.map(|(over, under)| over / under), 3)
        }));
        rows.push(cells);
    }
    let text = plain(&rows);
    if text.contains(" * |") { format!("{text}\n{NOTE}\n") } else { text }
}

/// Returns the ratio of two contenders' medians as printed.
fn ratio(run: &Run, line: &Line, over: &str, under: &str) -> String {
    let other = crossed(line.row).filter(|_| under == "chili");
    let against = Line { row: other.unwrap_or(line.row), ..line.clone() };
    let both = run.figure(line, over).zip(run.figure(&against, under));
    let ratio = both.map(|(over, under)| over / under);
    let mark = if ratio.is_some() && other.is_some() { " *" } else { "" };
    cell(ratio, 3) + mark
}

#[cfg(test)]
mod tests {
    use harness::Metric;
    use harness::check::{self, run};
    use harness::report::Sample;

    use super::NOTE;

    fn sample(round: usize, contender: &'static str, row: &'static str, value: f64) -> Sample {
        check::sample(round, contender, row, vec![Metric::new("", "ns", value, None)])
    }

    fn table(samples: Vec<Sample>) -> String {
        run(&crate::COMPARISON, samples).table()
    }

    #[test]
    fn a_ratio_is_that_of_the_medians() {
        let table = table(vec![
            sample(0, "rayon", "fib", 10.0),
            sample(1, "rayon", "fib", 30.0),
            sample(2, "rayon", "fib", 20.0),
            sample(0, "blitz", "fib", 5.0),
        ]);
        assert!(table.contains("| fib (ns) | 1 | – | 20.000 | – | 5.000 |"));
        assert!(table.contains("| 0.250 |"));
        assert!(!table.contains(NOTE));
    }

    #[test]
    fn chili_is_compared_in_the_order_in_which_it_visits() {
        let table = table(vec![
            sample(0, "blitz", "tree_1m", 6.0),
            sample(0, "chili", "tree_1m", 4.0),
            sample(0, "blitz", "tree_1m_right", 2.0),
            sample(0, "chili", "tree_1m_right", 12.0),
        ]);
        let line = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line("| tree_1m (").contains("| 0.500 * |"), "{table}");
        assert!(line("| tree_1m_right (").contains("| 0.500 * |"), "{table}");
        assert!(table.contains(NOTE));
    }
}
