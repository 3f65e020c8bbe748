//! A relay that is not there yet is waited for; one that cannot be the right one ends the start with its reason.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::processes::naming;
use crate::stage::{PROGRAM, Stage};

/// The browser is tried before the relay.
const BROWSER: Duration = Duration::from_secs(90);

/// A relay of its own process.
pub struct Relay(Child);

impl Relay {
    /// Starts one; its address.
    pub fn run(arguments: &[&str]) -> (Self, String) {
        let mut child = Command::new(PROGRAM)
            .arg("relay")
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line.trim().strip_prefix("relay at ").unwrap().to_owned();
        (Self(child), address)
    }

    /// Kills it where it stands.
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(relay: &str) -> Stage {
    Stage::run(&["start", "--dev", "--json", "--relay", relay])
}

/// An address of this machine where nothing listens.
fn nobody() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().to_string()
}

/// A server that gives every request this answer.
fn answering(answer: &'static str) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    format!("http://{address}")
}

fn fails_at_once(relay: &str, reason: &str, fix: &str) {
    let mut stage = start(relay);
    let ended = stage.ended(BROWSER);
    assert_eq!(ended.status.code(), Some(1), "{}", ended.log);
    for named in [reason, fix] {
        assert!(ended.log.contains(named), "no {named:?} in {}", ended.log);
    }
    let names: Vec<&str> = ended
        .events
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["ended"], "nothing was tried again");
    let left = naming(stage.folder());
    assert!(left.is_empty(), "{left:#?}");
    assert_eq!(stage.run_folders(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_session_begins_when_its_relay_comes_up() {
    let address = nobody();
    let stage = start(&format!("http://{address}"));
    let away = stage.event("relay", BROWSER);
    assert_eq!(away["state"], "away");
    let reason = away["reason"].as_str().unwrap();
    for named in [
        address.as_str(),
        "refused",
        "trying again",
        "check the address",
    ] {
        assert!(reason.contains(named), "no {named:?} in {reason}");
    }
    std::thread::sleep(Duration::from_secs(3));
    let (_relay, _) = Relay::run(&["--listen", &address]);
    let ready = stage.event("ready", Duration::from_secs(20));
    let link = ready["link"].as_str().unwrap();
    assert!(
        link.starts_with(&format!("http://{address}/v1/t/")),
        "{link}"
    );
}

#[test]
fn a_start_that_waits_for_its_relay_can_be_stopped_and_leaves_nothing() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut stage = start(&format!("http://{}", nobody()));
        stage.event("relay", BROWSER);
        let before = stage.children();
        assert!(!before.is_empty());
        stage.signal(signal);
        let ended = stage.ended(Duration::from_secs(5));
        assert_eq!(ended.status.code(), Some(0), "{}", ended.log);
        assert_eq!(ended.events.last().unwrap()["event"], "ended");
        let deadline = Instant::now() + Duration::from_secs(5);
        while before.iter().any(crate::processes::Process::is_alive) {
            assert!(Instant::now() < deadline, "outlived the daemon");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(stage.run_folders(), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn a_server_that_is_no_relay_ends_the_start() {
    let page = answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi");
    fails_at_once(
        &page,
        "does not speak the relay protocol",
        "check the address",
    );
}

#[test]
fn a_wrong_path_ends_the_start() {
    let (_relay, address) = Relay::run(&["--listen", "127.0.0.1:0"]);
    fails_at_once(
        &format!("{address}/wrong"),
        "there is no relay at",
        "check the path",
    );
}

#[test]
fn a_certificate_that_nobody_vouches_for_ends_the_start() {
    let made = rcgen::generate_simple_self_signed(vec!["other.example".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let (_relay, address) = Relay::run(&[
        "--listen",
        "127.0.0.1:0",
        "--tls-cert",
        cert.to_str().unwrap(),
        "--tls-key",
        key.to_str().unwrap(),
    ]);
    let address = address.replace("127.0.0.1", "localhost");
    fails_at_once(&address, "has a bad certificate", "clock");
}
