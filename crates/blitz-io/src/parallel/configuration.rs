//! Rayon's names from before the builder: hidden, and there for those who still use them.

#![allow(deprecated, reason = "they are there for those who still use them")]

use std::{any::Any, error::Error, fmt};

use super::{ThreadPool, ThreadPoolBuilder};

/// The builder's elder name.
#[deprecated(note = "use `ThreadPoolBuilder`")]
#[derive(Default)]
pub struct Configuration {
    builder: ThreadPoolBuilder,
}

impl Configuration {
    /// Without wishes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a pool.
    pub fn build(self) -> Result<ThreadPool, Box<dyn Error + 'static>> {
        self.builder.build().map_err(Box::from)
    }

    /// As that of the builder.
    pub fn thread_name<F: FnMut(usize) -> String + 'static>(self, closure: F) -> Self {
        Self { builder: self.builder.thread_name(closure) }
    }

    /// As that of the builder.
    pub fn num_threads(self, count: usize) -> Self {
        Self { builder: self.builder.num_threads(count) }
    }

    /// As that of the builder.
    pub fn panic_handler<H: Fn(Box<dyn Any + Send>) + Send + Sync + 'static>(
        self,
        handler: H,
    ) -> Self {
        Self { builder: self.builder.panic_handler(handler) }
    }

    /// As that of the builder.
    pub fn stack_size(self, size: usize) -> Self {
        Self { builder: self.builder.stack_size(size) }
    }

    /// As that of the builder.
    pub fn breadth_first(self) -> Self {
        Self { builder: self.builder.breadth_first() }
    }

    /// As that of the builder.
    pub fn start_handler<H: Fn(usize) + Send + Sync + 'static>(self, handler: H) -> Self {
        Self { builder: self.builder.start_handler(handler) }
    }

    /// As that of the builder.
    pub fn exit_handler<H: Fn(usize) + Send + Sync + 'static>(self, handler: H) -> Self {
        Self { builder: self.builder.exit_handler(handler) }
    }
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.builder.fmt(f)
    }
}

/// Makes the global pool.
#[deprecated(note = "use `ThreadPoolBuilder::build_global`")]
pub fn initialize(config: Configuration) -> Result<(), Box<dyn Error>> {
    config.builder.build_global().map_err(Box::from)
}
