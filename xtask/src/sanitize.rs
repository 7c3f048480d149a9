//! Runs tests under the compilers' sanitizers: ThreadSanitizer for races, AddressSanitizer for uses
//! after free. Leaks are left to `cargo xtask leaks`, because here many tests leak on purpose
//! (futures that are forgotten, threads that are given to a pool forever).
//!
//! Both sanitizers make the compiler insert a call at each access, so both need unstable flags, and
//! the sanitizer runtime that a nightly toolchain brings.
//! - *address* uses nightly as it is: that std itself is not instrumented loses reports, and causes
//!   no false ones.
//! - *thread* needs a std that is instrumented too. Without it, the sanitizer would see no ordering
//!   in std's locks, and report a race for all that they guard. So std is built first, by nightly
//!   if it has the sources, and otherwise by Debian's compiler, which is linked with nightly's
//!   runtime.
//!
//! # Barriers and fences
//! ThreadSanitizer does not know of barriers that the kernel makes, so the tests run with
//! `BLITZ_BARRIER=fences`. It executes fences, but does not model them: for it they order nothing.
//! Ours stay as they are all the same. Each stands between a store and a load of one thread, so
//! that of two threads one sees the other; data that is *passed* from thread to thread goes by a
//! Release and an Acquire of some word, which the sanitizer models. A report at a fence would mean
//! that the fence passes data, and it would be the first that does.
//!
//! # Rejected
//! - Fences as read-modify-writes of a word, for the sanitizer's sake: every two of them that meet
//!   would publish all that was done before, which the language does not promise, so the sanitizer
//!   would miss the bugs that we look for. The canary of this file goes unnoticed then.
//! - Suppressions: a frame that is named in one hides every race below it.
//!
//! # Canaries
//! A run in which nothing is found means something only if a bug would be found. So under each
//! sanitizer some tests are run first with a bug planted by `BLITZ_WEAKEN`, as models are, and that
//! must be reported. A program whose tests have no planted bug that the sanitizer could see is
//! covered by another program's canary: all are built by one command.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use crate::{
    Outcome,
    json::Json,
    model::{commit_number, passed},
    platforms::Compiler,
    root,
    shell::{self, End},
};

/// Text of `cargo xtask sanitize --help`.
pub const HELP: &str = "\
cargo xtask sanitize [thread|address] [--full] [--list] [--chaos MINUTES] [filter …]

Builds the tests of the runtime crate for a sanitizer, or for both, and runs those of
fork-join, of preemption, and of files that are dropped and forgotten; first with a bug
planted, which must be reported.
  --full   all tests of the library, of tests/it and tests/preempt
  --list   the tests that are left out, and why
  --chaos  no tests, but the program of `cargo xtask chaos`, for MINUTES
A filter picks tests by name instead.

It is for Linux on x86-64, and needs a nightly toolchain of rustup's; for threads also
nightly's component rust-src, or Debian's rustc-web and rust-web-src. If something is
missing, the sanitizer is skipped, with a message. Reports stay in target/sanitize.";

/// The only target: the sanitizer runtimes exist for few others, and the models do not depend on
/// it.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Limit for building std and our crates, which takes some minutes; more is a hang.
const BUILD_LIMIT: Duration = Duration::from_secs(30 * 60);

/// Limit for one program. All of `tests/it` takes minutes.
const RUN_LIMIT: Duration = Duration::from_secs(60 * 60);

/// Limit for querying a tool for its version.
const QUERY_LIMIT: Duration = Duration::from_secs(60);

/// The factor for a test's own time limit: both sanitizers make tests ten to twenty times slower.
const PATIENCE: &str = "20";

/// The number of attempts for a canary. A race shows only if two threads do meet, and is nearly
/// always seen at once; a sanitizer that is broken never sees it.
const TRIES: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sanitizer {
    Thread,
    Address,
}

/// The tests that are run by default: programs, and parts of their tests' names. Of the file tests
/// only those in which operations are dropped, forgotten and outlived.
const USUAL: &[(&str, &[&str])] = &[
    ("blitz_io", &["engine::fork::", "engine::uring::", "engine::lease::", "engine::preempt::"]),
    ("it", &["parallel::", "fs::hostile::", "fs::inline::", "fs::read_at::", "fs::file::"]),
    ("preempt", &["hand_off::", "waits_in_polls::"]),
];

