//! Passes the newest record of `bench/fork` to the command, which shows Rayon's figure from it.
//!
//! The comparison links Rayon and takes minutes; the command does neither. It takes the figure from
//! the record, as text that is compiled in, so that it is available without a checkout as well. A
//! package that is built without the records has none, and the tour omits the figure.

#![forbid(unsafe_code)]

use std::{env, fs, path::Path};

/// The folder of a checkout's records, relative to this package.
const RECORDS: &str = "../../bench/record";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let records = Path::new(RECORDS);
    // Only if it exists, because cargo considers a missing path changed, at every build.
    if records.is_dir() {
        println!("cargo::rerun-if-changed={RECORDS}");
    }
    let names = fs::read_dir(records).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let text = match newest(names) {
        Some(name) => fs::read_to_string(records.join(&name))
            .unwrap_or_else(|error| panic!("cannot read the record {name}: {error}; restore it")),
        None => String::new(),
    };
    let out = env::var_os("OUT_DIR").expect("cargo says where to write");
    fs::write(Path::new(&out).join("fork.md"), text).expect("cargo's directory can be written to");
}

/// Returns the newest record of the whole comparison, by day and then by number.
fn newest(names: impl Iterator<Item = String>) -> Option<String> {
    names.filter_map(|name| Some((place(&name)?, name))).max().map(|(_, name)| name)
}

/// Returns day and number of `2026-01-31-fork.md` (1) and `2026-01-31-fork-2.md` (2); `None` for
/// others, such as those of quick runs.
fn place(name: &str) -> Option<(String, u32)> {
    let (day, rest) = name.strip_suffix(".md")?.split_at_checked("2026-01-31".len())?;
    let number = match rest.strip_prefix("-fork")? {
        "" => 1,
        more => more.strip_prefix('-')?.parse().ok()?,
    };
    Some((day.to_owned(), number))
}

#[cfg(test)]
mod tests {
    use super::newest;

    #[test]
    fn the_newest_record_is_taken_and_quick_ones_are_not() {
        let names = [
            "2026-11-15-fork.md",
            "2026-11-16-fork-2.md",
            "2026-11-16-fork.md",
            "2026-11-16-fork-10.md",
            "2026-11-16-fork.csv",
            "2026-11-17-fork-quick.md",
            "2026-11-18-sched.md",
            "README.md",
        ];
        let among = |names: &[&str]| newest(names.iter().map(|&name| name.to_owned()));
        assert_eq!(among(&names).as_deref(), Some("2026-11-16-fork-10.md"));
        assert_eq!(among(&names[..3]).as_deref(), Some("2026-11-16-fork-2.md"));
        assert_eq!(among(&names[4..]), None);
    }
}
