//! `blitz doctor --project` on small projects that are written here. No test needs a registry,
//! because the lock files contain what cargo would have resolved.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// A project in a folder of its own.
struct Project(PathBuf);

impl Project {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("project").join(name);
        // Removes the folder of an earlier run.
        let _ = fs::remove_dir_all(&folder);
        let project = Self(folder);
        // The packages that the patches of these tests point to.
        for (name, version) in [("tokio", "1.999.0"), ("rayon-core", "1.13.0")] {
            project.package(&format!("blitz-io/dropin/{name}"), name, version, "");
        }
        project
    }

    fn file(&self, name: &str, text: &str) -> &Self {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn package(&self, folder: &str, name: &str, version: &str, more: &str) -> &Self {
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"{version}\"\nedition = \"2021\"\n{more}"
        );
        self.file(&format!("{folder}/Cargo.toml"), &manifest);
        self.file(&format!("{folder}/src/lib.rs"), "")
    }

    /// Writes a package in `app` that is a workspace of its own.
    fn app(&self, more: &str) -> &Self {
        self.package("app", "app", "0.1.0", &format!("\n[workspace]\n{more}"))
    }

    fn lock(&self, entries: &[&str]) -> &Self {
        let app =
            "[[package]]\nname = \"app\"\nversion = \"0.1.0\"\ndependencies = [\n \"tokio\",\n]\n";
        self.file("app/Cargo.lock", &format!("version = 4\n\n{app}\n{}", entries.join("\n")))
    }

    fn doctor(&self, folder: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_blitz"))
            .args(["doctor", "--project"])
            .arg(self.0.join(folder))
            .env_remove("CARGO_MANIFEST_PATH")
            .output()
            .expect("the command was built beside this test")
    }

    /// Returns the command's output, with `…` in place of this project's folder, because the path
    /// of a checkout may contain any word that a test searches for.
    fn page(&self, output: Output) -> String {
        let page = String::from_utf8(output.stdout).unwrap();
        page.replace(&self.0.display().to_string(), "…")
    }

    /// Returns the output, which must report a problem and contain these parts.
    #[track_caller]
    fn complains(&self, parts: &[&str]) -> String {
        let output = self.doctor("app");
        let status = output.status;
        let page = self.page(output);
        assert_eq!(status.code(), Some(1), "{page}");
        for part in parts {
            assert!(page.contains(part), "{part:?} is not in\n{page}");
        }
        page
    }
}

const PATCH: &str = "\n[patch.crates-io]\ntokio = { path = \"../blitz-io/dropin/tokio\" }\n";
const OURS: &str = "[[package]]\nname = \"tokio\"\nversion = \"1.999.0\"\n";
const REAL: &str = "[[package]]\nname = \"tokio\"\nversion = \"1.54.1\"\nsource = \"registry+https://example.org/index\"\n";
const UNUSED: &str = "[[patch.unused]]\nname = \"tokio\"\nversion = \"1.999.0\"\n";

fn rayon(version: &str) -> String {
    format!(
        "[[package]]\nname = \"rayon-core\"\nversion = \"{version}\"\nsource = \"registry+https://example.org/index\"\n"
    )
}

#[test]
fn a_patch_in_force_is_reported() {
    let project = Project::new("in-force");
    project.app(PATCH).lock(&[OURS]);
    let output = project.doctor("app");
    let status = output.status;
    let page = project.page(output);
    assert_eq!(status.code(), Some(0), "{page}");
    assert!(page.contains("locked         1.999.0 from a folder"), "{page}");
    assert!(page.contains("drop-in        in force"), "{page}");
    assert!(!page.contains("rayon-core"), "{page}");
    assert!(!page.contains("  ! "), "{page}");
}

#[test]
fn a_patch_from_git_is_in_force_as_well() {
    let project = Project::new("git");
    let ours = format!("{OURS}source = \"git+https://example.org/blitz-io#0123abc\"\n");
    project
        .app("\n[patch.crates-io.tokio]\ngit = \"https://example.org/blitz-io\"\n")
        .lock(&[&ours]);
    let output = project.doctor("app/Cargo.toml");
    let status = output.status;
    let page = project.page(output);
    assert_eq!(status.code(), Some(0), "{page}");
    assert!(page.contains("git https://example.org/blitz-io in "), "{page}");
}

