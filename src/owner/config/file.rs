//! The keys of the config file, each parsed once into what a session takes.

use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use toml_edit::{Document, Item};

use super::ConfigError;
use crate::browser::rung::GpuChoice;
use crate::owner::wish::relay_choice;
use crate::policy::allowlist::Rule;
use crate::policy::limits::SESSION_MINUTES_MOST;
use crate::policy::size::parse_memory;
use crate::policy::switches::OwnerSwitches;

/// The keys, as the template tells them.
pub(super) const KEYS: [&str; 10] = [
    "relay",
    "minutes",
    "hosts",
    "default_hosts",
    "allow_any_public",
    "gpu",
    "chromium",
    "chromium_flags",
    "label",
    "max_memory",
];

/// What a config file says; what it leaves out is for the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigFile {
    /// The relay's address, or `local`.
    pub relay: Option<String>,
    /// The length of a session.
    pub minutes: Option<u64>,
    /// Rules of the allowlist beside the built-in ones and those of the command line.
    pub hosts: Vec<Rule>,
    /// Whether the built-in list counts.
    pub default_hosts: Option<bool>,
    /// Whether any public host may be reached.
    pub allow_any_public: Option<bool>,
    /// Which rungs may be taken.
    pub gpu: Option<GpuChoice>,
    /// The Chromium to start.
    pub chromium: Option<PathBuf>,
    /// GPU switches for it; those of the command line come after them.
    pub chromium_flags: Vec<String>,
    /// What to call the first link.
    pub label: Option<String>,
    /// Bytes of memory that Chromium is held to.
    pub max_memory: Option<u64>,
}

impl ConfigFile {
    /// Reads the text of a file; the path is for the errors.
    ///
    /// # Errors
    /// Names the first line that is wrong.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let wrong = |span: Option<Range<usize>>, what: String| ConfigError::Wrong {
            path: path.to_owned(),
            line: line_of(text, span),
            what,
        };
        let document = Document::parse(text)
            .map_err(|error| wrong(error.span(), error.message().to_owned()))?;
        let mut file = Self::default();
        for (name, _) in document.iter() {
            let Some((key, item)) = document.get_key_value(name) else {
                continue;
            };
            let span = item.span().or_else(|| key.span());
            if !KEYS.contains(&name) {
                return Err(wrong(key.span(), unknown(name)));
            }
            file.set(name, item)
                .map_err(|what| wrong(span, format!("{name}: {what}")))?;
        }
        Ok(file)
    }

    /// Takes one key; the error says what fits.
    fn set(&mut self, key: &str, item: &Item) -> Result<(), String> {
        match key {
            "relay" => {
                let relay = text(item)?;
                relay_choice(relay).map_err(|error| error.to_string())?;
                self.relay = Some(relay.to_owned());
            }
            "minutes" => self.minutes = Some(minutes(item)?),
            "hosts" => {
                self.hosts = each(item, |host| Rule::parse(host).map_err(|e| e.to_string()))?;
            }
            "default_hosts" => self.default_hosts = Some(yes_or_no(item)?),
            "allow_any_public" => self.allow_any_public = Some(yes_or_no(item)?),
            "gpu" => self.gpu = Some(gpu(item)?),
            "chromium" => self.chromium = Some(text(item)?.into()),
            "chromium_flags" => {
                let flags = each(item, |flag| Ok(flag.to_owned()))?;
                OwnerSwitches::parse(&flags).map_err(|error| error.to_string())?;
                self.chromium_flags = flags;
            }
            "label" => self.label = Some(text(item)?.to_owned()),
            "max_memory" => self.max_memory = Some(memory(text(item)?)?),
            _ => {}
        }
        Ok(())
    }
}

fn unknown(name: &str) -> String {
    let alike = |key: &&&str| strsim::jaro_winkler(name, key);
    let nearest = KEYS
        .iter()
        .max_by(|one, other| alike(one).total_cmp(&alike(other)));
    let nearest = nearest.copied().unwrap_or_default();
    format!("there is no key {name:?}; the nearest one is {nearest}")
}

fn text(item: &Item) -> Result<&str, String> {
    let text = item.as_str().filter(|text| !text.is_empty());
    text.ok_or_else(|| "it takes a text in quotes".to_owned())
}

fn yes_or_no(item: &Item) -> Result<bool, String> {
    item.as_bool()
        .ok_or_else(|| "it takes true or false, without quotes".to_owned())
}

fn minutes(item: &Item) -> Result<u64, String> {
    let number = item
        .as_integer()
        .and_then(|number| u64::try_from(number).ok());
    number
        .filter(|number| (1..=SESSION_MINUTES_MOST).contains(number))
        .ok_or_else(|| {
            format!("it takes a number from 1 to {SESSION_MINUTES_MOST}, without quotes")
        })
}

