//! Negative controls of the comparison: a small crate, and a copy with one fault of each kind, all
//! of which must be found.

use std::collections::BTreeSet;

use super::{
    compare::{Excuses, compare},
    docs::Docs,
    surface::{Root, surface},
};
use crate::{Outcome, root, shell};

/// A part of the small crate, sound and with a fault.
struct Part {
    name: &'static str,
    sound: &'static str,
    spoilt: &'static str,
    /// An equivalent way to write it, which must not be reported as a fault.
    rewritten: Option<&'static str>,
}

const PARTS: &[Part] = &[
    // Existence of items.
    Part {
        name: "gone",
        sound: "pub mod gone { pub fn f() {} }",
        spoilt: "",
        rewritten: Some("mod p { pub mod gone { pub fn f() {} } } pub use p::gone;"),
    },
    Part { name: "gone_f", sound: "pub fn gone_f() {}", spoilt: "fn gone_f() {}", rewritten: None },
    Part {
        name: "gone_m",
        sound: "#[macro_export] macro_rules! gone_m { () => {} }",
        spoilt: "",
        rewritten: None,
    },
    Part {
        name: "Made",
        sound: "pub struct Made { pub a: u8 }",
        spoilt: "pub struct Made { pub a: u8, b: u8 }",
        rewritten: None,
    },
    Part {
        name: "Few",
        sound: "pub enum Few { A, B }",
        spoilt: "pub enum Few { A, B, C }",
        rewritten: None,
    },
    Part {
        name: "Open",
        sound: "pub enum Open { A }",
        spoilt: "#[non_exhaustive] pub enum Open { A }",
        rewritten: None,
    },
    Part {
        name: "LIMIT",
        sound: "pub const LIMIT: usize = 1;",
        spoilt: "pub const LIMIT: u32 = 1;",
        rewritten: None,
    },
    // Signatures.
    Part {
        name: "arg",
        sound: "pub fn arg(_: u8) {}",
        spoilt: "pub fn arg(_: u16) {}",
        rewritten: None,
    },
    Part {
        name: "ret",
        sound: "pub fn ret() -> u8 { 0 }",
        spoilt: "pub fn ret() -> u16 { 0 }",
        rewritten: None,
    },
    Part {
        name: "fixed",
        sound: "pub const fn fixed() {}",
        spoilt: "pub fn fixed() {}",
        rewritten: None,
    },
    Part {
        name: "later",
        sound: "pub async fn later(a: &u8) -> u8 { *a }",
        spoilt: "pub fn later(a: &u8) -> u8 { *a }",
        rewritten: Some(
            "pub fn later<'x>(a: &'x u8) -> impl std::future::Future<Output = u8> + use<'x> { let a = *a; async move { a } }",
        ),
    },
    Part {
        name: "of",
        sound: "pub fn of<T: Clone>(_: T) where T: Send {}",
        spoilt: "pub fn of<T: Clone>(_: T) where T: Send + Sync {}",
        rewritten: Some("pub fn of<Part: Send + Clone>(_: Part) {}"),
    },
    Part {
        name: "io",
        sound: "pub fn io() -> std::io::Result<u8> { Ok(0) }",
        spoilt: "pub fn io() -> Result<u8, String> { Ok(0) }",
        rewritten: Some("pub fn io() -> Result<u8, std::io::Error> { Ok(0) }"),
    },
    Part {
        name: "longer",
        sound: "pub fn longer<'a, 'b>(a: &'a str, _: &'b str) -> &'a str { a }",
        spoilt: "pub fn longer<'a, 'b>(_: &'b str, a: &'a str) -> &'a str { a }",
        rewritten: Some("pub fn longer<'x>(a: &'x str, _: &str) -> &'x str { a }"),
    },
    Part {
        name: "M",
        sound: "pub struct M; impl M { pub fn m(&self) -> &Self { self } }",
        spoilt: "pub struct M; impl M { pub fn m(&mut self) -> &Self { self } }",
        rewritten: Some("pub struct M; impl M { pub fn m<'a>(&'a self) -> &'a M { self } }"),
    },
    // Traits and implementations.
    Part {
        name: "T",
        sound: "pub trait T { fn a(&self); }",
        spoilt: "pub trait T { fn a(&self); fn b(&self); }",
        rewritten: None,
    },
    Part {
        name: "Has",
        sound: "pub trait Has { fn a(&self) {} }",
        spoilt: "pub trait Has { fn a(&self); }",
        rewritten: Some("pub trait Has { fn a(&self) { todo() } } fn todo() {}"),
    },
    Part {
        name: "C",
        sound: "#[derive(Clone)] pub struct C;",
        spoilt: "pub struct C;",
        rewritten: None,
    },
    Part {
        name: "Wide",
        sound: "pub struct Wide<T>(Vec<T>); impl<T: Copy> Clone for Wide<T> { fn clone(&self) -> Self { Wide(vec![]) } }",
        spoilt: "pub struct Wide<T>(Vec<T>); impl<T: Ord> Clone for Wide<T> { fn clone(&self) -> Self { Wide(vec![]) } }",
        rewritten: Some(
            "pub struct Wide<T>(Vec<T>); impl<T> Clone for Wide<T> { fn clone(&self) -> Self { Wide(vec![]) } }",
        ),
    },
    Part {
        name: "Hid",
        sound: "mod q { pub struct Hid; } pub use q::Hid;",
        spoilt: "pub struct Hide;",
        rewritten: Some("#[doc(hidden)] pub mod q { pub struct Hid; } pub use q::Hid;"),
    },
    Part {
        name: "It",
        sound: "pub struct It; impl Iterator for It { type Item = u8; fn next(&mut self) -> Option<u8> { None } }",
        spoilt: "pub struct It; impl Iterator for It { type Item = u16; fn next(&mut self) -> Option<u16> { None } }",
        rewritten: None,
    },
    Part {
        name: "Sent",
        sound: "pub struct Sent(u8);",
        spoilt: "pub struct Sent(*const u8);",
        rewritten: Some("pub struct Sent { _a: u16 }"),
    },
    Part {
        name: "Held",
        sound: "pub struct Held(*const u8);",
        spoilt: "pub struct Held(u8);",
        rewritten: None,
    },
    Part {
        name: "Caught",
        sound: "pub struct Caught(u8);",
        spoilt: "pub struct Caught(std::cell::UnsafeCell<u8>); unsafe impl Sync for Caught {}",
        rewritten: None,
    },
    Part {
        name: "Still",
        sound: "pub struct Still(u8);",
        spoilt: "pub struct Still(u8, std::marker::PhantomPinned);",
        rewritten: None,
    },
    Part {
        name: "Gen",
        sound: "pub struct Gen<T>(T);",
        spoilt: "pub struct Gen<T>(T, std::marker::PhantomData<std::rc::Rc<T>>);",
        rewritten: Some("pub struct Gen<U>(U);"),
    },
];

