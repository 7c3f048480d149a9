//! The cases, a file for each topic.
//!
//! A case builds its own runtime, prints what it observes, and must be deterministic on the real
//! packages. It runs alone in a process, in an empty directory, and must end within seconds.

use crate::Case;

mod fs_file;
mod fs_open;
mod fs_paths;
mod fs_runtime;
mod fs_special;
mod io_buf;
mod io_copy;
mod io_ext;
// Newer versions of Tokio deprecate `AsyncFd::new`.
#[allow(deprecated)]
mod io_fd;
mod io_mem;
mod io_std;
mod io_util;
mod net_pipe;
mod net_rt;
// `set_linger` is deprecated.
#[allow(deprecated)]
mod net_tcp;
mod net_udp;
mod net_unix;
mod parallel;
mod process_spawn;
mod process_stdio;
mod process_wait;
mod runtime;
mod signal;
mod sync;
mod task;
mod time;

/// Every topic with its cases.
pub(crate) const TOPICS: &[(&str, &[Case])] = &[
    ("fs_file", fs_file::CASES),
    ("fs_open", fs_open::CASES),
    ("fs_paths", fs_paths::CASES),
    ("fs_runtime", fs_runtime::CASES),
    ("fs_special", fs_special::CASES),
    ("io_buf", io_buf::CASES),
    ("io_copy", io_copy::CASES),
    ("io_ext", io_ext::CASES),
    ("io_fd", io_fd::CASES),
    ("io_mem", io_mem::CASES),
    ("io_std", io_std::CASES),
    ("io_util", io_util::CASES),
    ("net_pipe", net_pipe::CASES),
    ("net_rt", net_rt::CASES),
    ("net_tcp", net_tcp::CASES),
    ("net_udp", net_udp::CASES),
    ("net_unix", net_unix::CASES),
    ("parallel", parallel::CASES),
    ("process_spawn", process_spawn::CASES),
    ("process_stdio", process_stdio::CASES),
    ("process_wait", process_wait::CASES),
    ("runtime", runtime::CASES),
    ("signal", signal::CASES),
    ("sync", sync::CASES),
    ("task", task::CASES),
    ("time", time::CASES),
];
