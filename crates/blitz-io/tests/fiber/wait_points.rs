//! Tests where a fiber may wait, and with which message it panics where it may not.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    task::{Context, Poll},
    thread,
};

use blitz_io::{
    channel::{mpsc, watch},
    io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf},
    runtime::{Builder, Handle, RuntimeFlavor},
    task::{self, LocalSet},
};

use crate::{basics::both, fiber};

/// Returns the message of the panic of `f`.
#[track_caller]
fn complaint<R>(f: impl FnOnce() -> R) -> String {
    let Err(payload) = catch_unwind(AssertUnwindSafe(f)) else { panic!("it was allowed") };
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).expect("a text")
}

fn wait() {
    fiber::wait(task::yield_now());
}

/// Runs `f` on a fiber, on both kinds of runtimes.
#[track_caller]
fn on_a_fiber(f: fn()) {
    both(|rt| rt.block_on(fiber::Builder::new().spawn_on(f, rt.handle()).unwrap()).unwrap());
}

#[test]
fn outside_of_a_fiber_a_wait_panics_and_a_checkpoint_does_nothing() {
    let check = || {
        assert!(!fiber::is_fiber());
        fiber::checkpoint();
        let text = complaint(wait);
        assert!(text.contains("outside of a fiber") && text.contains("fiber::spawn"), "{text}");
    };
    check();
    both(|rt| {
        rt.block_on(async {
            check();
            blitz_io::spawn(async move { check() }).await.unwrap();
            task::spawn_blocking(check).await.unwrap();
        });
    });
    let text = complaint(|| fiber::spawn(|| ()));
    assert!(text.contains("no runtime on this thread"), "{text}");
}

#[test]
fn block_on_panics_on_a_fiber_and_says_what_to_do() {
    on_a_fiber(|| {
        let text = complaint(|| Handle::current().block_on(async {}));
        assert!(text.contains("Cannot start a runtime from within a runtime"), "{text}");
        let rt = Builder::new_current_thread().build().unwrap();
        let text = complaint(|| rt.block_on(async {}));
        assert!(text.contains("Cannot start a runtime from within a runtime"), "{text}");
        rt.shutdown_background();
        let (sender, mut receiver) = mpsc::channel::<()>(1);
        let text = complaint(|| receiver.blocking_recv());
        assert!(text.contains("Cannot block the current thread"), "{text}");
        drop(sender);
        wait();
    });
}

#[test]
fn block_in_place_may_block_and_block_on_works_inside_of_it() {
    on_a_fiber(|| {
        let here = thread::current().id();
        task::block_in_place(|| {
            assert_eq!(thread::current().id(), here);
            // Still on the fiber: the value that it waits for may come from another fiber.
            assert_eq!(fiber::wait(fiber::spawn(|| 3)).unwrap(), 3);
            let rt = Builder::new_current_thread().enable_all().build().unwrap();
            let got = rt.block_on(async {
                assert!(!fiber::is_fiber());
                fiber::checkpoint();
                let text = complaint(wait);
                assert!(text.contains("inside of a `block_on`"), "{text}");
                blitz_io::spawn(async {
                    let text = complaint(wait);
                    assert!(text.contains("inside of a `block_on`"), "{text}");
                    4
                })
                .await
                .unwrap()
            });
            assert_eq!(got, 4);
            wait();
        });
        wait();
        assert!(fiber::is_fiber());
    });
}

#[test]
fn inside_of_a_local_set_a_wait_panics() {
    on_a_fiber(|| {
        let set = LocalSet::new();
        {
            let _guard = set.enter();
            let text = complaint(wait);
            assert!(text.contains("inside of a `LocalSet`"), "{text}");
        }
        wait();
        let got = fiber::wait(set.run_until(async {
            let text = complaint(wait);
            assert!(text.contains("inside of a `LocalSet`"), "{text}");
            task::spawn_local(async {
                assert!(complaint(wait).contains("inside of a `LocalSet`"));
                task::yield_now().await;
                5
            })
            .await
            .unwrap()
        }));
        assert_eq!(got, 5);
    });
}

#[test]
fn guards_that_a_fiber_leaks_are_not_the_others() {
    let rt = Builder::new_multi_thread().worker_threads(1).fiber_threads(1).build().unwrap();
    let other = Builder::new_current_thread().build().unwrap();
    let entered = other.handle().clone();
    let leaks = move || {
        let set = LocalSet::new();
        std::mem::forget(set.enter());
        std::mem::forget(entered.enter());
        assert!(complaint(wait).contains("inside of a `LocalSet`"));
    };
    rt.block_on(fiber::Builder::new().spawn_on(leaks, rt.handle()).unwrap()).unwrap();
    let looks = || {
        wait();
        Handle::current().runtime_flavor()
    };
    let flavor = rt.block_on(fiber::Builder::new().spawn_on(looks, rt.handle()).unwrap());
    assert_eq!(flavor.unwrap(), RuntimeFlavor::MultiThread);
}

