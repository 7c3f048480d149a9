//! Padding that keeps a value on cache lines of its own.
//!
//! Alignment alone is enough: Rust rounds a type's size up to its alignment, so nothing else can
//! share the last line. The line sizes are those of the design's table: 128 where a prefetcher
//! pulls lines in pairs (x86-64, aarch64) or the line is that long (powerpc64), 256 on s390x, 32
//! on small ARM, MIPS and SPARC.

use std::ops::{Deref, DerefMut};

/// A value that shares no cache line with another one.
#[cfg_attr(
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "powerpc64"),
    repr(align(128))
)]
#[cfg_attr(any(target_arch = "arm", target_arch = "mips", target_arch = "sparc"), repr(align(32)))]
#[cfg_attr(target_arch = "s390x", repr(align(256)))]
#[cfg_attr(
    not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "powerpc64",
        target_arch = "arm",
        target_arch = "mips",
        target_arch = "sparc",
        target_arch = "s390x"
    )),
    repr(align(64))
)]
#[derive(Debug, Default)]
pub(crate) struct CachePadded<T>(T);

impl<T> CachePadded<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> Deref for CachePadded<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for CachePadded<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::CachePadded;

    #[test]
    fn neighbours_never_share_a_line() {
        let pair = [CachePadded::new(0u8), CachePadded::new(0u8)];
        let distance = (&raw const pair[1]).addr() - (&raw const pair[0]).addr();
        assert_eq!(distance, align_of::<CachePadded<u8>>());
        if cfg!(target_arch = "x86_64") {
            assert_eq!(distance, 128);
        }
    }
}
