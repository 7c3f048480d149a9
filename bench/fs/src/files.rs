//! Rows of files, written once for every runtime crate with Tokio's names.
//!
//! Files are created before the clock starts, and read once by the unmeasured batches, so all are
//! in the page cache. `cold_4k_32` is the exception: there the kernel is advised to drop the file
//! from the cache before each batch, outside of the measured time.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use harness::measure::{Metric, Of, cpu_ns, median};

use crate::material::Folder;

/// The number of files of the rows that read the same ones again.
pub(crate) const FILES: usize = 256;
/// The number of operations of a batch.
pub(crate) const OPS: usize = 4096;
/// The number of bytes of a read, and of these files.
pub(crate) const BLOCK: usize = 4096;
/// The number of files of the row that reads many.
pub(crate) const MANY: usize = 10_000;
/// The size of those files.
pub(crate) const SMALL: usize = 1024;
/// The size of the file that is read at random, and in sequence.
pub(crate) const LARGE: usize = 64 << 20;
/// The size of the file that is copied.
pub(crate) const HUGE: usize = 1 << 30;
/// The number of concurrent tasks.
pub(crate) const TASKS: usize = 32;

/// Creates a folder of 1000 entries.
pub(crate) fn entries(folder: &Folder) {
    drop(folder.files(1000, 0));
}

/// Times copies of a large file, each to a new one; in milliseconds.
pub(crate) fn copies(
    folder: &Folder,
    budget: Duration,
    copy: impl Fn(&Path, &Path),
) -> Vec<Metric> {
    // A run with an empty budget only shows that the row ends.
    let size = if budget.is_zero() { 1 << 20 } else { HUGE };
    let (from, to) = (folder.large(size), folder.path().join("copy"));
    let (mut walls, mut cpu) = (Vec::new(), 0);
    let start = Instant::now();
    // The first copy finds the disk's cache in an unknown state, so it is not measured.
    let mut round = 0;
    while walls.len() < 3 || start.elapsed() < budget {
        let (begun, before) = (Instant::now(), cpu_ns(Of::Process));
        copy(&from, &to);
        if round > 0 {
            walls.push(begun.elapsed().as_secs_f64() * 1e3);
            cpu += cpu_ns(Of::Process) - before;
        }
        round += 1;
        assert_eq!(fs::metadata(&to).expect("a copy").len(), size as u64);
        fs::remove_file(&to).expect("it is ours");
    }
    let cpu = cpu as f64 / walls.len() as f64;
    vec![Metric::new("", "ms", median(&mut walls), Some(cpu))]
}

/// The number of blocks of a batch of `cold_4k_32`.
pub(crate) const COLD: usize = 2048;

/// Times batches of reads of a file that the kernel was advised to drop from the cache before each.
pub(crate) fn cold_batches(path: &Path, budget: Duration, mut batch: impl FnMut()) -> Vec<Metric> {
    let file = fs::File::open(path).expect("a file");
    // Only pages that are on the disk can be dropped.
    file.sync_data().expect("a disk that works");
    let (mut walls, mut cpu) = (Vec::new(), 0);
    let start = Instant::now();
    while walls.len() < 3 || start.elapsed() < budget {
        // SAFETY: the call takes a descriptor and numbers, no pointers.
        let failed =
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        assert_eq!(failed, 0, "the kernel takes advice");
        let (begun, before) = (Instant::now(), cpu_ns(Of::Process));
        batch();
        walls.push(begun.elapsed().as_nanos() as f64 / COLD as f64);
        cpu += cpu_ns(Of::Process) - before;
    }
    let cpu = cpu as f64 / (walls.len() * COLD) as f64;
    vec![Metric::new("", "ns", median(&mut walls), Some(cpu))]
}

