//! The file that `config init` writes: every key with what it does, and its default.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use super::ConfigError;

/// Every line but the comments is commented out, so that a new file changes nothing.
pub(super) const TEMPLATE: &str = r#"# What gpu-browser does in every session. The command line wins over this file.
# Take the # away from a line to change it.

# The relay that agents reach: its address, or "local" for one that only this machine reaches. (--relay)
#relay = "local"

# The length of a session in minutes. (--minutes)
#minutes = 240

# Hosts that pages may reach beside the built-in list: a name, or "*.name" for those below it. (--allow)
# The hosts of the command line come on top of these. `allow N always` adds to them.
#hosts = []

# Whether the built-in list of public CDNs and font hosts counts. (--no-default-hosts)
#default_hosts = true

# Whether pages may reach every public host. Never an address of your own network. (--allow-any-public)
#allow_any_public = false

# What may draw: "auto", "hardware" or "software". (--gpu)
#gpu = "auto"

# The Chromium to start, where it is not the one that is found. (--chromium)
#chromium = "/usr/bin/chromium"

# GPU settings for Chromium. Those of the command line come after these. (--chromium-flag)
#chromium_flags = []

# What to call the link. (--label)
#label = "agent"

# The memory that Chromium is held to, as in "4GiB".
#max_memory = "4GiB"
"#;

/// Writes a new file, with its folder where that is missing.
pub(super) fn write(path: &Path, force: bool) -> Result<(), ConfigError> {
    let written = || -> io::Result<()> {
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).mode(0o600).create_new(!force);
        options.create(force).truncate(force);
        options.open(path)?.write_all(TEMPLATE.as_bytes())
    };
    written().map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => ConfigError::Exists(path.to_owned()),
        _ => ConfigError::File {
            path: path.to_owned(),
            source,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::file::KEYS;
    use super::*;
    use crate::owner::config::ConfigFile;

    #[test]
    fn a_new_file_changes_nothing_and_tells_every_key() {
        let parse = |text: &str| ConfigFile::parse(text, Path::new("c.toml")).unwrap();
        assert_eq!(parse(TEMPLATE), ConfigFile::default());
        let settings: Vec<&str> = TEMPLATE
            .lines()
            .filter_map(|line| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')))
            .collect();
        let keys: Vec<&str> = settings
            .iter()
            .filter_map(|line| line.split(" = ").next())
            .collect();
        assert_eq!(keys, KEYS);
        parse(&settings.join("\n"));
    }

    #[test]
    fn a_file_that_is_there_is_replaced_only_by_force() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/config.toml");
        write(&path, false).unwrap();
        std::fs::write(&path, "minutes = 5").unwrap();
        let error = write(&path, false).unwrap_err();
        assert!(matches!(error, ConfigError::Exists(_)) && error.to_string().contains("--force"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "minutes = 5");
        write(&path, true).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), TEMPLATE);
    }
}
