//! What `docs/boundary.md` tells a reviewer is there: every file that keeps a promise, and every test that attacks it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};

/// The rows of the document's tables, without heads: promise, files, attacks.
fn rows() -> Vec<[String; 3]> {
    let text = fs::read_to_string("docs/boundary.md").unwrap();
    let cells = |line: &str| -> Option<[String; 3]> {
        let inside = line.strip_prefix('|')?.strip_suffix('|')?;
        let cells: Vec<_> = inside
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect();
        cells.try_into().ok()
    };
    let is_head = |row: &[String; 3]| row[0] == "promise" || row[0].starts_with("---");
    let rows = text.lines().filter_map(cells);
    rows.filter(|row| !is_head(row)).collect()
}

/// The words of a cell that stand between backticks, each with what stands before it.
fn code(cell: &str) -> Vec<(String, String)> {
    let parts: Vec<&str> = cell.split('`').collect();
    assert_eq!(parts.len() % 2, 1, "an open backtick in {cell}");
    let pairs = parts.chunks_exact(2);
    pairs
        .map(|pair| (pair[0].to_owned(), pair[1].to_owned()))
        .collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// Whether a file belongs to a module: `module.rs`, or a file of a folder `module`.
fn belongs(path: &Path, module: &str) -> bool {
    let parts = path
        .components()
        .map(|part| part.as_os_str().to_string_lossy());
    let mut names = parts.map(|part| part.trim_end_matches(".rs").to_owned());
    names.any(|name| name == module)
}

#[test]
fn every_promise_of_the_boundary_names_files_that_are_there() {
    let rows = rows();
    assert!(rows.len() > 40, "{}", rows.len());
    for [promise, files, _] in rows {
        let files = code(&files);
        assert!(!files.is_empty(), "{promise}");
        for (_, file) in files {
            let is_there = Path::new("src").join(&file).is_file() || Path::new(&file).is_file();
            assert!(is_there, "{promise}: {file}");
        }
    }
}

#[test]
fn every_promise_of_the_boundary_names_attacks_that_are_there() {
    let mut paths = Vec::new();
    for folder in ["src", "tests"] {
        sources(Path::new(folder), &mut paths);
    }
    let texts: Vec<(PathBuf, String)> = paths
        .into_iter()
        .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
        .collect();
    let targets = fs::read_to_string("fuzz/Cargo.toml").unwrap();
    for [promise, _, attacks] in rows() {
        let attacks = code(&attacks);
        assert!(!attacks.is_empty(), "{promise}");
        for (before, attack) in attacks {
            if before.ends_with("fuzz target ") {
                assert!(
                    targets.contains(&format!("name = \"{attack}\"")),
                    "{attack}"
                );
                continue;
            }
            let (module, name) = attack.split_once("::").unwrap();
            let wanted = format!("fn {name}(");
            let is_there = |(path, text): &(PathBuf, String)| {
                let at = text.find(&wanted).filter(|_| belongs(path, module));
                // The attribute stands above, with others between.
                let above = at.map(|at| &text[..at]);
                above.is_some_and(|above| {
                    above.contains("#[test]") || above.contains("#[tokio::test")
                }) || at.is_some() && text.contains("proptest!")
            };
            assert!(texts.iter().any(is_there), "{promise}: {attack} is nowhere");
        }
    }
}
