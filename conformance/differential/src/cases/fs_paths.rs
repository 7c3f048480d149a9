//! Functions that take paths: directories, links, copies, permissions.

use crate::probe::files::*;
use std::future::poll_fn;
use std::io::{self};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::io::{AsyncReadExt, AsyncSeekExt};

pub const CASES: &[(&str, fn())] = &[
    ("every_function_on_an_empty_path", every_function_on_an_empty_path),
    ("every_function_on_a_path_with_nul", every_function_on_a_path_with_nul),
    ("every_function_below_a_file", every_function_below_a_file),
    ("every_function_below_a_missing_directory", every_function_below_a_missing_directory),
    ("every_function_on_a_symlink_loop", every_function_on_a_symlink_loop),
    ("every_function_on_a_directory_in_use", every_function_on_a_directory_in_use),
    ("read_and_write_round_trips", read_and_write_round_trips),
    ("read_to_string_of_utf8_and_not", read_to_string_of_utf8_and_not),
    ("copy_copies_bytes_and_permissions", copy_copies_bytes_and_permissions),
    ("copy_onto_itself_empties_the_file", copy_onto_itself_empties_the_file),
    ("copy_of_what_is_not_a_file", copy_of_what_is_not_a_file),
    ("rename_replaces_and_refuses", rename_replaces_and_refuses),
    ("hard_links_count_and_refuse", hard_links_count_and_refuse),
    ("symlinks_and_read_link", symlinks_and_read_link),
    ("canonicalize_resolves_links_and_dots", canonicalize_resolves_links_and_dots),
    (
        "metadata_follows_links_and_symlink_metadata_does_not",
        metadata_follows_links_and_symlink_metadata_does_not,
    ),
    ("try_exists_true_false_and_errors", try_exists_true_false_and_errors),
    ("remove_file_on_files_links_and_directories", remove_file_on_files_links_and_directories),
    ("remove_dir_on_empty_full_and_odd_ones", remove_dir_on_empty_full_and_odd_ones),
    ("remove_dir_all_on_trees_links_and_files", remove_dir_all_on_trees_links_and_files),
    ("create_dir_and_create_dir_all", create_dir_and_create_dir_all),
    ("dir_builder_modes_and_recursion", dir_builder_modes_and_recursion),
    ("concurrent_create_dir_all_of_one_path", concurrent_create_dir_all_of_one_path),
    ("read_dir_gives_names_types_and_paths", read_dir_gives_names_types_and_paths),
    ("read_dir_of_odd_paths", read_dir_of_odd_paths),
    ("read_dir_of_many_entries_in_chunks", read_dir_of_many_entries_in_chunks),
    ("read_dir_as_a_stream_and_by_poll", read_dir_as_a_stream_and_by_poll),
    ("an_entry_that_is_gone_has_no_metadata", an_entry_that_is_gone_has_no_metadata),
    ("a_directory_removed_while_it_is_read", a_directory_removed_while_it_is_read),
    ("set_permissions_on_paths", set_permissions_on_paths),
    ("reads_of_a_file_that_changes_under_them", reads_of_a_file_that_changes_under_them),
    (
        "a_write_that_fails_at_open_leaves_the_old_content",
        a_write_that_fails_at_open_leaves_the_old_content,
    ),
];

use tokio::fs::{self, DirBuilder, File};

fn mode(p: &str) -> u32 {
    std::fs::symlink_metadata(p).unwrap().permissions().mode() & 0o7777
}

