//! Runs the tests under conditions that a user's machine may have: another folder, another user,
//! more or fewer threads, no IPv6, little shared memory, few descriptors, a busy machine.
//!
//! The test programs are built once, in a clone in a folder with an awkward name, and run in each
//! condition, several times in a row. Doc tests are not among them, because they are compiled
//! whenever they are run.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    Outcome,
    json::Json,
    root,
    shell::{self, End},
};

/// Text of `cargo xtask hardy --help`.
pub const HELP: &str = "\
cargo xtask hardy [--list] [--only CONDITION,…] [--times N] [--test NAME,…] [-- filter …]

Clones HEAD into a folder called `new who told 1.54.1 (copy)`, builds the tests of the workspace
there, and runs them in each condition, five times in a row or --times. What failed, and how
often, is printed at the end.
  --list         the conditions
  --only         these conditions
  --test         only test programs with these names
Conditions that this machine cannot make are skipped, and said to be. All this is for Linux, and
most of it for root.";

/// The clone's folder: blanks, brackets, and words that tests search for in their output.
const FOLDER: &str = "new who told 1.54.1 (copy)";
/// The user that is created for the condition `user`.
const USER: &str = "blitz-hardy";
/// The number of loops that keep two processors busy.
const LOOPS: usize = 8;
/// Time limit for a test program; one that takes longer hangs. On a busy machine some take many
/// minutes.
const LIMIT: Duration = Duration::from_secs(45 * 60);

/// A condition, and how a test program is run in it.
struct Condition {
    name: &'static str,
    what: &'static str,
    /// A shell script that ends with the program, `"$@"`; plain if empty.
    script: &'static str,
    threads: Option<&'static str>,
    busy: bool,
}

const CONDITIONS: &[Condition] = &[
    Condition {
        name: "folder",
        what: "as it is, in the folder with the awkward name",
        script: "",
        threads: None,
        busy: false,
    },
    Condition {
        name: "user",
        what: "as an ordinary user, created with useradd",
        // The toolchain, which may lie where only root has access, is mounted at another place.
        script: "exec unshare -m sh -c 'mount --bind \"$SYSROOT\" \"$TOOLCHAIN\" && \
                 exec setpriv --reuid blitz-hardy --regid blitz-hardy --clear-groups \
                 env -u CARGO_HOME -u RUSTUP_HOME HOME=/tmp USER=blitz-hardy \
                 CARGO=\"$TOOLCHAIN/bin/cargo\" PATH=\"$TOOLCHAIN/bin:$PATH\" \
                 LD_LIBRARY_PATH=\"$TOOLCHAIN/$LIBRARIES\" \"$@\"' sh \"$@\"",
        threads: None,
        busy: false,
    },
    Condition {
        name: "one-thread",
        what: "one test after the other",
        script: "",
        threads: Some("1"),
        busy: false,
    },
    Condition {
        name: "many-threads",
        what: "64 tests at once",
        script: "",
        threads: Some("64"),
        busy: false,
    },
    Condition {
        name: "no-ipv6",
        what: "a network of its own, with the loopback interface and without IPv6",
        script: "exec unshare -n sh -c 'ip link set lo up && \
                 for it in all default lo; do echo 1 > /proc/sys/net/ipv6/conf/$it/disable_ipv6; done && \
                 exec \"$@\"' sh \"$@\"",
        threads: None,
        busy: false,
    },
    Condition {
        name: "small-shm",
        what: "64 KiB of /dev/shm",
        script: "exec unshare -m sh -c 'mount -t tmpfs -o size=64k tmpfs /dev/shm && exec \"$@\"' \
                 sh \"$@\"",
        threads: None,
        busy: false,
    },
    Condition {
        name: "descriptors",
        what: "at most 256 descriptors",
        script: "ulimit -n 256 && exec \"$@\"",
        threads: None,
        busy: false,
    },
    Condition {
        name: "busy",
        what: "on two processors that run eight busy loops besides",
        script: "exec taskset -c 0,1 \"$@\"",
        threads: None,
        busy: true,
    },
];

#[derive(Debug, PartialEq, Eq)]
struct Choice {
    list: bool,
    times: u32,
    only: Vec<String>,
    tests: Vec<String>,
    filters: Vec<String>,
}

impl Choice {
    fn read(arguments: &[String]) -> Result<Self, String> {
        let mut choice =
            Self { list: false, times: 5, only: vec![], tests: vec![], filters: vec![] };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("`{argument}` wants a value"));
            let names = |list: &String| list.split(',').map(str::to_owned).collect::<Vec<_>>();
            match argument.as_str() {
                "--list" => choice.list = true,
                "--times" => {
                    let text = value()?;
                    choice.times = text.parse().map_err(|_| format!("`{text}` is no number"))?;
                }
                "--only" => choice.only = names(value()?),
                "--test" => choice.tests = names(value()?),
                "--" => choice.filters.extend(arguments.by_ref().cloned()),
                unknown => return Err(format!("`{unknown}` is no argument; see --help")),
            }
        }
        let known = |name: &&String| CONDITIONS.iter().any(|known| known.name == **name);
        if let Some(unknown) = choice.only.iter().find(|name| !known(name)) {
            return Err(format!("no condition is called `{unknown}`; see --list"));
        }
        Ok(choice)
    }
}

