//! The proof of which packages this binary was compiled with.
//!
//! Only the drop-ins have a constant `BLITZ_IO_DROPIN`. A build for the drop-ins names it, and so
//! fails to compile with the published packages. A build for those has a constant of the same name
//! beside the packages' own items, and so fails to compile, as ambiguous, with a drop-in.

#[cfg(feature = "dropin")]
mod tokio_marker {
    pub(super) const MARKER: &str = tokio::BLITZ_IO_DROPIN;
}

#[cfg(feature = "dropin")]
mod rayon_marker {
    pub(super) const MARKER: &str = rayon_core::BLITZ_IO_DROPIN;
}

#[cfg(not(feature = "dropin"))]
mod absent {
    pub(super) const BLITZ_IO_DROPIN: &str = "published";
}

#[cfg(not(feature = "dropin"))]
mod tokio_marker {
    use super::absent::*;
    #[allow(unused_imports)]
    use tokio::*;

    pub(super) const MARKER: &str = BLITZ_IO_DROPIN;
}

#[cfg(not(feature = "dropin"))]
mod rayon_marker {
    use super::absent::*;
    #[allow(unused_imports)]
    use rayon_core::*;

    pub(super) const MARKER: &str = BLITZ_IO_DROPIN;
}

/// True if the drop-ins are in place.
pub(crate) const DROPIN: bool = cfg!(feature = "dropin");

/// Returns the names of the packages, which the runner checks before it trusts any comparison.
pub(crate) fn packages() -> String {
    format!("tokio {} rayon-core {}", tokio_marker::MARKER, rayon_marker::MARKER)
}
