//! An open file: reads, writes, seeks, and operations that are cancelled.

use crate::probe::files::*;
use futures_util::FutureExt;
use std::future::poll_fn;
use std::io::{self, IoSlice, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio::runtime::Handle;

pub const CASES: &[(&str, fn())] = &[
    ("reads_of_various_sizes_fill_the_buffer", reads_of_various_sizes_fill_the_buffer),
    ("a_read_of_3_mib_stops_at_2_mib", a_read_of_3_mib_stops_at_2_mib),
    ("a_write_of_3_mib_takes_2_mib", a_write_of_3_mib_takes_2_mib),
    ("set_max_buf_size_limits_reads_and_writes", set_max_buf_size_limits_reads_and_writes),
    ("set_max_buf_size_to_1_reads_single_bytes", set_max_buf_size_to_1_reads_single_bytes),
    (
        "set_max_buf_size_above_2_mib_reads_all_at_once",
        set_max_buf_size_above_2_mib_reads_all_at_once,
    ),
    ("set_max_buf_size_0_panics", set_max_buf_size_0_panics),
    ("empty_reads_and_writes_do_nothing", empty_reads_and_writes_do_nothing),
    ("read_exact_past_the_end_is_unexpected_eof", read_exact_past_the_end_is_unexpected_eof),
    (
        "a_read_after_the_end_sees_what_is_appended_later",
        a_read_after_the_end_sees_what_is_appended_later,
    ),
    (
        "read_to_string_of_invalid_utf8_is_invalid_data",
        read_to_string_of_invalid_utf8_is_invalid_data,
    ),
    ("read_buf_and_take_and_chunks", read_buf_and_take_and_chunks),
    ("seeks_from_start_current_and_end", seeks_from_start_current_and_end),
    ("a_failed_seek_leaves_the_cursor", a_failed_seek_leaves_the_cursor),
    ("a_write_past_the_end_leaves_a_hole", a_write_past_the_end_leaves_a_hole),
    ("read_write_read_shares_one_cursor", read_write_read_shares_one_cursor),
    ("a_seek_right_after_a_write_waits_for_it", a_seek_right_after_a_write_waits_for_it),
    ("set_len_extends_shrinks_and_keeps_the_cursor", set_len_extends_shrinks_and_keeps_the_cursor),
    ("set_len_waits_for_the_write_before_it", set_len_waits_for_the_write_before_it),
    ("invalid_set_len_errors", invalid_set_len_errors),
    (
        "poll_complete_without_a_seek_gives_the_last_known_position",
        poll_complete_without_a_seek_gives_the_last_known_position,
    ),
    (
        "start_seek_while_another_operation_is_pending_is_an_error",
        start_seek_while_another_operation_is_pending_is_an_error,
    ),
    ("a_cancelled_read_loses_no_bytes", a_cancelled_read_loses_no_bytes),
    (
        "a_seek_from_current_after_a_cancelled_read_counts_from_the_cursor",
        a_seek_from_current_after_a_cancelled_read_counts_from_the_cursor,
    ),
    (
        "a_write_after_a_cancelled_read_goes_to_the_cursor",
        a_write_after_a_cancelled_read_goes_to_the_cursor,
    ),
    (
        "set_len_after_a_cancelled_read_moves_the_cursor_back",
        set_len_after_a_cancelled_read_moves_the_cursor_back,
    ),
    (
        "a_clone_after_a_cancelled_read_starts_at_the_end_of_what_was_read",
        a_clone_after_a_cancelled_read_starts_at_the_end_of_what_was_read,
    ),
    (
        "into_std_after_a_cancelled_read_keeps_the_kernel_cursor",
        into_std_after_a_cancelled_read_keeps_the_kernel_cursor,
    ),
    ("a_cancelled_seek_still_happens", a_cancelled_seek_still_happens),
    ("an_error_of_a_cancelled_seek_is_forgotten", an_error_of_a_cancelled_seek_is_forgotten),
    ("a_cancelled_second_write_writes_nothing", a_cancelled_second_write_writes_nothing),
    ("a_cancelled_write_all_keeps_what_was_taken", a_cancelled_write_all_keeps_what_was_taken),
    ("a_read_after_a_write_waits_for_the_write", a_read_after_a_write_waits_for_the_write),
    (
        "try_into_std_fails_while_an_operation_is_in_flight",
        try_into_std_fails_while_an_operation_is_in_flight,
    ),
    ("into_std_waits_for_the_pending_write", into_std_waits_for_the_pending_write),
    (
        "into_std_swallows_the_error_of_the_pending_write",
        into_std_swallows_the_error_of_the_pending_write,
    ),
    ("clones_share_the_cursor", clones_share_the_cursor),
    ("try_clone_waits_for_the_write_before_it", try_clone_waits_for_the_write_before_it),
    ("the_write_error_survives_a_try_clone", the_write_error_survives_a_try_clone),
    ("concurrent_appends_on_clones_lose_nothing", concurrent_appends_on_clones_lose_nothing),
    (
        "concurrent_writes_on_clones_without_append_share_the_cursor",
        concurrent_writes_on_clones_without_append_share_the_cursor,
    ),
    (
        "concurrent_reads_on_clones_see_every_byte_once",
        concurrent_reads_on_clones_see_every_byte_once,
    ),
    (
        "append_mode_writes_at_the_end_whatever_the_cursor",
        append_mode_writes_at_the_end_whatever_the_cursor,
    ),
    ("two_append_handles_interleave_by_flush_order", two_append_handles_interleave_by_flush_order),
    ("write_vectored_joins_the_buffers", write_vectored_joins_the_buffers),
    ("write_buf_and_write_all_buf_advance", write_buf_and_write_all_buf_advance),
    ("a_write_error_comes_with_the_flush", a_write_error_comes_with_the_flush),
    ("a_write_error_comes_with_the_next_write", a_write_error_comes_with_the_next_write),
    (
        "sync_all_hides_a_write_error_until_the_next_flush",
        sync_all_hides_a_write_error_until_the_next_flush,
    ),
    ("a_read_or_seek_keeps_a_write_error_for_later", a_read_or_seek_keeps_a_write_error_for_later),
    (
        "a_second_write_error_before_the_first_is_taken",
        a_second_write_error_before_the_first_is_taken,
    ),
    (
        "a_file_that_is_dropped_with_a_write_error_says_nothing",
        a_file_that_is_dropped_with_a_write_error_says_nothing,
    ),
    ("flush_without_writes_is_ok", flush_without_writes_is_ok),
    ("sync_all_on_a_read_only_file_is_ok", sync_all_on_a_read_only_file_is_ok),
    ("from_std_continues_at_the_cursor", from_std_continues_at_the_cursor),
    ("metadata_of_a_file", metadata_of_a_file),
    ("a_removed_file_can_still_be_read_and_written", a_removed_file_can_still_be_read_and_written),
    ("set_permissions_through_the_file", set_permissions_through_the_file),
    ("set_times_and_set_modified", set_times_and_set_modified),
    ("a_bufreader_seek_discards_its_buffer", a_bufreader_seek_discards_its_buffer),
    ("a_bufwriter_over_a_file_writes_at_its_flush", a_bufwriter_over_a_file_writes_at_its_flush),
    ("lines_of_a_file", lines_of_a_file),
    ("io_copy_between_files", io_copy_between_files),
    ("split_halves_of_a_file", split_halves_of_a_file),
    ("the_debug_of_a_file_names_the_type", the_debug_of_a_file_names_the_type),
    (
        "a_shared_file_allows_metadata_and_sync_by_reference",
        a_shared_file_allows_metadata_and_sync_by_reference,
    ),
];

use tokio::fs::{self, File, OpenOptions};

async fn rw(p: &str) -> File {
    OpenOptions::new().read(true).write(true).create(true).open(p).await.unwrap()
}

async fn sizes(f: &mut File, buf: usize) -> Vec<usize> {
    let mut b = vec![0; buf];
    let mut v = Vec::new();
    loop {
        let n = f.read(&mut b).await.unwrap();
        v.push(n);
        if n == 0 || v.len() > 20 {
            return v;
        }
    }
}

fn reads_of_various_sizes_fill_the_buffer() {
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::write("f", pattern(300 * 1024)).unwrap();
        for n in [1usize, 4095, 4096, 65536, 256 * 1024, 300 * 1024, 400 * 1024] {
            let mut f = File::open("f").await.unwrap();
            let mut b = vec![0; n];
            let got = f.read(&mut b).await.unwrap();
            println!("{n}: {got} right {}", b[..got] == pattern(300 * 1024)[..got]);
        }
    });
}