/// Tests that are not run: under which sanitizer, a part of the name, and why.
const LEFT_OUT: &[(Sanitizer, &str, &str)] = &[
    (
        Sanitizer::Thread,
        "parallel::hostile::a_barrier_that_is_refused_later",
        "with fences no barrier is requested",
    ),
    (
        Sanitizer::Thread,
        "parallel::join::joins_nest_as_deep_as",
        "the sanitizer knows 65,536 nested calls, and crashes beyond",
    ),
];

impl Sanitizer {
    const ALL: [Self; 2] = [Self::Thread, Self::Address];

    fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Address => "address",
        }
    }

    /// Returns the text that every report of this sanitizer begins with.
    fn mark(self) -> &'static str {
        match self {
            Self::Thread => "WARNING: ThreadSanitizer: ",
            Self::Address => "ERROR: AddressSanitizer: ",
        }
    }

    /// Returns the bugs that it must report: the program, the bug's name, and the test that shows
    /// it.
    fn canaries(self) -> &'static [(&'static str, &'static str, &'static str)] {
        match self {
            Self::Thread => &[
                // What jobs did is not published to the thread that waits for their latch.
                (
                    "blitz_io",
                    "countdown_release",
                    "engine::fork::latch::models::the_last_of_a_countdown_sets",
                ),
                // A thief runs a job that was not published to it.
                ("it", "deque_tail_release", "parallel::join::a_tree_of_joins_has_the_sum"),
                // A core is taken from a thread that has not published its changes to it.
                (
                    "preempt",
                    "lease_seq_publishes",
                    "hand_off::a_lock_of_std_is_held_across_blocking_code_by_many_tasks",
                ),
            ],
            // A scope ends before its last job.
            Self::Address => &[("it", "countdown_early", "parallel::scope::")],
        }
    }

    /// Returns the environment variables that its programs run with.
    fn environment(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Thread => &[
                ("BLITZ_BARRIER", "fences"),
                // The longest history for the stack of the other access.
                ("TSAN_OPTIONS", "history_size=7 second_deadlock_stack=1"),
            ],
            Self::Address => &[("ASAN_OPTIONS", "detect_stack_use_after_return=1:detect_leaks=0")],
        }
    }
}

/// The options of the command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    sanitizers: Vec<Sanitizer>,
    full: bool,
    list: bool,
    chaos: Option<u64>,
    filters: Vec<String>,
}

impl Request {
    fn read(arguments: &[String]) -> Result<Self, String> {
        let mut request = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let named = Sanitizer::ALL.into_iter().find(|one| one.name() == argument);
            match (argument.as_str(), named) {
                (_, Some(sanitizer)) => request.sanitizers.push(sanitizer),
                ("--full", _) => request.full = true,
                ("--list", _) => request.list = true,
                ("--chaos", _) => {
                    let minutes = arguments.next().and_then(|minutes| minutes.parse().ok());
                    request.chaos = Some(minutes.ok_or("--chaos wants a number of minutes")?);
                }
                (flag, _) if flag.starts_with('-') => {
                    return Err(format!("`{flag}` is no argument of sanitize; see --help"));
                }
                (filter, _) => request.filters.push(filter.to_owned()),
            }
        }
        if request.sanitizers.is_empty() {
            request.sanitizers = Sanitizer::ALL.to_vec();
        }
        Ok(request)
    }

    /// Returns the filters for the names of a program's tests; `None` if it has none to run.
    fn filters_of(&self, program: &str) -> Option<Vec<&str>> {
        if !self.filters.is_empty() {
            return Some(self.filters.iter().map(String::as_str).collect());
        }
        if self.full {
            return Some(Vec::new());
        }
        USUAL.iter().find(|(name, _)| *name == program).map(|(_, filters)| filters.to_vec())
    }
}

/// Runs `cargo xtask sanitize`.
pub fn main(arguments: &[String]) -> Outcome {
    let request = Request::read(arguments)?;
    if request.list {
        for (under, name, why) in LEFT_OUT {
            println!("{}: {name}: {why}", under.name());
        }
        return Ok(());
    }
    let mut failed = Vec::new();
    for &sanitizer in &request.sanitizers {
        match (Tools::find(sanitizer), request.chaos) {
            (Err(why), _) => println!("{}: skipped: {why}", sanitizer.name()),
            (Ok(tools), Some(minutes)) => chaos(sanitizer, &tools, minutes)?,
            (Ok(tools), None) => failed.extend(check(sanitizer, &tools, &request)?),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("these failed: {}", failed.join(", "))) }
}

