//! The description of a row of a table, apart from its workload.

/// A row of the table.
pub struct Row {
    pub name: &'static str,
    /// The description of one operation.
    pub what: &'static str,
    /// The contenders that do not support it. They are not started for this row, and the table has
    /// a dash for them.
    pub lacks: &'static [&'static str],
    /// True if it takes a second or more whatever the budget: one round of it is enough for a quick
    /// run.
    pub slow: bool,
    workers: Workers,
}

/// The numbers of workers that a row is measured with.
#[derive(Clone, Copy)]
enum Workers {
    Any,
    /// The row sets its number of threads itself: it runs once, under one worker.
    One,
    /// The row does not depend on the number, or is meaningful only with two.
    SeveralOnly,
}

impl Row {
    pub const fn new(name: &'static str, what: &'static str) -> Row {
        Row { name, what, lacks: &[], slow: false, workers: Workers::Any }
    }

    pub const fn lacked_by(self, lacks: &'static [&'static str]) -> Row {
        Row { lacks, ..self }
    }

    pub const fn slow(self) -> Row {
        Row { slow: true, ..self }
    }

    pub const fn with_own_threads(self) -> Row {
        Row { workers: Workers::One, ..self }
    }

    pub const fn with_several_workers(self) -> Row {
        Row { workers: Workers::SeveralOnly, ..self }
    }

    /// Returns true if the row is measured with this many workers.
    pub fn runs_with(&self, workers: usize) -> bool {
        match self.workers {
            Workers::Any => true,
            Workers::One => workers == 1,
            Workers::SeveralOnly => workers > 1,
        }
    }
}

/// Published figures of another project for the same operations: a column beside ours.
#[derive(Clone, Copy)]
pub struct Claims {
    /// The head of the column.
    pub whose: &'static str,
    /// A paragraph below the table: where the figures come from.
    pub note: &'static str,
    /// Rows and their published figures.
    pub all: &'static [(&'static str, &'static str)],
}

impl Claims {
    pub fn of(&self, row: &str) -> &'static str {
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
    fn a_row_for_several_workers_does_not_run_with_one() {
        let row = Row::new("a", "b").with_several_workers();
        assert!(!row.runs_with(1) && row.runs_with(2));
    }

    #[test]
    fn a_claim_is_found_by_the_name_of_its_figure() {
        let claims = Claims { whose: "x", note: "", all: &[("a", "1"), ("a.bytes", "2")] };
        assert_eq!([claims.of("a"), claims.of("a.bytes"), claims.of("b")], ["1", "2", "–"]);
    }
}
