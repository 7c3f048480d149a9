//! A future with a task-local that is not `Send` must not be spawned, as it may change threads.

use std::rc::Rc;

blitz_io::task_local! {
    static NUMBER: Rc<u32>;
}

#[blitz_io::main]
async fn main() {
    blitz_io::spawn(NUMBER.scope(Rc::new(1), async {}));
}
