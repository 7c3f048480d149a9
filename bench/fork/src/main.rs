//! Fork-join workloads on every contender, interleaved in child processes.
//!
//! `fork run` is the driver; it starts itself as `fork --child` for each figure, and
//! `fork-dropin` for Rayon on our rayon-core, which it builds first. ../README.md says why
//! comparisons are run this way.

#[allow(dead_code, reason = "bench/sched uses all of it")]
#[path = "../../sched/src/machine.rs"]
mod machine;
#[allow(dead_code, reason = "bench/sched uses all of it")]
#[path = "../../sched/src/measure.rs"]
mod measure;
#[macro_use]
mod workloads;
mod contender;
mod driver;
mod iterators;
mod rayons;
mod report;

use std::process::ExitCode;
use std::time::Duration;

use measure::Metric;

/// The packages whose versions a record names.
pub(crate) const PACKAGES: [&str; 3] = ["rayon", "rayon-core", "chili"];

/// All contenders, and a description of each.
pub(crate) const CONTENDERS: [(&str, &str); 8] = [
    ("sequential", "no pool: calls one after the other"),
    ("rayon", "what ratios are against"),
    ("rayon-again", "the same once more: how far two equal things differ is the noise floor"),
    ("blitz", "blitz_io::parallel as Rayon is used"),
    ("native", "blitz_io::parallel with the worker passed along; the caller takes part"),
    ("on-blitz", "the published rayon on our rayon-core"),
    ("chili", "its caller takes part; it runs the second closure first"),
    ("futex", "a bare thread that is parked and unparked: the floor of the installs"),
];

/// A row of the table.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// The description of one operation.
    pub(crate) what: &'static str,
    /// Contenders that do not support it.
    pub(crate) lacks: &'static [&'static str],
    /// True if it takes long whatever the budget, so that fewer rounds are run.
    pub(crate) slow: bool,
    /// True if it does not depend on the number of threads, or is meaningful only with two.
    pub(crate) wants_two: bool,
}

const fn row(name: &'static str, what: &'static str) -> Row {
    Row { name, what, lacks: &["futex"], slow: false, wants_two: false }
}

const fn of_iterators(name: &'static str, what: &'static str) -> Row {
    let lacks = &["sequential", "blitz", "native", "chili", "futex"];
    Row { lacks, slow: true, ..row(name, what) }
}

const fn of_searches(name: &'static str, what: &'static str) -> Row {
    Row { slow: false, ..of_iterators(name, what) }
}

const fn of_pools(name: &'static str, what: &'static str) -> Row {
    Row { lacks: &["sequential", "futex"], wants_two: true, ..row(name, what) }
}

const fn of_calls(name: &'static str, what: &'static str) -> Row {
    Row { lacks: &["sequential"], ..of_pools(name, what) }
}

const fn coarse(name: &'static str, what: &'static str) -> Row {
    Row { wants_two: true, ..row(name, what) }
}

