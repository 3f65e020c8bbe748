//! What is remembered of a page, enforced by `browser::journal`, and what a reply tells of it, enforced by its tools.

use super::{KIB, MIB};

/// Different lines of the console; more drop the oldest.
pub const CONSOLE_LINES: usize = 1_000;
/// Bytes of all lines of a page's console with their stacks.
pub const CONSOLE_BYTES: usize = 512 * KIB;
/// Bytes of one line's text: a shader's log or a small object is whole in it.
pub const CONSOLE_TEXT: usize = 4 * KIB;
/// Bytes of one line's stack: some twenty frames.
pub const CONSOLE_STACK: usize = 2 * KIB;
/// Bytes of a console event whose arguments are looked at; a page may print hundreds of megabytes at once.
pub const CONSOLE_EVENT: usize = MIB;
/// Requests of a page; more drop the oldest.
pub const REQUESTS: usize = 512;
/// Bytes of all requests of a page, their headers included.
pub const REQUESTS_BYTES: usize = MIB;
/// Bytes of a request's address.
pub const REQUEST_URL: usize = 2 * KIB;
/// Headers of a request, and of its answer.
pub const REQUEST_HEADERS: usize = 40;
/// Bytes of a header's name, and of its value.
pub const REQUEST_HEADER: usize = 512;
/// Bytes of bodies that a page's renderer keeps for `/network`: what a scene loads first, and little beside the page itself.
pub const BODIES: u32 = 8 * 1024 * 1024;
/// The same for one body; a larger one is not kept at all.
pub const BODY: u32 = 4 * 1024 * 1024;
/// Lines or requests in a reply of `/console` and `/network`, unless the agent asks otherwise, and the most it may ask for.
pub const JOURNAL_LIST: (usize, usize) = (50, 500);
/// Bytes of a body in a reply of `/network`, unless the agent asks otherwise; at most [`EVAL_VALUE_MOST`](super::EVAL_VALUE_MOST).
pub const BODY_REPLY: usize = 64 * KIB;
