//! watch_model
