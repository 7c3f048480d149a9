//! Wrappers for the user's expressions that state what the expressions must be.
//!
//! The expansions wrap the user's expressions before they do anything else with them, so
//! that the compiler reports an error in the expression, at its place in the user's file,
//! and not in the macro. The wrappers are used as constructors and not as functions,
//! because a temporary in the arguments of a constructor lives as long as the variable:
//! `select! { _ = &mut future() => … }`.

use std::{fmt, future::IntoFuture, marker::PhantomData};

/// A value that can be converted into a future.
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

/// A value that can be converted into a future of a `Result`.
// The error type comes first, so that the compiler checks the future against it.
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
