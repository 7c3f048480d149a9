//! Tests `read_dir`, which lists the entries of a directory.

use std::collections::BTreeSet;

use blitz_io::{fs, runtime::Builder};

use crate::support::{
    temp_files::{file, folder, on_all_kinds_in_folder},
    watchdog,
};

#[test]
fn every_entry_comes_once_however_many_there_are() {
    on_all_kinds_in_folder(|dir| async move {
        for count in [0, 1, 255, 256, 257, 1000] {
            let dir = dir.join(format!("of {count}"));
            fs::create_dir(&dir).await?;
            for number in 0..count {
                std::fs::write(dir.join(number.to_string()), "")?;
            }
            let mut entries = fs::read_dir(&dir).await?;
            let mut names = BTreeSet::new();
            while let Some(entry) = entries.next_entry().await? {
                assert!(names.insert(entry.file_name()), "{entry:?} came twice");
                assert_eq!(entry.path(), dir.join(entry.file_name()));
            }
            assert_eq!(names.len(), count);
            assert!(entries.next_entry().await?.is_none(), "the end stays the end");
        }
        Ok(())
    });
}

#[test]
fn an_entry_returns_its_type_and_metadata() {
    on_all_kinds_in_folder(|dir| async move {
        let path = file(&dir, 5);
        let entry = fs::read_dir(&dir).await?.next_entry().await?.unwrap();
        assert!(entry.file_type().await?.is_file());
        assert_eq!(entry.metadata().await?.len(), 5);
        #[cfg(unix)]
        assert_eq!(entry.ino(), std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&path)?));
        fs::remove_file(&path).await?;
        let error = entry.metadata().await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
        Ok(())
    });
}

/// One blocking job reads many entries, so a task that walks a directory is polled a few times
/// only.
#[test]
fn a_walk_is_a_few_jobs() {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    static WAKES: AtomicUsize = AtomicUsize::new(0);
    let _watch = watchdog::start();
    let dir = folder();
    for number in 0..1000 {
        std::fs::write(dir.path().join(number.to_string()), "").unwrap();
    }
    let runtime = Builder::new_current_thread()
        .on_before_task_poll(|_| {
            WAKES.fetch_add(1, Relaxed);
        })
        .build()
        .unwrap();
    runtime.block_on(async {
        let path = dir.path().to_owned();
        let walk = blitz_io::spawn(blitz_io::task::unconstrained(async move {
            let (mut entries, mut count) = (fs::read_dir(path).await.unwrap(), 0);
            while let Some(entry) = entries.next_entry().await.unwrap() {
                assert!(entry.file_type().await.unwrap().is_file());
                count += 1;
            }
            count
        }));
        assert_eq!(walk.await.unwrap(), 1000);
    });
    let polls = WAKES.load(Relaxed);
    assert!(polls < 20, "{polls} polls for 1000 entries");
}