/// Runs the tests under one sanitizer and returns what failed.
fn check(sanitizer: Sanitizer, tools: &Tools, request: &Request) -> Result<Vec<String>, String> {
    let start = Instant::now();
    let programs = build(sanitizer, tools)?;
    println!("{}: built in {} s", sanitizer.name(), start.elapsed().as_secs());
    stale(sanitizer, &programs)?;
    for (name, bug, test) in sanitizer.canaries() {
        let program = programs.iter().find(|program| program.name == *name);
        canary(
            sanitizer,
            program.ok_or_else(|| format!("there is no program {name}"))?,
            bug,
            test,
        )?;
    }
    let (mut failed, mut sum) = (Vec::new(), 0);
    for program in &programs {
        let Some(filters) = request.filters_of(&program.name) else { continue };
        let (passed, sound) = run(sanitizer, program, &filters)?;
        sum += passed;
        if !sound {
            failed.push(format!("{} under {}", program.name, sanitizer.name()));
        }
    }
    if sum == 0 && failed.is_empty() {
        return Err(format!("no test ran under {}: the filter matches none", sanitizer.name()));
    }
    Ok(failed)
}

/// Runs the program of `cargo xtask chaos` under a sanitizer.
fn chaos(sanitizer: Sanitizer, tools: &Tools, minutes: u64) -> Outcome {
    let mut build = tools.cargo("build", sanitizer);
    // Without fibers, because a sanitizer must be notified of each switch between stacks.
    build.args(["-p", "chaos", "--bin", "chaos"]);
    match shell::run(&mut build, BUILD_LIMIT)? {
        end if end.success() => {}
        _ => return Err(format!("chaos cannot be built for {}", sanitizer.name())),
    }
    let mut program = Command::new(folder(sanitizer).join(TARGET).join("debug/chaos"));
    let (seconds, seed) = (60 * minutes, commit_number());
    // A round takes ten to twenty times as long, so the deadlines are scaled too.
    program.args(["--seconds", &seconds.to_string(), "--seed", &seed.to_string()]);
    if sanitizer == Sanitizer::Thread {
        // ThreadSanitizer delays signal handlers until the next call that it intercepts, and our
        // calls are raw system calls.
        program.args(["--without", "signal,child"]);
    }
    program.args(["--deadline", "600"]).envs(sanitizer.environment().iter().copied());
    program.env_remove("BLITZ_WEAKEN");
    println!("chaos under {}: seed {seed}, {minutes} minutes", sanitizer.name());
    match shell::run(&mut program, Duration::from_secs(seconds) + RUN_LIMIT)? {
        end if end.success() => Ok(()),
        _ => Err(format!("chaos failed under {}", sanitizer.name())),
    }
}

/// Returns the folder of one sanitizer's build: std and all crates are built anew for it.
fn folder(sanitizer: Sanitizer) -> PathBuf {
    root().join("target/sanitize").join(sanitizer.name())
}

/// The compiler, and its flags.
#[derive(Debug)]
struct Tools {
    compiler: Compilers,
    flags: Vec<String>,
}

#[derive(Debug)]
enum Compilers {
    Nightly {
        builds_std: bool,
    },
    /// Debian's compiler, linked with nightly's runtime.
    Debian(Compiler),
}

