//! The options of `run` on the command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Comparison, Row};

/// How often and how long is measured.
pub struct Effort {
    pub rounds: usize,
    /// Rounds of rows that are slow.
    pub slow_rounds: usize,
    /// The time that a child measures.
    pub budget: Duration,
}

impl Effort {
    /// Three rounds are the least with a median that can drop an outlier. Time was picked so that a
    /// quick run ends within two minutes (it took one).
    pub const QUICK: Effort =
        Effort { rounds: 3, slow_rounds: 1, budget: Duration::from_millis(100) };
    /// Ten rounds are picked, not measured: as many as about twenty minutes allow (calculated).
    pub const FULL: Effort =
        Effort { rounds: 10, slow_rounds: 5, budget: Duration::from_millis(400) };
}

/// An option of one comparison alone, which takes a number.
pub struct Extra {
    /// The option, with its dashes.
    pub option: &'static str,
    pub default: usize,
    pub what: &'static str,
}

/// The options of the command line.
pub struct Plan {
    pub comparison: &'static Comparison,
    pub quick: bool,
    pub rows: Vec<&'static Row>,
    /// The contenders; `None` for all that are available.
    pub contenders: Option<Vec<&'static str>>,
    /// Only one if the comparison does not count workers.
    pub workers: Vec<usize>,
    rounds: Option<usize>,
    /// The folder of the record; `None` to print only.
    pub out: Option<PathBuf>,
    name: Option<String>,
    /// The numbers of the comparison's extra options, in their order.
    extras: Vec<usize>,
}

impl Plan {
    pub fn parse(comparison: &'static Comparison, options: &[&str]) -> Result<Plan, String> {
        let program = comparison.name;
        let mut plan = Plan::new(comparison);
        let mut options = options.iter();
        while let Some(&option) = options.next() {
            let mut value = || {
                options.next().copied().ok_or(format!("{option} needs a value: see `{program}`"))
            };
            let unknown = || format!("no option {option}: `{program}` alone lists them");
            match option {
                "--quick" => plan.quick = true,
                "--only" => plan.rows = rows_named(comparison, value()?)?,
                "--contenders" => plan.contenders = Some(contenders_named(comparison, value()?)?),
                "--workers" => {
                    comparison.counted.ok_or_else(unknown)?;
                    plan.workers = value()?.split(',').map(positive).collect::<Result<_, _>>()?
                }
                "--rounds" => plan.rounds = Some(positive(value()?)?),
                "--out" => plan.out = Some(PathBuf::from(value()?)),
                "--name" => plan.name = Some(value()?.into()),
                "--no-record" => plan.out = None,
                _ => {
                    let extra = comparison.extras.iter().position(|extra| extra.option == option);
                    let index = extra.ok_or_else(unknown)?;
                    plan.extras[index] = up_to_a_million(value()?)?;
                }
            }
        }
        Ok(plan)
    }

    /// Creates the plan of a command line without options.
    fn new(comparison: &'static Comparison) -> Plan {
        Plan {
            comparison,
            quick: false,
            rows: comparison.rows.iter().collect(),
            contenders: None,
            workers: if comparison.counted.is_some() { vec![1, 2] } else { vec![1] },
            rounds: None,
            out: Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../record")),
            name: None,
            extras: comparison.extras.iter().map(|extra| extra.default).collect(),
        }
    }

    fn effort(&self) -> &'static Effort {
        if self.quick { &self.comparison.quick } else { &self.comparison.full }
    }

    /// Returns the number of rounds of a row.
    pub fn rounds(&self, slow: bool) -> usize {
        let effort = self.effort();
        self.rounds.unwrap_or(if slow { effort.slow_rounds } else { effort.rounds })
    }

    /// Returns the time that a child measures.
    pub fn budget(&self) -> Duration {
        self.effort().budget
    }

    /// Returns the record's name behind the date.
    pub fn record_name(&self) -> String {
        let quick = if self.quick { "-quick" } else { "" };
        self.name.clone().unwrap_or_else(|| format!("{}{quick}", self.comparison.name))
    }

    /// Returns the number of an extra option.
    ///
    /// # Panics
    /// Panics if the comparison does not list the option.
    pub fn extra(&self, option: &str) -> usize {
        let index = self.comparison.extras.iter().position(|extra| extra.option == option);
        self.extras[index.unwrap_or_else(|| panic!("{option} is not listed: add it to `extras`"))]
    }
}

