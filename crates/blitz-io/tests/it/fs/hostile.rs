//! Tests misuse of `fs` that happens in real programs: futures that are dropped, leaked or polled
//! elsewhere, and runtimes that end first.

use std::{
    future::Future,
    io::SeekFrom,
    path::Path,
    pin::{Pin, pin},
    sync::mpsc::channel,
    task::{Context, Waker},
};

use blitz_io::{
    fs::{self, File, OpenOptions},
    io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt},
    runtime::Handle,
    task::LocalSet,
};

use crate::support::{
    caught_panic::panic_of,
    manual_poll,
    runtimes::{one_blocking_thread, one_thread, workers_with_drivers},
    temp_files::{content, file, folder},
    watchdog,
};

type Operation = Pin<Box<dyn Future<Output = ()>>>;

/// Returns a future of each operation, in a folder of its own.
fn operations(dir: &Path) -> Vec<(&'static str, Operation)> {
    fn of<F: Future + 'static>(name: &'static str, future: F) -> (&'static str, Operation) {
        (name, Box::pin(async { drop(future.await) }))
    }
    let path = file(dir, 300_000);
    let std = |path: &Path| {
        std::fs::File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .unwrap()
    };
    let own = |name: &str| File::from_std(std(&dir.join(name)));
    let to = |name: &str| dir.join(name);
    let mut all = vec![
        of("read", fs::read(path.clone())),
        of("read_to_string", fs::read_to_string(path.clone())),
        of("write", fs::write(to("written"), "x")),
        of("copy", fs::copy(path.clone(), to("copied"))),
        of("rename", fs::rename(to("none"), to("renamed"))),
        of("hard_link", fs::hard_link(path.clone(), to("linked"))),
        of("canonicalize", fs::canonicalize(path.clone())),
        of("metadata", fs::metadata(path.clone())),
        of("symlink_metadata", fs::symlink_metadata(path.clone())),
        of("read_link", fs::read_link(path.clone())),
        of("try_exists", fs::try_exists(path.clone())),
        of("create_dir", fs::create_dir(to("dir"))),
        of("create_dir_all", fs::create_dir_all(to("dirs/a/b"))),
        of("remove_dir", fs::remove_dir(to("none"))),
        of("remove_dir_all", fs::remove_dir_all(to("none"))),
        of("remove_file", fs::remove_file(to("none"))),
        of("set_permissions", {
            let permissions = std::fs::metadata(&path).unwrap().permissions();
            fs::set_permissions(path.clone(), permissions)
        }),
        of("read_dir", fs::read_dir(to("."))),
        of("open", File::open(path.clone())),
        of("create", File::create(to("created"))),
        of("create_new", File::create_new(to("new"))),
        of("dir_builder", async { fs::DirBuilder::new().create("/no/such").await }),
        of("into_std", own("a").into_std()),
    ];
    #[cfg(unix)]
    all.push(of("symlink", fs::symlink(path.clone(), to("symlinked"))));
    let mut file = own("b");
    all.push(of("file", async move {
        file.write_all(&content(100_000)).await?;
        file.seek(SeekFrom::Start(0)).await?;
        let mut buf = [0; 1000];
        file.read_exact(&mut buf).await?;
        file.write_all(b"x").await?;
        file.set_len(50).await?;
        file.sync_all().await?;
        file.sync_data().await?;
        file.flush().await?;
        file.metadata().await?;
        file.try_clone().await?;
        file.set_modified(std::time::SystemTime::now()).await?;
        let (result, buf) = file.read_at_owned(vec![0; 10], 0).await;
        result?;
        let (result, buf) = file.write_all_at_owned(buf, 0).await;
        result?;
        let (result, _) = file.write_vectored_at_owned(vec![buf], 0).await;
        result?;
        let (result, _) = file.read_vectored_at_owned(vec![vec![0; 10]], 0).await;
        result?;
        std::io::Result::Ok(())
    }));
    let dir = dir.to_owned();
    all.push(of("entries", async move {
        let mut entries = fs::read_dir(dir).await?;
        while let Some(entry) = entries.next_entry().await? {
            entry.file_type().await?;
            entry.metadata().await?;
        }
        std::io::Result::Ok(())
    }));
    all
}

