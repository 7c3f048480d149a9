//! The extension traits: the methods that programs call, as futures.
//!
//! Each trait is one file, and its futures are another, named after what they do. All
//! futures here borrow, and are not `Unpin`: an async method of a trait would return such a
//! future too, and callers should not come to rely on more.
//!
//! Rejected: async functions in the traits. They would be shorter, but then the compiler
//! has to find out at each use whether their futures are `Send`, and in generic code it
//! cannot. Nor does any future here have a `Drop`, because a caller may use its buffer
//! again while the future that filled it is still in scope.
//!
//! Futures that read or write more than once try again after `ErrorKind::Interrupted`;
//! futures that try only once pass the error on.

use std::{
    io::{self, ErrorKind},
    task::Poll,
};

/// Defines a future that borrows: a struct with the given fields, a `new` that takes all of
/// them, and a marker that makes the struct `!Unpin`.
macro_rules! future {
    (
        $(#[$attribute:meta])*
        $name:ident<$($lifetime:lifetime),+ $(, $parameter:ident)*> {
            $($field:ident: $type:ty),+ $(,)?
        }
    ) => {
        pin_project_lite::pin_project! {
            $(#[$attribute])*
            #[must_use = "futures do nothing unless you `.await` or poll them"]
            #[derive(Debug)]
            pub struct $name<$($lifetime),+ $(, $parameter: ?Sized)*> {
                $($field: $type,)+
                #[pin]
                pinned: std::marker::PhantomPinned,
            }
        }

        impl<$($lifetime),+ $(, $parameter: ?Sized)*> $name<$($lifetime),+ $(, $parameter)*> {
            #[inline]
            pub(super) fn new($($field: $type),+) -> Self {
                Self { $($field,)+ pinned: std::marker::PhantomPinned }
            }
        }
    };
}

mod read_ext;
mod read_futures;
mod read_to_end;
mod chain;
mod take;
mod number;

mod buf_read_ext;
mod read_until;
mod lines;
mod split;

mod write_ext;
mod write_futures;

mod seek_ext;

pub use self::{
    buf_read_ext::AsyncBufReadExt, chain::Chain, lines::Lines, read_ext::AsyncReadExt,
    seek_ext::AsyncSeekExt, split::Split, take::Take, write_ext::AsyncWriteExt,
};

/// Repeats `attempt` until it returns anything but `ErrorKind::Interrupted`.
#[inline]
fn retry_interrupted<T>(mut attempt: impl FnMut() -> Poll<io::Result<T>>) -> Poll<io::Result<T>> {
    loop {
        match attempt() {
            Poll::Ready(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
            polled => return polled,
        }
    }
}
