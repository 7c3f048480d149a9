//! Defects that are planted, to show that they are found.

use std::{fs::File, mem, process::Command, sync::Arc, thread, time::Duration};

use crate::{
    ledger::Kind,
    world::{StepContext, World},
};

/// A defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plant {
    /// A task that is never dropped.
    LostTask,
    /// A message that is neither received nor dropped.
    LostMessage,
    /// A value that is dropped twice.
    DoubleDrop,
    /// A task that never ends and is awaited.
    Hang,
    /// A poll that keeps its runtime from ending.
    HangAtEnd,
    /// A thread that stays.
    Thread,
    /// A descriptor that stays open.
    Descriptor,
    /// A child that is not reaped.
    Child,
    /// A panic that no plan has.
    Panic,
}

impl Plant {
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        Ok(match name {
            "lost-task" => Plant::LostTask,
            "lost-message" => Plant::LostMessage,
            "double-drop" => Plant::DoubleDrop,
            "hang" => Plant::Hang,
            "hang-at-end" => Plant::HangAtEnd,
            "thread" => Plant::Thread,
            "descriptor" => Plant::Descriptor,
            "child" => Plant::Child,
            "panic" => Plant::Panic,
            _ => return Err(format!("`{name}` is no defect that can be planted: see --help")),
        })
    }

    /// Plants the defect, on the outermost runtime of a round.
    pub(crate) async fn plant(self, cx: &StepContext) {
        let world: &Arc<World> = &cx.world;
        match self {
            Plant::LostTask => {
                let token = world.token(Kind::Task);
                let task: Box<dyn Future<Output = ()> + Send> = Box::new(async move {
                    let _token = token;
                });
                mem::forget(task);
            }
            Plant::LostMessage => mem::forget(world.token(Kind::Message)),
            Plant::DoubleDrop => world.token(Kind::Burden).plant_drop(),
            Plant::Hang => std::future::pending().await,
            Plant::HangAtEnd => {
                let (started, starts) = blitz_io::channel::oneshot::channel();
                drop(blitz_io::spawn(async move {
                    let _ = started.send(());
                    loop {
                        thread::park();
                    }
                }));
                let _ = starts.await;
            }
            Plant::Thread => {
                thread::spawn(|| {
                    loop {
                        thread::park();
                    }
                });
            }
            Plant::Descriptor => mem::forget(File::open("/dev/null")),
            Plant::Child => {
                let child = Command::new("true").spawn();
                // Long enough for the child to end, so that it stays as a zombie.
                thread::sleep(Duration::from_millis(10));
                drop(child);
            }
            Plant::Panic => {
                let _ = blitz_io::spawn(async { panic!("a panic that no plan has") }).await;
            }
        }
    }
}
