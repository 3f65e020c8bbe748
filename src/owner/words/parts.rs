//! The parts of a session, and its pages, as a person reads them.

use std::time::Duration;

use super::length;
use crate::owner::shown;
use crate::server::desk::OpenPage;
use crate::server::status::Status;

/// A session's parts as a table.
pub(in crate::owner) fn status(status: &Status) -> Vec<String> {
    let time = |seconds| length(Duration::from_secs(seconds));
    let mut lines = vec![
        format!(
            "gpu-browser {}, up {}, ends in {}",
            shown::text(&status.version),
            time(status.up_s),
            time(status.ends_in_s)
        ),
        format!("gpu      {}", shown::text(&status.gpu)),
        format!(
            "{:<8} {:<12} {:<14} {:>8}  detail",
            "part", "state", "for", "restarts"
        ),
    ];
    lines.extend(status.parts.iter().map(|part| {
        format!(
            "{:<8} {:<12} {:<14} {:>8}  {}",
            shown::text(&part.name),
            shown::text(&part.state),
            time(part.for_s),
            part.restarts,
            shown::text(&part.detail)
        )
    }));
    lines.push(format!(
        "uploads  {} files, {} bytes",
        status.upload_files, status.upload_bytes
    ));
    lines.push(format!("requests {} waiting", status.requests_waiting));
    lines.extend(pages(&status.pages));
    lines
}

/// The open pages, a line each.
pub(in crate::owner) fn pages(pages: &[OpenPage]) -> Vec<String> {
    if pages.is_empty() {
        return vec!["no page is open".to_owned()];
    }
    pages
        .iter()
        .map(|open| {
            format!(
                "page     {}  {}",
                shown::text(&open.page),
                shown::text(&open.url)
            )
        })
        .collect()
}
