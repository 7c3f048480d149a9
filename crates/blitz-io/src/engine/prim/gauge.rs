//! Figures that any thread may write and read, and that order nothing.
//!
//! Models do not explore gauges, because no decision depends on them and each access would double
//! the work of a model.

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
                    // Relaxed: a figure that orders nothing.
                    self.0.store(value, Relaxed);
                }

                #[inline(always)]
                pub(crate) fn get(&self) -> $value {
                    // Relaxed: a figure that orders nothing.
                    self.0.load(Relaxed)
                }
            }
        )+
    };
}

gauges! {
    /// A 32-bit figure that any thread may write and read, and that orders nothing.
    Gauge: u32, AtomicU32;
    /// An 8-bit figure that any thread may write and read, and that orders nothing.
    ByteGauge: u8, AtomicU8;
}
