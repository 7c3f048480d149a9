//! The builder of thread pools.

use std::{any::Any, error::Error, fmt, io, sync::Arc};

use super::ThreadPool;
use crate::engine::fork::{
    global::{self, GlobalPoolError},
    registry::{OnPanic, OnThread, PoolBuildError, Registry, RegistryConfig, UnstartedWorker},
};

/// A thread of a pool before it is started; passed to [`ThreadPoolBuilder::spawn_handler`].
///
/// # Examples
///
/// ```
/// let pool = blitz_io::parallel::ThreadPoolBuilder::new()
///     .num_threads(2)
///     .spawn_handler(|thread| {
///         std::thread::spawn(|| thread.run());
///         Ok(())
///     })
///     .build()
///     .unwrap();
/// assert_eq!(pool.install(|| 42), 42);
/// ```
pub struct ThreadBuilder {
    name: Option<String>,
    stack_size: Option<usize>,
    unstarted: UnstartedWorker,
    /// Makes the type `!Sync`, as it is in Rayon.
    alone: std::marker::PhantomData<std::cell::Cell<()>>,
}

impl ThreadBuilder {
    /// Returns the index that the thread will have in the pool.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut indices = Vec::new();
    /// blitz_io::parallel::ThreadPoolBuilder::new()
    ///     .num_threads(2)
    ///     .spawn_handler(|thread| {
    ///         indices.push(thread.index());
    ///         std::thread::spawn(|| thread.run());
    ///         Ok(())
    ///     })
    ///     .build()
    ///     .unwrap();
    /// assert_eq!(indices, [0, 1]);
    /// ```
    pub fn index(&self) -> usize {
        self.unstarted.index()
    }

    /// Returns the name that the thread should get, if [`ThreadPoolBuilder::thread_name`] set one.
    ///
    /// # Examples
    ///
    /// ```
    /// blitz_io::parallel::ThreadPoolBuilder::new()
    ///     .thread_name(|index| format!("cruncher {index}"))
    ///     .spawn_handler(|thread| {
    ///         assert_eq!(thread.name(), Some(&*format!("cruncher {}", thread.index())));
    ///         std::thread::spawn(|| thread.run());
    ///         Ok(())
    ///     })
    ///     .build()
    ///     .unwrap();
    /// ```
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the stack size that the thread should get, if [`ThreadPoolBuilder::stack_size`] set
    /// one.
    ///
    /// # Examples
    ///
    /// ```
    /// blitz_io::parallel::ThreadPoolBuilder::new()
    ///     .stack_size(1 << 20)
    ///     .spawn_handler(|thread| {
    ///         assert_eq!(thread.stack_size(), Some(1 << 20));
    ///         std::thread::spawn(|| thread.run());
    ///         Ok(())
    ///     })
    ///     .build()
    ///     .unwrap();
    /// ```
    pub fn stack_size(&self) -> Option<usize> {
        self.stack_size
    }

    /// Runs jobs on the calling thread, as a thread of the pool, until the pool ends.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new()
    ///     .num_threads(1)
    ///     .spawn_handler(|thread| {
    ///         std::thread::spawn(|| thread.run());
    ///         Ok(())
    ///     })
    ///     .build()
    ///     .unwrap();
    /// assert_eq!(pool.current_num_threads(), 1);
    /// ```
    pub fn run(self) {
        self.unstarted.run();
    }
}

impl fmt::Debug for ThreadBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadBuilder")
            .field("pool", &Arc::as_ptr(self.unstarted.registry()))
            .field("index", &self.index())
            .field("name", &self.name)
            .field("stack_size", &self.stack_size)
            .finish_non_exhaustive()
    }
}

mod sealed {
    //! Seals `ThreadSpawn`: a closure is enough for every custom way of starting threads.

    /// A supertrait that cannot be named outside of this module.
    #[allow(unreachable_pub, reason = "a bound of a public trait")]
    pub trait Sealed {}
}

/// A way of starting the threads of a pool: [`DefaultSpawn`] or [`CustomSpawn`].
///
/// # Examples
///
/// ```
/// fn build<S: blitz_io::parallel::ThreadSpawn>(
///     builder: blitz_io::parallel::ThreadPoolBuilder<S>,
/// ) -> blitz_io::parallel::ThreadPool {
///     builder.build().unwrap()
/// }
/// build(blitz_io::parallel::ThreadPoolBuilder::new());
/// ```
pub trait ThreadSpawn: sealed::Sealed {
    /// Starts a thread that calls [`ThreadBuilder::run`].
    #[doc(hidden)]
    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()>;
}

/// The default way of starting threads: `std::thread`, with the configured name and stack size.
///
/// # Examples
///
/// ```
/// let _ = blitz_io::parallel::DefaultSpawn::default();
/// ```
#[derive(Debug, Default)]
pub struct DefaultSpawn;