impl Tools {
    /// Finds the tools for a sanitizer.
    ///
    /// # Errors
    /// Returns what is missing.
    fn find(sanitizer: Sanitizer) -> Result<Self, String> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err("it is set up for Linux on x86-64 only".into());
        }
        let sysroot = nightly()?;
        let mut flags: Vec<String> = vec![format!("-Zsanitizer={}", sanitizer.name())];
        flags.extend(["--cfg=blitz_sanitize", "-Cforce-frame-pointers=yes"].map(str::to_owned));
        let has_sources = sysroot.join("lib/rustlib/src/rust/library/std").is_dir();
        let compiler = match sanitizer {
            Sanitizer::Address => {
                // Our code calls std's functions, which were compiled without the sanitizer.
                flags.push("-Cunsafe-allow-abi-mismatch=sanitizer".to_owned());
                Compilers::Nightly { builds_std: false }
            }
            Sanitizer::Thread if has_sources => Compilers::Nightly { builds_std: true },
            Sanitizer::Thread => {
                let compiler = Compiler::debian(false)
                    .map_err(|why| format!("nightly has no rust-src to build std from; {why}"))?;
                flags.push("-Zexternal-clangrt".to_owned());
                flags.extend(link_arguments(&sysroot.join("lib/rustlib").join(TARGET))?);
                Compilers::Debian(compiler)
            }
        };
        Ok(Self { compiler, flags })
    }

    /// Returns a cargo command with all that the sanitizer needs.
    fn cargo(&self, subcommand: &str, sanitizer: Sanitizer) -> Command {
        let mut command = match &self.compiler {
            Compilers::Debian(compiler) => compiler.cargo(subcommand),
            Compilers::Nightly { builds_std } => {
                let mut command = Command::new("rustup");
                command.current_dir(root()).args(["run", "nightly", "cargo", subcommand]);
                command.env_remove("RUSTC");
                if *builds_std {
                    command.arg("-Zbuild-std=std,panic_unwind,test");
                }
                command
            }
        };
        // With an explicit target, procedural macros and build scripts are not instrumented.
        command.args(["--target", TARGET]);
        command.env("RUSTFLAGS", self.flags.join(" "));
        command.env("CARGO_TARGET_DIR", folder(sanitizer));
        // Reports name lines, not variables, and full debug information would double the program's
        // size. Optimisation is not worth it: a compiler that optimises what the sanitizer adds
        // takes a quarter of an hour for `tests/it`, which runs for less without it.
        command.env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only");
        command
    }
}

/// Returns the arguments that link nightly's runtime into a program of another compiler.
///
/// # Errors
/// Returns what nightly lacks.
fn link_arguments(nightly: &Path) -> Result<Vec<String>, String> {
    let runtime = nightly.join("lib/librustc-nightly_rt.tsan.a");
    // GNU's linker fails on symbols that both the runtime and the C library define.
    let linker = nightly.join("bin/gcc-ld");
    for needed in [&runtime, &linker] {
        if !needed.exists() {
            return Err(format!("nightly has no {}", needed.display()));
        }
    }
    let (linker, runtime) = (format!("-B{}", linker.display()), runtime.display().to_string());
    // The whole archive, because both objects before it and objects after it call the runtime.
    let whole = ["-Wl,--whole-archive", &runtime, "-Wl,--no-whole-archive"];
    let rest = ["-Wl,--export-dynamic", "-lstdc++", "-lm", "-lpthread", "-lrt", "-ldl", "-lc"];
    let arguments = [&linker, "-fuse-ld=lld"].into_iter().chain(whole).chain(rest);
    Ok(arguments.map(|argument| format!("-Clink-arg={argument}")).collect())
}

/// Returns the path of the nightly toolchain.
fn nightly() -> Result<PathBuf, String> {
    let mut query = Command::new("rustup");
    query.args(["run", "nightly", "rustc", "--print", "sysroot"]);
    let output = shell::capture(&mut query, QUERY_LIMIT)?;
    if !output.end.success() {
        return Err("there is no nightly toolchain: `rustup toolchain install nightly`".into());
    }
    Ok(PathBuf::from(output.stdout.trim()))
}

/// A test program.
#[derive(Debug)]
struct Program {
    name: String,
    file: PathBuf,
}

fn build(sanitizer: Sanitizer, tools: &Tools) -> Result<Vec<Program>, String> {
    let mut command = tools.cargo("test", sanitizer);
    command.args(["-p", "blitz-io", "--features", "test-util", "--lib", "--test", "it"]);
    command.args(["--test", "preempt"]);
    command.args(["--no-run", "--message-format=json-render-diagnostics"]);
    let built = shell::capture(&mut command, BUILD_LIMIT)?;
    if !built.end.success() {
        return Err(format!(
            "the tests cannot be built for {}: {}",
            sanitizer.name(),
            built.stderr
        ));
    }
    let program = |message: Json| {
        let file = PathBuf::from(message.text("executable")?);
        Some(Program { name: message.get("target")?.text("name")?.to_owned(), file })
    };
    let programs: Vec<_> =
        built.stdout.lines().filter_map(Json::read).filter_map(program).collect();
    if programs.is_empty() { Err("cargo named no test programs".into()) } else { Ok(programs) }
}

