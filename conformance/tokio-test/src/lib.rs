//! A stand-in for tokio-test: a future polled by hand, and the assertions.
//!
//! The names and their meaning are tokio-test's; files that need more of it (its mock of a byte
//! stream) are compiled against the real one.

#![forbid(unsafe_code)]

pub mod task;

/// Waits for a future on this thread, which sleeps meanwhile.
///
/// The real one has a runtime; the files that use this one wait only for events in memory.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Sleeper(std::thread::Thread);

    impl std::task::Wake for Sleeper {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = std::sync::Arc::new(Sleeper(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::park();
    }
}

/// Returns the value of a `Poll::Ready`; panics on `Pending`.
#[macro_export]
macro_rules! assert_ready {
    ($poll:expr $(, $($message:tt)*)?) => {
        match $poll {
            ::std::task::Poll::Ready(value) => value,
            ::std::task::Poll::Pending => $crate::fail!("expected ready, found pending" $(, $($message)*)?),
        }
    };
}

/// Panics unless the argument is `Poll::Pending`.
#[macro_export]
macro_rules! assert_pending {
    ($poll:expr $(, $($message:tt)*)?) => {
        match $poll {
            ::std::task::Poll::Pending => {}
            ::std::task::Poll::Ready(value) => {
                $crate::fail!(::std::format!("expected pending, found {value:?}") $(, $($message)*)?)
            }
        }
    };
}

/// Returns the value of an `Ok`; panics on `Err`.
#[macro_export]
macro_rules! assert_ok {
    ($result:expr $(, $($message:tt)*)?) => {
        match $result {
            ::std::result::Result::Ok(value) => value,
            ::std::result::Result::Err(error) => {
                $crate::fail!(::std::format!("expected Ok, found Err({error:?})") $(, $($message)*)?)
            }
        }
    };
}

/// Returns the error of an `Err`; panics on `Ok`.
#[macro_export]
macro_rules! assert_err {
    ($result:expr $(, $($message:tt)*)?) => {
        match $result {
            ::std::result::Result::Err(error) => error,
            ::std::result::Result::Ok(value) => {
                $crate::fail!(::std::format!("expected Err, found Ok({value:?})") $(, $($message)*)?)
            }
        }
    };
}

/// Returns the value of a `Ready(Ok)`; panics on anything else.
#[macro_export]
macro_rules! assert_ready_ok {
    ($poll:expr $(, $($message:tt)*)?) => {
        $crate::assert_ok!($crate::assert_ready!($poll $(, $($message)*)?) $(, $($message)*)?)
    };
}

/// Returns the error of a `Ready(Err)`; panics on anything else.
#[macro_export]
macro_rules! assert_ready_err {
    ($poll:expr $(, $($message:tt)*)?) => {
        $crate::assert_err!($crate::assert_ready!($poll $(, $($message)*)?) $(, $($message)*)?)
    };
}

/// Panics unless the argument is ready with a value that equals the second.
#[macro_export]
macro_rules! assert_ready_eq {
    ($poll:expr, $wanted:expr $(, $($message:tt)*)?) => {
        ::std::assert_eq!($crate::assert_ready!($poll), $wanted $(, $($message)*)?)
    };
}

/// Panics unless `duration` has passed since `start`, and at most 1 ms more.
#[macro_export]
macro_rules! assert_elapsed {
    ($start:expr, $duration:expr) => {{
        let found = $start.elapsed();
        let wanted: ::std::time::Duration = $duration;
        let late = found.checked_sub(wanted);
        ::std::assert!(
            late.is_some_and(|late| late <= ::std::time::Duration::from_millis(1)),
            "{found:?} passed, expected {wanted:?}"
        );
    }};
}

/// Panics with what was found and with the caller's message, if there is one.
#[doc(hidden)]
#[macro_export]
macro_rules! fail {
    ($found:expr $(,)?) => {
        ::std::panic!("{}", $found)
    };
    ($found:expr, $($message:tt)+) => {
        ::std::panic!("{}: {}", $found, ::std::format_args!($($message)+))
    };
}

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, poll_fn, ready},
        panic::catch_unwind,
        task::Poll,
        thread,
    };

    use crate::task::spawn;

    #[test]
    fn a_wake_is_noticed_and_forgotten_by_the_next_poll() {
        let mut waker = None;
        let mut task = spawn(poll_fn(|cx| {
            waker = Some(cx.waker().clone());
            Poll::<()>::Pending
        }));
        assert_pending!(task.poll());
        assert!(!task.is_woken());
        // The task itself and the waker that was cloned.
        assert_eq!(task.waker_ref_count(), 2);
        drop(task);
        let mut woken = spawn(poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        }));
        assert_pending!(woken.poll());
        assert!(woken.is_woken());
        woken.enter(|_, _| ());
        assert!(!woken.is_woken());
    }

    #[test]
    fn assertions_give_what_they_found() {
        assert_eq!(assert_ready!(spawn(ready(1)).poll()), 1);
        assert_eq!(assert_ready_ok!(Poll::Ready(Ok::<_, ()>(2))), 2);
        assert_eq!(assert_ready_err!(Poll::Ready(Err::<(), _>(3))), 3);
        assert_ready_eq!(Poll::Ready(4), 4, "with {}", "words");
        assert_eq!(assert_ok!(Ok::<_, ()>(5)), 5);
        assert_eq!(assert_err!(Err::<(), _>(6), "with words"), 6);
        assert_eq!(spawn(7).into_inner(), 7);
    }

    #[test]
    fn assertions_that_do_not_hold_panic_with_the_callers_words() {
        fn words(panics: impl FnOnce() + std::panic::UnwindSafe) -> String {
            let payload = catch_unwind(panics).expect_err("it does not hold");
            // The compiler may have formatted a constant message to a `&str`.
            match payload.downcast_ref::<&str>() {
                Some(words) => (*words).to_owned(),
                None => *payload.downcast::<String>().expect("a panic has words"),
            }
        }
        let pending = || spawn(pending::<u8>()).poll();
        assert!(words(move || _ = assert_ready!(pending(), "first {}", 1)).ends_with("first 1"));
        assert!(words(|| assert_pending!(Poll::Ready(2))).contains("found 2"));
        assert!(words(|| assert_ok!(Err::<(), _>(3))).contains("Err(3)"));
        assert!(words(|| assert_err!(Ok::<_, ()>(4), "fourth")).contains("Ok(4): fourth"));
    }

    #[test]
    fn block_on_waits_for_another_thread() {
        let mut thread = None;
        let output = crate::block_on(poll_fn(|cx| match thread.take() {
            None => {
                let waker = cx.waker().clone();
                thread = Some(thread::spawn(move || waker.wake()));
                Poll::Pending
            }
            Some(started) => {
                started.join().expect("it only wakes");
                Poll::Ready(5)
            }
        }));
        assert_eq!(output, 5);
    }
}
