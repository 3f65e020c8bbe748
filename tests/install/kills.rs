//! A kill after every single effect of an install, an update and an uninstall: what the next run finds, it finishes or
//! takes back, and the tree is exactly as it should be then.

use crate::machine::{Machine, OWNER, PROGRAM};
use crate::tree::Tree;

const NEXT: &str = "/tmp/gpu-browser-next";
/// `SIGKILL`, as a shell reports it.
const KILLED: i32 = 137;
/// More effects than any run has.
const MOST: u32 = 400;

/// Runs the program as root, killed after so many effects; whether it was.
fn killed(machine: &Machine, program: &str, line: &str, after: u32) -> bool {
    let ran = machine.root(&format!(
        "SUDO_USER={OWNER} {program} {line} --yes --stop-after {after}; exit $?"
    ));
    match ran.code {
        Some(KILLED) => true,
        Some(0 | 5) => false,
        _ => panic!("{line} after {after}: {ran:#?}"),
    }
}

fn run(machine: &Machine, program: &str, line: &str) {
    let ran = machine.root(&format!("SUDO_USER={OWNER} {program} {line} --yes"));
    assert!(matches!(ran.code, Some(0 | 5)), "{line}: {ran:#?}");
}

/// Kills a run after each of its effects, on one machine that `reset` brings back; returns how many there were.
fn each(
    machine: &Machine,
    program: &str,
    line: &str,
    mut then: impl FnMut(u32),
    reset: impl Fn(),
) -> u32 {
    for after in 1..MOST {
        reset();
        if !killed(machine, program, line, after) {
            return after - 1;
        }
        then(after);
    }
    panic!("{line} never ends");
}

fn installed(machine: &Machine) -> Tree {
    run(machine, PROGRAM, "install --skip-self-test");
    machine.tree()
}

#[test]
fn a_killed_install_is_finished_and_leaves_nothing_after_its_uninstall() {
    let machine = Machine::new();
    let before = machine.tree();
    let whole = installed(&machine);
    run(&machine, PROGRAM, "uninstall");
    let then = |after| {
        run(&machine, PROGRAM, "install --skip-self-test");
        whole.assert_same_things(&machine.tree(), &format!("finished after effect {after}"));
        run(&machine, PROGRAM, "uninstall");
        before.assert_same(
            &machine.tree(),
            &format!("uninstalled after a kill at effect {after}"),
        );
    };
    let effects = each(&machine, PROGRAM, "install --skip-self-test", then, || {
        run(&machine, PROGRAM, "uninstall");
    });
    assert!(effects > 50, "only {effects} effects");
}

#[test]
fn a_killed_install_is_taken_back() {
    let machine = Machine::new();
    let before = machine.tree();
    let whole = installed(&machine);
    run(&machine, PROGRAM, "uninstall");
    let mut kept = 0;
    let then = |after| {
        run(&machine, PROGRAM, "install --undo");
        let tree = machine.tree();
        // The last effect of all is the journal's word that it is done.
        if tree.same_things(&whole) {
            kept += 1;
        } else {
            before.assert_same(&tree, &format!("taken back after effect {after}"));
        }
    };
    each(&machine, PROGRAM, "install --skip-self-test", then, || {
        run(&machine, PROGRAM, "uninstall");
    });
    assert_eq!(kept, 1);
}

#[test]
fn a_killed_uninstall_is_finished() {
    let machine = Machine::new();
    let before = machine.tree();
    let then = |after| {
        run(&machine, PROGRAM, "uninstall");
        before.assert_same(&machine.tree(), &format!("finished after effect {after}"));
    };
    let effects = each(&machine, PROGRAM, "uninstall", then, || {
        run(&machine, PROGRAM, "install --skip-self-test");
    });
    assert!(effects > 30, "only {effects} effects");
}

#[test]
fn a_killed_update_is_finished() {
    let machine = Machine::new();
    let before = machine.tree();
    run(&machine, NEXT, "install --skip-self-test");
    let whole = machine.tree();
    run(&machine, NEXT, "uninstall");
    let then = |after| {
        run(&machine, NEXT, "update --skip-self-test");
        whole.assert_same_things(&machine.tree(), &format!("finished after effect {after}"));
    };
    let effects = each(&machine, NEXT, "update --skip-self-test", then, || {
        run(&machine, PROGRAM, "uninstall");
        run(&machine, PROGRAM, "install --skip-self-test");
    });
    assert!(effects > 10, "only {effects} effects");
    run(&machine, NEXT, "uninstall");
    before.assert_same(&machine.tree(), "uninstalled after updates");
}

#[test]
fn a_killed_update_is_taken_back_until_it_removes_the_old_version() {
    let machine = Machine::new();
    run(&machine, NEXT, "install --skip-self-test");
    let new = machine.tree();
    run(&machine, NEXT, "uninstall");
    let old = installed(&machine);
    let mut taken_back = 0;
    let then = |after| {
        run(&machine, PROGRAM, "install --undo");
        let tree = machine.tree();
        if tree.same_things(&old) {
            taken_back += 1;
        } else {
            new.assert_same_things(&tree, &format!("neither old nor new after effect {after}"));
        }
    };
    let effects = each(&machine, NEXT, "update --skip-self-test", then, || {
        run(&machine, PROGRAM, "uninstall");
        run(&machine, PROGRAM, "install --skip-self-test");
    });
    assert!(
        taken_back > 5 && taken_back < effects,
        "{taken_back} of {effects}"
    );
}

#[test]
fn an_install_after_a_killed_uninstall_finishes_that_first() {
    let machine = Machine::new();
    let before = machine.tree();
    let whole = installed(&machine);
    assert!(killed(&machine, PROGRAM, "uninstall", 8));
    machine
        .program("install --yes --skip-self-test")
        .expect(0)
        .says("then run this command again");
    before.assert_same(&machine.tree(), "after the uninstall was finished");
    whole.assert_same_things(&installed(&machine), "installed anew");
}

#[test]
fn a_killed_run_is_named_and_no_server_starts_beside_it() {
    let machine = Machine::new();
    run(&machine, PROGRAM, "install --skip-self-test");
    assert!(killed(&machine, NEXT, "update --skip-self-test", 4));
    machine
        .program("doctor")
        .expect(0)
        .says("an update was left unfinished");
    machine
        .program("install --undo --dry-run")
        .expect(0)
        .says("take back");
}
