//! The part that all wrappers have in common: construction and access to the inner value.

/// Declares a wrapper around a value of type `T`, which is pinned with it.
macro_rules! wrapper {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }) => {
        pin_project_lite::pin_project! {
            $(#[$meta])*
            #[derive(Debug, Clone, Default)]
            pub struct $name<T> {
                #[pin]
                inner: T,
                $($(#[$field_meta])* $field: $type,)*
            }
        }

        impl<T> $name<T> {
            /// Wraps a value.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("use blitz_io_compat::", stringify!($name), ";")]
            ///
            #[doc = concat!("let wrapped = ", stringify!($name), "::new(&b\"abc\"[..]);")]
            /// assert_eq!(wrapped.into_inner(), b"abc");
            /// ```
            #[inline]
            pub fn new(inner: T) -> Self {
                Self { inner, $($field: <$type>::default(),)* }
            }

            /// Returns a reference to the inner value.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("use blitz_io_compat::", stringify!($name), ";")]
            ///
            #[doc = concat!("assert_eq!(", stringify!($name), "::new(7).get_ref(), &7);")]
            /// ```
            #[inline]
            pub fn get_ref(&self) -> &T {
                &self.inner
            }

            /// Returns a mutable reference to the inner value.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("use blitz_io_compat::", stringify!($name), ";")]
            ///
            #[doc = concat!("let mut wrapped = ", stringify!($name), "::new(7);")]
            /// *wrapped.get_mut() += 1;
            /// assert_eq!(wrapped.into_inner(), 8);
            /// ```
            #[inline]
            pub fn get_mut(&mut self) -> &mut T {
                &mut self.inner
            }

            /// Returns a pinned mutable reference to the inner value.
            ///
            /// # Examples
            ///
            /// ```
            /// use std::pin::pin;
            #[doc = concat!("use blitz_io_compat::", stringify!($name), ";")]
            ///
            #[doc = concat!("let mut wrapped = pin!(", stringify!($name), "::new(7));")]
            /// wrapped.as_mut().get_pin_mut().set(8);
            /// assert_eq!(wrapped.get_ref(), &8);
            /// ```
            #[inline]
            pub fn get_pin_mut(self: std::pin::Pin<&mut Self>) -> std::pin::Pin<&mut T> {
                self.project().inner
            }

            /// Unwraps the inner value.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("use blitz_io_compat::", stringify!($name), ";")]
            ///
            #[doc = concat!("assert_eq!(", stringify!($name), "::new(7).into_inner(), 7);")]
            /// ```
            #[inline]
            pub fn into_inner(self) -> T {
                self.inner
            }
        }
    };
}
