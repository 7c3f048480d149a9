//! What the user gave to be awaited, in a wrapping that says what it must be.
//!
//! The expansions wrap the user's expressions before they do anything else with
//! them, so that the compiler finds fault with the expression, at its place in the
//! user's file, and not with the macro. They are constructors and not functions,
//! because a temporary in the arguments of a constructor lives as long as the
//! variable: `select! { _ = &mut future() => … }`.

use std::{fmt, future::IntoFuture, marker::PhantomData};

/// Something that becomes a future.
pub struct Awaited<F: IntoFuture>(pub F);

impl<F: IntoFuture> IntoFuture for Awaited<F> {
    type Output = F::Output;
    type IntoFuture = F::IntoFuture;

    #[inline]
    fn into_future(self) -> F::IntoFuture {
        self.0.into_future()
    }
}

impl<F: IntoFuture> fmt::Debug for Awaited<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Awaited")
    }
}

/// Something that becomes a future of a `Result`.
// The type of error comes first, so that the future is held against it.
pub struct Fallible<F, T, E>(pub PhantomData<E>, pub F, pub PhantomData<T>)
where
    F: IntoFuture<Output = Result<T, E>>;

impl<T, E, F: IntoFuture<Output = Result<T, E>>> IntoFuture for Fallible<F, T, E> {
    type Output = Result<T, E>;
    type IntoFuture = F::IntoFuture;

    #[inline]
    fn into_future(self) -> F::IntoFuture {
        self.1.into_future()
    }
}

impl<T, E, F: IntoFuture<Output = Result<T, E>>> fmt::Debug for Fallible<F, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fallible")
    }
}
