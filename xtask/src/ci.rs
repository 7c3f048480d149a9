//! The steps that decide whether a change lands.
//!
//! The steps run in order, each with a time limit, and the first that fails ends the run with its
//! name. The first is the README's test command, so that the command a newcomer types is tested.
//! The limits are there for hangs: all steps together should take under 45 minutes on two cores
//! from a clean clone.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use crate::{Outcome, conformance, model, platforms, root, shell, transcript};

/// Text of `cargo xtask ci --help`.
pub const HELP: &str = "\
cargo xtask ci [--full] [--from <step>] [--list]

Runs the steps of CI in order and stops at the first that fails.
  --full         every negative control, signals in every test, Tokio's tests with its unstable
                 parts and all of them preempted, Rayon's with every number of threads, every
                 program of conformance/differential, and all packages and programs that use
                 Tokio, instead of a rotating sample
  --from <step>  begins at the first step whose name contains <step>
  --list         prints the steps and runs none

The last line is `N passed, M failed`, in steps.";

/// How a step ended.
enum Ended {
    Passed,
    Skipped(String),
    /// Why, and the lines of output that say more.
    Failed(String, Vec<String>),
}

/// One step.
struct Step {
    name: String,
    limit: Duration,
    work: Work,
}

enum Work {
    /// Commands in order; the first that fails fails the step.
    Commands(Vec<Command>),
    /// Commands that are determined when it is the step's turn; an error is the reason why there
    /// are none.
    Found(fn() -> Result<Vec<Command>, String>),
    /// Nothing to run here, and why.
    Missing(String),
}

/// Runs `cargo xtask ci`.
pub fn main(arguments: &[String]) -> Outcome {
    let mut full = false;
    let mut list = false;
    let mut from = None;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--full" => full = true,
            "--list" => list = true,
            "--from" => from = Some(arguments.next().ok_or("--from wants the name of a step")?),
            unknown => return Err(format!("`{unknown}` is no argument of ci; see --help")),
        }
    }
    let mut steps = steps(full);
    if let Some(name) = from {
        let at = steps.iter().position(|step| step.name.contains(name.as_str()));
        steps.drain(..at.ok_or_else(|| format!("no step is called `{name}`; see --list"))?);
    }
    if list {
        steps.iter().for_each(|step| println!("{}", step.name));
        return Ok(());
    }
    run(steps)
}

fn run(steps: Vec<Step>) -> Outcome {
    let count = steps.len();
    let mut lines = Vec::new();
    let mut passed = 0;
    let mut failure = None;
    let mut reason = Vec::new();
    for (number, step) in steps.into_iter().enumerate() {
        println!("\n=== {}/{count} {}", number + 1, step.name);
        let start = Instant::now();
        let ended = step.work.run(step.limit);
        let time = format!("{:7.1} s  {}", start.elapsed().as_secs_f64(), step.name);
        match ended {
            Ended::Passed => {
                passed += 1;
                lines.push(format!("passed {time}"));
            }
            Ended::Skipped(why) => {
                println!("skipped: {why}");
                lines.push(format!("skip   {time}: {why}"));
            }
            Ended::Failed(why, output) => {
                println!("failed: {why}");
                lines.push(format!("FAILED {time}: {why}"));
                reason = output;
                failure = Some(step.name);
                break;
            }
        }
    }
    println!("\n=== summary");
    lines.iter().for_each(|line| println!("{line}"));
    if failure.is_some() {
        println!("{} steps were not run", count - lines.len());
    }
    if let Some(name) = &failure {
        println!("step `{name}` failed:");
        reason.iter().for_each(|line| println!("  {line}"));
    }
    println!("{passed} passed, {} failed", usize::from(failure.is_some()));
    // Everything has been reported, and the total must stay the last line.
    if failure.is_some() { Err(String::new()) } else { Ok(()) }
}

impl Work {
    fn run(self, limit: Duration) -> Ended {
        let commands = match self {
            Work::Missing(why) => return Ended::Skipped(why),
            Work::Commands(commands) => commands,
            Work::Found(find) => match find() {
                Ok(commands) => commands,
                Err(why) => return Ended::Skipped(why),
            },
        };
        let deadline = Instant::now() + limit;
        for mut command in commands {
            println!("$ {}", shown(&command));
            let left = deadline.saturating_duration_since(Instant::now());
            let (end, transcript) = match transcript::run(&mut command, left) {
                Ok(ended) => ended,
                Err(why) => return Ended::Failed(why, Vec::new()),
            };
            let why = match end {
                end if end.success() => continue,
                shell::End::TimedOut => format!("no end in {} s", limit.as_secs()),
                shell::End::Exit(status) => status.to_string(),
            };
            return Ended::Failed(why, transcript.reason());
        }
        Ended::Passed
    }
}

