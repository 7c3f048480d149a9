//! The programs and folders that the rows of a run need.

use std::ffi::CString;
use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use harness::{Plan, program};

use crate::dufs::Dufs;
use crate::process::{Process, die_with_parent};
use crate::quota::Quota;
use crate::rows::{Tool, Work, work};
use crate::{COMPARISON, locks};

/// The time that a database has to start.
const START: Duration = Duration::from_secs(20);

/// The name of a run's temporary folder, before the number of its process.
const FOLDER: &str = "blitz-programs-";

impl Tool {
    const ALL: [Tool; 3] = [Tool::Wrk, Tool::Postgres, Tool::Redis];

    /// Returns the name of its program, and of its package in Debian.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Tool::Wrk => ("wrk", "wrk"),
            Tool::Postgres => ("postgres", "postgresql"),
            Tool::Redis => ("redis-server", "redis-server"),
        }
    }

    /// Returns the path of its program. Debian keeps PostgreSQL's in a folder for each version.
    pub(crate) fn find(self) -> Option<PathBuf> {
        let name = self.names().0;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        if self == Tool::Postgres {
            let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
            let mut versions: Vec<_> = versions.map(|entry| entry.path()).collect();
            let number = |path: &PathBuf| {
                path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok())
            };
            // The newest first.
            versions.sort_by_key(|path| std::cmp::Reverse(number(path)));
            folders.extend(versions.into_iter().map(|version| version.join("bin")));
        }
        folders.into_iter().map(|folder| folder.join(name)).find(|program| program.is_file())
    }

    /// Returns its path, where rows that lack it were left out before.
    fn found(self) -> Result<PathBuf, String> {
        self.find().ok_or(format!("{} is gone", self.names().0))
    }

    /// Returns the first line that it prints about its version.
    fn version(self) -> Option<String> {
        // wrk takes the other form for a wrong option, and prints the version all the same.
        let flag = if self == Tool::Wrk { "-v" } else { "--version" };
        let output = Command::new(self.find()?).arg(flag).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().next()?;
        let end = line.find(" Copyright").or(line.find(" sha=")).unwrap_or(line.len());
        Some(line[..end].to_owned())
    }
}

/// Takes the rows out of a plan whose program is not installed, and says so.
pub(crate) fn leave_out(plan: &mut Plan) {
    for tool in Tool::ALL.into_iter().filter(|tool| tool.find().is_none()) {
        let lacks = |row: &&harness::Row| work(row).needs() == Some(tool);
        let names: Vec<&str> = plan.rows.iter().copied().filter(lacks).map(|it| it.name).collect();
        if !names.is_empty() {
            let (program, package) = tool.names();
            let names = names.join(", ");
            eprintln!(
                "rows {names} are skipped: {program} is not installed; apt-get install {package}"
            );
        }
        plan.rows.retain(|row| !lacks(row));
    }
}

/// The parts of a setup that trials read.
#[derive(Debug)]
pub(crate) struct Made {
    /// The servers on the published Tokio, which also make load.
    pub(crate) stock: PathBuf,
    /// The folder for temporary files.
    folder: PathBuf,
    /// The file by which the measured process joins its control group.
    pub(crate) group: Option<std::os::fd::RawFd>,
    /// The file servers, if a row needs them.
    pub(crate) dufs: Option<Dufs>,
    /// The versions of the tools, each after a comma, for the record.
    pub(crate) tools: String,
}

static MADE: OnceLock<Made> = OnceLock::new();

/// Returns what was made for this run.
///
/// # Panics
/// Panics if nothing was made yet.
pub(crate) fn made() -> &'static Made {
    MADE.get().expect("a setup is made before the first trial")
}

/// The files and processes of a run, which are removed when this is dropped.
pub(crate) struct Setup {
    folder: PathBuf,
    _quota: Option<Quota>,
}