async fn every(p: &str) {
    ok("open", File::open(p).await);
    ok("create", File::create(p).await);
    ok("create_new", File::create_new(p).await);
    ok("read", fs::read(p).await);
    ok("read_to_string", fs::read_to_string(p).await);
    ok("write", fs::write(p, "x").await);
    ok("copy from", fs::copy(p, "o").await);
    ok("copy to", fs::copy("f", p).await);
    ok("rename from", fs::rename(p, "o").await);
    ok("rename to", fs::rename("f", p).await);
    ok("remove_file", fs::remove_file(p).await);
    ok("remove_dir", fs::remove_dir(p).await);
    ok("remove_dir_all", fs::remove_dir_all(p).await);
    ok("create_dir", fs::create_dir(p).await);
    ok("create_dir_all", fs::create_dir_all(p).await);
    ok("DirBuilder", DirBuilder::new().create(p).await);
    ok("read_dir", fs::read_dir(p).await);
    ok("metadata", fs::metadata(p).await);
    ok("symlink_metadata", fs::symlink_metadata(p).await);
    ok("canonicalize", fs::canonicalize(p).await);
    ok("read_link", fs::read_link(p).await);
    ok("symlink from", fs::symlink(p, "l").await);
    ok("symlink at", fs::symlink("f", p).await);
    ok("hard_link from", fs::hard_link(p, "h").await);
    ok("hard_link at", fs::hard_link("f", p).await);
    ok("set_permissions", fs::set_permissions(p, std::fs::Permissions::from_mode(0o600)).await);
    show("try_exists", fs::try_exists(p).await);
}

fn every_function_on_an_empty_path() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        every("").await;
        println!("{:?}", std::fs::read_to_string("f"));
    });
}

fn every_function_on_a_path_with_nul() {
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        every("a\0b").await;
        println!("{:?}", std::fs::read_to_string("f"));
        text("text", fs::read("a\0b").await);
    });
}

fn every_function_below_a_file() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        std::fs::write("g", "abc").unwrap();
        every("g/x").await;
    });
}

fn every_function_below_a_missing_directory() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        every("m/x").await;
    });
}

fn every_function_on_a_symlink_loop() {
    let rt = runtime(4);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        std::os::unix::fs::symlink("b", "a").unwrap();
        std::os::unix::fs::symlink("a", "b").unwrap();
        every("a/x").await;
    });
}

fn every_function_on_a_directory_in_use() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        std::fs::create_dir_all("d/e").unwrap();
        std::fs::write("o", "old").unwrap();
        ok("open", File::open("d").await);
        ok("create", File::create("d").await);
        ok("read", fs::read("d").await);
        ok("read_to_string", fs::read_to_string("d").await);
        ok("write", fs::write("d", "x").await);
        text("copy from", fs::copy("d", "o").await);
        ok("copy to", fs::copy("f", "d").await);
        ok("rename to", fs::rename("f", "d").await);
        ok("rename onto a file", fs::rename("d", "o").await);
        ok("remove_file", fs::remove_file("d").await);
        ok("remove_dir", fs::remove_dir("d").await);
        ok("create_dir", fs::create_dir("d").await);
        ok("create_dir_all", fs::create_dir_all("d").await);
        ok("hard_link", fs::hard_link("d", "h").await);
        ok("read_link", fs::read_link("d").await);
        println!("{:?}", std::fs::read_to_string("o"));
    });
}

fn read_and_write_round_trips() {
    let rt = runtime(2);
    rt.block_on(async {
        for n in [0usize, 1, 4096, 65537, 3 << 20] {
            fs::write("f", pattern(n)).await.unwrap();
            println!("{n} {}", fs::read("f").await.unwrap() == pattern(n));
        }
        fs::write("f", "short").await.unwrap();
        show("truncated", fs::read_to_string("f").await);
        fs::write("f", String::from("string")).await.unwrap();
        show("string", fs::read_to_string("f").await);
        fs::write("f", bytes::Bytes::from_static(b"bytes")).await.unwrap();
        show("bytes", fs::read_to_string("f").await);
        let v: Box<[u8]> = Box::new(*b"boxed");
        fs::write(PathBuf::from("f"), v).await.unwrap();
        show("boxed", fs::read_to_string("f").await);
        let local = [1u8, 2, 3];
        fs::write("f", &local[1..]).await.unwrap();
        show("borrowed", fs::read("f").await);
    });
}

