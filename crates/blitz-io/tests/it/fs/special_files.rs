//! Tests special files: pipes, `/proc`, terminals, files opened for direct I/O, sparse and huge
//! files.

use std::{
    io::{Read, SeekFrom, Write},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    path::{Path, PathBuf},
};

use blitz_io::{
    fs::{self, File, OpenOptions},
    io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt},
};

use crate::support::{
    runtimes::{one_thread, workers_with_drivers},
    temp_files::{content, folder, make_fifo, on_all_kinds_in_folder},
    watchdog,
};

fn fifo(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(name);
    make_fifo(&path);
    path
}

/// Opening a named pipe waits for the other end without blocking its worker, and does not complete
/// before.
#[test]
fn both_ends_of_a_named_pipe_are_opened_by_one_thread() {
    let _watch = watchdog::start();
    for runtime in [one_thread(), workers_with_drivers(1)] {
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

/// A writer that waits for a reader must not be let through by an open that only inspects the path.
#[test]
fn a_whole_read_of_a_named_pipe_is_one_reader() {
    let _watch = watchdog::start();
    let dir = folder();
    for round in 0..50 {
        // Each round has its own pipe: a child that another test starts holds a copy of a round's
        // reader until it executes its program, and that would let the next round's writer through.
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
    on_all_kinds_in_folder(|_| async move {
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
fn files_of_proc_are_read() {
    on_all_kinds_in_folder(|dir| async move {
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
    on_all_kinds_in_folder(|_| async move {
        assert_eq!(fs::read("/dev/null").await?, b"");
        fs::write("/dev/null", "gone").await?;
        let mut zero = File::open("/dev/zero").await?;
        let mut buf = [7; 100];
        zero.read_exact(&mut buf).await?;
        assert_eq!(buf, [0; 100]);
        let mut buf = vec![7; 1 << 20];
        assert_eq!(zero.read(&mut buf).await?, 1 << 20);
        assert!(buf.iter().all(|byte| *byte == 0));
        let mut full = OpenOptions::new().write(true).open("/dev/full").await?;
        full.write_all(b"x").await?;
        let error = full.flush().await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        full.flush().await?;
        Ok(())
    });
}

/// Opens a terminal. Returns its master and the name of the other side, or `None` if the system
/// has no terminals.
fn terminal() -> Option<(std::fs::File, String)> {
    // SAFETY: the call takes no pointers.
    let master = unsafe { libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY) };
    if master < 0 {
        println!("skipped: there are no terminals here");
        return None;
    }
    // SAFETY: the descriptor was opened above and has no other owner.
    let master = unsafe { std::fs::File::from_raw_fd(master) };
    let mut name = [0 as libc::c_char; 64];
    // SAFETY: the terminal is open, and `name` is writable for the length that is passed.
    let named = unsafe {
        libc::grantpt(master.as_raw_fd()) == 0
            && libc::unlockpt(master.as_raw_fd()) == 0
            && libc::ptsname_r(master.as_raw_fd(), name.as_mut_ptr(), name.len()) == 0
    };
    if !named {
        println!("skipped: the terminal could not be prepared");
        return None;
    }
    // SAFETY: `ptsname_r` succeeded, so `name` ends with a zero byte.
    let name = unsafe { std::ffi::CStr::from_ptr(name.as_ptr()) };
    Some((master, name.to_str().unwrap().to_owned()))
}

#[test]
fn a_terminal_is_read_line_by_line() {
    let _watch = watchdog::start();
    let Some((mut master, name)) = terminal() else { return };
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

/// Reads through one clone of the file while the other clone writes what the far end waits for.
async fn exchange(mut writer: File, request: &[u8], reply: &[u8]) {
    let mut reader = writer.try_clone().await.unwrap();
    for _ in 0..50 {
        let reading = async {
            let mut got = vec![0; reply.len()];
            reader.read_exact(&mut got).await.map(|_| got)
        };
        let writing = async {
            // Lets the read start, so that it waits in the kernel.
            for _ in 0..10 {
                blitz_io::task::yield_now().await;
            }
            writer.write_all(request).await?;
            writer.flush().await
        };
        let (got, written) = blitz_io::join!(reading, writing);
        written.unwrap();
        assert_eq!(got.unwrap(), reply);
    }
}

#[test]
fn a_clone_writes_while_another_waits_in_a_read() {
    on_all_kinds_in_folder(|_| async move {
        let (near, far) = std::os::unix::net::UnixStream::pair()?;
        let replying = std::thread::spawn(move || {
            let mut request = [0; 3];
            while (&far).read_exact(&mut request).is_ok() {
                (&far).write_all(b"yes").unwrap();
            }
        });
        exchange(File::from(OwnedFd::from(near)), b"ok?", b"yes").await;
        replying.join().unwrap();
        // A terminal replies by itself, because it echoes.
        if let Some((master, name)) = terminal() {
            let _other = std::fs::OpenOptions::new().read(true).write(true).open(name)?;
            exchange(File::from_std(master), b"ok?\n", b"ok?\r\n").await;
        }
        Ok(())
    });
}

#[test]
fn a_message_is_read_whole_and_alone() {
    on_all_kinds_in_folder(|_| async move {
        let mut fds = [0; 2];
        let (kind, flags) = (libc::SOCK_SEQPACKET, libc::SOCK_CLOEXEC);
        // SAFETY: `fds` has room for two descriptors.
        let made = unsafe { libc::socketpair(libc::AF_UNIX, kind | flags, 0, fds.as_mut_ptr()) };
        assert_eq!(made, 0);
        // SAFETY: both descriptors were opened above and have no other owner.
        let [near, far] = fds.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        let mut near = File::from(near);
        std::fs::File::from(far.try_clone()?).write_all(&content(150_000))?;
        let mut buf = vec![0; 400_000];
        let count = near.read(&mut buf).await?;
        assert!(buf[..count] == content(150_000), "{count} of 150000");
        for message in ["one", "two"] {
            std::fs::File::from(far.try_clone()?).write_all(message.as_bytes())?;
        }
        for message in ["one", "two"] {
            let count = near.read(&mut buf).await?;
            assert_eq!(&buf[..count], message.as_bytes());
        }
        Ok(())
    });
}

#[test]
fn a_direct_file_is_read_and_written_in_blocks() {
    let _watch = watchdog::start();
    let dir = folder();
    let path = crate::support::temp_files::file(dir.path(), 8192);
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_DIRECT);
    let runtime = one_thread();
    runtime.block_on(async {
        let mut direct = match options.open(&path).await {
            Ok(direct) => direct,
            Err(why) => return println!("skipped: no direct files here: {why}"),
        };
        // Memory and a length that are aligned as a direct read requires.
        let mut memory = vec![0; 3 * 4096];
        let begin = memory.as_ptr().align_offset(4096);
        let block = &mut memory[begin..begin + 4096];
        // The kernel may refuse the runtime's internal buffer, which is not aligned.
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
    on_all_kinds_in_folder(|dir| async move {
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
    on_all_kinds_in_folder(|dir| async move {
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
    on_all_kinds_in_folder(|dir| async move {
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

/// A call that reports a socket's pending error clears it, so the result of that very call must be
/// the one that is returned.
#[test]
fn the_error_of_a_socket_is_not_taken_for_its_end() {
    let _watch = watchdog::start();
    for runtime in [one_thread(), workers_with_drivers(1)] {
        let (socket, peer) = std::os::unix::net::UnixStream::pair().unwrap();
        (&socket).write_all(b"never read").unwrap();
        drop(peer);
        let mut file = File::from_std(OwnedFd::from(socket).into());
        runtime.block_on(async {
            let error = file.read(&mut [0; 8]).await.unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ECONNRESET));
            assert_eq!(file.read(&mut [0; 8]).await.unwrap(), 0);
        });
    }
}
