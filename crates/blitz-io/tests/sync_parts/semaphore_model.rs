//! semaphore_model
