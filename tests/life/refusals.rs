//! A start that cannot be made says why, and what to do, and ends with the code that programs read.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::processes::naming;
use crate::stage::{Ended, Stage};

/// Three rungs are given up one after the other.
const TRIES: Duration = Duration::from_secs(90);

fn refused(arguments: &[&str], code: i32) -> Ended {
    let mut stage = Stage::run(arguments);
    let ended = stage.ended(TRIES);
    assert_eq!(ended.status.code(), Some(code), "{}", ended.log);
    assert!(!ended.events.iter().any(|event| event["event"] == "ready"));
    let left = naming(stage.folder());
    assert!(left.is_empty(), "{left:#?}");
    assert_eq!(stage.run_folders(), Vec::<std::path::PathBuf>::new());
    ended
}

#[test]
fn hardware_on_a_machine_without_a_gpu_says_what_each_rung_lacks() {
    let nodes = std::fs::read_dir("/dev/dri").map_or(0, Iterator::count);
    assert_eq!(nodes, 0, "this test is for machines without a GPU");
    let ended = refused(
        &[
            "start", "--dev", "--json", "--relay", "local", "--gpu", "hardware",
        ],
        4,
    );
    for rung in ["hardware-vulkan", "hardware-vulkan-x", "hardware-gl"] {
        let line = ended
            .log
            .lines()
            .find_map(|line| line.trim().strip_prefix(&format!("{rung}: ")));
        let reason = line.unwrap_or_else(|| panic!("{rung} is not named in {}", ended.log));
        assert!(reason.len() > 10, "{rung}: {reason}");
    }
}

#[test]
fn a_wrapper_script_is_refused_with_the_command_that_installs_the_real_program() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("chromium");
    std::fs::write(
        &script,
        "#!/bin/sh\nexec /usr/lib/chromium/chromium \"$@\"\n",
    )
    .unwrap();
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    let missing = folder.path().join("missing");
    for (path, reason) in [
        (&script, "is a wrapper script"),
        (&missing, "is no program that may be run"),
    ] {
        let path = path.to_str().unwrap();
        let ended = refused(
            &[
                "start",
                "--dev",
                "--json",
                "--relay",
                "local",
                "--chromium",
                path,
            ],
            4,
        );
        assert!(
            ended.log.contains(&format!("{path} {reason}")),
            "{}",
            ended.log
        );
        assert!(ended.log.contains("Install one with: "), "{}", ended.log);
    }
}

#[test]
fn a_program_that_is_no_browser_is_refused() {
    let ended = refused(
        &[
            "start",
            "--dev",
            "--json",
            "--relay",
            "local",
            "--chromium",
            "/bin/sh",
        ],
        4,
    );
    assert!(!ended.log.contains("panicked"), "{}", ended.log);
    println!("{}", ended.log);
}

#[test]
fn a_start_without_an_account_names_the_way_out() {
    let ended = refused(&["start", "--json", "--relay", "local"], 1);
    assert!(ended.log.contains("--dev"), "{}", ended.log);
}
