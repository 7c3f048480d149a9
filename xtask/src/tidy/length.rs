//! Long functions and long files: reported, never refused.

use super::{File, Finding};
use crate::source::{block_end, function_name};

/// Past 35 lines one should ask what the second idea of a function is; this is
/// where tidy asks.
const FUNCTION: usize = 60;

/// Where a reader loses the thread of a file. Picked, not measured.
const FILE: usize = 700;

/// The long ones.
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
