//! Tests which operations of `fs` need a blocking thread, by counting the threads that a runtime
//! has started.

use std::{
    io::{Seek, SeekFrom, Write},
    os::fd::AsRawFd,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use blitz_io::{
    buf::OwnedBuf,
    fs::{self, File},
    io::{AsyncReadExt, AsyncSeekExt},
    runtime::Runtime,
};

use crate::support::{
    runtimes::{one_thread, unpreempted_workers_with_drivers},
    temp_files::{content, file, folder},
    watchdog,
};

/// Returns the method of access that `BLITZ_FS_INLINE` forces, if any.
fn wish() -> std::ffi::OsString {
    std::env::var_os("BLITZ_FS_INLINE").unwrap_or_default()
}

/// Returns true if reads and opens in this folder can be tried inline; prints why not.
fn is_tried(dir: &Path) -> bool {
    if wish() == "never" {
        return false;
    }
    let dir = std::fs::File::open(dir).unwrap();
    // SAFETY: all bit patterns are valid for a `statfs`.
    let mut found: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: `found` is a valid `statfs` to write to, and the directory is open.
    assert_eq!(unsafe { libc::fstatfs(dir.as_raw_fd(), &raw mut found) }, 0);
    let local = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010].contains(&(found.f_type as u32));
    if !local {
        println!("skipped: the folder for temporary files is of no file system that is tried");
    }
    local
}

/// Opens a file, so that the runtime learns the type of its file system.
fn learn(path: &Path) {
    one_thread().block_on(async { fs::read(path).await.unwrap() });
}

fn threads(runtime: &Runtime) -> usize {
    runtime.metrics().num_blocking_threads()
}

#[test]
fn cached_reads_need_no_thread() {
    let _watch = watchdog::start();
    let dir = folder();
    let path = file(dir.path(), 100_000);
    if !is_tried(dir.path()) || wish() == "uring" {
        return;
    }
    learn(&path);
    for runtime in [one_thread(), unpreempted_workers_with_drivers(2)] {
        runtime.block_on(async {
            assert!(fs::read(&path).await.unwrap() == content(100_000));
            let mut file = File::open(&path).await.unwrap();
            let mut all = Vec::new();
            file.read_to_end(&mut all).await.unwrap();
            assert!(all == content(100_000));
            assert_eq!(file.seek(SeekFrom::End(-5)).await.unwrap(), 99_995);
            assert_eq!(file.seek(SeekFrom::Start(7)).await.unwrap(), 7);
            assert_eq!(file.read_u8().await.unwrap(), 7);
            assert_eq!(file.metadata().await.unwrap().len(), 100_000);
            let mut clone = file.try_clone().await.unwrap();
            assert_eq!(clone.read_u8().await.unwrap(), 8);
            let (result, buf) = file.read_exact_at_owned(vec![0; 9].slice(..9), 3).await;
            result.unwrap();
            assert_eq!(buf.as_slice(), &content(12)[3..]);
            let bufs = vec![vec![0; 4], vec![0; 4]];
            let (result, _) = file.read_vectored_at_owned(bufs, 3).await;
            assert_eq!(result.unwrap(), 8);
        });
        assert_eq!(threads(&runtime), 0);
    }
}

/// Returns true if the kernel lets this process create an io_uring.
fn is_uring_there() -> bool {
    // SAFETY: the parameters are 120 zero bytes, which request no option.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, [0_u64; 15].as_mut_ptr()) };
    if fd < 0 {
        println!("skipped: no io_uring here: {}", std::io::Error::last_os_error());
        return false;
    }
    // SAFETY: the descriptor was created above and has no other owner.
    unsafe { libc::close(fd as i32) };
    true
}

/// Makes the kernel drop the file from the page cache.
fn make_cold(path: &Path) {
    let file = std::fs::File::open(path).unwrap();
    // Only pages that are on the disk can be dropped.
    file.sync_data().unwrap();
    // SAFETY: the call takes no pointers.
    let failed = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    assert_eq!(failed, 0);
}