fn a_read_of_3_mib_stops_at_2_mib() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::write("f", vec![7u8; 3 << 20]).unwrap();
        let mut f = File::open("f").await.unwrap();
        println!("{}", f.max_buf_size());
        println!("{:?}", sizes(&mut f, 3 << 20).await);
        f.rewind().await.unwrap();
        println!("{:?}", sizes(&mut f, (2 << 20) + 1).await);
        f.rewind().await.unwrap();
        println!("{:?}", sizes(&mut f, 2 << 20).await);
    });
}

fn a_write_of_3_mib_takes_2_mib() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut f = File::create("f").await.unwrap();
        let b = vec![7u8; 3 << 20];
        show("write", f.write(&b).await);
        show("write", f.write(&b).await);
        show("write", f.write(&b[..5]).await);
        show("flush", f.flush().await);
        println!("{}", std::fs::metadata("f").unwrap().len());
    });
}

fn set_max_buf_size_limits_reads_and_writes() {
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::write("f", pattern(2500)).unwrap();
        let mut f = rw("f").await;
        f.set_max_buf_size(1000);
        println!("{} {:?}", f.max_buf_size(), sizes(&mut f, 5000).await);
        show("write", f.write(&[1; 1500]).await);
        show("write", f.write(&[1; 1000]).await);
        show("write", f.write(&[1; 1]).await);
        f.flush().await.unwrap();
        println!("{}", f.metadata().await.unwrap().len());
        let c = f.try_clone().await.unwrap();
        println!("clone {}", c.max_buf_size());
        let g = File::from_std(f.into_std().await);
        println!("from_std {}", g.max_buf_size());
    });
}

fn set_max_buf_size_to_1_reads_single_bytes() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::write("f", "abcd").unwrap();
        let mut f = File::open("f").await.unwrap();
        f.set_max_buf_size(1);
        println!("{:?}", sizes(&mut f, 10).await);
        f.rewind().await.unwrap();
        let mut s = String::new();
        show("to string", f.read_to_string(&mut s).await);
        println!("{s}");
    });
}

fn set_max_buf_size_above_2_mib_reads_all_at_once() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::write("f", vec![7u8; 5 << 20]).unwrap();
        let mut f = rw("f").await;
        f.set_max_buf_size(8 << 20);
        println!("{:?}", sizes(&mut f, 6 << 20).await);
        show("write", f.write(&vec![1; 5 << 20]).await);
        show("flush", f.flush().await);
        println!("{}", f.metadata().await.unwrap().len());
    });
}

fn set_max_buf_size_0_panics() {
    let rt = runtime(0);
    let mut f = rt.block_on(File::create("f")).unwrap();
    panics("zero", || f.set_max_buf_size(0));
    println!("{}", f.max_buf_size());
}

