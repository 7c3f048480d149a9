//! Other platforms than our own: type-checked for all, tested where they can be emulated.
//!
//! Rustup has a std for each target; where that is installed, or can be fetched, it is used.
//! Otherwise Debian's packages of a newer compiler are used, which bring the sources of std: it is
//! built for the target first. They are installed if that is permitted. A target for which neither
//! is available is reported with the reason and skipped, because a machine without them is not a
//! broken machine.
//!
//! Windows programs run under Wine, which is a second implementation of the Windows API and not
//! Windows; those for aarch64 run in an emulator, which reorders memory only as the host processor
//! does. 32-bit programs run natively, linked with musl, which brings all that a linker needs.
//! macOS and FreeBSD are only type-checked.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    Outcome,
    json::Json,
    root,
    shell::{self, End},
};

/// Text of `cargo xtask platforms --help`.
pub const HELP: &str = "\
cargo xtask platforms [--run] [--no-install] [target …]

Type-checks the runtime, its tests and the drop-in for Windows, macOS, FreeBSD and Linux
on aarch64 and i686, or for the targets that are named.
  --run          also builds the tests for Windows, aarch64 and i686 and runs them: under
                 Wine, in an emulator, and as they are
  --no-install   uses what is there

What is missing is added to the toolchain by rustup, or else installed from Debian's
packages, by root. A platform without its tools is skipped, with a message.";

/// Limit for building std and our crates, which takes several minutes; more is a hang.
const BUILD_LIMIT: Duration = Duration::from_secs(30 * 60);

/// Limit for one test program. Emulated, the slowest takes a few minutes.
const RUN_LIMIT: Duration = Duration::from_secs(20 * 60);

/// Limit for fetching about 30 MB for each target.
const FETCH_LIMIT: Duration = Duration::from_secs(5 * 60);

/// Limit for querying a tool for its version, or the system for a list.
const QUERY_LIMIT: Duration = Duration::from_secs(60);

/// The factor for a test's own time limit: an emulator is ten times slower, and shares the machine.
const PATIENCE: &str = "20";

/// A platform other than our own.
#[derive(Debug)]
struct Target {
    triple: &'static str,
    /// How its programs are run here.
    imitation: Option<Imitation>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Imitation {
    Wine,
    Emulator,
    /// None: the host's kernel and processor run these programs natively.
    Kin,
}

const TARGETS: [Target; 6] = [
    Target { triple: "x86_64-pc-windows-gnu", imitation: Some(Imitation::Wine) },
    Target { triple: "aarch64-apple-darwin", imitation: None },
    Target { triple: "x86_64-unknown-freebsd", imitation: None },
    Target { triple: "aarch64-unknown-linux-gnu", imitation: Some(Imitation::Emulator) },
    Target { triple: "i686-unknown-linux-gnu", imitation: None },
    Target { triple: "i686-unknown-linux-musl", imitation: Some(Imitation::Kin) },
];

/// The packages that are checked. The last is the drop-in, which has Tokio's name.
const PACKAGES: [&str; 4] = ["blitz-io", "blitz-io-macros", "blitz-io-compat", "tokio@1.999.0"];

/// Debian's packages of a compiler that is new enough, and of the sources of its std.
const COMPILER: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];

impl Imitation {
    /// Returns Debian's packages that link and run the programs.
    fn packages(self) -> &'static [&'static str] {
        match self {
            Self::Wine => &["gcc-mingw-w64-x86-64", "wine64", "wine"],
            Self::Emulator => &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user"],
            Self::Kin => &["gcc"],
        }
    }
}