/// Describes the method of a comparison in which each child measures one row.
pub fn how(plan: &Plan, _: Option<&str>) -> String {
    format!("{}, {} ms a child", rounds(plan), plan.budget().as_millis())
}

/// Returns the number of rounds in words.
pub fn rounds(plan: &Plan) -> String {
    match (plan.rounds(false), plan.rounds(true)) {
        (1, 1) => "1 round".into(),
        (rounds, slow) if rounds == slow => format!("{rounds} rounds"),
        (rounds, slow) => format!("{rounds} rounds ({slow} for slow rows)"),
    }
}

fn positive(word: &str) -> Result<usize, String> {
    let number = word.parse().ok().filter(|&number| number > 0);
    number.ok_or(format!("{word} is not a number above zero"))
}

fn up_to_a_million(word: &str) -> Result<usize, String> {
    let number = word.parse().ok().filter(|number| (1..=1_000_000).contains(number));
    number.ok_or(format!("{word} is no number from 1 to 1000000"))
}

fn rows_named(comparison: &'static Comparison, list: &str) -> Result<Vec<&'static Row>, String> {
    let named = |name: &str| {
        let row = comparison.rows.iter().find(|row| row.name == name);
        row.ok_or(format!("no row {name}: see `{} list`", comparison.name))
    };
    list.split(',').map(named).collect()
}

fn contenders_named(
    comparison: &'static Comparison,
    list: &str,
) -> Result<Vec<&'static str>, String> {
    let named = |name: &str| {
        let known = comparison.contenders.iter().map(|it| it.name).find(|known| *known == name);
        known.ok_or(format!("no contender {name}: see `{} list`", comparison.name))
    };
    list.split(',').map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::{Plan, rounds};
    use crate::Comparison;
    use crate::check::EXAMPLE;

    #[test]
    fn options_are_read_and_wrong_ones_refused() {
        let two = [EXAMPLE.rows[1].name, EXAMPLE.rows[0].name];
        let plan = Plan::parse(&EXAMPLE, &["--quick", "--only", &two.join(","), "--workers", "2"]);
        let plan = plan.expect("these are right");
        assert_eq!(plan.rows.iter().map(|row| row.name).collect::<Vec<_>>(), two);
        assert_eq!((plan.workers.as_slice(), plan.rounds(false)), ([2].as_slice(), 3));
        assert_eq!((plan.record_name().as_str(), plan.extra("--rate")), ("example-quick", 10));
        for wrong in [
            ["--only", "no_such_row"],
            ["--contenders", "rayon"],
            ["--workers", "0"],
            ["--rounds", "-1"],
            ["--rate", "0"],
            ["--fast", "1"],
        ] {
            assert!(Plan::parse(&EXAMPLE, &wrong).is_err(), "{wrong:?}");
        }
        assert!(Plan::parse(&EXAMPLE, &["--out"]).is_err());
    }

    #[test]
    fn rounds_of_slow_rows_are_named_if_they_are_others() {
        let words = |options: &[&str]| Plan::parse(&EXAMPLE, options).map(|plan| rounds(&plan));
        assert_eq!(words(&["--quick"]), Ok("3 rounds (1 for slow rows)".into()));
        assert_eq!(words(&["--rounds", "1"]), Ok("1 round".into()));
        assert_eq!(words(&["--rounds", "2"]), Ok("2 rounds".into()));
    }

    #[test]
    fn an_extra_option_has_a_default_and_is_read() {
        let rate = |options: &[&str]| Plan::parse(&EXAMPLE, options).map(|it| it.extra("--rate"));
        assert_eq!((rate(&[]), rate(&["--rate", "7"])), (Ok(10), Ok(7)));
    }

    #[test]
    fn workers_are_refused_where_they_are_not_counted() {
        static UNCOUNTED: Comparison =
            Comparison { counted: None, ..Comparison::new("uncounted", "") };
        assert!(Plan::parse(&UNCOUNTED, &["--workers", "2"]).is_err());
        assert_eq!(Plan::parse(&UNCOUNTED, &[]).map(|plan| plan.workers), Ok(vec![1]));
    }
}
