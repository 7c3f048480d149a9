//! The loom models and their negative controls.
//!
//! The models are the tests of the runtime crate in its loom build. A negative control is the same
//! build with `BLITZ_WEAKEN` set, which leaves out one ordering, fence or check; a model must
//! notice. So the source is compiled once and the test binary is run once per name, without cargo.
//!
//! A control counts as caught when a test fails, the process dies, or the run does not end (a lost
//! wake-up may show as a model that never ends). The last is sound only because the same models are
//! run unweakened before: they must pass, and the limit is never less than four times what they
//! took.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    Outcome, root, shell,
    tidy::{self, layers::CRATE, story::weakened_names},
};

/// Text of `cargo xtask model --help`.
pub const HELP: &str = "\
cargo xtask model [--weaken [--full]] [filter]

Builds the runtime crate for loom (release, target/loom) and runs its tests,
which are the models; `filter` picks some by name.
  --weaken   then runs the models once per `weakened!(\"name\")` in the source,
             with that bug planted, and expects one to fail. `filter` picks
             names here. More than 20 names: 20 of them, rotating by commit.
  --full     all names.

Loom's own knobs (LOOM_MAX_PREEMPTIONS, LOOM_LOG …) are passed through.";

/// The minimum time that a weakened run gets before it counts as endless.
const LIMIT: Duration = Duration::from_secs(60);

/// The time limit of the unweakened models; more means that something is badly wrong.
const HEALTHY_LIMIT: Duration = Duration::from_secs(20 * 60);

/// The number of controls that a run without `--full` tries.
const SAMPLE: usize = 20;

/// The options of the command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    weaken: bool,
    full: bool,
    filter: Option<String>,
}

impl Request {
    fn read(arguments: &[String]) -> Result<Self, String> {
        let mut request = Self::default();
        for argument in arguments {
            match argument.as_str() {
                "--weaken" => request.weaken = true,
                "--full" => request.full = true,
                unknown if unknown.starts_with('-') => {
                    return Err(format!("`{unknown}` is no argument of model; see --help"));
                }
                filter => request.filter = Some(filter.to_owned()),
            }
        }
        Ok(request)
    }
}

/// Runs `cargo xtask model`.
pub fn main(arguments: &[String]) -> Outcome {
    let request = Request::read(arguments)?;
    let binary = build()?;
    if request.weaken { weaken(&binary, &request) } else { explore(&binary, &request) }
}

/// Runs the models; prints their number.
fn explore(binary: &Path, request: &Request) -> Outcome {
    let start = Instant::now();
    let mut command = Command::new(binary);
    command.args(&request.filter).current_dir(root().join("crates/blitz-io"));
    let finished = shell::capture(&mut command, HEALTHY_LIMIT)?;
    print!("{}{}", finished.stdout, finished.stderr);
    let passed = passed(&finished.stdout);
    if !finished.end.success() {
        return Err("a model failed; run it alone with LOOM_LOG=1 LOOM_LOCATION=1".into());
    }
    if passed == 0 {
        return Err("no model ran: the filter matches none, or there are none".into());
    }
    println!("{passed} models explored in {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Builds the loom tests of the runtime crate; returns the binary.
fn build() -> Result<PathBuf, String> {
    let mut command = shell::cargo();
    command
        .args(["test", "--release", "-p", "blitz-io", "--features", "fiber", "--lib", "--no-run"])
        .env("RUSTFLAGS", "--cfg blitz_loom")
        .env("CARGO_TARGET_DIR", root().join("target/loom"));
    shell::build(&mut command, "crates/blitz-io", "blitz_io")
}

/// A planted bug: its name and the module whose models should notice first.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Control {
    name: String,
    module: String,
}

/// How a planted bug was noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Caught(String),
    Unnoticed,
}

fn weaken(binary: &Path, request: &Request) -> Outcome {
    let controls = choose(controls(), request);
    if controls.is_empty() {
        return Err("no `weakened!` name matches the filter".into());
    }
    let start = Instant::now();
    let verdicts = Trial { binary, limits: Mutex::default() }.try_all(&controls)?;
    let width = verdicts.keys().map(String::len).max().unwrap_or(0);
    for (name, verdict) in &verdicts {
        match verdict {
            Verdict::Caught(by) => println!("{name:width$}  caught by {by}"),
            Verdict::Unnoticed => println!("{name:width$}  NOT NOTICED"),
        }
    }
    let unnoticed = verdicts.iter().filter(|(_, verdict)| **verdict == Verdict::Unnoticed);
    let unnoticed: Vec<_> = unnoticed.map(|(name, _)| name.as_str()).collect();
    let seconds = start.elapsed().as_secs_f64();
    println!("{} of {} caught in {seconds:.1} s", verdicts.len() - unnoticed.len(), verdicts.len());
    if unnoticed.is_empty() {
        return Ok(());
    }
    Err(format!("the models do not notice {}: add one that does", unnoticed.join(", ")))
}

