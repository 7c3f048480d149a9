//! Runs every figure in a process of its own, contenders interleaved.
//!
//! Order: A B C, C B A, A B C, … for each row and worker count. A machine that gets
//! slower for a minute, or warmer, then hits all contenders of a row alike; and none
//! of them inherits another's heap, threads or page tables. A comparison of [cases](crate::case)
//! has the same order in one process.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::case::Case;
use crate::contender::{Contender, Field};
use crate::machine::{self, Use};
use crate::plan::Plan;
use crate::report::{Run, Sample};
use crate::row::Row;

/// The share of the machine from which on other programs' use shows in the figures: on two cores a
/// tenth is a fifth of one worker's. Picked, not measured.
const BUSY: f64 = 0.1;

/// The order of rounds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// All rounds of a row, then those of the next row.
    RowByRow,
    /// All rows, then all rows once more.
    RoundByRound,
}

/// One measurement of a contender.
pub struct Trial<'a> {
    pub plan: &'a Plan,
    pub contender: &'static Contender,
    /// The contender's program.
    pub program: &'a Path,
    /// This program.
    pub this: &'a Path,
    pub row: &'static Row,
    pub workers: usize,
}

/// A row in one round: all contenders are measured once.
struct Step {
    row: &'static Row,
    workers: usize,
    round: usize,
}