fn read_to_string_of_utf8_and_not() {
    let rt = runtime(0);
    rt.block_on(async {
        fs::write("f", "grüße ☃").await.unwrap();
        show("utf-8", fs::read_to_string("f").await);
        fs::write("f", [b'a', 0xc3]).await.unwrap();
        text("cut", fs::read_to_string("f").await);
        fs::write("f", [0u8, 1]).await.unwrap();
        show("nul", fs::read_to_string("f").await);
        text("missing", fs::read_to_string("m").await);
    });
}

fn copy_copies_bytes_and_permissions() {
    let rt = runtime(1);
    rt.block_on(async {
        // SAFETY: the call takes numbers and no memory.
        unsafe { libc::umask(0o022) };
        fs::write("f", pattern(300_000)).await.unwrap();
        for m in [0o644, 0o755, 0o400, 0o600] {
            fs::set_permissions("f", std::fs::Permissions::from_mode(m)).await.unwrap();
            let _ = fs::remove_file("g").await;
            show("copy", fs::copy("f", "g").await);
            println!("{:o} {}", mode("g"), fs::read("g").await.unwrap() == pattern(300_000));
        }
        fs::write("h", "a longer old content").await.unwrap();
        fs::write("s", "short").await.unwrap();
        fs::set_permissions("s", std::fs::Permissions::from_mode(0o640)).await.unwrap();
        show("over", fs::copy("s", "h").await);
        println!("{:o} {:?}", mode("h"), fs::read_to_string("h").await);
    });
}

fn copy_onto_itself_empties_the_file() {
    let rt = runtime(0);
    rt.block_on(async {
        fs::write("f", "abc").await.unwrap();
        show("copy", fs::copy("f", "f").await);
        show("left", fs::read_to_string("f").await);
        fs::write("f", "abc").await.unwrap();
        fs::hard_link("f", "g").await.unwrap();
        show("copy", fs::copy("f", "g").await);
        show("left", fs::read_to_string("f").await);
    });
}

fn copy_of_what_is_not_a_file() {
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::create_dir("d").unwrap();
        text("directory", fs::copy("d", "o").await);
        text("/dev/null", fs::copy("/dev/null", "o").await);
        text("missing", fs::copy("m", "o").await);
        println!("{}", Path::new("o").exists());
        fs::write("f", "abc").await.unwrap();
        fs::symlink("f", "l").await.unwrap();
        show("link", fs::copy("l", "o").await);
        println!("{}", std::fs::symlink_metadata("o").unwrap().is_file());
        fs::symlink("target", "m").await.unwrap();
        show("through a dangling link", fs::copy("f", "m").await);
        show("target", fs::read_to_string("target").await);
        show("to /dev/null", fs::copy("f", "/dev/null").await.map(|_| ()));
        show("empty", {
            fs::write("e", "").await.unwrap();
            fs::copy("e", "e2").await
        });
    });
}

fn rename_replaces_and_refuses() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::write("a", "A").unwrap();
        std::fs::write("b", "B").unwrap();
        std::fs::create_dir_all("full/x").unwrap();
        std::fs::create_dir("empty").unwrap();
        std::fs::create_dir_all("dir/sub").unwrap();
        show("over a file", fs::rename("a", "b").await);
        show("b", fs::read_to_string("b").await);
        show("gone", fs::rename("a", "c").await);
        show("same", fs::rename("b", "b").await);
        show("file over dir", fs::rename("b", "empty").await);
        show("dir over file", fs::rename("empty", "b").await);
        show("dir over full dir", fs::rename("dir", "full").await);
        show("dir over empty dir", fs::rename("dir", "empty").await);
        println!("{}", Path::new("empty/sub").is_dir());
        show("into itself", fs::rename("full", "full/x/y").await);
        show("dot", fs::rename(".", "z").await);
        show("onto missing/", fs::rename("b", "nodir/").await);
        show("across devices", fs::rename("b", "/proc/self/b").await);
        show("across devices back", fs::rename("/proc/self/status", "s").await);
        fs::symlink("nowhere", "l").await.unwrap();
        show("link itself", fs::rename("l", "l2").await);
        println!("{}", std::fs::symlink_metadata("l2").unwrap().is_symlink());
    });
}

