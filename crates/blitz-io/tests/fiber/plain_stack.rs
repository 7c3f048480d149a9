//! Provides a stack for coroutines of the tests that show why fibers are as they are.

use std::num::NonZeroUsize;

use corosensei::stack;

/// A stack without a guard page; it must be larger than what runs on it needs.
pub(crate) struct PlainStack(pub(crate) Box<[u128]>);

// SAFETY: the memory belongs to the stack and does not move. There is no guard page, so each test
// makes its stack larger than what the calls on it need.
unsafe impl stack::Stack for PlainStack {
    fn base(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.0.as_ptr_range().end.addr()).unwrap()
    }

    fn limit(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.0.as_ptr().addr()).unwrap()
    }
}
