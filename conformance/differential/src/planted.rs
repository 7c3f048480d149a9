//! Cases with a result that differs between the two sides on purpose.
//!
//! The runner runs them first. It trusts a comparison only after it has found each of these
//! differences, and none in the last case.

use std::{thread, time::Duration};

use crate::{Case, side::DROPIN};

pub(crate) const CASES: &[Case] = &[
    ("prints", prints),
    ("exits", exits),
    ("panics", panics),
    ("dies", dies),
    ("hangs", hangs),
    ("varies", varies),
    ("same", same),
];

fn prints() {
    println!("before");
    println!("{}", if DROPIN { "planted" } else { "expected" });
    println!("after");
}

fn exits() {
    println!("before");
    std::process::exit(if DROPIN { 3 } else { 0 });
}

fn panics() {
    println!("before");
    assert!(!DROPIN, "planted");
}

fn dies() {
    println!("before");
    if DROPIN {
        std::process::abort();
    }
}

fn hangs() {
    println!("before");
    if DROPIN {
        thread::sleep(Duration::from_secs(600));
    }
}

/// Prints its process number, which differs in every run on one side.
fn varies() {
    println!("{}", std::process::id());
}

fn same() {
    println!("before");
    eprintln!("not compared: {DROPIN}");
}
