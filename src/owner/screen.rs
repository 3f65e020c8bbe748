//! Lines out. Nobody has to read them: a write that waits can be dropped, and one that fails is an error, never a panic.

use tokio::io::{AsyncWriteExt, Stderr, Stdout};

use super::Failure;

/// Standard output and standard error, a line at a time.
pub(super) struct Screen {
    output: Stdout,
    aside: Stderr,
}

impl Screen {
    /// The process's own.
    pub(super) fn new() -> Self {
        Self {
            output: tokio::io::stdout(),
            aside: tokio::io::stderr(),
        }
    }

    /// A line on standard output.
    pub(super) async fn line(&mut self, line: &str) -> Result<(), Failure> {
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
