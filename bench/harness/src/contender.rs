//! The contenders of a comparison, and the program that measures each.

use std::path::{Path, PathBuf};

use crate::Comparison;
use crate::program::{self, Program};

/// A contender, as a comparison lists it.
pub struct Contender {
    pub name: &'static str,
    pub what: &'static str,
    pub program: Program,
    /// True for a reference for single questions. It has a column of its own when it runs.
    pub only_when_named: bool,
    /// Environment variables of its children.
    pub environment: &'static [(&'static str, &'static str)],
}

impl Contender {
    pub const TOKIO: Contender =
        Contender::new("tokio", "as #[tokio::main] builds it; what the ratios are against");
    pub const TOKIO_AGAIN: Contender = Contender::new(
        "tokio-again",
        "the same once more: how far two equal things differ is the noise floor",
    );
    pub const BLITZ: Contender =
        Contender::new("blitz", "blitz-io (not in builds without the feature `blitz`)")
            .by(Program::Blitz);
    pub const BLITZ_OFF: Contender =
        Contender::new("blitz-off", "blitz-io without preemption (only when named)")
            .by(Program::Blitz)
            .with_environment(&[("BLITZ_PREEMPTION", "off")])
            .only_when_named();

    /// Creates a contender that the program itself contains.
    pub const fn new(name: &'static str, what: &'static str) -> Contender {
        let program = Program::This;
        Contender { name, what, program, only_when_named: false, environment: &[] }
    }

    pub const fn by(self, program: Program) -> Contender {
        Contender { program, ..self }
    }

    pub const fn only_when_named(self) -> Contender {
        Contender { only_when_named: true, ..self }
    }

    pub const fn with_environment(
        self,
        environment: &'static [(&'static str, &'static str)],
    ) -> Contender {
        Contender { environment, ..self }
    }
}

/// The contenders of a run and the program of each.
pub struct Field {
    pub contenders: Vec<(&'static Contender, PathBuf)>,
    pub go_version: Option<String>,
    /// The path of this program.
    pub this: PathBuf,
}

impl Field {
    /// Determines the contenders. One that was named must be available; one that was not is left
    /// out with a message if it is not.
    pub fn gather(
        comparison: &'static Comparison,
        named: Option<&[&str]>,
    ) -> Result<Field, String> {
        let this =
            std::env::current_exe().map_err(|error| format!("cannot find myself: {error}"))?;
        let is_named = |name: &str| named.is_some_and(|named| named.contains(&name));
        let mut field = Field { contenders: Vec::new(), go_version: None, this };
        for contender in comparison.contenders {
            let name = contender.name;
            let brings = |(first, again): (&str, &str)| name == again && is_named(first);
            let wanted = match named {
                // The noise floor is measured together with its contender.
                Some(_) => is_named(name) || comparison.noise.is_some_and(brings),
                None => !contender.only_when_named,
            };
            if !wanted {
                continue;
            }
            match field.program(comparison, contender.program) {
                Ok(program) => field.contenders.push((contender, program)),
                // It is a part of this repository, so that it does not build is an error.
                Err(why) if matches!(contender.program, Program::Beside { .. }) => return Err(why),
                Err(why) if is_named(name) => return Err(format!("{name} cannot run: {why}")),
                Err(why) => eprintln!("{name} is left out: {why}"),
            }
        }
        Ok(field)
    }

    /// Returns the path of a program, which is built first if that is necessary.
    fn program(&mut self, comparison: &Comparison, which: Program) -> Result<PathBuf, String> {
        match which {
            Program::Blitz if !comparison.has_blitz => {
                Err("build with the feature `blitz` to add it".to_string())
            }
            Program::This | Program::Blitz => Ok(self.this.clone()),
            Program::Go { folder } => {
                let folder = Path::new(comparison.folder).join(folder);
                let name = format!("{}-go", comparison.name);
                let (program, version) = program::build_go(&folder, &name)?;
                self.go_version = Some(version);
                Ok(program)
            }
            Program::Beside { folder, binary } => {
                program::build_beside(&Path::new(comparison.folder).join(folder), binary)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Field;
    use crate::check::EXAMPLE;

    fn names(named: Option<&[&str]>) -> Result<Vec<&'static str>, String> {
        let field = Field::gather(&EXAMPLE, named)?;
        Ok(field.contenders.iter().map(|(contender, _)| contender.name).collect())
    }

    #[test]
    fn tokio_brings_its_noise_floor() {
        assert_eq!(names(Some(&["tokio"])), Ok(vec!["tokio", "tokio-again"]));
    }

    #[test]
    fn a_contender_that_is_not_there_is_left_out_unless_it_is_named() {
        assert_eq!(names(None), Ok(vec!["tokio", "tokio-again"]));
        let why = names(Some(&["blitz"])).expect_err("it is not compiled in");
        assert!(why.contains("feature"), "{why}");
    }
}
