//! Compares the cost of fibers with that of tasks of the same runtime and of threads.
//!
//! `fibers [rounds]` starts itself once for each row, contender and round, in the order A B C C B
//! A, and prints medians over the rounds, and their spread. `fibers one row contender` is such a
//! child.

use std::{
    env,
    process::{Command, ExitCode},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use blitz_io::{
    fiber,
    runtime::{Builder, Handle, Runtime},
    sync::{mpsc as channel, oneshot},
    task,
};
use harness::{
    child::output,
    in_turns,
    measure::{median, quartile, resident_bytes},
};

const ROUNDS: usize = 9;

/// A workload, and what is counted; the result is in nanoseconds for each of them.
struct Row {
    name: &'static str,
    what: &'static str,
    measure: fn(Contender, &Runtime) -> Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contender {
    Fiber,
    Task,
    Thread,
}

impl Contender {
    fn name(self) -> &'static str {
        match self {
            Self::Fiber => "fiber",
            Self::Task => "task",
            Self::Thread => "thread",
        }
    }
}

const CONTENDERS: [Contender; 3] = [Contender::Fiber, Contender::Task, Contender::Thread];

const ROWS: [Row; 5] = [
    Row { name: "yield", what: "one yields, no other task is there", measure: yields },
    Row {
        name: "hand-over",
        what: "two hand over to each other, there and back",
        measure: hands_over,
    },
    Row { name: "start", what: "one starts another and waits for it", measure: starts },
    Row { name: "many", what: "10,000 are started, wait, are woken and end", measure: many },
    Row { name: "bytes", what: "memory of each of 10,000 that wait", measure: bytes },
];

const MANY: usize = 10_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let rounds = match words.as_slice() {
        ["one", row, contender] => return one(row, contender),
        [] => Some(ROUNDS),
        [count] => count.parse().ok().filter(|count| *count > 0),
        _ => None,
    };
    let Some(rounds) = rounds else {
        eprintln!("fibers [rounds]: how often each is measured");
        return ExitCode::FAILURE;
    };
    match run(rounds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fibers: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a child: prints its figure, or nothing if that contender does not have this row.
fn one(row: &str, contender: &str) -> ExitCode {
    let row = ROWS.into_iter().find(|known| known.name == row);
    let contender = CONTENDERS.into_iter().find(|known| known.name() == contender);
    let (Some(row), Some(contender)) = (row, contender) else {
        eprintln!("fibers: there is no such row or contender");
        return ExitCode::FAILURE;
    };
    // One worker, and one thread that runs fibers.
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).fiber_threads(1).enable_all();
    let runtime = builder.build().expect("a runtime");
    (row.measure)(contender, &runtime).into_iter().for_each(|figure| println!("{figure}"));
    ExitCode::SUCCESS
}

/// The time limit of a child: several times what the longest row takes.
const TIME_OUT: Duration = Duration::from_secs(300);

fn child(row: &Row, contender: Contender) -> Result<Option<f64>, String> {
    let own = env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(own);
    let (text, _) = output(command.args(["one", row.name, contender.name()]), TIME_OUT)?;
    match text.trim() {
        "" => Ok(None),
        figure => figure.parse().map(Some).map_err(|_| format!("`{figure}` is no figure")),
    }
}

fn run(rounds: usize) -> Result<(), String> {
    println!("| row | fiber | task | thread | rounds apart |");
    println!("|---|--:|--:|--:|--:|");
    for row in ROWS {
        let mut times = [const { Vec::new() }; CONTENDERS.len()];
        for round in 0..rounds {
            for (place, contender) in in_turns(CONTENDERS.into_iter().enumerate(), round) {
                times[place].extend(child(&row, contender)?);
            }
        }
        let apart = times.iter().map(|times| spread(times)).fold(0.0, f64::max);
        let [fiber, task, thread] = times.map(printed);
        println!("| {} | {fiber} | {task} | {thread} | {:.0} % |", row.name, 100.0 * apart);
    }
    println!("\nNanoseconds, but for bytes:");
    for row in ROWS {
        println!("- {}: {}", row.name, row.what);
    }
    Ok(())
}

fn printed(mut times: Vec<f64>) -> String {
    if times.is_empty() { "-".to_owned() } else { format!("{:.0}", median(&mut times)) }
}

/// Returns the distance between the quartiles of the rounds, as a fraction of their median.
fn spread(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    let [low, middle, high] = [1, 2, 3].map(|part| quartile(&mut times, part));
    if times.is_empty() { 0.0 } else { (high - low) / middle }
}

fn each(began: Instant, count: usize) -> Option<f64> {
    Some(began.elapsed().as_nanos() as f64 / count as f64)
}

fn yields(contender: Contender, runtime: &Runtime) -> Option<f64> {
    const COUNT: usize = 200_000;
    let on_fiber = || {
        let began = Instant::now();
        for _ in 0..COUNT {
            fiber::wait(task::yield_now());
        }
        each(began, COUNT)
    };
    let on_task = async {
        let began = Instant::now();
        for _ in 0..COUNT {
            task::yield_now().await;
        }
        each(began, COUNT)
    };
    match contender {
        Contender::Fiber => on_fibers(runtime, on_fiber),
        Contender::Task => runtime.block_on(runtime.spawn(on_task)).expect("it ends"),
        Contender::Thread => {
            let began = Instant::now();
            (0..COUNT).for_each(|_| thread::yield_now());
            each(began, COUNT)
        }
    }
}

/// Starts a fiber. Private to this file, whose closures all keep the promise below.
fn start<R: Send + 'static>(
    f: impl FnOnce() -> R + Send + 'static,
    handle: &Handle,
) -> task::JoinHandle<R> {
    // SAFETY: obligations 1 and 2 are not to wait in an initialiser or in a scope of a
    // thread-local. No closure of this file does; `start` is private to it.
    unsafe { fiber::Builder::new().spawn_on(f, handle) }.expect("a stack")
}