fn each<T>(item: &Item, parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    let takes = || "it takes a list of texts, as in [\"one\", \"two\"]".to_owned();
    let list = item.as_array().ok_or_else(takes)?;
    let texts = list.iter().map(|value| value.as_str().ok_or_else(takes));
    texts.map(|text| parse(text?)).collect()
}

fn gpu(item: &Item) -> Result<GpuChoice, String> {
    let takes = || "it takes \"auto\", \"hardware\" or \"software\"".to_owned();
    GpuChoice::from_str(text(item)?, false).map_err(|_| takes())
}

/// A size like `4GiB` or `1500 MiB`.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    parse_memory(text).map_err(|_| "it takes a size from 512MiB up, as in \"4GiB\"".to_owned())
}

/// The line of a place in a text, from 1.
fn line_of(text: &str, span: Option<Range<usize>>) -> usize {
    let start = span.map_or(0, |span| span.start);
    let before = text.as_bytes().get(..start).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<ConfigFile, ConfigError> {
        ConfigFile::parse(text, Path::new("c.toml"))
    }

    #[test]
    fn every_key_is_taken() {
        let file = parse(
            r#"
            relay = "https://relay.example"
            minutes = 30
            hosts = ["a.example", "*.B.example"]
            default_hosts = false
            allow_any_public = true
            gpu = "software"
            chromium = "/usr/bin/chromium"
            chromium_flags = ["--use-angle=vulkan"]
            label = "laptop"
            max_memory = "4GiB"
            "#,
        );
        let expected = ConfigFile {
            relay: Some("https://relay.example".into()),
            minutes: Some(30),
            hosts: ["a.example", "*.b.example"]
                .map(|host| Rule::parse(host).unwrap())
                .into(),
            default_hosts: Some(false),
            allow_any_public: Some(true),
            gpu: Some(GpuChoice::Software),
            chromium: Some("/usr/bin/chromium".into()),
            chromium_flags: vec!["--use-angle=vulkan".into()],
            label: Some("laptop".into()),
            max_memory: Some(4 << 30),
        };
        assert_eq!(file.unwrap(), expected);
        assert_eq!(parse("# nothing\n").unwrap(), ConfigFile::default());
    }

    #[test]
    fn a_wrong_line_is_named_with_what_to_write_instead() {
        for (line, says) in [
            ("minuts = 5", "\"minuts\"; the nearest one is minutes"),
            (
                "allow = [\"a.example\"]",
                "the nearest one is allow_any_public",
            ),
            ("[session]\nminutes = 5", "\"session\""),
            ("minutes = \"5\"", "minutes: it takes a number from 1"),
            ("minutes = 0", "minutes: it takes a number from 1"),
            ("minutes = -1", "minutes: it takes a number from 1"),
            ("gpu = \"fast\"", "gpu: it takes \"auto\", \"hardware\""),
            ("hosts = \"a.example\"", "hosts: it takes a list"),
            ("hosts = [1]", "hosts: it takes a list"),
            ("hosts = [\"*.com\"]", "hosts: \"*.com\""),
            (
                "default_hosts = \"yes\"",
                "default_hosts: it takes true or false",
            ),
            ("relay = \"ftp://x\"", "relay: "),
            ("relay = \"\"", "relay: it takes a text"),
            ("chromium_flags = [\"--no-sandbox\"]", "--no-sandbox"),
            ("max_memory = \"4GB\"", "max_memory: it takes a size"),
            ("max_memory = \"1MiB\"", "from 512MiB"),
            ("max_memory = \"99999999999999GiB\"", "max_memory"),
            ("label = \"a\"\nlabel = \"b\"", "duplicate"),
            ("label = ", "string"),
        ] {
            let error = parse(&format!("# a comment\n\n{line}\n"))
                .unwrap_err()
                .to_string();
            assert!(error.starts_with("c.toml:"), "{line}: {error}");
            let at: usize = error.split(':').nth(1).unwrap().parse().unwrap();
            assert!((3..=4).contains(&at), "{line}: {error}");
            assert!(error.contains(says), "{line}: {error}");
            assert_eq!(error.lines().count(), 1, "{error:?}");
        }
    }

    proptest! {
        #[test]
        fn no_file_makes_it_panic_and_each_says_the_same_twice(
            lines in prop::collection::vec("(relay|minutes|hosts|gpu|label|\\[a\\]) = (\"[a-z*.]{0,9}\"|[0-9]{1,4}|\\[\"[a-z.]{1,9}\"\\])|\\PC{0,20}", 0..5)
        ) {
            let text = lines.join("\n");
            prop_assert_eq!(format!("{:?}", parse(&text)), format!("{:?}", parse(&text)));
        }
    }
}
