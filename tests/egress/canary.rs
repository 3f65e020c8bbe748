//! A browser that is not inside the proxy is not believed, and no page of it is handed out.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use gpu_browser::browser::find::find;
use gpu_browser::policy::limits::CANARY;
use gpu_browser::server::canary::{CanaryError, sing};
use tokio::time::Instant;

use crate::browser::{Browser, Kept};
use crate::world::home::Home;
use crate::world::net::at_home;

/// What the canary says of a browser in the network of the test itself, where it can reach what the test listens on.
fn sung(kept: Kept, judge: fn(Result<(), CanaryError>)) {
    at_home(move |world| async move {
        let home = Home::new(&[], &[]);
        let (browser, socket) = Browser::start(&world.home, kept, home.proxy.spki()).await;
        home.proxy.adopt(socket).unwrap();
        let began = Instant::now();
        judge(sing(&browser.chromium, &home.proxy).await);
        println!("{kept:?}: {:?}", began.elapsed());
        let totals = home.proxy.totals();
        assert_eq!(
            (totals.refusals, totals.refused_hosts),
            (0, vec![]),
            "it is no page's"
        );
    });
}

#[test]
fn a_browser_with_our_switches_is_believed_within_its_time() {
    sung(Kept::Switched, |sung| sung.unwrap());
}

#[test]
fn a_browser_that_takes_loopback_for_its_own_is_not_believed() {
    sung(Kept::SwitchedBut("--proxy-bypass-list"), |sung| {
        assert!(matches!(sung, Err(CanaryError::Direct)), "{sung:?}");
    });
}

#[test]
fn a_browser_without_a_proxy_is_not_believed() {
    sung(Kept::SwitchedBut("--proxy-server"), |sung| {
        assert!(matches!(sung, Err(CanaryError::Direct)), "{sung:?}");
    });
}

/// Builds the program that leaves a switch out.
fn bypass(folder: &Path, switch: &str) -> std::path::PathBuf {
    let chromium = find(None).unwrap();
    let source = format!(
        "{}\nconst CHROMIUM: &str = {:?};\nconst SWITCH: &str = {switch:?};\n",
        include_str!("bypass.rs"),
        chromium.as_path()
    );
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).unwrap();
    let program = folder.join("chromium");
    std::fs::write(folder.join("bypass.rs"), source).unwrap();
    let built = Command::new("rustc")
        .args(["--edition=2024", "-o"])
        .args([&program, &folder.join("bypass.rs")])
        .output()
        .unwrap();
    assert!(built.status.success(), "{built:?}");
    program
}

/// A start of the real program with this Chromium: its first event that ends the wait, and how it ended.
fn started(chromium: &Path) -> (String, Option<i32>, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gpu-browser"))
        .args([
            "start",
            "--dev",
            "--json",
            "--relay",
            "local",
            "--gpu",
            "software",
            "--chromium",
        ])
        .arg(chromium)
        .env(
            "XDG_CACHE_HOME",
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("egress-cache"),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let event = lines.map_while(Result::ok).find(|line| {
        [r#""event":"ready""#, r#""event":"ended""#]
            .iter()
            .any(|word| line.contains(word))
    });
    let event = event.unwrap_or_default();
    if event.contains("ready") {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    }
    let mut log = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut log)
        .unwrap();
    (event, child.wait().unwrap().code(), log)
}

#[test]
fn a_start_whose_browser_bypasses_the_proxy_fails_and_says_why() {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let began = std::time::Instant::now();
    let (event, code, log) = started(&bypass(folder.path(), "--proxy-bypass-list"));
    assert_eq!(code, Some(4), "{event} {log}");
    assert!(log.contains("the boundary does not hold"), "{log}");
    // It is one fault of all rungs: no other is tried.
    assert!(began.elapsed() < 2 * CANARY, "{:?}", began.elapsed());
    // The twin: the same program that leaves nothing out.
    let (event, _, log) = started(&bypass(folder.path(), "--no-such-switch"));
    assert!(event.contains("ready"), "{event} {log}");
}
