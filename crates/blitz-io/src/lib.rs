//! blitz-io
mod engine;

#[doc(hidden)]
pub mod runtime {
    //! Temporary: the real module replaces this.
    pub mod machine;
}