fn empty_reads_and_writes_do_nothing() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        let mut f = rw("f").await;
        show("read", f.read(&mut []).await);
        show("write", f.write(&[]).await);
        show("flush", f.flush().await);
        show("position", f.stream_position().await);
        let mut b = [0; 2];
        show("read", f.read(&mut b).await);
        show("empty read", f.read(&mut []).await);
        show("write_all", f.write_all(&[]).await);
        show("position", f.stream_position().await);
        println!("{}", f.metadata().await.unwrap().len());
    });
}

fn read_exact_past_the_end_is_unexpected_eof() {
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        let mut f = File::open("f").await.unwrap();
        let mut b = [0; 5];
        text("read_exact", f.read_exact(&mut b).await);
        println!("{b:?}");
        show("position", f.stream_position().await);
        show("read", f.read(&mut b).await);
        text("read_u64", f.read_u64().await);
    });
}

fn a_read_after_the_end_sees_what_is_appended_later() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        let mut f = File::open("f").await.unwrap();
        let mut v = Vec::new();
        show("all", f.read_to_end(&mut v).await);
        show("end", f.read(&mut [0; 4]).await);
        let mut w = OpenOptions::new().append(true).open("f").await.unwrap();
        w.write_all(b"def").await.unwrap();
        w.flush().await.unwrap();
        show("more", f.read_to_end(&mut v).await);
        println!("{:?}", std::str::from_utf8(&v));
    });
}

fn read_to_string_of_invalid_utf8_is_invalid_data() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::write("f", b"ab\xff\xfe").unwrap();
        let mut f = File::open("f").await.unwrap();
        let mut s = String::from("kept");
        text("file", f.read_to_string(&mut s).await);
        println!("{s:?}");
        show("position", f.stream_position().await);
        text("fs", fs::read_to_string("f").await);
    });
}

fn read_buf_and_take_and_chunks() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::write("f", pattern(100)).unwrap();
        let mut f = File::open("f").await.unwrap();
        let mut b = bytes::BytesMut::with_capacity(10);
        show("read_buf", f.read_buf(&mut b).await);
        println!("{}", b.len());
        let mut v = Vec::new();
        show("take", (&mut f).take(7).read_to_end(&mut v).await);
        println!("{} first {}", v.len(), v[0]);
        show("position", f.stream_position().await);
        let mut v: Vec<u8> = Vec::with_capacity(33);
        show("vec", f.read_buf(&mut v).await);
        println!("{}", v.len());
    });
}

fn seeks_from_start_current_and_end() {
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::write("f", "0123456789").unwrap();
        let mut f = File::open("f").await.unwrap();
        show("start 3", f.seek(SeekFrom::Start(3)).await);
        show("current 2", f.seek(SeekFrom::Current(2)).await);
        show("current -4", f.seek(SeekFrom::Current(-4)).await);
        show("end -1", f.seek(SeekFrom::End(-1)).await);
        show("end 5", f.seek(SeekFrom::End(5)).await);
        show("read past", f.read(&mut [0; 4]).await);
        show("end -11", f.seek(SeekFrom::End(-11)).await);
        show("position", f.stream_position().await);
        show("current -100", f.seek(SeekFrom::Current(-100)).await);
        show("start max", f.seek(SeekFrom::Start(u64::MAX)).await);
        show("rewind", f.rewind().await);
        show("byte", f.read_u8().await);
        show("position", f.stream_position().await);
    });
}

fn a_failed_seek_leaves_the_cursor() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::write("f", "0123456789").unwrap();
        let mut f = File::open("f").await.unwrap();
        show("start 4", f.seek(SeekFrom::Start(4)).await);
        show("bad", f.seek(SeekFrom::Current(-5)).await);
        show("byte", f.read_u8().await);
        show("position", f.stream_position().await);
    });
}

fn a_write_past_the_end_leaves_a_hole() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut f = rw("f").await;
        show("seek", f.seek(SeekFrom::Start(10)).await);
        f.write_all(b"x").await.unwrap();
        f.rewind().await.unwrap();
        let mut v = Vec::new();
        f.read_to_end(&mut v).await.unwrap();
        println!("{v:?}");
    });
}

fn read_write_read_shares_one_cursor() {
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::write("f", "0123456789").unwrap();
        let mut f = rw("f").await;
        let mut b = [0; 3];
        f.read_exact(&mut b).await.unwrap();
        show("write", f.write(b"ABC").await);
        show("read", f.read(&mut b).await);
        println!("{}", String::from_utf8_lossy(&b));
        show("position", f.stream_position().await);
        println!("{:?}", std::fs::read_to_string("f"));
    });
}

fn a_seek_right_after_a_write_waits_for_it() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut f = rw("f").await;
        f.write_all(&vec![1; 100_000]).await.unwrap();
        show("current", f.seek(SeekFrom::Current(0)).await);
        f.write_all(b"ab").await.unwrap();
        show("end", f.seek(SeekFrom::End(0)).await);
        f.write_all(b"cd").await.unwrap();
        show("position", f.stream_position().await);
    });
}

fn set_len_extends_shrinks_and_keeps_the_cursor() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::write("f", "0123456789").unwrap();
        let mut f = rw("f").await;
        f.seek(SeekFrom::Start(6)).await.unwrap();
        show("4", f.set_len(4).await);
        show("position", f.stream_position().await);
        show("read", f.read(&mut [0; 4]).await);
        f.write_all(b"x").await.unwrap();
        show("8", f.set_len(8).await);
        println!("{:?}", std::fs::read("f").unwrap());
        show("position", f.stream_position().await);
        show("0", f.set_len(0).await);
        println!("{}", f.metadata().await.unwrap().len());
    });
}

