//! Values whose destructors do something.

use std::{panic::AssertUnwindSafe, sync::atomic::Ordering::SeqCst, thread};

use blitz_io::{
    runtime::{Builder, Handle, Runtime, RuntimeFlavor},
    task, time,
};

use super::micros;
use crate::{
    ledger::{Kind, Token},
    plan::Burden,
    world::{self, StepContext},
};

/// A value with a destructor.
pub(super) struct Value {
    cx: StepContext,
    burden: Burden,
    /// The runtime that [`Burden::EndsRuntime`] ends.
    runtime: Option<Runtime>,
    token: Token,
}

impl Value {
    pub(super) fn new(cx: &StepContext, burden: Burden) -> Self {
        Self::of_kind(cx, burden, Kind::Burden)
    }

    pub(super) fn of_kind(cx: &StepContext, burden: Burden, kind: Kind) -> Self {
        let runtime = if burden == Burden::EndsRuntime { small_runtime(cx) } else { None };
        Self { cx: cx.clone(), burden, runtime, token: cx.token(kind) }
    }

    /// Counts that the value has arrived where it was sent.
    pub(super) fn arrived(&self) {
        self.token.ran();
    }
}

/// Creates a runtime with one worker and a task that never ends.
fn small_runtime(cx: &StepContext) -> Option<Runtime> {
    let mut builder = Builder::new_multi_thread();
    let built = builder.worker_threads(1).enable_time().build();
    let runtime = cx.check("a small runtime", built)?;
    let token = cx.token(Kind::Task);
    drop(runtime.spawn(async move {
        let _token = token;
        std::future::pending::<()>().await;
    }));
    Some(runtime)
}

impl Drop for Value {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        if thread::panicking() {
            // A second panic would abort the process, and a timer may panic.
            return;
        }
        match self.burden {
            Burden::Nothing | Burden::EndsRuntime => {}
            Burden::Panics => panic!("{}: a destructor", world::PLANNED),
            Burden::Spawns => spawn(&self.cx),
            Burden::Sleeps(time) => thread::sleep(micros(time)),
            Burden::BlocksInPlace(time) => {
                world::try_to_block(|| task::block_in_place(|| thread::sleep(micros(time))));
            }
            Burden::WaitsForTask => {
                let token = self.cx.token(Kind::Task);
                wait(async {
                    // The task is cancelled when the runtime ends.
                    let _ = blitz_io::spawn(async move { drop(token) }).await;
                });
            }
            Burden::WaitsForTimer(after) => wait(async move { time::sleep(micros(after)).await }),
            Burden::Sends => {
                let world = &self.cx.world;
                world.mailed.fetch_add(1, SeqCst);
                let sent = world.mail.send(world.token(Kind::Message));
                self.cx.ensure(sent.is_ok(), || "the mailbox is closed".into());
            }
        }
    }
}

/// Spawns a task where there is a runtime.
fn spawn(cx: &StepContext) {
    if let Ok(handle) = Handle::try_current() {
        let token = cx.token(Kind::Task);
        drop(handle.spawn(async move {
            let _token = token;
            task::yield_now().await;
        }));
    }
}

/// Waits for a future on this thread, where there is a runtime and the thread may wait.
fn wait(future: impl Future<Output = ()>) {
    let Ok(handle) = Handle::try_current() else { return };
    world::try_to_block(|| match handle.runtime_flavor() {
        RuntimeFlavor::MultiThread => task::block_in_place(|| handle.block_on(future)),
        _ => handle.block_on(future),
    });
}

/// Drops a value; a planned panic of its destructor ends here.
pub(super) fn drop_quietly<T>(value: T) {
    // The panic hook has judged the panic.
    let _ = std::panic::catch_unwind(AssertUnwindSafe(|| drop(value)));
}
