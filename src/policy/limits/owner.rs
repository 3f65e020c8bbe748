//! Requests, the log, and the owner's side.

use std::time::Duration;

use super::{CALLS_IN_FLIGHT, KIB, PROXY_EVENTS};

// --- Requests for more hosts: enforced by `policy::approval`.

/// Requests that wait for the owner's word: what a person reads through.
pub const REQUESTS_WAITING: usize = 10;
/// New requests in [`REQUEST_WINDOW`], so that an agent cannot wear the owner down.
pub const REQUESTS_IN_WINDOW: usize = 20;
/// The window of [`REQUESTS_IN_WINDOW`].
pub const REQUEST_WINDOW: Duration = Duration::from_secs(3600);
/// A request without an answer ends as `expired` after this, so that forgotten ones do not fill the ten places.
pub const REQUEST_WAIT: Duration = Duration::from_secs(3600);
/// Hosts in one request: what fits a question.
pub const REQUEST_HOSTS: usize = 10;
/// Characters of a request's reason: what a person reads before a decision.
pub const REQUEST_REASON: usize = 300;
/// Characters of the owner's note on a denial.
pub const REQUEST_NOTE: usize = 300;
/// Calls that may wait for the same question.
pub const REQUEST_JOINED: usize = 8;
/// Requests that have ended and are still listed.
pub const REQUESTS_LISTED: usize = 50;

// --- The log: enforced by `server::audit`, and by `owner::logs`, which reads it.

/// Bytes of a file of the log; the line that would pass it begins the next file.
pub const LOG_FILE: u64 = 10_000_000;
/// Files kept beside the one that is written.
pub const LOG_KEPT: usize = 5;
/// Lines that wait to be written; more are dropped and counted, for a slow disk must not stall a session.
pub const LOG_QUEUE: usize = 2 * PROXY_EVENTS;
/// Characters of one text in the log; the rest is cut.
pub const LOG_TEXT: usize = 300;
/// Texts of one list in the log; the rest is cut.
pub const LOG_LIST: usize = 32;
/// Bytes of a line that a reader takes for one of ours: a list of texts, each character as a surrogate pair of escapes.
pub const LOG_LINE: usize = 256 * KIB;
/// A reader that follows the log looks for new lines this often.
pub const LOG_POLL: Duration = Duration::from_millis(200);

// --- The owner's side: enforced by `owner`.

/// Bytes of the config file: a list of hosts as long as anybody writes, and no more.
pub const CONFIG_FILE: u64 = 1_000_000;

/// Minutes of the longest session: ten years; a longer one would leave the range of the clock.
pub const SESSION_MINUTES_MOST: u64 = 10 * 365 * 24 * 60;
/// Bytes of a line that the owner types; the rest of a longer one is a line of its own.
pub const OWNER_LINE: u64 = 4 * 1024;
/// Lines that were typed and wait for their turn; what reads them stands still while it is full.
pub const OWNER_LINES: usize = 16;
/// Events that wait to be shown. Every call in flight may end at once.
pub const OWNER_EVENTS: usize = 4 * CALLS_IN_FLIGHT;
/// Places among [`OWNER_EVENTS`] that calls, refusals and pages may not take: a question is never lost for them.
pub const OWNER_EVENT_RESERVE: usize = 64;
/// A tool of the clipboard takes the link within this.
pub const CLIPBOARD: Duration = Duration::from_secs(2);
/// A session answers the owner's other terminal within this.
pub const SOCKET_TIME: Duration = Duration::from_secs(5);
/// Bytes of a question from the owner's other terminal.
pub const SOCKET_LINE: u64 = 4 * 1024;
/// Terminals that may wait for an answer at once.
pub const SOCKET_CLIENTS: usize = 8;
/// Bytes of one line between the owner's command and a session under another account; a longer one is cut.
pub const SERVER_LINE: u64 = 256 * 1024;
/// Questions of the owner that wait for the session.
pub const OWNER_ASKS: usize = 16;
/// What is said last is given up after this, where nobody reads standard output.
pub const LAST_WORD: Duration = Duration::from_secs(1);