fn hard_links_count_and_refuse() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::write("a", "A").unwrap();
        std::fs::create_dir("d").unwrap();
        show("link", fs::hard_link("a", "b").await);
        println!("{}", std::fs::metadata("a").unwrap().nlink());
        show("existing", fs::hard_link("a", "b").await);
        show("directory", fs::hard_link("d", "e").await);
        show("missing", fs::hard_link("m", "e").await);
        show("across devices", fs::hard_link("/proc/sys/kernel/ostype", "e").await);
        fs::symlink("nowhere", "l").await.unwrap();
        show("of a dangling link", fs::hard_link("l", "l2").await);
        println!("{}", std::fs::symlink_metadata("l2").unwrap().is_symlink());
        fs::write("b", "changed").await.unwrap();
        show("a", fs::read_to_string("a").await);
    });
}

fn symlinks_and_read_link() {
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        show("link", fs::symlink("f", "l").await);
        show("any text", fs::symlink("no such // thing/../x", "l2").await);
        show("existing", fs::symlink("f", "l").await);
        show("empty target", fs::symlink("", "l3").await);
        show("read_link", fs::read_link("l").await);
        show("read_link", fs::read_link("l2").await);
        show("of a file", fs::read_link("f").await);
        show("missing", fs::read_link("m").await);
        show("read", fs::read_to_string("l").await);
        show("long target", fs::symlink("x".repeat(1000), "l4").await);
        show("too long target", fs::symlink("x".repeat(4096), "l5").await);
        show("length", fs::read_link("l4").await.map(|p| p.as_os_str().len()));
    });
}

fn canonicalize_resolves_links_and_dots() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::create_dir_all("d/e").unwrap();
        std::fs::write("d/f", "").unwrap();
        fs::symlink("d", "l").await.unwrap();
        fs::symlink("l2", "l2").await.unwrap();
        let base = fs::canonicalize(".").await.unwrap();
        let rel = |p: io::Result<PathBuf>| {
            p.map(|p| p.strip_prefix(&base).map(|p| p.to_owned()).unwrap_or(p))
        };
        println!("absolute {}", base.is_absolute());
        show("f", rel(fs::canonicalize("l/../l/e/../f").await));
        show("link", rel(fs::canonicalize("l").await));
        show("missing", rel(fs::canonicalize("l/x").await));
        show("loop", rel(fs::canonicalize("l2").await));
        show("file/.", rel(fs::canonicalize("d/f/.").await));
        show("root", rel(fs::canonicalize("/../..").await));
        show("null", rel(fs::canonicalize("/dev/null").await));
    });
}

fn metadata_follows_links_and_symlink_metadata_does_not() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        fs::symlink("f", "l").await.unwrap();
        fs::symlink("nowhere", "d").await.unwrap();
        let t =
            |m: io::Result<std::fs::Metadata>| m.map(|m| (m.is_file(), m.is_symlink(), m.len()));
        show("file", t(fs::metadata("f").await));
        show("link", t(fs::metadata("l").await));
        show("link itself", t(fs::symlink_metadata("l").await));
        show("dangling", t(fs::metadata("d").await));
        show("dangling itself", t(fs::symlink_metadata("d").await));
        show("missing", t(fs::symlink_metadata("m").await));
    });
}

fn try_exists_true_false_and_errors() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        std::fs::create_dir("d").unwrap();
        fs::symlink("nowhere", "dangling").await.unwrap();
        fs::symlink("loop", "loop").await.unwrap();
        for p in ["f", "d", "m", "dangling", "loop", "f/x", "f/", "", "a\0", ".", "/", "m/x"] {
            show(p.trim_end_matches('\0'), fs::try_exists(p).await);
        }
    });
}

fn remove_file_on_files_links_and_directories() {
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        std::fs::create_dir("d").unwrap();
        fs::symlink("d", "l").await.unwrap();
        show("missing", fs::remove_file("m").await);
        show("directory", fs::remove_file("d").await);
        show("slash", fs::remove_file("f/").await);
        show("link/", fs::remove_file("l/").await);
        show("link", fs::remove_file("l").await);
        println!("{}", Path::new("d").exists());
        show("file", fs::remove_file("f").await);
        show("again", fs::remove_file("f").await);
        show("dot", fs::remove_file(".").await);
        show("proc", fs::remove_file("/proc/self/status").await);
    });
}