/// Tests that are not run: on which emulation, a part of the name, and why. What cannot work on a
/// platform is not compiled for it; these are for what the emulation lacks, and what is not yet
/// understood.
const LEFT_OUT: &[(Imitation, &str, &str)] = &[
    (
        Imitation::Wine,
        "a_local_runtime_may_be_dropped_while_other_threads_wake_its_tasks",
        "two threads spawn without a pause, and each turn of the driver waits for Wine's server, \
         which they keep from running: alone it ends in seconds, beside others in minutes",
    ),
    (
        Imitation::Emulator,
        "a_wait_is_never_too_short_with_or_without_exact_ones",
        "it asserts that the kernel has epoll_pwait2, which the emulator does not pass on",
    ),
];

/// The options of the command line.
#[derive(Debug)]
struct Request {
    run: bool,
    install: bool,
    targets: Vec<&'static Target>,
}

impl Request {
    fn read(arguments: &[String]) -> Result<Self, String> {
        let mut request = Self { run: false, install: true, targets: Vec::new() };
        for argument in arguments {
            match argument.as_str() {
                "--run" => request.run = true,
                "--no-install" => request.install = false,
                name => request.targets.push(target(name)?),
            }
        }
        if request.targets.is_empty() {
            request.targets = all(request.run);
        }
        Ok(request)
    }
}

/// Returns the default targets, for when none is named.
fn all(run: bool) -> Vec<&'static Target> {
    // A target that is only there to be run type-checks like another one that is checked.
    TARGETS.iter().filter(|target| run || target.imitation != Some(Imitation::Kin)).collect()
}

fn target(name: &str) -> Result<&'static Target, String> {
    let known = TARGETS.iter().find(|target| target.triple == name);
    known.ok_or_else(|| {
        let names: Vec<_> = TARGETS.iter().map(|target| target.triple).collect();
        format!("`{name}` is no target of ours: say {}", names.join(", "))
    })
}

/// Runs `cargo xtask platforms`.
pub fn main(arguments: &[String]) -> Outcome {
    let request = Request::read(arguments)?;
    match Compiler::get(&request.targets, request.install) {
        Err(why) => println!("skipped: {why}"),
        Ok(compiler) => {
            check(&compiler, &request.targets)?;
            if request.run {
                run(&compiler, &request)?;
            }
        }
    }
    Ok(())
}

/// Returns the commands that type-check for every target, for CI.
///
/// # Errors
/// Returns why this machine cannot.
pub fn checks() -> Result<Vec<Command>, String> {
    let targets = all(false);
    Ok(vec![check_command(&Compiler::get(&targets, true)?, &targets)])
}

fn check(compiler: &Compiler, targets: &[&Target]) -> Outcome {
    let start = Instant::now();
    let mut command = check_command(compiler, targets);
    if !shell::run(&mut command, BUILD_LIMIT)?.success() {
        return Err("the code does not type-check for every target".into());
    }
    let names: Vec<_> = targets.iter().map(|target| target.triple).collect();
    println!("type-checked in {} s: {}", start.elapsed().as_secs(), names.join(", "));
    Ok(())
}

fn check_command(compiler: &Compiler, targets: &[&Target]) -> Command {
    let mut command = compiler.cargo("check");
    for target in targets {
        command.args(["--target", target.triple]);
    }
    for package in PACKAGES {
        command.args(["--package", package]);
    }
    // Tests are checked too, because they show how the API is used on that platform.
    command.args(["--all-features", "--all-targets", "--keep-going", "--quiet"]);
    command
}

/// The compiler for other platforms.
#[derive(Debug)]
pub(crate) enum Compiler {
    /// The cargo that runs us, with a std for each target.
    Ours,
    /// Debian's compiler, which builds std first: the paths of its programs.
    Debian { cargo: PathBuf, rustc: PathBuf },
}

impl Compiler {
    /// Selects a compiler for the targets.
    ///
    /// # Errors
    /// Returns why there is none.
    fn get(targets: &[&Target], install: bool) -> Result<Self, String> {
        let missing: Vec<_> =
            targets.iter().copied().filter(|target| !is_in_our_toolchain(target)).collect();
        if missing.is_empty() || install && fetch(&missing) {
            return Ok(Self::Ours);
        }
        Self::debian(install)
    }

