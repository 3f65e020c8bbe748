//! A request of our own that the browser makes, for no page and no agent.

use std::sync::Arc;

use super::chromium::Chromium;
use super::command::{CreateBrowserContext, CreateTarget, DisposeBrowserContext};
use super::observed::Observed;
use super::pipe::{CallError, Connection};
use super::targets::Targets;

/// A context that was made for one request; dropped, it is gone with its page.
pub struct Errand {
    connection: Connection,
    targets: Arc<Targets>,
    context: String,
}

impl Chromium {
    /// Sends the browser to an address in a context that nobody shares and that knows no password. It is on its way
    /// when this returns; what comes of it, whoever is asked will know.
    pub async fn errand(&self, url: &str) -> Result<Errand, CallError> {
        let connection = self.connection.clone();
        let create = CreateBrowserContext {
            dispose_on_detach: true,
        };
        let context = connection.start(None, &create).await?.browser_context_id;
        // Else the page would be closed as a popup before it has asked for anything.
        drop(
            self.targets
                .expect(&context, &Observed::new(connection.clone())),
        );
        let errand = Errand {
            connection,
            targets: Arc::clone(&self.targets),
            context,
        };
        let create = CreateTarget {
            url,
            browser_context_id: &errand.context,
            width: 16,
            height: 16,
            new_window: true,
        };
        errand.connection.start(None, &create).await?;
        Ok(errand)
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        self.targets.forget(&self.context);
        let dispose = DisposeBrowserContext {
            browser_context_id: &self.context,
        };
        self.connection.tell(None, &dispose);
    }
}
