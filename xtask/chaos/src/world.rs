//! The state that the steps of a round share: the ledger, the locks, and the faults.

use std::{
    cell::Cell,
    collections::BTreeMap,
    fmt::Display,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst},
    },
};

use blitz_io::{channel::mpsc, runtime::Handle, sync};

use crate::{
    ledger::{Kind, Ledger, Token},
    options::Options,
};

/// The permits of the semaphore that all steps share.
pub(crate) const PERMITS: u32 = 6;

/// The beginning of planned panics' messages.
pub(crate) const PLANNED: &str = "chaos: planned";

/// Parts of the panic messages that a destructor may get where it waits, because it does not know
/// whether its thread may block.
const WHERE_NOTHING_MAY_BLOCK: [&str; 2] =
    ["Cannot start a runtime from within", "can call blocking only when running on"];

/// Part of a timer's panic message when its runtime has ended.
const RUNTIME_ENDED: &str = "it is being shutdown";

thread_local! {
    /// True while a destructor on this thread tries to block.
    static TRIES: Cell<bool> = const { Cell::new(false) };
}

/// Locks a mutex of this program; poisoning is ignored, because no panic leaves its data
/// inconsistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state that the steps of a round share.
pub(crate) struct World {
    pub(crate) options: Options,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) folder: PathBuf,
    faults: Mutex<Vec<String>>,
    figures: Mutex<BTreeMap<&'static str, u64>>,
    /// The runtimes of the round, for a dump of those that hang.
    live: Mutex<Vec<(String, Handle)>>,
    pub(crate) numbers: AtomicU64,
    pub(crate) mutex: Arc<sync::Mutex<u64>>,
    /// The number of times the value in the mutex was incremented.
    pub(crate) raised: AtomicU64,
    pub(crate) rw_lock: Arc<sync::RwLock<u64>>,
    /// The number of readers inside, or -1 for a writer.
    pub(crate) inside: AtomicI64,
    pub(crate) semaphore: Arc<sync::Semaphore>,
    pub(crate) permits_held: AtomicI64,
    /// The channel that destructors send to.
    pub(crate) mail: mpsc::UnboundedSender<Token>,
    pub(crate) mailed: AtomicU64,
    mailbox: Mutex<mpsc::UnboundedReceiver<Token>>,
}

impl World {
    pub(crate) fn new(options: &Options, folder: PathBuf) -> Arc<Self> {
        let (mail, mailbox) = mpsc::unbounded_channel();
        Arc::new(Self {
            options: options.clone(),
            ledger: Ledger::new(),
            folder,
            faults: Mutex::default(),
            figures: Mutex::default(),
            live: Mutex::default(),
            numbers: AtomicU64::new(0),
            mutex: Arc::new(sync::Mutex::new(0)),
            raised: AtomicU64::new(0),
            rw_lock: Arc::new(sync::RwLock::new(0)),
            inside: AtomicI64::new(0),
            semaphore: Arc::new(sync::Semaphore::new(PERMITS as usize)),
            permits_held: AtomicI64::new(0),
            mail,
            mailed: AtomicU64::new(0),
            mailbox: Mutex::new(mailbox),
        })
    }

    pub(crate) fn token(&self, kind: Kind) -> Token {
        self.ledger.token(kind)
    }

    /// Records a fault.
    pub(crate) fn fault(&self, what: impl Into<String>) {
        let what = what.into();
        eprintln!("chaos: {what}");
        lock(&self.faults).push(what);
    }

    pub(crate) fn faults(&self) -> Vec<String> {
        lock(&self.faults).clone()
    }

    pub(crate) fn count(&self, what: &'static str) {
        *lock(&self.figures).entry(what).or_default() += 1;
    }

    pub(crate) fn figures(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.figures).clone()
    }

    pub(crate) fn note_runtime(&self, name: String, handle: Handle) {
        lock(&self.live).push((name, handle));
    }

    pub(crate) fn forget_runtimes(&self) {
        let forgotten = std::mem::take(&mut *lock(&self.live));
        drop(forgotten);
    }

    pub(crate) fn runtimes(&self) -> Vec<(String, Handle)> {
        lock(&self.live).clone()
    }

    /// Receives what destructors have sent; returns the number of messages.
    pub(crate) fn empty_mailbox(&self) -> u64 {
        let mut mailbox = lock(&self.mailbox);
        let mut count = 0;
        while mailbox.try_recv().is_ok() {
            count += 1;
        }
        count
    }
}

/// The place where a step runs.
#[derive(Clone)]
pub(crate) struct StepContext {
    pub(crate) world: Arc<World>,
    /// Set before the end of the step's runtime begins.
    ending: Arc<AtomicBool>,
}

impl StepContext {
    pub(crate) fn new(world: Arc<World>) -> Self {
        Self { world, ending: Arc::default() }
    }

    /// Marks that the end of the runtime begins.
    pub(crate) fn end(&self) {
        self.ending.store(true, SeqCst);
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(SeqCst)
    }

    pub(crate) fn token(&self, kind: Kind) -> Token {
        self.world.token(kind)
    }

    /// Returns the value of an operation. An error is a fault, unless the runtime ends.
    pub(crate) fn check<T, E: Display>(&self, what: &str, result: Result<T, E>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(_) if self.is_ending() => None,
            Err(error) => {
                self.world.fault(format!("{what}: {error}"));
                None
            }
        }
    }

    /// Records a fault unless the condition holds.
    pub(crate) fn ensure(&self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.world.fault(what());
        }
    }
}

/// Calls `action`, which may panic with a message that the thread may not block.
pub(crate) fn try_to_block(action: impl FnOnce()) {
    let before = TRIES.replace(true);
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(action));
    TRIES.set(before);
    // The panic hook has judged the panic.
    drop(ended);
}

/// Returns true if a panic with this message on this thread is part of a plan.
pub(crate) fn is_planned(words: &str) -> bool {
    let may_not_block = || WHERE_NOTHING_MAY_BLOCK.iter().any(|part| words.contains(part));
    words.starts_with(PLANNED)
        || words.contains(RUNTIME_ENDED)
        || (TRIES.try_with(Cell::get).unwrap_or(false) && may_not_block())
}
