//! The plan: what will be there, as a list of actions. The owner reads it before anything is done.

use std::path::Path;

use super::action::{
    Action, Chromium, Directory, Error, Folder, Group, Home, Link, Log, Member, Profile, Program,
    Records, Rule, Standing, User,
};
use super::journal::Ledger;
use super::run::has;
use super::{Failure, Wishes, action, files, system};
use crate::place::{ACCOUNT, Form, LAYOUT, log_folder};

/// How much of a digest names a folder: enough that two never meet.
const SHORT: usize = 16;

/// All that an install makes, in the order it is made in.
pub(super) fn wanted(wishes: &Wishes, ledger: &Ledger) -> Result<Vec<Action>, Failure> {
    let mut plan = if cfg!(target_os = "macos") {
        macos_accounts(LAYOUT.home, number(ledger)?)
    } else {
        linux_accounts(wishes)
    };
    plan.push(Action::Records(Records {
        path: LAYOUT.records.into(),
        group: ACCOUNT.to_owned(),
    }));
    plan.push(Action::Home(Home {
        path: LAYOUT.home.into(),
        user: ACCOUNT.to_owned(),
    }));
    if let Some(path) = log_folder(Form::Installed) {
        plan.push(Action::Log(Log {
            path,
            user: ACCOUNT.to_owned(),
            reader: wishes.owner.clone(),
        }));
    }
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

fn linux_accounts(wishes: &Wishes) -> Vec<Action> {
    let group = Group {
        name: ACCOUNT.to_owned(),
    };
    let user = User {
        name: ACCOUNT.to_owned(),
        home: LAYOUT.home.into(),
        shell: system::no_login(),
    };
    let mut accounts = vec![Action::Group(group), Action::User(user)];
    accounts.extend(wishes.gpu.iter().map(|(group, node)| {
        Action::Member(Member {
            user: ACCOUNT.to_owned(),
            group: group.clone(),
            node: node.clone(),
        })
    }));
    accounts
}

/// No group grants the GPU there.
fn macos_accounts(home: &str, number: u32) -> Vec<Action> {
    let group = Directory::group(ACCOUNT, number);
    let user = Directory::user(ACCOUNT, home, number);
    vec![Action::Directory(group), Action::Directory(user)]
}

/// The number of the account on macOS: the one that it has, or a free one.
fn number(ledger: &Ledger) -> Result<u32, Error> {
    let known = ledger.standing().find_map(|entry| match &entry.did {
        Action::Directory(record) => record.number(),
        _ => None,
    });
    known.map_or_else(action::free_number, Ok)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::MACOS;

    #[test]
    fn macos_has_an_account_and_a_group_of_one_number_below_500_and_nothing_for_the_gpu() {
        let accounts = macos_accounts(MACOS.home, 399);
        let lines: Vec<String> = accounts
            .iter()
            .map(|action| action.step().describe())
            .collect();
        assert_eq!(
            lines,
            [
                "make the directory record /Groups/agent-socket-gpu-browser: RealName gpu-browser, Password *, PrimaryGroupID 399",
                "make the directory record /Users/agent-socket-gpu-browser: RealName gpu-browser, Password *, UserShell /usr/bin/false, NFSHomeDirectory /private/var/agent-socket-gpu-browser, IsHidden 1, PrimaryGroupID 399, UniqueID 399",
            ]
        );
    }

    #[test]
    fn no_path_of_an_install_has_what_a_rule_of_sudos_cannot_say() {
        for layout in [MACOS, crate::place::LINUX] {
            for path in [layout.installed(), layout.sudoers_file()] {
                let text = path.to_string_lossy().into_owned();
                assert!(!text.contains([' ', ',', ':', '=', '\\', '*']), "{text}");
            }
            assert!(!layout.program.starts_with("/usr/local"));
        }
    }
}
