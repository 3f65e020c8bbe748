//! A version of the program in a folder of its own: unpacked aside, then renamed in whole.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Error, Standing, Step};
use crate::install::files::{self, ROOT, at};
use crate::install::tripwire::passed;

/// The program inside a version's folder.
const NAME: &str = "gpu-browser";
/// The link to the unpacked Chromium that this version uses.
const CHROMIUM: &str = "chromium";

/// One version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::install) struct Program {
    /// Its folder.
    pub(in crate::install) folder: PathBuf,
    /// The file that it is copied from.
    pub(in crate::install) source: PathBuf,
    /// What that file must be, still, whenever it is copied.
    pub(in crate::install) sha256: String,
    /// The folder of the unpacked Chromium, where one is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::install) chromium: Option<PathBuf>,
}

impl Program {
    fn aside(&self) -> PathBuf {
        let mut name = self.folder.clone().into_os_string();
        name.push(".new");
        name.into()
    }

    fn copy(&self, aside: &Path) -> Result<(), Error> {
        let to = aside.join(NAME);
        std::fs::copy(&self.source, &to).map_err(at("copy", &self.source))?;
        passed();
        // The copy is judged, not the source: whoever may write that could change it between the two.
        let sha256 = files::sha256(&to)?;
        if sha256 != self.sha256 {
            return Err(Error::NotProven(format!(
                "{} is not the program any more that this install began with; take it back with `install --undo`, then install anew",
                self.source.display()
            )));
        }
        let file = std::fs::File::open(&to).map_err(at("open", &to))?;
        files::settle(&file, &to, 0o755, ROOT)
    }
}

impl Step for Program {
    fn thing(&self) -> String {
        format!("version {}", self.folder.display())
    }

    fn describe(&self) -> String {
        format!("copy the program to {}", self.folder.display())
    }

    fn inspect(&self) -> Result<Standing, Error> {
        let program = self.folder.join(NAME);
        if self.folder.symlink_metadata().is_err() {
            return Ok(Standing::Absent);
        }
        if let Err(why) = files::is_roots_alone(&program) {
            return Ok(Standing::different(why));
        }
        let is_same = program.is_file()
            && files::sha256(&program)? == self.sha256
            && std::fs::read_link(self.folder.join(CHROMIUM)).ok() == self.chromium;
        Ok(if is_same {
            Standing::Same
        } else {
            Standing::different(format!("{} holds another program", self.folder.display()))
        })
    }

    fn apply(&self) -> Result<(), Error> {
        let aside = self.aside();
        files::remove_tree(&aside)?;
        files::folder(&aside, 0o755, ROOT)?;
        self.copy(&aside)?;
        if let Some(chromium) = &self.chromium {
            let link = aside.join(CHROMIUM);
            std::os::unix::fs::symlink(chromium, &link).map_err(at("make", &link))?;
            passed();
        }
        // Only a damaged version of ours can be in the way here.
        files::remove_tree(&self.folder)?;
        files::rename(&aside, &self.folder)
    }

    fn remove(&self) -> Result<(), Error> {
        files::remove_tree(&self.aside())?;
        files::remove_tree(&self.folder)
    }
}