#[test]
fn inside_of_a_fork_join_job_a_wait_panics() {
    on_a_fiber(|| {
        blitz_io::parallel::call(|_| {
            // On this thread, or on a thread of the pool.
            let text = complaint(wait);
            assert!(text.contains("fork-join job") || text.contains("outside"), "{text}");
        });
        let (one, two) = blitz_io::parallel::join(|| 1, || 2);
        assert_eq!(one + two, 3);
        wait();
    });
}

#[test]
fn a_destructor_of_another_tasks_output_cannot_wait() {
    struct Waits;
    impl Drop for Waits {
        fn drop(&mut self) {
            if task::try_id().is_some() {
                assert!(complaint(wait).contains("a task that is polled or dropped"));
            }
        }
    }
    both(|rt| {
        rt.block_on(async {
            let output = blitz_io::spawn(async { Waits });
            fiber::spawn(move || {
                while !output.is_finished() {
                    wait();
                }
                drop(output);
                wait();
            })
            .await
            .unwrap();
        });
    });
}

#[test]
fn a_hook_and_a_name_may_run_on_a_fiber() {
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .on_task_spawn(|_| {
            // The hook runs on the stack of the code that spawns.
            if fiber::is_fiber() {
                wait();
            }
        })
        .build()
        .unwrap();
    rt.block_on(async {
        fiber::spawn(|| {
            let tasks: Vec<_> = (0..10).map(|n| blitz_io::spawn(async move { n })).collect();
            tasks.into_iter().map(|task| fiber::wait(task).unwrap()).sum::<i32>()
        })
        .await
        .unwrap();
    });
}

/// A reader like one around a blocking codec: it waits in the middle of its poll.
struct WaitsInPolls;

impl AsyncRead for WaitsInPolls {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        wait();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WaitsInPolls {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        wait();
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn under_a_lock_of_a_split_stream_a_wait_panics() {
    on_a_fiber(|| {
        let mut alone = WaitsInPolls;
        assert_eq!(fiber::wait(alone.read(&mut [0])).unwrap(), 0);
        let (mut reader, _writer) = blitz_io::io::split(alone);
        let text = complaint(|| fiber::wait(reader.read(&mut [0])));
        assert!(text.contains("`io::split`"), "{text}");
        wait();
    });
}

#[test]
fn a_wait_panics_while_a_watch_value_is_borrowed() {
    on_a_fiber(|| {
        let (sender, mut receiver) = watch::channel(1);
        let value = sender.borrow();
        assert!(!fiber::is_fiber());
        fiber::checkpoint();
        let text = complaint(wait);
        assert!(text.contains("`watch::Ref`"), "{text}");
        drop(value);
        wait();
        let text = complaint(|| sender.send_modify(|_| wait()));
        assert!(text.contains("`watch::Ref`"), "{text}");
        sender.send(2).unwrap();
        let looks = |value: &i32| {
            assert!(complaint(wait).contains("`watch::Ref`"));
            *value == 2
        };
        drop(fiber::wait(receiver.wait_for(looks)).unwrap());
        wait();
        assert!(fiber::is_fiber());
        // While the thread unwinds, a wait blocks the thread and does not panic a second time.
        let text = complaint(|| {
            struct Waits;
            impl Drop for Waits {
                fn drop(&mut self) {
                    wait();
                }
            }
            let _value = receiver.borrow();
            let _waits = Waits;
            resume_unwind(Box::new("its own"));
        });
        assert_eq!(text, "its own");
    });
}

#[test]
fn a_borrow_that_a_fiber_leaks_does_not_affect_other_fibers() {
    let rt = Builder::new_multi_thread().worker_threads(1).fiber_threads(1).build().unwrap();
    let leaks = || {
        let (sender, _receiver) = watch::channel(1);
        std::mem::forget(sender.borrow());
        assert!(complaint(wait).contains("`watch::Ref`"));
    };
    rt.block_on(fiber::Builder::new().spawn_on(leaks, rt.handle()).unwrap()).unwrap();
    rt.block_on(fiber::Builder::new().spawn_on(wait, rt.handle()).unwrap()).unwrap();
}

/// A broadcast channel holds the lock of a slot while it clones a value, and a watch channel holds
/// its lock while its value is printed, so a wait inside of either panics.
#[test]
fn while_a_value_of_a_channel_is_cloned_or_shown_a_wait_panics() {
    struct Waits;
    impl Clone for Waits {
        fn clone(&self) -> Self {
            let text = complaint(wait);
            assert!(text.contains("`watch::Ref`"), "{text}");
            Self
        }
    }
    impl std::fmt::Debug for Waits {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            drop(self.clone());
            f.write_str("Waits")
        }
    }
    on_a_fiber(|| {
        let (sender, mut one) = blitz_io::channel::broadcast::channel(2);
        // A second receiver is needed because the last one gets the value itself, not a clone.
        let _two = sender.subscribe();
        sender.send(Waits).unwrap();
        fiber::wait(one.recv()).unwrap();
        let (watched, _receiver) = watch::channel(Waits);
        assert!(format!("{watched:?}").contains("Waits"));
        wait();
    });
}
