//! broadcast_model