/// A test program.
#[derive(Debug, PartialEq, Eq)]
struct Test {
    name: String,
    program: PathBuf,
    /// The folder of its package, which is cargo's working directory for it.
    folder: PathBuf,
}

/// Runs `cargo xtask hardy`.
pub fn main(arguments: &[String]) -> Outcome {
    let choice = Choice::read(arguments)?;
    if choice.list {
        CONDITIONS.iter().for_each(|it| println!("{}: {}", it.name, it.what));
        return Ok(());
    }
    if !cfg!(target_os = "linux") {
        println!("skipped: the conditions are made with Linux's means");
        return Ok(());
    }
    let clone = clone()?;
    let mut tests = build(&clone)?;
    tests.retain(|test| choice.tests.is_empty() || choice.tests.contains(&test.name));
    println!("{} test programs", tests.len());
    let chosen =
        |it: &&Condition| choice.only.is_empty() || choice.only.iter().any(|name| name == it.name);
    let mut failures = BTreeMap::<String, u32>::new();
    for condition in CONDITIONS.iter().filter(chosen) {
        if let Err(why) = condition.prepare(&clone) {
            println!("{}: skipped: {why}", condition.name);
            continue;
        }
        for time in 1..=choice.times {
            let start = Instant::now();
            let failed = condition.run(&tests, &choice.filters)?;
            println!(
                "{} {time}/{}: {} failed, {:.0} s",
                condition.name,
                choice.times,
                failed.len(),
                start.elapsed().as_secs_f32()
            );
            for test in failed {
                println!("  {test}");
                *failures.entry(format!("{}: {test}", condition.name)).or_default() += 1;
            }
        }
    }
    if failures.is_empty() {
        return Ok(());
    }
    println!("\n=== summary");
    failures.iter().for_each(|(test, count)| println!("{count} of {}  {test}", choice.times));
    Err(format!("{} tests failed in some condition", failures.len()))
}

/// Clones HEAD, or updates the clone of an earlier run to it; returns its folder.
fn clone() -> Result<PathBuf, String> {
    // Not under the target folder, because another user must have access.
    let above = std::env::temp_dir().join("blitz-hardy");
    let clone = above.join(FOLDER);
    fs::create_dir_all(&above).map_err(|why| format!("{}: {why}", above.display()))?;
    let git = |folder: &Path, arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(folder);
        match shell::run(&mut git, LIMIT)? {
            end if end.success() => Ok(()),
            _ => Err(format!("git {} failed", arguments.join(" "))),
        }
    };
    let from = root().display().to_string();
    if !clone.join(".git").exists() {
        git(&above, &["clone", "--quiet", "--no-hardlinks", &from, FOLDER])?;
    }
    git(&clone, &["fetch", "--quiet", &from, "HEAD"])?;
    git(&clone, &["checkout", "--quiet", "--force", "--detach", "FETCH_HEAD"])?;
    Ok(clone)
}

/// Builds all tests of the clone.
fn build(clone: &Path) -> Result<Vec<Test>, String> {
    let mut command = shell::cargo();
    command.current_dir(clone).env_remove("CARGO_TARGET_DIR");
    command.args(["test", "--workspace", "--no-run"]);
    command.arg("--message-format=json-render-diagnostics");
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|why| why.to_string())?;
    if !output.status.success() {
        return Err("the tests do not compile".into());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let tests: Vec<_> = text.lines().filter_map(Json::read).filter_map(|it| test(&it)).collect();
    if tests.is_empty() { Err("cargo named no test program".into()) } else { Ok(tests) }
}

/// Returns the test program that a message of cargo describes.
fn test(message: &Json) -> Option<Test> {
    let is_test = *message.get("profile")?.get("test")? == Json::Word("true".to_owned());
    let program = PathBuf::from(message.text("executable")?);
    let folder = PathBuf::from(message.text("manifest_path")?).parent()?.to_owned();
    let name = message.get("target")?.text("name")?.to_owned();
    is_test.then_some(Test { name, program, folder })
}

/// Processes that compute until this is dropped.
struct Busy(Vec<Child>);