impl Setup {
    /// Builds both programs, makes a database and installs dufs if the plan needs them. Rows of a
    /// dufs that cannot be installed are taken out of the plan.
    pub(crate) fn make(plan: &mut Plan, quota: Option<Quota>) -> Result<Setup, String> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let stock = program::build_beside(Path::new(COMPARISON.folder), "programs-stock")?;
        program::build_beside(&here.join("dropin"), "programs-dropin")?;
        locks::agree(here)?;
        let group = quota.as_ref().map(Quota::group);
        remove_left_over();
        let folder = std::env::temp_dir().join(format!("{FOLDER}{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        let setup = Setup { folder: folder.clone(), _quota: quota };
        let needed = |tool: &Tool| plan.rows.iter().any(|row| work(row).needs() == Some(*tool));
        let needed: Vec<Tool> = Tool::ALL.into_iter().filter(needed).collect();
        if needed.contains(&Tool::Postgres) {
            make_cluster(&folder)?;
        }
        let dufs = plan.rows.iter().any(is_dufs).then(|| Dufs::install(&folder)).transpose();
        let dufs = dufs.unwrap_or_else(|why| {
            eprintln!("rows of dufs are skipped: {why}");
            plan.rows.retain(|row| !is_dufs(row));
            None
        });
        let versions = needed.into_iter().filter_map(Tool::version);
        let tools: Vec<String> = versions.map(|version| format!(", {version}")).collect();
        let made = Made { stock, folder, group, dufs, tools: tools.concat() };
        MADE.set(made).map_err(|_| "a setup is made once")?;
        Ok(setup)
    }
}

/// Removes the folders of earlier runs that were killed.
fn remove_left_over() {
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(FOLDER)?.parse::<u32>().ok());
        let ended = |process: u32| !Path::new("/proc").join(process.to_string()).exists();
        if process.is_some_and(ended) {
            // Another user's folder cannot be removed.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        // What cannot be removed is left to the system, as other temporary files are.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn is_dufs(row: &&harness::Row) -> bool {
    matches!(work(row), Work::Files { .. })
}

/// Makes the files of a database of PostgreSQL.
fn make_cluster(folder: &Path) -> Result<(), String> {
    let data = data(folder);
    fs::create_dir(&data).map_err(|why| format!("{}: {why}", data.display()))?;
    // The link on PATH, if it is one, may be without its neighbours.
    let postgres = Tool::Postgres.found()?.canonicalize().map_err(|why| why.to_string())?;
    let mut command = Command::new(postgres.with_file_name("initdb"));
    command.args([
        "--username=bench",
        "--auth=trust",
        "--no-sync",
        "--locale=C",
        "--encoding=UTF8",
    ]);
    command.arg("--pgdata").arg(&data).current_dir(folder);
    as_a_user(&mut command, Some(&data))?;
    let made = harness::child::output(&mut command, Duration::from_secs(120));
    made.map(drop).map_err(|why| format!("initdb: {why}"))
}

fn data(folder: &Path) -> PathBuf {
    folder.join("postgres")
}

/// Makes a command run as a user without privileges if this process is root, because PostgreSQL
/// refuses root; the folder becomes that user's.
fn as_a_user(command: &mut Command, folder: Option<&Path>) -> Result<(), String> {
    // SAFETY: the call takes no pointers.
    if unsafe { libc::geteuid() } != 0 {
        return Ok(());
    }
    let ids = ["postgres", "nobody"].into_iter().find_map(ids_of);
    let (user, group) = ids.ok_or("postgres cannot run as root, and there is no user nobody")?;
    if let Some(folder) = folder {
        let owned = std::os::unix::fs::chown(folder, Some(user), Some(group));
        owned.map_err(|why| format!("{}: {why}", folder.display()))?;
    }
    command.uid(user).gid(group);
    Ok(())
}

/// Returns the numbers of a user and of the user's group.
fn ids_of(name: &str) -> Option<(u32, u32)> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name is a string that lives through the call. No other thread runs yet, so none
    // changes what the call returns before it is read.
    unsafe { libc::getpwnam(name.as_ptr()).as_ref() }.map(|user| (user.pw_uid, user.pw_gid))
}

/// A database that runs for one trial.
pub(crate) struct Database {
    _process: Process,
    pub(crate) port: u16,
}

impl Database {
    pub(crate) fn start(tool: Tool) -> Result<Database, String> {
        let port = free_port()?;
        let folder = &made().folder;
        let mut command = Command::new(tool.found()?);
        let words = match tool {
            Tool::Postgres => {
                command.arg("-D").arg(data(folder));
                as_a_user(&mut command, None)?;
                format!(
                    "-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= \
                     -c fsync=off -c logging_collector=off -c log_min_messages=fatal"
                )
            }
            Tool::Redis => format!("--port {port} --bind 127.0.0.1 --appendonly no --save"),
            Tool::Wrk => return Err("wrk is no database".into()),
        };
        command.args(words.split(' ')).current_dir(folder).stdout(Stdio::null());
        if tool == Tool::Redis {
            // No snapshots.
            command.arg("");
        }
        command.stderr(Stdio::null());
        // Both end their own processes then, and lose what nothing needs.
        let end = if tool == Tool::Postgres { libc::SIGQUIT } else { libc::SIGKILL };
        // SAFETY: between fork and exec the closure only makes a system call.
        unsafe { command.pre_exec(move || die_with_parent(end)) };
        let mut process = Process::start(&mut command, end)?;
        let begin = Instant::now();
        while !is_ready(tool, port) {
            if process.has_ended() || begin.elapsed() > START {
                return Err(format!("{} does not start", tool.names().0));
            }
            // Picked, not measured: much shorter than a start.
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Database { _process: process, port })
    }
}

/// Returns true if a database accepts clients. PostgreSQL listens before that, and notes its state
/// in a file.
fn is_ready(tool: Tool, port: u16) -> bool {
    match tool {
        Tool::Postgres => {
            let state = fs::read_to_string(data(&made().folder).join("postmaster.pid"));
            state.is_ok_and(|state| state.lines().any(|line| line.trim() == "ready"))
        }
        _ => TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok(),
    }
}

/// Returns a port that was free a moment ago.
pub(crate) fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|why| why.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|why| why.to_string())
}
