//! Tests `File`: reading, writing, seeking, and which operation waits for which.

use std::{
    future::poll_fn,
    io::{IoSlice, Read, Seek, SeekFrom, Write},
    pin::Pin,
    task::Poll,
};

use blitz_io::{
    fs::{self, File, FileTimes, OpenOptions},
    io::{AsyncRead, AsyncReadExt, AsyncSeek, AsyncSeekExt, AsyncWrite, AsyncWriteExt, ReadBuf},
};

use crate::support::{
    manual_poll,
    runtimes::one_blocking_thread,
    temp_files::{content, file, on_all_kinds_in_folder},
    watchdog,
};

#[test]
fn a_file_is_read_to_its_end_in_pieces_of_any_size() {
    on_all_kinds_in_folder(|dir| async move {
        let path = file(&dir, 300_000);
        for piece in [1000, 4096, 65_537, 300_000, 1_000_000] {
            let mut file = File::open(&path).await?;
            let (mut all, mut buf) = (Vec::new(), vec![0; piece]);
            loop {
                let count = file.read(&mut buf).await?;
                if count == 0 {
                    break;
                }
                all.extend_from_slice(&buf[..count]);
            }
            assert!(all == content(300_000), "{piece}");
            assert_eq!(file.read(&mut buf).await?, 0, "the end stays the end");
        }
        Ok(())
    });
}

#[test]
fn reads_writes_and_seeks_take_turns_at_one_cursor() {
    on_all_kinds_in_folder(|dir| async move {
        let path = dir.join("file");
        let mut file = OpenOptions::new().read(true).write(true).create(true).open(&path).await?;
        file.write_all(b"0123456789").await?;
        assert_eq!(file.seek(SeekFrom::Start(2)).await?, 2);
        let mut two = [0; 2];
        file.read_exact(&mut two).await?;
        assert_eq!(&two, b"23");
        file.write_all(b"xy").await?;
        file.read_exact(&mut two).await?;
        assert_eq!(&two, b"67");
        assert_eq!(file.seek(SeekFrom::Current(-1)).await?, 7);
        assert_eq!(file.stream_position().await?, 7);
        assert_eq!(file.seek(SeekFrom::End(-1)).await?, 9);
        assert_eq!(file.read_u8().await?, b'9');
        assert!(file.seek(SeekFrom::Current(-11)).await.is_err());
        file.rewind().await?;
        file.flush().await?;
        assert_eq!(fs::read(&path).await?, b"0123xy6789");
        Ok(())
    });
}

#[test]
fn a_read_that_was_given_up_loses_nothing() {
    on_all_kinds_in_folder(|dir| async move {
        let path = file(&dir, 1000);
        let mut file = File::open(&path).await?;
        let mut all = Vec::new();
        let mut given_up = 0;
        while all.len() < 1000 {
            let mut large = [0; 64];
            let mut buf = ReadBuf::new(&mut large);
            let first = poll_fn(|cx| Poll::Ready(Pin::new(&mut file).poll_read(cx, &mut buf)));
            match first.await {
                Poll::Ready(result) => {
                    result?;
                    all.extend_from_slice(buf.filled());
                }
                // Read again, into a smaller buffer.
                Poll::Pending => {
                    given_up += 1;
                    let mut small = [0; 16];
                    let count = file.read(&mut small).await?;
                    all.extend_from_slice(&small[..count]);
                }
            }
        }
        assert!(all == content(1000), "{given_up} reads were given up");
        Ok(())
    });
}

/// A read of a pipe runs on a blocking thread. If the read is dropped, the bytes it got come first
/// in the next read, even if another operation happens in between.
#[cfg(unix)]
#[test]
fn bytes_of_a_dropped_read_come_first() {
    use std::os::fd::OwnedFd;

    let _watch = watchdog::start();
    let runtime = one_blocking_thread();
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut file = File::from(OwnedFd::from(reader));
    runtime.block_on(async {
        let mut large = [0; 64];
        let given_up = poll_fn(|cx| {
            let mut buf = ReadBuf::new(&mut large);
            Poll::Ready(Pin::new(&mut file).poll_read(cx, &mut buf).is_pending())
        });
        assert!(given_up.await);
        writer.write_all(b"abcdef").unwrap();
        let mut two = [0; 2];
        for expected in [b"ab", b"cd", b"ef"] {
            file.read_exact(&mut two).await.unwrap();
            assert_eq!(&two, expected);
        }
        drop(writer);
        assert_eq!(file.read(&mut two).await.unwrap(), 0);
    });
}