impl sealed::Sealed for DefaultSpawn {}

impl ThreadSpawn for DefaultSpawn {
    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()> {
        global::start_thread(thread.name, thread.stack_size, thread.unstarted)
    }
}

/// A way of starting threads by calling a closure; see [`ThreadPoolBuilder::spawn_handler`].
///
/// # Examples
///
/// ```
/// let builder = blitz_io::parallel::ThreadPoolBuilder::new().spawn_handler(|thread| {
///     std::thread::spawn(|| thread.run());
///     Ok(())
/// });
/// assert!(builder.build().is_ok());
/// ```
#[derive(Debug)]
pub struct CustomSpawn<F>(F);

impl<F> sealed::Sealed for CustomSpawn<F> {}

impl<F: FnMut(ThreadBuilder) -> io::Result<()>> ThreadSpawn for CustomSpawn<F> {
    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()> {
        (self.0)(thread)
    }
}

/// A builder that configures and creates a [`ThreadPool`] or the global pool.
///
/// # Examples
///
/// ```
/// let pool = blitz_io::parallel::ThreadPoolBuilder::new()
///     .num_threads(2)
///     .thread_name(|index| format!("cruncher-{index}"))
///     .build()
///     .unwrap();
/// let name = pool.install(|| std::thread::current().name().map(str::to_owned));
/// assert!(name.unwrap().starts_with("cruncher-"));
/// ```
pub struct ThreadPoolBuilder<S = DefaultSpawn> {
    num_threads: usize,
    use_current_thread: bool,
    panic_handler: Option<OnPanic>,
    thread_name: Option<Box<dyn FnMut(usize) -> String>>,
    stack_size: Option<usize>,
    start_handler: Option<OnThread>,
    exit_handler: Option<OnThread>,
    spawn_handler: S,
    breadth_first: bool,
}

impl Default for ThreadPoolBuilder {
    fn default() -> Self {
        Self {
            num_threads: 0,
            use_current_thread: false,
            panic_handler: None,
            thread_name: None,
            stack_size: None,
            start_handler: None,
            exit_handler: None,
            spawn_handler: DefaultSpawn,
            breadth_first: false,
        }
    }
}

impl ThreadPoolBuilder {
    /// Creates a builder with default settings.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(blitz_io::parallel::ThreadPoolBuilder::new().build().is_ok());
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Builds a pool that exists while `with_pool` runs, on scoped threads that may borrow.
    /// `wrapper` is called on each thread and must call [`ThreadBuilder::run`].
    ///
    /// # Errors
    ///
    /// If the operating system refuses to start a thread.
    ///
    /// # Examples
    ///
    /// ```
    /// let prefix = String::from("result ");
    /// let text = blitz_io::parallel::ThreadPoolBuilder::new()
    ///     .build_scoped(
    ///         |thread| {
    ///             assert!(prefix.starts_with("result"), "threads may borrow");
    ///             thread.run();
    ///         },
    ///         |pool| pool.install(|| format!("{prefix}{}", 42)),
    ///     )
    ///     .unwrap();
    /// assert_eq!(text, "result 42");
    /// ```
    #[cfg(not(blitz_loom))]
    pub fn build_scoped<W, F, R>(self, wrapper: W, with_pool: F) -> Result<R, ThreadPoolBuildError>
    where
        W: Fn(ThreadBuilder) + Sync,
        F: FnOnce(&ThreadPool) -> R,
    {
        use crate::engine::prim::thread;

        thread::scope(|scope| {
            let wrapper = &wrapper;
            let spawn = |builder: ThreadBuilder| {
                let mut thread = thread::Builder::new();
                if let Some(name) = builder.name() {
                    thread = thread.name(name.to_owned());
                }
                if let Some(size) = builder.stack_size() {
                    thread = thread.stack_size(size);
                }
                thread.spawn_scoped(scope, move || wrapper(builder)).map(drop)
            };
            // Dropped before the scope waits for its threads, because they exit only after that.
            let pool = self.spawn_handler(spawn).build()?;
            Ok(with_pool(&pool))
        })
    }
}

impl<S: ThreadSpawn> ThreadPoolBuilder<S> {
    /// Builds a pool and starts its threads.
    ///
    /// # Errors
    ///
    /// If the operating system refuses to start a thread, or if
    /// [`use_current_thread`](Self::use_current_thread) is set and the calling thread already
    /// belongs to a pool.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    /// assert_eq!(pool.current_num_threads(), 1);
    /// ```
    pub fn build(self) -> Result<ThreadPool, ThreadPoolBuildError> {
        ThreadPool::build(self)
    }

