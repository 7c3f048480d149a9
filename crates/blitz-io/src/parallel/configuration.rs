//! Rayon's deprecated names for the builder, hidden from the documentation.

#![allow(deprecated, reason = "kept for programs that still use them")]

use std::{any::Any, error::Error, fmt};

use super::{ThreadPool, ThreadPoolBuilder};

/// The deprecated name of [`ThreadPoolBuilder`].
#[deprecated(note = "use `ThreadPoolBuilder`")]
#[derive(Default)]
pub struct Configuration {
    builder: ThreadPoolBuilder,
}

impl Configuration {
    /// Creates a configuration with default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Builds a thread pool.
    pub fn build(self) -> Result<ThreadPool, Box<dyn Error + 'static>> {
        self.builder.build().map_err(Box::from)
    }

    /// Sets the names of the threads; see [`ThreadPoolBuilder::thread_name`].
    pub fn thread_name<F: FnMut(usize) -> String + 'static>(self, closure: F) -> Self {
        Self { builder: self.builder.thread_name(closure) }
    }

    /// Sets the number of threads; see [`ThreadPoolBuilder::num_threads`].
    pub fn num_threads(self, count: usize) -> Self {
        Self { builder: self.builder.num_threads(count) }
    }

    /// Sets the panic handler; see [`ThreadPoolBuilder::panic_handler`].
    pub fn panic_handler<H: Fn(Box<dyn Any + Send>) + Send + Sync + 'static>(
        self,
        handler: H,
    ) -> Self {
        Self { builder: self.builder.panic_handler(handler) }
    }

    /// Sets the stack size of the threads; see [`ThreadPoolBuilder::stack_size`].
    pub fn stack_size(self, size: usize) -> Self {
        Self { builder: self.builder.stack_size(size) }
    }

    /// Makes each thread run the oldest of its own jobs first.
    pub fn breadth_first(self) -> Self {
        Self { builder: self.builder.breadth_first() }
    }

    /// Sets a function that each thread runs when it starts; see
    /// [`ThreadPoolBuilder::start_handler`].
    pub fn start_handler<H: Fn(usize) + Send + Sync + 'static>(self, handler: H) -> Self {
        Self { builder: self.builder.start_handler(handler) }
    }

    /// Sets a function that each thread runs when it exits; see
    /// [`ThreadPoolBuilder::exit_handler`].
    pub fn exit_handler<H: Fn(usize) + Send + Sync + 'static>(self, handler: H) -> Self {
        Self { builder: self.builder.exit_handler(handler) }
    }
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.builder.fmt(f)
    }
}

/// Builds the global thread pool.
#[deprecated(note = "use `ThreadPoolBuilder::build_global`")]
pub fn initialize(config: Configuration) -> Result<(), Box<dyn Error>> {
    config.builder.build_global().map_err(Box::from)
}
