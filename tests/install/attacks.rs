//! What the rule gives, and what nobody gets out of it. Each attack stands beside the harmless line that works.

use std::io::Read;

use crate::machine::{ACCOUNT, INSTALLED, Machine, OWNER, PROGRAM, STRANGER};

/// The program has run and found no session on its input: it was let through.
const RAN: i32 = 2;

#[test]
fn the_rule_lets_one_command_line_through_and_no_other() {
    let machine = Machine::new();
    machine.install();
    let allowed = format!("sudo -n -u {ACCOUNT} {INSTALLED} server </dev/null");
    machine
        .person(OWNER, &allowed)
        .expect(RAN)
        .says("no session");
    let folder = "/opt/agent-socket/gpu-browser";
    for line in [
        format!("sudo -n -u {ACCOUNT} {INSTALLED} server --verbose"),
        format!("sudo -n -u {ACCOUNT} {INSTALLED} --verbose server"),
        format!("sudo -n -u {ACCOUNT} {INSTALLED} server server"),
        format!("sudo -n -u {ACCOUNT} {INSTALLED} self-test"),
        format!("sudo -n -u {ACCOUNT} {INSTALLED} __enter {{}}"),
        format!("sudo -n -u {ACCOUNT} {INSTALLED} __self-test"),
        format!("sudo -n -u {ACCOUNT} {INSTALLED}"),
        format!("sudo -n -u {ACCOUNT} {INSTALLED} \"\""),
        format!("sudo -n -u {ACCOUNT} /bin/sh -c id"),
        format!("sudo -n -u {ACCOUNT} -s"),
        format!("sudo -n -u {ACCOUNT} -i"),
        format!("sudo -n -u {ACCOUNT} -g root {INSTALLED} server"),
        format!("sudo -n -u {ACCOUNT} -E {INSTALLED} server"),
        format!("sudo -n -u {ACCOUNT} LD_PRELOAD=/tmp/x.so {INSTALLED} server"),
        format!("sudo -n -u {ACCOUNT} HOME=/home/{OWNER} {INSTALLED} server"),
        format!("sudo -n -u {ACCOUNT} {folder}/../gpu-browser/nothing server"),
        format!("sudo -n -u {ACCOUNT} {PROGRAM} server"),
        format!("sudo -n {INSTALLED} server"),
        format!("sudo -n -u root {INSTALLED} server"),
        format!("sudo -n -u \\#0 {INSTALLED} server"),
        format!("sudo -n -u \\#-1 {INSTALLED} server"),
        format!("sudo -n -u {STRANGER} {INSTALLED} server"),
        format!("sudo -n -u {ACCOUNT} -e {INSTALLED}"),
    ] {
        let ran = machine.person(OWNER, &format!("{line} </dev/null"));
        assert!(
            ran.errors.contains("sudo:") && ran.code != Some(RAN),
            "{line}: {ran:#?}"
        );
    }
}

#[test]
fn another_user_of_the_machine_gets_nothing() {
    let machine = Machine::new();
    machine.install();
    let ran = machine.person(
        STRANGER,
        &format!("sudo -n -u {ACCOUNT} {INSTALLED} server </dev/null"),
    );
    assert!(
        ran.code == Some(1) && ran.errors.contains("sudo:"),
        "{ran:#?}"
    );
    for line in [
        "ls /var/lib/agent-socket-gpu-browser",
        "ls /var/lib/agent-socket/gpu-browser",
        "cat /etc/sudoers.d/agent-socket-gpu-browser",
        "flock -n /var/lib/agent-socket/gpu-browser/install.lock true",
        "ln -sfn /tmp /opt/agent-socket/gpu-browser/current",
        "rm /opt/agent-socket/gpu-browser/current",
        "touch /opt/agent-socket/gpu-browser/versions/x",
    ] {
        for who in [STRANGER, OWNER] {
            let ran = machine.person(who, line);
            assert!(
                ran.code != Some(0) && ran.errors.contains("denied"),
                "{who}: {line}: {ran:#?}"
            );
        }
    }
    // What everybody may see: the program, to know what is run.
    machine
        .person(STRANGER, &format!("test -r {INSTALLED}"))
        .expect(0);
}

#[test]
fn the_account_cannot_change_what_it_runs_nor_what_is_known_of_it() {
    let machine = Machine::new();
    machine.install();
    let as_account = |line: &str| machine.root(&format!("runuser -u {ACCOUNT} -- sh -c '{line}'"));
    as_account("touch /var/lib/agent-socket-gpu-browser/x && cat /var/lib/agent-socket/gpu-browser/journal >/dev/null").expect(0);
    for line in [
        "echo {} >> /var/lib/agent-socket/gpu-browser/journal",
        "rm /var/lib/agent-socket/gpu-browser/server.lock",
        "ln -sfn /tmp /opt/agent-socket/gpu-browser/current",
        &format!("echo x > {INSTALLED}"),
        "cat /etc/sudoers.d/agent-socket-gpu-browser",
        &format!("ls /home/{OWNER}"),
    ] {
        let ran = as_account(line);
        assert!(
            ran.code != Some(0)
                && (ran.errors.contains("denied") || ran.errors.contains("cannot create")),
            "{line}: {ran:#?}"
        );
    }
    let ran = as_account(&format!("sudo -n {INSTALLED} server"));
    assert!(ran.code != Some(0), "{ran:#?}");
}

#[test]
fn a_lock_that_somebody_holds_is_named_with_its_holder() {
    let machine = Machine::new();
    machine.install();
    let lock = "/var/lib/agent-socket/gpu-browser/install.lock";
    let mut holder = machine
        .command(&format!(
            "exec runuser -u {ACCOUNT} -- flock --shared --no-fork {lock} sh -c 'echo held; exec sleep 1000'"
        ))
        .spawn()
        .unwrap();
    let mut held = [0; 5];
    holder
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut held)
        .unwrap();
    machine
        .program("uninstall --yes")
        .expect(3)
        .says("is running (process ");
    machine.root(&format!("pkill -u {ACCOUNT}")).expect(0);
    holder.wait().unwrap();
    machine.program("uninstall --yes").expect(0);
}

#[test]
fn a_name_that_is_more_than_a_name_is_no_owner() {
    let machine = Machine::new();
    let before = machine.tree();
    for owner in [
        "root",
        "nobody-here",
        "ALL",
        "%sudo",
        "#0",
        "ann ALL",
        "ann\nbob ALL=(ALL) NOPASSWD: ALL\n",
    ] {
        let line = format!("{PROGRAM} install --yes --owner '{owner}'");
        machine.root(&line).expect(2);
    }
    machine
        .root(&format!("{PROGRAM} install --yes"))
        .expect(2)
        .says("--owner");
    before.assert_same(&machine.tree(), "after refused owners");
}