    /// Builds the global pool, which is otherwise created on first use, and returns when its
    /// threads have started.
    ///
    /// # Errors
    ///
    /// Fails like [`build`](Self::build), and if the global pool already exists.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::parallel::{ThreadPoolBuilder, current_num_threads};
    ///
    /// ThreadPoolBuilder::new().num_threads(3).build_global().unwrap();
    /// assert_eq!(current_num_threads(), 3);
    /// assert!(ThreadPoolBuilder::new().build_global().is_err());
    /// ```
    pub fn build_global(self) -> Result<(), ThreadPoolBuildError> {
        match global::init(|| start(self)) {
            Ok(registry) => {
                registry.wait_until_primed();
                Ok(())
            }
            Err(GlobalPoolError::Exists(_)) => {
                Err(ThreadPoolBuildError { kind: ErrorKind::GlobalPoolAlreadyInitialized })
            }
            Err(GlobalPoolError::Build(why)) => Err(ThreadPoolBuildError::of(why)),
        }
    }
}

/// Starts the threads of a pool with the builder's settings.
pub(super) fn start<S: ThreadSpawn>(
    mut builder: ThreadPoolBuilder<S>,
) -> Result<Arc<Registry>, PoolBuildError> {
    let config = RegistryConfig {
        threads: match builder.num_threads {
            0 => global::default_threads(),
            count => count,
        },
        breadth_first: builder.breadth_first,
        use_current_thread: builder.use_current_thread,
        on_panic: builder.panic_handler.take(),
        on_start: builder.start_handler.take(),
        on_exit: builder.exit_handler.take(),
    };
    Registry::start(config, |unstarted| {
        let name = builder.thread_name.as_mut().map(|name| name(unstarted.index()));
        let stack_size = builder.stack_size;
        let alone = std::marker::PhantomData;
        builder.spawn_handler.spawn(ThreadBuilder { name, stack_size, unstarted, alone })
    })
}

impl<S> ThreadPoolBuilder<S> {
    /// Sets a closure that starts the threads; it must arrange that [`ThreadBuilder::run`] is
    /// called on each of them.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new()
    ///     .spawn_handler(|thread| {
    ///         let mut builder = std::thread::Builder::new();
    ///         if let Some(name) = thread.name() {
    ///             builder = builder.name(name.to_owned());
    ///         }
    ///         builder.spawn(|| thread.run()).map(drop)
    ///     })
    ///     .build()
    ///     .unwrap();
    /// assert_eq!(pool.install(|| 1 + 1), 2);
    /// ```
    pub fn spawn_handler<F>(self, spawn: F) -> ThreadPoolBuilder<CustomSpawn<F>>
    where
        F: FnMut(ThreadBuilder) -> io::Result<()>,
    {
        ThreadPoolBuilder {
            num_threads: self.num_threads,
            use_current_thread: self.use_current_thread,
            panic_handler: self.panic_handler,
            thread_name: self.thread_name,
            stack_size: self.stack_size,
            start_handler: self.start_handler,
            exit_handler: self.exit_handler,
            spawn_handler: CustomSpawn(spawn),
            breadth_first: self.breadth_first,
        }
    }

    /// Sets a closure that returns the name of each thread, given its index.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new()
    ///     .num_threads(1)
    ///     .thread_name(|index| format!("number {index}"))
    ///     .build()
    ///     .unwrap();
    /// pool.install(|| assert_eq!(std::thread::current().name(), Some("number 0")));
    /// ```
    pub fn thread_name<F>(mut self, closure: F) -> Self
    where
        F: FnMut(usize) -> String + 'static,
    {
        self.thread_name = Some(Box::new(closure));
        self
    }

    /// Sets the number of threads. The default, 0, stands for the value of `RAYON_NUM_THREADS`, or
    /// else one thread for each processor.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new().num_threads(5).build().unwrap();
    /// assert_eq!(pool.current_num_threads(), 5);
    /// ```
    pub fn num_threads(mut self, num_threads: usize) -> Self {
        self.num_threads = num_threads;
        self
    }

    /// Makes the calling thread the first thread of the pool, permanently. It runs jobs only while
    /// it is inside one of this module's functions.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new()
    ///     .num_threads(1)
    ///     .use_current_thread()
    ///     .build()
    ///     .unwrap();
    /// let caller = std::thread::current().id();
    /// pool.install(|| assert_eq!(std::thread::current().id(), caller));
    /// ```
    pub fn use_current_thread(mut self) -> Self {
        self.use_current_thread = true;
        self
    }

    /// Sets a function that handles panics that are not propagated to a caller: those of
    /// [`spawn`](super::spawn) and of the start and exit handlers. Without one, and if the function
    /// itself panics, the process aborts.
    ///
    /// # Examples
    ///
    /// ```
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new()
    ///     .panic_handler(move |payload| sender.send(payload.is::<&str>()).unwrap())
    ///     .build()
    ///     .unwrap();
    /// pool.spawn(|| panic!("no thread waits for me"));
    /// assert_eq!(receiver.recv(), Ok(true));
    /// ```
    pub fn panic_handler<H>(mut self, panic_handler: H) -> Self
    where
        H: Fn(Box<dyn Any + Send>) + Send + Sync + 'static,
    {
        self.panic_handler = Some(Box::new(panic_handler));
        self
    }