fn set_len_waits_for_the_write_before_it() {
    let rt = runtime(4);
    rt.block_on(async {
        let mut f = rw("f").await;
        for _ in 0..5 {
            f.write_all(&vec![1; 50_000]).await.unwrap();
            f.set_len(10).await.unwrap();
            println!("{}", std::fs::metadata("f").unwrap().len());
            f.rewind().await.unwrap();
        }
    });
}

fn invalid_set_len_errors() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        let f = File::open("f").await.unwrap();
        show("read-only", f.set_len(1).await);
        let f = rw("f").await;
        show("u64 max", f.set_len(u64::MAX).await);
        show("i64 max + 1", f.set_len(1 << 63).await);
        println!("{}", f.metadata().await.unwrap().len());
        show("still works", f.set_len(1).await);
    });
}

fn poll_complete_without_a_seek_gives_the_last_known_position() {
    let rt = runtime(1);
    rt.block_on(async {
        use tokio::io::AsyncSeek;
        std::fs::write("f", "0123456789").unwrap();
        let mut f = rw("f").await;
        async fn pc(f: &mut File) -> io::Result<u64> {
            poll_fn(|cx| Pin::new(&mut *f).poll_complete(cx)).await
        }
        show("fresh", pc(&mut f).await);
        f.seek(SeekFrom::Start(5)).await.unwrap();
        show("after seek", pc(&mut f).await);
        f.read_exact(&mut [0; 2]).await.unwrap();
        show("after read", pc(&mut f).await);
        show("really", f.stream_position().await);
        show("then", pc(&mut f).await);
        f.set_len(3).await.unwrap();
        show("after set_len", pc(&mut f).await);
        let mut s = std::fs::File::open("f").unwrap();
        s.seek(SeekFrom::Start(2)).unwrap();
        let mut f = File::from_std(s);
        show("from_std", pc(&mut f).await);
        show("position", f.stream_position().await);
    });
}

fn start_seek_while_another_operation_is_pending_is_an_error() {
    let rt = one_blocking_thread();
    rt.block_on(async {
        use tokio::io::AsyncSeek;
        std::fs::write("f", "0123456789").unwrap();
        let mut f = rw("f").await;
        let g = Gate::close(&Handle::current());
        let mut b = [0; 4];
        println!("read pending {}", f.read(&mut b).now_or_never().is_none());
        text("start_seek", Pin::new(&mut f).start_seek(SeekFrom::Start(1)));
        g.open();
        show("position", f.stream_position().await);
        show("seek", f.seek(SeekFrom::Start(1)).await);
        show("byte", f.read_u8().await);
    });
}

fn a_cancelled_read_loses_no_bytes() {
    let rt = one_blocking_thread();
    rt.block_on(async {
        std::fs::write("f", "0123456789").unwrap();
        let mut f = rw("f").await;
        let g = Gate::close(&Handle::current());
        let mut b = [0; 6];
        println!("pending {}", f.read(&mut b).now_or_never().is_none());
        println!("{b:?}");
        g.open();
        let mut c = [0; 4];
        show("read 4", f.read(&mut c).await);
        println!("{}", String::from_utf8_lossy(&c));
        show("read 4", f.read(&mut c).await);
        println!("{}", String::from_utf8_lossy(&c[..2]));
        show("read 4", f.read(&mut c).await);
        println!("{}", String::from_utf8_lossy(&c));
    });
}

fn a_seek_from_current_after_a_cancelled_read_counts_from_the_cursor() {
    let rt = one_blocking_thread();
    rt.block_on(async {
        std::fs::write("f", "0123456789").unwrap();
        for d in [0i64, 2, -1] {
            let mut f = rw("f").await;
            f.seek(SeekFrom::Start(1)).await.unwrap();
            let g = Gate::close(&Handle::current());
            let mut b = [0; 6];
            println!("pending {}", f.read(&mut b).now_or_never().is_none());
            g.open();
            show("seek", f.seek(SeekFrom::Current(d)).await);
            show("byte", f.read_u8().await);
        }
        let mut f = rw("f").await;
        let g = Gate::close(&Handle::current());
        let _ = f.read(&mut [0; 6]).now_or_never();
        g.open();
        show("two bytes", f.read(&mut [0; 2]).await);
        show("seek", f.seek(SeekFrom::Current(1)).await);
        show("overflow", f.seek(SeekFrom::Current(i64::MIN)).await);
        show("position", f.stream_position().await);
    });
}

fn a_write_after_a_cancelled_read_goes_to_the_cursor() {
    let rt = one_blocking_thread();
    rt.block_on(async {
        std::fs::write("f", "0123456789").unwrap();
        let mut f = rw("f").await;
        let g = Gate::close(&Handle::current());
        println!("pending {}", f.read(&mut [0; 6]).now_or_never().is_none());
        g.open();
        show("two bytes", f.read(&mut [0; 2]).await);
        show("write", f.write(b"AB").await);
        show("flush", f.flush().await);
        println!("{:?}", std::fs::read_to_string("f"));
        show("position", f.stream_position().await);
    });
}

fn set_len_after_a_cancelled_read_moves_the_cursor_back() {
    let rt = one_blocking_thread();
    rt.block_on(async {
        std::fs::write("f", "0123456789").unwrap();
        let mut f = rw("f").await;
        let g = Gate::close(&Handle::current());
        println!("pending {}", f.read(&mut [0; 6]).now_or_never().is_none());
        g.open();
        show("two bytes", f.read(&mut [0; 2]).await);
        show("set_len", f.set_len(4).await);
        let mut v = Vec::new();
        show("rest", f.read_to_end(&mut v).await);
        println!("{}", String::from_utf8_lossy(&v));
    });
}