fn on_fibers<R: Send + 'static>(runtime: &Runtime, f: impl FnOnce() -> R + Send + 'static) -> R {
    runtime.block_on(start(f, runtime.handle())).expect("it ends")
}

fn hands_over(contender: Contender, runtime: &Runtime) -> Option<f64> {
    const COUNT: usize = 50_000;
    let ((to, mut there), (back, mut here)) = (channel::channel(1), channel::channel(1));
    match contender {
        Contender::Fiber => on_fibers(runtime, move || {
            let echo = move || {
                while let Some(n) = fiber::wait(there.recv()) {
                    fiber::wait(back.send(n)).expect("the first fiber receives");
                }
            };
            let other = start(echo, &Handle::current());
            let began = Instant::now();
            for n in 0..COUNT {
                fiber::wait(to.send(n)).expect("it is there");
                assert_eq!(fiber::wait(here.recv()), Some(n));
            }
            let took = each(began, COUNT);
            drop(to);
            fiber::wait(other).expect("it ends");
            took
        }),
        Contender::Task => {
            let task = runtime.spawn(async move {
                let other = task::spawn(async move {
                    while let Some(n) = there.recv().await {
                        back.send(n).await.expect("the receiver waits for it");
                    }
                });
                let began = Instant::now();
                for n in 0..COUNT {
                    to.send(n).await.expect("it is there");
                    assert_eq!(here.recv().await, Some(n));
                }
                let took = each(began, COUNT);
                drop(to);
                other.await.expect("it ends");
                took
            });
            runtime.block_on(task).expect("it ends")
        }
        Contender::Thread => {
            let ((to, there), (back, here)) = (mpsc::sync_channel(1), mpsc::sync_channel(1));
            let other = thread::spawn(move || {
                there.into_iter().for_each(|n| back.send(n).expect("the receiver waits for it"));
            });
            let began = Instant::now();
            for n in 0..COUNT / 10 {
                to.send(n).expect("it is there");
                assert_eq!(here.recv(), Ok(n));
            }
            let took = each(began, COUNT / 10);
            drop(to);
            other.join().expect("it ends");
            took
        }
    }
}

fn starts(contender: Contender, runtime: &Runtime) -> Option<f64> {
    const COUNT: usize = 20_000;
    match contender {
        Contender::Fiber => on_fibers(runtime, || {
            let began = Instant::now();
            for n in 0..COUNT {
                let fiber = start(move || n, &Handle::current());
                assert_eq!(fiber::wait(fiber).expect("it ends"), n);
            }
            each(began, COUNT)
        }),
        Contender::Task => {
            let task = runtime.spawn(async {
                let began = Instant::now();
                for n in 0..COUNT {
                    assert_eq!(task::spawn(async move { n }).await.expect("it ends"), n);
                }
                each(began, COUNT)
            });
            runtime.block_on(task).expect("it ends")
        }
        Contender::Thread => {
            let began = Instant::now();
            for n in 0..COUNT / 10 {
                assert_eq!(thread::spawn(move || n).join().expect("it ends"), n);
            }
            each(began, COUNT / 10)
        }
    }
}

/// Lets `MANY` tasks or fibers wait, calls `then`, and wakes them. Returns the result of `then`
/// and the nanoseconds for each of them, from the first spawn to the last end.
fn waiting<R>(
    contender: Contender,
    runtime: &Runtime,
    then: impl FnOnce() -> R,
) -> Option<(R, f64)> {
    let began = Instant::now();
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..MANY).map(|_| oneshot::channel::<()>()).unzip();
    let (tell, told) = mpsc::channel();
    let tasks: Vec<_> = receivers
        .into_iter()
        .map(|receiver| {
            let tell = tell.clone();
            match contender {
                Contender::Fiber => {
                    let waits = move || {
                        tell.send(()).expect("it is counted");
                        fiber::wait(receiver).expect("it is woken");
                    };
                    start(waits, runtime.handle())
                }
                _ => runtime.spawn(async move {
                    tell.send(()).expect("it is counted");
                    receiver.await.expect("it is woken");
                }),
            }
        })
        .collect();
    (0..MANY).for_each(|_| told.recv().expect("each begins"));
    let seen = then();
    senders.into_iter().for_each(|sender| sender.send(()).expect("it waits"));
    tasks.into_iter().for_each(|task| runtime.block_on(task).expect("it ends"));
    Some((seen, began.elapsed().as_nanos() as f64 / MANY as f64))
}

fn many(contender: Contender, runtime: &Runtime) -> Option<f64> {
    if contender == Contender::Thread {
        return None;
    }
    waiting(contender, runtime, || ()).map(|(_, took)| took)
}

fn bytes(contender: Contender, runtime: &Runtime) -> Option<f64> {
    if contender == Contender::Thread {
        return None;
    }
    let before = resident_bytes() as f64;
    // The last one may be about to wait; that does not matter here.
    let settle = || thread::sleep(Duration::from_millis(20));
    let (after, _) = waiting(contender, runtime, || {
        settle();
        resident_bytes() as f64
    })?;
    Some((after - before) / MANY as f64)
}