fn remove_dir_on_empty_full_and_odd_ones() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::create_dir_all("d/e").unwrap();
        std::fs::write("f", "abc").unwrap();
        fs::symlink("d", "l").await.unwrap();
        show("full", fs::remove_dir("d").await);
        show("file", fs::remove_dir("f").await);
        show("link", fs::remove_dir("l").await);
        show("missing", fs::remove_dir("m").await);
        show("dot", fs::remove_dir("d/.").await);
        show("dotdot", fs::remove_dir("d/e/..").await);
        show("inner", fs::remove_dir("d/e").await);
        show("outer", fs::remove_dir("d/").await);
        show("root", fs::remove_dir("/").await);
    });
}

fn remove_dir_all_on_trees_links_and_files() {
    let rt = runtime(4);
    rt.block_on(async {
        std::fs::create_dir_all("d/e/f/g").unwrap();
        for i in 0..50 {
            std::fs::write(format!("d/e/{i}"), "x").unwrap();
        }
        std::fs::create_dir("keep").unwrap();
        std::fs::write("keep/k", "x").unwrap();
        std::os::unix::fs::symlink("../keep", "d/link").unwrap();
        std::fs::write("file", "x").unwrap();
        fs::symlink("keep", "l").await.unwrap();
        show("tree", fs::remove_dir_all("d").await);
        println!("{} {}", Path::new("d").exists(), Path::new("keep/k").exists());
        show("link", fs::remove_dir_all("l").await);
        println!("{} {}", std::fs::symlink_metadata("l").is_ok(), Path::new("keep/k").exists());
        show("file", fs::remove_dir_all("file").await);
        println!("{}", Path::new("file").exists());
        show("missing", fs::remove_dir_all("m").await);
        let mut f = File::open("keep/k").await.unwrap();
        show("with an open file", fs::remove_dir_all("keep").await);
        show("read", f.read_u8().await);
    });
}

fn create_dir_and_create_dir_all() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        fs::symlink("nowhere", "dangling").await.unwrap();
        show("one", fs::create_dir("d").await);
        show("again", fs::create_dir("d").await);
        show("no parent", fs::create_dir("x/y").await);
        show("below a file", fs::create_dir("f/y").await);
        show("over a file", fs::create_dir("f").await);
        show("over dangling", fs::create_dir("dangling").await);
        show("slash", fs::create_dir("e/").await);
        show("all", fs::create_dir_all("a/b/c").await);
        show("all again", fs::create_dir_all("a/b/c").await);
        show("all over a file", fs::create_dir_all("f").await);
        show("all below a file", fs::create_dir_all("f/x/y").await);
        show("all dots", fs::create_dir_all("a/../q/./r").await);
        show("all nothing", fs::create_dir_all("").await);
        show("all root", fs::create_dir_all("/").await);
        show("all through dangling", fs::create_dir_all("dangling/x").await);
    });
}

fn dir_builder_modes_and_recursion() {
    let rt = runtime(0);
    rt.block_on(async {
        // SAFETY: the call takes numbers and no memory.
        unsafe { libc::umask(0o022) };
        show("plain", DirBuilder::new().create("a").await);
        println!("{:o}", mode("a"));
        show("mode", DirBuilder::new().mode(0o700).create("b").await);
        println!("{:o}", mode("b"));
        show("mode 777", DirBuilder::new().mode(0o777).create("c").await);
        println!("{:o}", mode("c"));
        show("not recursive", DirBuilder::new().create("x/y").await);
        show("recursive", DirBuilder::new().recursive(true).mode(0o750).create("x/y").await);
        println!("{:o} {:o}", mode("x"), mode("x/y"));
        show("existing", DirBuilder::new().create("a").await);
        show("existing recursive", DirBuilder::new().recursive(true).create("a").await);
        let b = DirBuilder::default();
        show("reused", b.create("p").await);
        show("reused", b.create("q").await);
    });
}

