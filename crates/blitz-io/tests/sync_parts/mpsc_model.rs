//! mpsc_model
