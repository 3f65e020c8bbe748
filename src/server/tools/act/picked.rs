//! Uploads that a page has picked in a file input: written into the run's folder, where the browser's account can read
//! them. A page reads its file when it likes, so they stay; the oldest go when there are too many bytes.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::browser::folder::RunFolder;
use crate::policy::limits::PICKED_BYTES;

/// The files that were picked, oldest first.
#[derive(Debug)]
pub(in crate::server) struct Picked {
    kept: Mutex<Kept>,
    /// Bytes that are kept.
    most: usize,
}

impl Default for Picked {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
            most: PICKED_BYTES,
        }
    }
}

#[derive(Debug, Default)]
struct Kept {
    number: u64,
    bytes: usize,
    folders: VecDeque<(PathBuf, usize)>,
}

impl Picked {
    /// Writes files under their own names into a folder of their own; blocks.
    pub(super) fn write(
        &self,
        folder: &RunFolder,
        files: &[(String, Vec<u8>)],
    ) -> std::io::Result<Vec<String>> {
        let size: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
        // Held while files are written: two calls at once would both see the room for one.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        while kept.bytes + size > self.most {
            let Some((oldest, bytes)) = kept.folders.pop_front() else {
                break;
            };
            kept.bytes -= bytes;
            std::fs::remove_dir_all(oldest)?;
        }
        kept.number += 1;
        let name = format!("picked-{}", kept.number);
        let path = folder.make_part(&name)?;
        kept.bytes += size;
        kept.folders.push_back((path, size));
        files
            .iter()
            .enumerate()
            .map(|(index, (file, bytes))| {
                // Two files of one name come from two folders of the agent's.
                let part = format!("{name}/{index}");
                folder.make_part(&part)?;
                let path = folder.write(&format!("{part}/{file}"), bytes)?;
                Ok(path.to_string_lossy().into_owned())
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_written_under_their_names_and_the_oldest_make_room() {
        let folder = RunFolder::create(None).unwrap();
        let picked = Picked {
            most: 1_000,
            ..Picked::default()
        };
        let half = vec![7; 500];
        let file = |name: &str| vec![(name.to_owned(), half.clone())];
        let first = picked.write(&folder, &file("a.bin")).unwrap();
        assert!(first[0].ends_with("/a.bin"));
        let second = picked.write(&folder, &file("b.bin")).unwrap();
        let third = picked.write(&folder, &file("c.bin")).unwrap();
        let there = |paths: &[String]| std::path::Path::new(&paths[0]).exists();
        assert_eq!(
            (there(&first), there(&second), there(&third)),
            (false, true, true)
        );
    }

    #[test]
    fn two_files_of_one_name_stay_two() {
        let folder = RunFolder::create(None).unwrap();
        let files = ["one", "two"].map(|text| ("same.txt".to_owned(), text.as_bytes().to_vec()));
        let paths = Picked::default().write(&folder, &files).unwrap();
        let read = |path: &String| std::fs::read_to_string(path).unwrap();
        assert_eq!(paths.iter().map(read).collect::<Vec<_>>(), ["one", "two"]);
    }
}
