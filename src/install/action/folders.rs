//! Folders and links.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Error, Standing, Step};
use crate::install::database;
use crate::install::files::{self, Owner, ROOT, at};
use crate::install::tripwire::passed;
use crate::place;

/// What everybody may look into and root alone change.
const OPEN: u32 = 0o755;

/// A folder of root's for everybody to see. One that was there before stays; one that somebody else uses too stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::install) struct Folder {
    pub(in crate::install) path: PathBuf,
}

/// The account's home: ours whole, and gone with everything in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::install) struct Home {
    pub(in crate::install) path: PathBuf,
    pub(in crate::install) user: String,
}

/// The folder of the log: the account writes it, the owner's group reads it, and nobody else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::install) struct Log {
    pub(in crate::install) path: PathBuf,
    pub(in crate::install) user: String,
    /// The person whose group may read it.
    pub(in crate::install) reader: String,
}

/// The folder of the records, given to the account's group to read. It is made before there is a journal, and goes last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::install) struct Records {
    pub(in crate::install) path: PathBuf,
    pub(in crate::install) group: String,
}

/// The link to the version in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::install) struct Link {
    pub(in crate::install) path: PathBuf,
    pub(in crate::install) target: PathBuf,
}

fn kind(path: &Path) -> Result<Option<std::fs::Metadata>, Error> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some).map_err(at("look at", path)),
    }
}

/// What is there, in a few words.
fn seen(path: &Path, found: &std::fs::Metadata) -> String {
    let what = match found.file_type() {
        kind if kind.is_symlink() => "a link",
        kind if kind.is_dir() => "a folder",
        _ => "a file",
    };
    format!(
        "{} is {what} of user {}, group {}, mode {:o}",
        path.display(),
        found.uid(),
        found.gid(),
        found.mode() & 0o7777
    )
}

impl Step for Folder {
    fn thing(&self) -> String {
        format!("folder {}", self.path.display())
    }

    fn describe(&self) -> String {
        format!("make the folder {}, root's", self.path.display())
    }

    fn inspect(&self) -> Result<Standing, Error> {
        let Some(found) = kind(&self.path)? else {
            return Ok(Standing::Absent);
        };
        if !found.is_dir() {
            return Ok(Standing::different(seen(&self.path, &found)));
        }
        Ok(match files::is_roots_alone(&self.path) {
            Ok(()) if found.mode() & 0o005 == 0o005 => Standing::Same,
            Ok(()) => Standing::different(format!(
                "{}: others may not pass through",
                seen(&self.path, &found)
            )),
            Err(why) => {
                Standing::different(format!("{why}, so that others could replace the program"))
            }
        })
    }

    fn apply(&self) -> Result<(), Error> {
        files::folder(&self.path, OPEN, ROOT)
    }

    fn remove(&self) -> Result<(), Error> {
        files::remove_folder(&self.path)
    }
}

impl Home {
    fn owner(&self) -> Result<Owner, Error> {
        let line = database::user(&self.user)?;
        let line =
            line.ok_or_else(|| Error::NotProven(format!("there is no account {}", self.user)))?;
        Ok(Owner {
            uid: line.uid,
            gid: line.gid,
        })
    }
}

impl Step for Home {
    fn thing(&self) -> String {
        format!("home {}", self.path.display())
    }

    fn describe(&self) -> String {
        format!("make its home {}, for it alone (0700)", self.path.display())
    }

    fn inspect(&self) -> Result<Standing, Error> {
        let Some(found) = kind(&self.path)? else {
            return Ok(Standing::Absent);
        };
        let owner = database::user(&self.user)?.map(|line| (line.uid, line.gid));
        let is_ours = owner == Some((found.uid(), found.gid())) && found.mode() & 0o7777 == 0o700;
        Ok(if found.is_dir() && is_ours {
            Standing::Same
        } else {
            Standing::different(seen(&self.path, &found))
        })
    }

    fn apply(&self) -> Result<(), Error> {
        files::folder(&self.path, 0o700, self.owner()?)
    }

    fn remove(&self) -> Result<(), Error> {
        files::remove_tree(&self.path)
    }
}

/// What is written in the folder belongs to the folder's group.
const LOG: u32 = 0o2750;

