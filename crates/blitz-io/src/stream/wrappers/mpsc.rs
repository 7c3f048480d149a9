//! Streams of `mpsc` receivers.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;

use super::impl_inner_access;
use crate::channel::mpsc::{Receiver, UnboundedReceiver};

/// A stream of the messages of a bounded channel, which ends when all senders are dropped or the
/// channel is closed.
///
/// # Examples
///
/// ```
/// use blitz_io::{channel::mpsc, stream::{StreamExt, wrappers::ReceiverStream}};
///
/// # blitz_io::run(async {
/// let (sender, receiver) = mpsc::channel(2);
/// sender.send(1).await.unwrap();
/// drop(sender);
/// assert_eq!(ReceiverStream::new(receiver).collect::<Vec<_>>().await, [1]);
/// # });
/// ```
#[derive(Debug)]
pub struct ReceiverStream<T> {
    inner: Receiver<T>,
}

/// A stream of the messages of an unbounded channel, which ends when all senders are dropped or the
/// channel is closed.
///
/// # Examples
///
/// ```
/// use blitz_io::{channel::mpsc, stream::{StreamExt, wrappers::UnboundedReceiverStream}};
///
/// # blitz_io::run(async {
/// let (sender, receiver) = mpsc::unbounded_channel();
/// sender.send(1).unwrap();
/// drop(sender);
/// assert_eq!(UnboundedReceiverStream::new(receiver).collect::<Vec<_>>().await, [1]);
/// # });
/// ```
#[derive(Debug)]
pub struct UnboundedReceiverStream<T> {
    inner: UnboundedReceiver<T>,
}

macro_rules! receiver_stream {
    ($name:ident, $receiver:ident, $channel:literal) => {
        impl<T> $name<T> {
            /// Creates a stream from a receiver.
            ///
            /// # Examples
            ///
            /// ```
            /// use blitz_io::{channel::mpsc, stream::wrappers::*};
            ///
            #[doc = concat!("let (_sender, receiver) = mpsc::", $channel, ";")]
            #[doc = concat!("let stream = ", stringify!($name), "::new(receiver);")]
            /// ```
            pub fn new(recv: $receiver<T>) -> Self {
                Self { inner: recv }
            }

            /// Returns the receiver.
            ///
            /// # Examples
            ///
            /// ```
            /// use blitz_io::{channel::mpsc, stream::wrappers::*};
            ///
            #[doc = concat!("let (sender, receiver) = mpsc::", $channel, ";")]
            #[doc = concat!("let receiver = ", stringify!($name), "::new(receiver).into_inner();")]
            /// assert!(!sender.is_closed());
            /// # drop(receiver);
            /// ```
            pub fn into_inner(self) -> $receiver<T> {
                self.inner
            }

            /// Closes the channel: sending fails from now on, and the stream ends after it has
            /// returned the messages that are still in the channel.
            ///
            /// # Examples
            ///
            /// ```
            /// use blitz_io::{channel::mpsc, stream::{StreamExt, wrappers::*}};
            ///
            /// # blitz_io::run(async {
            #[doc = concat!("let (_sender, receiver) = mpsc::", $channel, ";")]
            #[doc = concat!("let mut stream = ", stringify!($name), "::new(receiver);")]
            /// stream.close();
            /// assert_eq!(stream.next().await, None);
            /// # });
            /// ```
            pub fn close(&mut self) {
                self.inner.close();
            }
        }

        impl<T> Stream for $name<T> {
            type Item = T;

            fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
                self.inner.poll_recv(cx)
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                // No upper bound even for a closed channel, because a holder of a permit may still
                // send.
                (self.inner.len(), None)
            }
        }
    };
}

receiver_stream!(ReceiverStream, Receiver, "channel::<u8>(8)");
receiver_stream!(UnboundedReceiverStream, UnboundedReceiver, "unbounded_channel::<u8>()");

impl_inner_access! {
    <T> ReceiverStream: Receiver<T>;
    <T> UnboundedReceiverStream: UnboundedReceiver<T>;
}