/// Returns a command as it would be typed.
fn shown(command: &Command) -> String {
    let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let set = set.map(|(name, value)| format!("{}={:?} ", name.display(), value));
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().display();
    let arguments = command.get_args().map(|argument| format!(" {}", argument.display()));
    format!("{}{program}{}", set.collect::<String>(), arguments.collect::<String>())
}

/// The factor for the tests' own time limits: a shared machine may stall for a while.
const PATIENCE: (&str, &str) = ("BLITZ_IT_PATIENCE", "4");

fn cargo(arguments: &str) -> Command {
    let mut command = shell::cargo();
    command.args(arguments.split_whitespace()).env(PATIENCE.0, PATIENCE.1);
    command
}

fn step(name: &str, minutes: u64, commands: impl Into<Vec<Command>>) -> Step {
    let work = Work::Commands(commands.into());
    Step { name: name.to_owned(), limit: Duration::from_secs(60 * minutes), work }
}

/// Returns the steps. The minutes are limits against hangs, several times what a step takes on two
/// idle cores.
fn steps(full: bool) -> Vec<Step> {
    let mut docs = cargo("doc --workspace --no-deps");
    docs.env("RUSTDOCFLAGS", "-D warnings");
    // Without the doc tests, which the first step has run.
    let mut overflow = cargo("test --release --workspace --exclude xtask --lib --bins --tests");
    overflow.env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true");
    let mut stacks = cargo("test -p blitz-io --features stall-stacks --test preempt");
    stacks.env("BLITZ_BARRIER", "fences");
    let weaken = if full { "xtask model --weaken --full" } else { "xtask model --weaken" };
    let clippy = ["", "--features blitz-io/test-util "].map(|features| {
        cargo(&format!("clippy --workspace --all-targets {features}-- -D warnings"))
    });
    vec![
        step("cargo test --workspace", 25, [cargo("test --workspace")]),
        needs("fmt", "fmt", step("format", 1, format())),
        // The advisories change without a commit of ours, so they are looked at before a release.
        needs(
            "deny",
            "deny",
            step("licences and sources", 5, [cargo("deny check licenses bans sources")]),
        ),
        needs("clippy", "clippy", step("clippy", 10, clippy)),
        step("docs", 5, [docs]),
        step("macros: messages, and another name", 10, misuse()),
        step("each feature alone and none", 10, features()),
        step("spans", 10, [cargo("test -p blitz-io --features tracing --test spans")]),
        step("fibers", 10, [cargo("test -p blitz-io --features fiber --test fiber")]),
        step(
            "stack traces of stuck tasks, by fences too, and signals at random",
            10,
            [stacks, cargo(if full { "xtask interrupt" } else { "xtask interrupt --sample" })],
        ),
        // The seed is derived from the commit, and printed.
        step("chaos", 15, [cargo("xtask chaos --minutes 1 --sample --debug")]),
        step("tests in release with overflow checks", 30, [overflow]),
        step("variants of the queues", 10, [variants()]),
        step("models", 20, [cargo("xtask model")]),
        step("negative controls of the models", 25, [cargo(weaken)]),
        step(
            "with other event backends",
            15,
            [cargo("xtask backends --only io::,net::,time:: poll uring")],
        ),
        step("conformance", if full { 45 } else { 15 }, tokios(full)),
        // The second command checks that the recorded lists match the real packages.
        step("the drop-ins' surface", 15, [cargo("xtask api"), cargo("xtask api --upstream")]),
        step("programs on both sides", 25, [cargo(&differential(full))]),
        step("Rayon's own tests", 20, rayons(full)),
        step("packages that use Tokio, on the drop-in", if full { 180 } else { 30 }, users(full)),
        panic_abort(),
        // The build is a separate step, so that the limit is the tour's own: under a minute.
        step("build of the tour", 10, [cargo("build --release")]),
        step("cargo run --release", 1, [cargo("run --release")]),
        other_platforms(),
    ]
}

/// Returns the commands for Tokio's own tests: all files as they are, and one half of them with
/// workers that change threads everywhere, another half for each commit. With `full`, all of them
/// and the unstable parts.
fn tokios(full: bool) -> Vec<Command> {
    let all = cargo("xtask conformance");
    if full {
        let sliced = cargo("xtask conformance --slice 1ms");
        return vec![all, sliced, cargo(UNSTABLE)];
    }
    let half = model::commit_number() % 2;
    vec![all, cargo(&format!("xtask conformance --slice 1ms --share {half}/2"))]
}

