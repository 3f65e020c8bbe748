use std::path::PathBuf;
use std::time::Duration;

use super::*;
use crate::browser::find::{NotFound, Unusable};
use crate::install::Run;

fn healthy() -> Facts {
    Facts {
        state: State::Installed {
            version: "1.2.3-0123456789abcdef".to_owned(),
            proven: true,
        },
        version: "1.2.3",
        chromium: Ok(PathBuf::from("/usr/lib/chromium/chromium")),
        has_display: true,
        namespace: Ok(()),
        switches: Switches::default(),
        has_gpu: true,
        missing_groups: Vec::new(),
        has_vulkan: true,
        drew_in_hardware: Some(true),
        has_sudo: true,
        relay: ("https://relay.example".to_owned(), Ok(())),
        clock_off: Some(Duration::from_secs(1)),
    }
}

#[test]
fn a_healthy_machine_needs_nothing() {
    for finding in all(&healthy()) {
        assert!(finding.line().starts_with("ok"), "{}", finding.line());
        assert!(finding.mend().next().is_none());
    }
}

type Illness = (&'static str, fn(&mut Facts), &'static str, &'static str);

/// What is broken, how, what is said, and what mends it.
const ILLNESSES: &[Illness] = &[
    (
        "no install",
        |f| f.state = State::Absent,
        "there is none",
        "gpu-browser install",
    ),
    (
        "killed update",
        |f| f.state = State::Unfinished { what: Run::Update },
        "unfinished",
        "gpu-browser update",
    ),
    (
        "old install",
        |f| f.version = "1.3.0",
        "1.2.3-0123",
        "gpu-browser update",
    ),
    (
        "unproven install",
        |f| {
            f.state = State::Installed {
                version: "1.2.3-0".to_owned(),
                proven: false,
            }
        },
        "not proven",
        "gpu-browser self-test",
    ),
    (
        "no Chromium",
        |f| f.chromium = Err(NotFound { rejected: vec![] }),
        "no usable Chromium",
        "",
    ),
    (
        "a snap",
        |f| f.chromium = rejected(Unusable::Snap),
        "is a snap",
        "",
    ),
    (
        "a wrapper",
        |f| f.chromium = rejected(Unusable::Wrapper),
        "wrapper script",
        "",
    ),
    (
        "a headless shell",
        |f| f.chromium = rejected(Unusable::HeadlessShell),
        "headless shell",
        "",
    ),
    ("no Xvfb", |f| f.has_display = false, "missing", ""),
    (
        "no namespaces at all",
        |f| {
            off(
                f,
                Switches {
                    most: Some(0),
                    ..Switches::default()
                },
            );
        },
        "user.max_user_namespaces is 0",
        "user.max_user_namespaces=",
    ),
    (
        "none for ordinary users",
        |f| {
            off(
                f,
                Switches {
                    most: Some(9),
                    unprivileged: Some(0),
                    ..Switches::default()
                },
            );
        },
        "unprivileged_userns_clone is 0",
        "unprivileged_userns_clone=1",
    ),
    (
        "AppArmor without our profile",
        |f| {
            off(
                f,
                Switches {
                    apparmor: Some(1),
                    ..Switches::default()
                },
            );
        },
        "there is none of ours",
        "gpu-browser install",
    ),
    (
        "AppArmor with it",
        |f| {
            off(
                f,
                Switches {
                    apparmor: Some(1),
                    has_profile: true,
                    ..Switches::default()
                },
            );
        },
        "not loaded",
        "gpu-browser update",
    ),
    (
        "SELinux",
        |f| {
            off(
                f,
                Switches {
                    selinux: true,
                    ..Switches::default()
                },
            );
        },
        "SELinux",
        "ausearch",
    ),
    (
        "a container",
        |f| {
            off(
                f,
                Switches {
                    filtered: true,
                    ..Switches::default()
                },
            );
        },
        "container",
        "",
    ),
    ("no GPU", |f| f.has_gpu = false, "no GPU", ""),
    (
        "a closed node",
        |f| f.missing_groups = vec![("render".to_owned(), "/dev/dri/renderD128".into())],
        "/dev/dri/renderD128 is for the group render",
        "gpu-browser update",
    ),
    (
        "a closed node without an install",
        |f| {
            f.state = State::Absent;
            f.missing_groups = vec![("render".to_owned(), "/dev/dri/renderD128".into())];
        },
        "render",
        "usermod -aG render",
    ),
    ("no driver", |f| f.has_vulkan = false, "Vulkan", ""),
    (
        "software on a GPU",
        |f| f.drew_in_hardware = Some(false),
        "in software though",
        "--gpu hardware",
    ),
    ("no sudo", |f| f.has_sudo = false, "root alone", ""),
    (
        "no relay",
        |f| f.relay.1 = Err("refused".to_owned()),
        "cannot be reached: refused",
        "",
    ),
    (
        "a wrong clock",
        |f| f.clock_off = Some(Duration::from_secs(7_200)),
        "120 minutes off",
        "timedatectl",
    ),
];

fn rejected(why: Unusable) -> Result<PathBuf, NotFound> {
    Err(NotFound {
        rejected: vec![("/usr/bin/chromium".into(), why)],
    })
}

fn off(facts: &mut Facts, switches: Switches) {
    facts.namespace = Err("EPERM".to_owned());
    facts.switches = switches;
}

#[test]
fn every_illness_is_named_with_what_mends_it() {
    for (name, illness, said, mend) in ILLNESSES {
        let mut facts = healthy();
        illness(&mut facts);
        let findings = all(&facts);
        let ill: Vec<&Finding> = findings
            .iter()
            .filter(|finding| !finding.line().starts_with("ok"))
            .collect();
        let named = ill.iter().find(|finding| finding.line().contains(said));
        let named = named.unwrap_or_else(|| {
            panic!(
                "{name}: {:?}",
                ill.iter().map(|f| f.line()).collect::<Vec<_>>()
            )
        });
        if !mend.is_empty() {
            assert!(named.mend().any(|one| one.line.contains(mend)), "{name}");
        }
    }
}

#[test]
fn nothing_that_gives_a_right_is_run_unasked() {
    for (name, illness, ..) in ILLNESSES {
        let mut facts = healthy();
        illness(&mut facts);
        for finding in all(&facts) {
            for mend in finding.mend().filter(|mend| mend.is_safe) {
                for word in ["usermod", "sysctl", "gpu-browser install", "--undo"] {
                    assert!(!mend.line.contains(word), "{name}: {}", mend.line);
                }
            }
        }
    }
}
