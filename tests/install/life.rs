//! From the first install to the last trace gone.

use std::os::unix::fs::MetadataExt;

use crate::machine::{ACCOUNT, INSTALLED, Machine, OWNER, PROGRAM, STRANGER};

const NEXT: &str = "/tmp/gpu-browser-next";

#[test]
fn an_uninstall_leaves_the_tree_as_it_was() {
    let machine = Machine::new();
    let before = machine.tree();
    machine.install();
    assert!(machine.path(INSTALLED).is_file());
    machine
        .root(&format!(
            "SUDO_USER={OWNER} {NEXT} update --yes --skip-self-test"
        ))
        .expect(5);
    machine
        .program("uninstall --yes")
        .expect(0)
        .says("nothing of gpu-browser is installed");
    before.assert_same(&machine.tree(), "after install, update and uninstall");
}

#[test]
fn an_install_makes_what_the_plan_says_and_nothing_more() {
    let machine = Machine::new();
    let plan = machine.program("install --dry-run").expect(0);
    assert!(
        !machine.path("/var/lib/agent-socket").exists(),
        "a dry run has changed something"
    );
    machine.install();
    for said in [
        ACCOUNT,
        "/opt/agent-socket/gpu-browser",
        "sudoers.d",
        "0700",
        OWNER,
    ] {
        assert!(plan.output.contains(said), "{said}: {}", plan.output);
    }
    let mode = |path: &str| {
        let found = machine.path(path).metadata().unwrap();
        (found.mode() & 0o7777, found.uid() == 0)
    };
    assert_eq!(mode("/var/lib/agent-socket-gpu-browser"), (0o700, false));
    assert_eq!(mode("/var/lib/agent-socket/gpu-browser"), (0o750, true));
    assert_eq!(
        mode("/var/lib/agent-socket/gpu-browser/journal"),
        (0o640, true)
    );
    assert_eq!(
        mode("/etc/sudoers.d/agent-socket-gpu-browser"),
        (0o440, true)
    );
    assert_eq!(mode("/var/log/agent-socket-gpu-browser"), (0o2750, false));
    let listing = "ls /var/log/agent-socket-gpu-browser";
    machine.person(OWNER, listing).expect(0);
    machine.person(STRANGER, listing).says("denied");
    assert_eq!(mode(INSTALLED), (0o755, true));
    machine
        .root(&format!(
            "getent passwd {ACCOUNT} && getent shadow {ACCOUNT}"
        ))
        .expect(0)
        .says("nologin")
        .says(&format!("{ACCOUNT}:!"));
    machine
        .root(&format!("su -s /bin/sh -c true {ACCOUNT}"))
        .expect(0);
    machine
        .person(OWNER, &format!("su {ACCOUNT} </dev/null"))
        .says("Password");
}

#[test]
fn a_second_install_finds_all_as_it_should_be() {
    let machine = Machine::new();
    machine.install();
    let before = machine.tree();
    machine
        .program("install --yes --skip-self-test")
        .expect(5)
        .says("all is as it should be");
    before.assert_same(&machine.tree(), "after a second install");
}

#[test]
fn an_update_replaces_the_version_and_mends_what_is_missing() {
    let machine = Machine::new();
    machine.install();
    let old = std::fs::read_link(machine.path("/opt/agent-socket/gpu-browser/current")).unwrap();
    machine
        .root("rm /etc/sudoers.d/agent-socket-gpu-browser")
        .expect(0);
    machine
        .root(&format!(
            "SUDO_USER={OWNER} {NEXT} update --yes --skip-self-test"
        ))
        .expect(5);
    let new = std::fs::read_link(machine.path("/opt/agent-socket/gpu-browser/current")).unwrap();
    assert_ne!(old, new);
    let versions = machine.path("/opt/agent-socket/gpu-browser/versions");
    assert_eq!(std::fs::read_dir(versions).unwrap().count(), 1);
    machine
        .root(&format!(
            "sudo -n -l -U {OWNER} -u {ACCOUNT} {INSTALLED} server"
        ))
        .expect(0);
}

#[test]
fn without_root_the_line_to_run_is_printed() {
    let machine = Machine::new();
    for command in ["install", "uninstall --yes", "update", "doctor --fix"] {
        let ran = machine
            .person(OWNER, &format!("{PROGRAM} {command}"))
            .expect(1);
        ran.says(&format!("sudo {PROGRAM} {command}"));
    }
}

#[test]
fn nothing_is_done_without_a_yes() {
    let machine = Machine::new();
    let before = machine.tree();
    machine.program("install").expect(2).says("--yes");
    before.assert_same(&machine.tree(), "without a yes");
}

#[test]
fn a_program_reads_events() {
    let machine = Machine::new();
    let ran = machine.program("install --dry-run --json").expect(0);
    for line in ran.output.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(
            event["event"].is_string() && event["text"].is_string(),
            "{line}"
        );
    }
}

#[test]
fn what_was_there_before_stays() {
    let machine = Machine::new();
    machine.root("mkdir -p /var/lib/agent-socket /opt/agent-socket/other && chmod 755 /opt/agent-socket && touch /opt/agent-socket/other/file").expect(0);
    let before = machine.tree();
    machine.install();
    machine.program("uninstall --yes").expect(0);
    before.assert_same(&machine.tree(), "with folders of another program's");
}

#[test]
fn an_uninstall_ends_what_runs_under_the_account() {
    let machine = Machine::new();
    machine.install();
    let mut sleeper = machine
        .command(&format!("exec runuser -u {ACCOUNT} -- sleep 1000"))
        .spawn()
        .unwrap();
    while !machine
        .root(&format!("pgrep -u {ACCOUNT}"))
        .output
        .contains(char::is_numeric)
    {}
    machine.program("uninstall --yes").expect(0);
    assert!(!sleeper.wait().unwrap().success());
}
