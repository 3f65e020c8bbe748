//! What a page said and asked for, kept for questions that come later: its console and its requests, each in a ring of
//! bounded size that counts what had to make room.

pub mod console;
pub mod line;
pub mod requests;
pub mod ring;

use std::sync::Arc;

use serde_json::Value;

use console::Console;
use line::Line;
use requests::Requests;

/// The journal of one page, over all documents that it has shown.
#[derive(Debug, Default)]
pub struct Journal {
    /// Lines of the console.
    pub console: Console,
    /// Requests.
    pub requests: Requests,
    /// When the document that is shown was asked for, milliseconds of the epoch: the zero of all times in replies.
    pub began: f64,
}

impl Journal {
    /// Takes an event in; `session` is where it happened, `None` for the page's own.
    pub(super) fn fold(&mut self, method: &str, session: Option<&Arc<str>>, value: &Value) {
        let line = match method {
            "Runtime.consoleAPICalled" => Line::called(value),
            "Runtime.exceptionThrown" => Some(Line::thrown(value)),
            // Failed requests are among the requests.
            "Log.entryAdded" if value["entry"]["source"] != "network" => Some(Line::logged(value)),
            _ => return self.requests.fold(method, session, value),
        };
        if let Some(line) = line {
            self.console.add(line);
        }
    }

    /// The page shows another document: questions without a cursor mean this one.
    pub(super) fn navigated(&mut self, loader: &str) {
        self.console.navigated();
        if let Some(began) = self.requests.navigated(loader) {
            self.began = began;
        }
    }
}
