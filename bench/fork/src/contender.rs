//! The contenders that have no iterators, a plain sequential one, and a bare thread.

/// No pool: the baseline of the joins.
pub(crate) mod sequential {
    use crate::workloads::{First, Pool, Tree};

    /// Calls both closures in turn, without a pool.
    #[inline(always)]
    fn join<RA, RB>(a: impl FnOnce() -> RA, b: impl FnOnce() -> RB) -> (RA, RB) {
        (a(), b())
    }

    crate::recursion!(plain join);

    pub(crate) struct Sequential;

    impl Pool for Sequential {
        fn fibonacci(&self, n: u32) -> u64 {
            fibonacci(n)
        }

        fn sums(&self, tree: &Tree, first: First, times: usize) -> u64 {
            sums(tree, first, times)
        }

        fn both(&self, a: &(impl Fn() + Sync), b: &(impl Fn() + Sync)) {
            join(a, b);
        }

        fn leaves(&self, count: usize, leaf: &(impl Fn() + Sync)) {
            leaves(count, leaf);
        }

        fn chain(&self, count: usize, leaf: &(impl Fn() + Sync)) {
            chain(count, leaf);
        }

        fn install(&self) {}
    }
}

/// `blitz_io::parallel`, as Rayon is used.
pub(crate) mod blitz {
    use blitz_io::parallel::{ThreadPool, ThreadPoolBuilder, join};

    use crate::workloads::{First, Pool, Tree};

    crate::recursion!(plain join);

    pub(crate) struct Blitz(ThreadPool);

    impl Blitz {
        pub(crate) fn new(threads: usize) -> Self {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build();
            Self(pool.expect("threads can be started"))
        }
    }

    impl Pool for Blitz {
        fn fibonacci(&self, n: u32) -> u64 {
            self.0.install(|| fibonacci(n))
        }

        fn sums(&self, tree: &Tree, first: First, times: usize) -> u64 {
            self.0.install(|| sums(tree, first, times))
        }

        fn both(&self, a: &(impl Fn() + Sync), b: &(impl Fn() + Sync)) {
            self.0.join(a, b);
        }

        fn leaves(&self, count: usize, leaf: &(impl Fn() + Sync)) {
            self.0.install(|| leaves(count, leaf));
        }

        fn chain(&self, count: usize, leaf: &(impl Fn() + Sync)) {
            self.0.install(|| chain(count, leaf));
        }

        fn install(&self) {
            self.0.install(|| ());
        }
    }
}

/// `blitz_io::parallel` with the worker passed along; the caller takes part.
pub(crate) mod native {
    use blitz_io::parallel::{ThreadPool, ThreadPoolBuilder, Worker};

    use crate::workloads::{First, Pool, Tree};

    crate::recursion!(passed Worker<'_>, join);

    /// A pool of one thread, for which the caller waits; none if the caller takes part.
    pub(crate) struct Native(Option<ThreadPool>);

    impl Native {
        /// Creates the pool; the caller is one of the threads, if there are more.
        pub(crate) fn new(threads: usize) -> Self {
            let builder = ThreadPoolBuilder::new();
            if threads == 1 {
                let pool = builder.num_threads(1).build();
                return Self(Some(pool.expect("a thread can be started")));
            }
            builder.num_threads(threads - 1).build_global().expect("this is the first use");
            Self(None)
        }

        fn call<R: Send>(&self, op: impl FnOnce(Worker<'_>) -> R + Send) -> R {
            match &self.0 {
                Some(pool) => pool.install(|| blitz_io::parallel::call(op)),
                None => blitz_io::parallel::call(op),
            }
        }
    }

    impl Pool for Native {
        fn fibonacci(&self, n: u32) -> u64 {
            self.call(|worker| fibonacci(worker, n))
        }

        fn sums(&self, tree: &Tree, first: First, times: usize) -> u64 {
            self.call(|worker| sums(worker, tree, first, times))
        }

        fn both(&self, a: &(impl Fn() + Sync), b: &(impl Fn() + Sync)) {
            self.call(|worker| worker.join(|_| a(), |_| b()));
        }

        fn leaves(&self, count: usize, leaf: &(impl Fn() + Sync)) {
            self.call(|worker| leaves(worker, count, leaf));
        }

        fn chain(&self, count: usize, leaf: &(impl Fn() + Sync)) {
            self.call(|worker| chain(worker, count, leaf));
        }

        fn install(&self) {
            self.call(|_| ());
        }
    }
}

/// chili, whose caller takes part too. It runs the *second* closure first.
pub(crate) mod chili {
    use chili::{Config, Scope, ThreadPool};

    use crate::workloads::{First, Pool, Tree};

    crate::recursion!(passed &mut Scope<'_>, join);

    pub(crate) struct Chili(ThreadPool);

    impl Chili {
        /// Creates the pool; the caller is one of the threads.
        pub(crate) fn new(threads: usize) -> Self {
            let thread_count = std::num::NonZero::new(threads);
            Self(ThreadPool::with_config(Config { thread_count, ..Config::default() }))
        }
    }

    impl Pool for Chili {
        fn fibonacci(&self, n: u32) -> u64 {
            fibonacci(&mut self.0.scope(), n)
        }

        fn sums(&self, tree: &Tree, first: First, times: usize) -> u64 {
            sums(&mut self.0.scope(), tree, first, times)
        }

        fn both(&self, a: &(impl Fn() + Sync), b: &(impl Fn() + Sync)) {
            self.0.scope().join(|_| a(), |_| b());
        }

        fn leaves(&self, count: usize, leaf: &(impl Fn() + Sync)) {
            leaves(&mut self.0.scope(), count, leaf);
        }

        fn chain(&self, count: usize, leaf: &(impl Fn() + Sync)) {
            chain(&mut self.0.scope(), count, leaf);
        }

        fn install(&self) {
            self.0.scope().join(|_| (), |_| ());
        }
    }
}

/// A thread that is parked and unparked: the system's own cost of reaching another thread and
/// coming back.
pub(crate) mod futex {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use std::thread::{self, Thread};
    use std::time::Duration;

    use crate::workloads;
    use harness::Metric;

    /// A thread that waits for `requested`, and then wakes the caller.
    pub(crate) struct Futex {
        thread: Thread,
        requested: Arc<AtomicBool>,
    }

    impl Futex {
        pub(crate) fn new() -> Self {
            let requested = Arc::new(AtomicBool::new(false));
            let (flag, main) = (requested.clone(), thread::current());
            // The thread ends with the process.
            let thread = thread::spawn(move || {
                loop {
                    // SeqCst: pairs with the store in `call`.
                    match flag.swap(false, SeqCst) {
                        true => main.unpark(),
                        false => thread::park(),
                    }
                }
            });
            Self { thread: thread.thread().clone(), requested }
        }

        fn call(&self) {
            // SeqCst: pairs with the swap of the thread.
            self.requested.store(true, SeqCst);
            self.thread.unpark();
            // SeqCst: pairs with the swap of the thread, which clears the flag.
            while self.requested.load(SeqCst) {
                thread::park();
            }
        }

        /// Runs one of the two rows that it has.
        pub(crate) fn run(&self, row: &str, budget: Duration) -> Option<Vec<Metric>> {
            match row {
                "install_awake" => Some(workloads::latencies(|| self.call(), budget, false)),
                "install_asleep" => Some(workloads::latencies(|| self.call(), budget, true)),
                _ => None,
            }
        }
    }
}
