//! The table: a line for each case, against the first of its row.

use harness::report::{Run, cell, plain};

use crate::shares;

/// Returns the tables, as Markdown, with the noise floor.
pub(crate) fn table(run: &Run) -> String {
    let heads = ["what", "contender", "median", "quartiles", "against the first"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    let mut floor = Vec::new();
    for line in run.lines() {
        let row = run.comparison.rows.iter().find(|row| row.name == line.row);
        let what = row.map_or(line.row, |row| row.what);
        let median = |contender| run.quartiles(&line, contender).map(|[_, median, _]| median);
        let ratio = |over, under| median(over).zip(median(under)).map(|(a, b)| a / b);
        let contenders = run.contenders_of(line.row);
        for &contender in &contenders {
            let quartiles = run.quartiles(&line, contender);
            rows.push(vec![
                what.to_owned(),
                contender.to_owned(),
                cell(median(contender), 2),
                quartiles.map_or("–".into(), |[low, _, high]| format!("{low:.2}–{high:.2}")),
                cell(ratio(contender, contenders[0]), 2),
            ]);
        }
        for pair in contenders.windows(2).filter(|pair| pair[1].ends_with("again")) {
            let apart = ratio(pair[1], pair[0]).map(|ratio| (ratio - 1.0).abs() * 100.0);
            floor.push(format!("{what} {} %", cell(apart, 1)));
        }
    }
    let mut text = plain(&rows);
    if !floor.is_empty() {
        text.push_str("\nNoise floor (a contender against itself): ");
        text.push_str(&format!("{}.\n", floor.join("; ")));
    }
    text + &shares::order_after_overflow()
}

#[cfg(test)]
mod tests {
    use harness::Metric;
    use harness::check::{run, sample};

    use crate::COMPARISON;

    #[test]
    fn a_case_without_a_figure_has_dashes() {
        let case = |round, contender, value| {
            sample(round, contender, "ring_robbing", vec![Metric::new("", "ns", value, None)])
        };
        let mut samples =
            vec![case(0, "ours", 2.0), case(0, "ours again", 3.0), case(0, "st3", 1.0)];
        samples[2].outcome = Err("nothing to measure".into());
        let table = run(&COMPARISON, samples).table();
        let what = "steal of half from a busy owner, per item";
        assert!(table.contains(&format!("| {what} | ours again | 3.00 | 3.00–3.00 | 1.50 |")));
        assert!(table.contains(&format!("| {what} | st3 | – | – | – |")), "{table}");
        assert!(table.contains(&format!("itself): {what} 50.0 %.")), "{table}");
    }
}
