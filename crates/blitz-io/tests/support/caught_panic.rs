//! Catches a panic and records its message and location.

use std::{
    any::Any,
    cell::RefCell,
    panic::{self, AssertUnwindSafe},
    sync::Once,
};

/// A panic that was caught.
#[derive(Debug)]
pub(crate) struct Caught {
    pub(crate) message: String,
    pub(crate) file: String,
    pub(crate) line: u32,
}

thread_local! {
    static PLACE: RefCell<Option<(String, u32)>> = const { RefCell::new(None) };
}

/// Returns the message of a panic's payload.
pub(crate) fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// Calls `f`, which must panic on this thread, and returns the panic.
#[track_caller]
pub(crate) fn panic_of<R>(f: impl FnOnce() -> R) -> Caught {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let place = info.location().map(|place| (place.file().to_owned(), place.line()));
            PLACE.with(|last| *last.borrow_mut() = place);
            before(info);
        }));
    });
    let Err(payload) = panic::catch_unwind(AssertUnwindSafe(f)) else {
        panic!("it did not panic");
    };
    let (file, line) = PLACE.with(|last| last.borrow_mut().take()).unwrap_or_default();
    Caught { message: message(&*payload), file, line }
}

impl Caught {
    /// Asserts that the message contains all of these words.
    #[track_caller]
    pub(crate) fn says(&self, words: &[&str]) -> &Self {
        for word in words {
            assert!(self.message.contains(word), "`{word}` is not in: {}", self.message);
        }
        self
    }

    /// Asserts that the panic's location is this line.
    #[track_caller]
    pub(crate) fn at(&self, file: &str, line: u32) -> &Self {
        assert_eq!((self.file.as_str(), self.line), (file, line), "{}", self.message);
        self
    }
}