/// Tokio's own tests with its unstable parts, which recompile everything.
const UNSTABLE: &str = "xtask conformance --unstable";

/// The number of parts that the cases of `conformance/differential` are split into. All 1,229 took
/// less than a minute on two busy cores; the two builds take longer.
const PARTS: usize = 2;

/// Returns the command for the cases of `conformance/differential`, or for one part of them:
/// another part for each commit.
fn differential(full: bool) -> String {
    match full {
        true => "xtask differential".to_owned(),
        false => {
            format!("xtask differential --sample {} --of {PARTS}", model::commit_number() % PARTS)
        }
    }
}

/// Returns the commands for Rayon's tests on a pool of the machine's size, and on a smaller or
/// larger one: another size for each commit.
fn rayons(full: bool) -> Vec<Command> {
    const THREADS: [usize; 4] = [1, 2, 8, 64];
    let chosen = &THREADS[model::commit_number() % THREADS.len()];
    let others = if full { &THREADS[..] } else { std::slice::from_ref(chosen) };
    let with = |threads: &usize| cargo(&format!("xtask conformance --rayon --threads {threads}"));
    let usual = cargo("xtask conformance --rayon");
    std::iter::once(usual).chain(others.iter().map(with)).collect()
}

/// Returns the commands for the programs of `conformance/apps`, or one of the packages of
/// `conformance/suites.txt`, or Tokio's unstable parts: another one for each commit.
fn users(full: bool) -> Vec<Command> {
    let list = conformance::lines(&root().join("conformance/suites.txt"));
    let rotation = rotation(&list.expect("conformance/suites.txt names packages"));
    if full {
        let others = rotation.iter().filter(|command| *command != UNSTABLE);
        return others.map(|command| cargo(command)).collect();
    }
    vec![cargo(&rotation[model::commit_number() % rotation.len()])]
}

/// Returns the commands of which each commit runs one. Every sixth is the unstable parts, because
/// they have more tests than any package.
fn rotation(suites: &[String]) -> Vec<String> {
    let packages = suites.iter().filter_map(|line| line.split(' ').next());
    let suite = |package: &str| format!("xtask conformance --suites {package}");
    let others: Vec<_> =
        std::iter::once("xtask conformance --apps".to_owned()).chain(packages.map(suite)).collect();
    let with_unstable = |some: &[String]| [&[UNSTABLE.to_owned()], some].concat();
    others.chunks(5).flat_map(with_unstable).collect()
}

/// Returns the commands that check the compiler's messages about misuse of the macros, and the
/// macros in a crate that depends only on them, under another name.
fn misuse() -> Vec<Command> {
    let test = |package: &str| {
        let mut command =
            cargo(&format!("test --manifest-path compile-fail/Cargo.toml -p {package}"));
        command.env("CARGO_TARGET_DIR", root().join("target/compile-fail"));
        command
    };
    // Two commands, because in one build features would be unified.
    ["compile-fail", "renamed"].map(test).into()
}

/// Returns the command that builds bench/queues and tests the variants that lost there. The files
/// of the runtime that they include bring tests along, which the first step has run.
fn variants() -> Command {
    let mut command = cargo("test --manifest-path bench/queues/Cargo.toml --workspace --");
    command.args(["variants::", "choices::"]);
    command.env("CARGO_TARGET_DIR", root().join("target/queues"));
    command
}

/// Returns the format checks of the workspace and of the workspaces beside it.
fn format() -> Vec<Command> {
    let mut commands = vec![cargo("fmt --all -- --check")];
    let own = [
        "compile-fail",
        "conformance/tokio-test",
        "conformance/apps",
        "conformance/differential",
        "bench/harness",
        "bench/sched",
        "bench/sync",
        "bench/net",
        "bench/fs",
        "bench/os",
        "bench/fork",
        "bench/fork/dropin",
        "bench/mixed",
        "bench/mixed/ours",
        "bench/programs",
        "bench/programs/stock",
        "bench/preempt",
        "bench/fibers",
        "bench/queues",
    ];
    for manifest in own {
        let manifest = format!("{manifest}/Cargo.toml");
        if root().join(&manifest).exists() {
            commands.push(cargo(&format!("fmt --all --manifest-path {manifest} -- --check")));
        }
    }
    commands
}

/// Returns `step`, or a skipped step if cargo lacks a subcommand.
fn needs(name: &str, subcommand: &str, step: Step) -> Step {
    let mut probe = shell::cargo();
    probe.args([subcommand, "--version"]);
    match shell::capture(&mut probe, Duration::from_secs(60)) {
        Ok(finished) if finished.end.success() => step,
        _ => Step { work: Work::Missing(format!("cargo {name} is not installed")), ..step },
    }
}

