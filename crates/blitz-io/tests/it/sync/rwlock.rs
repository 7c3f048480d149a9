//! Tests `RwLock`: many readers or one writer, no overtaking, all kinds of guards.

use std::sync::Arc;

use blitz_io::sync::{
    OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock,
    RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard,
};

use crate::support::{
    caught_panic::panic_of,
    drop_tally::Tally,
    manual_poll::{now, waiting},
};

#[test]
fn readers_share() {
    let lock = RwLock::new(1);
    let one = now(lock.read());
    let two = now(lock.read());
    let three = lock.try_read().unwrap();
    assert_eq!(*one + *two + *three, 3);
    assert!(lock.try_write().is_err());
}

#[test]
fn a_writer_is_alone() {
    let lock = RwLock::new(1);
    let mut writer = now(lock.write());
    *writer = 2;
    assert!(lock.try_read().is_err());
    assert!(lock.try_write().is_err());
    let mut reader = waiting(lock.read());
    drop(writer);
    assert_eq!(*reader.woken_and_ready(), 2);
}

#[test]
fn a_writer_waits_for_every_reader() {
    let lock = RwLock::new(());
    let (one, two) = (now(lock.read()), now(lock.read()));
    let mut writer = waiting(lock.write());
    drop(one);
    writer.still_waits();
    drop(two);
    drop(writer.woken_and_ready());
}

#[test]
fn a_reader_does_not_overtake_a_writer_that_waits() {
    let lock = RwLock::new(());
    let reader = now(lock.read());
    let mut writer = waiting(lock.write());
    assert!(lock.try_read().is_err(), "the writer came first");
    let mut late = waiting(lock.read());
    drop(reader);
    late.still_waits();
    drop(writer.woken_and_ready());
    drop(late.woken_and_ready());
}

#[test]
fn all_readers_queued_behind_a_writer_get_the_lock_together() {
    let lock = RwLock::new(());
    let writer = now(lock.write());
    let mut readers: Vec<_> = (0..4).map(|_| waiting(lock.read())).collect();
    let mut last = waiting(lock.write());
    drop(writer);
    let guards: Vec<_> = readers.iter_mut().map(|reader| reader.woken_and_ready()).collect();
    last.still_waits();
    drop(guards);
    drop(last.woken_and_ready());
}

#[test]
fn readers_that_wait_behind_a_writer_come_in_when_it_gives_up() {
    let lock = RwLock::new(());
    let reader = now(lock.read());
    let writer = waiting(lock.write());
    let mut late = waiting(lock.read());
    drop(writer);
    drop(late.woken_and_ready());
    drop(reader);
    assert!(lock.try_write().is_ok());
}

#[test]
fn a_downgraded_writer_lets_readers_in_and_keeps_writers_out() {
    let lock = Arc::new(RwLock::new(1));
    let mut writer = now(lock.write());
    *writer = 2;
    let mut reader = waiting(lock.read());
    let mut other = waiting(lock.write());
    let read = writer.downgrade();
    assert_eq!(*reader.woken_and_ready(), 2);
    other.still_waits();
    assert_eq!(*read, 2);
    drop(read);
    drop(other.woken_and_ready());
    drop((reader, other));
    let owned = now(lock.clone().write_owned()).downgrade();
    assert!(lock.try_read().is_ok());
    assert!(lock.try_write().is_err());
    drop(owned);
    assert!(lock.try_write().is_ok());
}

#[test]
fn downgrading_does_not_let_a_reader_overtake_a_writer() {
    let lock = RwLock::new(());
    let first = now(lock.write());
    let mut writer = waiting(lock.write());
    let mut reader = waiting(lock.read());
    let read = first.downgrade();
    writer.still_waits();
    reader.still_waits();
    drop(read);
    drop(writer.woken_and_ready());
    drop(reader.woken_and_ready());
}

