//! Tests reads and writes at an offset, with owned buffers.

use std::io::{ErrorKind, SeekFrom};

use blitz_io::{
    buf::OwnedBuf,
    fs::File,
    io::{AsyncReadExt, AsyncSeekExt},
};

use crate::support::temp_files::{content, file, on_all_kinds_in_folder};

#[test]
fn a_read_at_an_offset_leaves_the_cursor() {
    on_all_kinds_in_folder(|dir| async move {
        let path = file(&dir, 10_000);
        let mut file = File::open(&path).await?;
        file.seek(SeekFrom::Start(5)).await?;
        for offset in [0, 1, 4095, 9_000] {
            let (result, buf) = file.read_at_owned(Vec::with_capacity(100), offset).await;
            assert_eq!(result?, 100);
            assert_eq!(buf, content(10_000)[offset as usize..][..100]);
        }
        let (result, buf) = file.read_at_owned(vec![7; 10], 10_000).await;
        assert_eq!((result?, buf), (0, vec![]), "the end");
        let (result, buf) = file.read_at_owned(vec![7; 10], 9_995).await;
        assert_eq!((result?, buf), (5, content(10_000)[9_995..].to_vec()));
        let (result, buf) = file.read_at_owned(Vec::new(), 0).await;
        assert_eq!((result?, buf), (0, vec![]), "no room");
        assert_eq!(file.stream_position().await?, 5);
        assert_eq!(file.read_u8().await?, content(6)[5]);
        Ok(())
    });
}

#[test]
fn an_exact_read_is_whole_or_an_error_with_the_buffer() {
    on_all_kinds_in_folder(|dir| async move {
        let path = file(&dir, 400_000);
        let file = File::open(&path).await?;
        let (result, buf) = file.read_exact_at_owned(Vec::with_capacity(300_000), 50).await;
        assert_eq!(result?, buf.capacity());
        assert!(buf == content(400_000)[50..50 + buf.len()]);
        let room = vec![0; 100].slice(10..20);
        let (result, part) = file.read_exact_at_owned(room, 399_995).await;
        assert_eq!(result.unwrap_err().kind(), ErrorKind::UnexpectedEof);
        let buf = part.into_inner();
        assert_eq!(&buf[10..15], &content(400_000)[399_995..]);
        assert_eq!(buf.len(), 100);
        Ok(())
    });
}

#[test]
fn an_offset_that_no_file_has_is_an_error_with_the_buffer() {
    on_all_kinds_in_folder(|dir| async move {
        let path = file(&dir, 10);
        let file = File::options().read(true).write(true).open(&path).await?;
        let (result, buf) = file.read_at_owned(vec![1, 2, 3], u64::MAX).await;
        assert_eq!(result.unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(buf, [1, 2, 3]);
        let (result, buf) = file.write_at_owned(vec![1, 2, 3], u64::MAX).await;
        assert!(result.is_err());
        assert_eq!(buf, [1, 2, 3]);
        Ok(())
    });
}

#[test]
fn several_buffers_are_filled_in_their_order() {
    on_all_kinds_in_folder(|dir| async move {
        let path = file(&dir, 200_000);
        let file = File::open(&path).await?;
        for (sizes, expected) in
            [([10, 20, 30], 60), ([0, 5, 0], 5), ([100_000, 60_000, 100_000], 199_997)]
        {
            let bufs: Vec<_> = sizes.map(|size| vec![9u8; size].into_boxed_slice()).into();
            let (result, bufs) = file.read_vectored_at_owned(bufs, 3).await;
            assert_eq!(result?, expected);
            let all: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
            assert!(all[..expected] == content(200_000)[3..3 + expected]);
        }
        let bufs = vec![Vec::with_capacity(4), vec![1; 4]];
        let (result, bufs) = file.read_vectored_at_owned(bufs, 199_998).await;
        assert_eq!(result?, 2);
        assert_eq!((bufs[0].len(), bufs[1].len()), (2, 0));
        Ok(())
    });
}

#[test]
fn writes_at_offsets_are_in_the_file_when_they_complete() {
    on_all_kinds_in_folder(|dir| async move {
        let path = dir.join("file");
        let file = File::create(&path).await?;
        let (result, _) = file.write_at_owned("world", 6).await;
        assert_eq!(result?, 5);
        let (result, _) = file.write_all_at_owned(String::from("hello "), 0).await;
        result?;
        assert_eq!(std::fs::read(&path)?, b"hello world");
        let (result, _) = file.write_vectored_at_owned(vec!["HE", "L", ""], 0).await;
        assert_eq!(result?, 3);
        assert_eq!(std::fs::read(&path)?, b"HELlo world");
        let (result, _) = file.write_vectored_at_owned(Vec::<Vec<u8>>::new(), 0).await;
        assert_eq!(result?, 0);
        let large = content(3_000_000);
        let (result, large) = file.write_all_at_owned(large, 1).await;
        result?;
        assert!(std::fs::read(&path)?[1..] == large);
        Ok(())
    });
}

#[test]
fn many_are_under_way_at_once() {
    on_all_kinds_in_folder(|dir| async move {
        let path = dir.join("file");
        let file = std::sync::Arc::new(
            File::options().read(true).write(true).create(true).open(&path).await?,
        );
        let tasks: Vec<_> = (0..50u64)
            .map(|at| {
                let file = file.clone();
                blitz_io::spawn(async move {
                    let (result, buf) =
                        file.write_all_at_owned(vec![at as u8; 1000], at * 1000).await;
                    result.unwrap();
                    let (result, buf) = file.read_exact_at_owned(buf.slice(..), at * 1000).await;
                    result.unwrap();
                    assert_eq!(buf.as_slice(), [at as u8; 1000]);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(file.metadata().await?.len(), 50_000);
        Ok(())
    });
}
