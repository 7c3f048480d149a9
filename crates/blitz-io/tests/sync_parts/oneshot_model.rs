//! oneshot_model
