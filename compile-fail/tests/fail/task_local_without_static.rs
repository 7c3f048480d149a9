//! `task_local!` must refuse a `let`, because it declares statics.

blitz_io::task_local! {
    let number: u32;
}

fn main() {}
