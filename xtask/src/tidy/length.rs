//! Long functions and long files: reported, never refused.

use super::{File, Finding};
use crate::source::{block_end, function_name};

/// The length from which functions are reported. The style guide suggests a second look past 35
/// lines.
const FUNCTION: usize = 60;

/// The length from which files are reported: where a reader loses the thread. Picked, not measured.
const FILE: usize = 700;

/// Returns long functions and long files.
pub fn long(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        let Some(source) = &file.source else { continue };
        let count = source.lines.len();
        if count > FILE {
            findings.push(file.finding(0, format!("note: {count} lines in one file")));
        }
        for (at, line) in source.lines.iter().enumerate() {
            let Some(name) = function_name(&line.bare) else { continue };
            let header = source.lines[at..].iter().take(FUNCTION);
            // A `;` before the first `{` ends a declaration without a body.
            let opens = header.map(|line| line.bare.find(['{', ';']).map(|i| &line.bare[i..=i]));
            let Some((offset, Some("{"))) = opens.enumerate().find(|(_, mark)| mark.is_some())
            else {
                continue;
            };
            let length = block_end(&source.lines, at + offset) - at;
            if length > FUNCTION {
                findings.push(file.finding(at, format!("note: `{name}` has {length} lines")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::long;
    use crate::tidy::File;

    #[test]
    fn long_functions_and_files_are_reported() {
        let body = |lines| format!("fn f(\n) {{\n{}}}\nfn g();\n", "    f();\n".repeat(lines));
        assert_eq!(long(&[File::new("a.rs", &body(57))]), []);
        assert_eq!(long(&[File::new("a.rs", &body(58))]).len(), 1);
        assert_eq!(long(&[File::new("a.rs", &"x();\n".repeat(701))]).len(), 1);
    }
}
