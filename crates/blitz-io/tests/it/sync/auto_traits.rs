//! Tests that types and futures of `sync` are `Send`, `Sync`, `Unpin` and unwind safe where Tokio's
//! are.
//!
//! A cell of the table has a letter for each trait that holds: `S`end, s`Y`nc, `U`npin,
//! un`W`ind safe, `R`ef unwind safe, and a dash where it does not. The columns are the types from
//! which a generic type is made:
//!
//! | column | Send | Sync |
//! |---|---|---|
//! | `u8` | yes | yes |
//! | `Cell<u8>` | yes | no |
//! | `MutexGuard<u8>`, of std | no | yes |
//! | `Rc<u8>`, `*mut u8` | no | no |
//!
//! The last two differ in their unwind safety.

use std::{
    cell::Cell,
    future::Ready,
    marker::PhantomData,
    pin::Pin,
    rc::Rc,
    sync::{Arc, MutexGuard as StdGuard},
};

use blitz_io::sync::*;

use crate::support::auto_traits::{
    OrNotRefUnwindSafe, OrNotSend, OrNotSync, OrNotUnpin, OrNotUnwindSafe, Probe,
};

/// Returns the letters of a [`Probe`].
macro_rules! letters {
    ($probe:expr) => {{
        let probe = $probe;
        [
            (probe.is_send(), 'S'),
            (probe.is_sync(), 'Y'),
            (probe.is_unpin(), 'U'),
            (probe.is_unwind_safe(), 'W'),
            (probe.is_ref_unwind_safe(), 'R'),
        ]
        .map(|(has, letter)| if has { letter } else { '-' })
        .iter()
        .collect::<String>()
    }};
}

/// Returns the type of a closure's result. The closure is never called; only its type matters.
fn result_of<T>(_: impl FnOnce() -> T) -> Probe<T> {
    Probe(PhantomData)
}

/// Provides a value of any type for such closures.
fn some<T>() -> T {
    unreachable!("nothing calls the closures of this table")
}

fn on<T>() -> &'static T {
    some()
}

fn on_mut<T>() -> &'static mut T {
    some()
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Shared<T> = Pin<Box<dyn Future<Output = T> + Send + Sync>>;
type Tried<T, E> = Ready<Result<T, E>>;

