//! It declares statics.

blitz_io::task_local! {
    let number: u32;
}

fn main() {}
