//! Acting on pages, and reading them as a tree.

use std::time::Duration;

use super::{KIB, MIB, UPLOAD_BYTES};

// --- Acting on pages: enforced by `server::tools::act`, `server::tools::snapshot` and `browser`.

/// Actions of one call: more than anybody plans ahead without looking.
pub const ACTIONS: usize = 50;
/// The time a call's actions get together, unless the agent asks otherwise.
pub const ACT_TIMEOUT: Duration = Duration::from_secs(20);
/// An action waits this long for its target to be there, seen and uncovered, unless the agent asks otherwise.
pub const PATIENCE: Duration = Duration::from_millis(1_000);
/// A `wait` of an action gets this long, unless the agent asks otherwise.
pub const ACT_WAIT: Duration = Duration::from_secs(10);
/// A document that an action leads to must begin within this, or the reply says that it is under way.
pub const COMMIT: Duration = Duration::from_secs(3);
/// No request for this long is a quiet network, as Chromium has it too.
pub const QUIET: Duration = Duration::from_millis(500);
/// Movements of one drag.
pub const DRAG_STEPS: u32 = 1_000;
/// Clicks or key strokes of one action.
pub const ACTION_COUNT: u32 = 100;
/// Characters that one action types.
pub const TYPED: usize = 64 * KIB;
/// Characters that are typed key by key; a longer text is put in at once.
pub const TYPED_KEYS: usize = 2_000;
/// Files that one action picks in a file input.
pub const PICKED_FILES: usize = 32;
/// Bytes of picked files that are kept for the browser to read; the oldest go first. All uploads fit at once.
pub const PICKED_BYTES: usize = UPLOAD_BYTES;
/// Actions that `GET /actions` remembers.
pub const ACTION_LOG: usize = 256;
/// Bytes of JSON that it remembers of them.
pub const ACTION_LOG_BYTES: usize = 256 * KIB;
/// Characters of one text in that log; the cut is named.
pub const ACTION_LOG_TEXT: usize = 120;
/// Entries of one list in that log; the cut is named.
pub const ACTION_LOG_LIST: usize = 8;
/// The time a snapshot gets.
pub const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(20);
/// Elements of a page whose accessibility tree is read: Chromium needs about 2 KiB for each on its way to us.
pub const SNAPSHOT_ELEMENTS: usize = 50_000;
/// Bytes of lines in one reply of a snapshot: some 6,000 tokens for a model.
pub const SNAPSHOT_BYTES: usize = 24 * KIB;
/// Bytes of lines that are kept of a page's last snapshot, for the replies that give the rest.
pub const SNAPSHOT_KEPT: usize = 4 * MIB;
/// Characters of a name in a snapshot.
pub const SNAPSHOT_NAME: usize = 100;
/// Frames of a page whose trees are read.
pub const SNAPSHOT_FRAMES: usize = 16;