macro_rules! files {
    ($runtime:ident) => {
        use std::io::SeekFrom;
        use std::path::PathBuf;
        use std::sync::Arc;

        use $runtime::fs::{self, File};
        use $runtime::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
        use $runtime::runtime::Runtime;

        use crate::files::*;
        use crate::material::{Folder, Numbers};
        use harness::measure::per_op;

        /// Runs the row if it is one of these.
        pub(crate) fn on_files(row: &str, workers: usize, budget: Duration) -> Option<Vec<Metric>> {
            let (runtime, folder) = (runtime(workers), Folder::new());
            let (runtime, folder) = (&runtime, &folder);
            Some(match row {
                "read_4k" => read_one_by_one(runtime, folder, budget),
                "read_4k_32" => read_at_once(runtime, folder.files(FILES, BLOCK), OPS, budget),
                "small_files" => read_at_once(runtime, folder.files(MANY, SMALL), MANY, budget),
                "random_4k" => random(runtime, folder, budget),
                "cold_4k_32" => cold_at_once(runtime, folder, budget),
                "read_1m" => read_sequence(runtime, folder, budget),
                "write_1m" => write_sequence(runtime, folder, budget),
                "walk_1000" => walk(runtime, folder, budget),
                "copy_1g" => copies(folder, budget, |from, to| {
                    let (from, to) = (from.to_owned(), to.to_owned());
                    on(runtime, async move {
                        fs::copy(from, to).await.expect("a copy");
                    });
                }),
                _ => return None,
            })
        }

        fn runtime(workers: usize) -> Runtime {
            let mut builder = $runtime::runtime::Builder::new_multi_thread();
            builder.worker_threads(workers).enable_all().build().expect("a runtime")
        }

        /// Runs a task to its end, on a worker like a program's work.
        fn on(runtime: &Runtime, task: impl Future<Output = ()> + Send + 'static) {
            runtime.block_on(runtime.spawn(task)).expect("a task that does not panic");
        }

        fn read_one_by_one(runtime: &Runtime, folder: &Folder, budget: Duration) -> Vec<Metric> {
            let paths = Arc::new(folder.files(FILES, BLOCK));
            per_op(budget, OPS, || {
                let paths = paths.clone();
                on(runtime, async move {
                    for at in 0..OPS {
                        let read = fs::read(&paths[at % FILES]).await.expect("a file");
                        assert_eq!(read.len(), BLOCK);
                    }
                });
            })
        }

        /// Reads `ops` files, shared out among the tasks.
        fn read_at_once(
            runtime: &Runtime,
            paths: Vec<PathBuf>,
            ops: usize,
            budget: Duration,
        ) -> Vec<Metric> {
            let paths = Arc::new(paths);
            per_op(budget, ops, || {
                let share = |task: usize| {
                    let paths = paths.clone();
                    runtime.spawn(async move {
                        for at in (task..ops).step_by(TASKS) {
                            let read = fs::read(&paths[at % paths.len()]).await.expect("a file");
                            assert!(!read.is_empty());
                        }
                    })
                };
                let tasks: Vec<_> = (0..TASKS).map(share).collect();
                runtime.block_on(async {
                    for task in tasks {
                        task.await.expect("a task that does not panic");
                    }
                });
            })
        }

        fn random(runtime: &Runtime, folder: &Folder, budget: Duration) -> Vec<Metric> {
            let path = folder.large(LARGE);
            let mut seed = 0;
            per_op(budget, OPS, || {
                seed += 1;
                let (path, mut numbers) = (path.clone(), Numbers::new(seed));
                on(runtime, async move {
                    let mut file = File::open(&path).await.expect("a file");
                    let mut block = [0; BLOCK];
                    for _ in 0..OPS {
                        let at = numbers.below((LARGE / BLOCK) as u64) * BLOCK as u64;
                        file.seek(SeekFrom::Start(at)).await.expect("a file has a cursor");
                        file.read_exact(&mut block).await.expect("it is as large");
                    }
                });
            })
        }

        fn read_sequence(runtime: &Runtime, folder: &Folder, budget: Duration) -> Vec<Metric> {
            let path = folder.large(LARGE);
            per_op(budget, LARGE >> 20, || {
                let path = path.clone();
                on(runtime, async move {
                    let mut file = File::open(&path).await.expect("a file");
                    let mut piece = vec![0; 1 << 20];
                    for _ in 0..LARGE >> 20 {
                        file.read_exact(&mut piece).await.expect("it is as large");
                    }
                });
            })
        }

        fn write_sequence(runtime: &Runtime, folder: &Folder, budget: Duration) -> Vec<Metric> {
            let path = folder.large(LARGE);
            per_op(budget, LARGE >> 20, || {
                let path = path.clone();
                on(runtime, async move {
                    let mut file =
                        fs::OpenOptions::new().write(true).open(&path).await.expect("a file");
                    let piece = vec![b'x'; 1 << 20];
                    for _ in 0..LARGE >> 20 {
                        file.write_all(&piece).await.expect("room for it");
                    }
                    file.flush().await.expect("room for it");
                });
            })
        }

        fn walk(runtime: &Runtime, folder: &Folder, budget: Duration) -> Vec<Metric> {
            entries(folder);
            let path = folder.path().to_owned();
            per_op(budget, 1000, || {
                let path = path.clone();
                on(runtime, async move {
                    let (mut walk, mut count) = (fs::read_dir(&path).await.expect("a folder"), 0);
                    while let Some(entry) = walk.next_entry().await.expect("an entry") {
                        assert!(entry.file_type().await.expect("a kind").is_file());
                        count += 1;
                    }
                    assert_eq!(count, 1000);
                });
            })
        }
    };
}
pub(crate) use files;

/// Defines the row of reads that find nothing in the cache; `read` reads a block at an offset.
macro_rules! not_cached {
    ($opened:expr, |$file:ident, $at:ident| $read:expr) => {
        fn cold_at_once(runtime: &Runtime, folder: &Folder, budget: Duration) -> Vec<Metric> {
            let path = folder.large(if budget.is_zero() { LARGE } else { HUGE });
            let blocks = std::fs::metadata(&path).expect("a file").len() / BLOCK as u64;
            let mut seed = 0;
            cold_batches(&path, budget, || {
                seed += 1;
                let file = Arc::new($opened(std::fs::File::open(&path).expect("a file")));
                let share = |task: u64| {
                    let (file, mut numbers) = (file.clone(), Numbers::new(seed * 64 + task));
                    runtime.spawn(async move {
                        for _ in 0..COLD / TASKS {
                            let ($file, $at) = (file.clone(), numbers.below(blocks) * BLOCK as u64);
                            assert_eq!({ $read }.len(), BLOCK);
                        }
                    })
                };
                let tasks: Vec<_> = (0..TASKS as u64).map(share).collect();
                runtime.block_on(async {
                    for task in tasks {
                        task.await.expect("a task that does not panic");
                    }
                });
            })
        }
    };
}
pub(crate) use not_cached;
