//! Tests under the compilers' sanitizers: ThreadSanitizer for races, AddressSanitizer for what
//! is touched after its end. What is lost is `cargo xtask leaks`'s: here many tests leak on
//! purpose (futures that are forgotten, threads that are lent to a pool for ever).
//!
//! Both make the compiler call them at each access, so both need unstable flags, and the runtime
//! that a nightly toolchain brings.
//! - *address* takes nightly as it is: that std itself is not instrumented costs reports, and
//!   makes none up.
//! - *thread* needs a std that is instrumented too. Without, each lock of std would be one that
//!   orders nothing, and all that locks guard a race. So std is built first, by nightly if
//!   it has the sources, and otherwise by Debian's compiler, which is linked with nightly's
//!   runtime.
//!
//! # Barriers and fences
//! ThreadSanitizer does not know of barriers that the kernel makes, so the tests run with
//! `BLITZ_BARRIER=fences`. It executes fences, but they order nothing in its books. Ours are
//! left as they are all the same. Each stands between a store and a load of one thread, so that of
//! two threads one sees the other; what is *passed* from thread to thread goes by a Release and
//! an Acquire of some word, which it knows. A fence that it reports is one that passes
//! something, and would be the first.
//!
//! # Rejected
//! - Fences as read-modify-writes of a word, for its sake: every two of them that meet would pass
//!   on all that was done before, which the language does not promise, and it would be blind for
//!   what we look for. The canary of this file goes unnoticed then.
//! - Suppressions: a frame that is named in one hides every race below it.
//!
//! # Canaries
//! A run in which nothing is found means something only if a bug is found. So under each sanitizer
//! some tests are run first with a bug planted by `BLITZ_WEAKEN`, as models are, and that must be
//! reported. Where the tests of a program know no bug that the sanitizer could see, those of
//! another one stand for it: all are built by one command.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use crate::{
    Outcome,
    json::Json,
    model::passed,
    platforms::Compiler,
    root,
    shell::{self, End},
};

/// Text of `cargo xtask sanitize --help`.
pub const HELP: &str = "\
cargo xtask sanitize [thread|address] [--full] [--list] [filter …]

Builds the tests of the runtime crate for a sanitizer, or for both, and runs those of
fork-join, of preemption, and of files that are dropped and forgotten; first with a bug
planted, which must be reported.
  --full   all tests of the library, of tests/it, tests/fs and tests/preempt
  --list   the tests that are left out, and why
A filter picks tests by name instead.

It is for Linux on x86-64, and needs a nightly toolchain of rustup's; for threads also
nightly's component rust-src, or Debian's rustc-web and rust-web-src. What is missing is
said, and the sanitizer skipped. Reports stay in target/sanitize.";

/// The only target here: the runtimes are there for few others, and models do not depend on one.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Some minutes for std and our crates; more is a hang.
const BUILD_LIMIT: Duration = Duration::from_secs(30 * 60);

/// One program. All of `tests/it` takes minutes.
const RUN_LIMIT: Duration = Duration::from_secs(60 * 60);

/// Asking a tool for its version.
const ASK_LIMIT: Duration = Duration::from_secs(60);

/// How often a test's own time limit: both make tests ten to twenty times slower.
const PATIENCE: &str = "20";

/// How often a canary is tried. A race shows only if two threads do meet, and is
/// nearly always seen at once; a sanitizer that is broken sees it never.
const TRIES: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sanitizer {
    Thread,
    Address,
}

/// The tests that are run unless others are asked for: of a program, what their names have in
/// them. Of files those in which operations are dropped, forgotten and outlived.
const USUAL: &[(&str, &[&str])] = &[
    (
        "blitz_io",
        &["engine::fork::", "engine::ring::", "engine::work::tenure::", "engine::pool::vigil::"],
    ),
    ("it", &["parallel_"]),
    ("fs", &["hostile::", "at_once::", "offsets::", "files::"]),
    ("preempt", &["preempting::", "bridges::"]),
];

/// Tests that are not run: under what, a part of the name, and why.
const LEFT_OUT: &[(Sanitizer, &str, &str)] = &[
    (
        Sanitizer::Thread,
        "parallel_hostile::a_barrier_that_is_refused_later",
        "with fences no barrier is asked for",
    ),
    (
        Sanitizer::Thread,
        "parallel_join::joins_nest_as_deep_as",
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

    /// What every report of it begins with.
    fn mark(self) -> &'static str {
        match self {
            Self::Thread => "WARNING: ThreadSanitizer: ",
            Self::Address => "ERROR: AddressSanitizer: ",
        }
    }

    /// The bugs that it must report: in which program, and the test that shows it.
    fn canaries(self) -> &'static [(&'static str, &'static str, &'static str)] {
        match self {
            Self::Thread => &[
                // What ended is not shown to who waits for it.
                (
                    "blitz_io",
                    "countdown_release",
                    "engine::fork::latch::models::the_last_of_a_countdown_sets",
                ),
                // A thief runs a job that nobody has shown it.
                ("it", "stack_tail_release", "parallel_join::a_tree_of_joins_has_the_sum"),
                // A core is taken from a thread that has not shown what it did to it.
                (
                    "preempt",
                    "tenure_seq_publishes",
                    "preempting::a_lock_of_std_is_held_across_blocking_code_by_many_tasks",
                ),
            ],
            // A scope ends before its last job.
            Self::Address => &[("it", "countdown_early", "parallel_scope::")],
        }
    }

    /// The variables that its programs run with.
    fn environment(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Thread => &[
                ("BLITZ_BARRIER", "fences"),
                // The longest memory that it has for where the other access was.
                ("TSAN_OPTIONS", "history_size=7 second_deadlock_stack=1"),
            ],
            Self::Address => &[("ASAN_OPTIONS", "detect_stack_use_after_return=1:detect_leaks=0")],
        }
    }
}

