//! The numbers that keep the owner's machine usable: enforced by `server::guard`.

use std::time::Duration;

use super::{CALL_DEADLINE, MIB};

/// Chromium's processes are looked at this often: the owner's machine has room for what a page takes meanwhile.
pub const GUARD_LOOK: Duration = Duration::from_secs(2);
/// Bytes of memory that Chromium needs at least: with one plain page it takes less than half of it.
pub const MEMORY_LEAST: u64 = 512 * MIB as u64;
/// Bytes of memory that Chromium may take at least where the owner has set no bound.
pub const MEMORY_USUAL_LEAST: u64 = 1024 * MIB as u64;
/// Without a bound of the owner's, Chromium gets the machine's memory divided by this.
pub const MEMORY_PART: u64 = 2;
/// A renderer gets Chromium's memory divided by this.
pub const RENDERER_PART: u64 = 2;
/// The page of a renderer that was killed is known within this.
pub const KILL_SEEN: Duration = Duration::from_secs(2);
/// A page that no call has named for this long may be frozen.
pub const FREEZE_AFTER: Duration = Duration::from_secs(120);
/// Idle pages are asked this often how busy they are.
pub const FREEZE_LOOK: Duration = Duration::from_secs(15);
/// The part of its time that an idle page may work: what a clock or a poll takes, and no animation does.
pub const FREEZE_BUSY: f64 = 0.2;
/// An idle page that has not said for this long how busy it is hangs: longer than a call waits, since nobody does.
pub const FREEZE_ANSWER: Duration = Duration::from_secs(10);
/// Deaths of the GPU process in one browser's life; Chromium itself gives up hardware after as many.
pub const GPU_DEATHS: u32 = 3;
/// A session without a call for this long says so to its owner.
pub const IDLE_NOTICE: Duration = Duration::from_secs(3600);
/// Lines of Chromium's log that the end of a session quotes.
pub const LOG_QUOTED: usize = 10;

const _: () = {
    assert!(MEMORY_LEAST <= MEMORY_USUAL_LEAST);
    // A call is never frozen under its own feet.
    assert!(FREEZE_AFTER.as_secs() > CALL_DEADLINE.as_secs() + FREEZE_LOOK.as_secs());
};
