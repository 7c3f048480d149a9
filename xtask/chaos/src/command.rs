//! Runs rounds until the time is over.

use std::{
    collections::BTreeMap,
    env, fs,
    os::unix::process::CommandExt,
    panic,
    path::PathBuf,
    process::{self, Command, ExitCode},
    sync::{Arc, Mutex, Weak},
    time::{Duration, Instant, SystemTime},
};

use blitz_io::{parallel, runtime::Builder, signal::unix::SignalKind};

use crate::{
    class::{self, Class},
    kernel,
    options::{HELP, Options},
    plan,
    round::{self, Base},
    watch::Watch,
    world::{self, World, lock},
};

/// The round whose panics are judged.
static WORLD: Mutex<Weak<World>> = Mutex::new(Weak::new());

pub(crate) fn main() -> ExitCode {
    let options = match Options::read(env::args().skip(1)) {
        Ok(options) => options,
        Err(why) => {
            eprintln!("chaos: {why}");
            return ExitCode::from(2);
        }
    };
    if options.help {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    }
    if options.list {
        class::ALL.iter().for_each(|(_, name, what)| println!("{name}: {what}"));
        return ExitCode::SUCCESS;
    }
    if let Some(why) = with_environment(&options) {
        eprintln!("chaos: cannot start this program again: {why}");
        return ExitCode::from(2);
    }
    match run(&options) {
        Ok(said) => {
            println!("passed: {said}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("failed: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Restarts this program if options must be in the environment and are not, because the runtime
/// reads it only once. Returns only if there is nothing to do, or with an error.
fn with_environment(options: &Options) -> Option<std::io::Error> {
    let settings = [("BLITZ_BARRIER", &options.guard), ("BLITZ_IO_BACKEND", &options.backend)];
    let missing = |(name, setting): &(&str, &Option<String>)| {
        setting.as_ref().is_some_and(|setting| env::var(name).ok().as_ref() != Some(setting))
    };
    if !settings.iter().any(missing) {
        return None;
    }
    let mut command = Command::new(env::current_exe().ok()?);
    command.args(env::args_os().skip(1));
    for (name, setting) in settings {
        if let Some(setting) = setting {
            command.env(name, setting);
        }
    }
    Some(command.exec())
}

fn run(options: &Options) -> Result<String, String> {
    let clock = || {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        u64::from(since.unwrap_or_default().subsec_nanos())
    };
    let seed = options.seed.unwrap_or_else(clock);
    println!("seed {seed}");
    kernel::raise_descriptor_limit();
    judge_panics();
    let watch = Watch::start();
    warm_up(options)?;
    let folder = Folder::new()?;
    let base = Base::now();
    let start = Instant::now();
    let mut figures = BTreeMap::<&str, u64>::new();
    let (mut rounds, mut tokens, mut longest) = (0, 0, Duration::ZERO);
    loop {
        let round = options.round.unwrap_or(rounds);
        let name = format!("seed {seed} round {round}");
        let plan =
            plan::make(seed, round, options.classes, options.slice.preempts(), options.workers);
        if options.show {
            println!("{plan:#?}");
        }
        let begun = Instant::now();
        let done = round::run(options, &plan, &folder.0, &base, &watch, &name);
        let done = done.map_err(|why| format!("{name}: {why}"))?;
        longest = longest.max(begun.elapsed());
        done.steps.iter().for_each(|(what, count)| *figures.entry(what).or_default() += count);
        tokens += done.tokens;
        rounds += 1;
        let over = match options.round {
            Some(_) => rounds >= options.times,
            None => start.elapsed() >= options.length,
        };
        if over {
            break;
        }
    }
    let figures: Vec<_> = figures.iter().map(|(what, count)| format!("{count} {what}")).collect();
    Ok(format!(
        "seed {seed}, {rounds} rounds, {tokens} tokens, longest {longest:.1?}; {}",
        figures.join(", ")
    ))
}

/// A folder for the files of the rounds, which is removed when this value is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, String> {
        let path = env::temp_dir().join(format!("chaos-{}", process::id()));
        fs::create_dir_all(&path).map_err(|why| format!("{}: {why}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // An error is ignored, because the files are of no further use.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Installs a panic hook that records every panic that is not planned.
fn judge_panics() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let words = info.payload_as_str().unwrap_or_default();
        if world::is_planned(words) {
            return;
        }
        usual(info);
        if let Some(world) = lock(&WORLD).upgrade() {
            world.fault(format!("a panic that no plan has: {words}"));
        }
    }));
}

/// Attributes panics from now on to this round.
pub(crate) fn watch_panics(world: &Arc<World>) {
    *lock(&WORLD) = Arc::downgrade(world);
}

/// More runtimes than a plan has at once.
const SIGNALLED: usize = 100;

/// Starts what a process has once and keeps: the threads of fork-join, the handlers of signals, and
/// one descriptor for each of the most runtimes with signals that exist at once.
fn warm_up(options: &Options) -> Result<(), String> {
    parallel::join(|| (), || ());
    parallel::broadcast(|_| ());
    let mut kept = Vec::new();
    let signalled = if options.classes.has(Class::Signal) { SIGNALLED } else { 1 };
    for _ in 0..signalled {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|why| format!("cannot make a runtime: {why}"))?;
        let entered = runtime.enter();
        let listener = blitz_io::signal::unix::signal(SignalKind::user_defined1());
        drop(entered);
        kept.push((listener.map_err(|why| format!("cannot listen to signals: {why}"))?, runtime));
    }
    let Some((_, runtime)) = kept.first() else { return Ok(()) };
    let status = runtime.block_on(async { blitz_io::process::Command::new("true").status().await });
    status.map(drop).map_err(|why| format!("cannot start `true`: {why}"))
}
