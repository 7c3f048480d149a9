//! Locks, channels and the other primitives of `sync`.

#[cfg(feature = "sync")]
mod acting_waker;
#[cfg(feature = "sync")]
mod auto_traits;
#[cfg(feature = "sync")]
mod barrier;
#[cfg(feature = "sync")]
mod barrier_rounds;
#[cfg(feature = "sync")]
mod beyond_tokio;
#[cfg(feature = "sync")]
mod blocking;
#[cfg(feature = "sync")]
mod broadcast;
#[cfg(feature = "sync")]
mod broadcast_model;
#[cfg(feature = "sync")]
mod cancel_safety;
#[cfg(feature = "sync")]
mod cancellation_token;
#[cfg(feature = "sync")]
mod cancellation_tree;
#[cfg(feature = "sync")]
mod coop;
#[cfg(feature = "sync")]
mod cut;
#[cfg(feature = "sync")]
mod debug;
#[cfg(feature = "sync")]
mod hostile;
#[cfg(feature = "sync")]
mod impls;
mod lock_failures;
#[cfg(feature = "sync")]
mod mpsc_bounded;
#[cfg(feature = "sync")]
mod mpsc_model;
#[cfg(feature = "sync")]
mod mpsc_unbounded;
#[cfg(feature = "sync")]
mod mutex;
#[cfg(feature = "sync")]
mod notify;
#[cfg(feature = "sync")]
mod notify_order;
#[cfg(feature = "sync")]
mod once;
#[cfg(feature = "sync")]
mod once_cell;
#[cfg(feature = "sync")]
mod oneshot;
#[cfg(feature = "sync")]
mod oneshot_model;
#[cfg(feature = "sync")]
mod reentrant;
#[cfg(feature = "sync")]
mod rwlock;
#[cfg(feature = "sync")]
mod semaphore;
#[cfg(feature = "sync")]
mod semaphore_model;
#[cfg(feature = "sync")]
mod set_once;
#[cfg(feature = "sync")]
mod signatures;
#[cfg(feature = "sync")]
mod stress;
#[cfg(feature = "sync")]
mod waker_calls;
#[cfg(feature = "sync")]
mod watch;
#[cfg(feature = "sync")]
mod watch_model;