fn concurrent_create_dir_all_of_one_path() {
    let rt = runtime(4);
    rt.block_on(async {
        let mut set = tokio::task::JoinSet::new();
        for _ in 0..20 {
            set.spawn(fs::create_dir_all("a/b/c/d/e"));
        }
        println!("{}", set.join_all().await.iter().all(|r| r.is_ok()));
        let mut set = tokio::task::JoinSet::new();
        for _ in 0..20 {
            set.spawn(fs::create_dir("one"));
        }
        println!("{}", set.join_all().await.iter().filter(|r| r.is_ok()).count());
        let mut set = tokio::task::JoinSet::new();
        for _ in 0..20 {
            set.spawn(async { File::create_new("f").await.map(|_| ()) });
        }
        println!("{}", set.join_all().await.iter().filter(|r| r.is_ok()).count());
    });
}

async fn names(d: &mut fs::ReadDir) -> Vec<String> {
    let mut v = Vec::new();
    while let Some(x) = d.next_entry().await.unwrap() {
        v.push(x.file_name().into_string().unwrap());
    }
    v.sort();
    v
}

fn read_dir_gives_names_types_and_paths() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::create_dir_all("d/dir").unwrap();
        std::fs::write("d/file", "abc").unwrap();
        std::os::unix::fs::symlink("file", "d/link").unwrap();
        std::os::unix::fs::symlink("nowhere", "d/dangling").unwrap();
        // SAFETY: what the pointers lead to is valid for the call.
        unsafe { libc::mkfifo(c"d/fifo".as_ptr(), 0o600) };
        let _s = std::os::unix::net::UnixListener::bind("d/sock").unwrap();
        let mut v = Vec::new();
        let mut d = fs::read_dir("d").await.unwrap();
        while let Some(x) = d.next_entry().await.unwrap() {
            let t = x.file_type().await.unwrap();
            let m = x.metadata().await.unwrap();
            v.push(format!(
                "{:?} {:?} f{} d{} l{} p{} s{} ino{} m{}",
                x.file_name(),
                x.path(),
                t.is_file() as u8,
                t.is_dir() as u8,
                t.is_symlink() as u8,
                t.is_fifo() as u8,
                t.is_socket() as u8,
                (x.ino() == m.ino()) as u8,
                (m.file_type() == t) as u8,
            ));
        }
        v.sort();
        v.iter().for_each(|x| println!("{x}"));
        println!("{}", d.next_entry().await.unwrap().is_none());
        println!("{}", d.next_entry().await.unwrap().is_none());
    });
}

fn read_dir_of_odd_paths() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::create_dir("d").unwrap();
        std::fs::write("f", "").unwrap();
        fs::symlink("d", "l").await.unwrap();
        show("missing", fs::read_dir("m").await.map(|_| ()));
        show("file", fs::read_dir("f").await.map(|_| ()));
        show("empty path", fs::read_dir("").await.map(|_| ()));
        let mut d = fs::read_dir("d").await.unwrap();
        println!("{:?}", names(&mut d).await);
        let mut d = fs::read_dir("l").await.unwrap();
        println!("{:?}", names(&mut d).await);
        let mut d = fs::read_dir(".").await.unwrap();
        println!("{:?}", names(&mut d).await);
        let mut d = fs::read_dir("./").await.unwrap();
        let x = d.next_entry().await.unwrap().unwrap();
        println!("{}", x.path().starts_with("./"));
    });
}

fn read_dir_of_many_entries_in_chunks() {
    let rt = runtime(2);
    rt.block_on(async {
        for n in [31usize, 32, 33, 70] {
            let d = format!("d{n}");
            std::fs::create_dir(&d).unwrap();
            for i in 0..n {
                std::fs::write(format!("{d}/{i:03}"), "").unwrap();
            }
            let mut r = fs::read_dir(&d).await.unwrap();
            let v = names(&mut r).await;
            println!("{} {:?} {:?}", v.len(), v.first(), v.last());
        }
    });
}

