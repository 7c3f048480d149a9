//! Primitives that the contenders have under different names, or that only one of them has.
//!
//! Each module has the same functions; the rows call them as `own::…`.

/// Tokio's side. Tokio has no channel with many receivers: its users write a receiver behind a
/// lock; the crate that they use instead has a row of its own, as `mpmc_of_others`.
pub(crate) mod tokio {
    use std::sync::Arc;

    use tokio::sync::{Mutex, mpsc, oneshot};

    pub(crate) type Sender = mpsc::Sender<u64>;

    #[derive(Clone)]
    pub(crate) struct Receiver(Arc<Mutex<mpsc::Receiver<u64>>>);

    pub(crate) fn mpmc(capacity: usize) -> (Sender, Receiver) {
        let (sender, receiver) = mpsc::channel(capacity);
        (sender, Receiver(Arc::new(Mutex::new(receiver))))
    }

    pub(crate) async fn send(sender: &Sender, value: u64) {
        sender.send(value).await.expect("the receivers are there");
    }

    pub(crate) async fn recv(receiver: &Receiver) -> Option<u64> {
        receiver.0.lock().await.recv().await
    }

    pub(crate) use super::others as mpmc_of_others;

    /// Uses Tokio's only oneshot channel, which allocates.
    pub(crate) fn oneshot_without_allocation(value: u64) -> u64 {
        let (sender, receiver) = oneshot::channel();
        sender.send(value).expect("the receiver is there");
        crate::by_hand::now(receiver).expect("it was sent")
    }
}

#[cfg(feature = "blitz")]
pub(crate) mod blitz {
    use blitz_io::channel::{mpmc, oneshot};

    pub(crate) type Sender = mpmc::Sender<u64>;
    pub(crate) type Receiver = mpmc::Receiver<u64>;

    pub(crate) fn mpmc(capacity: usize) -> (Sender, Receiver) {
        mpmc::channel(capacity)
    }

    pub(crate) async fn send(sender: &Sender, value: u64) {
        sender.send(value).await.expect("the receivers are there");
    }

    pub(crate) async fn recv(receiver: &Receiver) -> Option<u64> {
        receiver.recv().await
    }

    /// Our channel, the same in both rows: there it is Tokio's side that differs.
    pub(crate) mod mpmc_of_others {
        pub(crate) use super::{mpmc, recv, send};
    }

    pub(crate) fn oneshot_without_allocation(value: u64) -> u64 {
        let mut slot = oneshot::Slot::new();
        let (sender, receiver) = slot.split();
        sender.send(value).expect("the receiver is there");
        crate::by_hand::now(receiver).expect("it was sent")
    }
}

/// async-channel, which runs on any runtime.
pub(crate) mod others {
    pub(crate) use async_channel::bounded as mpmc;

    pub(crate) async fn send(sender: &async_channel::Sender<u64>, value: u64) {
        sender.send(value).await.expect("the receivers are there");
    }

    pub(crate) async fn recv(receiver: &async_channel::Receiver<u64>) -> Option<u64> {
        receiver.recv().await.ok()
    }
}
