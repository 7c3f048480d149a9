//! The rows without a runtime: the system's own cost. `copy_1g` is `cp`.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::Duration;

use harness::measure::{Metric, per_op};

use crate::files::{
    BLOCK, COLD, FILES, HUGE, LARGE, MANY, OPS, SMALL, cold_batches, copies, entries,
};
use crate::material::{Folder, Numbers};

/// Runs a row; `None` if there is no such row.
pub(crate) fn run(row: &str, budget: Duration) -> Option<Vec<Metric>> {
    let folder = Folder::new();
    Some(match row {
        "read_4k" | "read_4k_32" => {
            let paths = folder.files(FILES, BLOCK);
            per_op(budget, OPS, || {
                for at in 0..OPS {
                    assert_eq!(fs::read(&paths[at % FILES]).expect("a file").len(), BLOCK);
                }
            })
        }
        "small_files" => {
            let paths = folder.files(MANY, SMALL);
            per_op(budget, MANY, || {
                for path in &paths {
                    assert_eq!(fs::read(path).expect("a file").len(), SMALL);
                }
            })
        }
        "random_4k" => {
            let mut file = File::open(folder.large(LARGE)).expect("a file");
            let (mut numbers, mut block) = (Numbers::new(1), [0; BLOCK]);
            per_op(budget, OPS, || {
                for _ in 0..OPS {
                    let at = numbers.below((LARGE / BLOCK) as u64) * BLOCK as u64;
                    file.seek(SeekFrom::Start(at)).expect("a file has a cursor");
                    file.read_exact(&mut block).expect("it is as large");
                }
            })
        }
        "cold_4k_32" => {
            let path = folder.large(if budget.is_zero() { LARGE } else { HUGE });
            let file = File::open(&path).expect("a file");
            let blocks = file.metadata().expect("a file").len() / BLOCK as u64;
            let (mut numbers, mut block) = (Numbers::new(1), [0; BLOCK]);
            cold_batches(&path, budget, || {
                for _ in 0..COLD {
                    let at = numbers.below(blocks) * BLOCK as u64;
                    file.read_exact_at(&mut block, at).expect("a block");
                }
            })
        }
        "read_1m" => {
            let mut file = File::open(folder.large(LARGE)).expect("a file");
            let mut piece = vec![0; 1 << 20];
            per_op(budget, LARGE >> 20, || {
                file.rewind().expect("a file has a cursor");
                for _ in 0..LARGE >> 20 {
                    file.read_exact(&mut piece).expect("it is as large");
                }
            })
        }
        "write_1m" => {
            let mut file = File::create(folder.path().join("written")).expect("a file");
            let piece = vec![b'x'; 1 << 20];
            per_op(budget, LARGE >> 20, || {
                file.rewind().expect("a file has a cursor");
                for _ in 0..LARGE >> 20 {
                    file.write_all(&piece).expect("room for it");
                }
            })
        }
        "walk_1000" => {
            entries(&folder);
            per_op(budget, 1000, || {
                let walk = fs::read_dir(folder.path()).expect("a folder");
                let is_file = |entry: std::io::Result<fs::DirEntry>| {
                    entry.and_then(|entry| entry.file_type()).expect("an entry").is_file()
                };
                assert_eq!(walk.map(is_file).filter(|is_file| *is_file).count(), 1000);
            })
        }
        "copy_1g" => copies(&folder, budget, |from, to| {
            let done = Command::new("cp").arg(from).arg(to).status().expect("there is `cp`");
            assert!(done.success());
        }),
        _ => return None,
    })
}
