//! `task_local!` must refuse an initial value, because a scope sets the value.

blitz_io::task_local! {
    static NUMBER: u32;
    static NAME: String = String::new();
}

fn main() {}
