//! Tests futures that are made of several futures.

mod combinators;
