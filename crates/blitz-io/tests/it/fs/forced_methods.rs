//! Runs the tests of files again, once for each method that is otherwise chosen at run time.

use crate::support::child;

/// Runs all tests of files with an environment variable set.
fn again(variable: &str, value: &str) {
    some_again(variable, value, &["fs::"]);
}

/// Runs the tests whose names contain one of `names`.
fn some_again(variable: &str, value: &str, names: &[&str]) {
    if child::role().is_some() {
        return;
    }
    let mut command = child::program();
    child::prepare(&mut command, "forced");
    // Tests that start child processes themselves are not run again.
    let skipped =
        ["--skip=fs::forced_methods::", "--skip=fs::refused_calls::", "--skip=fs::faults::"];
    let output =
        command.args(skipped).args(names).env(variable, value).output().expect("it starts");
    let text = child::text(&output);
    assert!(output.status.success(), "{variable}={value}: {text}");
    assert!(text.contains("passed"), "{text}");
}

#[test]
fn by_threads_alone() {
    again("BLITZ_FS_INLINE", "never");
}

/// The modules with tests that read at an offset.
const READ_AT: [&str; 4] =
    ["fs::read_at::", "fs::inline::", "fs::hostile::", "fs::special_files::"];

#[test]
fn with_reads_at_an_offset_by_io_uring() {
    some_again("BLITZ_FS_INLINE", "uring", &READ_AT);
}

#[test]
fn with_copies_by_ranges() {
    again("BLITZ_FS_COPY", "range");
}

#[test]
fn with_copies_by_reading_and_writing() {
    again("BLITZ_FS_COPY", "plain");
}

#[test]
fn a_variable_that_means_nothing_is_refused() {
    const NAME: &str = "fs::forced_methods::a_variable_that_means_nothing_is_refused";
    if child::role().is_some() {
        let dir = crate::support::temp_files::folder();
        let path = crate::support::temp_files::file(dir.path(), 10);
        crate::support::runtimes::one_thread().block_on(async {
            let _ = blitz_io::fs::read(&path).await;
            blitz_io::fs::copy(&path, dir.path().join("to")).await.unwrap();
        });
        return;
    }
    for variable in ["BLITZ_FS_INLINE", "BLITZ_FS_COPY"] {
        let output = child::command(NAME, "child").env(variable, "sometimes").output().unwrap();
        assert!(!output.status.success());
        let text = child::text(&output);
        assert!(text.contains(variable) && text.contains("sometimes"), "{text}");
    }
}
