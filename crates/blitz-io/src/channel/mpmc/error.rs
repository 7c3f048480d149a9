//! Errors of sending and receiving, which are those of [`mpsc`](crate::channel::mpsc).
//!
//! ```
//! use blitz_io::channel::mpmc::{self, error::{SendError, TryRecvError, TrySendError}};
//!
//! let (tx, rx) = mpmc::channel(1);
//! assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
//! tx.try_send(1).unwrap();
//! assert_eq!(tx.try_send(2), Err(TrySendError::Full(2)));
//! rx.close();
//! assert_eq!(tx.try_send(3), Err(TrySendError::Closed(3)));
//! assert_eq!(tx.blocking_send(4), Err(SendError(4)));
//! ```

#[doc(inline)]
pub use crate::channel::mpsc::error::{SendError, TryRecvError, TrySendError};
