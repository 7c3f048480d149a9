//! Files that are none, or are none of the usual: pipes, `/proc`, terminals, direct files,
//! sparse and huge ones.

use std::{
    ffi::CString,
    io::{SeekFrom, Write},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use blitz_io::{
    fs::{self, File, OpenOptions},
    io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt},
};

use crate::{
    place::{content, folder, on_all, one_thread, workers},
    watch,
};

fn fifo(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(name);
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the name ends with a zero.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    path
}

/// An open waits for the other end, without its worker, and is not heard of before.
#[test]
fn both_ends_of_a_named_pipe_are_opened_by_one_thread() {
    let _watch = watch::begin();
    for runtime in [one_thread(), workers(1)] {
        let dir = folder();
        let path = fifo(dir.path(), "fifo");
        runtime.block_on(async {
            for round in 0..50 {
                let reading = async { File::open(&path).await };
                let writing = async { OpenOptions::new().write(true).open(&path).await };
                let (reader, writer) = blitz_io::join!(reading, writing);
                let (mut reader, mut writer) = (reader.unwrap(), writer.unwrap());
                writer.write_all(&[round]).await.unwrap();
                writer.flush().await.unwrap();
                assert_eq!(reader.read_u8().await.unwrap(), round);
                drop(writer.into_std().await);
                assert_eq!(reader.read(&mut [0]).await.unwrap(), 0);
            }
        });
    }
}

/// Who waits for a reader must not be let through by one that looks only what the path is.
#[test]
fn a_whole_read_of_a_named_pipe_is_one_reader() {
    let _watch = watch::begin();
    let dir = folder();
    for round in 0..50 {
        // A pipe for each round: a child that another test starts has a copy of a round's reader
        // until it is executed, and that would let the next round's writer through.
        let path = fifo(dir.path(), &format!("fifo-{round}"));
        let writing = {
            let path = path.clone();
            std::thread::spawn(move || {
                let mut writer = std::fs::OpenOptions::new().write(true).open(path).unwrap();
                writer.write_all(b"all of it")
            })
        };
        let read = one_thread().block_on(async { fs::read(&path).await.unwrap() });
        assert_eq!(read, b"all of it");
        writing.join().unwrap().unwrap();
    }
}

#[test]
fn a_pipe_is_read_as_it_fills() {
    on_all(|_| async move {
        let (reader, writer) = std::io::pipe()?;
        let mut reader = File::from(OwnedFd::from(reader));
        let mut writer = File::from(OwnedFd::from(writer));
        assert!(reader.seek(SeekFrom::Start(0)).await.is_err(), "a pipe has no cursor");
        let reading = async {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).await.map(|_| all)
        };
        let writing = async {
            for piece in content(500_000).chunks(70_000) {
                writer.write_all(piece).await?;
            }
            writer.flush().await?;
            drop(writer.into_std().await);
            std::io::Result::Ok(())
        };
        let (read, written) = blitz_io::join!(reading, writing);
        written?;
        assert!(read? == content(500_000));
        Ok(())
    });
}

#[test]
fn what_the_system_makes_up_is_read() {
    on_all(|dir| async move {
        assert_eq!(fs::read("/proc/sys/kernel/ostype").await?, b"Linux\n");
        let maps = fs::read_to_string("/proc/self/maps").await?;
        assert!(maps.contains("[stack]"), "{maps}");
        let mut status = File::open("/proc/self/status").await?;
        let mut first = [0; 5];
        status.read_exact(&mut first).await?;
        assert_eq!(&first, b"Name:");
        status.rewind().await?;
        status.read_exact(&mut first).await?;
        assert_eq!(&first, b"Name:");
        let (result, buf) = status.read_at_owned(Vec::with_capacity(5), 0).await;
        assert_eq!((result?, &*buf), (buf.len(), &b"Name:"[..buf.len()]));
        assert_eq!(fs::copy("/proc/sys/kernel/ostype", dir.join("copy")).await?, 6);
        assert_eq!(fs::read(dir.join("copy")).await?, b"Linux\n");
        Ok(())
    });
}

#[test]
fn devices_are_read_and_written() {
    on_all(|_| async move {
        assert_eq!(fs::read("/dev/null").await?, b"");
        fs::write("/dev/null", "gone").await?;
        let mut zero = File::open("/dev/zero").await?;
        let mut buf = [7; 100];
        zero.read_exact(&mut buf).await?;
        assert_eq!(buf, [0; 100]);
        let mut full = OpenOptions::new().write(true).open("/dev/full").await?;
        full.write_all(b"x").await?;
        let error = full.flush().await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        full.flush().await?;
        Ok(())
    });
}

