//! The table of factors by which contenders are better than `stock`.

use harness::report::{Run, cell, plain};

/// The note that explains the table.
const NOTE: &str = "Medians over rounds. Latencies and processor time are better if they are \
smaller, rates (/s) if they are larger; a ratio is turned so that above one the contender is better \
than `stock`, and that of `stock-again` is noise. At a fixed rate `echoes` says only whether the server \
kept up. Sorts take what processor time there is: look at `cpu_per_sort` there, not at `cpu`.";

/// Returns the factor by which a figure is better than another one of the same unit.
fn better(unit: &str, figure: f64, than: f64) -> f64 {
    if unit == "/s" { figure / than } else { than / figure }
}

/// Returns the table, as Markdown. Contenders that must be named have a column only then.
pub(crate) fn table(run: &Run) -> String {
    let all = run.comparison.contenders.iter();
    let shown = all.filter(|it| !it.only_when_named || run.has(it.name));
    let names: Vec<&str> = shown.map(|it| it.name).collect();
    let ratios = names.iter().filter(|name| **name != "stock");
    let heads = names.iter().map(|name| (*name).to_owned());
    let heads = heads.chain(ratios.clone().map(|name| format!("{name} better by")));
    let mut rows = vec![["row".to_owned()].into_iter().chain(heads).collect::<Vec<_>>()];
    for line in run.lines() {
        let figure = |contender: &str| run.figure(&line, contender);
        let mut cells = vec![format!("{} ({})", line.name(), line.unit)];
        cells.extend(names.iter().map(|name| run.cell(&line, name, 1)));
        cells.extend(ratios.clone().map(|contender| {
            let both = figure(contender).zip(figure("stock"));
            cell(both.map(|(figure, than)| better(&line.unit, figure, than)), 3)
        }));
        rows.push(cells);
    }
    format!("{}\n{NOTE}\n", plain(&rows))
}

#[cfg(test)]
mod tests {
    use harness::Metric;
    use harness::check::{run, sample};

    #[test]
    fn above_one_is_better_whatever_the_unit() {
        let mixed = |contender, us, rate| {
            let metrics = [("p99", "us", us), ("sorts", "/s", rate)];
            let metric = |(name, unit, value)| Metric::new(name, unit, value, None);
            sample(0, contender, "mixed", metrics.map(metric).into())
        };
        let samples = vec![mixed("stock", 200.0, 20.0), mixed("blitz", 100.0, 30.0)];
        let table = run(&crate::COMPARISON, samples).table();
        assert!(table.contains("| mixed.p99 (us) | 200.0 | – | 100.0 | – | 2.000 |"), "{table}");
        assert!(table.contains("| mixed.sorts (/s) | 20.0 | – | 30.0 | – | 1.500 |"), "{table}");
    }

    #[test]
    fn row_names_are_unique_and_each_row_has_a_setting() {
        harness::check::names(&crate::COMPARISON);
        for row in &crate::ROWS {
            let _ = crate::setting(row);
        }
    }
}
