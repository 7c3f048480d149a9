//! Streams of the connections that listeners accept.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;

use super::impl_inner_access;
use crate::net::{TcpListener, TcpStream};
#[cfg(unix)]
use crate::net::{UnixListener, UnixStream};

/// A stream of the connections that a TCP listener accepts. It never ends: an error is an item, and
/// the next item may be a connection again.
///
/// # Examples
///
/// ```
/// use blitz_io::{
///     net::{TcpListener, TcpStream},
///     stream::{StreamExt, wrappers::TcpListenerStream},
/// };
///
/// # blitz_io::run(async {
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let client = TcpStream::connect(listener.local_addr()?).await?;
/// let mut accepted = TcpListenerStream::new(listener);
/// let server = accepted.next().await.expect("it does not end")?;
/// assert_eq!(server.peer_addr()?, client.local_addr()?);
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct TcpListenerStream {
    inner: TcpListener,
}

/// A stream of the connections that a Unix listener accepts. It never ends: an error is an item,
/// and the next item may be a connection again.
///
/// # Examples
///
/// ```
/// use blitz_io::{
///     net::{UnixListener, UnixStream},
///     stream::{StreamExt, wrappers::UnixListenerStream},
/// };
///
/// # blitz_io::run(async {
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("socket");
/// let mut accepted = UnixListenerStream::new(UnixListener::bind(&path)?);
/// let client = UnixStream::connect(&path).await?;
/// accepted.next().await.expect("it does not end")?;
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[cfg(unix)]
#[derive(Debug)]
pub struct UnixListenerStream {
    inner: UnixListener,
}

macro_rules! listener_stream {
    ($(#[$cfg:meta])* $name:ident, $listener:ident, $stream:ident, $bind:literal) => {
        $(#[$cfg])*
        impl $name {
            /// Creates a stream from a listener.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("use blitz_io::{net::", stringify!($listener), ", stream::wrappers::", stringify!($name), "};")]
            ///
            /// # blitz_io::run(async {
            /// # let folder = tempfile::tempdir()?;
            #[doc = concat!("let listener = ", $bind, ";")]
            #[doc = concat!("let accepted = ", stringify!($name), "::new(listener);")]
            /// # Ok::<(), std::io::Error>(())
            /// # }).unwrap();
            /// ```
            pub fn new(listener: $listener) -> Self {
                Self { inner: listener }
            }

            /// Returns the listener.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("use blitz_io::{net::", stringify!($listener), ", stream::wrappers::", stringify!($name), "};")]
            ///
            /// # blitz_io::run(async {
            /// # let folder = tempfile::tempdir()?;
            #[doc = concat!("let accepted = ", stringify!($name), "::new(", $bind, ");")]
            /// println!("it listened at {:?}", accepted.into_inner().local_addr()?);
            /// # Ok::<(), std::io::Error>(())
            /// # }).unwrap();
            /// ```
            pub fn into_inner(self) -> $listener {
                self.inner
            }
        }

        $(#[$cfg])*
        impl Stream for $name {
            type Item = io::Result<$stream>;

            fn poll_next(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
            ) -> Poll<Option<io::Result<$stream>>> {
                self.inner.poll_accept(cx).map(|accepted| Some(accepted.map(|(stream, _)| stream)))
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                (usize::MAX, None)
            }
        }

        $(#[$cfg])*
        impl_inner_access! {
            <> $name: $listener;
        }
    };
}

listener_stream!(
    TcpListenerStream,
    TcpListener,
    TcpStream,
    "TcpListener::bind(\"127.0.0.1:0\").await?"
);
listener_stream!(
    #[cfg(unix)]
    UnixListenerStream,
    UnixListener,
    UnixStream,
    "UnixListener::bind(folder.path().join(\"socket\"))?"
);