/// If a blocking thread has read for a future that was dropped, the cursor is ahead of the reader.
#[test]
fn read_ahead_does_not_move_writes_and_seeks() {
    if std::env::var_os("BLITZ_FS_INLINE").is_none_or(|way| way != "never") {
        // Only a blocking thread reads ahead, and only `forced_methods` makes reads use one always.
        return;
    }
    on_all_kinds_in_folder(|dir| async move {
        for next in 0..4 {
            let path = dir.join("file");
            fs::write(&path, "0123456789").await?;
            let mut file = OpenOptions::new().read(true).write(true).open(&path).await?;
            let mut large = [0; 8];
            // If the thread completes before the poll returns, there is no pending read to drop.
            let mut tries = 0;
            while !poll_fn(|cx| {
                let mut buf = ReadBuf::new(&mut large);
                Poll::Ready(Pin::new(&mut file).poll_read(cx, &mut buf).is_pending())
            })
            .await
            {
                tries += 1;
                assert!(tries < 1000, "a thread reads");
                file.seek(SeekFrom::Start(0)).await?;
            }
            assert_eq!(file.read_u8().await?, b'0');
            match next {
                0 => {
                    file.write_all(b"x").await?;
                    file.flush().await?;
                    assert_eq!(fs::read(&path).await?, b"0x23456789");
                }
                1 => assert_eq!(file.seek(SeekFrom::Current(1)).await?, 2),
                2 => {
                    file.set_len(5).await?;
                    assert_eq!(file.seek(SeekFrom::Current(0)).await?, 1);
                }
                _ => {
                    let mut rest = String::new();
                    file.into_std().await.read_to_string(&mut rest)?;
                    assert_eq!(rest, "123456789");
                }
            }
        }
        Ok(())
    });
}

#[test]
fn the_largest_step_can_be_set() {
    on_all_kinds_in_folder(|dir| async move {
        let path = file(&dir, 100);
        let mut file = File::open(&path).await?;
        file.set_max_buf_size(7);
        assert_eq!(file.max_buf_size(), 7);
        assert_eq!(file.read(&mut [0; 50]).await?, 7);
        let mut file = File::create(&path).await?;
        file.set_max_buf_size(7);
        assert_eq!(file.write(&content(50)).await?, 7);
        let pieces = [b"abc", b"def", b"ghi"].map(|piece| IoSlice::new(piece));
        assert_eq!(file.write_vectored(&pieces).await?, 7);
        assert_eq!(file.try_clone().await?.max_buf_size(), 7);
        file.flush().await?;
        assert_eq!(&fs::read(&path).await?[7..], b"abcdefg");
        Ok(())
    });
}

#[test]
#[should_panic(expected = "`max_buf_size` must be greater than 0")]
fn a_step_of_nothing_is_refused() {
    let dir = crate::support::temp_files::folder();
    let std = std::fs::File::create(dir.path().join("file")).unwrap();
    File::from_std(std).set_max_buf_size(0);
}

#[test]
fn clones_have_one_cursor() {
    on_all_kinds_in_folder(|dir| async move {
        let path = file(&dir, 100);
        let mut one = File::open(&path).await?;
        let mut two = one.try_clone().await?;
        let mut three = two.try_clone().await?;
        for at in 0..99 {
            let next = [&mut one, &mut two, &mut three][at % 3].read_u8().await?;
            assert_eq!(next, content(100)[at]);
        }
        one.seek(SeekFrom::Start(40)).await?;
        assert_eq!(two.stream_position().await?, 40);
        // The cursor is shared with a file of std as well.
        let mut std = three.into_std().await;
        std.seek(SeekFrom::Start(50))?;
        assert_eq!(one.read_u8().await?, content(100)[50]);
        Ok(())
    });
}