#[test]
fn without_a_patch_the_two_missing_lines_are_printed() {
    let project = Project::new("no-patch");
    project.app("").lock(&[REAL]);
    project.complains(&[
        "locked         1.54.1 from the registry",
        "not in force",
        "[patch.crates-io]",
        "tokio = { git = \"https://github.com/blitz-io/blitz-io\" }",
        "app/Cargo.toml",
        "run `cargo update -p tokio --precise 1.999.0`",
    ]);
}

#[test]
fn a_patch_that_the_lock_file_keeps_out_is_reported_with_the_command() {
    let project = Project::new("unused");
    project.app(PATCH).lock(&[REAL, UNUSED]);
    project.complains(&[
        "cargo left the patch (version 1.999.0) unused",
        "the lock file has tokio 1.54.1",
        "run `cargo update -p tokio --precise 1.999.0`",
        "at an older version than blitz-io needs",
        "a feature of tokio that blitz-io's lacks",
    ]);
}

#[test]
fn a_lock_file_older_than_the_patch_is_reported() {
    let project = Project::new("older-lock");
    project.app(PATCH).lock(&[REAL]);
    project.complains(&["older than the patch", "run `cargo update -p tokio --precise 1.999.0`"]);
}

#[test]
fn a_patch_in_a_member_is_reported_as_ignored() {
    let project = Project::new("member");
    project.file("app/Cargo.toml", "[workspace]\nresolver = \"2\"\nmembers = [\"crates/*\"]\n");
    project.package("app/crates/one", "one", "0.1.0", "");
    let patch = PATCH.replace("../", "../../../");
    project.package("app/crates/two", "two", "0.1.0", &patch).lock(&[REAL]);
    // From the root, and from the member itself.
    let parts = [
        "cargo ignores the patch in",
        "crates/two/Cargo.toml",
        "move it to",
        "app/Cargo.toml",
        "then run `cargo update -p tokio --precise 1.999.0`",
    ];
    let page = project.complains(&parts);
    assert_eq!(page.matches("cargo ignores").count(), 1, "{page}");
    let page = project.page(project.doctor("app/crates/two"));
    parts.iter().for_each(|part| assert!(page.contains(part), "{part:?} is not in\n{page}"));
}

#[test]
fn both_beside_each_other_are_reported_with_the_users_of_the_real_one() {
    let project = Project::new("both");
    let old = "[[package]]\nname = \"old\"\nversion = \"0.1.0\"\ndependencies = [\n \"tokio 1.54.1\",\n]\n";
    let new = old.replace("old", "new").replace("1.54.1", "1.999.0");
    project.app(PATCH).lock(&[old, &new, OURS, REAL]);
    let page = project.complains(&[
        "both are there: app, old use the real tokio 1.54.1",
        "cargo update -p tokio@1.54.1",
        "cargo tree -i tokio@1.54.1",
    ]);
    assert!(!page.contains("new"), "{page}");
}

#[test]
fn a_dependency_on_the_folder_is_no_patch() {
    let project = Project::new("dependency");
    project.app("\n[dependencies]\ntokio = { path = \"../blitz-io/dropin/tokio\" }\n");
    project.lock(&[OURS, REAL]).complains(&["both are there", "as a patch, not as a dependency"]);
    project.lock(&[OURS]).complains(&["no patch provides", "write it as a patch"]);
}

#[test]
fn another_version_of_rayon_core_is_reported_with_the_exact_command() {
    let project = Project::new("rayon");
    let patch = PATCH.replace("tokio", "rayon-core");
    let unused = UNUSED.replace("tokio", "rayon-core").replace("1.999.0", "1.13.0");
    for version in ["1.12.1", "1.14.0"] {
        project.app(&patch).lock(&[&rayon(version), &unused]);
        project.complains(&[
            &format!("the lock file has rayon-core {version}"),
            "run `cargo update -p rayon-core --precise 1.13.0`",
            "take a newer blitz-io",
        ]);
    }
    let ours = "[[package]]\nname = \"rayon-core\"\nversion = \"1.13.0\"\n";
    project.lock(&[ours]);
    assert_eq!(project.doctor("app").status.code(), Some(0));
}