impl Log {
    fn owner(&self) -> Result<Owner, Error> {
        let unknown = |name: &str| Error::NotProven(format!("there is no account {name}"));
        let writer = database::user(&self.user)?.ok_or_else(|| unknown(&self.user))?;
        let reader = nix::unistd::User::from_name(&self.reader).ok().flatten();
        let reader = reader.ok_or_else(|| unknown(&self.reader))?;
        Ok(Owner {
            uid: writer.uid,
            gid: reader.gid.as_raw(),
        })
    }
}

impl Step for Log {
    fn thing(&self) -> String {
        format!("log folder {}", self.path.display())
    }

    fn describe(&self) -> String {
        format!(
            "make the folder of its log {}, which the group of {} may read",
            self.path.display(),
            self.reader
        )
    }

    fn inspect(&self) -> Result<Standing, Error> {
        let Some(found) = kind(&self.path)? else {
            return Ok(Standing::Absent);
        };
        let is_same = self.owner().is_ok_and(|owner| {
            found.is_dir()
                && (found.uid(), found.gid()) == (owner.uid, owner.gid)
                && found.mode() & 0o7777 == LOG
        });
        Ok(if is_same {
            Standing::Same
        } else {
            Standing::different(seen(&self.path, &found))
        })
    }

    fn apply(&self) -> Result<(), Error> {
        files::folder(&self.path, LOG, self.owner()?)
    }

    fn remove(&self) -> Result<(), Error> {
        files::remove_tree(&self.path)
    }
}

impl Step for Records {
    fn thing(&self) -> String {
        format!("records {}", self.path.display())
    }

    fn describe(&self) -> String {
        format!(
            "let the account read journal and locks in {}",
            self.path.display()
        )
    }

    fn inspect(&self) -> Result<Standing, Error> {
        let gid = database::group(&self.group)?;
        let fits = |path: &Path, mode: u32| -> Result<bool, Error> {
            let Some(found) = kind(path)? else {
                return Ok(false);
            };
            Ok(found.uid() == 0 && Some(found.gid()) == gid && found.mode() & 0o7777 == mode)
        };
        let mut is_same = fits(&self.path, 0o750)?;
        for name in place::RECORD_FILES {
            is_same &= fits(&self.path.join(name), 0o640)?;
        }
        // Never another's: it is made under a lock before the journal begins.
        Ok(if is_same {
            Standing::Same
        } else {
            Standing::Absent
        })
    }

    fn apply(&self) -> Result<(), Error> {
        let gid = database::group(&self.group)?;
        let gid =
            gid.ok_or_else(|| Error::NotProven(format!("there is no group {}", self.group)))?;
        let owner = Owner { uid: 0, gid };
        for name in place::RECORD_FILES {
            let path = self.path.join(name);
            let file = std::fs::File::open(&path).map_err(at("open", &path))?;
            files::settle(&file, &path, 0o640, owner)?;
        }
        files::folder(&self.path, 0o750, owner)
    }

    fn remove(&self) -> Result<(), Error> {
        Ok(())
    }
}

impl Step for Link {
    fn thing(&self) -> String {
        format!("link {}", self.path.display())
    }

    fn describe(&self) -> String {
        format!(
            "let {} lead to {}",
            self.path.display(),
            self.target.display()
        )
    }

    fn inspect(&self) -> Result<Standing, Error> {
        let Some(found) = kind(&self.path)? else {
            return Ok(Standing::Absent);
        };
        if !found.is_symlink() {
            return Ok(Standing::different(seen(&self.path, &found)));
        }
        let target = std::fs::read_link(&self.path).map_err(at("read", &self.path))?;
        Ok(if target == self.target {
            Standing::Same
        } else {
            Standing::Different {
                why: format!("{} leads to {}", self.path.display(), target.display()),
                content: Some(target.to_string_lossy().into_owned()),
            }
        })
    }

    fn apply(&self) -> Result<(), Error> {
        self.lead_to(&self.target)
    }

    fn remove(&self) -> Result<(), Error> {
        files::remove_file(&self.aside())?;
        files::remove_file(&self.path)
    }

    fn put_back(&self, content: &str) -> Result<(), Error> {
        self.lead_to(Path::new(content))
    }
}

impl Link {
    fn aside(&self) -> PathBuf {
        self.path.with_extension("new")
    }

    /// In one step: there is no moment without the link.
    fn lead_to(&self, target: &Path) -> Result<(), Error> {
        let aside = self.aside();
        files::remove_file(&aside)?;
        std::os::unix::fs::symlink(target, &aside).map_err(at("make", &aside))?;
        passed();
        files::rename(&aside, &self.path)
    }
}
