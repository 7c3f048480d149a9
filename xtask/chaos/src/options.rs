//! The arguments of the program.

use std::time::Duration;

use crate::{
    class::{self, Classes},
    plant::Plant,
};

/// Text of `--help`.
pub(crate) const HELP: &str = "\
chaos [options]: random programs on the runtime, which count that nothing is lost or doubled

  --seed N         chooses the plans; one of the clock unless given, and printed
  --seconds N      begins rounds for so long; 10 unless given
  --round N        runs this round alone; --times N repeats it
  --show           prints the plan of a round before it runs
  --slice TIME     off, or a time as in 0.1ms, 100us: the slice of preemption on runtimes with
                   workers; the environment or the default decides unless given
  --guard NAME     membarrier or fences: how a core is taken from its thread (BLITZ_BARRIER)
  --backend NAME   epoll, poll or uring: how events are waited for (BLITZ_IO_BACKEND)
  --workers N      every runtime with workers has N of them; each another number unless given
  --without CLASS  leaves actions of this class out; may be repeated, or a list with commas
  --only CLASS     leaves all others out
  --deadline N     a round that takes more seconds hangs; 60 unless given
  --plant KIND     plants a defect that must be found: lost-task, lost-message, double-drop,
                   hang, hang-at-end, thread, descriptor, child, panic
  --brief          says what failed without the stacks of threads and the dumps of runtimes
  --list           prints the classes";

/// The parsed arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) seed: Option<u64>,
    pub(crate) length: Duration,
    pub(crate) round: Option<u64>,
    pub(crate) times: u64,
    pub(crate) show: bool,
    pub(crate) brief: bool,
    pub(crate) list: bool,
    pub(crate) help: bool,
    pub(crate) slice: Slice,
    pub(crate) guard: Option<String>,
    pub(crate) backend: Option<String>,
    pub(crate) workers: Option<usize>,
    pub(crate) classes: Classes,
    pub(crate) deadline: Duration,
    pub(crate) plant: Option<Plant>,
}

/// The slice of preemption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slice {
    /// The environment's setting, or the default.
    Default,
    /// No preemption.
    Off,
    Of(Duration),
}

impl Slice {
    fn read(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no slice: write off, or a time as in 0.1ms or 100us");
        if text == "off" {
            return Ok(Slice::Off);
        }
        let (number, unit) = match text.strip_suffix("us") {
            Some(number) => (number, 1e-6),
            None => (text.strip_suffix("ms").ok_or_else(wrong)?, 1e-3),
        };
        let number: f64 = number.parse().map_err(|_| wrong())?;
        Duration::try_from_secs_f64(number * unit).map(Slice::Of).map_err(|_| wrong())
    }

    /// Returns true if the core of a thread that blocks in a poll is taken over.
    pub(crate) fn preempts(self) -> bool {
        match self {
            Slice::Default => std::env::var_os("BLITZ_PREEMPTION").is_none_or(|say| say != "off"),
            Slice::Off => false,
            Slice::Of(_) => true,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: None,
            length: Duration::from_secs(10),
            round: None,
            times: 1,
            show: false,
            brief: false,
            list: false,
            help: false,
            slice: Slice::Default,
            guard: None,
            backend: None,
            workers: None,
            classes: Classes::all(),
            deadline: Duration::from_secs(60),
            plant: None,
        }
    }
}

impl Options {
    /// Reads the arguments; an error says which one is wrong.
    pub(crate) fn read(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        let mut only = None::<Classes>;
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("`{argument}` wants a value"));
            match argument.as_str() {
                "--help" | "-h" => options.help = true,
                "--list" => options.list = true,
                "--show" => options.show = true,
                "--brief" => options.brief = true,
                "--seed" => options.seed = Some(number(&value()?)?),
                "--seconds" => options.length = Duration::from_secs(number(&value()?)?),
                "--round" => options.round = Some(number(&value()?)?),
                "--times" => options.times = number(&value()?)?,
                "--slice" => options.slice = Slice::read(&value()?)?,
                "--guard" => {
                    options.guard = Some(one_of(value()?, &["membarrier", "fences"])?);
                }
                "--backend" => {
                    options.backend = Some(one_of(value()?, &["epoll", "poll", "uring"])?);
                }
                "--workers" => options.workers = Some(number(&value()?)?.clamp(1, 64) as usize),
                "--deadline" => options.deadline = Duration::from_secs(number(&value()?)?),
                "--plant" => options.plant = Some(Plant::named(&value()?)?),
                "--without" => {
                    for name in value()?.split(',') {
                        options.classes.remove(class::named(name)?);
                    }
                }
                "--only" => {
                    let chosen = only.get_or_insert(Classes::none());
                    for name in value()?.split(',') {
                        chosen.insert(class::named(name)?);
                    }
                }
                unknown => return Err(format!("`{unknown}` is no option; see --help")),
            }
        }
        options.classes = only.unwrap_or(options.classes);
        Ok(options)
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no whole number"))
}

fn one_of(text: String, known: &[&str]) -> Result<String, String> {
    if known.contains(&text.as_str()) {
        return Ok(text);
    }
    Err(format!("`{text}` is none of: {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Options, Slice};
    use crate::class::Class;

    fn read(text: &str) -> Result<Options, String> {
        Options::read(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn arguments_are_read_and_wrong_ones_are_named() {
        let options =
            read("--seed 7 --slice 0.1ms --without tcp,waiting-drop --workers 3").unwrap();
        assert_eq!((options.seed, options.workers), (Some(7), Some(3)));
        assert_eq!(options.slice, Slice::Of(Duration::from_micros(100)));
        assert!(!options.classes.has(Class::Tcp) && !options.classes.has(Class::WaitingDrop));
        assert!(options.classes.has(Class::Udp));
        let options = read("--only tcp --only udp").unwrap();
        assert!(options.classes.has(Class::Tcp) && !options.classes.has(Class::Unix));
        for bad in ["--sed 7", "--seed", "--seed x", "--slice 3", "--guard both", "--only tpc"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
