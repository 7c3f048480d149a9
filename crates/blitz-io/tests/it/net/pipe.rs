//! Tests `net::unix::pipe`: anonymous pipes and pipes with a path.

use std::{
    fs::File,
    io::{ErrorKind, Read, Write},
    os::fd::{AsFd, OwnedFd},
};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt, Interest},
    net::unix::pipe::{self, OpenOptions, Receiver, Sender},
};

use crate::support::{
    manual_poll::by_hand,
    runtimes::{on_all_kinds, on_one_thread},
    sockets::would_block,
    temp_files::{UnusedPath, folder, make_fifo, unused_path},
};

fn fifo() -> UnusedPath {
    let path = unused_path();
    make_fifo(path.as_ref());
    path
}

#[test]
fn a_write_to_a_pipe_without_a_reader_is_an_error() {
    let _no_child = crate::support::child::none_starts();
    on_all_kinds(|| async {
        let (mut sender, receiver) = pipe::pipe().unwrap();
        drop(receiver);
        let error = sender.write_all(b"x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn tries_and_readiness_distinguish_full_from_empty() {
    let _no_child = crate::support::child::none_starts();
    on_all_kinds(|| async {
        let (sender, receiver) = pipe::pipe().unwrap();
        let mut buffer = [0; 4096];
        assert_eq!(receiver.try_read(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
        sender.writable().await.unwrap();
        let mut sent = 0;
        let error = loop {
            match sender.try_write(&[1; 4096]) {
                Ok(count) => sent += count,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        let mut writable = by_hand(sender.writable());
        writable.pending();
        while sent > 0 {
            receiver.readable().await.unwrap();
            sent -= receiver.try_read(&mut buffer).unwrap();
        }
        writable.pin().await.unwrap();
        drop(writable);
        drop(sender);
        let ready = receiver.ready(Interest::READABLE).await.unwrap();
        assert!(ready.is_readable());
        assert_eq!(receiver.try_read(&mut buffer).unwrap(), 0);
    });
}

#[test]
fn one_with_a_path_is_opened_from_both_sides() {
    on_all_kinds(|| async {
        let path = fifo();
        let options = pipe::OpenOptions::new();
        // The pipe has no reader yet.
        let error = options.open_sender(&path).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENXIO));
        let mut receiver = options.open_receiver(&path).unwrap();
        let mut sender = options.open_sender(&path).unwrap();
        sender.write_all(b"hello").await.unwrap();
        let mut five = [0; 5];
        receiver.read_exact(&mut five).await.unwrap();
        assert_eq!(&five, b"hello");
        drop(sender);
        assert_eq!(receiver.read(&mut five).await.unwrap(), 0);
        // The next sender continues where the last one ended.
        let mut sender = options.open_sender(&path).unwrap();
        sender.write_all(b"again").await.unwrap();
        receiver.read_exact(&mut five).await.unwrap();
        assert_eq!(&five, b"again");
    });
}

#[test]
#[cfg(target_os = "linux")]
fn one_opened_both_ways_has_no_end() {
    on_one_thread(async {
        let path = fifo();
        let mut sender = pipe::OpenOptions::new().read_write(true).open_sender(&path).unwrap();
        let mut receiver = pipe::OpenOptions::new().read_write(true).open_receiver(&path).unwrap();
        sender.write_all(b"x").await.unwrap();
        drop(sender);
        assert_eq!(receiver.read_u8().await.unwrap(), b'x');
        by_hand(receiver.read(&mut [0; 1])).pending();
    });
}

#[test]
fn files_that_are_not_pipes_are_refused() {
    on_one_thread(async {
        let path = unused_path();
        std::fs::write(&path, b"a file").unwrap();
        let options = pipe::OpenOptions::new();
        assert_eq!(options.open_receiver(&path).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(options.open_sender(&path).unwrap_err().kind(), ErrorKind::InvalidInput);
        let file = std::fs::File::open(&path).unwrap();
        assert_eq!(pipe::Receiver::from_file(file).unwrap_err().kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn a_wrong_end_is_refused() {
    on_one_thread(async {
        let (reader, writer) = std::io::pipe().unwrap();
        let error = pipe::Sender::from_owned_fd(reader.into()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let error = pipe::Receiver::from_owned_fd(writer.into()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn ends_of_std_come_in_and_go_out() {
    on_one_thread(async {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut receiver = pipe::Receiver::from_owned_fd(reader.into()).unwrap();
        let mut sender = pipe::Sender::from_owned_fd(writer.into()).unwrap();
        sender.write_all(b"x").await.unwrap();
        assert_eq!(receiver.read_u8().await.unwrap(), b'x');
        let mut writer = std::io::PipeWriter::from(sender.into_blocking_fd().unwrap());
        writer.write_all(b"y").unwrap();
        assert_eq!(receiver.read_u8().await.unwrap(), b'y');
        let mut reader = std::io::PipeReader::from(receiver.into_nonblocking_fd().unwrap());
        assert_eq!(reader.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
        reader.as_fd().try_clone_to_owned().unwrap();
    });
}

#[test]
fn a_pipe_carries_bytes_and_ends_with_its_sender() {
    on_all_kinds(|| async {
        let (mut sender, mut receiver) = pipe::pipe().unwrap();
        let writes = blitz_io::spawn(async move {
            sender.write_all(&vec![5; 1 << 20]).await.unwrap();
        });
        let mut read = Vec::new();
        receiver.read_to_end(&mut read).await.unwrap();
        assert!(read.len() == 1 << 20 && read.iter().all(|byte| *byte == 5));
        writes.await.unwrap();
    });
}

#[test]
fn a_pipe_with_a_name_is_opened_from_both_ends() {
    on_all_kinds(|| async {
        let path = fifo();
        assert!(OpenOptions::new().open_sender(&path).is_err(), "there is no reader");
        let mut receiver = OpenOptions::new().open_receiver(&path).unwrap();
        let mut sender = OpenOptions::new().open_sender(&path).unwrap();
        sender.write_all(b"abc").await.unwrap();
        let mut buf = [0; 3];
        receiver.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"abc");
    });
}

#[test]
fn files_that_are_not_pipes_or_of_the_wrong_direction_are_refused() {
    on_all_kinds(|| async {
        let dir = folder();
        let plain = dir.path().join("plain");
        File::create(&plain).unwrap();
        let refused = |kind| assert_eq!(kind, ErrorKind::InvalidInput);
        refused(OpenOptions::new().open_receiver(&plain).unwrap_err().kind());
        refused(Sender::from_file(File::create(&plain).unwrap()).unwrap_err().kind());
        let (reader, writer) = std::io::pipe().unwrap();
        refused(Sender::from_owned_fd(reader.into()).unwrap_err().kind());
        refused(Receiver::from_owned_fd(writer.into()).unwrap_err().kind());
    });
}

#[test]
fn a_pipe_goes_to_std_in_either_mode() {
    on_all_kinds(|| async {
        let (sender, receiver) = pipe::pipe().unwrap();
        let mut reader = File::from(receiver.into_nonblocking_fd().unwrap());
        would_block(reader.read(&mut [0; 8]));
        let mut writer = File::from(sender.into_blocking_fd().unwrap());
        writer.write_all(b"abc").unwrap();
        let mut receiver = Receiver::from_owned_fd(OwnedFd::from(reader)).unwrap();
        let mut buf = [0; 3];
        receiver.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"abc");
        // In blocking mode a read waits for the end, and does not return an error.
        let mut reader = File::from(receiver.into_blocking_fd().unwrap());
        drop(writer);
        assert_eq!(reader.read(&mut buf).unwrap(), 0);
    });
}
