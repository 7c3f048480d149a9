//! The attributes expanded by the compiler, on a mock runtime.
//!
//! The expansion names `blitz_io::runtime::Builder`; here that is the module below, which records
//! the calls made to it and polls a future until it is done.

use std::{cell::RefCell, io};

mod blitz_io {
    pub(crate) mod runtime {
        use std::{
            future::Future,
            pin::pin,
            task::{Context, Poll, Waker},
        };

        #[derive(Debug)]
        pub(crate) struct Builder(Vec<String>);

        pub(crate) enum UnhandledPanic {
            Ignore,
        }

        impl Builder {
            pub(crate) fn new_multi_thread() -> Self {
                Self(vec!["multi_thread".into()])
            }

            pub(crate) fn new_current_thread() -> Self {
                Self(vec!["current_thread".into()])
            }

            fn with(&mut self, call: String) -> &mut Self {
                self.0.push(call);
                self
            }

            pub(crate) fn enable_all(&mut self) -> &mut Self {
                self.with("enable_all".into())
            }

            pub(crate) fn worker_threads(&mut self, count: usize) -> &mut Self {
                self.with(format!("worker_threads {count}"))
            }

            pub(crate) fn start_paused(&mut self, paused: bool) -> &mut Self {
                self.with(format!("start_paused {paused}"))
            }

            pub(crate) fn unhandled_panic(&mut self, _: UnhandledPanic) -> &mut Self {
                self.with("unhandled_panic".into())
            }

            pub(crate) fn name(&mut self, name: impl Into<String>) -> &mut Self {
                self.with(format!("name {}", name.into()))
            }

            pub(crate) fn build(&mut self) -> Result<Runtime, ()> {
                crate::CALLS.set(self.0.clone());
                Ok(Runtime)
            }

            pub(crate) fn build_local(&mut self, (): ()) -> Result<Runtime, ()> {
                self.with("local".into()).build()
            }
        }

        #[derive(Debug)]
        pub(crate) struct Runtime;

        impl Runtime {
            pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
                let mut future = pin!(future);
                loop {
                    let mut context = Context::from_waker(Waker::noop());
                    if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                        return output;
                    }
                }
            }
        }
    }
}

thread_local! {
    static CALLS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn calls() -> String {
    CALLS.take().join(", ")
}

#[blitz_io_macros::main]
async fn forty_two() -> io::Result<usize> {
    let digits = "42".parse().map_err(io::Error::other)?;
    std::future::ready(()).await;
    Ok(digits)
}

#[test]
fn main_returns_what_the_body_returns() {
    assert_eq!(forty_two().unwrap(), 42);
    assert_eq!(calls(), "multi_thread, enable_all");
}

#[blitz_io_macros::main(worker_threads = 3, name = "three")]
async fn three() {}

#[blitz_io_macros::main(flavor = "local", start_paused = true, unhandled_panic = "ignore")]
async fn local() {}

#[test]
fn arguments_reach_the_builder() {
    three();
    assert_eq!(calls(), "multi_thread, enable_all, worker_threads 3, name three");
    local();
    assert_eq!(calls(), "current_thread, enable_all, start_paused true, unhandled_panic, local");
}

#[blitz_io_macros::main_rt]
async fn alone() {}

#[test]
fn without_threads_main_runs_on_the_current_one() {
    alone();
    assert_eq!(calls(), "current_thread, enable_all");
}

struct Names(Vec<String>);

impl Names {
    /// Borrowed and owned parameters, generics and a bound all survive the expansion.
    #[blitz_io_macros::main]
    async fn add<T>(&mut self, name: T, mut times: u8) -> &mut String
    where
        T: Into<String>,
    {
        times += 1;
        self.0.push(name.into().repeat(times.into()));
        self.0.last_mut().unwrap()
    }
}

#[test]
fn parameters_and_generics_survive() {
    let mut names = Names(Vec::new());
    names.add("a", 1).push('!');
    assert_eq!(names.0, ["aa!"]);
}

#[blitz_io_macros::main]
async fn boxed() -> Box<dyn Fn() -> u8> {
    // The tail expression is coerced to the output type, as in any function.
    Box::new(|| 7)
}

#[blitz_io_macros::main]
async fn inner_attribute() -> u8 {
    #![deny(unused_variables)]
    6
}

#[blitz_io_macros::main]
async fn opaque() -> impl Fn() -> u8 {
    || 8
}

/// # Safety
/// Has no obligations.
#[blitz_io_macros::main]
#[allow(unsafe_code, reason = "the qualifier has to survive")]
async unsafe fn dangerous() -> u8 {
    9
}

#[blitz_io_macros::main]
async fn never() -> ! {
    panic!("as promised")
}

#[test]
#[allow(unsafe_code, reason = "calls the function with the qualifier")]
fn outputs_of_every_kind_survive() {
    assert_eq!(inner_attribute(), 6);
    assert_eq!(boxed()(), 7);
    assert_eq!(opaque()(), 8);
    // SAFETY: the function has no obligations.
    assert_eq!(unsafe { dangerous() }, 9);
    assert!(std::panic::catch_unwind(|| never()).is_err());
}

mod elsewhere {
    pub(crate) use crate::blitz_io as renamed;
}

#[blitz_io_macros::test(crate = "crate::elsewhere::renamed")]
async fn the_crate_may_have_another_name() {
    assert_eq!(calls(), "current_thread, enable_all");
}

#[blitz_io_macros::test]
#[should_panic(expected = "seen")]
async fn other_attributes_stay() {
    panic!("seen");
}

#[blitz_io_macros::test]
async fn a_test_may_return_a_result() -> Result<(), io::Error> {
    if CALLS.take().is_empty() {
        return Err(io::Error::other("no runtime was built"));
    }
    Ok(())
}

macro_rules! through_a_macro {
    ($visibility:vis $name:ident $body:block $item:item) => {
        #[blitz_io_macros::test]
        $visibility async fn $name() $body

        #[blitz_io_macros::main]
        $item
    };
}

through_a_macro! {
    pub(crate) a_body_may_come_through_a_macro {
        assert_eq!(item_through_a_macro(), 5);
    }
    async fn item_through_a_macro() -> u8 {
        5
    }
}