#[test]
fn a_read_at_an_offset_that_io_uring_has_needs_no_thread() {
    const SIZE: usize = 1 << 20;

    let _watch = watchdog::start();
    let dir = folder();
    let path = file(dir.path(), SIZE);
    // The module `forced_methods` runs this test with the variable set.
    if !is_tried(dir.path()) || wish() != "uring" || !is_uring_there() {
        return;
    }
    learn(&path);
    let runtime = unpreempted_workers_with_drivers(2);
    let file = runtime.block_on(async { Arc::new(File::open(&path).await.unwrap()) });
    for round in 0..4 {
        make_cold(&path);
        let read = |task: usize| {
            let file = file.clone();
            runtime.spawn(async move {
                for step in 0..20_usize {
                    // An offset that neither the step before nor another task's read-ahead cached.
                    let at = (task * 7919 + step * 104_729 + round) % (SIZE - 4096);
                    let (result, buf) =
                        file.read_exact_at_owned(vec![0; 4096].slice(..), at as u64).await;
                    assert_eq!(result.unwrap(), 4096);
                    assert!(buf.as_slice() == &content(at % 251 + 4096)[at % 251..], "at {at}");
                }
            })
        };
        let tasks: Vec<_> = (0..16).map(read).collect();
        runtime.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
    }
    assert_eq!(threads(&runtime), 0);
}

/// A buffer that counts how many of its kind are alive.
struct Counted(Box<[u8]>, Arc<AtomicUsize>);

impl Counted {
    fn new(left: &Arc<AtomicUsize>) -> Self {
        left.fetch_add(1, SeqCst);
        Self(vec![0; 4096].into_boxed_slice(), left.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(1, SeqCst);
    }
}

// SAFETY: obligations 1 to 3 hold because the boxed slice keeps them: each method forwards to it,
// and the slice is never replaced.
unsafe impl OwnedBuf for Counted {
    fn stable_ptr(&self) -> *const u8 {
        self.0.stable_ptr()
    }

    fn bytes_init(&self) -> usize {
        self.0.bytes_init()
    }

    fn bytes_total(&self) -> usize {
        self.0.bytes_total()
    }
}

// SAFETY: obligations 1 and 2 hold because the boxed slice keeps them: each method forwards to it,
// and the slice is never replaced.
unsafe impl blitz_io::buf::OwnedBufMut for Counted {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.0.stable_mut_ptr()
    }

    unsafe fn set_init(&mut self, count: usize) {
        // SAFETY: the caller guarantees that the first `count` bytes are initialised.
        unsafe { self.0.set_init(count) };
    }
}

#[test]
fn buffers_of_reads_that_were_dropped_are_freed_once() {
    const SIZE: usize = 1 << 20;

    let _watch = watchdog::start();
    let dir = folder();
    let path = file(dir.path(), SIZE);
    learn(&path);
    let left = Arc::default();
    let runtime = unpreempted_workers_with_drivers(2);
    let file = runtime.block_on(async { File::open(&path).await.unwrap() });
    for round in 0..4_u64 {
        make_cold(&path);
        runtime.block_on(async {
            let mut reads: Vec<_> = (0..32)
                .map(|at| {
                    Box::pin(file.read_at_owned(Counted::new(&left), (at * 31 + round) * 1000))
                })
                .collect();
            // Every read is started, and some are complete.
            std::future::poll_fn(|cx| {
                for read in &mut reads {
                    if read.as_mut().poll(cx).is_ready() {
                        // Not polled again, but dropped as it is.
                        continue;
                    }
                }
                std::task::Poll::Ready(())
            })
            .await;
        });
    }
    drop(file);
    drop(runtime);
    assert_eq!(left.load(SeqCst), 0);
}

#[test]
fn a_file_of_stds_is_read_at_once_too() {
    let _watch = watchdog::start();
    let dir = folder();
    let path = file(dir.path(), 5000);
    if !is_tried(dir.path()) || wish() == "uring" {
        return;
    }
    let runtime = one_thread();
    let mut std = std::fs::File::open(&path).unwrap();
    std.seek(SeekFrom::Start(100)).unwrap();
    runtime.block_on(async {
        let mut file = File::from_std(std);
        assert_eq!(file.read_u8().await.unwrap(), 100);
        let (result, buf) = file.read_at_owned(Vec::with_capacity(3), 50).await;
        assert_eq!((result.unwrap(), buf), (3, vec![50, 51, 52]));
    });
    assert_eq!(threads(&runtime), 0);
}

