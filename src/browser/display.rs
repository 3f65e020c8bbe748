//! The private X display that some rungs need: an Xvfb of the run's own, under the same account, with an authority file
//! that only Chromium gets, and no TCP.

use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use super::folder::RunFolder;
use super::namespace::Program;
use super::spawn::{Launch, Process, SpawnError, prepare};
use crate::place;

/// How long Xvfb may take until it listens.
const START: Duration = Duration::from_secs(10);
/// Pixels of the screen. Windows may be larger than it, and pictures come from Chromium's own surfaces, so it only has to
/// be there: at the largest viewport it would take 256 MiB.
const SCREEN: &str = "1280x1024x24";

/// Why there is no display.
#[derive(Debug, thiserror::Error)]
pub enum DisplayError {
    /// It is not installed.
    #[error(
        "Xvfb is not installed; install it with: {}",
        super::find::install_xvfb_command()
    )]
    NotInstalled,
    /// It could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// It started and did not come up.
    #[error("Xvfb did not come up: {0}")]
    Silent(String),
    /// Its files could not be written.
    #[error("the files of the display could not be written: {0}")]
    Files(#[from] std::io::Error),
}

/// A running Xvfb.
pub struct Display {
    process: Process,
    number: u32,
    authority: PathBuf,
}

impl Display {
    /// Starts one. `launch` is the browser's, so that both live under the same account.
    pub async fn start(launch: &Launch, folder: &RunFolder) -> Result<Self, DisplayError> {
        let path = find().ok_or(DisplayError::NotInstalled)?;
        let authority = folder.write("display.auth", &authority_entry()?)?;
        let launch = Launch {
            network: false,
            ..launch.clone()
        };
        let arguments = [
            "-displayfd",
            "1",
            "-screen",
            "0",
            SCREEN,
            "-nolisten",
            "tcp",
            "-noreset",
            "-auth",
        ];
        let arguments = arguments
            .iter()
            .map(|argument| (*argument).to_owned())
            .chain([authority.display().to_string()]);
        let program = Program {
            path,
            arguments: arguments.collect(),
            pipe: false,
        };
        let (process, output) = prepare(&launch).await?.run(&program)?;
        output.set_read_timeout(Some(START))?;
        let said = tokio::task::spawn_blocking(move || read_number(output))
            .await
            .ok()
            .flatten();
        match said {
            Some(number) => Ok(Self {
                process,
                number,
                authority,
            }),
            None => Err(DisplayError::Silent(process.log().tail(5))),
        }
    }

    /// What Chromium needs in its environment.
    pub fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [
            ("DISPLAY", format!(":{}", self.number).into()),
            ("XAUTHORITY", self.authority.clone()),
        ]
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> String {
        self.process.ended().await
    }

    /// Ends it; Xvfb keeps nothing that it would have to save.
    pub async fn end(self) {
        self.process.end(Duration::ZERO).await;
    }
}

fn find() -> Option<PathBuf> {
    let fixed = ["/usr/bin/Xvfb", "/usr/local/bin/Xvfb"].map(PathBuf::from);
    fixed
        .into_iter()
        .chain(
            place::search_path()
                .into_iter()
                .map(|folder| folder.join("Xvfb")),
        )
        .find(|path| path.is_file())
}

fn read_number(mut output: impl Read) -> Option<u32> {
    let mut said = Vec::new();
    let mut byte = [0];
    while output.read(&mut byte).ok()? == 1 && byte[0] != b'\n' && said.len() < 8 {
        said.push(byte[0]);
    }
    std::str::from_utf8(&said).ok()?.trim().parse().ok()
}

/// An entry of an X authority file (five counted fields, big-endian) that fits every display of this machine, since the
/// number is not known yet.
fn authority_entry() -> std::io::Result<Vec<u8>> {
    const FAMILY_WILD: u16 = 0xffff;
    let mut cookie = [0; 16];
    getrandom::fill(&mut cookie).map_err(std::io::Error::other)?;
    let mut entry = FAMILY_WILD.to_be_bytes().to_vec();
    for field in [&b""[..], b"", b"MIT-MAGIC-COOKIE-1", &cookie] {
        let length = u16::try_from(field.len()).unwrap_or(0);
        entry.extend_from_slice(&length.to_be_bytes());
        entry.extend_from_slice(field);
    }
    Ok(entry)
}