/// Returns all controls in the source, ordered by name. Those of the queues' variants are not in
/// the runtime crate; the header of bench/queues/variants/src/lib.rs says how to run them.
fn controls() -> Vec<Control> {
    let mut files = tidy::tree();
    files.retain(|file| file.path.starts_with(CRATE));
    let control = |(name, places): (String, Vec<(&tidy::File, usize)>)| Control {
        name,
        module: module_of(&places[0].0.path),
    };
    weakened_names(&files).into_iter().map(control).collect()
}

/// Returns the module of a file: `crates/blitz-io/src/engine/prim/parker.rs` is
/// `engine::prim::parker::`.
fn module_of(path: &str) -> String {
    let inside = path.trim_start_matches(CRATE).trim_end_matches(".rs").trim_end_matches("/mod");
    format!("{}::", inside.replace('/', "::"))
}

fn choose(mut controls: Vec<Control>, request: &Request) -> Vec<Control> {
    if let Some(filter) = &request.filter {
        controls.retain(|control| control.name.contains(filter));
    }
    if request.full || controls.len() <= SAMPLE {
        return controls;
    }
    let start = commit_number() % controls.len();
    println!("{SAMPLE} of {} controls, from number {start} on; --full tries all", controls.len());
    controls.rotate_left(start);
    controls.truncate(SAMPLE);
    controls
}

/// Returns a number that changes from commit to commit; 0 without git.
pub fn commit_number() -> usize {
    let mut git = Command::new("git");
    git.args(["rev-parse", "--short=7", "HEAD"]).current_dir(root());
    let hash = shell::capture(&mut git, LIMIT).map(|finished| finished.stdout);
    usize::from_str_radix(hash.unwrap_or_default().trim(), 16).unwrap_or(0)
}

/// The test binary, and the time limits of its models.
struct Trial<'a> {
    binary: &'a Path,
    /// Limits by module; `None` stands for all models.
    limits: Mutex<BTreeMap<Option<String>, Duration>>,
}

impl Trial<'_> {
    /// Tries the controls on all cores.
    fn try_all(&self, controls: &[Control]) -> Result<BTreeMap<String, Verdict>, String> {
        let next = AtomicUsize::new(0);
        let verdicts = Mutex::new(Ok(BTreeMap::new()));
        let worker = || {
            // Relaxed: the counter only hands out numbers.
            while let Some(control) = controls.get(next.fetch_add(1, Relaxed)) {
                let verdict = self.try_one(control);
                let mut verdicts = verdicts.lock().unwrap();
                match (verdict, verdicts.as_mut()) {
                    (Ok(verdict), Ok(known)) => drop(known.insert(control.name.clone(), verdict)),
                    (Err(why), _) => *verdicts = Err(why),
                    (Ok(_), Err(_)) => return,
                }
            }
        };
        let cores = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            for _ in 0..cores {
                scope.spawn(worker);
            }
        });
        verdicts.into_inner().unwrap()
    }

    /// Tries one control; runs the models of its own module first, because they are the ones that
    /// notice.
    fn try_one(&self, control: &Control) -> Result<Verdict, String> {
        for filter in [Some(control.module.as_str()), None] {
            let limit = self.limit(filter)?;
            let verdict = run(self.binary, Some(&control.name), filter, limit)?;
            if verdict != Verdict::Unnoticed {
                return Ok(verdict);
            }
        }
        Ok(Verdict::Unnoticed)
    }

    /// Runs the models unweakened, once; returns the time limit that follows for the weakened runs.
    fn limit(&self, filter: Option<&str>) -> Result<Duration, String> {
        // Held while they run, because a second caller needs the same result.
        let mut limits = self.limits.lock().unwrap();
        let key = filter.map(str::to_owned);
        if let Some(limit) = limits.get(&key) {
            return Ok(*limit);
        }
        let start = Instant::now();
        match run(self.binary, None, filter, HEALTHY_LIMIT)? {
            Verdict::Caught(by) => Err(format!("{by} fails with no bug planted")),
            Verdict::Unnoticed => {
                let limit = LIMIT.max(start.elapsed() * 4);
                limits.insert(key, limit);
                Ok(limit)
            }
        }
    }
}

