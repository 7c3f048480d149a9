//! Streams that wrap types of this runtime: receivers, intervals, listeners, lines, signals,
//! directories.
//!
//! Each wrapper stores the value that it was created from. Except for `BroadcastStream` and
//! `WatchStream`, `into_inner` returns that value, and `as_ref` and `as_mut` borrow it. Waiting
//! for an item is cancel safe.

#[cfg(feature = "sync")]
mod mpsc;
#[cfg(feature = "sync")]
mod broadcast_watch;
#[cfg(feature = "time")]
mod interval;
#[cfg(feature = "net")]
mod listeners;
#[cfg(feature = "io-util")]
mod lines;
#[cfg(any(feature = "fs", all(feature = "signal", unix)))]
mod system;

#[cfg(feature = "time")]
pub use self::interval::IntervalStream;
#[cfg(feature = "io-util")]
pub use self::lines::{LinesStream, SplitStream};
#[cfg(feature = "net")]
pub use self::listeners::TcpListenerStream;
#[cfg(all(feature = "net", unix))]
pub use self::listeners::UnixListenerStream;
#[cfg(feature = "fs")]
pub use self::system::ReadDirStream;
#[cfg(all(feature = "signal", unix))]
pub use self::system::SignalStream;
#[cfg(feature = "sync")]
pub use self::{
    broadcast_watch::{BroadcastStream, WatchStream},
    mpsc::{ReceiverStream, UnboundedReceiverStream},
};

/// Error types of the wrappers.
#[cfg(feature = "sync")]
pub mod errors {
    pub use super::broadcast_watch::BroadcastStreamRecvError;
}

/// Implements `AsRef`, `AsMut` and `From` for a wrapper with the field `inner`.
#[cfg(any(feature = "sync", feature = "time", feature = "net", feature = "fs"))]
macro_rules! impl_inner_access {
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
use impl_inner_access;