#[test]
fn clones_that_write_at_once_lose_no_byte() {
    on_all_kinds_in_folder(|dir| async move {
        let path = dir.join("file");
        let file = File::create(&path).await?;
        let mut tasks = Vec::new();
        for digit in b'0'..b'4' {
            let mut clone = file.try_clone().await?;
            tasks.push(blitz_io::spawn(async move {
                for _ in 0..100 {
                    clone.write_all(&[digit; 10]).await.unwrap();
                }
                clone.flush().await.unwrap();
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        let all = fs::read(&path).await?;
        assert_eq!(all.len(), 4000);
        for chunk in all.chunks(10) {
            assert!(chunk.iter().all(|byte| *byte == chunk[0]), "a chunk was torn: {chunk:?}");
        }
        Ok(())
    });
}

#[test]
fn a_file_that_is_dropped_is_still_written() {
    let _watch = watchdog::start();
    let dir = crate::support::temp_files::folder();
    for size in [1, 100_000, 2 << 20] {
        let path = dir.path().join("file");
        let runtime = one_blocking_thread();
        runtime.block_on(async {
            let mut file = File::create(&path).await.unwrap();
            file.write_all(&content(size)).await.unwrap();
        });
        drop(runtime);
        assert!(std::fs::read(&path).unwrap() == content(size), "{size}");
    }
}

#[test]
fn set_len_waits_for_writes_and_so_do_the_others() {
    on_all_kinds_in_folder(|dir| async move {
        let path = dir.join("file");
        let mut file = File::create(&path).await?;
        file.write_all(&content(1 << 20)).await?;
        file.set_len(10).await?;
        assert_eq!(std::fs::metadata(&path)?.len(), 10);
        file.write_all(b"more").await?;
        file.sync_all().await?;
        assert_eq!(std::fs::metadata(&path)?.len(), (1 << 20) + 4);
        file.write_all(b"more").await?;
        file.sync_data().await?;
        file.write_all(b"more").await?;
        let clone = file.try_clone().await?;
        assert_eq!(std::fs::metadata(&path)?.len(), (1 << 20) + 12);
        drop(clone);
        let then = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        file.write_all(b"more").await?;
        file.set_times(FileTimes::new().set_modified(then).set_accessed(then)).await?;
        assert_eq!(std::fs::metadata(&path)?.modified()?, then);
        Ok(())
    });
}

#[test]
fn permissions_and_times_can_be_set() {
    on_all_kinds_in_folder(|dir| async move {
        let path = file(&dir, 3);
        let file = File::open(&path).await?;
        let mut permissions = file.metadata().await?.permissions();
        permissions.set_readonly(true);
        file.set_permissions(permissions).await?;
        assert!(std::fs::metadata(&path)?.permissions().readonly());
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).await?;
        assert_eq!(file.metadata().await?.modified()?, std::time::SystemTime::UNIX_EPOCH);
        assert_eq!(file.metadata().await?.len(), 3);
        Ok(())
    });
}

#[test]
fn a_file_goes_to_std_and_back() {
    on_all_kinds_in_folder(|dir| async move {
        let path = dir.join("file");
        let mut file = File::create(&path).await?;
        file.write_all(b"hello").await?;
        let mut std = file.into_std().await;
        std.write_all(b" world")?;
        let mut file = File::from(std);
        file.write_all(b"!").await?;
        file.flush().await?;
        let std = file.try_into_std().expect("nothing is under way");
        drop(std);
        assert_eq!(fs::read(&path).await?, b"hello world!");
        Ok(())
    });
}

#[test]
fn a_file_that_is_busy_is_not_given_to_std_at_once() {
    let _watch = watchdog::start();
    let dir = crate::support::temp_files::folder();
    let (open, gate) = std::sync::mpsc::channel::<()>();
    one_blocking_thread().block_on(async {
        let mut file = File::create(dir.path().join("file")).await.unwrap();
        // The only blocking thread is busy, so the write does not start.
        let blocked = blitz_io::task::spawn_blocking(move || gate.recv());
        file.write_all(b"x").await.unwrap();
        let file = file.try_into_std().unwrap_err();
        drop(open);
        let _ = blocked.await.unwrap();
        drop(file.into_std().await);
    });
    assert_eq!(std::fs::read(dir.path().join("file")).unwrap(), b"x");
}

#[test]
fn a_seek_while_another_operation_is_under_way_is_refused() {
    let _watch = watchdog::start();
    let dir = crate::support::temp_files::folder();
    let (open, gate) = std::sync::mpsc::channel::<()>();
    one_blocking_thread().block_on(async {
        let mut file = File::create(dir.path().join("file")).await.unwrap();
        let blocked = blitz_io::task::spawn_blocking(move || gate.recv());
        file.write_all(b"x").await.unwrap();
        let error = Pin::new(&mut file).start_seek(SeekFrom::Start(0)).unwrap_err();
        assert!(error.to_string().contains("poll_complete"), "{error}");
        drop(open);
        let _ = blocked.await.unwrap();
        assert_eq!(file.seek(SeekFrom::Start(0)).await.unwrap(), 0);
    });
}

#[test]
fn reading_yields_to_other_tasks() {
    let _watch = watchdog::start();
    let dir = crate::support::temp_files::folder();
    let path = file(dir.path(), 4096);
    one_blocking_thread().block_on(async {
        let endless = blitz_io::spawn(async move {
            let mut file = File::open(&path).await.unwrap();
            loop {
                file.read_exact(&mut [0; 4096]).await.unwrap();
                file.seek(SeekFrom::Start(0)).await.unwrap();
                drop(fs::read(&path).await.unwrap());
                assert_eq!(file.metadata().await.unwrap().len(), 4096);
            }
        });
        // Each of these yields covers some thousand reads, because the root future is polled after
        // 61 polls of tasks.
        for _ in 0..3 {
            blitz_io::task::yield_now().await;
        }
        endless.abort();
        assert!(endless.await.unwrap_err().is_cancelled());
    });
}

#[test]
fn an_empty_read_and_an_empty_write_do_nothing() {
    on_all_kinds_in_folder(|dir| async move {
        let path = file(&dir, 3);
        let mut file = File::options().read(true).write(true).open(&path).await?;
        assert_eq!(manual_poll::now(file.read(&mut []))?, 0);
        assert_eq!(file.write(&[]).await?, 0);
        file.flush().await?;
        assert!(file.is_write_vectored());
        assert_eq!(file.read(&mut [0; 9]).await?, 3);
        Ok(())
    });
}

#[test]
fn a_file_can_be_shut_down_by_the_trait() {
    on_all_kinds_in_folder(|dir| async move {
        let path = dir.join("file");
        let mut file = File::create(&path).await?;
        file.write_all(b"x").await?;
        poll_fn(|cx| Pin::new(&mut file).poll_shutdown(cx)).await?;
        assert_eq!(std::fs::read(&path)?, b"x");
        Ok(())
    });
}