    /// Sets the stack size of the threads, in bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// let builder = blitz_io::parallel::ThreadPoolBuilder::new().stack_size(8 << 20);
    /// assert!(builder.build().is_ok());
    /// ```
    pub fn stack_size(mut self, stack_size: usize) -> Self {
        self.stack_size = Some(stack_size);
        self
    }

    #[doc(hidden)]
    #[deprecated(note = "use `scope_fifo` and `spawn_fifo` for a similar effect")]
    pub fn breadth_first(mut self) -> Self {
        self.breadth_first = true;
        self
    }

    /// Sets a function that each thread runs when it starts, with its index.
    ///
    /// # Examples
    ///
    /// ```
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let _pool = blitz_io::parallel::ThreadPoolBuilder::new()
    ///     .num_threads(1)
    ///     .start_handler(move |index| sender.send(index).unwrap())
    ///     .build()
    ///     .unwrap();
    /// assert_eq!(receiver.recv(), Ok(0));
    /// ```
    pub fn start_handler<H>(mut self, start_handler: H) -> Self
    where
        H: Fn(usize) + Send + Sync + 'static,
    {
        self.start_handler = Some(Box::new(start_handler));
        self
    }

    /// Sets a function that each thread runs when it exits, with its index.
    ///
    /// # Examples
    ///
    /// ```
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new()
    ///     .num_threads(1)
    ///     .exit_handler(move |index| sender.send(index).unwrap())
    ///     .build()
    ///     .unwrap();
    /// drop(pool);
    /// assert_eq!(receiver.recv(), Ok(0));
    /// ```
    pub fn exit_handler<H>(mut self, exit_handler: H) -> Self
    where
        H: Fn(usize) + Send + Sync + 'static,
    {
        self.exit_handler = Some(Box::new(exit_handler));
        self
    }
}

impl<S> fmt::Debug for ThreadPoolBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Formats a closure as a placeholder, because closures have nothing to show.
        fn shown<T>(closure: &Option<T>) -> Option<fmt::Arguments<'static>> {
            closure.as_ref().map(|_| format_args!("<closure>"))
        }
        f.debug_struct("ThreadPoolBuilder")
            .field("num_threads", &self.num_threads)
            .field("use_current_thread", &self.use_current_thread)
            .field("get_thread_name", &shown(&self.thread_name))
            .field("panic_handler", &shown(&self.panic_handler))
            .field("stack_size", &self.stack_size)
            .field("start_handler", &shown(&self.start_handler))
            .field("exit_handler", &shown(&self.exit_handler))
            .field("breadth_first", &self.breadth_first)
            .finish()
    }
}

/// The error that is returned if a pool could not be built.
///
/// # Examples
///
/// ```
/// let error = blitz_io::parallel::ThreadPoolBuilder::new()
///     .spawn_handler(|_| Err(std::io::Error::other("no thread for you")))
///     .build()
///     .unwrap_err();
/// assert_eq!(error.to_string(), "no thread for you");
/// ```
#[derive(Debug)]
pub struct ThreadPoolBuildError {
    kind: ErrorKind,
}

#[derive(Debug)]
enum ErrorKind {
    GlobalPoolAlreadyInitialized,
    CurrentThreadAlreadyInPool,
    IOError(io::Error),
}

impl ThreadPoolBuildError {
    pub(super) fn of(why: PoolBuildError) -> Self {
        let kind = match why {
            PoolBuildError::AlreadyInPool => ErrorKind::CurrentThreadAlreadyInPool,
            PoolBuildError::NoThread(error) => ErrorKind::IOError(error),
        };
        Self { kind }
    }

    /// Returns Rayon's error messages, because programs compare them.
    fn text(&self) -> &'static str {
        match self.kind {
            ErrorKind::GlobalPoolAlreadyInitialized => {
                "The global thread pool has already been initialized."
            }
            ErrorKind::CurrentThreadAlreadyInPool => {
                "The current thread is already part of another thread pool."
            }
            ErrorKind::IOError(_) => "a thread of the pool could not be started",
        }
    }
}

impl Error for ThreadPoolBuildError {
    #[allow(deprecated, reason = "Rayon has it")]
    fn description(&self) -> &str {
        match &self.kind {
            ErrorKind::IOError(error) => error.description(),
            _ => self.text(),
        }
    }

    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            ErrorKind::IOError(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for ThreadPoolBuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ErrorKind::IOError(error) => error.fmt(f),
            _ => self.text().fmt(f),
        }
    }
}