#[test]
fn all_else_is_a_threads() {
    let _watch = watchdog::start();
    let dir = folder();
    let runtime = one_thread();
    runtime.block_on(async { fs::write(dir.path().join("x"), "y").await.unwrap() });
    assert_eq!(threads(&runtime), 1);
}

#[test]
fn no_inline_access_is_tried_if_the_variable_forbids_it() {
    let _watch = watchdog::start();
    let dir = folder();
    let path = file(dir.path(), 5000);
    if wish() != "never" {
        // The module `forced_methods` runs this test with the variable set.
        return;
    }
    let runtime = one_thread();
    for _ in 0..3 {
        runtime.block_on(async { assert!(fs::read(&path).await.unwrap() == content(5000)) });
    }
    assert!(threads(&runtime) > 0);
    let runtime = one_thread();
    runtime.block_on(async {
        let mut file = File::from_std(std::fs::File::open(&path).unwrap());
        assert_eq!(file.read_u8().await.unwrap(), 0);
    });
    assert!(threads(&runtime) > 0);
}

/// Returns true if the byte at `offset` is in the page cache.
fn is_cached(file: &std::fs::File, offset: i64) -> bool {
    let mut byte = 0u8;
    let piece = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: `piece` points to one byte that this function owns.
    let count = unsafe {
        libc::preadv64v2(file.as_raw_fd(), &raw const piece, 1, offset, libc::RWF_NOWAIT)
    };
    count == 1
}

/// Makes the kernel drop a file from the page cache, if the kernel complies.
fn forget(file: &std::fs::File) {
    file.sync_all().unwrap();
    // SAFETY: the descriptor is open, and the call takes no pointers.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

#[test]
fn uncached_reads_use_a_thread_and_are_right() {
    let _watch = watchdog::start();
    let dir = folder();
    const SIZE: usize = 100_000;
    let path = file(dir.path(), SIZE);
    learn(&path);
    let std = std::fs::File::open(&path).unwrap();
    let mut cold = 0;
    for round in 0..20 {
        forget(&std);
        if round % 2 == 1 {
            // Only the beginning is cached.
            let mut byte = [0];
            std::os::unix::fs::FileExt::read_at(&std, &mut byte, 0).unwrap();
        }
        let was_cold = !is_cached(&std, SIZE as i64 - 1);
        cold += usize::from(was_cold);
        let runtime = one_thread();
        runtime.block_on(async {
            match round % 4 {
                0 | 1 => assert!(fs::read(&path).await.unwrap() == content(SIZE)),
                2 => {
                    let mut all = Vec::new();
                    let mut file = File::open(&path).await.unwrap();
                    file.read_to_end(&mut all).await.unwrap();
                    assert!(all == content(SIZE));
                }
                _ => {
                    let file = File::open(&path).await.unwrap();
                    let buf = Vec::<u8>::with_capacity(SIZE).slice(..SIZE);
                    let (result, buf) = file.read_exact_at_owned(buf, 0).await;
                    result.unwrap();
                    assert!(buf.as_slice() == content(SIZE));
                }
            }
        });
    }
    println!("{cold} of 20 were cold");
}

#[test]
fn a_file_that_is_cut_off_or_grows_meanwhile_is_read_as_it_is() {
    let _watch = watchdog::start();
    let dir = folder();
    let path = file(dir.path(), 5000);
    learn(&path);
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let changing = {
        let (path, stop) = (path.clone(), stop.clone());
        std::thread::spawn(move || {
            let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                file.set_len(0).unwrap();
                file.rewind().unwrap();
                file.write_all(&content(5000)).unwrap();
            }
        })
    };
    unpreempted_workers_with_drivers(1).block_on(async {
        for _ in 0..500 {
            let read = fs::read(&path).await.unwrap();
            assert!(read.len() <= 5000);
            // A part that was truncated and has grown again is a hole, which reads as zeros.
            assert!(read.iter().zip(content(5000)).all(|(is, was)| *is == was || *is == 0));
        }
    });
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    changing.join().unwrap();
}

