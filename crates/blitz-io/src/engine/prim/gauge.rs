//! A figure that anyone may write and read, and that orders nothing.
//!
//! Models do not explore it: nothing is decided by it, and each of its accesses
//! would double their work.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

macro_rules! gauges {
    ($($(#[doc = $doc:literal])+ $name:ident: $value:ty, $atomic:ty;)+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Debug, Default)]
            pub(crate) struct $name($atomic);

            impl $name {
                #[inline(always)]
                pub(crate) fn set(&self, value: $value) {
                    // Relaxed: a figure, which orders nothing.
                    self.0.store(value, Relaxed);
                }

                #[inline(always)]
                pub(crate) fn get(&self) -> $value {
                    // Relaxed: as above.
                    self.0.load(Relaxed)
                }
            }
        )+
    };
}

gauges! {
    /// See the module.
    Gauge: u32, AtomicU32;
    /// A small one.
    ByteGauge: u8, AtomicU8;
}
