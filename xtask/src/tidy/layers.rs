//! The layer rule of the runtime crate: which folder may name which.
//!
//! The engine's folders are layers; a folder names only itself and folders of the layers before its
//! own. The engine names nothing of the library above it. Only `prim` names std's (or loom's)
//! atomics, threads and cells, because one forgotten `std::thread` is a step that no model
//! explores.

use super::{File, Finding, is_test_file};

/// The runtime crate's source.
pub const CRATE: &str = "crates/blitz-io/src/";

/// The source of the queues' variants, which have negative controls too.
pub const VARIANTS: &str = "bench/queues/variants/src/";

/// The engine's layers from the bottom up. Folders of one layer must not name each other.
pub const LAYERS: &[&[&str]] = &[
    &["prim"],
    &["queue", "lease"],
    &["work"],
    &["wait"],
    &["driver", "wheel", "threads"],
    &["uring", "signals"],
    &["pool", "preempt", "local"],
    &["fork", "blocking"],
    &["fiber"],
];

/// The two folders that may name each other although they share a layer. Preemption takes cores
/// from the pool's threads and runs them on others, and those threads keep the records that it
/// reads; so neither can be below the other.
const PARTNERS: [&str; 2] = ["pool", "preempt"];

/// Paths that only `prim` may name, and whether tests may too: a test may start plain threads
/// around the thing it tests, and a count over all runs of a model must be kept outside of the
/// model.
const GROUND: &[(&str, bool)] = &[
    ("std::sync::atomic", true),
    ("core::sync::atomic", true),
    ("loom", false),
    ("std::cell::UnsafeCell", false),
    ("core::cell::UnsafeCell", false),
    ("std::thread", true),
];

/// Items that start, block and order nothing, so a model has nothing to explore in them.
const HARMLESS: &[&str] = &["std::thread::panicking"];

fn layer(folder: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&folder))
}

fn are_partners(folder: &str, other: &str) -> bool {
    PARTNERS.contains(&folder) && PARTNERS.contains(&other)
}

/// Returns the engine folder that a file lies in; `engine/mod.rs` lies in none.
fn engine_folder(path: &str) -> Option<&str> {
    let inside = path.strip_prefix(CRATE)?.strip_prefix("engine/")?;
    let (folder, _) = inside.split_once('/').unwrap_or((inside.trim_end_matches(".rs"), ""));
    (folder != "mod").then_some(folder)
}

/// Checks the layer rule.
pub fn layers(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        let (Some(folder), Some(source)) = (engine_folder(&file.path), &file.source) else {
            continue;
        };
        let Some(own) = layer(folder) else {
            let what = format!("engine/{folder} has no layer: add it to LAYERS in tidy/layers.rs");
            findings.push(file.finding(0, what));
            continue;
        };
        for named in source.paths() {
            let what = match target(&file.path, &named.path) {
                Target::Engine(other) if other == folder => continue,
                Target::Engine(other) if layer(&other).is_some_and(|layer| layer < own) => continue,
                Target::Engine(other) if are_partners(folder, &other) => continue,
                Target::Engine(other) => format!(
                    "`{folder}` may not name `{other}`: only folders of earlier layers; move the code or pass it in"
                ),
                Target::Library(other) => {
                    format!("the engine may not name `crate::{other}`: the library is above it")
                }
                Target::Elsewhere => continue,
            };
            findings.push(file.finding(named.line, what));
        }
    }
    findings
}

enum Target {
    Engine(String),
    Library(String),
    Elsewhere,
}

/// Returns where a path named in an engine file leads.
fn target(file: &str, path: &str) -> Target {
    let mut segments = path.split("::").peekable();
    if segments.peek() == Some(&"crate") {
        segments.next();
        return match segments.next().unwrap_or_default() {
            "engine" => match segments.next() {
                Some(name) if layer(name).is_some() => Target::Engine(name.to_owned()),
                _ => Target::Elsewhere,
            },
            other => Target::Library(other.to_owned()),
        };
    }
    // `super` counts from the file's own module; inside an inline module it
    // leads one step less far, and then to a name that is no layer.
    let depth = file.trim_start_matches(CRATE).split('/').filter(|part| *part != "mod.rs").count();
    let mut ups = 0;
    while segments.next_if_eq(&"super").is_some() {
        ups += 1;
    }
    match segments.next() {
        Some(name) if ups > 0 && ups + 1 == depth && layer(name).is_some() => {
            Target::Engine(name.to_owned())
        }
        _ => Target::Elsewhere,
    }
}