/// Returns the members of a round in its order: forwards in even rounds, backwards in odd ones.
pub fn in_turns<T>(all: impl IntoIterator<Item = T>, round: usize) -> Vec<T> {
    let mut order: Vec<T> = all.into_iter().collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

/// Measures, prints the table and writes the record.
pub fn run(plan: &Plan) -> Result<(), String> {
    let comparison = plan.comparison;
    let field = Field::gather(comparison, plan.contenders.as_deref())?;
    let start = Instant::now();
    let mut run = Run {
        comparison,
        machine: machine::describe(comparison, field.go_version.as_deref()),
        contenders: field.contenders.iter().map(|(contender, _)| *contender).collect(),
        samples: Vec::new(),
        how: String::new(),
    };
    let use_at_start = Use::now();
    let mut busiest = (0.0, String::from("no row"));
    let mut remark = None;
    if cfg!(debug_assertions) {
        eprintln!("this is a debug build: its figures mean nothing, use --release");
    }
    let mut cases = cases(plan);
    let steps = steps(plan);
    for part in steps.chunk_by(|a, b| label(plan, a) == label(plan, b)) {
        let label = label(plan, &part[0]);
        eprintln!("{:>4} s  {label}", start.elapsed().as_secs());
        let use_before = Use::now();
        for step in part {
            run.samples.extend(match comparison.cases {
                Some(_) => in_this_process(&mut cases, step),
                None => by_children(plan, &field, step, &mut remark),
            });
        }
        let others = Use::now().others_since(&use_before);
        if others > busiest.0 {
            busiest = (others, label);
        }
    }
    run.how = format!(
        "{}, {} s in all; others used {:.0} % of the machine, at most {:.0} % (during {})",
        (comparison.how)(plan, remark.as_deref()),
        start.elapsed().as_secs(),
        Use::now().others_since(&use_at_start) * 100.0,
        busiest.0 * 100.0,
        busiest.1
    );
    println!("{}\n{}", run.table(), run.how);
    if busiest.0 > BUSY {
        println!("the machine was busy: measure again when it is not");
    }
    finish(plan, &run)
}

/// Writes the record. Returns an error if there is none, or if children failed.
fn finish(plan: &Plan, run: &Run) -> Result<(), String> {
    if let Some(out) = &plan.out {
        let written = run.record(out, &plan.record_name()).map_err(|error| {
            format!(
                "cannot write the record to {}: {error}; choose a place with --out",
                out.display()
            )
        })?;
        println!("recorded in {}", written.display());
    }
    match run.failures() {
        0 => Ok(()),
        failures => Err(format!("{failures} of {} children failed", run.samples.len())),
    }
}

/// Returns the steps of a plan in their order.
fn steps(plan: &Plan) -> Vec<Step> {
    let mut steps = Vec::new();
    for &row in &plan.rows {
        for &workers in plan.workers.iter().filter(|&&workers| row.runs_with(workers)) {
            let rounds = 0..plan.rounds(row.slow);
            steps.extend(rounds.map(|round| Step { row, workers, round }));
        }
    }
    if plan.comparison.order == Order::RoundByRound {
        // The sort is stable: within a round, rows stay in their order.
        steps.sort_by_key(|step| step.round);
    }
    steps
}

/// Returns the name of the part of a run that a step belongs to.
fn label(plan: &Plan, step: &Step) -> String {
    match plan.comparison.order {
        Order::RowByRow if plan.comparison.counted.is_none() => step.row.name.to_owned(),
        Order::RowByRow => format!("{} w{}", step.row.name, step.workers),
        Order::RoundByRound => format!("round {} of {}", step.round + 1, plan.rounds(false)),
    }
}

/// Creates the cases of a plan's rows, ready to be measured.
fn cases(plan: &Plan) -> Vec<Case> {
    let mut cases = plan.comparison.cases.map_or(Vec::new(), |create| create());
    cases.retain(|case| plan.rows.iter().any(|row| row.name == case.row));
    cases.iter_mut().for_each(Case::warm_up);
    cases
}

/// Measures each case of a row once.
fn in_this_process(cases: &mut [Case], step: &Step) -> Vec<Sample> {
    let cases = cases.iter_mut().filter(|case| case.row == step.row.name);
    in_turns(cases, step.round).into_iter().map(|case| case.measure(step.round)).collect()
}

/// Measures each contender once. A remark replaces the one of an earlier trial.
fn by_children(
    plan: &Plan,
    field: &Field,
    step: &Step,
    remark: &mut Option<String>,
) -> Vec<Sample> {
    let &Step { row, workers, round } = step;
    let has_row = |contender: &Contender| !row.lacks.contains(&contender.name);
    let able = field.contenders.iter().filter(|(contender, _)| has_row(contender));
    let measure = |able: &(&'static Contender, PathBuf)| {
        let (contender, program) = (able.0, &able.1);
        let trial = Trial { plan, contender, program, this: &field.this, row, workers };
        let outcome = (plan.comparison.trial)(&trial).map(|mut figures| {
            figures.remark.take().into_iter().for_each(|it| *remark = Some(it));
            figures.metrics
        });
        if let Err(why) = &outcome {
            eprintln!("        {} failed in {}: {why}", contender.name, row.name);
        }
        Sample { round, contender: contender.name, row: row.name, workers, outcome }
    };
    in_turns(able, round).into_iter().map(measure).collect()
}

#[cfg(test)]
mod tests {
    use super::{Order, Step, cases, in_this_process, in_turns, label, steps};
    use crate::case::Case;
    use crate::check::EXAMPLE;
    use crate::plan::Plan;
    use crate::{Comparison, Row};

    fn order(comparison: &'static Comparison) -> Vec<String> {
        let plan = Plan::parse(comparison, &["--rounds", "2", "--workers", "1"]).expect("right");
        let step = |step: &Step| format!("{} {}", label(&plan, step), step.row.name);
        steps(&plan).iter().map(step).collect()
    }

    #[test]
    fn every_second_round_runs_backwards() {
        assert_eq!(in_turns(["a", "b", "c"], 0), ["a", "b", "c"]);
        assert_eq!(in_turns(["a", "b", "c"], 1), ["c", "b", "a"]);
    }

    #[test]
    fn cases_of_the_rows_that_were_named_take_turns() {
        static CASES: Comparison = Comparison {
            rows: &[Row::new("a", ""), Row::new("b", "")],
            cases: Some(|| {
                let all = [("a", "one"), ("b", "one"), ("a", "another")];
                all.map(|(row, contender)| Case::new(row, contender, || 1.0)).into()
            }),
            ..Comparison::new("cases", "")
        };
        let plan = Plan::parse(&CASES, &["--only", "a"]).expect("right");
        let mut cases = cases(&plan);
        assert_eq!(cases.len(), 2);
        let mut order = |round| {
            let step = Step { row: &CASES.rows[0], workers: 1, round };
            in_this_process(&mut cases, &step).iter().map(|it| it.contender).collect::<Vec<_>>()
        };
        assert_eq!((order(0), order(1)), (vec!["one", "another"], vec!["another", "one"]));
    }

    #[test]
    fn rounds_are_inside_of_rows_or_around_them() {
        assert_eq!(order(&EXAMPLE), ["a w1 a", "a w1 a", "b w1 b", "b w1 b"]);
        static ROUNDS: Comparison = Comparison {
            order: Order::RoundByRound,
            rows: EXAMPLE.rows,
            ..Comparison::new("rounds", "")
        };
        let rounds = ["round 1 of 2 a", "round 1 of 2 b", "round 2 of 2 a", "round 2 of 2 b"];
        assert_eq!(order(&ROUNDS), rounds);
    }
}