    /// Returns Debian's compiler, for builds that need a std of their own.
    ///
    /// # Errors
    /// Returns why it is not available.
    pub(crate) fn debian(install: bool) -> Result<Self, String> {
        provide(&COMPILER, install)?;
        let [rustc, cargo] = [("rustc-web", "/bin/rustc"), ("cargo-web", "/bin/cargo")]
            .map(|(package, end)| file_of(package, end));
        let (cargo, rustc) = (cargo?, rustc?);
        let (needed, version) = (needed_version()?, version(&rustc)?);
        if version < needed {
            return Err(format!("Debian's rustc is 1.{version} here, and 1.{needed} is needed"));
        }
        Ok(Self::Debian { cargo, rustc })
    }

    /// Returns a cargo command with what it needs to compile for other platforms.
    pub(crate) fn cargo(&self, subcommand: &str) -> Command {
        let mut command = shell::cargo();
        if let Self::Debian { cargo, rustc } = self {
            command = Command::new(cargo);
            command.current_dir(root());
            // Building std is unstable.
            command.env("RUSTC", rustc).env("RUSTC_BOOTSTRAP", "1");
            // This variable points to our toolchain's libraries, and would keep Debian's compiler
            // from finding its own.
            command.env_remove("LD_LIBRARY_PATH");
        }
        command.arg(subcommand);
        if let Self::Debian { .. } = self {
            command.arg("-Zbuild-std=std,panic_unwind,test");
        }
        // A target folder of its own, so that std is built only once. Warnings are errors only in
        // our crates, because cargo caps the lints of others.
        command.env("CARGO_TARGET_DIR", folder()).env("RUSTFLAGS", "-D warnings");
        command
    }
}

/// Returns the folder in which all of this is kept.
fn folder() -> PathBuf {
    root().join("target/platforms")
}

fn is_in_our_toolchain(target: &Target) -> bool {
    let mut query = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    query.current_dir(root()).args(["--print", "target-libdir", "--target", target.triple]);
    shell::capture(&mut query, QUERY_LIMIT)
        .is_ok_and(|output| output.end.success() && Path::new(output.stdout.trim()).is_dir())
}

/// Adds the missing targets to our toolchain; returns true if that worked.
fn fetch(missing: &[&Target]) -> bool {
    let names: Vec<_> = missing.iter().map(|target| target.triple).collect();
    println!("fetching std for {}", names.join(", "));
    let mut add = Command::new("rustup");
    add.current_dir(root()).args(["target", "add"]).args(&names);
    // On failure (no rustup, or no network) Debian's compiler is used.
    shell::capture(&mut add, FETCH_LIMIT).is_ok_and(|output| output.end.success())
}

/// Returns the minor version of Rust that the workspace requires.
fn needed_version() -> Result<u32, String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).map_err(|why| why.to_string())?;
    minor(&manifest, "rust-version = \"1.").ok_or_else(|| "Cargo.toml has no rust-version".into())
}

fn version(rustc: &Path) -> Result<u32, String> {
    let output = shell::capture(
        Command::new(rustc).arg("--version").env_remove("LD_LIBRARY_PATH"),
        QUERY_LIMIT,
    )?;
    minor(&output.stdout, "rustc 1.")
        .ok_or_else(|| "Debian's rustc does not print its version".into())
}

