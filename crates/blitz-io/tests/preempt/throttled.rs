//! Tests a control group that has used up its quota: all threads stand still, and no task is to
//! blame.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process, thread,
    time::{Duration, Instant},
};

use blitz_io::{runtime::Builder, task};

use crate::support::{child, preemption::thread_cpu_time, watchdog};

/// The variable that names the child's control group.
const GROUP: &str = "BLITZ_IT_GROUP";

/// A control group. It is removed when this is dropped; it has no members then.
struct Group(PathBuf);

impl Group {
    /// Creates a group whose members may use a tenth of a processor, in periods of a tenth of a
    /// second, if the system permits it.
    fn with_a_tenth() -> io::Result<Self> {
        let name = format!("blitz-test-{}", process::id());
        // Version 1 has a tree for each resource, version 2 has one for all.
        let first = Path::new("/sys/fs/cgroup/cpu");
        if first.join("tasks").exists() {
            let group = Self::make(first.join(name))?;
            fs::write(group.0.join("cpu.cfs_period_us"), "100000")?;
            fs::write(group.0.join("cpu.cfs_quota_us"), "10000")?;
            return Ok(group);
        }
        let group = Self::make(Path::new("/sys/fs/cgroup").join(name))?;
        fs::write(group.0.join("cpu.max"), "10000 100000")?;
        Ok(group)
    }

    fn make(path: PathBuf) -> io::Result<Self> {
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    /// Returns the number of periods in which the group's members were throttled.
    fn throttled(path: &Path) -> u64 {
        let text = fs::read_to_string(path.join("cpu.stat")).unwrap();
        let mut words = text.split_whitespace();
        words.find(|word| *word == "nr_throttled").expect("the system counts them");
        words.next().unwrap().parse().unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let removed = fs::remove_dir(&self.0);
        assert!(removed.is_ok() || thread::panicking(), "the group stays: {removed:?}");
    }
}

/// Runs polls that compute or wait for two milliseconds, while all threads are mostly throttled.
async fn short_polls(end: Instant) {
    while Instant::now() < end {
        let before = thread_cpu_time();
        while thread_cpu_time() - before < Duration::from_millis(2) {}
        task::yield_now().await;
        thread::sleep(Duration::from_millis(2));
        task::yield_now().await;
    }
}

#[test]
fn throttled_time_is_charged_to_no_task_and_a_hog_is_found() {
    let _watch = watchdog::start();
    const NAME: &str = "throttled::throttled_time_is_charged_to_no_task_and_a_hog_is_found";
    if child::role().is_none() {
        match Group::with_a_tenth() {
            Ok(group) => {
                child::succeed(child::command(NAME, "is throttled").env(GROUP, &group.0));
            }
            Err(error) => eprintln!("skipped: no control group can be made ({error})"),
        }
        return;
    }
    let group = PathBuf::from(env::var_os(GROUP).expect("the parent says which"));
    fs::write(group.join("cgroup.procs"), process::id().to_string()).unwrap();
    let rt = Builder::new_multi_thread().worker_threads(2).on_task_stall(|_| ()).build().unwrap();
    let metrics = rt.metrics();
    // Repeated until the group was throttled, because other processes may leave it less time.
    watchdog::until(|| {
        let end = Instant::now() + Duration::from_secs(2);
        let tasks: Vec<_> = (0..4).map(|_| rt.spawn(short_polls(end))).collect();
        for task in tasks {
            rt.block_on(task).unwrap();
        }
        Group::throttled(&group) >= 5
    });
    assert_eq!((metrics.preemption_stall_count(), metrics.preemption_handoff_count()), (0, 0));
    let reports = metrics.clone();
    rt.block_on(rt.spawn(async move { while reports.preemption_stall_count() == 0 {} })).unwrap();
}
