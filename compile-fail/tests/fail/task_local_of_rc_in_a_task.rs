//! A value that cannot be sent keeps its future from being spawned.

use std::rc::Rc;

blitz_io::task_local! {
    static NUMBER: Rc<u32>;
}

#[blitz_io::main]
async fn main() {
    blitz_io::spawn(NUMBER.scope(Rc::new(1), async {}));
}