/// Polls `future` up to `times` times; returns true once it has completed.
fn poll_times(future: Pin<&mut dyn Future<Output = ()>>, times: usize) -> bool {
    let mut future = future;
    for _ in 0..times {
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

#[test]
fn every_future_can_be_dropped_after_any_poll() {
    let _watch = watchdog::start();
    for runtime in [one_thread(), workers_with_drivers(2)] {
        let _entered = runtime.enter();
        for polls in [0, 1, 2, 5, 20] {
            let dir = folder();
            for (_, mut future) in operations(dir.path()) {
                poll_times(future.as_mut(), polls);
            }
        }
    }
}

#[test]
fn every_future_can_be_forgotten_after_any_poll() {
    let _watch = watchdog::start();
    for runtime in [one_thread(), workers_with_drivers(2)] {
        let entered = runtime.enter();
        for polls in [0, 1, 3] {
            let dir = folder();
            for (_, mut future) in operations(dir.path()) {
                poll_times(future.as_mut(), polls);
                std::mem::forget(future);
            }
        }
        drop(entered);
        // The end of the runtime must not wait for a future that was leaked.
        drop(runtime);
    }
}

#[test]
fn every_operation_ends_on_every_kind_of_runtime() {
    let _watch = watchdog::start();
    for runtime in [one_thread(), workers_with_drivers(1), workers_with_drivers(3)] {
        let dir = folder();
        for (_, future) in operations(dir.path()) {
            runtime.block_on(future);
        }
        let dir = folder();
        let local = LocalSet::new();
        let all = operations(dir.path());
        runtime.block_on(local.run_until(async {
            for (_, future) in all {
                blitz_io::task::spawn_local(future).await.unwrap();
            }
        }));
    }
}

#[test]
fn every_operation_panics_without_a_runtime() {
    let _watch = watchdog::start();
    // The file system is known, so that nothing depends on the page cache.
    let dir = folder();
    one_thread().block_on(async { drop(fs::read(file(dir.path(), 10)).await) });
    for (name, future) in operations(dir.path()) {
        // No operation is pending, so this future has nothing to wait for.
        if name == "into_std" {
            manual_poll::now(future);
            continue;
        }
        let text = panic_of(|| manual_poll::now(future)).message;
        assert!(text.contains("there is no reactor running"), "{name}: {text}");
    }
    let std = std::fs::File::open(dir.path().join("file-10")).unwrap();
    let mut file = File::from_std(std);
    for _ in 0..2 {
        let text = panic_of(|| manual_poll::now(file.read(&mut [0; 4]))).message;
        assert!(text.contains("there is no reactor running"), "{text}");
        let text = panic_of(|| manual_poll::now(file.seek(SeekFrom::Start(0)))).message;
        assert!(text.contains("there is no reactor running"), "{text}");
        let text = panic_of(|| manual_poll::now(file.write(b"x"))).message;
        assert!(text.contains("there is no reactor running"), "{text}");
    }
    // The file can be used as before.
    one_thread().block_on(async { assert_eq!(file.read(&mut [0; 4]).await.unwrap(), 4) });
}

fn ended() -> Handle {
    let runtime = workers_with_drivers(1);
    let handle = runtime.handle().clone();
    runtime.shutdown_background();
    handle
}

#[test]
fn after_the_end_of_the_runtime_operations_end_with_an_error_or_their_result() {
    let _watch = watchdog::start();
    let handle = ended();
    let _entered = handle.enter();
    let dir = folder();
    for (name, mut future) in operations(dir.path()) {
        assert!(poll_times(future.as_mut(), 1000), "{name} waits");
    }
    // Files in the page cache are no exception.
    let path = file(dir.path(), 100);
    one_thread().block_on(async { fs::read(&path).await.unwrap() });
    for error in [
        manual_poll::now(fs::read(&path)).unwrap_err(),
        manual_poll::now(fs::read_to_string(&path)).unwrap_err(),
        manual_poll::now(File::open(&path)).unwrap_err(),
        manual_poll::now(File::create(&path)).unwrap_err(),
        manual_poll::now(fs::metadata(&path)).unwrap_err(),
    ] {
        assert_eq!(error.kind(), std::io::ErrorKind::Other);
        assert_eq!(error.get_ref().unwrap().to_string(), "background task failed");
    }
    let mut opened = one_thread().block_on(File::open(&path)).unwrap();
    manual_poll::now(opened.read(&mut [0; 4])).unwrap_err();
    manual_poll::now(opened.seek(SeekFrom::Start(3))).unwrap_err();
    manual_poll::now(opened.metadata()).unwrap_err();
    manual_poll::now(opened.try_clone()).unwrap_err();
    assert!(!dir.path().join("created").exists());
    let error = manual_poll::now(fs::write(dir.path().join("late"), "x")).unwrap_err();
    assert_eq!(error.to_string(), "background task failed");
    let mut options = std::fs::OpenOptions::new();
    let std = options.write(true).create(true).truncate(true).open(dir.path().join("w")).unwrap();
    let mut file = File::from_std(std);
    for _ in 0..2 {
        let error = manual_poll::now(file.write(b"x")).unwrap_err();
        assert_eq!(error.to_string(), "background task failed");
        manual_poll::now(file.flush()).unwrap();
    }
    // The buffer is returned even so.
    let (result, buf) = manual_poll::now(file.write_at_owned(vec![1, 2], 0));
    assert!(result.is_err());
    assert_eq!(buf, [1, 2]);
    drop(file);
    assert_eq!(std::fs::read(dir.path().join("w")).unwrap(), b"", "what failed was not written");
}

/// A write that was accepted is carried out even if the runtime starts to shut down while it is
/// queued.
#[test]
fn a_write_that_was_taken_is_made_also_if_the_runtime_ends_first() {
    let _watch = watchdog::start();
    let dir = folder();
    let path = dir.path().join("file");
    let (open, gate) = channel::<()>();
    let runtime = one_blocking_thread();
    let file = runtime.block_on(async {
        let mut file = File::create(&path).await.unwrap();
        drop(blitz_io::task::spawn_blocking(move || gate.recv()));
        file.write_all(b"last words").await.unwrap();
        file
    });
    assert_eq!(std::fs::read(&path).unwrap(), b"");
    runtime.shutdown_background();
    drop(open);
    watchdog::until(|| std::fs::read(&path).unwrap() == b"last words");
    // The file can be used on another runtime.
    let mut file = file;
    one_thread().block_on(async {
        file.flush().await.unwrap();
        file.write_all(b", and more").await.unwrap();
        file.flush().await.unwrap();
    });
    assert_eq!(std::fs::read(&path).unwrap(), b"last words, and more");
}

#[test]
fn a_read_that_was_queued_before_the_end_is_made_and_the_file_goes_on_elsewhere() {
    let _watch = watchdog::start();
    let (reader, writer) = std::io::pipe().unwrap();
    #[cfg(unix)]
    let mut file = File::from(std::os::fd::OwnedFd::from(reader));
    #[cfg(windows)]
    let mut file = File::from(std::os::windows::io::OwnedHandle::from(reader));
    let (open, gate) = channel::<()>();
    let runtime = one_blocking_thread();
    let mut buf = [0; 4];
    {
        let _entered = runtime.enter();
        drop(blitz_io::task::spawn_blocking(move || gate.recv()));
        let mut read = pin!(file.read(&mut buf));
        assert!(manual_poll::poll_once(&mut read).is_pending());
    }
    runtime.shutdown_background();
    drop(open);
    drop(writer);
    one_thread().block_on(async {
        // The end of the pipe is read twice: by a thread of the runtime that has ended, and by a
        // thread of this runtime.
        assert_eq!(file.read(&mut buf).await.unwrap(), 0);
        assert_eq!(file.read(&mut buf).await.unwrap(), 0);
    });
}

#[test]
fn tasks_with_files_are_aborted_at_any_point() {
    let _watch = watchdog::start();
    let dir = folder();
    let path = file(dir.path(), 100_000);
    let runtime = workers_with_drivers(2);
    runtime.block_on(async {
        for round in 0..200 {
            let path = path.clone();
            let task = blitz_io::spawn(async move {
                let mut file = OpenOptions::new().read(true).write(true).open(&path).await.unwrap();
                loop {
                    file.seek(SeekFrom::Start(0)).await.unwrap();
                    file.write_all(&content(5000)).await.unwrap();
                    let mut buf = vec![0; 5000];
                    file.read_exact(&mut buf).await.unwrap();
                }
            });
            for _ in 0..round % 10 {
                blitz_io::task::yield_now().await;
            }
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
        }
    });
    drop(runtime);
    // Writes are complete, whichever task started them.
    assert!(std::fs::read(&path).unwrap() == content(100_000));
}

#[test]
fn a_file_moves_between_runtimes() {
    let _watch = watchdog::start();
    let dir = folder();
    let path = dir.path().join("file");
    let mut file = one_thread().block_on(File::create(&path)).unwrap();
    for round in 0..5u8 {
        // The runtime ends while the write is pending.
        file = workers_with_drivers(1).block_on(async move {
            file.write_all(&[round; 10]).await.unwrap();
            file
        });
        // Either a blocking thread ran the write, or the thread that ended the runtime did.
        one_thread().block_on(file.flush()).unwrap();
    }
    let expected: Vec<u8> = (0..5).flat_map(|round| [round; 10]).collect();
    assert_eq!(std::fs::read(&path).unwrap(), expected);
}

#[test]
fn threads_may_wait_for_a_file_by_reference() {
    let _watch = watchdog::start();
    let dir = folder();
    let runtime = workers_with_drivers(2);
    let file = runtime.block_on(File::create(dir.path().join("file"))).unwrap();
    let file = std::sync::Arc::new(file);
    std::thread::scope(|scope| {
        for size in 0..8 {
            let (file, runtime) = (&file, &runtime);
            scope.spawn(move || {
                runtime.block_on(async {
                    file.set_len(size * 100).await.unwrap();
                    file.sync_all().await.unwrap();
                    file.set_times(fs::FileTimes::new()).await.unwrap();
                });
            });
        }
    });
    let len = std::fs::metadata(dir.path().join("file")).unwrap().len();
    assert!(len < 800 && len.is_multiple_of(100));
}
