//! Streams: sequences of values that become available over time and are awaited one by one.
//!
//! [`Stream`] is the trait of `futures-core`, so everything here works together with
//! `futures-util`, `tokio-stream` and every other crate that uses that trait. [`StreamExt`]
//! provides the methods, with the names and semantics of `tokio-stream`; [`wrappers`] turns
//! receivers, intervals, listeners and lines into streams; [`StreamMap`] combines many streams into
//! one; [`iter`], [`once`], [`empty`] and [`pending`] create simple streams.
//!
//! ```
//! use blitz_io::{
//!     channel::mpsc,
//!     stream::{StreamExt, wrappers::ReceiverStream},
//! };
//!
//! # blitz_io::run(async {
//! let (sender, receiver) = mpsc::channel(8);
//! blitz_io::spawn(async move {
//!     for n in 0..10 {
//!         sender.send(n).await.unwrap();
//!     }
//! });
//! let squares = ReceiverStream::new(receiver).filter(|n| n % 2 == 1).map(|n| n * n);
//! assert_eq!(squares.collect::<Vec<_>>().await, [1, 9, 25, 49, 81]);
//! # });
//! ```
//!
//! # Ends
//!
//! By the contract of its trait, a stream that has returned `None` may do anything when it is
//! polled again. In this module, the streams of `fuse`, `take`, `take_while`, `map_while`, `merge`,
//! `then`, `peekable`, `timeout`, `timeout_repeating`, `chunks_timeout`, [`iter`] of a fused
//! iterator, [`once`], [`empty`] and all [`wrappers`] of receivers keep returning `None`. The
//! others behave like the stream that they wrap. An empty [`StreamMap`] may be filled again.
//!
//! # Cancel safety
//!
//! A stream keeps its own state, so dropping the future of [`next`](StreamExt::next) loses nothing:
//! no item, and no progress of `then` or `chunks_timeout`, because that is stored in the stream.
//! [`fold`](StreamExt::fold) and [`collect`](StreamExt::collect) own their stream: dropping them
//! loses the items that they have taken. Dropping [`all`](StreamExt::all) or
//! [`any`](StreamExt::any) loses the items that they have tested.
//!
//! # Turns
//!
//! Each item costs a unit of the task's [budget], whichever crate produced it. So even a foreign
//! stream that is always ready lets other tasks run, and so does a `filter` that rejects every
//! item.
//!
//! [budget]: crate::task::coop
#![cfg_attr(not(feature = "rt"), doc = "\n[budget]: #")]
#![forbid(unsafe_code)]

mod coop;
mod ext;
mod next;
mod sources;
mod fuse;
mod maps;
mod filters;
mod chain_merge;
mod folds;
#[cfg(feature = "time")]
mod timeouts;
mod stream_map;
pub mod wrappers;

pub use futures_core::Stream;

#[cfg(feature = "time")]
pub use self::timeouts::{ChunksTimeout, Throttle, Timeout, TimeoutRepeating};
pub use self::{
    chain_merge::{Chain, Merge},
    ext::StreamExt,
    filters::{Filter, FilterMap, Skip, SkipWhile, Take, TakeWhile},
    folds::{AllFuture, AnyFuture, Collect, FoldFuture, FromStream},
    fuse::Fuse,
    maps::{Map, MapWhile, Then},
    next::{Next, Peekable, TryNext},
    sources::{Empty, Iter, Once, Pending, empty, iter, once, pending},
    stream_map::StreamMap,
};
use crate::future::any_index;

/// Adds the number of items that are already available to a size hint.
fn add_to_hint((least, most): (usize, Option<usize>), there: usize) -> (usize, Option<usize>) {
    (least.saturating_add(there), most.and_then(|most| most.checked_add(there)))
}

/// Implements `Debug` for types with a stream and other fields that cannot be formatted.
macro_rules! debug_of_stream {
    ($($name:ident<S $(, $param:ident)*>),*) => {$(
        impl<S: std::fmt::Debug $(, $param)*> std::fmt::Debug for $name<S $(, $param)*> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).field("stream", &self.stream).finish_non_exhaustive()
            }
        }
    )*};
}
use debug_of_stream;
