//! Measures the time of queue operations: ours, our variants, and other crates'.
//!
//! All cases live in one process. A round runs each case once, rounds alternate
//! between forward and backward order so that drift hits all alike, and a case's
//! figure is the median over the rounds. Cases marked 'again' are their neighbour
//! a second time: the distance between the two is the noise floor.
//!
//! `cargo run --release -- [--quick] [--rounds N] [--only WORD] [--out FILE]`

mod contenders;
mod report;
mod rings;
mod injectors;
mod lifo;
mod shares;
mod jobs;

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    time::Instant,
};

/// One measurement: `run` returns a figure in the case's unit.
pub(crate) struct Case {
    group: &'static str,
    name: &'static str,
    run: Box<dyn FnMut() -> f64>,
}

impl Case {
    pub(crate) fn new(
        group: &'static str,
        name: &'static str,
        run: impl FnMut() -> f64 + 'static,
    ) -> Self {
        Self { group, name, run: Box::new(run) }
    }
}

/// Returns the nanoseconds per operation of a loop that does `operations` of them.
pub(crate) fn ns_per(operations: u64, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / operations as f64
}

/// A gate that holds threads back until all of them run, because woken threads would start one by
/// one.
pub(crate) struct Gate {
    missing: AtomicUsize,
}

impl Gate {
    pub(crate) fn new(threads: usize) -> Self {
        Self { missing: AtomicUsize::new(threads) }
    }

    pub(crate) fn pass(&self) {
        // Relaxed: it only counts running threads; what they share is ordered by their spawn and
        // their join.
        self.missing.fetch_sub(1, Relaxed);
        while self.missing.load(Relaxed) > 0 {
            std::hint::spin_loop();
        }
    }
}

/// Makes the other thread stop when dropped, also by a panic, because a scope would wait for that
/// thread forever.
pub(crate) struct Stop<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        // Relaxed: a flag to stop; the join orders the rest.
        self.0.store(true, Relaxed);
    }
}

struct Options {
    rounds: usize,
    only: Option<String>,
    out: Option<String>,
}

fn options() -> Result<Options, String> {
    // 31 rounds put the median's own scatter below the noise floor of a quiet
    // machine; picked by trying.
    let mut options = Options { rounds: 31, only: None, out: None };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--quick" => options.rounds = 5,
            "--rounds" => {
                let rounds = value()?;
                options.rounds = rounds
                    .parse()
                    .ok()
                    .filter(|&rounds| rounds > 0)
                    .ok_or(format!("{rounds:?} is no number of rounds: give 1 or more"))?;
            }
            "--only" => options.only = Some(value()?),
            "--out" => options.out = Some(value()?),
            _ => {
                return Err(format!(
                    "unknown argument {arg:?}: use --quick, --rounds N, --only WORD, --out FILE"
                ));
            }
        }
    }
    Ok(options)
}

fn main() -> Result<(), String> {
    let options = options()?;
    let mut cases = rings::cases();
    cases.extend(injectors::cases());
    cases.extend(lifo::cases());
    cases.extend(shares::cases());
    cases.extend(jobs::cases());
    if let Some(word) = &options.only {
        cases
            .retain(|case| case.group.contains(word.as_str()) || case.name.contains(word.as_str()));
        if cases.is_empty() {
            return Err(format!("no case is called {word:?}: run without --only to see all names"));
        }
    }
    let mut figures = vec![Vec::with_capacity(options.rounds); cases.len()];
    // One round to warm up, which is not counted.
    for case in &mut cases {
        (case.run)();
    }
    for round in 0..options.rounds {
        for index in harness::in_turns(0..cases.len(), round) {
            figures[index].push((cases[index].run)());
        }
        eprint!("\rround {} of {} ", round + 1, options.rounds);
    }
    eprintln!();
    let rows = cases.iter().zip(figures).map(|(case, figures)| report::Row::new(case, figures));
    let mut text = report::table(&rows.collect::<Vec<_>>(), options.rounds);
    text.push_str(&shares::order_after_overflow());
    print!("{text}");
    if let Some(out) = options.out {
        std::fs::write(&out, text).map_err(|error| format!("cannot write {out}: {error}"))?;
    }
    Ok(())
}
