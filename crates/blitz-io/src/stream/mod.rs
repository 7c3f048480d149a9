//! Streams: values that come one after the other, each to be awaited.
//!
//! [`Stream`] is the trait of `futures-core`, so everything here works beside `futures-util`,
//! `tokio-stream` and whatever else knows that trait. [`StreamExt`] has the methods, with the
//! names and semantics of `tokio-stream`; [`wrappers`] makes streams of receivers, intervals,
//! listeners and lines; [`StreamMap`] is many streams as one; [`iter`], [`once`], [`empty`] and
//! [`pending`] are for the beginning.
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
//! A stream that has said `None` may, by its trait, do anything when it is polled again. Here:
//! `fuse`, `take`, `take_while`, `map_while`, `merge`, `then`, `peekable`, `timeout`,
//! `timeout_repeating`, `chunks_timeout`, [`iter`] of a fused iterator, [`once`], [`empty`] and
//! all [`wrappers`] of receivers stay ended. The others do as the stream behind them does. A
//! [`StreamMap`] that is empty may be filled again.
//!
//! # Cancel safety
//!
//! A stream keeps its own state, so dropping the future of [`next`](StreamExt::next) loses
//! nothing: not an item, and not what `then` or `chunks_timeout` have begun, which is in the
//! stream. [`fold`](StreamExt::fold) and [`collect`](StreamExt::collect) own their stream: what
//! they have taken is lost with them. [`all`](StreamExt::all) and [`any`](StreamExt::any) lose
//! which items they have seen.
//!
//! # Turns
//!
//! An item costs a unit of the task's [budget], whoever made it: also a foreign stream that is
//! always ready lets others run, and so does a `filter` that lets nothing through.
//!
//! [budget]: crate::task::coop
#![cfg_attr(not(feature = "rt"), doc = "\n[budget]: #")]
#![forbid(unsafe_code)]

mod turn;
mod ext;
mod next;
mod make;
mod fuse;
mod mapping;
mod choosing;
mod joining;
mod folding;
#[cfg(feature = "time")]
mod timing;
mod stream_map;
pub mod wrappers;

pub use futures_core::Stream;

#[cfg(feature = "time")]
pub use self::timing::{ChunksTimeout, Throttle, Timeout, TimeoutRepeating};
pub use self::{
    choosing::{Filter, FilterMap, Skip, SkipWhile, Take, TakeWhile},
    ext::StreamExt,
    folding::{AllFuture, AnyFuture, Collect, FoldFuture, FromStream},
    fuse::Fuse,
    joining::{Chain, Merge},
    make::{Empty, Iter, Once, Pending, empty, iter, once, pending},
    mapping::{Map, MapWhile, Then},
    next::{Next, Peekable, TryNext},
    stream_map::StreamMap,
};
use crate::future::anyone;

/// A hint, and so many items that are there already.
fn more((least, most): (usize, Option<usize>), there: usize) -> (usize, Option<usize>) {
    (least.saturating_add(there), most.and_then(|most| most.checked_add(there)))
}

/// `Debug` for what has a stream and something that cannot be shown.
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
