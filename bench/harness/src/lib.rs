//! The parts that all comparisons of `bench/` share: the command line, the driver that interleaves
//! contenders in child processes, clocks and counters, the table, the record.
//!
//! A program describes itself by a [`Comparison`] and calls [`main`]. ../README.md says why
//! comparisons are run this way.

pub mod against;
pub mod notifier;
pub mod case;
pub mod check;
pub mod child;
pub mod command;
pub mod contender;
pub mod driver;
pub mod machine;
pub mod measure;
pub mod plan;
pub mod program;
pub mod report;
pub mod row;

use std::time::Duration;

pub use crate::case::Case;
pub use crate::command::{exit, main, words};
pub use crate::contender::Contender;
pub use crate::driver::{Order, Trial, in_turns};
pub use crate::measure::Metric;
pub use crate::plan::{Effort, Extra, Plan};
pub use crate::row::{Claims, Row};

/// A function that measures one row on one contender in this process: contender, row, workers,
/// budget. Returns `None` if there is no such row or contender.
pub type Child = fn(&str, &str, usize, Duration) -> Option<Vec<Metric>>;

/// The description of a program that compares contenders. [`Comparison::new`] gives the values that
/// most programs have.
pub struct Comparison {
    /// The program's name, and its record's.
    pub name: &'static str,
    /// The folder of the program's manifest, where its lock file is.
    pub folder: &'static str,
    pub rows: &'static [Row],
    pub contenders: &'static [Contender],
    /// The packages whose versions a record names.
    pub packages: &'static [&'static str],
    /// True if blitz-io is compiled in.
    pub has_blitz: bool,
    /// The build profile, as the program's manifest has it.
    pub profile: &'static str,
    pub child: Child,
    /// Creates the cases of a comparison that needs no children: contenders, `child` and `trial` are
    /// not used then.
    pub cases: Option<fn() -> Vec<Case>>,
    /// The meaning of the numbers behind `--workers`; `None` if there is no such option. Without it
    /// the raw numbers have no column for it, and none for processor time.
    pub counted: Option<&'static str>,
    /// Options of this program alone.
    pub extras: &'static [Extra],
    pub quick: Effort,
    pub full: Effort,
    pub order: Order,
    /// A contender and its second name, which is measured whenever the contender is named.
    pub noise: Option<(&'static str, &'static str)>,
    /// The time limit of a child; one that has not ended by then hangs.
    pub time_out: Duration,
    /// Measures one contender once: starts a child, unless the program has a function of its own.
    pub trial: fn(&Trial) -> Result<child::Figures, String>,
    /// Returns what a record says about the method, by the plan and by the last remark of a trial.
    pub how: fn(&Plan, Option<&str>) -> String,
    /// Returns the table, as Markdown.
    pub table: fn(&report::Run) -> String,
    /// The paragraph above the table in a record.
    pub intro: &'static str,
    pub claims: Option<Claims>,
}

impl Comparison {
    /// Creates a description without rows and contenders, of a comparison with Tokio.
    pub const fn new(name: &'static str, folder: &'static str) -> Comparison {
        Comparison {
            name,
            folder,
            rows: &[],
            contenders: &[],
            packages: &[],
            has_blitz: true,
            profile: "cargo's defaults (no LTO), debug = 1",
            child: |_, _, _, _| None,
            cases: None,
            counted: Some("workers"),
            extras: &[],
            quick: Effort::QUICK,
            full: Effort::FULL,
            order: Order::RowByRow,
            noise: Some(against::NOISE),
            // The longest seen was Go's `idle_1m`, ten seconds on a busy machine.
            time_out: Duration::from_secs(30),
            trial: child::figures,
            how: plan::how,
            table: against::table,
            intro: against::INTRO,
            claims: None,
        }
    }
}
