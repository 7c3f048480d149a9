//! The soak: an echo server and clients for minutes with random faults, in a process of its own.

use std::{process::Command, time::Duration};

use crate::{
    Outcome,
    faults::{Choice, build},
    shell::{self, End},
};

/// Text of `cargo xtask soak --help`.
pub const HELP: &str = "\
cargo xtask soak [minutes] [--debug] [--backend NAME] [--flavour NAME]

An echo with connections, ends, time-outs, resets and cancellations at random, for 10
minutes or the given number. Every frame must arrive exactly once, no connection may
stand still for a second, and neither memory nor descriptors may grow. It runs on epoll
and workers unless another --backend (epoll, poll, uring) or --flavour (one-thread, workers) is
given. All this is for Linux.";

/// Extra time beyond the soak's own: it ends in seconds, or hangs.
const SPARE: Duration = Duration::from_secs(60);

/// Runs `cargo xtask soak`.
pub fn main(arguments: &[String]) -> Outcome {
    let choice = Choice::read(arguments)?;
    let length = length(&choice.names)?;
    if !cfg!(target_os = "linux") {
        println!("skipped: the soak looks at its process by Linux's means");
        return Ok(());
    }
    let flavour = choice.flavour.as_deref().unwrap_or("workers");
    let backend = choice.backend.as_deref().unwrap_or("epoll");
    let mut command = Command::new(build(choice.debug)?);
    command.args(["soak", &length.as_secs().to_string(), flavour]);
    command.env("BLITZ_IO_BACKEND", backend);
    println!("{} s on {backend}, {flavour}", length.as_secs());
    match shell::run(&mut command, length + SPARE)? {
        end if end.success() => Ok(()),
        End::TimedOut => Err("the soak did not end: something hangs".into()),
        // The program has printed the reason.
        End::Exit(_) => Err("the soak failed".into()),
    }
}

/// Returns the requested length, ten minutes by default; fractions of minutes are allowed.
fn length(said: &[String]) -> Result<Duration, String> {
    let wrong = || "say one number of minutes".to_owned();
    match said {
        [] => Ok(Duration::from_secs(600)),
        [minutes] => {
            let minutes: f64 = minutes.parse().map_err(|_| wrong())?;
            Duration::try_from_secs_f64(minutes * 60.0).map_err(|_| wrong())
        }
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::length;

    #[test]
    fn minutes_are_read() {
        assert_eq!(length(&[]), Ok(Duration::from_secs(600)));
        assert_eq!(length(&["0.5".to_owned()]), Ok(Duration::from_secs(30)));
        assert!(length(&["ten".to_owned()]).is_err());
        assert!(length(&["-1".to_owned()]).is_err());
        assert!(length(&["1".to_owned(), "2".to_owned()]).is_err());
    }
}
