//! Drops locks and channels with values inside, with waiters, and with halves that go in every
//! order, on one thread and on several.

use std::{mem, sync::Arc};

use blitz_io::{
    channel::{broadcast, mpmc, mpsc, oneshot, watch},
    future,
    sync::{Barrier, CancellationToken, Mutex, Notify, OnceCell, RwLock, Semaphore, SetOnce},
    task::JoinSet,
};

use crate::{
    Scenario,
    support::{
        manual_poll::{once, poll_once},
        runtimes::workers,
    },
};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("locks whose waiters give up, and guards that outlive their handles", locks),
    ("barriers that are dropped while tasks wait", meetings),
    ("cells set, half set and taken", cells),
    ("a tree of tokens that goes in every order", tokens),
    ("bounded channels of every length that end with messages in them", bounded),
    ("unbounded channels over several blocks", unbounded),
    ("oneshots that end in every way", oneshots),
    ("channels for many that end with messages in them", mpmcs),
    ("broadcasts that are lagged behind, and dropped unread", broadcasts),
    ("watched values, and watchers that give up", watches),
    ("futures of many that end early", many),
    ("channels whose halves race to their end", races),
];

fn text(n: usize) -> String {
    n.to_string()
}

fn locks() {
    // Debug builds record the holder of each lock in a sharded table, and each shard keeps an empty
    // page: this loop makes sure that every shard has one.
    for _ in 0..32 {
        drop(Mutex::new(0).try_lock().unwrap());
        let lock = RwLock::new(0);
        drop((lock.try_read().unwrap(), lock.try_read().unwrap()));
    }
    let mutex = Arc::new(Mutex::new(text(1)));
    let guard = mutex.clone().try_lock_owned().unwrap();
    assert!(once(mutex.lock()).is_pending());
    let mut waiting = Box::pin(mutex.clone().lock_owned());
    assert!(poll_once(&mut waiting).is_pending());
    drop(mutex);
    drop(guard);
    assert!(poll_once(&mut waiting).is_ready());

    let lock = Arc::new(RwLock::new(text(2)));
    let reader = lock.clone().try_read_owned().unwrap();
    let mut writer = Box::pin(lock.clone().write_owned());
    assert!(poll_once(&mut writer).is_pending());
    drop((reader, writer, lock));

    let semaphore = Arc::new(Semaphore::new(1));
    let permit = semaphore.clone().try_acquire_owned().unwrap();
    let mut waiting = Box::pin(semaphore.clone().acquire_many_owned(2));
    assert!(poll_once(&mut waiting).is_pending());
    semaphore.close();
    drop((waiting, permit));
}

fn meetings() {
    let notify = Arc::new(Notify::new());
    let mut waiting = Box::pin(notify.clone().notified_owned());
    assert!(poll_once(&mut waiting).is_pending());
    drop((notify, waiting));
    let barrier = Barrier::new(2);
    assert!(once(barrier.wait()).is_pending());
}

fn cells() {
    let cell = OnceCell::new_with(Some(text(1)));
    assert_eq!(cell.into_inner().unwrap().len(), 1);
    let cell: OnceCell<String> = OnceCell::new();
    let kept = text(2);
    let mut making = Box::pin(cell.get_or_init(async || {
        std::future::pending::<()>().await;
        kept
    }));
    assert!(poll_once(&mut making).is_pending());
    drop(making);
    cell.set(text(3)).unwrap();
    assert!(cell.set(text(4)).is_err());
    let set_once = SetOnce::new();
    assert!(once(set_once.wait()).is_pending());
    set_once.set(text(5)).unwrap();
    assert!(set_once.set(text(6)).is_err());
}

fn tokens() {
    let tree = || {
        let root = CancellationToken::new();
        let children: Vec<_> = (0..4).map(|_| root.child_token()).collect();
        let leaves: Vec<_> = children.iter().map(CancellationToken::child_token).collect();
        (root, children, leaves)
    };
    let (root, children, leaves) = tree();
    drop(root);
    drop(children);
    drop(leaves);
    let (root, children, leaves) = tree();
    let mut waiting = Box::pin(leaves[0].clone().cancelled_owned());
    assert!(poll_once(&mut waiting).is_pending());
    drop(leaves);
    drop(children);
    root.cancel();
    drop(waiting);
    let (root, children, leaves) = tree();
    children[1].cancel();
    drop((leaves, root, children));
}

