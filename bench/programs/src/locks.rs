//! Compares the lock files of `stock/` and `dropin/`: besides Tokio, both must have the same
//! versions, because a ratio would otherwise be of something else too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Returns an error if a package that both have is of different versions.
pub(crate) fn agree(folder: &Path) -> Result<(), String> {
    let read = |which: &str| {
        let file = folder.join(which).join("Cargo.lock");
        std::fs::read_to_string(&file).map_err(|why| format!("{}: {why}", file.display()))
    };
    match differing(&read("stock")?, &read("dropin")?).as_slice() {
        [] => Ok(()),
        names => Err(format!(
            "stock/ and dropin/ have different versions of {}: remove both of their lock files",
            names.join(", ")
        )),
    }
}

/// Returns the packages of both texts of which neither has all the versions of the other. One may
/// have more, because its Tokio brings another version of a package along.
fn differing(stock: &str, dropin: &str) -> Vec<String> {
    let (stock, dropin) = (versions(stock), versions(dropin));
    let shared = stock.into_iter().filter(|(name, _)| *name != "tokio");
    let differs = |(name, versions): (&str, BTreeSet<&str>)| {
        let others = dropin.get(name)?;
        let agree = versions.is_subset(others) || versions.is_superset(others);
        (!agree).then(|| name.to_owned())
    };
    shared.filter_map(differs).collect()
}

fn versions(lock: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in lock.split("[[package]]\n").skip(1) {
        let field = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name))?;
            line.strip_prefix(" = \"")?.strip_suffix('"')
        };
        if let Some((name, version)) = field("name").zip(field("version")) {
            all.entry(name).or_default().insert(version);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::differing;

    fn lock(packages: &[(&str, &str)]) -> String {
        let package = |(name, version): &(&str, &str)| {
            format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n\n")
        };
        packages.iter().map(package).collect()
    }

    #[test]
    fn only_tokio_may_differ() {
        let stock = lock(&[("tokio", "1.2.3"), ("axum", "1"), ("mio", "1"), ("sys", "1")]);
        let dropin = lock(&[("tokio", "1.999.0"), ("axum", "1"), ("sys", "1"), ("sys", "2")]);
        assert_eq!(differing(&stock, &dropin), [""; 0]);
        let other = lock(&[("tokio", "1.999.0"), ("axum", "2")]);
        assert_eq!(differing(&stock, &other), ["axum"]);
    }
}