fn read_dir_as_a_stream_and_by_poll() {
    let rt = runtime(1);
    rt.block_on(async {
        use tokio_stream::StreamExt;
        for i in 0..40 {
            std::fs::write(format!("{i}"), "").unwrap();
        }
        let s = tokio_stream::wrappers::ReadDirStream::new(fs::read_dir(".").await.unwrap());
        let v: Vec<_> = s.map(|x| x.is_ok()).collect().await;
        println!("{} {}", v.len(), v.iter().all(|x| *x));
        let mut d = fs::read_dir(".").await.unwrap();
        let mut n = 0;
        while poll_fn(|cx| d.poll_next_entry(cx)).await.unwrap().is_some() {
            n += 1;
        }
        println!("{n}");
    });
}

fn an_entry_that_is_gone_has_no_metadata() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::create_dir("d").unwrap();
        std::fs::write("d/f", "").unwrap();
        let mut d = fs::read_dir("d").await.unwrap();
        let x = d.next_entry().await.unwrap().unwrap();
        drop(d);
        std::fs::remove_file("d/f").unwrap();
        show("metadata", x.metadata().await.map(|_| ()));
        show("file_type", x.file_type().await.map(|t| t.is_file()));
        std::fs::create_dir("d/f").unwrap();
        show("metadata", x.metadata().await.map(|m| m.is_dir()));
        show("file_type", x.file_type().await.map(|t| t.is_file()));
    });
}

fn a_directory_removed_while_it_is_read() {
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::create_dir("d").unwrap();
        for i in 0..10 {
            std::fs::write(format!("d/{i}"), "").unwrap();
        }
        let mut d = fs::read_dir("d").await.unwrap();
        let _ = d.next_entry().await.unwrap().unwrap();
        fs::remove_dir_all("d").await.unwrap();
        let mut n = 1;
        while let Some(_) = d.next_entry().await.unwrap() {
            n += 1;
        }
        println!("{n}");
    });
}

fn set_permissions_on_paths() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::write("f", "").unwrap();
        std::fs::create_dir("d").unwrap();
        fs::symlink("f", "l").await.unwrap();
        let p = std::fs::Permissions::from_mode;
        show("file", fs::set_permissions("f", p(0o604)).await);
        println!("{:o}", mode("f"));
        show("through link", fs::set_permissions("l", p(0o640)).await);
        println!("{:o}", mode("f"));
        show("dir", fs::set_permissions("d", p(0o1711)).await);
        println!("{:o}", mode("d"));
        show("missing", fs::set_permissions("m", p(0o600)).await);
        let mut q = fs::metadata("f").await.unwrap().permissions();
        q.set_readonly(true);
        show("readonly", fs::set_permissions("f", q).await);
        println!("{:o}", mode("f"));
        println!("{}", fs::metadata("f").await.unwrap().permissions().readonly());
    });
}

fn reads_of_a_file_that_changes_under_them() {
    let rt = runtime(0);
    rt.block_on(async {
        fs::write("f", pattern(10_000)).await.unwrap();
        let mut f = File::open("f").await.unwrap();
        f.read_exact(&mut [0; 6000]).await.unwrap();
        fs::write("f", "short").await.unwrap();
        show("after truncation", f.read(&mut [0; 10]).await);
        fs::write("f", pattern(8000)).await.unwrap();
        let mut v = Vec::new();
        show("after growth", f.read_to_end(&mut v).await);
        fs::rename("f", "g").await.unwrap();
        fs::write("f", "new").await.unwrap();
        f.rewind().await.unwrap();
        show("after rename", f.read_to_end(&mut v).await);
    });
}

fn a_write_that_fails_at_open_leaves_the_old_content() {
    let rt = runtime(2);
    rt.block_on(async {
        fs::write("f", "old").await.unwrap();
        show("as directory", fs::write("f/", "new").await);
        show("content", fs::read_to_string("f").await);
        std::fs::create_dir("d").unwrap();
        show("dir", fs::write("d", "new").await);
    });
}