#[test]
fn a_bounded_lock_admits_no_more_than_its_limit_of_readers() {
    let lock = RwLock::with_max_readers(0, 2);
    let (one, two) = (lock.try_read().unwrap(), lock.try_read().unwrap());
    assert!(lock.try_read().is_err());
    let mut third = waiting(lock.read());
    drop(one);
    let third = third.woken_and_ready();
    assert!(lock.try_write().is_err());
    drop((two, third));
    let writer = lock.try_write().unwrap();
    assert!(lock.try_read().is_err());
    // A writer that becomes a reader leaves room for one more reader.
    let reader = writer.downgrade();
    let other = lock.try_read().unwrap();
    assert!(lock.try_read().is_err());
    drop((reader, other));
}

#[test]
fn a_bound_beyond_the_maximum_panics_where_the_caller_is() {
    let over = (u32::MAX >> 3) + 1;
    let line = line!() + 1;
    let caught = panic_of(|| RwLock::with_max_readers(0, over));
    caught.says(&["a RwLock may not be created with more than", "readers"]).at(file!(), line);
    assert!(RwLock::with_max_readers(0, over - 1).try_read().is_ok());
    let lock: RwLock<u8> = RwLock::const_with_max_readers(1, 1);
    assert_eq!(*lock.try_read().unwrap(), 1);
}

#[test]
fn mapped_read_guards_show_a_part_and_hold_the_lock() {
    let lock = Arc::new(RwLock::new((1, Some(2))));
    let part = RwLockReadGuard::map(now(lock.read()), |pair| &pair.1);
    let part = RwLockReadGuard::try_map(part, Option::as_ref).unwrap();
    assert_eq!(*part, 2);
    assert!(lock.try_write().is_err());
    let back = RwLockReadGuard::try_map(part, |_| None::<&u8>).unwrap_err();
    assert!(lock.try_write().is_err());
    drop(back);
    let owned = OwnedRwLockReadGuard::map(now(lock.clone().read_owned()), |pair| &pair.0);
    assert_eq!(*owned, 1);
    let owned = OwnedRwLockReadGuard::try_map(owned, |_| None::<&u8>).unwrap_err();
    assert!(Arc::ptr_eq(OwnedRwLockReadGuard::rwlock(&owned), &lock));
    assert!(lock.try_write().is_err());
    drop(owned);
    assert!(lock.try_write().is_ok());
}

#[test]
fn mapped_write_guards_show_a_part_and_hold_the_lock() {
    let lock = RwLock::new((1, Some(2)));
    let part = RwLockWriteGuard::map(now(lock.write()), |pair| &mut pair.1);
    let mut part = RwLockMappedWriteGuard::try_map(part, Option::as_mut).unwrap();
    *part = 5;
    let mut same = RwLockMappedWriteGuard::map(part, |part| part);
    *same += 1;
    let back = RwLockMappedWriteGuard::try_map(same, |_| None::<&mut u8>).unwrap_err();
    assert!(lock.try_read().is_err());
    drop(back);
    assert_eq!(*lock.try_read().unwrap(), (1, Some(6)));
    let whole = RwLockWriteGuard::into_mapped(now(lock.write()));
    assert!(lock.try_read().is_err());
    drop(whole);
    let back = RwLockWriteGuard::try_map(now(lock.write()), |_| None::<&mut u8>).unwrap_err();
    assert!(lock.try_read().is_err());
    drop(back);
    assert!(lock.try_write().is_ok());
}

#[test]
fn owned_write_guards_map_downgrade_and_know_their_lock() {
    let lock = Arc::new(RwLock::new((1, 2)));
    let guard = now(lock.clone().write_owned());
    assert!(Arc::ptr_eq(OwnedRwLockWriteGuard::rwlock(&guard), &lock));
    let mut part = OwnedRwLockWriteGuard::map(guard, |pair| &mut pair.1);
    assert!(Arc::ptr_eq(OwnedRwLockMappedWriteGuard::rwlock(&part), &lock));
    *part = 3;
    let part = OwnedRwLockMappedWriteGuard::try_map(part, |_| None::<&mut u8>).unwrap_err();
    assert!(lock.try_read().is_err());
    drop(OwnedRwLockMappedWriteGuard::map(part, |part| part));
    let guard = lock.clone().try_write_owned().unwrap();
    let whole = OwnedRwLockWriteGuard::into_mapped(guard);
    assert!(lock.clone().try_read_owned().is_err());
    drop(whole);
    let guard = now(lock.clone().write_owned());
    let part = OwnedRwLockWriteGuard::downgrade_map(guard, |pair| &pair.1);
    assert_eq!((*part, lock.try_read().unwrap().0), (3, 1));
    assert!(lock.try_write().is_err(), "it is a reader");
    drop(part);
    let guard = now(lock.clone().write_owned());
    let guard = OwnedRwLockWriteGuard::try_downgrade_map(guard, |_| None::<&u8>).unwrap_err();
    assert!(lock.try_read().is_err(), "it is still a writer");
    drop(guard);
    assert!(lock.try_write().is_ok());
}

