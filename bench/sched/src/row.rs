//! The description of a row of a table, apart from its workload.

/// A row of the table.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// The description of one operation.
    pub(crate) what: &'static str,
    /// The contenders that do not support it. They are not started for this row, and the table has
    /// a dash for them.
    pub(crate) lacks: &'static [&'static str],
    /// True if it takes a second or more whatever the budget: one round of it is enough for a quick
    /// run.
    pub(crate) slow: bool,
    /// True if the row sets its number of threads itself: it runs once, under one worker.
    own_threads: bool,
}

impl Row {
    pub(crate) const fn new(name: &'static str, what: &'static str) -> Row {
        Row { name, what, lacks: &[], slow: false, own_threads: false }
    }

    pub(crate) const fn lacked_by(self, lacks: &'static [&'static str]) -> Row {
        Row { lacks, ..self }
    }

    #[allow(dead_code, reason = "not every comparison has such rows")]
    pub(crate) const fn slow(self) -> Row {
        Row { slow: true, ..self }
    }

    #[allow(dead_code, reason = "not every comparison has such rows")]
    pub(crate) const fn with_own_threads(self) -> Row {
        Row { own_threads: true, ..self }
    }

    /// Returns true if the row is measured with this many workers.
    pub(crate) fn runs_with(&self, workers: usize) -> bool {
        workers == 1 || !self.own_threads
    }
}

/// Published figures of another project for the same operations: a column beside ours.
#[derive(Clone, Copy)]
pub(crate) struct Claims {
    /// The head of the column.
    pub(crate) whose: &'static str,
    /// A paragraph below the table: where the figures come from.
    pub(crate) note: &'static str,
    /// Rows and their published figures.
    pub(crate) all: &'static [(&'static str, &'static str)],
}

impl Claims {
    pub(crate) fn of(&self, row: &str) -> &'static str {
        self.all.iter().find(|(known, _)| *known == row).map_or("–", |(_, claim)| claim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_with_its_own_threads_runs_once() {
        let row = Row::new("a", "b").with_own_threads().lacked_by(&["smol"]).slow();
        assert!(row.runs_with(1) && !row.runs_with(2));
        assert!(row.slow && row.lacks == ["smol"]);
        assert!(Row::new("a", "b").runs_with(2));
    }

    #[test]
    fn a_claim_is_found_by_the_name_of_its_figure() {
        let claims = Claims { whose: "x", note: "", all: &[("a", "1"), ("a.bytes", "2")] };
        assert_eq!([claims.of("a"), claims.of("a.bytes"), claims.of("b")], ["1", "2", "–"]);
    }
}
