//! A short run of the fuzz targets over their corpus, with random mutations, on the ordinary compiler.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../fuzz/entries.rs"]
mod entries;

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// A seed of the corpus with bytes changed, cut out, doubled or put in.
fn mutated(target: &str) -> impl Strategy<Value = Vec<u8>> {
    let folder = Path::new("fuzz/corpus").join(target);
    let seeds: Vec<Vec<u8>> = fs::read_dir(&folder)
        .unwrap()
        .map(|file| fs::read(file.unwrap().path()).unwrap())
        .collect();
    assert!(seeds.len() >= 8, "{}: the corpus is kept", folder.display());
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..5_u8), 0..12);
    (prop::sample::select(seeds), edits).prop_map(|(mut bytes, edits)| {
        for (index, byte, edit) in edits {
            let at = index.index(bytes.len() + 1);
            match edit {
                0 if at < bytes.len() => bytes[at] = byte,
                1 if at < bytes.len() => bytes[at] ^= 1 << (byte % 8),
                2 => bytes.truncate(at),
                3 => bytes.extend_from_within(at..),
                _ => bytes.insert(at, byte),
            }
        }
        bytes
    })
}

fn run(target: &str, cases: u32, entry: fn(&[u8])) {
    let folder = Path::new("fuzz/corpus").join(target);
    for seed in fs::read_dir(&folder).unwrap() {
        entry(&fs::read(seed.unwrap().path()).unwrap());
    }
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&mutated(target), |bytes| {
            entry(&bytes);
            Ok(())
        })
        .unwrap();
}

#[test]
fn the_connect_head_keeps_its_promises() {
    run("connect_head", 4_000, entries::fuzz_connect_head);
}

#[test]
fn the_host_grammar_keeps_its_promises() {
    run("host", 20_000, entries::fuzz_host);
}

#[test]
fn the_client_hello_keeps_its_promises() {
    run("client_hello", 20_000, entries::fuzz_client_hello);
}

#[test]
fn the_archive_reader_keeps_its_promises() {
    run("archive", 4_000, entries::fuzz_archive);
}
