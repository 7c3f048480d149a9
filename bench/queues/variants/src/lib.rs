//! The queues of blitz-io and the variants of them that lost, for bench/queues and bench/counts.
//!
//! The queues are private to blitz-io. So this crate compiles their source files, by path, into an
//! `engine` of its own, and has the variants beside them; blitz-io itself is not built. `queues`
//! and `jobs` open both with one concrete item type, so that the benchmarks need no unsafe code.
//!
//! # Tests
//! `cargo test -p queue-variants` in bench/queues; CI runs it. It also runs the tests that the
//! included files bring along. Models of the variants are plain tests there, and are explored with
//! loom on request:
//!
//! ```sh
//! RUSTFLAGS="--cfg blitz_loom" CARGO_TARGET_DIR=target/loom cargo test --release \
//!     -p queue-variants -- variants:: choices::
//! ```
//! `BLITZ_WEAKEN=name` plants one of the bugs that the variants' headers name after 'weakened as',
//! and a model must fail then.

/// The part of the engine that the benchmarks need. The modules have the names that they have in
/// blitz-io, because their sources name each other by them.
#[allow(dead_code, unused_imports, unused_macros, reason = "the benchmarks use a part of it")]
#[path = "../../../../crates/blitz-io/src/engine"]
mod engine {
    pub(crate) mod prim;
    pub(crate) mod queue;
    pub(crate) mod fork {
        pub(crate) mod deque;

        /// Creates a deque with fences for barriers. Only the parent of `deque` can do that.
        pub(crate) fn fenced<T>() -> deque::Deque<T> {
            deque::Deque::with(true, true)
        }
    }
}
mod variants;

pub mod queues;
pub mod jobs;
