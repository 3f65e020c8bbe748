//! A page that nobody uses is asked how busy it is, and can be put to rest.

use std::time::Duration;

use tokio::time::timeout;

use super::command::SetFocusEmulation;
use super::command::lifecycle::{EnablePerformance, GetMetrics, SetWebLifecycleState};
use super::page::{Page, PageError};
use super::pipe::CallError;

impl Page {
    /// How long its main thread has worked since its renderer began.
    ///
    /// # Errors
    /// [`PageError::Timeout`] where it has not answered within this time.
    pub async fn worked(&self, within: Duration) -> Result<Duration, PageError> {
        let session = Some(&self.session);
        self.connection.tell(session, &EnablePerformance {});
        let asked = self.connection.start(session, &GetMetrics {});
        let answered = timeout(within, asked).await;
        let metrics = answered.map_err(|_| PageError::Timeout)??.metrics;
        let worked = metrics
            .iter()
            .find(|metric| metric.name == "TaskDuration")
            .and_then(|metric| Duration::try_from_secs_f64(metric.value?).ok());
        worked.ok_or_else(|| {
            let method = "Performance.getMetrics";
            CallError::Malformed { method }.into()
        })
    }

    /// Stops its timers, frames and workers. Only a hidden page freezes, and one that believes in its focus is not hidden.
    pub fn freeze(&self) {
        let session = Some(&self.session);
        self.connection
            .tell(session, &SetFocusEmulation { enabled: false });
        self.connection
            .tell(session, &SetWebLifecycleState { state: "frozen" });
    }

    /// Lets it go on, seen and drawing as before; what is sent to it next comes after.
    pub fn thaw(&self) {
        let session = Some(&self.session);
        self.connection
            .tell(session, &SetWebLifecycleState { state: "active" });
        self.connection
            .tell(session, &SetFocusEmulation { enabled: true });
    }
}