fn a_clone_after_a_cancelled_read_starts_at_the_end_of_what_was_read() {
    let rt = one_blocking_thread();
    rt.block_on(async {
        std::fs::write("f", "0123456789").unwrap();
        let mut f = rw("f").await;
        let g = Gate::close(&Handle::current());
        println!("pending {}", f.read(&mut [0; 6]).now_or_never().is_none());
        g.open();
        let mut c = f.try_clone().await.unwrap();
        show("clone byte", c.read_u8().await);
        show("own byte", f.read_u8().await);
        show("clone position", c.stream_position().await);
        show("own position", f.stream_position().await);
    });
}

fn into_std_after_a_cancelled_read_keeps_the_kernel_cursor() {
    let rt = one_blocking_thread();
    rt.block_on(async {
        std::fs::write("f", "0123456789").unwrap();
        let mut f = rw("f").await;
        let g = Gate::close(&Handle::current());
        println!("pending {}", f.read(&mut [0; 6]).now_or_never().is_none());
        g.open();
        show("two bytes", f.read(&mut [0; 2]).await);
        let mut s = f.into_std().await;
        println!("{:?}", s.stream_position());
    });
}

fn a_cancelled_seek_still_happens() {
    let rt = one_blocking_thread();
    rt.block_on(async {
        std::fs::write("f", "0123456789").unwrap();
        let mut f = rw("f").await;
        let g = Gate::close(&Handle::current());
        println!("pending {}", f.seek(SeekFrom::Start(7)).now_or_never().is_none());
        g.open();
        show("byte", f.read_u8().await);
        let g = Gate::close(&Handle::current());
        println!("pending {}", f.seek(SeekFrom::Start(2)).now_or_never().is_none());
        g.open();
        f.write_all(b"X").await.unwrap();
        f.flush().await.unwrap();
        println!("{:?}", std::fs::read_to_string("f"));
    });
}

fn an_error_of_a_cancelled_seek_is_forgotten() {
    let rt = one_blocking_thread();
    rt.block_on(async {
        std::fs::write("f", "0123456789").unwrap();
        let mut f = rw("f").await;
        let g = Gate::close(&Handle::current());
        println!("pending {}", f.seek(SeekFrom::Current(-7)).now_or_never().is_none());
        g.open();
        show("flush", f.flush().await);
        show("byte", f.read_u8().await);
    });
}

fn a_cancelled_second_write_writes_nothing() {
    let rt = one_blocking_thread();
    rt.block_on(async {
        let mut f = rw("f").await;
        let g = Gate::close(&Handle::current());
        println!("{:?}", f.write(b"one").now_or_never().map(|r| r.unwrap()));
        println!("{:?}", f.write(b"two").now_or_never().map(|r| r.unwrap()));
        println!("flush pending {}", f.flush().now_or_never().is_none());
        g.open();
        show("flush", f.flush().await);
        println!("{:?}", std::fs::read_to_string("f"));
    });
}

fn a_cancelled_write_all_keeps_what_was_taken() {
    let rt = one_blocking_thread();
    rt.block_on(async {
        let mut f = rw("f").await;
        f.set_max_buf_size(4);
        let g = Gate::close(&Handle::current());
        println!("pending {}", f.write_all(b"0123456789").now_or_never().is_none());
        g.open();
        show("flush", f.flush().await);
        println!("{:?}", std::fs::read_to_string("f"));
    });
}

fn a_read_after_a_write_waits_for_the_write() {
    let rt = one_blocking_thread();
    rt.block_on(async {
        std::fs::write("f", "0123456789").unwrap();
        let mut f = rw("f").await;
        let g = Gate::close(&Handle::current());
        println!("{:?}", f.write(b"AB").now_or_never().map(|r| r.unwrap()));
        println!("pending {}", f.read(&mut [0; 4]).now_or_never().is_none());
        g.open();
        let mut v = Vec::new();
        show("rest", f.read_to_end(&mut v).await);
        println!("{}", String::from_utf8_lossy(&v));
    });
}

fn try_into_std_fails_while_an_operation_is_in_flight() {
    let rt = one_blocking_thread();
    rt.block_on(async {
        let f = rw("f").await;
        println!("idle {}", f.try_into_std().is_ok());
        let mut f = rw("f").await;
        let g = Gate::close(&Handle::current());
        println!("{:?}", f.write(b"one").now_or_never().map(|r| r.unwrap()));
        let mut f = match f.try_into_std() {
            Ok(_) => {
                println!("busy ok");
                return;
            }
            Err(f) => {
                println!("busy err");
                f
            }
        };
        g.open();
        show("flush", f.flush().await);
        let s = f.try_into_std();
        println!("flushed {}", s.is_ok());
        println!("{}", s.unwrap().metadata().unwrap().len());
    });
}

fn into_std_waits_for_the_pending_write() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut f = rw("f").await;
        f.write_all(&vec![3; 100_000]).await.unwrap();
        let mut s = f.into_std().await;
        println!("{} {}", s.metadata().unwrap().len(), s.stream_position().unwrap());
    });
}

fn into_std_swallows_the_error_of_the_pending_write() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        let mut f = File::open("f").await.unwrap();
        show("write", f.write(b"x").await);
        let mut s = f.into_std().await;
        let mut b = String::new();
        show("read", s.read_to_string(&mut b));
        println!("{b}");
    });
}

