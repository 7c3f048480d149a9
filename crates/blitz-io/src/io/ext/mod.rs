//! The extension traits: what programs call, as futures.
//!
//! A trait is one file, and its futures are another, named by what they do. All futures
//! here borrow, and are not `Unpin`: an async method of a trait would answer with such a
//! future too, and callers should not come to rely on more.
//!
//! Rejected: async functions in the traits. They would be shorter, but whether their
//! futures are `Send` is then for the compiler to find out at each use, and in generic code
//! it cannot. Nor does any future here have a `Drop`: a caller may use its buffer again
//! while the future that filled it is still in scope.
//!
//! What is interrupted (`ErrorKind::Interrupted`) is tried again by whatever reads or
//! writes more than once; what tries only once passes the error on.

use std::{
    io::{self, ErrorKind},
    task::Poll,
};

/// A future that borrows: its fields, a `new` with all of them, and that it stays where it
/// is once polled.
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
mod reading;
mod to_end;
mod chain;
mod take;
mod number;

mod buf_read_ext;
mod until;
mod lines;
mod split;

mod write_ext;
mod writing;

mod seek_ext;

pub use self::{
    buf_read_ext::AsyncBufReadExt, chain::Chain, lines::Lines, read_ext::AsyncReadExt,
    seek_ext::AsyncSeekExt, split::Split, take::Take, write_ext::AsyncWriteExt,
};

/// Tries until the answer is not that it was interrupted.
#[inline]
fn uninterrupted<T>(mut attempt: impl FnMut() -> Poll<io::Result<T>>) -> Poll<io::Result<T>> {
    loop {
        match attempt() {
            Poll::Ready(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
            polled => return polled,
        }
    }
}
