//! What comes in on standard input, from a person or a program.

use std::io::{BufRead, Read};
use std::time::Instant;

use tokio::sync::mpsc;

use super::Failure;
use crate::policy::limits::OWNER_LINES;

/// A line, and when its typing began; a program's line has no such time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) begun: Option<Instant>,
}

/// Something that was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typing {
    /// A line.
    Line(Line),
    /// Ctrl-c, which an editor takes as a key.
    Interrupt,
}

/// Lines of standard input; of a longer one than `most` bytes, the rest is a line of its own. They are read by a thread of their
/// own, which ends with the process: a read of a terminal cannot be given up, and the runtime would wait for it.
pub(super) fn lines(most: u64) -> Result<mpsc::Receiver<Typing>, Failure> {
    let (sender, lines) = mpsc::channel(OWNER_LINES);
    let read = move || {
        let mut input = std::io::stdin().lock();
        let mut line = Vec::new();
        loop {
            line.clear();
            match input.by_ref().take(most).read_until(b'\n', &mut line) {
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
            let text = String::from_utf8_lossy(&line).into_owned();
            if sender
                .blocking_send(Typing::Line(Line { text, begun: None }))
                .is_err()
            {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("console".to_owned());
    thread.spawn(read).map_err(|source| Failure::System {
        what: "cannot read standard input",
        source,
    })?;
    Ok(lines)
}