fn clones_share_the_cursor() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::write("f", "0123456789").unwrap();
        let mut a = rw("f").await;
        let mut b = a.try_clone().await.unwrap();
        show("a", a.read_u8().await);
        show("b", b.read_u8().await);
        show("a", a.read_u8().await);
        show("b seek", b.seek(SeekFrom::Start(8)).await);
        show("a", a.read_u8().await);
        a.write_all(b"X").await.unwrap();
        a.flush().await.unwrap();
        show("b position", b.stream_position().await);
        drop(a);
        show("b end", b.read(&mut [0; 2]).await);
        println!("{:?}", std::fs::read_to_string("f"));
    });
}

fn try_clone_waits_for_the_write_before_it() {
    let rt = runtime(4);
    rt.block_on(async {
        for i in 0..20 {
            let mut a = rw(&format!("f{i}")).await;
            a.write_all(b"HELLO/WORLD").await.unwrap();
            let mut b = a.try_clone().await.unwrap();
            b.rewind().await.unwrap();
            let mut s = String::new();
            b.read_to_string(&mut s).await.unwrap();
            assert_eq!(s, "HELLO/WORLD");
        }
        println!("all seen");
    });
}

fn the_write_error_survives_a_try_clone() {
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        let mut a = File::open("f").await.unwrap();
        show("write", a.write(b"x").await);
        let mut b = ok("clone", a.try_clone().await).unwrap();
        show("clone flush", b.flush().await);
        show("own flush", a.flush().await);
        show("own flush again", a.flush().await);
    });
}

fn concurrent_appends_on_clones_lose_nothing() {
    let rt = runtime(4);
    rt.block_on(async {
        let f = OpenOptions::new().append(true).create(true).open("f").await.unwrap();
        let mut set = tokio::task::JoinSet::new();
        for i in 0..8u8 {
            let mut c = f.try_clone().await.unwrap();
            set.spawn(async move {
                for _ in 0..20 {
                    c.write_all(&[b'a' + i; 100]).await.unwrap();
                }
                c.flush().await.unwrap();
            });
        }
        set.join_all().await;
        let v = std::fs::read("f").unwrap();
        println!("{}", v.len());
        println!("whole records {}", v.chunks(100).all(|c| c.iter().all(|x| *x == c[0])));
        let mut n = [0; 8];
        v.chunks(100).for_each(|c| n[(c[0] - b'a') as usize] += 1);
        println!("{n:?}");
    });
}

fn concurrent_writes_on_clones_without_append_share_the_cursor() {
    let rt = runtime(2);
    rt.block_on(async {
        let f = rw("f").await;
        let mut set = tokio::task::JoinSet::new();
        for i in 0..4u8 {
            let mut c = f.try_clone().await.unwrap();
            set.spawn(async move {
                for _ in 0..25 {
                    c.write_all(&[b'a' + i; 64]).await.unwrap();
                }
                c.flush().await.unwrap();
            });
        }
        set.join_all().await;
        let v = std::fs::read("f").unwrap();
        println!("{}", v.len());
    });
}

fn concurrent_reads_on_clones_see_every_byte_once() {
    let rt = runtime(4);
    rt.block_on(async {
        let data: Vec<u8> = (0..4000u32).flat_map(|i| i.to_le_bytes()).collect();
        std::fs::write("f", &data).unwrap();
        let f = File::open("f").await.unwrap();
        let mut set = tokio::task::JoinSet::new();
        for _ in 0..6 {
            let mut c = f.try_clone().await.unwrap();
            set.spawn(async move {
                let mut v = Vec::new();
                let mut b = [0; 400];
                loop {
                    let n = c.read(&mut b).await.unwrap();
                    if n == 0 {
                        return v;
                    }
                    assert_eq!(n % 4, 0);
                    v.extend(b[..n].chunks(4).map(|x| u32::from_le_bytes(x.try_into().unwrap())));
                }
            });
        }
        let mut all: Vec<u32> = set.join_all().await.concat();
        all.sort();
        println!("{} {}", all.len(), all == (0..4000).collect::<Vec<_>>());
    });
}

fn append_mode_writes_at_the_end_whatever_the_cursor() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::write("f", "0123").unwrap();
        let mut f = OpenOptions::new().read(true).append(true).open("f").await.unwrap();
        show("position", f.stream_position().await);
        show("byte", f.read_u8().await);
        f.write_all(b"X").await.unwrap();
        show("position", f.stream_position().await);
        f.seek(SeekFrom::Start(2)).await.unwrap();
        f.write_all(b"Y").await.unwrap();
        show("position", f.stream_position().await);
        f.rewind().await.unwrap();
        let mut s = String::new();
        f.read_to_string(&mut s).await.unwrap();
        println!("{s}");
    });
}

fn two_append_handles_interleave_by_flush_order() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut a = OpenOptions::new().append(true).create(true).open("f").await.unwrap();
        let mut b = OpenOptions::new().append(true).open("f").await.unwrap();
        for i in 0..3 {
            a.write_all(format!("a{i}").as_bytes()).await.unwrap();
            a.flush().await.unwrap();
            b.write_all(format!("b{i}").as_bytes()).await.unwrap();
            b.flush().await.unwrap();
        }
        println!("{:?}", std::fs::read_to_string("f"));
    });
}

fn write_vectored_joins_the_buffers() {
    let rt = runtime(2);
    rt.block_on(async {
        use tokio::io::AsyncWrite;
        let mut f = rw("f").await;
        println!("{}", f.is_write_vectored());
        let v = [IoSlice::new(b"abc"), IoSlice::new(b""), IoSlice::new(b"defgh")];
        show("write", f.write_vectored(&v).await);
        show("none", f.write_vectored(&[]).await);
        f.set_max_buf_size(5);
        show("limited", f.write_vectored(&v).await);
        show("flush", f.flush().await);
        println!("{:?}", std::fs::read_to_string("f"));
    });
}

