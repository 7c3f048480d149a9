//! Fork-join workloads on every contender, interleaved in child processes.
//!
//! `fork run` is the driver; it starts itself as `fork --child` for each figure, and
//! `fork-dropin` for Rayon on our rayon-core, which it builds first. ../README.md says why
//! comparisons are run this way.

#[macro_use]
mod workloads;
mod contender;
mod iterators;
mod rayons;
mod report;

use std::process::ExitCode;
use std::time::Duration;

use harness::program::Program;
use harness::{Comparison, Contender, Metric, Row};

static COMPARISON: Comparison = Comparison {
    rows: &ROWS,
    contenders: &[
        Contender::new("sequential", "no pool: calls one after the other"),
        Contender::new("rayon", "what ratios are against"),
        Contender::new(
            "rayon-again",
            "the same once more: how far two equal things differ is the noise floor",
        ),
        Contender::new("blitz", "blitz_io::parallel as Rayon is used"),
        Contender::new(
            "native",
            "blitz_io::parallel with the worker passed along; the caller takes part",
        ),
        Contender::new("on-blitz", "the published rayon on our rayon-core")
            .by(Program::Beside { folder: "dropin", binary: "fork-dropin" }),
        Contender::new("chili", "its caller takes part; it runs the second closure first"),
        Contender::new(
            "futex",
            "a bare thread that is parked and unparked: the floor of the installs",
        ),
    ],
    packages: &["rayon", "rayon-core", "chili"],
    child,
    counted: Some("threads"),
    // `rayon-again` has a column of its own, and runs if it is named.
    noise: None,
    time_out: Duration::from_secs(60),
    table: report::table,
    intro: "Medians over rounds; smaller is better, in ratios too.",
    ..Comparison::new("fork", env!("CARGO_MANIFEST_DIR"))
};

const fn row(name: &'static str, what: &'static str) -> Row {
    Row::new(name, what).lacked_by(&["futex"])
}

const fn of_searches(name: &'static str, what: &'static str) -> Row {
    Row::new(name, what).lacked_by(&["sequential", "blitz", "native", "chili", "futex"])
}

const fn of_iterators(name: &'static str, what: &'static str) -> Row {
    of_searches(name, what).slow()
}

const fn coarse(name: &'static str, what: &'static str) -> Row {
    row(name, what).with_several_workers()
}

const fn of_pools(name: &'static str, what: &'static str) -> Row {
    coarse(name, what).lacked_by(&["sequential", "futex"])
}

const fn of_calls(name: &'static str, what: &'static str) -> Row {
    coarse(name, what).lacked_by(&["sequential"])
}

const ROWS: [Row; 36] = [
    row("fib", "a join of fibonacci(27) without a cut-off"),
    row("tree_1k", "a node of a tree of 1,023, the left child first"),
    row("tree_1k_called", "the same with a call of the pool, from outside, for each tree"),
    row("tree_131k", "a node of a tree of 131,071"),
    row("tree_1m", "a node of a tree of 1,048,575"),
    row("tree_1m_right", "the same, the right child first: the way the memory lies"),
    row("tree_8m", "a node of a tree of 8,388,607").slow(),
    row("tree_8m_right", "the same, the right child first").slow(),
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

fn main() -> ExitCode {
    harness::main(&COMPARISON)
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

#[cfg(test)]
mod tests {
    #[test]
    fn row_names_are_unique_and_lacked_by_contenders_that_there_are() {
        harness::check::names(&crate::COMPARISON);
    }
}
