//! `pin!`: pins variables on the stack, by name.

/// Pins variables to the stack, each under its own name.
///
/// The macro takes names of variables, or `let` statements that declare them.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// let future = async { 1 };
/// blitz_io::pin!(future);
/// assert_eq!((&mut future).await, 1);
///
/// blitz_io::pin! {
///     let two = async { 2 };
/// }
/// assert_eq!(two.await, 2);
/// # });
/// ```
#[macro_export]
macro_rules! pin {
    ($($name:ident),* $(,)?) => { $(
        let mut $name = ::core::pin::pin!($name);
    )* };
    ($( let $name:ident = $value:expr; )*) => { $(
        let mut $name = ::core::pin::pin!($value);
    )* };
}
