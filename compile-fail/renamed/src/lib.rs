//! Contains nothing, because the tests are all there is.