/// Checks that atomics, threads and cells come from `prim`.
pub fn ground(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        let Some(source) = &file.source else { continue };
        if !file.path.starts_with(CRATE) || engine_folder(&file.path) == Some("prim") {
            continue;
        }
        let test_file = is_test_file(files, &file.path);
        for named in source.paths() {
            let test = test_file || source.is_test(named.line);
            if HARMLESS.contains(&named.path.as_str()) {
                continue;
            }
            let hit = GROUND.iter().find(|(path, tests_may)| {
                let starts = named.path.strip_prefix(path);
                starts.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
                    && !(test && *tests_may)
            });
            if let Some((path, _)) = hit {
                let what = format!("`{path}` is named only in engine/prim: take it from there");
                findings.push(file.finding(named.line, what));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{ground, layers};
    use crate::tidy::File;

    fn engine(path: &str, text: &str) -> Vec<File> {
        vec![File::new(&format!("crates/blitz-io/src/engine/{path}"), text)]
    }

    #[test]
    fn a_layer_names_only_layers_before_it() {
        let good = "use crate::engine::{prim::Arc, queue::ring};\nuse super::list;\n";
        assert_eq!(layers(&engine("queue/ring.rs", good)), []);
        for bad in [
            "use crate::engine::pool::Worker;",
            "use crate::engine::{\n    prim::Arc,\n    work::Task,\n};",
            "fn f() { crate::engine::work::task::go() }",
            "use super::super::work::Task;",
            "use crate::runtime::Handle;",
            "use crate::{engine::prim, task::spawn};",
        ] {
            assert_eq!(layers(&engine("queue/ring.rs", bad)).len(), 1, "{bad}");
        }
        assert_eq!(layers(&engine("wheel/mod.rs", "use crate::engine::driver::D;")).len(), 1);
        assert_eq!(layers(&engine("surprise/mod.rs", "")).len(), 1);
    }

    #[test]
    fn only_pool_and_preempt_name_each_other_within_a_layer() {
        assert_eq!(layers(&engine("pool/mod.rs", "use crate::engine::preempt::W;")), []);
        assert_eq!(layers(&engine("preempt/mod.rs", "use crate::engine::pool::Pool;")), []);
        assert_eq!(layers(&engine("local/mod.rs", "use crate::engine::preempt::W;")).len(), 1);
        assert_eq!(layers(&engine("preempt/mod.rs", "use crate::engine::local::L;")).len(), 1);
        assert_eq!(layers(&engine("lease/mod.rs", "use crate::engine::work::T;")).len(), 1);
    }

    #[test]
    fn a_library_file_may_name_the_engine() {
        let file = File::new("crates/blitz-io/src/task/mod.rs", "use crate::engine::pool::P;");
        assert_eq!(layers(&[file]), []);
    }

    #[test]
    fn only_prim_names_the_ground() {
        for bad in [
            "use std::sync::atomic::AtomicBool;",
            "use std::{sync::{Arc, atomic}, time::Instant};",
            "use std::thread;",
            "fn f() { std::thread::sleep(x) }",
            "use std::cell::{Cell, UnsafeCell};",
            "#[cfg(test)]\nmod tests {\n    use std::cell::UnsafeCell;\n}",
        ] {
            assert_eq!(ground(&engine("queue/ring.rs", bad)).len(), 1, "{bad}");
            assert_eq!(ground(&engine("prim/real.rs", bad)), [], "{bad}");
        }
        let good = "// std::thread in prose.\nstd::thread_local!(x);\n\
                    use crate::engine::prim::UnsafeCell;\n\
                    fn f() { std::thread::panicking(); }\n\
                    #[cfg(test)]\nmod tests {\n    use std::{sync::atomic, thread};\n}";
        assert_eq!(ground(&engine("queue/ring.rs", good)), []);
        let mut files = engine("queue/mod.rs", "#[cfg(test)]\nmod test_node;\n");
        files.extend(engine("queue/test_node.rs", "use std::thread;"));
        assert_eq!(ground(&files), []);
    }
}
