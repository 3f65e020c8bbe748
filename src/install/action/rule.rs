//! The owner's way in: one rule of sudo's, which lets one person run one command line as the account.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Error, Standing, Step};
use crate::install::files::{self, ROOT, at};
use crate::install::run::{expect, run};
use crate::place;

/// What sudo wants of a file of rules.
const MODE: u32 = 0o440;

/// The file, from the sources' own template.
const TEMPLATE: &str = include_str!("../../../packaging/linux/sudoers.in");

/// The file of the rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::install) struct Rule {
    pub(in crate::install) path: PathBuf,
    /// The person.
    pub(in crate::install) owner: String,
    /// The program that may be run.
    pub(in crate::install) program: PathBuf,
}

impl Rule {
    /// The whole file. Each value is a constant but the owner's name, which [`is_plain`] has let through.
    pub(in crate::install) fn text(&self) -> String {
        TEMPLATE
            .replace("@OWNER@", &self.owner)
            .replace("@ACCOUNT@", place::ACCOUNT)
            .replace("@PROGRAM@", &self.program.to_string_lossy())
    }

    /// Outside the folder of the rules, where sudo would read it half-written.
    fn aside(&self) -> PathBuf {
        let folder = self.path.parent().and_then(Path::parent);
        folder
            .unwrap_or(Path::new("/etc"))
            .join(format!(".{}.sudoers", place::ACCOUNT))
    }

    fn put(&self, text: &str) -> Result<(), Error> {
        let aside = self.aside();
        files::write_aside(&aside, text.as_bytes(), MODE, ROOT)?;
        let checked = check(&aside);
        if checked.is_err() {
            files::remove_file(&aside)?;
        }
        checked?;
        files::rename(&aside, &self.path)
    }

    /// Asks sudo itself, as it will be asked.
    fn prove(&self) -> Result<(), Error> {
        expect("visudo", &["-c", "-q"])?;
        let program = self.program.to_string_lossy();
        let line = [
            "-n",
            "-l",
            "-U",
            &self.owner,
            "-u",
            place::ACCOUNT,
            &program,
            "server",
        ];
        let ran = run("sudo", &line)?;
        if ran.is_success() {
            return Ok(());
        }
        Err(Error::NotProven(format!(
            "sudo does not read {}: {}. Its folder must be included: `@includedir {}` in /etc/sudoers",
            self.path.display(),
            ran.words(),
            place::LAYOUT.sudoers,
        )))
    }
}

fn check(file: &Path) -> Result<(), Error> {
    expect(
        "visudo",
        &["-c", "-q", "-P", "-O", "-f", &file.to_string_lossy()],
    )
    .map(drop)
}

/// Whether a name can stand in a rule as it is: a newline in it would be a second rule.
pub(in crate::install) fn is_plain(name: &str) -> bool {
    let mut bytes = name.bytes();
    let begins = bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_');
    begins
        && name.len() <= 64
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        && name != "ALL"
}

impl Step for Rule {
    fn thing(&self) -> String {
        format!("sudo rule {}", self.path.display())
    }

    fn describe(&self) -> String {
        format!(
            "let {} run `{} server` as {} without a password, and nothing else ({})",
            self.owner,
            self.program.display(),
            place::ACCOUNT,
            self.path.display()
        )
    }

    fn inspect(&self) -> Result<Standing, Error> {
        let Ok(found) = self.path.symlink_metadata() else {
            return Ok(Standing::Absent);
        };
        if !found.is_file() {
            return Ok(Standing::different(format!(
                "{} is no file",
                self.path.display()
            )));
        }
        let text = std::fs::read_to_string(&self.path).map_err(at("read", &self.path))?;
        let is_same = text == self.text() && found.uid() == 0 && found.mode() & 0o7777 == MODE;
        Ok(if is_same {
            Standing::Same
        } else {
            Standing::Different {
                why: format!("{} holds another rule", self.path.display()),
                content: Some(text),
            }
        })
    }

    fn apply(&self) -> Result<(), Error> {
        self.put(&self.text())?;
        let proven = self.prove();
        if proven.is_err() {
            files::remove_file(&self.path)?;
        }
        proven
    }

    fn remove(&self) -> Result<(), Error> {
        files::remove_file(&self.aside())?;
        files::remove_file(&self.path)
    }

    fn put_back(&self, content: &str) -> Result<(), Error> {
        self.put(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(owner: &str) -> Rule {
        Rule {
            path: place::LINUX.sudoers_file(),
            owner: owner.to_owned(),
            program: place::LINUX.installed(),
        }
    }

    #[test]
    fn a_name_that_could_say_more_than_a_name_is_no_owner() {
        for (name, plain) in [
            ("ann", true),
            ("ann.lee", true),
            ("_svc-1", true),
            ("", false),
            ("ALL", false),
            ("%admin", false),
            ("#0", false),
            ("+netgroup", false),
            ("!ann", false),
            ("ann ALL", false),
            ("ann\nbob ALL=(ALL) ALL", false),
            ("ann,bob", false),
            ("1ann", false),
            ("-n", false),
            ("änn", false),
        ] {
            assert_eq!(is_plain(name), plain, "{name:?}");
        }
    }

    #[test]
    fn the_rule_names_one_person_one_account_and_one_command_line() {
        let text = rule("ann").text();
        let rules: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with(['#', 'D']))
            .collect();
        assert_eq!(
            rules,
            [
                "ann ALL=(agent-socket-gpu-browser:agent-socket-gpu-browser) NOPASSWD:NOSETENV: /opt/agent-socket/gpu-browser/current/gpu-browser server"
            ]
        );
        assert!(!text.contains('*'));
    }

    #[test]
    fn no_file_of_ours_in_the_folder_of_the_rules_has_a_name_that_sudo_passes_over() {
        let rule = rule("ann");
        assert!(
            !rule
                .path
                .file_name()
                .unwrap()
                .to_string_lossy()
                .contains('.')
        );
        assert_ne!(rule.aside().parent(), rule.path.parent());
    }
}
