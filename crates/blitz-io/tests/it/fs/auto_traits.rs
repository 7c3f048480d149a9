//! Tests that all types and futures of `fs` are `Send` and `Sync`, as in Tokio.

use std::{fs::Permissions, path::PathBuf, time::SystemTime};

use blitz_io::fs::{self, DirBuilder, DirEntry, File, FileTimes, OpenOptions, ReadDir};

fn may_go<T: Send + Sync>() {}

fn its_future_may_go<T>(_: fn() -> T)
where
    T: Send + Sync,
{
}

fn any<T>() -> T {
    unreachable!("only types are looked at")
}

#[test]
fn types_may_go_and_can_be_moved_while_polled() {
    fn moves<T: Send + Sync + Unpin>() {}
    moves::<File>();
    moves::<OpenOptions>();
    moves::<DirBuilder>();
    moves::<ReadDir>();
    moves::<DirEntry>();
    moves::<FileTimes>();
    may_go::<PathBuf>();
}

#[test]
fn futures_may_go() {
    its_future_may_go(|| fs::read(""));
    its_future_may_go(|| fs::read_to_string(""));
    its_future_may_go(|| fs::write("", Vec::new()));
    its_future_may_go(|| fs::copy("", ""));
    its_future_may_go(|| fs::rename("", ""));
    its_future_may_go(|| fs::hard_link("", ""));
    its_future_may_go(|| fs::canonicalize(""));
    its_future_may_go(|| fs::create_dir(""));
    its_future_may_go(|| fs::create_dir_all(""));
    its_future_may_go(|| fs::metadata(""));
    its_future_may_go(|| fs::symlink_metadata(""));
    its_future_may_go(|| fs::read_dir(""));
    its_future_may_go(|| fs::read_link(""));
    its_future_may_go(|| fs::remove_dir(""));
    its_future_may_go(|| fs::remove_dir_all(""));
    its_future_may_go(|| fs::remove_file(""));
    its_future_may_go(|| fs::set_permissions("", any::<Permissions>()));
    its_future_may_go(|| fs::try_exists(""));
    its_future_may_go(|| File::open(""));
    its_future_may_go(|| File::create(""));
    its_future_may_go(|| File::create_new(""));
    its_future_may_go(|| any::<File>().into_std());
    its_future_may_go(|| any::<&File>().sync_all());
    its_future_may_go(|| any::<&File>().sync_data());
    its_future_may_go(|| any::<&File>().set_len(0));
    its_future_may_go(|| any::<&File>().metadata());
    its_future_may_go(|| any::<&File>().try_clone());
    its_future_may_go(|| any::<&File>().set_permissions(any::<Permissions>()));
    its_future_may_go(|| any::<&File>().set_times(FileTimes::new()));
    its_future_may_go(|| any::<&File>().set_modified(SystemTime::UNIX_EPOCH));
    its_future_may_go(|| any::<&File>().read_at_owned(Vec::new(), 0));
    its_future_may_go(|| any::<&File>().read_exact_at_owned(Vec::new(), 0));
    its_future_may_go(|| any::<&File>().read_vectored_at_owned(Vec::<Vec<u8>>::new(), 0));
    its_future_may_go(|| any::<&File>().write_at_owned("", 0));
    its_future_may_go(|| any::<&File>().write_all_at_owned("", 0));
    its_future_may_go(|| any::<&File>().write_vectored_at_owned(vec![""], 0));
    its_future_may_go(|| any::<&OpenOptions>().open(""));
    its_future_may_go(|| any::<&DirBuilder>().create(""));
    its_future_may_go(|| any::<&'static mut ReadDir>().next_entry());
    its_future_may_go(|| any::<&DirEntry>().metadata());
    its_future_may_go(|| any::<&DirEntry>().file_type());
}
