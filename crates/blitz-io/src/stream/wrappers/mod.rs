//! Streams of what this runtime has: receivers, intervals, listeners, lines, signals, directories.
//!
//! Each keeps what it was made of, and gives it back by `into_inner`, or lends it by `as_ref`
//! and `as_mut`. Waiting for an item of one is cancel safe.

#[cfg(feature = "sync")]
mod receivers;
#[cfg(feature = "sync")]
mod waiting;
#[cfg(feature = "time")]
mod ticks;
#[cfg(feature = "net")]
mod listeners;
#[cfg(feature = "io-util")]
mod pieces;
#[cfg(any(feature = "fs", all(feature = "signal", unix)))]
mod entries;

#[cfg(feature = "fs")]
pub use self::entries::ReadDirStream;
#[cfg(all(feature = "signal", unix))]
pub use self::entries::SignalStream;
#[cfg(feature = "net")]
pub use self::listeners::TcpListenerStream;
#[cfg(all(feature = "net", unix))]
pub use self::listeners::UnixListenerStream;
#[cfg(feature = "io-util")]
pub use self::pieces::{LinesStream, SplitStream};
#[cfg(feature = "time")]
pub use self::ticks::IntervalStream;
#[cfg(feature = "sync")]
pub use self::{
    receivers::{ReceiverStream, UnboundedReceiverStream},
    waiting::{BroadcastStream, WatchStream},
};

/// Errors of streams.
#[cfg(feature = "sync")]
pub mod errors {
    pub use super::waiting::BroadcastStreamRecvError;
}

/// `as_ref`, `as_mut` and `From`, for a wrapper with the field `inner`.
#[cfg(any(feature = "sync", feature = "time", feature = "net", feature = "fs"))]
macro_rules! lends {
    ($(<$($param:ident),*> $name:ident: $inner:ty;)*) => {$(
        impl<$($param),*> AsRef<$inner> for $name<$($param),*> {
            fn as_ref(&self) -> &$inner {
                &self.inner
            }
        }

        impl<$($param),*> AsMut<$inner> for $name<$($param),*> {
            fn as_mut(&mut self) -> &mut $inner {
                &mut self.inner
            }
        }

        impl<$($param),*> From<$inner> for $name<$($param),*> {
            fn from(inner: $inner) -> Self {
                Self::new(inner)
            }
        }
    )*};
}
#[cfg(any(feature = "sync", feature = "time", feature = "net", feature = "fs"))]
use lends;
