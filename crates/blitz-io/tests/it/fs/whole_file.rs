//! Tests the functions that read or write a whole file.

use std::io::ErrorKind;

use blitz_io::{
    fs,
    io::{AsyncReadExt, AsyncWriteExt},
};

use crate::support::{
    temp_files::{content, file, folder, on_all_kinds_in_folder},
    watchdog,
};

#[test]
fn written_files_of_every_size_are_read_back() {
    on_all_kinds_in_folder(|dir| async move {
        for size in [0, 1, 4095, 4096, 4097, 128 * 1024, 128 * 1024 + 1, 3_000_000] {
            let path = dir.join("file");
            fs::write(&path, content(size)).await?;
            assert!(fs::read(&path).await? == content(size), "{size}");
            assert!(std::fs::read(&path)? == content(size), "{size}");
        }
        Ok(())
    });
}

#[test]
fn a_write_replaces_what_was_there() {
    on_all_kinds_in_folder(|dir| async move {
        let path = dir.join("file");
        fs::write(&path, "a long text").await?;
        fs::write(&path, String::from("short")).await?;
        assert_eq!(fs::read_to_string(&path).await?, "short");
        Ok(())
    });
}

#[test]
fn invalid_utf8_is_an_error() {
    on_all_kinds_in_folder(|dir| async move {
        let path = dir.join("file");
        fs::write(&path, b"\xff\xfe").await?;
        let error = fs::read_to_string(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        Ok(())
    });
}

#[test]
fn many_tasks_read_many_files() {
    on_all_kinds_in_folder(|dir| async move {
        let paths: Vec<_> = (0..64).map(|size| file(&dir, 100 * size)).collect();
        let tasks: Vec<_> = (0..32)
            .map(|first| {
                let paths = paths.clone();
                blitz_io::spawn(async move {
                    for at in 0..paths.len() {
                        let at = (at + first) % paths.len();
                        assert!(fs::read(&paths[at]).await.unwrap() == content(100 * at));
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        Ok(())
    });
}

/// A write that was accepted is carried out before the file is opened again, even without a flush:
/// with one blocking thread the order is certain, and on Tokio it nearly always is the same.
#[test]
fn a_write_that_was_not_flushed_is_seen_by_the_next_open() {
    let _watch = watchdog::start();
    let runtime =
        blitz_io::runtime::Builder::new_multi_thread().max_blocking_threads(1).build().unwrap();
    let dir = folder();
    let path = dir.path().join("file");
    runtime.block_on(async {
        for _ in 0..100 {
            std::fs::write(&path, "").unwrap();
            let mut file = fs::OpenOptions::new().write(true).open(&path).await.unwrap();
            file.write_all(b"hello").await.unwrap();
            assert_eq!(file.metadata().await.unwrap().len(), 5);
            file.write_all(b" there").await.unwrap();
            assert_eq!(fs::read(&path).await.unwrap(), b"hello there");
            file.write_all(b"!").await.unwrap();
            drop(file);
            let mut text = String::new();
            let mut again = fs::File::open(&path).await.unwrap();
            again.read_to_string(&mut text).await.unwrap();
            assert_eq!(text, "hello there!");
        }
    });
}

/// No thread can be started with a stack of this size, so the write returns an error and is not
/// carried out.
#[test]
fn a_write_that_no_thread_can_be_had_for_is_an_error_and_not_made() {
    let _watch = watchdog::start();
    let runtime = blitz_io::runtime::Builder::new_current_thread()
        .thread_stack_size(1 << 46)
        .build()
        .unwrap();
    let dir = folder();
    let path = dir.path().join("file");
    let mut file = fs::File::from_std(std::fs::File::create(&path).unwrap());
    runtime.block_on(async {
        let error = file.write_all(b"hello").await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::Other);
        assert_eq!(error.to_string(), "background task failed");
    });
    drop((file, runtime));
    assert_eq!(std::fs::read(&path).unwrap(), b"");
}
