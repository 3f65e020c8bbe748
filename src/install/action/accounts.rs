//! The account, its group, and the groups that open the GPU's device nodes.
//!
//! `useradd` is not one step: killed half-way it leaves a user whose group does not exist, or one without a line in the
//! shadow files, and a second call then says "already exists" for ever. So the group comes first, the user names it,
//! everything is read back from the files, and what is half-made is taken away and made anew.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Error, Standing, Step};
use crate::install::database::{self, UserLine};
use crate::install::processes;
use crate::install::run::{expect, run};
use crate::install::tripwire::passed;

/// `groupadd`, `useradd` and their like: the thing is not there.
const NO_SUCH: i32 = 6;

/// A system group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::install) struct Group {
    pub(in crate::install) name: String,
}

/// A system account without a password, a login or a place of its own yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::install) struct User {
    pub(in crate::install) name: String,
    pub(in crate::install) home: PathBuf,
    pub(in crate::install) shell: PathBuf,
}

/// The account in a group that owns a GPU's device nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::install) struct Member {
    pub(in crate::install) user: String,
    pub(in crate::install) group: String,
    /// The node that asks for it, for the owner's eyes.
    pub(in crate::install) node: PathBuf,
}

/// Programs that take things away may find them gone, or may have been killed after the half of it.
fn take_away(program: &str, arguments: &[&str]) -> Result<(), Error> {
    let ran = run(program, arguments)?;
    if ran.is_success() || ran.code == Some(NO_SUCH) {
        passed();
        return Ok(());
    }
    Err(Error::Program {
        line: [&[program], arguments].concat().join(" "),
        code: ran.code,
        words: ran.words(),
    })
}

/// Ends what runs under an account, and takes it out of the database.
fn remove_user(name: &str) -> Result<(), Error> {
    let Some(line) = database::user(name)? else {
        return Ok(());
    };
    if line.uid != 0 && line.uid != u32::MAX {
        processes::end_all(line.uid)?;
    }
    take_away("userdel", &[name])
}

impl Step for Group {
    fn thing(&self) -> String {
        format!("group {}", self.name)
    }

    fn describe(&self) -> String {
        format!("make the system group {}", self.name)
    }

    fn inspect(&self) -> Result<Standing, Error> {
        let found = database::group(&self.name)?;
        Ok(
            match (found, database::has_shadow("gshadow", &self.name)?) {
                (None, false) if database::is_known_elsewhere(&self.name) => {
                    Standing::different(format!(
                        "the group {} comes from a directory service; it must be a group of this machine",
                        self.name
                    ))
                }
                (None, false) => Standing::Absent,
                (Some(_), true) => Standing::Same,
                _ => Standing::different(format!("the group {} is half there", self.name)),
            },
        )
    }

    fn apply(&self) -> Result<(), Error> {
        if self.inspect()? != Standing::Absent {
            // Nobody may be in it when it goes; the account is made anew by its own action, which comes next.
            remove_user(&self.name)?;
            self.remove()?;
        }
        expect("groupadd", &["--system", &self.name])?;
        passed();
        proven(self)
    }

    fn remove(&self) -> Result<(), Error> {
        if database::group(&self.name)?.is_some() {
            take_away("groupdel", &[&self.name])?;
        }
        // `groupdel` does not look for a line in gshadow alone.
        database::drop_shadow("gshadow", &self.name)
    }
}

impl User {
    fn is_as_wanted(&self, line: &UserLine) -> Result<bool, Error> {
        let group = database::group(&self.name)?;
        Ok(line.uid != 0
            && group.is_some_and(|gid| gid == line.gid)
            && line.home == self.home
            && line.shell == self.shell
            && database::has_shadow("shadow", &self.name)?)
    }
}

impl Step for User {
    fn thing(&self) -> String {
        format!("user {}", self.name)
    }

    fn describe(&self) -> String {
        format!(
            "make the system account {}: no password, shell {}, home {}",
            self.name,
            self.shell.display(),
            self.home.display()
        )
    }

    fn inspect(&self) -> Result<Standing, Error> {
        let name = &self.name;
        Ok(match database::user(name)? {
            None if database::is_known_elsewhere(name) => Standing::different(format!(
                "the account {name} comes from a directory service; it must be an account of this machine"
            )),
            None if database::has_shadow("shadow", name)? => {
                Standing::different(format!("the account {name} is half there"))
            }
            None => Standing::Absent,
            Some(line) if self.is_as_wanted(&line)? => Standing::Same,
            Some(line) => Standing::different(format!(
                "the account {name} is there: user {}, group {}, home {}, shell {}",
                line.uid,
                line.gid,
                line.home.display(),
                line.shell.display()
            )),
        })
    }

    fn apply(&self) -> Result<(), Error> {
        match self.inspect()? {
            Standing::Same => return Ok(()),
            Standing::Absent => {}
            Standing::Different { .. } => self.remove()?,
        }
        let (home, shell) = (self.home.to_string_lossy(), self.shell.to_string_lossy());
        expect(
            "useradd",
            &[
                "--system",
                "--gid",
                &self.name,
                "--no-user-group",
                "--no-create-home",
                "--home-dir",
                &home,
                "--shell",
                &shell,
                "--comment",
                "gpu-browser",
                &self.name,
            ],
        )?;
        passed();
        proven(self)
    }

    fn remove(&self) -> Result<(), Error> {
        let group = database::group(&self.name)?.is_some();
        remove_user(&self.name)?;
        database::drop_shadow("shadow", &self.name)?;
        // `userdel` takes an empty group of the same name with it; the group is a thing of its own here.
        if group && database::group(&self.name)?.is_none() {
            let group = Group {
                name: self.name.clone(),
            };
            group.apply()?;
        }
        Ok(())
    }
}

impl Step for Member {
    fn thing(&self) -> String {
        format!("{} in group {}", self.user, self.group)
    }

    fn describe(&self) -> String {
        format!(
            "put {} into the group {}, which alone may open {}",
            self.user,
            self.group,
            self.node.display()
        )
    }

    fn inspect(&self) -> Result<Standing, Error> {
        Ok(if database::is_member(&self.group, &self.user)? {
            Standing::Same
        } else {
            Standing::Absent
        })
    }

    fn apply(&self) -> Result<(), Error> {
        expect("usermod", &["-a", "-G", &self.group, &self.user])?;
        passed();
        proven(self)
    }

    fn remove(&self) -> Result<(), Error> {
        if self.inspect()? == Standing::Same {
            expect("gpasswd", &["-d", &self.user, &self.group])?;
            passed();
        }
        Ok(())
    }
}

/// An exit code proves nothing: the thing itself is read back.
pub(super) fn proven(step: &dyn Step) -> Result<(), Error> {
    match step.inspect()? {
        Standing::Same => Ok(()),
        Standing::Absent => Err(Error::NotProven(format!(
            "{} is not there although it was made",
            step.thing()
        ))),
        Standing::Different { why, .. } => Err(Error::NotProven(why)),
    }
}
