//! Tests files and directories.
//!
//! The tests know one thing about the implementation: an operation that needs no blocking thread
//! starts none, and threads can be counted. `forced_methods` runs the other tests again, once
//! with each method to read and copy.

// One module for each part of the API.
mod auto_traits;
mod copy;
mod errors;
mod file;
mod open_options;
mod paths;
mod read_at;
mod read_dir;
mod whole_file;

// Operations with and without a blocking thread.
#[cfg(target_os = "linux")]
mod forced_methods;
#[cfg(target_os = "linux")]
mod inline;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod refused_calls;
#[cfg(target_os = "linux")]
mod special_files;

// Failures.
#[cfg(target_os = "linux")]
mod faults;
mod hostile;