/// Returns the lines of a crate that consists of these parts.
fn lines(name: &str, parts: &[&str]) -> Result<BTreeSet<String>, String> {
    let folder = root().join("target/api/control").join(name);
    let manifest = "# Generated by `cargo xtask api`.\n[package]\nname = \"control\"\n\
                    version = \"0.0.0\"\nedition = \"2021\"\npublish = false\n\n[workspace]\n";
    crate::conformance::write(&folder.join("Cargo.toml"), manifest)?;
    crate::conformance::write(&folder.join("src/lib.rs"), &(parts.join("\n") + "\n"))?;
    let mut command = shell::cargo();
    command.args(["rustdoc", "--quiet", "--lib", "--manifest-path"]).arg(folder.join("Cargo.toml"));
    let docs = Docs::of(command, &format!("control-{name}"), "control", None)?;
    surface(&docs, "control", &Root::Itself, &|_| false)
}

/// Plants every fault and returns an error that names those that were overlooked.
pub(super) fn run() -> Outcome {
    let sound: Vec<_> = PARTS.iter().map(|part| part.sound).collect();
    let rewritten: Vec<_> = PARTS.iter().map(|part| part.rewritten.unwrap_or(part.sound)).collect();
    let spoilt: Vec<_> = PARTS.iter().map(|part| part.spoilt).collect();
    let theirs = lines("sound", &sound)?;
    let same = compare(&theirs, &lines("rewritten", &rewritten)?, &Excuses::default());
    if !same.wrong.is_empty() {
        return Err(format!("the control finds a fault where there is none:\n{same}"));
    }
    let report = compare(&theirs, &lines("spoilt", &spoilt)?, &Excuses::default());
    let overlooked = PARTS.iter().filter(|part| {
        let path = format!("control::{}", part.name);
        !report.wrong.keys().any(|line| mentions(line, &path))
    });
    let overlooked: Vec<_> = overlooked.map(|part| part.spoilt).collect();
    if !overlooked.is_empty() {
        return Err(format!("the control overlooks faults:\n{}\n{report}", overlooked.join("\n")));
    }
    println!("control: {} planted faults, all found", PARTS.len());
    Ok(())
}

/// Returns true if a line contains the path as a whole, not only as the beginning of a longer path.
fn mentions(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let next = line[at + path.len()..].chars().next();
        next.is_none_or(|c| !c.is_alphanumeric() && c != '_')
    })
}
