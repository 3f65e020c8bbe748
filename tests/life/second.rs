//! The owner's second terminal: `status` and `stop` reach the session, and nobody else does.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::time::Duration;

use nix::unistd::User;
use serde_json::{Value, json};

use crate::stage::{PROGRAM, Stage};

const SOON: Duration = Duration::from_secs(8);

fn second(stage: &Stage, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(arguments)
        .env("XDG_RUNTIME_DIR", stage.folder());
    command
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

#[test]
fn a_second_terminal_sees_the_parts_and_ends_the_session() {
    let (mut stage, agent) = Stage::ready();
    let page = agent.open("<title>\u{1b}[2J</title><p>a page");
    agent.post(
        "/request",
        &json!({"hosts": ["one.example"], "reason": "r"}),
    );
    let output = second(&stage, &["status", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(line["process"], stage.daemon().id);
    let status = &line["status"];
    for (at, name, state) in [
        (0, "browser", "running"),
        (1, "display", "running"),
        (2, "proxy", "running"),
        (3, "link", "up"),
    ] {
        let part = &status["parts"][at];
        assert_eq!(
            (&part["name"], &part["state"], &part["restarts"]),
            (&json!(name), &json!(state), &json!(0)),
            "{status}"
        );
    }
    assert_eq!(
        (&status["pages"][0]["page"], &status["requests_waiting"]),
        (&json!(page), &json!(1))
    );
    let table = text(&second(&stage, &["status"]).output().unwrap());
    assert!(
        table.contains("restarts")
            && table.contains("requests 1 waiting")
            && !table.contains('\u{1b}'),
        "{table}"
    );

    let output = second(&stage, &["stop", "1"]).output().unwrap();
    assert!(
        !output.status.success() && text(&output).contains("status"),
        "{}",
        text(&output)
    );
    let output = second(&stage, &["stop"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let ended = stage.ended(SOON);
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(
        ended.events.last().unwrap()["reason"],
        "stopped from another terminal"
    );
    for arguments in [&["status"][..], &["stop"]] {
        let output = second(&stage, arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(
            text(&output).contains("no session runs"),
            "{}",
            text(&output)
        );
    }
}

#[test]
fn another_user_of_the_machine_neither_sees_nor_ends_it() {
    let (stage, _agent) = Stage::ready();
    let nobody = User::from_name("nobody").unwrap().unwrap();
    for arguments in [&["status"][..], &["stop"]] {
        let output = second(&stage, arguments)
            .uid(nobody.uid.as_raw())
            .gid(nobody.gid.as_raw())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(
            text(&output).contains("no session runs"),
            "{}",
            text(&output)
        );
    }
    let folder = stage.folder().join("gpu-browser");
    let socket = folder.join(format!("{}.sock", stage.daemon().id));
    for (path, mode) in [(&folder, 0o700), (&socket, 0o600)] {
        let found = path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{}", path.display());
    }
    // An answer cannot be given there at all, whoever asks.
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream
        .write_all(b"{\"ask\":\"allow\",\"number\":1}\n")
        .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.contains("where the session was started"), "{reply}");
}
