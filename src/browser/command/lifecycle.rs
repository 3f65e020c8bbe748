//! The commands that ask how busy a page is, and that let it rest.

use serde::{Deserialize, Serialize};

use super::{Command, NoReply, is_absent};

commands! {
    /// Counts what a page does.
    EnablePerformance = "Performance.enable" -> NoReply {}
    /// What was counted.
    GetMetrics = "Performance.getMetrics" -> Metrics {}
    /// Freezes a page that is hidden, or lets it go on.
    SetWebLifecycleState<'a> = "Page.setWebLifecycleState" -> NoReply {
        /// `frozen` or `active`.
        state: &'a str,
    }
}

/// `Performance.getMetrics`.
#[derive(Debug, Deserialize)]
pub struct Metrics {
    /// All that is counted.
    pub metrics: Vec<Metric>,
}

/// One number.
#[derive(Debug, Deserialize)]
pub struct Metric {
    /// Its name.
    pub name: String,
    /// Seconds, bytes or a count, by its name; none where it is no number.
    pub value: Option<f64>,
}
