//! Defects that are planted are found, and a run without one passes.
//!
//! Dependence on time: a planted hang is found after `--deadline`, and no other test has a deadline
//! that a slow machine could miss, because the default is a minute for work of some milliseconds.

#![cfg(target_os = "linux")]

use std::process::{Command, Output};

/// The exit code of a run in which something was lost or doubled.
const MISCOUNTED: i32 = 1;
/// The exit code of a run that did not end.
const HUNG: i32 = 3;

fn chaos(arguments: &str) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chaos"));
    let Output { status, stdout, stderr } =
        command.arg("--brief").args(arguments.split(' ')).output().unwrap();
    let text = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (status.code(), text.concat())
}

/// Plants a defect into a round of yields.
fn plant(kind: &str, more: &str) -> (Option<i32>, String) {
    chaos(&format!("--seed 1 --round 0 --only spawn --plant {kind}{more}"))
}

#[test]
fn a_run_without_a_defect_passes() {
    let (code, text) = chaos("--seed 1 --seconds 2 --only spawn,abort,sleep,channel,lock,job");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("passed: seed 1, "), "{text}");
}

#[test]
fn lost_values_and_leaked_resources_are_found() {
    for (kind, words) in [
        ("lost-task", "not dropped: {\"future of a task\": 1}"),
        ("lost-message", "not dropped: {\"message\": 1}"),
        ("thread", "left at the end: threads: "),
        ("descriptor", "left at the end: descriptors: [\"/dev/null\""),
        ("child", "left at the end: a child process"),
    ] {
        let (code, text) = plant(kind, "");
        assert_eq!(code, Some(MISCOUNTED), "{kind}: {text}");
        assert!(text.contains(words), "{kind}: {text}");
    }
}

#[test]
fn a_value_that_is_dropped_twice_is_found() {
    let (code, text) = plant("double-drop", "");
    assert_eq!(code, Some(MISCOUNTED), "{text}");
    assert!(text.contains("more than once: {\"value with a destructor\": 1}"), "{text}");
}

#[test]
fn a_panic_that_no_plan_has_is_found() {
    let (code, text) = plant("panic", "");
    assert_eq!(code, Some(MISCOUNTED), "{text}");
    assert!(text.contains("a panic that no plan has"), "{text}");
}

#[test]
fn a_hang_is_found_with_its_seed_and_round() {
    for kind in ["hang", "hang-at-end"] {
        let (code, text) = plant(kind, " --deadline 2");
        assert_eq!(code, Some(HUNG), "{kind}: {text}");
        assert!(text.contains("HANG: seed 1 round 0"), "{kind}: {text}");
    }
}
