//! Futures over several futures.

mod combinators;
