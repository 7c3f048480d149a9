//! A picture, its rows drawn in parallel.
//!
//! A scope may be given any number of jobs, and its jobs may borrow what lives longer than it: here
//! each gets a row of one buffer. Rows through the middle take many times as long as those at the
//! edge, so a row is a job: a thread that finishes early takes the next one.
//!
//! `mandelbrot [WIDTHxHEIGHT] [FILE]` writes a PNG; without a file name into the temporary
//! directory. It prints the path.

#![forbid(unsafe_code)]

use std::{error::Error, fs, path::PathBuf, time::Instant};

use blitz_io::parallel;
use blitz_io_examples::picture::Size;

/// The size by default.
const SIZE: &str = "640x480";
/// The file's name by default. A second run overwrites the first one's file.
const NAME: &str = "blitz-mandelbrot.png";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let size = arguments.next().unwrap_or_else(|| SIZE.into());
    let size: Size = size.to_string_lossy().parse()?;
    let path = arguments.next().map_or_else(|| std::env::temp_dir().join(NAME), PathBuf::from);
    if let Some(extra) = arguments.next() {
        let extra = extra.to_string_lossy();
        return Err(format!("`{extra}` is one argument too many: give a size and a file").into());
    }

    let start = Instant::now();
    let pixels = draw(size);
    let threads = parallel::current_num_threads();
    println!("{size} pixels drawn in {:.1?} by {threads} threads", start.elapsed());
    assert!(size.is_mirrored(&pixels), "a row is not where it belongs");

    fs::write(&path, size.encode(&pixels)?).map_err(|error| {
        format!("cannot write {}: {error}; give another file after the size", path.display())
    })?;
    println!("wrote {}", path.display());
    Ok(())
}

fn draw(size: Size) -> Vec<u8> {
    let mut pixels = size.blank();
    parallel::scope(|scope| {
        for (y, row) in pixels.chunks_exact_mut(size.row_bytes()).enumerate() {
            scope.spawn(move |_| size.draw_row(y, row));
        }
    });
    pixels
}