/// Runs the models one by one until the first fails.
fn run(
    binary: &Path,
    weakened: Option<&str>,
    filter: Option<&str>,
    limit: Duration,
) -> Result<Verdict, String> {
    let mut command = Command::new(binary);
    // One thread, so that the tests run in the order of `--list` and we know which one a dying
    // process was in.
    command.arg("--test-threads=1").args(filter);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.env_remove("BLITZ_WEAKEN").current_dir(root().join("crates/blitz-io"));
    if let Some(name) = weakened {
        command.env("BLITZ_WEAKEN", name);
    }
    let mut child = command.spawn().map_err(|why| why.to_string())?;
    let chunks = chunks_of(child.stdout.take());
    let deadline = Instant::now() + limit;
    let mut output = String::new();
    let verdict = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match chunks.recv_timeout(left) {
            Ok(chunk) => {
                output.push_str(&chunk);
                if let Some(test) = first_failure(&output) {
                    break Verdict::Caught(test);
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let test = unfinished(binary, filter, &output)?;
                break Verdict::Caught(format!("{test} (no end in {} s)", limit.as_secs()));
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let status = child.wait().map_err(|why| why.to_string())?;
                if status.success() {
                    break Verdict::Unnoticed;
                }
                let test = unfinished(binary, filter, &output)?;
                break Verdict::Caught(format!("{test} ({status})"));
            }
        }
    };
    // After a verdict the remaining models have nothing to add.
    let _ = child.kill();
    let _ = child.wait();
    Ok(verdict)
}

/// Returns a channel of what a child prints, as it is printed.
fn chunks_of(pipe: Option<impl std::io::Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let Some(pipe) = pipe else { return };
        let mut reader = BufReader::new(pipe);
        while let Ok(chunk) = reader.fill_buf() {
            let length = chunk.len();
            let text = String::from_utf8_lossy(chunk).into_owned();
            reader.consume(length);
            if length == 0 || sender.send(text).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Returns the first test that libtest reports as failed.
fn first_failure(output: &str) -> Option<String> {
    let failed = |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.into());
    output.lines().find_map(failed)
}

/// Returns the test that a run was in when it died or was killed. A dying process loses its last,
/// unflushed line, so this is the first listed test without a result.
fn unfinished(binary: &Path, filter: Option<&str>, output: &str) -> Result<String, String> {
    let listed = shell::capture(Command::new(binary).arg("--list").args(filter), LIMIT)?;
    Ok(first_without_result(&listed.stdout, output).unwrap_or("the process").to_owned())
}

fn first_without_result<'a>(listed: &'a str, output: &str) -> Option<&'a str> {
    let mut names = listed.lines().filter_map(|line| line.strip_suffix(": test"));
    names.find(|name| {
        let start = format!("test {name} ... ");
        !output.lines().any(|line| line.len() > start.len() && line.starts_with(&start))
    })
}

/// Returns the number of tests that libtest reports as passed, summed over all its runs.
pub fn passed(output: &str) -> usize {
    let count = |line: &str| {
        let (_, after) = line.strip_prefix("test result: ")?.split_once(". ")?;
        after.split(" passed").next()?.parse::<usize>().ok()
    };
    output.lines().filter_map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::{
        Control, Request, SAMPLE, choose, first_failure, first_without_result, module_of, passed,
    };

    #[test]
    fn libtest_output_is_understood() {
        let output = "\nrunning 2 tests\ntest a::b ... ok\ntest c::d ... FAILED\n\n\
                      test result: FAILED. 1 passed; 1 failed; 0 ignored\n";
        assert_eq!(first_failure(output).as_deref(), Some("c::d"));
        assert_eq!(passed(output), 1);
        let listed = "a::b: test\nc::d: test\ne::f: test\n\n3 tests, 0 benchmarks\n";
        assert_eq!(first_without_result(listed, "test a::b ... ok\n"), Some("c::d"));
        assert_eq!(first_without_result(listed, "test a::b ... ok\ntest c::d ... "), Some("c::d"));
        assert_eq!(first_failure("test a::b ... ok\n"), None);
    }

    #[test]
    fn a_file_is_its_module() {
        assert_eq!(
            module_of("crates/blitz-io/src/engine/prim/parker.rs"),
            "engine::prim::parker::"
        );
        assert_eq!(module_of("crates/blitz-io/src/engine/pool/mod.rs"), "engine::pool::");
    }

    #[test]
    fn many_controls_are_sampled_unless_all_are_wanted() {
        let control = |n: usize| Control { name: format!("c{n:02}"), module: String::new() };
        let many: Vec<_> = (0..30).map(control).collect();
        assert_eq!(choose(many.clone(), &Request::default()).len(), SAMPLE);
        assert_eq!(choose(many.clone(), &Request { full: true, ..Request::default() }).len(), 30);
        let filter = Some("c0".to_owned());
        assert_eq!(choose(many, &Request { filter, ..Request::default() }).len(), 10);
    }

    #[test]
    fn an_unknown_argument_is_refused() {
        assert!(Request::read(&["--weak".to_owned()]).is_err());
    }
}
