//! Checks that docs/cancel-safety.md has a row for each asynchronous function of the runtime crate.

use xtask::tidy::{self, layers::CRATE};

/// Returns the name of a `pub async fn` that a line declares.
fn declared(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub async fn ")?;
    rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()
}

/// Returns true if a row names the function: alone, or behind a type.
fn is_named(table: &str, name: &str) -> bool {
    let rows = table.lines().filter(|line| line.starts_with("| "));
    let functions = rows.filter_map(|row| row.split('|').nth(1));
    let mut words = functions.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    words.any(|word| word.rsplit("::").next() == Some(name))
}

#[test]
fn every_asynchronous_function_has_a_row() {
    let files = tidy::tree();
    let table = files.iter().find(|file| file.path == "docs/cancel-safety.md").expect("the table");
    let mut seen = 0;
    for file in &files {
        let Some(inside) = file.path.strip_prefix(CRATE) else { continue };
        let folder = inside.split('/').next().unwrap_or_default();
        if folder == "engine" || tidy::is_test_file(&files, &file.path) {
            continue;
        }
        for line in file.source.iter().flat_map(|source| &source.lines) {
            let Some(name) = declared(&line.bare) else { continue };
            seen += 1;
            assert!(
                is_named(&table.text, name),
                "`{name}` of {} has no row in docs/cancel-safety.md: say what is lost if it is dropped",
                file.path
            );
        }
    }
    assert!(seen > 50, "{seen} were found: are they declared another way?");
}

#[test]
fn a_function_without_a_row_is_noticed() {
    assert_eq!(declared("    pub async fn recv_many<T>(&mut self)"), Some("recv_many"));
    assert_eq!(declared("pub fn recv()"), None);
    let table = "| `mpsc::Receiver::recv`, `send` | **yes** | `other` |\n";
    assert!(is_named(table, "recv") && is_named(table, "send"));
    assert!(!is_named(table, "rec") && !is_named(table, "other"));
}
