//! Files with no runtime, with one that ends, and with few blocking threads.

use crate::probe::files::*;
use futures_util::FutureExt;
use std::io::{self, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio::runtime::{Builder, Handle};
use tokio::time::timeout;

pub const CASES: &[(&str, fn())] = &[
    (
        "a_write_arrives_though_the_file_is_dropped_without_flush",
        a_write_arrives_though_the_file_is_dropped_without_flush,
    ),
    (
        "a_queued_write_is_done_after_shutdown_background",
        a_queued_write_is_done_after_shutdown_background,
    ),
    (
        "a_queued_write_is_done_after_shutdown_timeout",
        a_queued_write_is_done_after_shutdown_timeout,
    ),
    (
        "functions_queued_behind_a_busy_thread_are_done_after_shutdown",
        functions_queued_behind_a_busy_thread_are_done_after_shutdown,
    ),
    (
        "a_dropped_function_future_that_was_started_is_still_done",
        a_dropped_function_future_that_was_started_is_still_done,
    ),
    ("an_aborted_task_still_completes_its_write", an_aborted_task_still_completes_its_write),
    ("fs_functions_outside_of_a_runtime_panic", fs_functions_outside_of_a_runtime_panic),
    ("file_methods_outside_of_a_runtime_panic", file_methods_outside_of_a_runtime_panic),
    ("a_file_can_move_to_another_runtime", a_file_can_move_to_another_runtime),
    (
        "a_write_started_on_a_dropped_runtime_is_flushed_on_another",
        a_write_started_on_a_dropped_runtime_is_flushed_on_another,
    ),
    (
        "functions_in_the_context_of_a_dropped_runtime_fail",
        functions_in_the_context_of_a_dropped_runtime_fail,
    ),
    (
        "a_file_in_the_context_of_a_dropped_runtime_fails_again_and_again",
        a_file_in_the_context_of_a_dropped_runtime_fails_again_and_again,
    ),
    (
        "a_read_queued_behind_a_busy_thread_is_done_after_shutdown",
        a_read_queued_behind_a_busy_thread_is_done_after_shutdown,
    ),
    (
        "a_seek_queued_behind_a_busy_thread_is_done_after_shutdown",
        a_seek_queued_behind_a_busy_thread_is_done_after_shutdown,
    ),
    (
        "a_task_dropped_by_a_current_thread_shutdown_can_still_write",
        a_task_dropped_by_a_current_thread_shutdown_can_still_write,
    ),
    ("files_work_without_io_and_time_drivers", files_work_without_io_and_time_drivers),
    (
        "a_paused_clock_does_not_run_away_during_file_operations",
        a_paused_clock_does_not_run_away_during_file_operations,
    ),
    (
        "one_blocking_thread_serves_a_hundred_operations",
        one_blocking_thread_serves_a_hundred_operations,
    ),
    (
        "operations_of_one_blocking_thread_are_in_order",
        operations_of_one_blocking_thread_are_in_order,
    ),
    ("files_in_a_local_set_and_in_block_in_place", files_in_a_local_set_and_in_block_in_place),
    (
        "a_file_operation_in_select_loses_to_a_ready_branch_and_still_happens",
        a_file_operation_in_select_loses_to_a_ready_branch_and_still_happens,
    ),
    ("many_writes_without_flush_keep_their_order", many_writes_without_flush_keep_their_order),
    (
        "the_read_dir_of_a_dropped_runtime_gives_its_buffered_entries_then_fails",
        the_read_dir_of_a_dropped_runtime_gives_its_buffered_entries_then_fails,
    ),
    (
        "the_read_dir_outside_of_a_runtime_panics_at_the_33rd_entry",
        the_read_dir_outside_of_a_runtime_panics_at_the_33rd_entry,
    ),
    (
        "a_small_read_dir_can_be_walked_outside_of_a_runtime",
        a_small_read_dir_can_be_walked_outside_of_a_runtime,
    ),
    (
        "blocking_threads_keep_the_file_open_until_the_operation_ends",
        blocking_threads_keep_the_file_open_until_the_operation_ends,
    ),
    (
        "the_unflushed_write_of_a_panicking_task_arrives",
        the_unflushed_write_of_a_panicking_task_arrives,
    ),
    ("the_panic_of_a_bad_thread_limit", the_panic_of_a_bad_thread_limit),
];

use tokio::fs::{self, File, OpenOptions};

async fn rw(p: &str) -> File {
    OpenOptions::new().read(true).write(true).create(true).open(p).await.unwrap()
}

fn a_write_arrives_though_the_file_is_dropped_without_flush() {
    for n in [0, 1, 2, 4] {
        let rt = runtime(n);
        rt.block_on(async {
            for i in 0..20 {
                let mut f = File::create(format!("f{n}_{i}")).await.unwrap();
                f.write_all(b"hello").await.unwrap();
            }
        });
        drop(rt);
        let all = (0..20).all(|i| std::fs::read(format!("f{n}_{i}")).unwrap() == b"hello");
        println!("{n} workers: {all}");
    }
}

fn a_queued_write_is_done_after_shutdown_background() {
    let rt = one_blocking_thread();
    let h = rt.handle().clone();
    let mut f = rt.block_on(rw("f"));
    let g = Gate::close(&h);
    rt.block_on(async {
        println!("{:?}", f.write(b"hello").now_or_never().map(|r| r.unwrap()));
        drop(f);
    });
    println!("{:?}", std::fs::read_to_string("f"));
    rt.shutdown_background();
    println!("{:?}", std::fs::read_to_string("f"));
    g.open();
    println!("{}", until(|| std::fs::read("f").unwrap() == b"hello"));
}

fn a_queued_write_is_done_after_shutdown_timeout() {
    let rt = one_blocking_thread();
    let h = rt.handle().clone();
    let mut f = rt.block_on(rw("f"));
    let g = Gate::close(&h);
    rt.block_on(async {
        println!("{:?}", f.write(b"hello").now_or_never().map(|r| r.unwrap()));
    });
    rt.shutdown_timeout(Duration::from_millis(50));
    println!("{:?}", std::fs::read_to_string("f"));
    g.open();
    println!("{}", until(|| std::fs::read("f").unwrap() == b"hello"));
    drop(f);
}

fn functions_queued_behind_a_busy_thread_are_done_after_shutdown() {
    let rt = one_blocking_thread();
    let h = rt.handle().clone();
    let mut f = rt.block_on(rw("f"));
    let g = Gate::close(&h);
    rt.block_on(async {
        let _ = fs::write("g", "x").now_or_never();
        let _ = File::create("h").now_or_never();
        let _ = fs::create_dir("d").now_or_never();
        println!("{:?}", f.write(b"hello").now_or_never().map(|r| r.unwrap()));
    });
    rt.shutdown_background();
    g.open();
    println!("{}", until(|| std::fs::read("f").unwrap() == b"hello"));
    println!("{} {} {}", Path::new("g").exists(), Path::new("h").exists(), Path::new("d").exists());
}

fn a_dropped_function_future_that_was_started_is_still_done() {
    let rt = one_blocking_thread();
    let h = rt.handle().clone();
    let g = Gate::close(&h);
    rt.block_on(async {
        println!("{}", fs::write("g", "x").now_or_never().is_none());
        println!("{}", fs::create_dir("d").now_or_never().is_none());
        g.open();
        println!("{}", until_async(|| Path::new("d").exists()).await);
        println!("{:?}", std::fs::read_to_string("g"));
    });
}

fn an_aborted_task_still_completes_its_write() {
    let rt = runtime(2);
    rt.block_on(async {
        let j = tokio::spawn(async {
            let mut f = rw("f").await;
            f.write_all(b"hello").await.unwrap();
            std::future::pending::<()>().await;
        });
        println!("{}", until_async(|| std::fs::read("f").is_ok_and(|x| x == b"hello")).await);
        j.abort();
        println!("{}", j.await.unwrap_err().is_cancelled());
    });
}

fn fs_functions_outside_of_a_runtime_panic() {
    std::fs::write("f", "abc").unwrap();
    panics("open", || File::open("f").now_or_never().map(|r| r.is_ok()));
    panics("read", || fs::read("f").now_or_never().map(|r| r.is_ok()));
    panics("write", || fs::write("f", "x").now_or_never().map(|r| r.is_ok()));
    panics("metadata", || fs::metadata("f").now_or_never().map(|r| r.is_ok()));
    panics("create_dir", || fs::create_dir("d").now_or_never().map(|r| r.is_ok()));
    println!("{:?} {}", std::fs::read_to_string("f"), Path::new("d").exists());
}

fn file_methods_outside_of_a_runtime_panic() {
    std::fs::write("f", "abc").unwrap();
    let std = std::fs::OpenOptions::new().read(true).write(true).open("f").unwrap();
    let mk = || File::from_std(std.try_clone().unwrap());
    panics("read", || mk().read(&mut [0; 2]).now_or_never().map(|r| r.is_ok()));
    panics("write", || mk().write(b"x").now_or_never().map(|r| r.is_ok()));
    panics("seek", || mk().seek(SeekFrom::Start(1)).now_or_never().map(|r| r.is_ok()));
    panics("set_len", || mk().set_len(1).now_or_never().map(|r| r.is_ok()));
    panics("sync_all", || mk().sync_all().now_or_never().map(|r| r.is_ok()));
    panics("metadata", || mk().metadata().now_or_never().map(|r| r.is_ok()));
    panics("try_clone", || mk().try_clone().now_or_never().map(|r| r.is_ok()));
    println!("{:?}", panics("flush", || mk().flush().now_or_never().map(|r| r.is_ok())));
    println!("{:?}", panics("empty read", || mk().read(&mut []).now_or_never().map(|r| r.is_ok())));
    println!("{:?}", panics("into_std", || mk().into_std().now_or_never().is_some()));
    println!("{:?}", panics("try_into_std", || mk().try_into_std().is_ok()));
    println!("{:?}", std::fs::read_to_string("f"));
}

fn a_file_can_move_to_another_runtime() {
    let a = runtime(0);
    let mut f = a.block_on(rw("f"));
    a.block_on(f.write_all(b"one")).unwrap();
    let b = runtime(2);
    b.block_on(async {
        f.write_all(b"two").await.unwrap();
        f.flush().await.unwrap();
    });
    drop(a);
    b.block_on(async {
        show("rewind", f.rewind().await);
        let mut s = String::new();
        show("read", f.read_to_string(&mut s).await);
        println!("{s}");
    });
    drop(b);
    let c = runtime(1);
    show("third", c.block_on(f.stream_position()));
}

fn a_write_started_on_a_dropped_runtime_is_flushed_on_another() {
    let a = runtime(1);
    let mut f = a.block_on(rw("f"));
    a.block_on(f.write_all(b"one")).unwrap();
    drop(a);
    println!("{:?}", std::fs::read_to_string("f"));
    let b = runtime(0);
    show("flush", b.block_on(f.flush()));
    show("write", b.block_on(f.write(b"two")));
    show("flush", b.block_on(f.flush()));
    println!("{:?}", std::fs::read_to_string("f"));
}

fn functions_in_the_context_of_a_dropped_runtime_fail() {
    for n in [0, 2] {
        std::fs::write("f", "abc").unwrap();
        let r = runtime(n);
        let h = r.handle().clone();
        drop(r);
        let _g = h.enter();
        text("read", fs::read("f").now_or_never().unwrap());
        text("open", File::open("f").now_or_never().unwrap().map(|_| ()));
        text("write", fs::write("g", "x").now_or_never().unwrap());
        text("metadata", fs::metadata("f").now_or_never().unwrap().map(|_| ()));
        text("try_exists", fs::try_exists("f").now_or_never().unwrap());
        text("read_dir", fs::read_dir(".").now_or_never().unwrap().map(|_| ()));
        println!("{}", Path::new("g").exists());
    }
}

fn a_file_in_the_context_of_a_dropped_runtime_fails_again_and_again() {
    std::fs::write("f", "abc").unwrap();
    let r = runtime(1);
    let h = r.handle().clone();
    let mut f = r.block_on(rw("f"));
    drop(r);
    let _g = h.enter();
    let cancelled = |what: &str, r: Option<io::Result<u64>>| match r {
        None => println!("{what}: pending"),
        Some(Ok(v)) => println!("{what}: ok {v}"),
        Some(Err(x)) => {
            let cancel = x.to_string().contains("was cancelled");
            println!(
                "{what}: err {} cancelled {cancel} {}",
                error(&x),
                if cancel { String::new() } else { x.to_string() }
            );
        }
    };
    for _ in 0..2 {
        cancelled("read", f.read(&mut [0; 2]).now_or_never().map(|r| r.map(|n| n as u64)));
        cancelled("write", f.write(b"x").now_or_never().map(|r| r.map(|n| n as u64)));
        cancelled("flush", f.flush().now_or_never().map(|r| r.map(|_| 0)));
        cancelled("seek", f.seek(SeekFrom::Start(1)).now_or_never());
        cancelled("set_len", f.set_len(1).now_or_never().map(|r| r.map(|_| 0)));
        cancelled("sync_all", f.sync_all().now_or_never().map(|r| r.map(|_| 0)));
        cancelled("metadata", f.metadata().now_or_never().map(|r| r.map(|_| 0)));
        cancelled("try_clone", f.try_clone().now_or_never().map(|r| r.map(|_| 0)));
    }
    println!("{:?}", std::fs::read_to_string("f"));
    let b = runtime(0);
    let mut s = String::new();
    drop(_g);
    show("on another", b.block_on(f.read_to_string(&mut s)));
}

fn a_read_queued_behind_a_busy_thread_is_done_after_shutdown() {
    std::fs::write("f", "abcdef").unwrap();
    let rt1 = one_blocking_thread();
    let h = rt1.handle().clone();
    let mut f = rt1.block_on(rw("f"));
    let g = Gate::close(&h);
    rt1.block_on(async {
        println!("{}", f.read(&mut [0; 4]).now_or_never().is_none());
    });
    rt1.shutdown_background();
    g.open();
    let b = runtime(2);
    b.block_on(async {
        match f.read(&mut [0; 4]).await {
            Ok(n) => println!("ok {n}"),
            Err(x) => println!("{} {}", error(&x), x.to_string().contains("was cancelled")),
        }
        let mut s = String::new();
        show("then", f.read_to_string(&mut s).await);
        println!("{s}");
    });
}

fn a_seek_queued_behind_a_busy_thread_is_done_after_shutdown() {
    std::fs::write("f", "abcdef").unwrap();
    let rt1 = one_blocking_thread();
    let h = rt1.handle().clone();
    let mut f = rt1.block_on(rw("f"));
    let g = Gate::close(&h);
    rt1.block_on(async {
        println!("{}", f.seek(SeekFrom::Start(3)).now_or_never().is_none());
    });
    rt1.shutdown_background();
    g.open();
    let b = runtime(1);
    b.block_on(async {
        match f.flush().await {
            Ok(n) => println!("ok {n:?}"),
            Err(x) => println!("{} {}", error(&x), x.to_string().contains("was cancelled")),
        }
        show("position", f.stream_position().await);
    });
}

fn a_task_dropped_by_a_current_thread_shutdown_can_still_write() {
    // The future is dropped at the shutdown; its Drop writes.
    struct W(Option<File>);
    impl Drop for W {
        fn drop(&mut self) {
            let mut f = self.0.take().unwrap();
            let r = f.write(b"late").now_or_never();
            match r {
                None => println!("pending"),
                Some(Ok(n)) => println!("ok {n}"),
                Some(Err(x)) => println!("err {} {x}", error(&x)),
            }
        }
    }
    let rt = runtime(0);
    let (tx, rx) = tokio::sync::oneshot::channel();
    rt.spawn(async move {
        let w = W(Some(rw("f").await));
        tx.send(()).unwrap();
        std::future::pending::<()>().await;
        drop(w);
    });
    rt.block_on(rx).unwrap();
    drop(rt);
    println!("{:?}", std::fs::read_to_string("f"));
}

fn files_work_without_io_and_time_drivers() {
    for n in [0, 1] {
        let mut b =
            if n == 0 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
        let rt = b.build().unwrap();
        rt.block_on(async {
            fs::write("f", "abc").await.unwrap();
            show("read", fs::read_to_string("f").await);
            let mut f = rw("f").await;
            show("byte", f.read_u8().await);
            f.write_all(b"X").await.unwrap();
            show("flush", f.flush().await);
            show("read", fs::read_to_string("f").await);
        });
    }
}

fn a_paused_clock_does_not_run_away_during_file_operations() {
    let rt = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    rt.block_on(async {
        let t = tokio::time::Instant::now();
        let r = timeout(Duration::from_secs(3600), async {
            fs::write("f", vec![1; 1 << 20]).await.unwrap();
            let v = fs::read("f").await.unwrap();
            let mut f = rw("f").await;
            f.write_all(&[2; 1000]).await.unwrap();
            f.flush().await.unwrap();
            f.read_to_end(&mut Vec::new()).await.unwrap() + v.len()
        })
        .await;
        println!("{r:?} {:?}", t.elapsed());
    });
}

fn one_blocking_thread_serves_a_hundred_operations() {
    let rt = Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .unwrap();
    rt.block_on(async {
        let mut set = tokio::task::JoinSet::new();
        for i in 0..100 {
            set.spawn(async move {
                let p = format!("f{i}");
                fs::write(&p, vec![1; i]).await.unwrap();
                fs::metadata(&p).await.unwrap().len()
            });
        }
        println!("{}", set.join_all().await.iter().sum::<u64>());
    });
}

fn operations_of_one_blocking_thread_are_in_order() {
    let rt = one_blocking_thread();
    rt.block_on(async {
        let mut f = rw("f").await;
        let g = Gate::close(&Handle::current());
        println!("{:?}", f.write(b"hello").now_or_never().map(|r| r.unwrap()));
        let mut m = Box::pin(f.metadata());
        println!("{}", (&mut m).now_or_never().is_none());
        let mut r = Box::pin(fs::read("f"));
        println!("{}", (&mut r).now_or_never().is_none());
        g.open();
        println!("{} {}", m.await.unwrap().len(), r.await.unwrap().len());
    });
}

fn files_in_a_local_set_and_in_block_in_place() {
    let rt1 = runtime(0);
    tokio::task::LocalSet::new().block_on(&rt1, async {
        let j = tokio::task::spawn_local(async {
            fs::write("f", "abc").await.unwrap();
            fs::read_to_string("f").await.unwrap()
        });
        println!("{}", j.await.unwrap());
    });
    let rt2 = runtime(1);
    rt2.block_on(async {
        let j = tokio::spawn(async {
            tokio::task::block_in_place(|| Handle::current().block_on(fs::read_to_string("f")))
        });
        show("block_in_place", j.await.unwrap());
        let h = Handle::current();
        let j = tokio::task::spawn_blocking(move || h.block_on(fs::read_to_string("f")));
        show("spawn_blocking", j.await.unwrap());
    });
}

fn a_file_operation_in_select_loses_to_a_ready_branch_and_still_happens() {
    let rt = one_blocking_thread();
    rt.block_on(async {
        std::fs::write("f", "0123456789").unwrap();
        let mut f = rw("f").await;
        let g = Gate::close(&Handle::current());
        let mut b = [0; 5];
        tokio::select! {
            biased;
            _ = f.read(&mut b) => println!("read"),
            _ = std::future::ready(()) => println!("ready"),
        }
        g.open();
        show("read", f.read(&mut b).await);
        println!("{}", String::from_utf8_lossy(&b));
    });
}

fn many_writes_without_flush_keep_their_order() {
    for n in [0, 2, 4] {
        let rt = runtime(n);
        rt.block_on(async {
            let mut f = File::create("f").await.unwrap();
            for i in 0..500u32 {
                f.write_all(&i.to_be_bytes()).await.unwrap();
            }
        });
        drop(rt);
        let v = std::fs::read("f").unwrap();
        let right = v.chunks(4).enumerate().all(|(i, c)| c == (i as u32).to_be_bytes());
        println!("{} {right}", v.len());
    }
}

fn the_read_dir_of_a_dropped_runtime_gives_its_buffered_entries_then_fails() {
    std::fs::create_dir("d").unwrap();
    for i in 0..40 {
        std::fs::write(format!("d/{i}"), "").unwrap();
    }
    let r = runtime(1);
    let h = r.handle().clone();
    let mut d = r.block_on(fs::read_dir("d")).unwrap();
    drop(r);
    let _g = h.enter();
    let mut n = 0;
    loop {
        match d.next_entry().now_or_never() {
            None => {
                println!("pending after {n}");
                break;
            }
            Some(Ok(None)) => {
                println!("end after {n}");
                break;
            }
            Some(Ok(Some(_))) => n += 1,
            Some(Err(x)) => {
                println!(
                    "{} cancelled {} after {n}",
                    error(&x),
                    x.to_string().contains("was cancelled")
                );
                break;
            }
        }
    }
}

fn the_read_dir_outside_of_a_runtime_panics_at_the_33rd_entry() {
    std::fs::create_dir("d").unwrap();
    for i in 0..40 {
        std::fs::write(format!("d/{i}"), "").unwrap();
    }
    let r = runtime(0);
    let mut d = r.block_on(fs::read_dir("d")).unwrap();
    let n = AtomicUsize::new(0);
    panics("entries", || {
        while let Some(Ok(Some(_))) = d.next_entry().now_or_never() {
            n.fetch_add(1, Ordering::SeqCst);
        }
    });
    println!("{}", n.into_inner());
}

fn a_small_read_dir_can_be_walked_outside_of_a_runtime() {
    std::fs::create_dir("d").unwrap();
    for i in 0..5 {
        std::fs::write(format!("d/{i}"), "").unwrap();
    }
    let r = runtime(2);
    let mut d = r.block_on(fs::read_dir("d")).unwrap();
    drop(r);
    let mut n = 0;
    while let Some(Ok(Some(x))) = d.next_entry().now_or_never() {
        n += 1;
        if n == 1 {
            println!("{:?}", x.file_type().now_or_never().map(|t| t.unwrap().is_file()));
        }
    }
    println!("{n}");
    println!("{:?}", d.next_entry().now_or_never().map(|r| r.unwrap().is_none()));
}

fn blocking_threads_keep_the_file_open_until_the_operation_ends() {
    let rt = one_blocking_thread();
    let h = rt.handle().clone();
    rt.block_on(async {
        let mut f = rw("f").await;
        let fd = f.as_raw_fd();
        let g = Gate::close(&h);
        println!("{:?}", f.write(b"x").now_or_never().map(|r| r.unwrap()));
        drop(f);
        // SAFETY: the call takes numbers and no memory.
        println!("open {}", unsafe { libc::fcntl(fd, libc::F_GETFD) } != -1);
        g.open();
        // SAFETY: the call takes numbers and no memory.
        println!(
            "closed {}",
            until_async(|| unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1).await
        );
        println!("{:?}", std::fs::read_to_string("f"));
    });
}

fn the_unflushed_write_of_a_panicking_task_arrives() {
    std::panic::set_hook(Box::new(|_| {}));
    let rt = runtime(2);
    let r = rt.block_on(async {
        tokio::spawn(async {
            let mut f = rw("f").await;
            f.write_all(b"before").await.unwrap();
            panic!("boom");
        })
        .await
    });
    println!("{}", r.unwrap_err().is_panic());
    drop(rt);
    println!("{:?}", std::fs::read_to_string("f"));
}

fn the_panic_of_a_bad_thread_limit() {
    panics("zero", || {
        Builder::new_current_thread().max_blocking_threads(0);
    });
}