pub(crate) const ROWS: [Row; 36] = [
    row("fib", "a join of fibonacci(27) without a cut-off"),
    row("tree_1k", "a node of a tree of 1,023, the left child first"),
    row("tree_1k_called", "the same with a call of the pool, from outside, for each tree"),
    row("tree_131k", "a node of a tree of 131,071"),
    row("tree_1m", "a node of a tree of 1,048,575"),
    row("tree_1m_right", "the same, the right child first: the way the memory lies"),
    Row { slow: true, ..row("tree_8m", "a node of a tree of 8,388,607") },
    Row { slow: true, ..row("tree_8m_right", "the same, the right child first") },
    coarse("join_10ms", "one join of two closures of 10 ms"),
    coarse("leaves_200us", "16 closures of 200 us, as a balanced tree"),
    coarse("chain_50us", "100 closures of 50 us, as a list"),
    of_calls("install_awake", "an empty closure on the pool, back to back"),
    of_calls("install_asleep", "the same after 3 ms in which nothing happened"),
    of_pools("to_sleep", "after work: until all threads sleep, and the time that they burn"),
    of_pools("sleep_cycle", "an empty closure on a pool that sleeps: until all sleep again"),
    of_iterators("par_sum", "an element of 10,000,000 f64: par_iter().map().sum()"),
    of_iterators("par_sum_int", "an element of 10,000,000 u64: sum()"),
    of_iterators("par_sort", "an element of 10,000,000 random u64: par_sort_unstable()"),
    of_iterators("par_sort_random", "the same of 1,000,000"),
    of_iterators("par_sort_sorted", "the same, sorted already"),
    of_iterators("par_sort_reverse", "the same, sorted the other way round"),
    of_iterators("par_sort_equal", "the same, all equal"),
    of_searches("par_find_any", "one find_any() in 10,000,000 that ends at element 1,000"),
    of_searches("par_find_first", "one find_first() that ends there"),
    of_searches("par_position_early", "one position_any() that ends there"),
    of_searches("par_position_middle", "one position_any() of the first of the right half"),
    of_searches("par_any_early", "one any() that ends at element 1,000"),
    of_iterators("par_any_full", "an element of 10,000,000: any() that finds none"),
    of_iterators("par_all", "an element of 10,000,000: all(), and they are"),
    of_iterators("par_min_by_key", "an element of 10,000,000: min_by_key()"),
    of_iterators("par_max_by_key", "an element of 10,000,000: max_by_key()"),
    of_iterators("par_chunks_sum", "an element of 10,000,000: par_chunks(1000), a sum of each"),
    of_iterators("par_enumerate", "an element of 1,000,000: enumerate().for_each()"),
    of_iterators("par_chain", "an element of two times 5,000,000: chain().sum()"),
    of_iterators("par_zip_dot", "a pair of 10,000,000: zip(), products, their sum"),
    of_iterators("par_flatten", "an element of 1000 lists of 10,000: flatten().sum()"),
];

const USAGE: &str = "\
usage: fork run [options]   measure, print the table, record it
       fork list            name the rows and the contenders

options of run:
  --quick               few rounds, short batches, for a first look
  --only ROW[,ROW]      these rows alone
  --contenders A[,B]    these contenders alone (see `fork list`)
  --workers N[,N]       threads of the pools (1,2)
  --rounds N            rounds for each row
  --out DIR             where the record goes (bench/record)
  --no-record           print the table only";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["--child", contender, row, threads, budget] => measured(contender, row, threads, budget),
        ["run", options @ ..] => driver::Plan::parse(options).and_then(|plan| driver::run(&plan)),
        ["list"] => {
            for Row { name, what, .. } in &ROWS {
                println!("  {name:<20} {what}");
            }
            for (name, what) in CONTENDERS {
                println!("  {name:<20} {what}");
            }
            Ok(())
        }
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn measured(contender: &str, row: &str, threads: &str, budget: &str) -> Result<(), String> {
    let (threads, budget) =
        workloads::numbers(threads, budget).ok_or("threads and budget are numbers")?;
    let metrics = child(contender, row, threads, budget)
        .ok_or_else(|| format!("{contender} has no row {row}: see `fork list`"))?;
    metrics.iter().for_each(|metric| println!("{}", metric.line()));
    Ok(())
}

fn child(contender: &str, row: &str, threads: usize, budget: Duration) -> Option<Vec<Metric>> {
    match contender {
        "sequential" => workloads::run(&contender::sequential::Sequential, row, budget),
        "rayon" | "rayon-again" => rayons::child(row, threads, budget),
        "blitz" => workloads::run(&contender::blitz::Blitz::new(threads), row, budget),
        "native" => workloads::run(&contender::native::Native::new(threads), row, budget),
        "chili" => workloads::run(&contender::chili::Chili::new(threads), row, budget),
        "futex" => contender::futex::Futex::new().run(row, budget),
        _ => None,
    }
}
