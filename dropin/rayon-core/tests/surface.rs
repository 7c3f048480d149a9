//! Checks that the public surface is that of rayon-core 1.13.0: each item with its signature, and
//! which types are `Send`, `Sync` and unwind safe.
#![allow(deprecated, reason = "the deprecated is part of it")]
#![allow(clippy::type_complexity, reason = "the signatures are what is tested")]

use std::{
    any::Any,
    error::Error,
    io,
    marker::PhantomData,
    panic::{RefUnwindSafe, UnwindSafe},
};

use rayon_core::{
    BroadcastContext, Configuration, FnContext, Scope, ScopeFifo, ThreadBuilder, ThreadPool,
    ThreadPoolBuildError, ThreadPoolBuilder, Yield,
};

type Unit = fn();
type Number = fn() -> u8;

/// Asserts that a function has exactly this type.
macro_rules! is {
    ($($type:ty = $function:expr;)+) => { $(let _: $type = $function;)+ };
}

#[test]
fn the_functions_have_rayons_signatures() {
    is! {
        fn(Number, Number) -> (u8, u8) = rayon_core::join;
        fn(fn(FnContext) -> u8, fn(FnContext) -> u8) -> (u8, u8) = rayon_core::join_context;
        fn(fn(&Scope<'static>) -> u8) -> u8 = rayon_core::scope;
        fn(fn(&ScopeFifo<'static>) -> u8) -> u8 = rayon_core::scope_fifo;
        fn(fn(&Scope<'static>) -> u8) -> u8 = rayon_core::in_place_scope;
        fn(fn(&ScopeFifo<'static>) -> u8) -> u8 = rayon_core::in_place_scope_fifo;
        fn(Unit) = rayon_core::spawn;
        fn(Unit) = rayon_core::spawn_fifo;
        fn(fn(BroadcastContext<'_>) -> u8) -> Vec<u8> = rayon_core::broadcast;
        fn(fn(BroadcastContext<'_>)) = rayon_core::spawn_broadcast;
        fn() -> usize = rayon_core::current_num_threads;
        fn() -> Option<usize> = rayon_core::current_thread_index;
        fn() -> Option<bool> = rayon_core::current_thread_has_pending_tasks;
        fn() -> usize = rayon_core::max_num_threads;
        fn() -> Option<Yield> = rayon_core::yield_now;
        fn() -> Option<Yield> = rayon_core::yield_local;
        fn(Configuration) -> Result<(), Box<dyn Error>> = rayon_core::initialize;
        fn(&FnContext) -> bool = FnContext::migrated;
        fn(&BroadcastContext<'static>) -> usize = BroadcastContext::index;
        fn(&BroadcastContext<'static>) -> usize = BroadcastContext::num_threads;
        fn(&Scope<'static>, fn(&Scope<'static>)) = Scope::spawn;
        fn(&Scope<'static>, fn(&Scope<'static>, BroadcastContext<'_>)) = Scope::spawn_broadcast;
        fn(&ScopeFifo<'static>, fn(&ScopeFifo<'static>)) = ScopeFifo::spawn_fifo;
        fn(&ScopeFifo<'static>, fn(&ScopeFifo<'static>, BroadcastContext<'_>)) =
            ScopeFifo::spawn_broadcast;
    }
    assert_eq!([Yield::Executed, Yield::Idle].map(|it| format!("{it:?}")), ["Executed", "Idle"]);
}

#[test]
fn a_pool_has_rayons_methods() {
    is! {
        fn(Configuration) -> Result<ThreadPool, Box<dyn Error>> = ThreadPool::new;
        fn(&ThreadPool, Number) -> u8 = ThreadPool::install;
        fn(&ThreadPool, Number, Number) -> (u8, u8) = ThreadPool::join;
        fn(&ThreadPool, fn(&Scope<'static>) -> u8) -> u8 = ThreadPool::scope;
        fn(&ThreadPool, fn(&ScopeFifo<'static>) -> u8) -> u8 = ThreadPool::scope_fifo;
        fn(&ThreadPool, fn(&Scope<'static>) -> u8) -> u8 = ThreadPool::in_place_scope;
        fn(&ThreadPool, fn(&ScopeFifo<'static>) -> u8) -> u8 = ThreadPool::in_place_scope_fifo;
        fn(&ThreadPool, Unit) = ThreadPool::spawn;
        fn(&ThreadPool, Unit) = ThreadPool::spawn_fifo;
        fn(&ThreadPool, fn(BroadcastContext<'_>) -> u8) -> Vec<u8> = ThreadPool::broadcast;
        fn(&ThreadPool, fn(BroadcastContext<'_>)) = ThreadPool::spawn_broadcast;
        fn(&ThreadPool) -> usize = ThreadPool::current_num_threads;
        fn(&ThreadPool) -> Option<usize> = ThreadPool::current_thread_index;
        fn(&ThreadPool) -> Option<bool> = ThreadPool::current_thread_has_pending_tasks;
        fn(&ThreadPool) -> Option<Yield> = ThreadPool::yield_now;
        fn(&ThreadPool) -> Option<Yield> = ThreadPool::yield_local;
    }
}

#[test]
fn a_builder_has_rayons_methods() {
    type Built<T> = Result<T, ThreadPoolBuildError>;
    type Start = fn(ThreadBuilder) -> io::Result<()>;
    is! {
        fn() -> ThreadPoolBuilder = ThreadPoolBuilder::new;
        fn() -> ThreadPoolBuilder = Default::default;
        fn(ThreadPoolBuilder) -> Built<ThreadPool> = ThreadPoolBuilder::build;
        fn(ThreadPoolBuilder) -> Built<()> = ThreadPoolBuilder::build_global;
        fn(ThreadPoolBuilder, fn(ThreadBuilder), fn(&ThreadPool) -> u8) -> Built<u8> =
            ThreadPoolBuilder::build_scoped;
        fn(ThreadPoolBuilder, usize) -> ThreadPoolBuilder = ThreadPoolBuilder::num_threads;
        fn(ThreadPoolBuilder, usize) -> ThreadPoolBuilder = ThreadPoolBuilder::stack_size;
        fn(ThreadPoolBuilder) -> ThreadPoolBuilder = ThreadPoolBuilder::use_current_thread;
        fn(ThreadPoolBuilder) -> ThreadPoolBuilder = ThreadPoolBuilder::breadth_first;
        fn(ThreadPoolBuilder, fn(usize) -> String) -> ThreadPoolBuilder =
            ThreadPoolBuilder::thread_name;
        fn(ThreadPoolBuilder, fn(Box<dyn Any + Send>)) -> ThreadPoolBuilder =
            ThreadPoolBuilder::panic_handler;
        fn(ThreadPoolBuilder, fn(usize)) -> ThreadPoolBuilder = ThreadPoolBuilder::start_handler;
        fn(ThreadPoolBuilder, fn(usize)) -> ThreadPoolBuilder = ThreadPoolBuilder::exit_handler;
        fn(&ThreadBuilder) -> usize = ThreadBuilder::index;
        fn(&ThreadBuilder) -> Option<&str> = ThreadBuilder::name;
        fn(&ThreadBuilder) -> Option<usize> = ThreadBuilder::stack_size;
        fn(ThreadBuilder) = ThreadBuilder::run;
        fn(Configuration) -> Result<ThreadPool, Box<dyn Error + 'static>> = Configuration::build;
        fn(Configuration, usize) -> Configuration = Configuration::num_threads;
        fn(Configuration, fn(usize)) -> Configuration = Configuration::start_handler;
    }
    let start: Start = |_| Err(io::Error::other("none"));
    let builder = Configuration::new().num_threads(1);
    assert!(format!("{builder:?}").starts_with("ThreadPoolBuilder { num_threads: 1"));
    let error = ThreadPoolBuilder::new().spawn_handler(start).build().unwrap_err();
    assert!(error.source().is_some() && format!("{error:?}").contains("IOError"));
}

/// Detects whether a type has a trait, by which of two methods is selected.
struct Has<T: ?Sized>(PhantomData<T>);

macro_rules! traits {
    ($($name:ident $method:ident $bound:path;)+) => { $(
        trait $name {
            fn $method(&self) -> bool {
                false
            }
        }

        impl<T: ?Sized> $name for &Has<T> {}

        impl<T: ?Sized + $bound> Has<T> {
            fn $method(&self) -> bool {
                true
            }
        }
    )+ };
}

traits! {
    IsSend is_send Send;
    IsSync is_sync Sync;
    IsCaught is_caught UnwindSafe;
    IsSeen is_seen RefUnwindSafe;
}

macro_rules! facts {
    ($type:ty) => {{
        let has = &Has::<$type>(PhantomData);
        [has.is_send(), has.is_sync(), has.is_caught(), has.is_seen()]
    }};
}

#[test]
fn auto_traits_are_the_same() {
    assert_eq!(facts!(Yield), [true; 4]);
    assert_eq!(facts!(BroadcastContext<'static>), [false; 4]);
    assert_eq!(facts!(Configuration), [false; 4]);
    assert_eq!(facts!(FnContext), [false, false, true, true]);
    assert_eq!(facts!(Scope<'static>), [true, true, false, false]);
    assert_eq!(facts!(ScopeFifo<'static>), [true, true, false, false]);
    assert_eq!(facts!(ThreadBuilder), [true, false, false, false]);
    assert_eq!(facts!(ThreadPool), [true, true, false, false]);
    assert_eq!(facts!(ThreadPoolBuildError), [true, true, false, false]);
    assert_eq!(facts!(ThreadPoolBuilder), [false; 4]);
}