/// Compares a table with the actual traits, and names the rows that do not fit.
fn compare(rows: &[(&str, Vec<String>, &[&str])]) {
    let wrong: Vec<String> = rows
        .iter()
        .filter(|(_, found, wanted)| {
            found.len() != wanted.len()
                || found.iter().zip(*wanted).any(|(found, wanted)| !fits(found, wanted))
        })
        .map(|(row, found, wanted)| format!("{row}\n  is     {found:?}\n  wanted {wanted:?}"))
        .collect();
    assert!(wrong.is_empty(), "{} rows do not fit:\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns true if the traits fit. `Send` and `Sync` must be exactly Tokio's: more would have to be
/// proven sound, and less would not compile for its users. The others may be more than Tokio's and
/// never less.
fn fits(found: &str, wanted: &str) -> bool {
    let exact = 2;
    found.len() == wanted.len()
        && found[..exact] == wanted[..exact]
        && found.chars().zip(wanted.chars()).all(|(found, wanted)| wanted == '-' || found == wanted)
}

/// Expands to the cells of a row: the expression with each column's `T`. `T` is a type alias,
/// because a macro's argument sees items, and does not see the macro's own `let`.
macro_rules! columns {
    ($probe:expr) => {
        vec![
            {
                type T = u8;
                letters!($probe)
            },
            {
                type T = Cell<u8>;
                letters!($probe)
            },
            {
                type T = StdGuard<'static, u8>;
                letters!($probe)
            },
            {
                type T = Rc<u8>;
                letters!($probe)
            },
            {
                type T = *mut u8;
                letters!($probe)
            },
        ]
    };
}

/// Compares types that are made of a `T`.
macro_rules! types_with {
    ($($type:ty => [$($wanted:literal),+];)+) => {
        compare(&[$((
            stringify!($type),
            columns!(Probe::<$type>(PhantomData)),
            &[$($wanted),+],
        )),+])
    };
}

macro_rules! types {
    ($($type:ty => $wanted:literal;)+) => {
        compare(&[$((
            stringify!($type),
            vec![letters!(Probe::<$type>(PhantomData))],
            &[$wanted],
        )),+])
    };
}

/// Compares the futures of methods of types that are made of a `T`.
macro_rules! futures_with {
    ($($future:expr => [$($wanted:literal),+];)+) => {
        compare(&[$((
            stringify!($future),
            columns!(result_of(|| $future)),
            &[$($wanted),+],
        )),+])
    };
}

macro_rules! futures {
    ($($future:expr => $wanted:literal;)+) => {
        compare(&[$((
            stringify!($future),
            vec![letters!(result_of(|| $future))],
            &[$wanted],
        )),+])
    };
}

#[test]
fn more_than_tokio_has_fits_but_for_send_and_sync() {
    assert!(fits("SY---", "SY---") && fits("SYUWR", "SY---") && fits("--U--", "-----"));
    assert!(!fits("SYU--", "S-U--") && !fits("SYU--", "-YU--"));
    assert!(!fits("S-U--", "SYU--") && !fits("SY--R", "SYU--") && !fits("SYUW-", "SYUWR"));
}

#[test]
fn the_trait_check_distinguishes_all_cases() {
    types! {
        u8 => "SYUWR";
        Rc<Cell<u8>> => "--U--";
        StdGuard<'static, u8> => "-YUWR";
        std::marker::PhantomPinned => "SY-WR";
    }
    types_with! {
        Option<T> => ["SYUWR", "S-UW-", "-YUWR", "--UWR", "--UWR"];
    }
    futures! {
        std::future::ready(some::<Rc<u8>>()) => "--UWR";
    }
}

#[test]
fn locks_and_guards_have_tokios_auto_traits() {
    types_with! {
        Mutex<T> => ["SYU--", "SYU--", "--U--", "--U--", "--U--"];
        MutexGuard<'static, T> => ["SYU--", "S-U--", "--U--", "--U--", "--U--"];
        MappedMutexGuard<'static, T> => ["SYU--", "S-U--", "-YU--", "--U--", "--U--"];
        OwnedMutexGuard<T> => ["SYU--", "S-U--", "--U--", "--U--", "--U--"];
        OwnedMappedMutexGuard<T, u8> => ["SYU--", "S-U--", "--U--", "--U--", "--U--"];
        OwnedMappedMutexGuard<u8, T> => ["SYU--", "S-U--", "--U--", "--U--", "--U--"];
        RwLock<T> => ["SYU--", "S-U--", "--U--", "--U--", "--U--"];
        RwLockReadGuard<'static, T> => ["SYU--", "--U--", "S-U--", "--U--", "--U--"];
        RwLockWriteGuard<'static, T> => ["SYU--", "--U--", "--U--", "--U--", "--U--"];
        RwLockMappedWriteGuard<'static, T> => ["SYU--", "--U--", "--U--", "--U--", "--U--"];
        OwnedRwLockReadGuard<T> => ["SYU--", "--U--", "--U--", "--U--", "--U--"];
        OwnedRwLockReadGuard<T, u8> => ["SYU--", "--U--", "--U--", "--U--", "--U--"];
        OwnedRwLockReadGuard<u8, T> => ["SYU--", "--U--", "S-U--", "--U--", "--U--"];
        OwnedRwLockWriteGuard<T> => ["SYU--", "--U--", "--U--", "--U--", "--U--"];
        OwnedRwLockMappedWriteGuard<T> => ["SYU--", "--U--", "--U--", "--U--", "--U--"];
        OwnedRwLockMappedWriteGuard<T, u8> => ["SYU--", "--U--", "--U--", "--U--", "--U--"];
        OwnedRwLockMappedWriteGuard<u8, T> => ["SYU--", "--U--", "--U--", "--U--", "--U--"];
    }
}

#[test]
fn cells_have_tokios_auto_traits() {
    types_with! {
        OnceCell<T> => ["SYU--", "S-U--", "--U--", "--U--", "--U--"];
        SetError<T> => ["SYUWR", "S-UW-", "-YUWR", "--UWR", "--UWR"];
        SetOnce<T> => ["SYUW-", "S-UW-", "--UW-", "--UW-", "--UW-"];
        SetOnceError<T> => ["SYUWR", "S-UW-", "-YUWR", "--UWR", "--UWR"];
    }
}

#[test]
fn ends_of_channels_have_tokios_auto_traits() {
    types_with! {
        mpsc::Sender<T> => ["SYUWR", "SYUWR", "--UWR", "--UWR", "--UWR"];
        mpsc::Receiver<T> => ["SYUWR", "SYUWR", "--UWR", "--UWR", "--UWR"];
        mpsc::WeakSender<T> => ["SYUWR", "SYUWR", "--UWR", "--UWR", "--UWR"];
        mpsc::Permit<'static, T> => ["SYUWR", "SYUWR", "--UWR", "--UWR", "--UWR"];
        mpsc::PermitIterator<'static, T> => ["SYUWR", "SYUWR", "--UWR", "--UWR", "--UWR"];
        mpsc::OwnedPermit<T> => ["SYUWR", "SYUWR", "--UWR", "--UWR", "--UWR"];
        mpsc::UnboundedSender<T> => ["SYUWR", "SYUWR", "--UWR", "--UWR", "--UWR"];
        mpsc::UnboundedReceiver<T> => ["SYUWR", "SYUWR", "--UWR", "--UWR", "--UWR"];
        mpsc::WeakUnboundedSender<T> => ["SYUWR", "SYUWR", "--UWR", "--UWR", "--UWR"];
        mpsc::error::SendError<T> => ["SYUWR", "S-UW-", "-YUWR", "--UWR", "--UWR"];
        mpsc::error::TrySendError<T> => ["SYUWR", "S-UW-", "-YUWR", "--UWR", "--UWR"];
        mpsc::error::SendTimeoutError<T> => ["SYUWR", "S-UW-", "-YUWR", "--UWR", "--UWR"];
        oneshot::Sender<T> => ["SYU--", "SYU--", "--U--", "--U--", "--U--"];
        oneshot::Receiver<T> => ["SYU--", "SYU--", "--U--", "--U--", "--U--"];
        broadcast::Sender<T> => ["SYU--", "SYU--", "--U--", "--U--", "--U--"];
        broadcast::WeakSender<T> => ["SYU--", "SYU--", "--U--", "--U--", "--U--"];
        broadcast::Receiver<T> => ["SYU--", "SYU--", "--U--", "--U--", "--U--"];
        broadcast::error::SendError<T> => ["SYUWR", "S-UW-", "-YUWR", "--UWR", "--UWR"];
        watch::Sender<T> => ["SYU--", "--U--", "--U--", "--U--", "--U--"];
        watch::Receiver<T> => ["SYU--", "--U--", "--U--", "--U--", "--U--"];
        watch::Ref<'static, T> => ["-YU--", "--U--", "-YU--", "--U--", "--U--"];
        watch::error::SendError<T> => ["SYUWR", "S-UW-", "-YUWR", "--UWR", "--UWR"];
    }
}

#[test]
fn types_that_hold_no_value_have_tokios_auto_traits() {
    types! {
        Semaphore => "SYU--";
        SemaphorePermit<'static> => "SYU--";
        OwnedSemaphorePermit => "SYU--";
        Barrier => "SYU--";
        BarrierWaitResult => "SYUWR";
        Notify => "SYUWR";
        futures::Notified<'static> => "SY---";
        futures::OwnedNotified => "SY---";
        AcquireError => "SYUWR";
        TryAcquireError => "SYUWR";
        TryLockError => "SYUWR";
        mpsc::error::TryRecvError => "SYUWR";
        oneshot::error::RecvError => "SYUWR";
        oneshot::error::TryRecvError => "SYUWR";
        broadcast::error::RecvError => "SYUWR";
        broadcast::error::TryRecvError => "SYUWR";
        watch::error::RecvError => "SYUWR";
    }
}

#[test]
fn futures_of_locks_have_tokios_auto_traits() {
    futures_with! {
        on::<Mutex<T>>().lock() => ["SY---", "SY---", "-----", "-----", "-----"];
        some::<Arc<Mutex<T>>>().lock_owned() => ["SY---", "SY---", "-----", "-----", "-----"];
        on::<RwLock<T>>().read() => ["SY---", "-----", "-----", "-----", "-----"];
        on::<RwLock<T>>().write() => ["SY---", "-----", "-----", "-----", "-----"];
        some::<Arc<RwLock<T>>>().read_owned() => ["SY---", "-----", "-----", "-----", "-----"];
        some::<Arc<RwLock<T>>>().write_owned() => ["SY---", "-----", "-----", "-----", "-----"];
    }
}

#[test]
fn futures_of_cells_have_tokios_auto_traits() {
    futures_with! {
        on::<OnceCell<T>>().get_or_init(some::<fn() -> Ready<T>>())
            => ["SY---", "-----", "-----", "-----", "-----"];
        on::<OnceCell<T>>().get_or_init(some::<fn() -> Boxed<T>>())
            => ["S----", "-----", "-----", "-----", "-----"];
        on::<OnceCell<T>>().get_or_init(some::<fn() -> Shared<T>>())
            => ["SY---", "-----", "-----", "-----", "-----"];
        on::<OnceCell<T>>().get_or_try_init(some::<fn() -> Tried<T, u8>>())
            => ["SY---", "-----", "-----", "-----", "-----"];
        on::<OnceCell<u8>>().get_or_try_init(some::<fn() -> Tried<u8, T>>())
            => ["SY---", "S----", "-Y---", "-----", "-----"];
        on::<SetOnce<T>>().wait() => ["SY---", "-----", "-----", "-----", "-----"];
    }
}

#[test]
fn futures_of_channels_have_tokios_auto_traits() {
    futures_with! {
        on::<mpsc::Sender<T>>().send(some()) => ["SY---", "S----", "-----", "-----", "-----"];
        on::<mpsc::Sender<T>>().reserve() => ["SY---", "SY---", "-----", "-----", "-----"];
        on::<mpsc::Sender<T>>().reserve_many(2) => ["SY---", "SY---", "-----", "-----", "-----"];
        some::<mpsc::Sender<T>>().reserve_owned() => ["SY---", "SY---", "-----", "-----", "-----"];
        on::<mpsc::Sender<T>>().closed() => ["SY---", "SY---", "-----", "-----", "-----"];
        on::<mpsc::UnboundedSender<T>>().closed() => ["SY---", "SY---", "-----", "-----", "-----"];
        on_mut::<mpsc::Receiver<T>>().recv() => ["SY--R", "SY--R", "----R", "----R", "----R"];
        on_mut::<mpsc::Receiver<T>>().recv_many(some(), 2)
            => ["SY--R", "S----", "----R", "----R", "----R"];
        on_mut::<mpsc::UnboundedReceiver<T>>().recv()
            => ["SY--R", "SY--R", "----R", "----R", "----R"];
        on_mut::<mpsc::UnboundedReceiver<T>>().recv_many(some(), 2)
            => ["SY--R", "S----", "----R", "----R", "----R"];
        on_mut::<oneshot::Sender<T>>().closed() => ["SY---", "SY---", "-----", "-----", "-----"];
        on::<broadcast::Sender<T>>().closed() => ["SY---", "SY---", "-----", "-----", "-----"];
        on::<watch::Sender<T>>().closed() => ["SY---", "-----", "-----", "-----", "-----"];
        on_mut::<watch::Receiver<T>>().changed() => ["SY---", "-----", "-----", "-----", "-----"];
        on_mut::<watch::Receiver<T>>().wait_for(some::<fn(&T) -> bool>())
            => ["SY---", "-----", "-----", "-----", "-----"];
    }
}

#[test]
fn barriers_notifies_and_watches_have_tokios_auto_traits() {
    futures! {
        on::<Semaphore>().acquire() => "SY---";
        on::<Semaphore>().acquire_many(2) => "SY---";
        some::<Arc<Semaphore>>().acquire_owned() => "SY---";
        some::<Arc<Semaphore>>().acquire_many_owned(2) => "SY---";
        on::<Barrier>().wait() => "SY---";
        on_mut::<broadcast::Receiver<u8>>().recv() => "SY---";
        on_mut::<broadcast::Receiver<Cell<u8>>>().recv() => "SY---";
        on_mut::<broadcast::Receiver<Rc<u8>>>().recv() => "-----";
        on_mut::<broadcast::Receiver<*mut u8>>().recv() => "-----";
    }
}
