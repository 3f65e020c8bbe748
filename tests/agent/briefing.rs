//! The briefing: every command in it is run as it stands, by a shell, against a real link.

use std::path::Path;
use std::process::{Command, Output};

use hyper::Method;
use serde_json::Value;

use crate::daemon::Daemon;
use crate::pixels::{decode, sha256};

const PAGE: &str = "<!doctype html><title>briefed</title><body style='margin:0;background:#036'><h1 style='color:#fff'>here</h1>";
/// Bytes that all replies but the picture's may take together.
const REPLIES: usize = 3_000;

fn commands(briefing: &str) -> Vec<&str> {
    let blocks = briefing.split("```sh\n").skip(1);
    blocks
        .map(|block| block.split_once("```").unwrap().0)
        .collect()
}

/// Runs commands as an agent's shell does, and stops at the first that fails.
fn run(commands: &str, base: &str, folder: &Path) -> Output {
    let output = Command::new("sh")
        .args(["-eu", "-c", commands])
        .env("BASE", base)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{commands}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        output.stderr.is_empty(),
        "{commands}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// The JSON replies that commands printed.
fn replies(output: &Output) -> Vec<Value> {
    let replies = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
    replies.map(Result::unwrap).collect()
}

#[tokio::test]
async fn every_command_of_the_briefing_works_as_it_stands() {
    let daemon = Daemon::start();
    let reply = daemon.send(Method::GET, "agents.md", "").await;
    assert_eq!(reply.status, 200);
    assert!(
        reply.text().len() <= 6 * 1024,
        "{} bytes",
        reply.text().len()
    );
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.html"), PAGE).unwrap();
    std::fs::create_dir_all(folder.path().join("site/js")).unwrap();
    std::fs::write(folder.path().join("site/index.html"), PAGE).unwrap();
    std::fs::write(folder.path().join("site/js/app.js"), "1").unwrap();

    let blocks = commands(reply.text());
    let [picture, archive] = blocks.as_slice() else {
        panic!("{} blocks", blocks.len());
    };
    let output = run(picture, &daemon.base, folder.path());
    let said = replies(&output);
    let [files, verdict, value, receipt] = said.as_slice() else {
        panic!("{said:?}");
    };
    assert!(
        output.stdout.len() < REPLIES,
        "{} bytes: {said:?}",
        output.stdout.len()
    );
    assert_eq!(files["files"][0]["sha256"], sha256(PAGE.as_bytes()));
    assert_eq!(
        (&verdict["page"], &verdict["title"]),
        (&"p1".into(), &"briefed".into())
    );
    assert_eq!(value["value"], "briefed");
    let shot = std::fs::read(folder.path().join("shot.png")).unwrap();
    assert_eq!(receipt["sha256"], sha256(&shot));
    let shot = decode(receipt.clone(), &shot);
    assert_eq!(
        (shot.size(), shot.at(1279, 719)),
        ((1280, 720), [0, 0x33, 0x66])
    );

    let unpacked = replies(&run(archive, &daemon.base, folder.path()));
    let paths: Vec<&str> = unpacked[0]["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["path"].as_str().unwrap())
        .collect();
    assert!(
        paths.contains(&"index.html") && paths.contains(&"js/app.js"),
        "{paths:?}"
    );
}
