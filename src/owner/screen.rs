//! Lines out. Nobody has to read them: a write that waits can be dropped, and one that fails is an error, never a panic.

use std::io::IsTerminal as _;
use std::sync::Mutex;

use tokio::io::{AsyncWriteExt, Stderr, Stdout};
use tokio::sync::{mpsc, oneshot};

use super::Failure;
use super::terminal::Terminal;
use crate::place;

/// Standard output and standard error, a line at a time; or the terminal that is both.
pub(super) struct Screen {
    output: Stdout,
    aside: Stderr,
    terminal: Option<Terminal>,
    colours: bool,
}

impl Screen {
    /// The process's own.
    pub(super) fn new() -> Self {
        Self {
            output: tokio::io::stdout(),
            aside: tokio::io::stderr(),
            terminal: None,
            colours: std::io::stdout().is_terminal() && !place::no_color(),
        }
    }

    /// From now on, everything goes above the line that is typed on this terminal, the log too.
    pub(super) fn on(&mut self, terminal: Terminal) {
        divert_log(Some(terminal.printer()));
        self.terminal = Some(terminal);
    }

    /// Shows, while nothing is typed, how the session is.
    pub(super) fn facts(&self, facts: impl FnOnce() -> String) {
        if let Some(terminal) = &self.terminal {
            terminal.facts(facts());
        }
    }

    /// A line on standard output.
    pub(super) async fn line(&mut self, line: &str) -> Result<(), Failure> {
        let line = if self.colours {
            paint(line)
        } else {
            line.to_owned()
        };
        if let Some(terminal) = &self.terminal {
            terminal.line(line).await;
            return Ok(());
        }
        let written = async {
            self.output
                .write_all(format!("{line}\n").as_bytes())
                .await?;
            self.output.flush().await
        };
        written.await.map_err(Failure::Output)
    }

    /// A line on standard error, beside the events of `--json`; where that is closed, nobody wants it.
    pub(super) async fn aside(&mut self, line: &str) {
        let text = format!("{line}\n");
        let _ = self.aside.write_all(text.as_bytes()).await;
        let _ = self.aside.flush().await;
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.terminal.is_some() {
            divert_log(None);
        }
    }
}

/// A line of ours in the colour of its first word. Whatever comes from outside has lost its escapes before.
fn paint(line: &str) -> String {
    let colour = match line.split(' ').next().unwrap_or_default() {
        "WARNING" => "1;31",
        "ended" => "1",
        "REQUEST" => "1;36",
        "request" => "36",
        "refused" => "33",
        "browser" | "relay" | "killed" => "35",
        "call" | "page" | "…" => "2",
        _ => return line.to_owned(),
    };
    format!("\x1b[{colour}m{line}\x1b[0m")
}

type Lines = mpsc::Sender<(String, oneshot::Sender<()>)>;

/// Where the log goes while a terminal is taken.
static LOG: Mutex<Option<Lines>> = Mutex::new(None);

fn divert_log(lines: Option<Lines>) {
    *LOG.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner) = lines;
}

/// The daemon's own log: standard error, or above the line that is typed.
#[derive(Debug, Default)]
pub struct LogWriter;

impl std::io::Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let lines = LOG
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        match &*lines {
            // A log that would have to wait is left out.
            Some(lines) => {
                let text = String::from_utf8_lossy(bytes).trim_end().to_owned();
                let _ = lines.try_send((text, oneshot::channel().0));
                Ok(bytes.len())
            }
            None => std::io::stderr().write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_is_that_of_the_first_word_and_ends_with_its_line() {
        assert_eq!(
            paint("refused  a.example"),
            "\x1b[33mrefused  a.example\x1b[0m"
        );
        assert_eq!(paint("  http://link"), "  http://link");
    }
}
