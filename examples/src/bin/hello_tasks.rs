//! Spawns some tasks and joins them.
//!
//! `spawn` starts a task at once, on any worker; the handle is a future of the task's output.
//! Dropping a handle detaches the task, which continues to run.

#![forbid(unsafe_code)]

use blitz_io::task::JoinHandle;

#[blitz_io::main]
async fn main() {
    let greetings: Vec<JoinHandle<String>> = ["tasks", "workers", "world"]
        .into_iter()
        .map(|name| blitz_io::spawn(async move { greet(name).await }))
        .collect();

    // The tasks run in any order; awaiting the handles in order restores ours.
    let mut said = Vec::new();
    for greeting in greetings {
        said.push(greeting.await.expect("greeting does not panic and is not aborted"));
    }
    for line in &said {
        println!("{line}");
    }
    assert_eq!(said, ["hello, tasks", "hello, workers", "hello, world"]);
}

async fn greet(name: &str) -> String {
    // A task that has much to do should let others run now and then.
    blitz_io::task::yield_now().await;
    format!("hello, {name}")
}
