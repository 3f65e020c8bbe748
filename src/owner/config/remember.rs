//! Writes hosts into the owner's config file (`allow N always`), and leaves every other byte of it as it is.

use std::fs;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use toml_edit::Document;

use super::{ConfigError, ConfigFile, path, template, text};
use crate::policy::allowlist::Rule;

/// Adds rules to the file's `hosts`, and returns the file. Those that are there already are left alone; a missing file is made.
/// The file is replaced in one step and keeps its mode; a link to a file stays one.
///
/// # Errors
/// Where the file cannot be read or written, or a line of it is wrong; it is unchanged then.
pub fn remember(named: Option<&Path>, rules: &[Rule]) -> Result<PathBuf, ConfigError> {
    let path = target(path(named)?)?;
    if !path.exists() {
        template::write(&path, false)?;
    }
    let failed = |source| ConfigError::File {
        path: path.clone(),
        source,
    };
    let mut text = text(&path).map_err(failed)?;
    let before = text.clone();
    for rule in rules {
        if !ConfigFile::parse(&text, &path)?.hosts.contains(rule) {
            add(&mut text, rule);
        }
    }
    if text != before {
        // What would not read back is not written.
        ConfigFile::parse(&text, &path)?;
        replace(&path, &text).map_err(failed)?;
    }
    Ok(path)
}

/// The file behind links. A link that leads nowhere is told, and not followed to make something there.
fn target(path: PathBuf) -> Result<PathBuf, ConfigError> {
    match fs::canonicalize(&path) {
        Ok(target) => Ok(target),
        Err(source) if source.kind() == io::ErrorKind::NotFound && !path.is_symlink() => Ok(path),
        Err(source) => Err(ConfigError::File { path, source }),
    }
}

/// Puts a rule first into the list of hosts, where no comment changes the line it belongs to.
fn add(text: &mut String, rule: &Rule) {
    let rule = format!("\"{rule}\"");
    let Some((list, first)) = list(text) else {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("hosts = [{rule}]\n"));
        return;
    };
    let inside = list.start + 1;
    let added = match first {
        None => rule,
        Some(first) => {
            let space = &text[inside..first.start];
            match space.trim().is_empty() && space.contains('\n') {
                // A value a line: this one gets a line too.
                true => format!("{space}{rule},"),
                false => format!("{rule}, "),
            }
        }
    };
    text.insert_str(inside, &added);
}

/// Where the list of hosts is, and its first value.
fn list(text: &str) -> Option<(Range<usize>, Option<Range<usize>>)> {
    let document = Document::parse(text).ok()?;
    let hosts = document.get("hosts")?.as_array()?;
    let first = hosts.get(0).and_then(toml_edit::Value::span);
    Some((hosts.span()?, first))
}

/// Replaces a file in one step: whoever reads it has the old one or the new one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::NotFound)?;
    let mut new = NamedTempFile::new_in(folder)?;
    new.write_all(text.as_bytes())?;
    new.as_file()
        .set_permissions(fs::metadata(path)?.permissions())?;
    new.as_file().sync_all()?;
    new.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use proptest::prelude::*;

    use super::*;

    fn rule(text: &str) -> Rule {
        Rule::parse(text).unwrap()
    }

    fn added(text: &str) -> String {
        let mut text = text.to_owned();
        add(&mut text, &rule("new.example"));
        text
    }

    #[test]
    fn a_host_finds_its_place_in_every_form_of_a_list() {
        for (before, after) in [
            ("", "hosts = [\"new.example\"]\n"),
            ("minutes = 5", "minutes = 5\nhosts = [\"new.example\"]\n"),
            ("hosts = []", "hosts = [\"new.example\"]"),
            ("hosts = [ ] # none", "hosts = [\"new.example\" ] # none"),
            ("hosts = [\"a.b\"]", "hosts = [\"new.example\", \"a.b\"]"),
            (
                "hosts = [\n  \"a.b\", # a\n]\n",
                "hosts = [\n  \"new.example\",\n  \"a.b\", # a\n]\n",
            ),
            (
                "hosts = [ # mine\n  'a.b'\n]",
                "hosts = [\"new.example\",  # mine\n  'a.b'\n]",
            ),
            (
                "hosts = [\r\n\t\"a.b\"\r\n]\r\n",
                "hosts = [\r\n\t\"new.example\",\r\n\t\"a.b\"\r\n]\r\n",
            ),
        ] {
            assert_eq!(added(before), after);
        }
    }

    #[test]
    fn a_missing_file_is_made_and_a_second_time_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/config.toml");
        let rules = [rule("a.example"), rule("*.b.example")];
        assert_eq!(remember(Some(&file), &rules).unwrap(), file);
        let once = fs::read_to_string(&file).unwrap();
        assert!(
            once.starts_with('#') && once.ends_with("hosts = [\"*.b.example\", \"a.example\"]\n")
        );
        remember(Some(&file), &rules).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), once);
    }

    #[test]
    fn a_link_stays_a_link_and_the_mode_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (
            folder.path().join("dotfiles.toml"),
            folder.path().join("config.toml"),
        );
        fs::write(&real, "minutes = 5\n").unwrap();
        fs::set_permissions(&real, PermissionsExt::from_mode(0o604)).unwrap();
        symlink(&real, &link).unwrap();
        remember(Some(&link), &[rule("a.example")]).unwrap();
        assert!(link.is_symlink());
        assert_eq!(
            fs::metadata(&real).unwrap().permissions().mode() & 0o777,
            0o604
        );
        assert!(fs::read_to_string(&real).unwrap().contains("a.example"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_cannot_be_edited_is_told_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let dangling = folder.path().join("dangling.toml");
        symlink(folder.path().join("nowhere"), &dangling).unwrap();
        remember(Some(&dangling), &[rule("a.example")]).unwrap_err();
        assert!(!folder.path().join("nowhere").exists());
        let wrong = folder.path().join("wrong.toml");
        for text in ["hosts = 5", "minuts = 5", "hosts = [", "[hosts]"] {
            fs::write(&wrong, text).unwrap();
            let error = remember(Some(&wrong), &[rule("a.example")]).unwrap_err();
            assert!(error.to_string().contains("wrong.toml:1"), "{error}");
            assert_eq!(fs::read_to_string(&wrong).unwrap(), text);
        }
    }

    proptest! {
        #[test]
        fn all_that_was_there_is_there_in_its_order(
            before in "(#[a-z \"\\[\\]=]{0,12}\n|label = \"x\"\n|){1}",
            space in "[ \t]{0,3}|\n {0,4}|\r\n| # [a-z\"\\]]{0,9}\n ",
            hosts in prop::collection::vec("[a-z]{1,5}\\.example", 0..4),
            after in "(\nminutes = 5 # [a-z\"]{0,9}\n|\n?){1}",
        ) {
            let list: Vec<String> = hosts.iter().map(|host| format!("{space}\"{host}\"")).collect();
            let text = format!("{before}hosts = [{}{space}]{after}", list.join(","));
            let file = |text: &str| ConfigFile::parse(text, Path::new("c")).unwrap();
            let new = added(&text);
            let wanted = [rule("new.example")].into_iter().chain(file(&text).hosts);
            prop_assert!(file(&new).hosts.into_iter().eq(wanted));
            let front = new.bytes().zip(text.bytes()).take_while(|(new, old)| new == old).count();
            let longer = new.len() - text.len();
            let front = front.min(text.len());
            prop_assert_eq!(format!("{}{}", &new[..front], &new[front + longer..]), text);
        }
    }
}