/// A job of one clone holds the cursor; a poll of the other clone must not block on it.
#[test]
fn a_clone_whose_cursor_is_in_use_waits_without_its_worker() {
    let _watch = watchdog::start();
    let dir = folder();
    let path = file(dir.path(), 200_000);
    learn(&path);
    let std = std::fs::File::open(&path).unwrap();
    for runtime in [one_thread(), unpreempted_workers_with_drivers(2)] {
        runtime.block_on(async {
            for _ in 0..20 {
                forget(&std);
                let mut one = File::open(&path).await.unwrap();
                let mut two = one.try_clone().await.unwrap();
                let read = async |file: &mut File| {
                    let (mut count, mut buf) = (0, vec![0; 10_000]);
                    loop {
                        match file.read(&mut buf).await.unwrap() {
                            0 => return count,
                            more => count += more,
                        }
                    }
                };
                let (first, second) = blitz_io::join!(read(&mut one), read(&mut two));
                assert_eq!(first + second, 200_000, "each byte is read by one");
            }
        });
    }
}

/// Makes the kernel cache the first 16 KiB of a file and nothing else. Returns `false` if the
/// kernel does not comply.
fn keep_the_beginning(path: &Path) -> bool {
    let std = std::fs::File::open(path).unwrap();
    forget(&std);
    // SAFETY: the descriptor is open, and the call takes no pointers. It disables read-ahead.
    unsafe { libc::posix_fadvise(std.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
    std::os::unix::fs::FileExt::read_exact_at(&std, &mut [0; 16_384], 0).unwrap();
    let kept = is_cached(&std, 0) && !is_cached(&std, 16_384);
    if !kept {
        println!("skipped: the kernel does not keep a part of a file");
    }
    kept
}

const LONG: usize = 3 << 20;

#[test]
fn a_read_fills_its_buffer_unless_the_file_ends() {
    let _watch = watchdog::start();
    let dir = folder();
    let path = file(dir.path(), LONG);
    let all = content(LONG);
    learn(&path);
    for runtime in [one_thread(), unpreempted_workers_with_drivers(2)] {
        runtime.block_on(async {
            for size in [4096, 150_000, 256 << 10, 1 << 20, (1 << 20) + 1, 2 << 20] {
                let mut file = File::open(&path).await.unwrap();
                let mut buf = vec![0; size];
                let mut at = 0;
                while at < LONG {
                    let count = file.read(&mut buf).await.unwrap();
                    assert_eq!(count, size.min(LONG - at), "at {at} of {LONG}");
                    assert!(buf[..count] == all[at..at + count]);
                    at += count;
                }
                assert_eq!(file.read(&mut buf).await.unwrap(), 0);
            }
        });
    }
}

#[test]
fn a_read_of_which_a_part_is_cached_fills_its_buffer() {
    let _watch = watchdog::start();
    let dir = folder();
    let path = file(dir.path(), LONG);
    learn(&path);
    for size in [20_000, 65_536, 1 << 20] {
        if !keep_the_beginning(&path) {
            return;
        }
        one_thread().block_on(async {
            let mut file = File::open(&path).await.unwrap();
            let mut buf = vec![0; size];
            assert_eq!(file.read(&mut buf).await.unwrap(), size);
            assert!(buf == content(size));
            assert_eq!(file.stream_position().await.unwrap(), size as u64);
        });
    }
}

/// Polls a read that needs a blocking thread once, and drops it.
///
/// Returns `false` if the read was complete at once. This happens because `RWF_NOWAIT` starts
/// read-ahead of the pages that it does not find: a fast disk may have delivered them by the time
/// of the poll. The caller then tries again, see [`attempts`].
#[must_use]
async fn give_up_a_read(file: &mut File) -> bool {
    let mut buf = vec![0; 65_536];
    let mut read = Box::pin(file.read(&mut buf));
    let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(read.as_mut().poll(cx))).await;
    polled.is_pending()
}

/// Calls `attempt` with the beginning of the file cached until it returns true. Skips the test,
/// and prints so, if the kernel does not keep a part of a file or reads ahead too fast each time.
fn attempts(path: &Path, mut attempt: impl FnMut() -> bool) {
    for _ in 0..100 {
        if !keep_the_beginning(path) || attempt() {
            return;
        }
    }
    println!("skipped: the kernel has read ahead before each of 100 polls");
}

#[test]
fn a_read_that_is_given_up_when_a_part_was_read_loses_nothing() {
    let _watch = watchdog::start();
    let dir = folder();
    let path = file(dir.path(), LONG);
    learn(&path);
    for shared in [false, true] {
        attempts(&path, || one_thread().block_on(give_up_and_read_on(&path, shared)));
    }
}

/// Gives up a read and checks that a later read and a seek start where it did. Returns `false` if
/// the read was complete before it could be given up.
async fn give_up_and_read_on(path: &Path, shared: bool) -> bool {
    let mut file = File::open(path).await.unwrap();
    let _clone = if shared { Some(file.try_clone().await.unwrap()) } else { None };
    if !give_up_a_read(&mut file).await {
        return false;
    }
    let mut buf = vec![0; 100_000];
    file.read_exact(&mut buf).await.unwrap();
    assert!(buf == content(100_000));
    // A seek relative to the current position uses the position of the reader.
    assert_eq!(file.seek(SeekFrom::Current(-1)).await.unwrap(), 99_999);
    true
}

#[test]
fn a_read_that_the_runtime_never_began_leaves_the_cursor() {
    let _watch = watchdog::start();
    let dir = folder();
    let path = file(dir.path(), LONG);
    learn(&path);
    attempts(&path, || give_up_before_the_shutdown(&path));
}

/// Gives up a read that waits for the only blocking thread, shuts the runtime down, and checks
/// that a read on another runtime starts where the abandoned one did. Returns `false` if the read
/// was complete before it could be given up.
fn give_up_before_the_shutdown(path: &Path) -> bool {
    let runtime = crate::support::runtimes::one_blocking_thread();
    let (started, has_started) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let mut file = runtime.block_on(async { File::open(path).await.unwrap() });
    // The only blocking thread is busy until after the shutdown.
    drop(runtime.spawn_blocking(move || {
        started.send(()).unwrap();
        released.recv().unwrap_err();
    }));
    has_started.recv().unwrap();
    let given_up = runtime.block_on(give_up_a_read(&mut file));
    runtime.shutdown_background();
    drop(release);
    if !given_up {
        return false;
    }
    one_thread().block_on(async {
        let mut buf = vec![0; 100_000];
        // The shutdown may have dropped the abandoned read, which is reported once.
        if file.read_exact(&mut buf).await.is_err() {
            file.read_exact(&mut buf).await.unwrap();
        }
        assert!(buf == content(100_000));
    });
    true
}

#[test]
fn a_read_of_a_clone_is_never_split_by_another() {
    let _watch = watchdog::start();
    let dir = folder();
    let path = file(dir.path(), LONG);
    learn(&path);
    for runtime in [one_thread(), unpreempted_workers_with_drivers(2)] {
        for _ in 0..5 {
            keep_the_beginning(&path);
            runtime.block_on(async {
                let file = File::open(&path).await.unwrap();
                let mut tasks = Vec::new();
                for _ in 0..2 {
                    let mut clone = file.try_clone().await.unwrap();
                    tasks.push(blitz_io::spawn(async move {
                        let mut buf = vec![0; 24_576];
                        loop {
                            let count = clone.read(&mut buf).await.unwrap();
                            assert!(count == 0 || count == buf.len(), "{count}");
                            if count == 0 {
                                return;
                            }
                            let next = buf.windows(2).all(|two| (two[0] + 1) % 251 == two[1]);
                            assert!(next, "two reads share a chunk");
                        }
                    }));
                }
                for task in tasks {
                    task.await.unwrap();
                }
            });
        }
    }
}
