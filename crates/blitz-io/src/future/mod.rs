//! Futures made of other futures.
