//! Lines of standard input.

use std::io::{BufRead, Read};

use tokio::sync::mpsc;

use super::Failure;
use crate::policy::limits::OWNER_LINES;

/// Lines of standard input; of a longer one than `most` bytes, the rest is a line of its own. They are read by a thread of their
/// own, which ends with the process: a read of a terminal cannot be given up, and the runtime would wait for it.
pub(super) fn lines(most: u64) -> Result<mpsc::Receiver<String>, Failure> {
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
            if sender.blocking_send(text).is_err() {
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
