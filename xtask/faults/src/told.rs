//! What a scenario answers.

/// How a scenario ended that did not fail.
pub(crate) enum Told {
    /// And what was seen.
    Passed(String),
    /// And why it cannot be tried here.
    Skipped(String),
}

/// An error says what was found instead.
pub(crate) type Verdict = Result<Told, String>;

/// Fails the scenario with these words unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($words:tt)+) => {
        if !$condition {
            return Err(format!($($words)+));
        }
    };
}
pub(crate) use ensure;

/// Says what was being done when an error came.
pub(crate) trait While<T> {
    fn during(self, what: &str) -> Result<T, String>;
}

impl<T, E: std::fmt::Display> While<T> for Result<T, E> {
    fn during(self, what: &str) -> Result<T, String> {
        self.map_err(|why| format!("{what}: {why}"))
    }
}
