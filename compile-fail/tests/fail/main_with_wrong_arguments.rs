//! `#[blitz_io::main]` must refuse arguments that are unknown, repeated or contradictory.

#[blitz_io::main(flavor = "fast")]
async fn no_flavor() {}

#[blitz_io::main(worker_threads = 0)]
async fn no_thread() {}

#[blitz_io::main(flavor = "current_thread", worker_threads = 4)]
async fn threads_for_one() {}

#[blitz_io::main(workers = 4)]
async fn unknown() {}

#[blitz_io::main(name = "a", name = "b")]
async fn twice() {}

#[blitz_io::main(multi_thread)]
async fn no_name() {}

fn main() {}
