//! The plan: what will be there, as a list of actions. The owner reads it before anything is done.

use std::path::Path;

use super::action::{
    Action, Chromium, Error, Folder, Group, Home, Link, Member, Profile, Program, Records, Rule,
    Standing, User,
};
use super::journal::Ledger;
use super::run::has;
use super::{Failure, Wishes, action, files, system};
use crate::place::{ACCOUNT, LAYOUT};

/// How much of a digest names a folder: enough that two never meet.
const SHORT: usize = 16;

/// All that an install makes, in the order it is made in.
pub(super) fn wanted(wishes: &Wishes, ledger: &Ledger) -> Result<Vec<Action>, Failure> {
    let mut plan = vec![
        Action::Group(Group {
            name: ACCOUNT.to_owned(),
        }),
        Action::User(User {
            name: ACCOUNT.to_owned(),
            home: LAYOUT.home.into(),
            shell: system::no_login(),
        }),
    ];
    plan.extend(wishes.gpu.iter().map(|(group, node)| {
        Action::Member(Member {
            user: ACCOUNT.to_owned(),
            group: group.clone(),
            node: node.clone(),
        })
    }));
    plan.push(Action::Records(Records {
        path: LAYOUT.records.into(),
        group: ACCOUNT.to_owned(),
    }));
    plan.push(Action::Home(Home {
        path: LAYOUT.home.into(),
        user: ACCOUNT.to_owned(),
    }));
    let versions = LAYOUT.versions();
    // The folders from the first that may be missing, down to the versions.
    let folders = versions
        .ancestors()
        .filter(|path| path.components().count() > 1);
    let mut folders: Vec<&Path> = folders.collect();
    folders.reverse();
    plan.extend(folders.into_iter().map(|path| {
        Action::Folder(Folder {
            path: path.to_owned(),
        })
    }));
    let chromium = chromium(wishes, ledger);
    if let Some(chromium) = &chromium {
        plan.push(Action::Folder(Folder {
            path: LAYOUT.chromiums(),
        }));
        plan.push(Action::Chromium(chromium.clone()));
    }
    let sha256 = files::sha256(&wishes.source)?;
    let version = format!("{}-{}", wishes.version, &sha256[..SHORT]);
    plan.push(Action::Program(Program {
        folder: versions.join(&version),
        source: wishes.source.clone(),
        sha256,
        chromium: chromium.map(|chromium| chromium.folder),
    }));
    plan.push(Action::Link(Link {
        path: LAYOUT.current(),
        target: Path::new("versions").join(version),
    }));
    if has("sudo") && has("visudo") {
        plan.push(Action::Rule(Rule {
            path: LAYOUT.sudoers_file(),
            owner: wishes.owner.clone(),
            program: LAYOUT.installed(),
        }));
    }
    if action::is_restricted() {
        plan.push(Action::Profile(Profile {
            path: LAYOUT.apparmor_file(),
            programs: confined(wishes),
        }));
    }
    Ok(plan)
}

/// The Chromium of an archive: the one that is named now, or the one that is in use.
fn chromium(wishes: &Wishes, ledger: &Ledger) -> Option<Chromium> {
    if let Some((archive, sha256)) = &wishes.archive {
        return Some(Chromium {
            folder: LAYOUT.chromiums().join(&sha256[..SHORT.min(sha256.len())]),
            archive: archive.clone(),
            sha256: sha256.clone(),
        });
    }
    ledger.standing().rev().find_map(|entry| match &entry.did {
        Action::Chromium(chromium) => Some(chromium.clone()),
        _ => None,
    })
}

/// The programs that make user namespaces: ours, which makes the browser's network, and Chromium, for its sandbox.
fn confined(wishes: &Wishes) -> Vec<(String, String)> {
    let mut programs = vec![
        (
            ACCOUNT.to_owned(),
            format!("{}/*/gpu-browser", LAYOUT.versions().display()),
        ),
        (
            format!("{ACCOUNT}-unpacked"),
            format!("{}/*/chrome", LAYOUT.chromiums().display()),
        ),
    ];
    if let Ok(found) = &wishes.chromium {
        let path = found.display().to_string();
        // Two profiles for one program would cancel each other out; some systems bring one for theirs.
        if !action::is_profiled(&path) {
            programs.push((format!("{ACCOUNT}-found"), path));
        }
    }
    programs
}

/// One line of a plan.
pub(super) struct Line {
    pub(super) action: Action,
    pub(super) standing: Standing,
}

/// How each action of a plan stands now.
pub(super) fn look(plan: &[Action]) -> Result<Vec<Line>, Error> {
    plan.iter()
        .map(|action| {
            Ok(Line {
                action: action.clone(),
                standing: action.step().inspect()?,
            })
        })
        .collect()
}

/// What is in the way and is not ours. What a killed run had begun is ours too, however it looks.
pub(super) fn conflicts(lines: &[Line], ledger: &Ledger, is_resumed: bool) -> Vec<String> {
    let is_begun = |thing: &str| {
        let mut begun = ledger.of_this_run();
        is_resumed && begun.any(|entry| entry.did.step().thing() == thing)
    };
    lines
        .iter()
        .filter_map(|line| {
            let thing = line.action.step().thing();
            match &line.standing {
                Standing::Different { why, .. } if !ledger.is_ours(&thing) && !is_begun(&thing) => {
                    Some(why.clone())
                }
                _ => None,
            }
        })
        .collect()
}

/// Whether a Chromium is one that the account may be given: nobody but root may replace it.
pub(super) fn usable(chromium: &Path) -> Result<(), String> {
    files::is_roots_alone(chromium).map_err(|why| {
        format!(
            "the Chromium {} cannot be used by an install: {why}. Use the system's own, or --chromium-archive FILE --sha256 HEX",
            chromium.display()
        )
    })
}

/// Versions and Chromiums that an update leaves behind.
pub(super) fn superseded(ledger: &Ledger, plan: &[Action]) -> Vec<(u32, Action)> {
    let kept: Vec<String> = plan.iter().map(|action| action.step().thing()).collect();
    ledger
        .standing()
        .filter(|entry| matches!(entry.did, Action::Program(_) | Action::Chromium(_)))
        .filter(|entry| !kept.contains(&entry.did.step().thing()))
        .map(|entry| (entry.id, entry.did.clone()))
        .collect()
}
