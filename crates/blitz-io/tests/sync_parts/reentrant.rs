//! reentrant