#[test]
fn several_versions_are_updated_one_by_one() {
    let project = Project::new("several");
    let older = REAL.replace("1.54.1", "0.2.25");
    project.app(PATCH).lock(&[REAL, &older, UNUSED]);
    project.complains(&[
        "`cargo update -p tokio@1.54.1 --precise 1.999.0`",
        "`cargo update -p tokio@0.2.25`",
    ]);
}

#[test]
fn a_missing_lock_file_is_reported_with_the_command_that_makes_one() {
    let project = Project::new("no-lock");
    project.app(PATCH).complains(&["lock file      none yet", "cargo generate-lockfile"]);
    project.app("").complains(&["[patch.crates-io]", "cargo generate-lockfile"]);
    assert!(!project.0.join("app/Cargo.lock").exists(), "the doctor wrote a lock file");
}

#[test]
fn a_patch_that_points_nowhere_is_reported() {
    let project = Project::new("nowhere");
    let patch = |to: &str| PATCH.replace("../blitz-io/dropin/tokio", to);
    project.app(&patch("../gone")).lock(&[REAL]);
    project.complains(&["points to ../gone, where there is no package", "dropin/tokio"]);
    project.app(&patch("../blitz-io/dropin/rayon-core"));
    project.complains(&["points to the package `rayon-core`", "dropin/tokio"]);
    project.app("\n[patch.crates-io]\ntokio = \"1.999\"\n");
    project.complains(&["neither `git` nor `path`"]);
    project.app(&PATCH.replace("crates-io", "\"https://example.org/index\""));
    project.complains(&["for `https://example.org/index`", "below `[patch.crates-io]`"]);
}

#[test]
fn another_fork_is_not_taken_for_ours() {
    let project = Project::new("fork");
    project.app(PATCH).lock(&[&OURS.replace("1.999.0", "1.54.1")]);
    project.complains(&["in force is version 1.54.1", "blitz-io's is 1.999.0"]);
}

#[test]
fn a_patch_in_cargos_configuration_counts() {
    let project = Project::new("configuration");
    project.app("").file("app/.cargo/config.toml", PATCH).lock(&[OURS]);
    let output = project.doctor("app");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().contains(".cargo/config.toml"));
}

#[test]
fn a_folder_without_a_project_is_reported_with_the_next_step() {
    let project = Project::new("none");
    project.complains(&["there is no such folder"]);
    project.app("");
    let page = String::from_utf8(project.doctor("app/src").stdout).unwrap();
    assert!(page.contains("there is no Cargo.toml in it, but in"), "{page}");
    let elsewhere =
        Command::new(env!("CARGO_BIN_EXE_blitz")).args(["doctor", "--project", "/"]).output();
    let page = String::from_utf8(elsewhere.unwrap().stdout).unwrap();
    assert!(page.contains("there is no Cargo.toml in it: name the folder"), "{page}");
}

#[test]
fn broken_files_are_reported_with_the_line() {
    let project = Project::new("broken");
    project.app("").lock(&["[[package]\n"]);
    project.complains(&["Cargo.lock is broken (line", "cargo generate-lockfile"]);
    project.file("app/Cargo.toml", "[package\nname = \"app\"\n");
    project.complains(&["cargo does not take the manifest; mend it first", "app/Cargo.toml:1"]);
}

/// Without cargo the files must be read all the same.
#[test]
fn doctor_works_without_cargo_too() {
    let project = Project::new("no-cargo");
    project.file("app/Cargo.toml", "[workspace]\nmembers = [\"one\"]\n");
    project.package("app/one", "one", "0.1.0", PATCH).lock(&[REAL]);
    let doctor = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_blitz"));
        command.args(["doctor", "--project"]).arg(project.0.join("app/one"));
        let output = command.env("CARGO", "no-such-cargo").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let page = doctor();
    assert!(page.contains("cargo was not found"), "{page}");
    assert!(page.contains("cargo ignores the patch in"), "{page}");
    project.file("app/one/Cargo.toml", "[package\n");
    let page = doctor();
    assert!(page.contains("is broken, line 1") && page.contains("mend it first"), "{page}");
}