fn write_buf_and_write_all_buf_advance() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut f = rw("f").await;
        f.set_max_buf_size(4);
        let mut b = bytes::Bytes::from_static(b"0123456789");
        show("write_buf", f.write_buf(&mut b).await);
        println!("{}", b.len());
        show("write_all_buf", f.write_all_buf(&mut b).await);
        println!("{}", b.len());
        show("flush", f.flush().await);
        println!("{:?}", std::fs::read_to_string("f"));
    });
}

fn a_write_error_comes_with_the_flush() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        let mut f = File::open("f").await.unwrap();
        show("write", f.write(b"xyz").await);
        show("flush", f.flush().await);
        show("flush", f.flush().await);
        show("shutdown", f.shutdown().await);
        show("write", f.write(b"xyz").await);
        show("shutdown", f.shutdown().await);
        show("shutdown", f.shutdown().await);
    });
}

fn a_write_error_comes_with_the_next_write() {
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        let mut f = File::open("f").await.unwrap();
        show("write", f.write(b"1").await);
        show("write", f.write(b"2").await);
        show("write", f.write(b"3").await);
        show("write", f.write(b"4").await);
        show("flush", f.flush().await);
    });
}

fn sync_all_hides_a_write_error_until_the_next_flush() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        let mut f = File::open("f").await.unwrap();
        show("write", f.write(b"1").await);
        show("sync_all", f.sync_all().await);
        show("flush", f.flush().await);
        show("flush", f.flush().await);
        show("write", f.write(b"1").await);
        show("sync_data", f.sync_data().await);
        show("write", f.write(b"2").await);
        show("write", f.write(b"3").await);
        show("flush", f.flush().await);
    });
}

fn a_read_or_seek_keeps_a_write_error_for_later() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        let mut f = File::open("f").await.unwrap();
        show("write", f.write(b"1").await);
        show("byte", f.read_u8().await);
        show("byte", f.read_u8().await);
        show("flush", f.flush().await);
        show("flush", f.flush().await);
        show("write", f.write(b"1").await);
        show("seek", f.seek(SeekFrom::Start(0)).await);
        show("byte", f.read_u8().await);
        show("write", f.write(b"1").await);
        show("write", f.write(b"1").await);
        show("set_len", f.set_len(0).await);
        show("flush", f.flush().await);
    });
}

fn a_second_write_error_before_the_first_is_taken() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        let mut f = File::open("f").await.unwrap();
        show("write", f.write(b"1").await);
        show("metadata", f.metadata().await.map(|m| m.len()));
        show("sync_all", f.sync_all().await);
        show("sync_all", f.sync_all().await);
        show("set_len", f.set_len(1).await);
        show("flush", f.flush().await);
        show("write", f.write(b"2").await);
        show("flush", f.flush().await);
    });
}

fn a_file_that_is_dropped_with_a_write_error_says_nothing() {
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        let mut f = File::open("f").await.unwrap();
        show("write", f.write(b"1").await);
        drop(f);
        let mut f = File::open("f").await.unwrap();
        show("write_all", f.write_all(b"1").await);
        drop(f);
    });
    drop(rt);
    println!("{:?}", std::fs::read_to_string("f"));
}

fn flush_without_writes_is_ok() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        let mut f = File::open("f").await.unwrap();
        show("flush", f.flush().await);
        show("shutdown", f.shutdown().await);
        show("after shutdown", f.read_u8().await);
        let mut f = rw("f").await;
        show("shutdown", f.shutdown().await);
        show("write after shutdown", f.write(b"X").await);
        show("flush", f.flush().await);
        show("sync_all", f.sync_all().await);
        show("sync_data", f.sync_data().await);
        println!("{:?}", std::fs::read_to_string("f"));
    });
}

fn sync_all_on_a_read_only_file_is_ok() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        let f = File::open("f").await.unwrap();
        show("sync_all", f.sync_all().await);
        show("sync_data", f.sync_data().await);
        let d = File::open(".").await.unwrap();
        show("directory", d.sync_all().await);
    });
}

fn from_std_continues_at_the_cursor() {
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::write("f", "0123456789").unwrap();
        let mut s = std::fs::OpenOptions::new().read(true).write(true).open("f").unwrap();
        s.seek(SeekFrom::Start(4)).unwrap();
        let mut f = File::from_std(s.try_clone().unwrap());
        show("byte", f.read_u8().await);
        println!("std {:?}", s.stream_position());
        s.write_all(b"X").unwrap();
        show("byte", f.read_u8().await);
        let f2: File = s.into();
        drop(f);
        let mut f2 = f2;
        show("position", f2.stream_position().await);
        let fd: OwnedFd = f2.into_std().await.into();
        let mut f3 = File::from(fd);
        show("byte", f3.read_u8().await);
    });
}

fn metadata_of_a_file() {
    let rt = runtime(0);
    rt.block_on(async {
        // SAFETY: the call takes numbers and no memory.
        unsafe { libc::umask(0o022) };
        std::fs::write("f", "0123").unwrap();
        let f = File::open("f").await.unwrap();
        let m = f.metadata().await.unwrap();
        println!("{} {} {} {:o} {}", m.len(), m.is_file(), m.is_dir(), m.mode(), m.nlink());
        std::fs::remove_file("f").unwrap();
        let m = f.metadata().await.unwrap();
        println!("{} {}", m.len(), m.nlink());
    });
}

