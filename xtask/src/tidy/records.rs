//! The index of `bench/record`, which must name every record.

use super::{File, Finding};

/// The folder of the records.
const FOLDER: &str = "bench/record/";

/// The index, in that folder.
const INDEX: &str = "README.md";

/// Checks that the index names every record, and no record that is missing. Raw numbers belong to
/// the record of the same name.
pub fn records(files: &[File]) -> Vec<Finding> {
    let in_folder = |file: &&File| file.path.starts_with(FOLDER);
    let name = |file: &File| file.path[FOLDER.len()..].to_owned();
    let all: Vec<&File> = files.iter().filter(in_folder).collect();
    let Some(index) = all.iter().find(|file| name(file) == INDEX) else {
        return all
            .first()
            .map(|file| file.finding(0, "add an index, README.md"))
            .into_iter()
            .collect();
    };
    let mut findings = Vec::new();
    for file in all.iter().filter(|file| name(file) != INDEX) {
        let record = name(file).replace(".csv", ".md");
        if !index.text.contains(&format!("]({record})")) {
            let what = format!("{FOLDER}{INDEX} does not name it: add a line for {record}");
            findings.push(file.finding(0, what));
        }
    }
    for (at, line) in index.text.lines().enumerate() {
        for record in links(line).filter(|link| !link.contains('/') && link.ends_with(".md")) {
            if !all.iter().any(|file| name(file) == record) {
                findings.push(index.finding(at, format!("there is no record {record}")));
            }
        }
    }
    findings
}

/// Returns the targets of the links in a line of Markdown.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

#[cfg(test)]
mod tests {
    use super::records;
    use crate::tidy::File;

    fn found(index: &str, others: &[&str]) -> Vec<String> {
        let mut files = vec![File::new("bench/record/README.md", index)];
        files.extend(others.iter().map(|name| File::new(&format!("bench/record/{name}"), "")));
        records(&files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_record_that_the_index_names_passes_with_its_numbers() {
        let index = "How to read: [above](../README.md).\n| [a](2026-a.md) | [b](2026-b.md) |\n";
        assert_eq!(found(index, &["2026-a.md", "2026-a.csv", "2026-b.md"]), [""; 0]);
    }

    #[test]
    fn a_record_that_the_index_does_not_name_is_found() {
        let index = "| [a](2026-a.md) |\nnot a link: 2026-b.md\n";
        let findings = found(index, &["2026-a.md", "2026-b.md", "2026-c.csv"]);
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].starts_with("bench/record/2026-b.md:1: "), "{findings:?}");
        assert!(findings[1].contains("2026-c.md"), "{findings:?}");
    }

    #[test]
    fn a_line_without_its_record_is_found() {
        let findings = found("# Records\n| [a](2026-a.md) |\n", &[]);
        assert_eq!(findings, ["bench/record/README.md:2: there is no record 2026-a.md"]);
    }

    #[test]
    fn a_missing_index_is_found() {
        assert_eq!(records(&[File::new("bench/record/2026-a.md", "")]).len(), 1);
        assert_eq!(records(&[File::new("README.md", "")]), []);
    }
}