#[test]
fn a_terminal_is_read_line_by_line() {
    let _watch = watch::begin();
    // SAFETY: asks for a new descriptor.
    let master = unsafe { libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY) };
    if master < 0 {
        println!("skipped: there are no terminals here");
        return;
    }
    // SAFETY: it was opened above, for us alone.
    let mut master = unsafe { std::fs::File::from_raw_fd(master) };
    let mut name = [0 as libc::c_char; 64];
    // SAFETY: prepares the terminal that is open; `name` has room for what is written.
    let named = unsafe {
        libc::grantpt(master.as_raw_fd()) == 0
            && libc::unlockpt(master.as_raw_fd()) == 0
            && libc::ptsname_r(master.as_raw_fd(), name.as_mut_ptr(), name.len()) == 0
    };
    if !named {
        println!("skipped: the terminal could not be prepared");
        return;
    }
    // SAFETY: it was written with its zero.
    let name = unsafe { std::ffi::CStr::from_ptr(name.as_ptr()) }.to_str().unwrap().to_owned();
    one_thread().block_on(async {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NOCTTY);
        let mut terminal = options.open(name).await.unwrap();
        master.write_all(b"one\ntwo\n").unwrap();
        for line in ["one\n", "two\n"] {
            let mut buf = [0; 64];
            let count = terminal.read(&mut buf).await.unwrap();
            assert_eq!(&buf[..count], line.as_bytes());
        }
    });
}

#[test]
fn a_direct_file_is_read_and_written_in_blocks() {
    let _watch = watch::begin();
    let dir = folder();
    let path = crate::place::file(dir.path(), 8192);
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_DIRECT);
    let runtime = one_thread();
    runtime.block_on(async {
        let mut direct = match options.open(&path).await {
            Ok(direct) => direct,
            Err(why) => return println!("skipped: no direct files here: {why}"),
        };
        // Memory and length as such a read wants them.
        let mut memory = vec![0; 3 * 4096];
        let begin = memory.as_ptr().align_offset(4096);
        let block = &mut memory[begin..begin + 4096];
        // The kernel may refuse a buffer of our own, which is not aligned.
        match direct.read(block).await {
            Ok(count) => assert!(block[..count] == content(8192)[..count]),
            Err(why) => assert_eq!(why.raw_os_error(), Some(libc::EINVAL)),
        }
        let (result, _) = direct.read_at_owned(vec![0; 4096], 0).await;
        assert!(result.is_ok() || result.unwrap_err().raw_os_error() == Some(libc::EINVAL));
    });
    assert!(runtime.metrics().num_blocking_threads() > 0, "nothing of it was done at once");
}

#[test]
fn a_file_with_holes_is_zeros_there() {
    on_all(|dir| async move {
        let path = dir.join("holes");
        let mut holes = OpenOptions::new().read(true).write(true).create(true).open(&path).await?;
        holes.set_len(10 << 20).await?;
        holes.seek(SeekFrom::Start(5 << 20)).await?;
        holes.write_all(b"here").await?;
        holes.rewind().await?;
        let mut all = Vec::new();
        holes.read_to_end(&mut all).await?;
        assert_eq!(all.len(), 10 << 20);
        assert_eq!(&all[5 << 20..][..4], b"here");
        assert_eq!(all.iter().filter(|byte| **byte != 0).count(), 4);
        Ok(())
    });
}

#[test]
fn offsets_beyond_four_gibibytes_are_right() {
    const FAR: u64 = (5 << 30) + 12_345;
    on_all(|dir| async move {
        let path = dir.join("huge");
        let mut huge = OpenOptions::new().read(true).write(true).create(true).open(&path).await?;
        assert_eq!(huge.seek(SeekFrom::Start(FAR)).await?, FAR);
        huge.write_all(b"far away").await?;
        huge.flush().await?;
        assert_eq!(huge.metadata().await?.len(), FAR + 8);
        assert_eq!(huge.seek(SeekFrom::End(-8)).await?, FAR);
        let mut buf = [0; 8];
        huge.read_exact(&mut buf).await?;
        assert_eq!(&buf, b"far away");
        let (result, buf) = huge.read_at_owned(Vec::with_capacity(4), FAR + 4).await;
        assert_eq!((result?, &*buf), (4, &b"away"[..]));
        let (result, _) = huge.write_all_at_owned("!", FAR + 8).await;
        result?;
        let (result, bufs) = huge.read_vectored_at_owned(vec![vec![0; 4], vec![0; 5]], FAR).await;
        assert_eq!((result?, &*bufs[1]), (9, &b"away!"[..]));
        Ok(())
    });
}

#[test]
fn an_empty_file_and_one_that_is_being_written_end_where_they_end() {
    on_all(|dir| async move {
        let path = dir.join("log");
        let mut writer = File::create(&path).await?;
        let mut reader = File::open(&path).await?;
        for line in ["one", "two", "three"] {
            assert_eq!(reader.read(&mut [0; 16]).await?, 0);
            writer.write_all(line.as_bytes()).await?;
            writer.flush().await?;
            let mut buf = [0; 16];
            let count = reader.read(&mut buf).await?;
            assert_eq!(&buf[..count], line.as_bytes());
        }
        Ok(())
    });
}
