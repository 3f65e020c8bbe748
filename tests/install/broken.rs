//! Machines that are broken on purpose: what is in the way is named, and nothing is changed or all is taken back.

use std::fs::File;
use std::io::Write;

use crate::machine::{ACCOUNT, Machine, OWNER, PROGRAM};

/// What is done to the machine, and what the refusal says.
const IN_THE_WAY: &[(&str, &str)] = &[
    (
        "useradd --home-dir /home/x --shell /bin/sh agent-socket-gpu-browser",
        "the account agent-socket-gpu-browser is there",
    ),
    (
        "mkdir /var/lib/agent-socket-gpu-browser",
        "is a folder of user 0",
    ),
    ("ln -s /tmp /var/lib/agent-socket-gpu-browser", "is a link"),
    (
        "mkdir -p /opt/agent-socket && chown bob /opt/agent-socket",
        "belongs to user",
    ),
    (
        "mkdir -p /opt/agent-socket && chmod 777 /opt/agent-socket",
        "can be written by others",
    ),
    ("ln -s /home/bob /opt/agent-socket", "is a link"),
    (
        "mkdir -p /opt/agent-socket/gpu-browser && ln -s /tmp /opt/agent-socket/gpu-browser/current",
        "leads to /tmp",
    ),
    (
        "echo 'ann ALL=(ALL) ALL' > /etc/sudoers.d/agent-socket-gpu-browser",
        "holds another rule",
    ),
];

#[test]
fn what_is_in_the_way_stops_everything_before_anything_is_changed() {
    for (breaking, said) in IN_THE_WAY {
        let machine = Machine::new();
        machine.root(breaking).expect(0);
        let before = machine.tree();
        machine
            .program("install --yes")
            .expect(1)
            .says("nothing was changed")
            .says(said);
        before.assert_same(&machine.tree(), breaking);
    }
}

/// What makes an install fail in its middle, and what is said.
const IN_THE_MIDDLE: &[(&str, &str)] = &[
    (
        "mkdir -p /opt && mount -t tmpfs -o size=4m,mode=755 tmpfs /opt",
        "No space left",
    ),
    (
        "mkdir -p /opt && mount -t tmpfs -o ro,mode=755 tmpfs /opt",
        "Read-only",
    ),
    (
        "sed -i '/includedir/d' /etc/sudoers",
        "@includedir /etc/sudoers.d",
    ),
];

#[test]
fn what_fails_in_the_middle_is_taken_back() {
    for (breaking, said) in IN_THE_MIDDLE {
        let machine = Machine::new();
        machine.root(breaking).expect(0);
        let before = machine.tree();
        machine
            .program("install --yes")
            .expect(1)
            .says(said)
            .says("install --undo");
        machine.program("install --undo --yes").expect(0);
        before.assert_same(&machine.tree(), breaking);
    }
}

#[test]
fn a_cause_that_is_gone_lets_the_same_command_go_on() {
    let machine = Machine::new();
    let before = machine.tree();
    machine
        .root("mount -t tmpfs -o size=4m,mode=755 tmpfs /opt")
        .expect(0);
    machine.program("install --yes --skip-self-test").expect(1);
    machine.root("umount /opt").expect(0);
    machine
        .program("install --yes --skip-self-test")
        .expect(5)
        .says("left unfinished");
    machine.program("uninstall --yes").expect(0);
    before.assert_same(&machine.tree(), "after a full disk");
}

#[test]
fn a_system_or_a_chromium_that_will_not_do_is_refused_with_the_reason() {
    for (breaking, code, said) in [
        (
            "rm /etc/os-release && printf 'ID=alpine\\n' > /etc/os-release",
            1,
            "musl",
        ),
        ("touch /etc/NIXOS", 1, "NixOS"),
        ("touch /run/ostree-booted", 1, "ostree"),
        ("mv /usr/lib/chromium /usr/lib/gone", 4, "wrapper script"),
        ("chown bob /usr/lib/chromium/chromium", 4, "belongs to user"),
    ] {
        let machine = Machine::new();
        machine.root(breaking).expect(0);
        let before = machine.tree();
        machine.program("install --yes").expect(code).says(said);
        before.assert_same(&machine.tree(), breaking);
    }
}

#[test]
fn without_sudo_it_is_installed_without_a_rule_and_says_so() {
    let machine = Machine::new();
    machine.root("mv /usr/bin/sudo /usr/bin/gone").expect(0);
    machine
        .program("install --yes --skip-self-test")
        .expect(5)
        .says("there is no sudo here");
    assert!(
        !machine
            .path("/etc/sudoers.d/agent-socket-gpu-browser")
            .exists()
    );
    machine.root("mv /usr/bin/gone /usr/bin/sudo").expect(0);
    machine.program("update --yes --skip-self-test").expect(5);
    assert!(
        machine
            .path("/etc/sudoers.d/agent-socket-gpu-browser")
            .exists()
    );
}