/// Returns the builds of the runtime with each feature alone and with none; and of the drop-in,
/// whose feature names map to the runtime's one to one, with none and with all.
fn features() -> Vec<Command> {
    let manifest = fs::read_to_string(root().join("crates/blitz-io/Cargo.toml"));
    let check = |feature: String| {
        cargo(&format!("check --quiet -p blitz-io --no-default-features --features={feature}"))
    };
    let mut commands: Vec<_> =
        feature_names(&manifest.unwrap_or_default()).into_iter().map(check).collect();
    commands.push(cargo("check --quiet -p blitz-io --no-default-features"));
    for bridge in ["", " --features hyper", " --features futures-io", " --features tokio"] {
        commands.push(cargo(&format!("check --quiet -p blitz-io-compat{bridge}")));
    }
    commands.push(cargo("check --quiet -p tokio --no-default-features"));
    commands.push(cargo("check --quiet -p tokio --all-features"));
    commands
}

/// Returns the names in a manifest's `[features]`.
pub fn feature_names(manifest: &str) -> Vec<String> {
    let section = manifest.split("\n[features]\n").nth(1).unwrap_or_default();
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    // A list may span several lines; only the first has the name.
    let name = |line: &str| {
        let (name, _) = line.split_once(" = ")?;
        (!line.starts_with(['#', ' ', '\t', '"', ']'])).then(|| name.trim().to_owned())
    };
    lines.filter_map(name).collect()
}

/// Returns the step for Windows, macOS, FreeBSD, aarch64 and i686, where a compiler for them is
/// available.
fn other_platforms() -> Step {
    let step = step("other platforms", 15, []);
    Step { work: Work::Found(platforms::checks), ..step }
}

/// Returns the step for a program that is built with `panic = "abort"` and checks itself: it exits
/// with 0 if a panic in a task ends the process as it should.
fn panic_abort() -> Step {
    const PROGRAM: &str = "examples/src/bin/panic_abort.rs";
    let mut command = cargo("run --release --manifest-path examples/Cargo.toml --bin panic_abort");
    command.env("CARGO_PROFILE_RELEASE_PANIC", "abort");
    command.env("CARGO_TARGET_DIR", root().join("target/abort"));
    let step = step("panic=abort", 5, [command]);
    if root().join(PROGRAM).exists() {
        return step;
    }
    Step { work: Work::Missing(format!("{PROGRAM} is not there")), ..step }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Step, UNSTABLE, Work, feature_names, rotation, run, step, steps};

    #[test]
    fn the_first_step_is_the_readmes_test_command() {
        let Work::Commands(commands) = &steps(false)[0].work else { panic!("no commands") };
        let arguments: Vec<_> = commands[0].get_args().collect();
        assert_eq!((commands.len(), arguments), (1, vec!["test".as_ref(), "--workspace".as_ref()]));
        if let Ok(readme) = std::fs::read_to_string(crate::root().join("README.md")) {
            assert!(readme.contains("cargo test --workspace"), "the README names another command");
        }
    }

    #[test]
    fn each_package_has_a_place_in_the_rotation_and_the_unstable_parts_every_sixth() {
        let names = ["a", "b", "c", "d", "e", "f"];
        let places = rotation(&names.map(|name| format!("{name} 1.0.0 1")));
        let suite = |name: &str| format!("xtask conformance --suites {name}");
        assert!(names.iter().all(|name| places.contains(&suite(name))));
        let unstable: Vec<_> = (0..places.len()).filter(|at| places[*at] == UNSTABLE).collect();
        assert_eq!((unstable, places.len()), (vec![0, 6], 1 + names.len() + 2));
    }

    #[test]
    fn features_are_read_from_the_manifest() {
        let manifest = "[package]\nname = \"x\"\n\n[features]\n# A comment = no.\ndefault = [\"full\"]\nfull = [\n    \"rt\",\n]\nrt-multi-thread = []\n\n[dependencies]\nlibc = \"1\"\n";
        assert_eq!(feature_names(manifest), ["default", "full", "rt-multi-thread"]);
    }

    #[test]
    fn a_failure_stops_the_run_and_a_skip_does_not() {
        let sh = |script: &str| {
            let mut command = std::process::Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let skip = || Step {
            name: "skipped".into(),
            limit: Duration::ZERO,
            work: Work::Missing("no such tool".into()),
        };
        assert_eq!(run(vec![skip(), step("good", 1, [sh("true")])]), Ok(()));
        let why = run(vec![step("bad", 1, [sh("exit 7")]), step("never", 1, [sh("exit 8")])]);
        assert_eq!(why, Err(String::new()));
    }
}
