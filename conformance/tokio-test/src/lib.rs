//! A stand-in for tokio-test: a future polled by hand, and the assertions.
//!
//! The names and their meaning are tokio-test's; files that need more of it (its
//! mock of a stream of bytes, `block_on`) are compiled against the real one.

#![forbid(unsafe_code)]

pub mod task;

/// The value of a `Poll::Ready`; panics on `Pending`.
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

/// The value of an `Ok`; panics on `Err`.
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

/// The error of an `Err`; panics on `Ok`.
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

/// The value of a `Ready(Ok)`.
#[macro_export]
macro_rules! assert_ready_ok {
    ($poll:expr $(, $($message:tt)*)?) => {
        $crate::assert_ok!($crate::assert_ready!($poll $(, $($message)*)?) $(, $($message)*)?)
    };
}

/// The error of a `Ready(Err)`.
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

/// Panics with what was found and with the caller's words, if it gave any.
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
