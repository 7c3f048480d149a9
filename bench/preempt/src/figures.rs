//! The figures that a child measures and its parent reads.

use std::time::Duration;

/// Lateness in milliseconds; the hogs' work, in iterations of their loop; the maximum of threads.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
    pub(crate) work: f64,
    pub(crate) threads: f64,
}

impl Figures {
    pub(crate) fn new(mut late: Vec<Duration>, work: u64, threads: usize) -> Result<Self, String> {
        if late.is_empty() {
            return Err("the clock has not ticked".to_owned());
        }
        late.sort_unstable();
        let at = |share: f64| {
            let place = ((late.len() - 1) as f64 * share) as usize;
            late[place].as_secs_f64() * 1e3
        };
        Ok(Self {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: at(1.0),
            work: work as f64,
            threads: threads as f64,
        })
    }

    fn fields(&mut self) -> [(&'static str, &mut f64); 6] {
        [
            ("p50", &mut self.p50),
            ("p90", &mut self.p90),
            ("p99", &mut self.p99),
            ("max", &mut self.max),
            ("work", &mut self.work),
            ("threads", &mut self.threads),
        ]
    }

    pub(crate) fn print(mut self) {
        for (name, value) in self.fields() {
            println!("{name} {value}");
        }
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut figures = Self::default();
        for (name, value) in figures.fields() {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            let parsed = line.and_then(|line| line.trim().parse().ok());
            *value = parsed.ok_or_else(|| format!("it has not said its {name}: {text}"))?;
        }
        Ok(figures)
    }
}

pub(crate) fn median(all: &[Figures], pick: impl Fn(&Figures) -> f64) -> f64 {
    let mut values: Vec<f64> = all.iter().map(pick).collect();
    harness::measure::median(&mut values)
}