/// Checks that every listed test still exists.
///
/// # Errors
/// Returns the first test that is left out, or is a canary, and no longer exists.
fn stale(sanitizer: Sanitizer, programs: &[Program]) -> Outcome {
    let mut listed = String::new();
    for program in programs {
        listed += &shell::capture(Command::new(&program.file).arg("--list"), QUERY_LIMIT)?.stdout;
    }
    let left_out = LEFT_OUT.iter().filter(|(on, ..)| *on == sanitizer).map(|(_, name, _)| *name);
    let canaries = sanitizer.canaries().iter().map(|(_, _, test)| *test);
    match left_out.chain(canaries).find(|name| !listed.contains(name)) {
        None => Ok(()),
        Some(gone) => {
            Err(format!("no test is called `{gone}` any more: look at LEFT_OUT and canaries"))
        }
    }
}

/// Returns the command that runs a program under its sanitizer.
fn command(sanitizer: Sanitizer, program: &Program) -> Command {
    let mut command = Command::new(&program.file);
    command.current_dir(root().join("crates/blitz-io")).arg("--test-threads=1");
    command.envs(sanitizer.environment().iter().copied()).env_remove("BLITZ_WEAKEN");
    command.env("BLITZ_IT_PATIENCE", PATIENCE).env("RUST_BACKTRACE", "0");
    command
}

/// Runs a canary: a test with a planted bug.
///
/// # Errors
/// Returns an error if the planted bug goes unnoticed.
fn canary(sanitizer: Sanitizer, program: &Program, bug: &str, test: &str) -> Outcome {
    for attempt in 1..=TRIES {
        let mut command = command(sanitizer, program);
        command.arg(test).env("BLITZ_WEAKEN", bug);
        let finished = shell::capture(&mut command, RUN_LIMIT)?;
        if finished.stderr.contains(sanitizer.mark()) {
            println!("{}: {}: {bug} is reported, try {attempt}", sanitizer.name(), program.name);
            return Ok(());
        }
    }
    Err(format!(
        "{bug} was planted in {} and {} reports nothing: what passes means nothing",
        program.name,
        sanitizer.name()
    ))
}

/// Runs a program; returns how many tests passed, and true if nothing failed or was reported.
fn run(sanitizer: Sanitizer, program: &Program, filters: &[&str]) -> Result<(usize, bool), String> {
    let start = Instant::now();
    let mut command = command(sanitizer, program);
    command.args(filters);
    for (_, name, why) in LEFT_OUT.iter().filter(|(on, ..)| *on == sanitizer) {
        println!("{}: left out: {name}: {why}", sanitizer.name());
        command.args(["--skip", name]);
    }
    let finished = shell::capture(&mut command, RUN_LIMIT)?;
    let reports = finished.stderr.matches(sanitizer.mark()).count();
    let file = folder(sanitizer).join(format!("{}.txt", program.name));
    fs::write(&file, format!("{}{}", finished.stdout, finished.stderr))
        .map_err(|why| format!("cannot write {}: {why}", file.display()))?;
    let (name, passed) = (sanitizer.name(), passed(&finished.stdout));
    let seconds = start.elapsed().as_secs();
    println!("{name}: {}: {passed} tests passed, {reports} reports, {seconds} s", program.name);
    let sound = finished.end.success() && reports == 0;
    if !sound {
        let how = match finished.end {
            End::TimedOut => format!("no end in {} s", RUN_LIMIT.as_secs()),
            End::Exit(status) => status.to_string(),
        };
        println!("{name}: {}: {how}; see {}", program.name, file.display());
    }
    Ok((passed, sound))
}

#[cfg(test)]
mod tests {
    use super::{Request, Sanitizer};

    fn read(text: &str) -> Result<Request, String> {
        Request::read(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn both_are_meant_unless_one_is_named() {
        assert_eq!(read("").unwrap().sanitizers, Sanitizer::ALL);
        let request = read("address latch").unwrap();
        assert_eq!(request.sanitizers, [Sanitizer::Address]);
        assert_eq!(request.filters_of("it"), Some(vec!["latch"]));
        assert!(read("--ful").is_err());
    }

    #[test]
    fn fork_join_is_meant_unless_more_is() {
        assert!(read("thread").unwrap().filters_of("it").unwrap().contains(&"parallel::"));
        assert_eq!(read("").unwrap().filters_of("leaks"), None);
        assert_eq!(read("--full").unwrap().filters_of("it"), Some(Vec::new()));
    }
}
