//! Nothing: the tests are all there is.