fn bounded() {
    for capacity in [1, 2, 16, 128, 2_000] {
        let (tx, mut rx) = mpsc::channel(capacity);
        for n in 0..capacity {
            tx.try_send(text(n)).unwrap();
        }
        let weak = tx.downgrade();
        let mut waiting = Box::pin(tx.send(text(0)));
        assert!(poll_once(&mut waiting).is_pending());
        assert!(rx.try_recv().is_ok());
        drop(waiting);
        let permit = tx.clone().try_reserve_owned().unwrap();
        drop(rx);
        permit.send(text(1));
        drop((tx, weak));
    }
    let (tx, rx) = mpsc::channel::<String>(4);
    let weak = tx.downgrade();
    drop(tx);
    assert!(weak.upgrade().is_none());
    drop(rx);
}

fn unbounded() {
    let (tx, mut rx) = mpsc::unbounded_channel();
    for n in 0..200 {
        tx.send(text(n)).unwrap();
    }
    for _ in 0..100 {
        rx.try_recv().unwrap();
    }
    rx.close();
    assert!(tx.send(text(0)).is_err());
    drop(rx);
    let weak = tx.downgrade();
    drop(tx);
    drop(weak);
}

fn oneshots() {
    let (tx, rx) = oneshot::channel();
    tx.send(text(1)).unwrap();
    drop(rx);
    let (tx, rx) = oneshot::channel();
    drop(rx);
    assert!(tx.send(text(2)).is_err());
    let (mut tx, mut rx) = oneshot::channel::<String>();
    assert!(once(tx.closed()).is_pending());
    assert!(once(&mut rx).is_pending());
    drop(tx);
    drop(rx);
    let mut slot = oneshot::Slot::new();
    let (tx, rx) = slot.split();
    tx.send(text(3)).unwrap();
    mem::forget(rx);
    let (tx, mut rx) = slot.split();
    assert!(once(&mut rx).is_pending());
    mem::forget((tx, rx));
}

fn mpmcs() {
    for capacity in [1, 3, 100] {
        let (tx, rx) = mpmc::channel(capacity);
        for n in 0..capacity {
            tx.try_send(text(n)).unwrap();
        }
        assert!(once(tx.send(text(0))).is_pending());
        rx.try_recv().unwrap();
        let (weak_tx, weak_rx) = (tx.downgrade(), rx.downgrade());
        drop(rx);
        assert!(tx.try_send(text(1)).is_err());
        drop((tx, weak_tx, weak_rx));
    }
}

fn broadcasts() {
    let (tx, mut first) = broadcast::channel(4);
    let second = tx.subscribe();
    for n in 0..10 {
        tx.send(text(n)).unwrap();
    }
    assert!(first.try_recv().is_err());
    assert!(first.try_recv().is_ok());
    let mut third = tx.subscribe();
    assert!(once(third.recv()).is_pending());
    drop(second);
    drop(tx);
    drop((first, third));
}

fn watches() {
    let (tx, mut rx) = watch::channel(text(0));
    let other = rx.clone();
    assert!(once(rx.changed()).is_pending());
    tx.send_replace(text(1));
    drop(rx.borrow_and_update());
    drop(rx);
    drop(other);
    assert!(tx.send(text(2)).is_err());
}

fn many() {
    let pending = || Box::pin(std::future::pending::<String>());
    let mut all = Box::pin(future::join_all([pending(), pending()]));
    assert!(poll_once(&mut all).is_pending());
    drop(all);
    let ready = || Box::pin(async { text(1) });
    assert!(once(future::join_all([ready(), ready()])).is_ready());
    assert!(once(future::race_all([ready(), ready()])).is_ready());
}

fn races() {
    let rt = workers(2);
    rt.block_on(async {
        let mut tasks = JoinSet::new();
        for capacity in [1, 2, 32] {
            let (tx, mut rx) = mpsc::channel(capacity);
            let (mtx, mrx) = mpmc::channel(capacity);
            let (btx, mut brx) = broadcast::channel(capacity);
            for _ in 0..2 {
                let (tx, mtx, btx) = (tx.clone(), mtx.clone(), btx.clone());
                tasks.spawn(async move {
                    for n in 0..50 {
                        let _ = tx.send(text(n)).await;
                        let _ = mtx.send(text(n)).await;
                        let _ = btx.send(text(n));
                    }
                });
            }
            drop((tx, mtx, btx));
            tasks.spawn(async move {
                for _ in 0..20 {
                    drop((rx.recv().await, mrx.recv().await, brx.recv().await));
                }
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
    });
}