/// What was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    sanitizers: Vec<Sanitizer>,
    full: bool,
    list: bool,
    filters: Vec<String>,
}

impl Request {
    fn read(arguments: &[String]) -> Result<Self, String> {
        let mut request = Self::default();
        for argument in arguments {
            let named = Sanitizer::ALL.into_iter().find(|one| one.name() == argument);
            match (argument.as_str(), named) {
                (_, Some(sanitizer)) => request.sanitizers.push(sanitizer),
                ("--full", _) => request.full = true,
                ("--list", _) => request.list = true,
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

    /// The names that tests of a program have to have in them; `None` if it has none to run.
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

/// `cargo xtask sanitize`.
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
        match Tools::find(sanitizer) {
            Err(why) => println!("{}: skipped: {why}", sanitizer.name()),
            Ok(tools) => failed.extend(check(sanitizer, &tools, &request)?),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("these failed: {}", failed.join(", "))) }
}

/// Answers with what failed.
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

/// Where everything of one is kept: std and all crates are built anew for it.
fn folder(sanitizer: Sanitizer) -> PathBuf {
    root().join("target/sanitize").join(sanitizer.name())
}

/// Who compiles, and with what flags.
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
    /// With nightly's runtime.
    Debian(Compiler),
}

impl Tools {
    /// # Errors
    /// What is missing.
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
                // std's functions are called by ours, and were compiled without.
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

    /// `cargo test`, with all that the sanitizer needs.
    fn cargo_test(&self, sanitizer: Sanitizer) -> Command {
        let mut command = match &self.compiler {
            Compilers::Debian(compiler) => compiler.cargo("test"),
            Compilers::Nightly { builds_std } => {
                let mut command = Command::new("rustup");
                command.current_dir(root()).args(["run", "nightly", "cargo", "test"]);
                command.env_remove("RUSTC");
                if *builds_std {
                    command.arg("-Zbuild-std=std,panic_unwind,test");
                }
                command
            }
        };
        // With a target that is named, macros and build scripts are left alone.
        command.args(["--target", TARGET]);
        command.env("RUSTFLAGS", self.flags.join(" "));
        command.env("CARGO_TARGET_DIR", folder(sanitizer));
        // Reports name lines, not variables; and what else there is to tell is twice the program.
        // Optimisation is not worth it: a compiler that optimises what the sanitizer adds
        // takes a quarter of an hour for `tests/it`, which without runs for less.
        command.env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only");
        command
    }
}

/// What links nightly's runtime into a program of another compiler.
///
/// # Errors
/// What nightly lacks.
fn link_arguments(nightly: &Path) -> Result<Vec<String>, String> {
    let runtime = nightly.join("lib/librustc-nightly_rt.tsan.a");
    // GNU's linker fails on names that the runtime and the C library have both.
    let linker = nightly.join("bin/gcc-ld");
    for needed in [&runtime, &linker] {
        if !needed.exists() {
            return Err(format!("nightly has no {}", needed.display()));
        }
    }
    let (linker, runtime) = (format!("-B{}", linker.display()), runtime.display().to_string());
    // All of the runtime: what calls it comes before and after.
    let whole = ["-Wl,--whole-archive", &runtime, "-Wl,--no-whole-archive"];
    let rest = ["-Wl,--export-dynamic", "-lstdc++", "-lm", "-lpthread", "-lrt", "-ldl", "-lc"];
    let arguments = [&linker, "-fuse-ld=lld"].into_iter().chain(whole).chain(rest);
    Ok(arguments.map(|argument| format!("-Clink-arg={argument}")).collect())
}

/// Where the nightly toolchain is.
fn nightly() -> Result<PathBuf, String> {
    let mut ask = Command::new("rustup");
    ask.args(["run", "nightly", "rustc", "--print", "sysroot"]);
    let answer = shell::capture(&mut ask, ASK_LIMIT)?;
    if !answer.end.success() {
        return Err("there is no nightly toolchain: `rustup toolchain install nightly`".into());
    }
    Ok(PathBuf::from(answer.stdout.trim()))
}

/// A test program.
#[derive(Debug)]
struct Program {
    name: String,
    file: PathBuf,
}

fn build(sanitizer: Sanitizer, tools: &Tools) -> Result<Vec<Program>, String> {
    let mut command = tools.cargo_test(sanitizer);
    command.args(["-p", "blitz-io", "--features", "test-util", "--lib", "--test", "it"]);
    command.args(["--test", "fs", "--test", "preempt"]);
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

/// # Errors
/// If a test that is left out, or is a canary, is not there any more.
fn stale(sanitizer: Sanitizer, programs: &[Program]) -> Outcome {
    let mut listed = String::new();
    for program in programs {
        listed += &shell::capture(Command::new(&program.file).arg("--list"), ASK_LIMIT)?.stdout;
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

/// The program under its sanitizer.
fn command(sanitizer: Sanitizer, program: &Program) -> Command {
    let mut command = Command::new(&program.file);
    command.current_dir(root().join("crates/blitz-io")).arg("--test-threads=1");
    command.envs(sanitizer.environment().iter().copied()).env_remove("BLITZ_WEAKEN");
    command.env("BLITZ_IT_PATIENCE", PATIENCE).env("RUST_BACKTRACE", "0");
    command
}

/// # Errors
/// If the planted bug goes unnoticed.
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

/// Answers with how many tests passed, and whether all is well.
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
        assert_eq!(read("thread").unwrap().filters_of("it"), Some(vec!["parallel_"]));
        assert_eq!(read("").unwrap().filters_of("leaks"), None);
        assert_eq!(read("--full").unwrap().filters_of("it"), Some(Vec::new()));
    }
}