impl Busy {
    fn start() -> Result<Self, String> {
        let mut busy = Self(Vec::new());
        for _ in 0..LOOPS {
            let mut command = Command::new("taskset");
            command.args(["-c", "0,1", "sh", "-c", "while :; do :; done"]).stdin(Stdio::null());
            busy.0.push(command.spawn().map_err(|why| format!("a busy loop: {why}"))?);
        }
        Ok(busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Both fail for a process that has ended already, which is fine.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Condition {
    /// Sets up what the condition needs; an error says why that is impossible here.
    fn prepare(&self, clone: &Path) -> Outcome {
        if self.name == "user" {
            make_user(clone)?;
        }
        if self.script.is_empty() {
            return Ok(());
        }
        let mut probe = self.command(Path::new("true"));
        let finished = shell::capture(&mut probe, Duration::from_secs(60))?;
        if finished.end.success() { Ok(()) } else { Err(finished.stderr.trim().to_owned()) }
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = if self.script.is_empty() {
            Command::new(program)
        } else {
            let mut command = Command::new("sh");
            command.args(["-c", self.script, "sh"]).arg(program);
            command
        };
        let (sysroot, libraries) = (rustc("sysroot"), rustc("target-libdir"));
        let within = libraries.strip_prefix(&sysroot).unwrap_or(&libraries);
        command.env("SYSROOT", &sysroot).env("LIBRARIES", within).env("TOOLCHAIN", toolchain());
        // Set as cargo sets it, because tests of procedural macros are linked to libraries of the
        // toolchain.
        command.env("LD_LIBRARY_PATH", &libraries);
        command
    }

    /// Runs all test programs; returns the tests that failed.
    fn run(&self, tests: &[Test], filters: &[String]) -> Result<Vec<String>, String> {
        let _busy = if self.busy { Some(Busy::start()?) } else { None };
        let mut failed = Vec::new();
        for test in tests {
            let mut command = self.command(&test.program);
            command.args(filters).current_dir(&test.folder);
            command.env("CARGO_MANIFEST_DIR", &test.folder);
            if let Some(threads) = self.threads {
                command.env("RUST_TEST_THREADS", threads);
            }
            let finished = shell::capture(&mut command, LIMIT)?;
            if finished.end.success() {
                continue;
            }
            let mut names = failures(&finished.stdout);
            if names.is_empty() {
                let last = finished.stderr.trim().lines().last().unwrap_or_default().to_owned();
                names.push(match finished.end {
                    End::TimedOut => "did not end".to_owned(),
                    End::Exit(status) => format!("{status}: {last}"),
                });
            }
            let name = &test.name;
            println!("{name}, {}:\n{}\n{}", self.name, finished.stdout, finished.stderr);
            failed.extend(names.into_iter().map(|test| format!("{name} {test}")));
        }
        Ok(failed)
    }
}

/// Returns a folder of the toolchain, as `rustc --print` reports it.
fn rustc(folder: &str) -> PathBuf {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", folder]);
    let printed = shell::capture(&mut rustc, Duration::from_secs(60)).map(|it| it.stdout);
    PathBuf::from(printed.unwrap_or_default().trim())
}

/// Returns where the ordinary user finds the toolchain.
fn toolchain() -> PathBuf {
    std::env::temp_dir().join("blitz-hardy/toolchain")
}

/// Creates the ordinary user, with the right to read all of the clone and to write where tests write.
fn make_user(clone: &Path) -> Outcome {
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(clone);
        let finished = shell::capture(&mut command, LIMIT)?;
        if finished.end.success() { Ok(()) } else { Err(finished.stderr.trim().to_owned()) }
    };
    if run("id", &[USER]).is_err() {
        run("useradd", &["--system", "--user-group", "--no-create-home", USER])?;
    }
    for folder in [clone.join("target/tmp"), toolchain()] {
        fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    }
    run("chmod", &["-R", "a+rX", "."])?;
    run("chown", &["-R", &format!("{USER}:{USER}"), "target/tmp"])
}

/// Returns the names of the tests that failed, from the test program's output.
fn failures(stdout: &str) -> Vec<String> {
    let failed = |line: &str| {
        let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
        Some(name.to_owned())
    };
    stdout.lines().filter_map(failed).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{CONDITIONS, Choice, failures, test};
    use crate::json::Json;

    fn read(text: &str) -> Result<Choice, String> {
        Choice::read(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_read_and_wrong_ones_are_named() {
        let choice = read("--only user,busy --times 2 --test it -- sockets").unwrap();
        assert_eq!((choice.times, choice.only.len(), choice.tests.len()), (2, 2, 1));
        assert_eq!(choice.filters, ["sockets"]);
        for bad in ["--only", "--only root", "--times x", "--folder"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn failed_tests_are_found_in_what_a_program_prints() {
        let text = "running 3 tests\ntest a::b ... ok\ntest a::c ... FAILED\ntest d ... FAILED\n";
        assert_eq!(failures(text), ["a::c", "d"]);
    }

    #[test]
    fn a_script_runs_a_program_whose_path_has_blanks() {
        let condition = CONDITIONS.iter().find(|it| it.name == "descriptors").unwrap();
        let mut command = condition.command(Path::new("sh"));
        let output =
            command.args(["-c", "ulimit -n; echo \"$1\"", "sh", "a (b)"]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "256\na (b)\n");
    }

    #[test]
    fn a_message_of_cargo_names_a_test_program() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/a b/c/Cargo.toml","target":{"name":"it"},"profile":{"test":true},"executable":"/a b/t/it-1"}"#;
        let found = test(&Json::read(line).unwrap()).unwrap();
        assert_eq!((found.name.as_str(), found.folder.as_path()), ("it", Path::new("/a b/c")));
        let plain = line.replace("true", "false");
        assert_eq!(test(&Json::read(&plain).unwrap()), None);
    }
}
