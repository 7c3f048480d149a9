//! Files that are read and written whole.

use std::io::ErrorKind;

use blitz_io::fs;

use crate::place::{content, file, on_all};

#[test]
fn what_is_written_is_read_whatever_its_size() {
    on_all(|dir| async move {
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
    on_all(|dir| async move {
        let path = dir.join("file");
        fs::write(&path, "a long text").await?;
        fs::write(&path, String::from("short")).await?;
        assert_eq!(fs::read_to_string(&path).await?, "short");
        Ok(())
    });
}

#[test]
fn what_is_no_text_is_not_read_as_text() {
    on_all(|dir| async move {
        let path = dir.join("file");
        fs::write(&path, b"\xff\xfe").await?;
        let error = fs::read_to_string(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(error.to_string().contains("file"), "{error}");
        Ok(())
    });
}

#[test]
fn many_tasks_read_many_files() {
    on_all(|dir| async move {
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