fn a_removed_file_can_still_be_read_and_written() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::write("f", "0123").unwrap();
        let mut f = rw("f").await;
        fs::remove_file("f").await.unwrap();
        show("byte", f.read_u8().await);
        f.write_all(b"XYZW").await.unwrap();
        f.rewind().await.unwrap();
        let mut s = String::new();
        show("all", f.read_to_string(&mut s).await);
        println!("{s}");
        show("set_len", f.set_len(2).await);
        show("sync", f.sync_all().await);
    });
}

fn set_permissions_through_the_file() {
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::write("f", "0123").unwrap();
        let f = File::open("f").await.unwrap();
        show("set", f.set_permissions(std::fs::Permissions::from_mode(0o640)).await);
        println!("{:o}", f.metadata().await.unwrap().permissions().mode());
        let mut p = f.metadata().await.unwrap().permissions();
        p.set_readonly(true);
        show("readonly", f.set_permissions(p).await);
        println!("{:o}", f.metadata().await.unwrap().permissions().mode());
    });
}

fn set_times_and_set_modified() {
    let rt = runtime(1);
    rt.block_on(async {
        use tokio::fs::FileTimes;
        let t = |s| std::time::UNIX_EPOCH + Duration::from_secs(s);
        let mut f = rw("f").await;
        f.write_all(b"x").await.unwrap();
        show("set_modified", f.set_modified(t(1_000_000)).await);
        let m = f.metadata().await.unwrap();
        println!("{} len {}", m.mtime(), m.len());
        show(
            "set_times",
            f.set_times(FileTimes::new().set_accessed(t(5)).set_modified(t(6))).await,
        );
        let m = f.metadata().await.unwrap();
        println!("{} {}", m.atime(), m.mtime());
        show("empty", f.set_times(FileTimes::new()).await);
        let m = f.metadata().await.unwrap();
        println!("{} {}", m.atime(), m.mtime());
        show(
            "before the epoch",
            f.set_modified(std::time::UNIX_EPOCH - Duration::from_secs(10)).await,
        );
        println!("{}", f.metadata().await.unwrap().mtime());
    });
}

fn a_bufreader_seek_discards_its_buffer() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::write("f", "0123456789").unwrap();
        let mut r = tokio::io::BufReader::new(File::open("f").await.unwrap());
        show("byte", r.read_u8().await);
        show("inner position", r.get_mut().stream_position().await);
        show("current 2", r.seek(SeekFrom::Current(2)).await);
        show("byte", r.read_u8().await);
    });
}

fn a_bufwriter_over_a_file_writes_at_its_flush() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut w = tokio::io::BufWriter::with_capacity(8, File::create("f").await.unwrap());
        w.write_all(b"abc").await.unwrap();
        w.get_mut().flush().await.unwrap();
        println!("{:?}", std::fs::read_to_string("f"));
        w.write_all(b"defghij").await.unwrap();
        w.get_mut().flush().await.unwrap();
        println!("{:?}", std::fs::read_to_string("f"));
        show("seek", w.seek(SeekFrom::Start(1)).await);
        w.write_all(b"Z").await.unwrap();
        w.shutdown().await.unwrap();
        println!("{:?}", std::fs::read_to_string("f"));
    });
}

fn lines_of_a_file() {
    let rt = runtime(4);
    rt.block_on(async {
        use tokio::io::AsyncBufReadExt;
        std::fs::write("f", "one\r\ntwo\n\nlast").unwrap();
        let mut l = tokio::io::BufReader::new(File::open("f").await.unwrap()).lines();
        while let Some(x) = l.next_line().await.unwrap() {
            println!("{x:?}");
        }
        show("end", l.next_line().await);
    });
}

fn io_copy_between_files() {
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::write("f", pattern(1 << 20)).unwrap();
        let mut a = File::open("f").await.unwrap();
        let mut b = File::create("g").await.unwrap();
        show("copy", tokio::io::copy(&mut a, &mut b).await);
        println!("{}", std::fs::read("g").unwrap() == pattern(1 << 20));
        a.rewind().await.unwrap();
        let mut b = File::create("h").await.unwrap();
        let mut r = tokio::io::BufReader::with_capacity(100_000, a);
        show("copy_buf", tokio::io::copy_buf(&mut r, &mut b).await);
        println!("{}", std::fs::metadata("h").unwrap().len());
    });
}

fn split_halves_of_a_file() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::write("f", "0123456789").unwrap();
        let (mut r, mut w) = tokio::io::split(rw("f").await);
        show("byte", r.read_u8().await);
        w.write_all(b"AB").await.unwrap();
        show("byte", r.read_u8().await);
        w.flush().await.unwrap();
        let mut f = r.unsplit(w);
        show("position", f.stream_position().await);
        println!("{:?}", std::fs::read_to_string("f"));
    });
}

fn the_debug_of_a_file_names_the_type() {
    let rt = runtime(0);
    let f = rt.block_on(File::create("f")).unwrap();
    let d = format!("{f:?}");
    println!("{}", d.starts_with("tokio::fs::File { std: File { fd: "));
    fn is<T: Send + Sync + Unpin>(_: &T) {}
    is(&f);
}

fn a_shared_file_allows_metadata_and_sync_by_reference() {
    let rt = runtime(4);
    rt.block_on(async {
        let mut f = rw("f").await;
        f.write_all(b"12345").await.unwrap();
        let f = Arc::new(f);
        let mut set = tokio::task::JoinSet::new();
        for _ in 0..10 {
            let f = f.clone();
            set.spawn(async move {
                f.sync_all().await.unwrap();
                f.metadata().await.unwrap().len()
            });
        }
        println!("{:?}", set.join_all().await);
        show("set_len", f.set_len(2).await);
        show("clone", f.try_clone().await.map(|_| ()));
    });
}