/// Returns the number after `before`.
fn minor(text: &str, before: &str) -> Option<u32> {
    let (_, after) = text.split_once(before)?;
    after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Ensures that Debian's packages are installed.
///
/// # Errors
/// Returns which are missing, and why they cannot be installed.
fn provide(packages: &[&str], install: bool) -> Outcome {
    let missing: Vec<_> =
        packages.iter().copied().filter(|package| !is_installed(package)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(", ");
    if !install {
        return Err(format!("these packages are not installed: {names}"));
    }
    println!("installing {names}");
    for arguments in [&["update"][..], &["install", "-y", "--no-install-recommends"]] {
        let mut apt = Command::new("apt-get");
        apt.arg("-q").args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        if arguments[0] == "install" {
            apt.args(&missing);
        }
        let finished = shell::capture(&mut apt, BUILD_LIMIT)
            .map_err(|why| format!("these packages are not installed: {names}; {why}"))?;
        if !finished.end.success() {
            let last = finished.stderr.lines().last().unwrap_or_default().to_owned();
            return Err(format!("these packages cannot be installed: {names}; {last}"));
        }
    }
    Ok(())
}

fn is_installed(package: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    query.args(["-W", "-f=${Status}", package]);
    shell::capture(&mut query, QUERY_LIMIT)
        .is_ok_and(|output| output.stdout.ends_with(" installed"))
}

/// Returns the file of a package whose path ends with `end`, because the first one on the `PATH`
/// may be another.
fn file_of(package: &str, end: &str) -> Result<PathBuf, String> {
    let listed = shell::capture(Command::new("dpkg-query").args(["-L", package]), QUERY_LIMIT)?;
    // The shortest, because longer matches are parts of the documentation.
    let found = listed.stdout.lines().filter(|line| line.ends_with(end)).min_by_key(|l| l.len());
    found.map(PathBuf::from).ok_or_else(|| format!("the package {package} has no {end}"))
}

fn run(compiler: &Compiler, request: &Request) -> Outcome {
    let mut failed = Vec::new();
    for target in &request.targets {
        let Some(imitation) = target.imitation else {
            println!("{}: skipped: nothing here runs its programs", target.triple);
            continue;
        };
        let prepared = provide(imitation.packages(), request.install);
        match prepared.and_then(|()| Runner::new(imitation, compiler)) {
            Err(why) => println!("{}: skipped: {why}", target.triple),
            Ok(runner) => {
                let programs = build(compiler, target, &runner)?;
                failed.extend(run_all(target, &runner, &programs)?);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("these failed: {}", failed.join(", "))) }
}

/// How programs of another platform are linked and run.
#[derive(Debug)]
struct Runner {
    linker: &'static str,
    /// The command that runs the program, if one is needed.
    words: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

impl Runner {
    fn new(imitation: Imitation, compiler: &Compiler) -> Result<Self, String> {
        match (imitation, compiler) {
            (Imitation::Wine, _) => Self::wine(),
            (Imitation::Emulator, _) => Self::emulator(),
            (Imitation::Kin, Compiler::Ours) => Ok(Self::kin()),
            (Imitation::Kin, Compiler::Debian { .. }) => {
                Err("Debian's compiler has no C library that can be linked with its programs"
                    .into())
            }
        }
    }

    fn kin() -> Self {
        Self { linker: "gcc", words: Vec::new(), environment: Vec::new() }
    }

    fn emulator() -> Result<Self, String> {
        // The emulator takes the folder that has `lib` with the loader for the root.
        let loader = file_of("libc6-arm64-cross", "/lib/ld-linux-aarch64.so.1")?;
        let libraries = loader.ancestors().nth(2).unwrap_or(Path::new("/")).display().to_string();
        let words = vec!["qemu-aarch64".to_owned(), "-L".to_owned(), libraries];
        // A test that starts itself anew must know the runner, because the kernel cannot run its
        // program.
        let environment = vec![("BLITZ_IT_RUNNER", words.join(" "))];
        Ok(Self { linker: "aarch64-linux-gnu-gcc", words, environment })
    }

    fn wine() -> Result<Self, String> {
        let home = folder().join("wine");
        let environment = vec![
            ("WINEPREFIX", home.display().to_string()),
            ("WINEDEBUG", "-all".to_owned()),
            // Otherwise Wine would prompt to install a browser and .NET.
            ("WINEDLLOVERRIDES", "mscoree,mshtml=".to_owned()),
        ];
        let runner =
            Self { linker: "x86_64-w64-mingw32-gcc", words: vec!["wine".to_owned()], environment };
        let system = home.join("drive_c/windows/system32");
        if !system.is_dir() {
            fs::create_dir_all(folder()).map_err(|why| why.to_string())?;
            let mut boot = Command::new("wine");
            runner.set(&mut boot);
            shell::capture(boot.args(["wineboot", "-i"]), BUILD_LIMIT)?;
        }
        random_numbers(&system)?;
        Ok(runner)
    }

    fn set(&self, command: &mut Command) {
        for (name, value) in &self.environment {
            command.env(name, value);
        }
    }

    fn command(&self, program: &Path) -> Command {
        let mut words = self.words.iter().map(OsStr::new).chain([program.as_os_str()]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        self.set(&mut command);
        command.env("BLITZ_IT_PATIENCE", PATIENCE).env("RUST_BACKTRACE", "0");
        command
    }
}

/// The source of a Windows library from which std gets random numbers, and which Wine before 9
/// lacks.
const RANDOM_NUMBERS: &str = "\
#include <windows.h>
#include <ntsecapi.h>
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count) {
    return RtlGenRandom(bytes, (ULONG)count);
}
";

fn random_numbers(system: &Path) -> Outcome {
    let library = system.join("bcryptprimitives.dll");
    if library.exists() {
        return Ok(());
    }
    let source = folder().join("random_numbers.c");
    fs::write(&source, RANDOM_NUMBERS).map_err(|why| format!("cannot write {source:?}: {why}"))?;
    let mut compile = Command::new("x86_64-w64-mingw32-gcc");
    compile.args(["-shared", "-O1", "-o"]).arg(&library).arg(&source).arg("-ladvapi32");
    let finished = shell::capture(&mut compile, BUILD_LIMIT)?;
    if finished.end.success() { Ok(()) } else { Err(finished.stderr) }
}

/// A test program.
#[derive(Debug)]
struct Program {
    name: String,
    file: PathBuf,
    /// The folder of its package.
    folder: PathBuf,
}

fn build(compiler: &Compiler, target: &Target, runner: &Runner) -> Result<Vec<Program>, String> {
    let mut command = compiler.cargo("test");
    let name = target.triple.to_uppercase().replace('-', "_");
    command.env(format!("CARGO_TARGET_{name}_LINKER"), runner.linker);
    command.args(["--no-run", "--target", target.triple, "--lib", "--tests"]);
    command.args(["-p", "blitz-io", "-p", "blitz-io-macros", "-p", "blitz-io-compat"]);
    command.args(["--features", "blitz-io/test-util"]);
    command.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
    let output = command.stdin(Stdio::null()).output().map_err(|why| why.to_string())?;
    if !output.status.success() {
        return Err(format!("the tests cannot be built for {}", target.triple));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(Json::read).filter_map(|message| program(&message)).collect())
}

/// Returns the program that a message of cargo describes, if it is one for the target.
fn program(message: &Json) -> Option<Program> {
    let file = PathBuf::from(message.text("executable")?);
    let folder = Path::new(message.text("manifest_path")?).parent()?.to_owned();
    let package = folder.file_name()?.display().to_string();
    let name = format!("{package}/{}", message.get("target")?.text("name")?);
    // The tests of a procedural macro are built for the host.
    let is_for_us = file.parent()?.parent()?.parent()? == self::folder();
    (!is_for_us).then_some(Program { name, file, folder })
}

/// Runs all programs and returns what failed.
fn run_all(target: &Target, runner: &Runner, programs: &[Program]) -> Result<Vec<String>, String> {
    let mut sum = Counts::default();
    let mut failed = Vec::new();
    let left_out = || LEFT_OUT.iter().filter(|(on, ..)| Some(*on) == target.imitation);
    for (_, name, why) in left_out() {
        println!("{}: left out: {name}: {why}", target.triple);
    }
    for program in programs {
        let start = Instant::now();
        let mut command = runner.command(&program.file);
        for (_, name, _) in left_out() {
            command.args(["--skip", name]);
        }
        let finished = shell::capture(command.current_dir(&program.folder), RUN_LIMIT)?;
        let counts = Counts::read(&finished.stdout);
        println!("{} {}: {counts} in {} s", target.triple, program.name, start.elapsed().as_secs());
        if !finished.end.success() {
            let why = match finished.end {
                End::TimedOut => format!("no end in {} s", RUN_LIMIT.as_secs()),
                End::Exit(status) => status.to_string(),
            };
            print!("{}{}", finished.stdout, finished.stderr);
            println!("{}: {why}", program.name);
            failed.push(format!("{} on {}", program.name, target.triple));
        }
        sum.add(counts);
    }
    println!("{}: {sum}", target.triple);
    if sum.passed == 0 {
        return Err(format!("no test ran for {}", target.triple));
    }
    Ok(failed)
}

/// The totals that libtest prints, and those of our one program without a harness.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    ignored: usize,
}

impl Counts {
    fn read(output: &str) -> Self {
        let mut counts = Self::default();
        for line in output.lines() {
            let count = |word: &str| {
                let before = line.split(word).next()?;
                before.rsplit(' ').next()?.parse::<usize>().ok()
            };
            if line.starts_with("test result: ") {
                counts.passed += count(" passed").unwrap_or(0);
                counts.failed += count(" failed").unwrap_or(0);
                counts.ignored += count(" ignored").unwrap_or(0);
            } else if line.starts_with("leaks: ") {
                // Without a harness. Counted, because otherwise a program that runs nothing would
                // go unnoticed.
                let failed = count(" of them failed").unwrap_or(0);
                counts.passed += count(" scenarios").unwrap_or(0).saturating_sub(failed);
                counts.failed += failed;
            }
        }
        counts
    }

    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed, {} ignored", self.passed, self.failed, self.ignored)
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, Request, TARGETS, minor, needed_version};

    #[test]
    fn libtest_is_understood() {
        let output = "test result: ok. 12 passed; 0 failed; 3 ignored; 0 measured\n\
                      test result: FAILED. 4 passed; 1 failed; 0 ignored; 0 measured\n";
        let counts = Counts::read(output);
        assert_eq!(counts, Counts { passed: 16, failed: 1, ignored: 3 });
        assert_eq!(counts.to_string(), "16 passed, 1 failed, 3 ignored");
        assert_eq!(Counts::read("a line of a test\n"), Counts::default());
        let leaks = Counts::read("leaks: 84 scenarios, 12 rounds each; 3 of them failed\n");
        assert_eq!(leaks, Counts { passed: 81, failed: 3, ignored: 0 });
    }

    #[test]
    fn versions_are_read() {
        assert_eq!(minor("rustc 1.96.0 (0123456789 2026-05-01)", "rustc 1."), Some(96));
        assert_eq!(minor("clang 14", "rustc 1."), None);
        assert!(needed_version().unwrap() >= 95);
    }

    #[test]
    fn all_targets_are_meant_unless_some_are_named() {
        let run = Request::read(&["--run".to_owned()]).unwrap();
        assert_eq!(run.targets.len(), TARGETS.len());
        let checked = Request::read(&[]).unwrap().targets;
        assert!(checked.len() == TARGETS.len() - 1, "one is only run: {checked:?}");
        let one = ["--run".to_owned(), TARGETS[0].triple.to_owned()];
        let request = Request::read(&one).unwrap();
        assert!(request.run && request.install);
        assert_eq!(request.targets[0].triple, TARGETS[0].triple);
        let why = Request::read(&["vax".to_owned()]).unwrap_err();
        assert!(why.contains("`vax`") && why.contains("windows"), "{why}");
    }
}
