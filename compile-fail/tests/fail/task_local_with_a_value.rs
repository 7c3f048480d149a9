//! The habit of `thread_local!`.

blitz_io::task_local! {
    static NUMBER: u32;
    static NAME: String = String::new();
}

fn main() {}
