//! Mouse and keyboard: trusted events, as from a person's hand. What belongs together leaves in one burst; nothing
//! waits for the answer to one command before the next one is sent.

mod keyboard;
pub mod keys;
mod mouse;
mod witness;

use futures_util::future::try_join_all;
use tokio::time::{Instant, timeout_at};

pub use mouse::{Button, Drag};
pub use witness::{Chosen, Held, Scrolled, Testimony, Unpicked};

use super::command::Command;
use super::page::{Page, PageError};

/// Commands of a burst that may be under way at once: enough to hide the way there and back, and far from filling the
/// queue of the wire, which all pages share.
const BURST: usize = 64;

impl Page {
    /// Sends commands in their order, many at once, and waits until all have been felt.
    async fn burst<C: Command>(&self, commands: &[C], deadline: Instant) -> Result<(), PageError> {
        for some in commands.chunks(BURST) {
            let sent = some
                .iter()
                .map(|command| self.connection.start(Some(&self.session), command));
            timeout_at(deadline, try_join_all(sent))
                .await
                .map_err(|_| PageError::Timeout)??;
        }
        Ok(())
    }
}
