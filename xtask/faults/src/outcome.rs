//! The result of a scenario.

/// The result of a scenario that did not fail.
pub(crate) enum Outcome {
    /// Passed; the text says what was observed.
    Passed(String),
    /// Skipped; the text says why it cannot be tried here.
    Skipped(String),
}

/// A result, or an error that says what was found instead.
pub(crate) type Verdict = Result<Outcome, String>;

/// Fails the scenario with this message unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($words:tt)+) => {
        if !$condition {
            return Err(format!($($words)+));
        }
    };
}
pub(crate) use ensure;

/// Adds what was being done to an error.
pub(crate) trait During<T> {
    fn during(self, what: &str) -> Result<T, String>;
}

impl<T, E: std::fmt::Display> During<T> for Result<T, E> {
    fn during(self, what: &str) -> Result<T, String> {
        self.map_err(|why| format!("{what}: {why}"))
    }
}
