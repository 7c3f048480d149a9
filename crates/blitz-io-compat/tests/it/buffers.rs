//! Buffered readers, through the bridges that support them.

use blitz_io_compat::{FuturesIo, TokioIo};

/// A small buffer, so that a line takes several fills.
const SMALL: usize = 3;
const TEXT: &str = "one\ntwo, which is longer\n\nlast";
const LINES: [&str; 4] = ["one", "two, which is longer", "", "last"];

async fn our_lines(reader: impl blitz_io::io::AsyncBufRead + Unpin) -> Vec<String> {
    let mut lines = blitz_io::io::AsyncBufReadExt::lines(reader);
    let mut read = Vec::new();
    while let Some(line) = lines.next_line().await.expect("memory does not fail") {
        read.push(line);
    }
    read
}

#[blitz_io::test]
async fn lines_of_tokios_reader_are_read_by_our_trait() {
    let theirs = tokio::io::BufReader::with_capacity(SMALL, TEXT.as_bytes());
    assert_eq!(our_lines(TokioIo::new(theirs)).await, LINES);
}

#[blitz_io::test]
async fn lines_of_a_reader_of_futures_io_are_read_by_our_trait() {
    let theirs = futures_util::io::BufReader::with_capacity(SMALL, TEXT.as_bytes());
    assert_eq!(our_lines(FuturesIo::new(theirs)).await, LINES);
}

#[blitz_io::test]
async fn lines_of_our_reader_are_read_by_tokios_trait() {
    let ours = blitz_io::io::BufReader::with_capacity(SMALL, TEXT.as_bytes());
    let mut lines = tokio::io::AsyncBufReadExt::lines(TokioIo::new(ours));
    for expected in LINES {
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some(expected));
    }
    assert_eq!(lines.next_line().await.unwrap(), None);
}

#[blitz_io::test]
async fn lines_of_our_reader_are_read_by_the_trait_of_futures_io() {
    let ours = blitz_io::io::BufReader::with_capacity(SMALL, TEXT.as_bytes());
    let mut reader = FuturesIo::new(ours);
    let mut read = Vec::new();
    loop {
        let mut line = String::new();
        if futures_util::AsyncBufReadExt::read_line(&mut reader, &mut line).await.unwrap() == 0 {
            break;
        }
        read.push(line.trim_end_matches('\n').to_owned());
    }
    assert_eq!(read, LINES);
}

#[blitz_io::test]
async fn a_megabyte_goes_there_and_back_through_both_bridges() {
    let sent: Vec<u8> = (0..1 << 20).map(|i: u32| (i % 251) as u8).collect();
    let (near, far) = blitz_io::io::duplex(1000);
    // A wrapper in a wrapper: ours to theirs to ours.
    let echo = blitz_io::spawn(async move {
        let (reader, writer) = blitz_io::io::split(far);
        let mut reader = TokioIo::new(TokioIo::new(reader));
        let mut writer = FuturesIo::new(writer);
        let mut part = vec![0; 777];
        loop {
            match tokio::io::AsyncReadExt::read(reader.get_mut(), &mut part).await? {
                0 => break,
                n => futures_util::AsyncWriteExt::write_all(&mut writer, &part[..n]).await?,
            }
        }
        futures_util::AsyncWriteExt::close(&mut writer).await
    });
    let (mut reader, mut writer) = blitz_io::io::split(near);
    let expected = sent.clone();
    let sender = blitz_io::spawn(async move {
        blitz_io::io::AsyncWriteExt::write_all(&mut writer, &sent).await?;
        blitz_io::io::AsyncWriteExt::shutdown(&mut writer).await
    });
    let mut heard = Vec::new();
    blitz_io::io::AsyncReadExt::read_to_end(&mut reader, &mut heard).await.unwrap();
    sender.await.unwrap().unwrap();
    echo.await.unwrap().unwrap();
    assert!(heard == expected, "{} bytes of {}", heard.len(), expected.len());
}
