//! The floors of the house: a room uses only rooms below it, and files stay readable in size.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of tests may panic like a test"
)]

use std::fs;
use std::path::{Path, PathBuf};

/// Each room with the rooms it may use.
const FLOORS: &[(&str, &[&str])] = &[
    ("place", &[]),
    ("policy", &[]),
    ("proxy", &["policy", "place"]),
    ("relay", &["policy", "place"]),
    ("browser", &["policy", "place"]),
    ("install", &["place"]),
    ("server", &["browser", "relay", "proxy", "policy", "place"]),
    (
        "owner",
        &[
            "server", "browser", "relay", "proxy", "policy", "place", "install",
        ],
    ),
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found
}

fn room_of(path: &Path) -> Option<String> {
    let inside = path.strip_prefix("src").unwrap();
    let first = inside.components().next()?.as_os_str().to_str()?;
    let room = first.strip_suffix(".rs").unwrap_or(first);
    (room != "lib" && room != "main").then(|| room.to_owned())
}

/// The rooms that a line of code names with `crate::room`.
fn named(line: &str) -> impl Iterator<Item = &str> {
    let code = if line.trim_start().starts_with("//") {
        ""
    } else {
        line
    };
    code.split("crate::").skip(1).map(|rest| {
        rest.split(|c: char| !c.is_alphanumeric() && c != '_')
            .next()
            .unwrap()
    })
}

#[test]
fn a_room_uses_only_rooms_below_it() {
    let mut broken = Vec::new();
    for path in sources(Path::new("src")) {
        let Some(room) = room_of(&path) else { continue };
        let allowed = FLOORS.iter().find(|(name, _)| *name == room);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("{room} is on no floor"));
        for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            for other in named(line) {
                if other != room
                    && !allowed.contains(&other)
                    && FLOORS.iter().any(|(name, _)| *name == other)
                {
                    broken.push(format!(
                        "{}:{}: {room} uses {other}",
                        path.display(),
                        number + 1
                    ));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn policy_is_pure() {
    for path in sources(Path::new("src/policy")) {
        let text = fs::read_to_string(&path).unwrap();
        for impure in [
            "tokio::",
            "std::net::Tcp",
            "std::net::Udp",
            "SystemTime",
            "Instant::now",
            "println!",
            "std::fs",
        ] {
            assert!(!text.contains(impure), "{} uses {impure}", path.display());
        }
    }
}

#[test]
fn no_file_is_longer_than_400_lines() {
    let long: Vec<String> = ["src", "tests"]
        .iter()
        .flat_map(|folder| sources(Path::new(folder)))
        .map(|path| (fs::read_to_string(&path).unwrap().lines().count(), path))
        .filter(|(lines, _)| *lines > 400)
        .map(|(lines, path)| format!("{}: {lines} lines", path.display()))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn unsafe_code_is_allowed_only_in_the_files_that_need_a_system_call() {
    let mut allowed: Vec<PathBuf> = sources(Path::new("src"))
        .into_iter()
        .filter(|path| {
            let text = fs::read_to_string(path).unwrap();
            text.contains("allow(unsafe_code") || text.contains("expect(unsafe_code")
        })
        .collect();
    allowed.sort();
    // The first raises `lo` and takes a descriptor over a socket, the second sets glibc's allocator.
    let known = ["src/browser/namespace.rs", "src/main.rs"];
    assert_eq!(allowed, known.map(PathBuf::from));
}