#[test]
fn an_account_that_useradd_left_half_made_is_made_whole() {
    for damage in [
        "sed -i /^agent-socket-gpu-browser:/d /etc/shadow",
        "sed -i /^agent-socket-gpu-browser:/d /etc/shadow /etc/group /etc/gshadow",
        "sed -i /^agent-socket-gpu-browser:/d /etc/gshadow",
        "sed -i /^agent-socket-gpu-browser:/d /etc/passwd",
    ] {
        let machine = Machine::new();
        let before = machine.tree();
        let has_user = || {
            machine
                .root(&format!("grep -q ^{ACCOUNT}: /etc/passwd"))
                .code
                == Some(0)
        };
        for after in 1.. {
            machine.program(&format!(
                "install --yes --skip-self-test --stop-after {after}"
            ));
            if has_user() {
                break;
            }
            machine.program("install --undo --yes").expect(0);
        }
        machine.root(damage).expect(0);
        machine.program("install --yes --skip-self-test").expect(5);
        machine
            .root(&format!(
                "getent shadow {ACCOUNT} && getent gshadow {ACCOUNT} && id {ACCOUNT}"
            ))
            .expect(0);
        machine.program("uninstall --yes").expect(0);
        before.assert_same(&machine.tree(), damage);
    }
}

#[test]
fn a_journal_that_cannot_be_read_changes_nothing() {
    let machine = Machine::new();
    machine.install();
    machine
        .root("echo '{\"record\":\"danced\"}' >> /var/lib/agent-socket/gpu-browser/journal")
        .expect(0);
    let before = machine.tree();
    for command in ["install", "update", "uninstall", "install --undo"] {
        machine
            .program(&format!("{command} --yes"))
            .expect(1)
            .says("a newer gpu-browser");
    }
    before.assert_same(&machine.tree(), "with a journal from the future");
}

#[test]
fn of_two_installs_at_once_one_is_done_and_nothing_is_done_twice() {
    let machine = Machine::new();
    let before = machine.tree();
    let line = format!("SUDO_USER={OWNER} {PROGRAM} install --yes --skip-self-test");
    let mut running: Vec<_> = (0..3)
        .map(|_| machine.command(&line).spawn().unwrap())
        .collect();
    let codes: Vec<_> = running
        .iter_mut()
        .map(|one| one.wait().unwrap().code())
        .collect();
    assert!(codes.contains(&Some(5)), "{codes:?}");
    assert!(
        codes.iter().all(|code| matches!(code, Some(1 | 3 | 5))),
        "{codes:?}"
    );
    machine
        .root(&format!("grep -c ^{ACCOUNT}: /etc/passwd"))
        .expect(0)
        .says("1");
    machine.program("uninstall --yes").expect(0);
    before.assert_same(&machine.tree(), "after installs at once");
}

#[test]
fn a_chromium_from_an_archive_is_kept_by_updates_and_gone_with_the_uninstall() {
    let machine = Machine::new();
    let archive = machine.path("/tmp/chrome.zip");
    let mut writer = zip::ZipWriter::new(File::create(&archive).unwrap());
    let options = zip::write::SimpleFileOptions::default().unix_permissions(0o755);
    writer.start_file("chrome-linux64/chrome", options).unwrap();
    writer
        .write_all(&std::fs::read("/bin/true").unwrap())
        .unwrap();
    writer.finish().unwrap();
    let sum = machine.root("sha256sum /tmp/chrome.zip").expect(0).output;
    let sum = &sum[..64];
    let before = machine.tree();
    machine
        .program(&format!(
            "install --yes --skip-self-test --chromium-archive /tmp/chrome.zip --sha256 {}",
            "0".repeat(64)
        ))
        .expect(1)
        .says("its SHA-256 is");
    machine.program("install --undo --yes").expect(0);
    machine
        .program(&format!(
            "install --yes --skip-self-test --chromium-archive /tmp/chrome.zip --sha256 {sum}"
        ))
        .expect(5);
    machine.root("rm /tmp/chrome.zip").expect(0);
    machine
        .root(&format!(
            "SUDO_USER={OWNER} /tmp/gpu-browser-next update --yes --skip-self-test"
        ))
        .expect(5);
    machine
        .root("/opt/agent-socket/gpu-browser/current/chromium/chrome")
        .expect(0);
    machine.program("uninstall --yes").expect(0);
    before.assert_same(&machine.tree(), "after an install with an archive");
}
