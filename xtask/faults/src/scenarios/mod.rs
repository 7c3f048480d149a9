//! The fault scenarios, one file each.

use crate::{flavour::Flavour, outcome::Verdict};

mod control;
mod descriptors;
mod signals;
mod resets;
mod half_open;
mod watches;
mod reuse;
mod many;
mod loss;
mod coarse;
mod no_uring;
mod urings;
mod ending;
mod two_runtimes;
mod late;

/// One fault scenario.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// The time limit: several times what it takes on two busy cores in a debug build.
    pub(crate) limit_s: u64,
    /// The only event backend that makes these calls; `None` for any.
    pub(crate) only: Option<&'static str>,
    pub(crate) run: fn(Flavour) -> Verdict,
}

const fn any(
    name: &'static str,
    limit_s: u64,
    run: fn(Flavour) -> Verdict,
    what: &'static str,
) -> Scenario {
    Scenario { name, what, limit_s, only: None, run }
}

const fn epoll(
    name: &'static str,
    limit_s: u64,
    run: fn(Flavour) -> Verdict,
    what: &'static str,
) -> Scenario {
    Scenario { name, what, limit_s, only: Some("epoll"), run }
}

const fn uring(
    name: &'static str,
    limit_s: u64,
    run: fn(Flavour) -> Verdict,
    what: &'static str,
) -> Scenario {
    Scenario { name, what, limit_s, only: Some("uring"), run }
}

/// All scenarios. The first two are controls, which must fail and must hang.
pub(crate) const ALL: &[Scenario] = &[
    any("control-wrong", 20, control::wrong, "a wrong reply of a server is noticed"),
    any("control-hang", 3, control::hang, "a read that waits for ever is ended"),
    any("descriptors", 60, descriptors::run, "no descriptor is left for accept"),
    any("signals", 120, signals::run, "every call is interrupted by signals"),
    any("resets", 120, resets::run, "connections that end by a reset"),
    any("half-open", 60, half_open::run, "peers that never reply, read or accept"),
    epoll("watches", 60, watches::run, "epoll takes no more descriptors"),
    any("reuse", 120, reuse::run, "numbers of descriptors are used again at once"),
    any("many", 300, many::run, "9,000 connections at once"),
    any("loss", 120, loss::run, "packets are lost"),
    epoll("coarse", 60, coarse::run, "a sandbox refuses epoll_pwait2"),
    uring("no-uring", 60, no_uring::run, "a sandbox refuses io_uring"),
    uring("urings", 120, urings::run, "runtimes with io_uring come and go"),
    any("ending", 120, ending::run, "the runtime ends in the middle of it all"),
    any("two-runtimes", 60, two_runtimes::run, "a socket that two runtimes use"),
    any("late", 60, late::run, "sockets after their runtime"),
];
