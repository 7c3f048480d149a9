//! A control group that limits the processor time of the measured process.

use std::fs::{self, File};
use std::os::fd::{AsRawFd as _, RawFd};
use std::path::{Path, PathBuf};

/// The period of the limit, in microseconds: the kernel's default.
const PERIOD_US: usize = 100_000;

/// A control group, which is removed when dropped.
pub(crate) struct Quota {
    folder: PathBuf,
    processes: File,
}

impl Quota {
    /// Creates a control group that gets `percent` of a core, below this process's own.
    pub(crate) fn new(percent: usize) -> Result<Quota, String> {
        let quota_us = percent * PERIOD_US / 100;
        let of_version_2 = mounted("0::").map_or(Err("it is not mounted".to_owned()), |parent| {
            // Enabled already, or the next step fails.
            let _ = fs::write(parent.join("cgroup.subtree_control"), "+cpu");
            Quota::below(&parent, &[("cpu.max", format!("{quota_us} {PERIOD_US}"))])
        });
        let why = match of_version_2 {
            Ok(quota) => return Ok(quota),
            Err(why) => why,
        };
        let limits = [
            ("cpu.cfs_period_us", PERIOD_US.to_string()),
            ("cpu.cfs_quota_us", quota_us.to_string()),
        ];
        Quota::below(Path::new("/sys/fs/cgroup/cpu"), &limits)
            .map_err(|older| format!("version 2: {why}; version 1: {older}"))
    }

    fn below(parent: &Path, limits: &[(&str, String)]) -> Result<Quota, String> {
        let folder = parent.join(format!("blitz-bench-{}", std::process::id()));
        let failed = |what: &str, why: std::io::Error| format!("{what}: {why}");
        if !parent.is_dir() {
            return Err("it is not mounted".into());
        }
        fs::create_dir(&folder).map_err(|why| failed("no group can be made", why))?;
        let made = limits.iter().try_for_each(|(file, value)| {
            // A file that is missing is not to be made.
            let mut options = File::options();
            let mut opened = options.write(true).open(folder.join(file))?;
            std::io::Write::write_all(&mut opened, value.as_bytes())
        });
        let processes =
            made.and_then(|()| File::options().write(true).open(folder.join("cgroup.procs")));
        match processes {
            Ok(processes) => Ok(Quota { folder, processes }),
            Err(why) => {
                let _ = fs::remove_dir(&folder);
                Err(failed("no limit can be set", why))
            }
        }
    }

    /// Returns the file by which a process joins.
    pub(crate) fn group(&self) -> RawFd {
        self.processes.as_raw_fd()
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // Fails if a process is left in it; an empty group takes nothing.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Returns the folder of this process's group, by the start of its line.
fn mounted(start: &str) -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix(start))?;
    let folder = Path::new("/sys/fs/cgroup").join(path.trim_start_matches('/'));
    folder.join("cgroup.controllers").exists().then_some(folder)
}