#[test]
fn downgrade_map_lets_readers_in_at_once() {
    let lock = RwLock::new((1, 2));
    let writer = now(lock.write());
    let mut reader = waiting(lock.read());
    let part = RwLockWriteGuard::downgrade_map(writer, |pair| &pair.0);
    drop(reader.woken_and_ready());
    assert_eq!(*part, 1);
    assert!(lock.try_write().is_err(), "it is a reader");
    drop((part, reader));
    let writer = now(lock.write());
    let part = RwLockWriteGuard::try_downgrade_map(writer, |pair| Some(&pair.1)).unwrap();
    assert_eq!(*part, 2);
    assert!(lock.try_read().is_ok() && lock.try_write().is_err(), "it is a reader");
    drop(part);
    let writer = now(lock.write());
    let writer = RwLockWriteGuard::try_downgrade_map(writer, |_| None::<&u8>).unwrap_err();
    assert!(lock.try_read().is_err(), "it is still a writer");
    drop(writer);
    assert!(lock.try_write().is_ok());
}

#[test]
fn a_map_that_panics_releases_the_lock() {
    let lock = RwLock::new(1);
    panic_of(|| RwLockReadGuard::map(now(lock.read()), |_| -> &u8 { panic!("no part") }));
    assert!(lock.try_write().is_ok());
    panic_of(|| RwLockWriteGuard::map(now(lock.write()), |_| -> &mut u8 { panic!("no part") }));
    assert!(lock.try_write().is_ok());
    panic_of(|| {
        let guard = now(lock.write());
        RwLockWriteGuard::downgrade_map(guard, |_| -> &u8 { panic!("no part") })
    });
    assert!(lock.try_write().is_ok());
}

#[test]
fn an_owned_guard_keeps_the_lock_alive() {
    let tally = Tally::new();
    let lock = Arc::new(RwLock::new(tally.token()));
    let one = now(lock.clone().read_owned());
    let two = lock.clone().try_read_owned().unwrap();
    drop(lock);
    drop(one);
    two.keep();
    assert_eq!(tally.dropped(), 0);
    drop(two);
    tally.assert_all_dropped(1);
}

#[test]
fn the_owner_reaches_the_value_without_locking() {
    let mut lock = RwLock::new(1);
    *lock.get_mut() += 1;
    assert_eq!(lock.into_inner(), 2);
    assert_eq!(RwLock::from(4).into_inner(), 4);
    assert_eq!(RwLock::<u8>::default().into_inner(), 0);
    static LOCK: RwLock<u8> = RwLock::const_new(3);
    assert_eq!(*now(LOCK.read()), 3);
}

#[test]
fn a_failed_try_says_that_it_would_block() {
    let lock = RwLock::new(());
    let writer = now(lock.write());
    assert_eq!(lock.try_read().unwrap_err().to_string(), "operation would block");
    assert_eq!(lock.try_write().unwrap_err().to_string(), "operation would block");
    drop(writer);
}

#[test]
fn a_panic_with_a_guard_releases_the_lock_without_poison() {
    let lock = RwLock::new(0);
    panic_of(|| {
        *now(lock.write()) = 9;
        let _guard = now(lock.write());
        panic!("while it is held");
    });
    assert_eq!(*now(lock.read()), 9);
}
