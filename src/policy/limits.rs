//! Every number of the product, with its unit in the type, its reason, and who enforces it.

mod journal;
pub use journal::*;
use std::time::Duration;

/// Bytes in a kibibyte.
pub const KIB: usize = 1024;
/// Bytes in a mebibyte.
pub const MIB: usize = 1024 * KIB;

// --- The relay protocol: numbers of the contract, enforced by `relay`.

/// UTF-16 units of one frame to the relay; one more and the relay ends the whole session.
pub const FRAME_UNITS: usize = 4_194_304;
/// UTF-16 units that our own reply frames stay under, so that no escape can lift one over [`FRAME_UNITS`].
pub const REPLY_UNITS: usize = 4_000_000;
/// Bytes of an inbound frame: a 1 MiB body of control characters becomes 6.3 million characters.
pub const INBOUND_FRAME: usize = 8 * MIB;
/// Bytes of an agent's request body.
pub const REQUEST_BODY: usize = MIB;
/// UTF-16 units of a briefing.
pub const BRIEFING_UNITS: usize = 65_536;
/// UTF-16 units that an app's description is cut to.
pub const DESCRIPTION_UNITS: usize = 1_024;
/// UTF-16 units that a link's label is cut to.
pub const LABEL_UNITS: usize = 256;
/// Live links of a session.
pub const LIVE_TOKENS: usize = 50;
/// Calls in flight in a session.
pub const CALLS_IN_FLIGHT: usize = 100;
/// Pending tasks of a session, finished but unpolled ones included.
pub const PENDING_TASKS: usize = 100;
/// Bytes of a task's result as UTF-8 JSON.
pub const TASK_RESULT: usize = 65_536;
/// UTF-16 units of a task's content type.
pub const TASK_CONTENT_TYPE_UNITS: usize = 256;
/// Sockets that may wait on one session to resume it.
pub const WAITING_SOCKETS: usize = 4;
/// Upgrades of `/v1/_ws` from one address in [`UPGRADE_WINDOW`].
pub const UPGRADES: usize = 100;
/// The window of the upgrade rate limit.
pub const UPGRADE_WINDOW: Duration = Duration::from_secs(10);
/// A tool call without a reply is answered with 504.
pub const TOOL_TIMEOUT: Duration = Duration::from_secs(30);
/// The first frame on a socket must come within this, and a reply to it too.
pub const FIRST_FRAME: Duration = Duration::from_secs(10);
/// A silent app is closed and its session held; a client without a pong drops the connection.
pub const LIVENESS: Duration = Duration::from_secs(50);
/// A heartbeat is sent this long after the last inbound frame.
pub const HEARTBEAT: Duration = Duration::from_secs(25);
/// A session whose app is away is kept this long.
pub const HOLD: Duration = Duration::from_secs(24 * 3600);
/// The longest pause between two attempts to reach the relay.
pub const BACKOFF_CAP: Duration = Duration::from_secs(30);
/// Task answers kept and sent again after every reconnect.
pub const KEPT_TASK_ANSWERS: usize = 100;

// --- The two ends of the relay protocol: numbers of our own, enforced by `relay`.

/// Bytes of one frame from an app: a UTF-16 unit takes at most three in UTF-8, so that more is surely too large.
pub const FRAME_BYTES: usize = 3 * FRAME_UNITS;
/// UTF-16 units that a registration leaves free in a frame for a resume's secret and [`LIVE_TOKENS`] revoked tokens.
pub const RESUME_UNITS: usize = 16 * KIB;
/// Characters of a session's token that the app end believes; ours have 35.
pub const TOKEN: usize = 128;
/// The first pause before the relay is tried again; each further one is twice as long, up to [`BACKOFF_CAP`].
pub const BACKOFF_FIRST: Duration = Duration::from_secs(1);
/// A pause is longer or shorter by up to this many percent, so that the apps of a restarted relay do not come at once.
pub const BACKOFF_JITTER_PERCENT: u32 = 25;
/// Name, TCP, TLS and upgrade must be done within this.
pub const RELAY_CONNECT: Duration = Duration::from_secs(10);
/// Bytes of a frame whose writing takes time on a slow line, and so shows that the other end is there.
pub const SLOW_FRAME: usize = 64 * KIB;
/// Commands and replies that wait for the link's task: every call in flight, and room for the owner's commands.
pub const LINK_QUEUE: usize = 2 * CALLS_IN_FLIGHT;
/// Events that wait for the link's owner; the last [`LINK_EVENT_RESERVE`] places are kept from calls.
pub const LINK_EVENTS: usize = 2 * CALLS_IN_FLIGHT + LINK_EVENT_RESERVE;
/// Places among [`LINK_EVENTS`] that only news of the link itself may take.
pub const LINK_EVENT_RESERVE: usize = 56;
/// A link is closed, joined included, within this.
pub const LINK_CLOSE: Duration = Duration::from_millis(2_500);
/// The other end of a closed socket gets this long to hang up.
pub const CLOSE_GRACE: Duration = Duration::from_secs(1);
/// Frames that wait for an app that reads slowly: every call in flight, and replies to its own requests.
pub const OUTBOX: usize = CALLS_IN_FLIGHT + 28;
/// Sessions of one embedded relay, held ones included: each may keep a registration of a whole frame.
pub const RELAY_SESSIONS: usize = 256;
/// HTTP connections of one embedded relay; half of the usual 1,024 descriptors of a process.
pub const RELAY_CONNECTIONS: usize = 512;
/// Addresses whose upgrades are counted; idle ones are forgotten beyond it.
pub const RATED_ADDRESSES: usize = 4_096;
/// Bytes of an agent's request head. With a body of control characters it still makes a frame under [`INBOUND_FRAME`].
pub const AGENT_HEAD: usize = 64 * KIB;
/// An agent's request head, and a TLS handshake, must be whole within this.
pub const AGENT_HEAD_TIME: Duration = Duration::from_secs(10);
/// An agent's request body must be whole within this.
pub const AGENT_BODY_TIME: Duration = Duration::from_secs(60);
/// An agent or an app that takes not one byte for this long is hung up on.
pub const WRITE_STALL: Duration = Duration::from_secs(60);
/// Bytes of a refused body that are still read, so that the agent reads its 413 and not a reset connection.
pub const REFUSED_BODY: usize = 16 * MIB;
/// Seconds that an agent is told to wait for an app that is away.
pub const RETRY_AFTER: u64 = 2;
/// Expired sessions are looked for this often at least.
pub const HOLD_SWEEP: Duration = Duration::from_secs(60);
/// The embedded relay is closed, joined included, within this.
pub const RELAY_CLOSE: Duration = Duration::from_secs(3);

// --- Calls: enforced by `server::router`.

/// A call is answered within this, under the relay's [`TOOL_TIMEOUT`] with room for the way back.
pub const CALL_DEADLINE: Duration = Duration::from_secs(28);
/// The time a page gets to load, unless the agent asks for less or more.
pub const PAGE_TIMEOUT: Duration = Duration::from_secs(15);
/// The longest time an agent may ask for, in any tool: it leaves room in [`CALL_DEADLINE`] for finding out whether the
/// page hangs, and for killing it.
pub const LONGEST_TIMEOUT: Duration = Duration::from_secs(22);
/// The time an `eval` gets, unless the agent asks otherwise.
pub const EVAL_TIMEOUT: Duration = Duration::from_secs(10);
/// The time a screenshot gets, the wait for its selector included.
pub const SCREENSHOT_TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes of an eval's value as JSON, unless the agent asks for more.
pub const EVAL_VALUE: usize = 256 * KIB;
/// Bytes of an eval's value that an agent may ask for.
pub const EVAL_VALUE_MOST: usize = 3 * MIB;
/// Entries of each list of a verdict; the rest is counted.
pub const VERDICT_LIST: usize = 5;
/// Refused hosts that `/info` lists.
pub const INFO_LIST: usize = 20;
/// Characters of one line of text that a page made (an error, a title), in a reply.
pub const PAGE_TEXT: usize = 300;
/// Bytes of a picture in one part. Four thirds of it in base64 stay under [`REPLY_UNITS`]; a multiple of 3, so that
/// the base64 of the parts joined is the base64 of the file.
pub const PART: usize = 2_700_000;

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

// --- What a session may hold: enforced by `server` and `proxy::uploads`.

/// Pages open at once, reserved before the first await.
pub const PAGES: usize = 8;
/// Files an agent may keep uploaded.
pub const UPLOAD_FILES: usize = 512;
/// Bytes of all uploads.
pub const UPLOAD_BYTES: usize = 256 * MIB;
/// Bytes of the path of an upload.
pub const UPLOAD_PATH: usize = 255;
/// Bytes of the content type of an upload; it becomes a header's value.
pub const UPLOAD_CONTENT_TYPE: usize = 128;
/// Files that the receipt of an upload names; the rest is counted, and `GET /files` lists it.
pub const WRITTEN_LIST: usize = 20;
/// Entries of an uploaded archive, folders included.
pub const ARCHIVE_ENTRIES: usize = 2_048;
/// Bytes of a tar that belong to no file: two headers, a long name and padding for each entry.
pub const ARCHIVE_HEADERS: usize = ARCHIVE_ENTRIES * 2 * KIB;
/// Pictures and recordings kept.
pub const ARTIFACTS: usize = 64;
/// Bytes of all pictures and recordings kept.
pub const ARTIFACT_BYTES: usize = 256 * MIB;
/// The length of a session, unless `--minutes` says otherwise.
pub const SESSION: Duration = Duration::from_secs(240 * 60);

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

// --- Pictures: enforced by the tools' argument types.

/// Units of a colour channel by which pixels of a lossy picture of one colour may differ: JPEG and WebP round, and a
/// difference that an eye can see is larger.
pub const BLANK_TOLERANCE: u8 = 3;
/// Pixels inside the border of a region that a lossy picture blurs with what is around it: the block of both formats.
pub const BLANK_EDGE: u32 = 16;
/// Units of a colour channel by which such pixels may differ: what WebP carries over a border at its default quality,
/// and twice that.
pub const BLANK_EDGE_TOLERANCE: u8 = 10;
/// CSS pixels of a viewport's side, least and most.
pub const VIEWPORT_SIDE: std::ops::RangeInclusive<u32> = 16..=8_192;
/// The device scale factor, least and most.
pub const SCALE: std::ops::RangeInclusive<f64> = 0.1..=4.0;
/// Pixels of one picture.
pub const PICTURE_PIXELS: u64 = 64_000_000;
/// The viewport of a page whose agent did not say: CSS pixels.
pub const VIEWPORT: (u32, u32) = (1_280, 720);
/// Device pixels of one side of a tile of a full page: what any GPU can texture.
pub const TILE_SIDE: u32 = 4_096;

// --- Chromium: enforced by `browser`.

/// Chromium answers its first command within this, or the start has failed.
pub const BROWSER_START: Duration = Duration::from_secs(20);
/// A CDP command is answered within this, unless its caller has a shorter deadline.
pub const COMMAND: Duration = Duration::from_secs(25);
/// Bytes of one CDP message; a larger one ends the connection.
pub const CDP_MESSAGE: usize = 512 * MIB;
/// A browser that was sent to loopback is seen to ask the proxy for it within this, or the start has failed.
pub const CANARY: Duration = Duration::from_secs(5);
/// One rung of the ladder is proven or given up within this.
pub const RUNG: Duration = Duration::from_secs(25);
/// A verdict of the probe is believed this long.
pub const PROBE_CACHE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Pauses before a lost browser is started again; after the last the session ends.
pub const BROWSER_RESTARTS: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(16),
];
/// A call waits this long for a browser that is being started again.
pub const BROWSER_WAIT: Duration = Duration::from_secs(12);
/// The end of Chromium's standard error that is kept for the owner, bytes.
pub const BROWSER_LOG: usize = 64 * KIB;
/// Everything is ended in order within this.
pub const SHUTDOWN: Duration = Duration::from_secs(5);

// --- What keeps the owner's machine usable.

mod machine;
pub use self::machine::*;

// --- The proxy: enforced by `proxy`.

/// Bytes of a request head.
pub const PROXY_HEAD: usize = 16 * KIB;
/// A head must be whole within this.
pub const PROXY_HEAD_TIME: Duration = Duration::from_secs(10);
/// Bytes of the head of a site's answer to a plain request: what sites send, cookies included.
pub const UPSTREAM_HEAD: usize = 64 * KIB;
/// Client connections open at once; one more is closed unheard. Over [`TUNNELS`], so that a full house can still be told
/// so with a 503.
pub const PROXY_CONNECTIONS: usize = 768;
/// Lines of the audit log that may wait to be written.
pub const PROXY_EVENTS: usize = 1_024;
/// Tunnels open at once.
pub const TUNNELS: usize = 512;
/// Tunnels of one browser context.
pub const TUNNELS_PER_CONTEXT: usize = 64;
/// A tunnel that carries nothing for this long is closed.
pub const TUNNEL_IDLE: Duration = Duration::from_secs(600);
/// Bytes that one direction of a tunnel reads at once; held only while bytes flow, so an idle tunnel holds none.
pub const TUNNEL_BUFFER: usize = 64 * KIB;
/// Bytes of a ClientHello record.
pub const CLIENT_HELLO: usize = 16 * KIB;
/// A ClientHello must be whole within this.
pub const CLIENT_HELLO_TIME: Duration = Duration::from_secs(5);
/// Answers of the name server that are looked at.
pub const RESOLVED_ADDRESSES: usize = 16;
/// A name is resolved within this, all questions included.
pub const RESOLVE_TIME: Duration = Duration::from_secs(5);
/// One question to one name server is answered within this, or asked once more.
pub const RESOLVE_ATTEMPT: Duration = Duration::from_secs(2);
/// Once one address family has answered, the other gets this long: some servers never answer for IPv6.
pub const RESOLVE_GRACE: Duration = Duration::from_millis(500);
/// Answers of name servers kept for their time to live.
pub const RESOLVER_CACHE: u64 = 256;
/// The list of the machine's own addresses is read again when it is older than this.
pub const OWN_ADDRESSES_AGE: Duration = Duration::from_secs(1);
/// Vetted addresses that are dialled, in order.
pub const DIALLED_ADDRESSES: usize = 4;
/// One address gets this long to connect.
pub const DIAL_TIME: Duration = Duration::from_secs(5);
/// Different refused hosts remembered for a browser context, and for the session; more are counted.
pub const REFUSED_HOSTS: usize = 64;
/// Characters of a refused target that are kept: any host name with its port, and no more of what a page made up.
pub const REFUSED_TARGET: usize = 260;
/// Bytes of a host name in its wire form.
pub const HOST: usize = 253;
/// Bytes of one label of a host name.
pub const HOST_LABEL: usize = 63;

const _: () = {
    assert!(PART.is_multiple_of(3) && PART / 3 * 4 < REPLY_UNITS - 64 * KIB);
    assert!(REPLY_UNITS < FRAME_UNITS);
    assert!(CALL_DEADLINE.as_secs() < TOOL_TIMEOUT.as_secs());
    assert!(LONGEST_TIMEOUT.as_secs() < CALL_DEADLINE.as_secs());
    assert!(HEARTBEAT.as_secs() < LIVENESS.as_secs());
    assert!(BRIEFING_UNITS * 6 + RESUME_UNITS < FRAME_UNITS);
    assert!(TASK_RESULT + RESUME_UNITS < FRAME_UNITS);
    assert!((LIVE_TOKENS + 1) * (TOKEN + 3) + 2 * KIB < RESUME_UNITS);
    assert!(6 * REQUEST_BODY + 6 * AGENT_HEAD + KIB < INBOUND_FRAME);
    assert!(CLOSE_GRACE.as_millis() < LINK_CLOSE.as_millis());
    assert!(LINK_CLOSE.as_millis() < SHUTDOWN.as_millis());
    assert!(EVAL_VALUE_MOST < REPLY_UNITS - 256 * KIB);
    assert!(TUNNELS_PER_CONTEXT < TUNNELS && TUNNELS < PROXY_CONNECTIONS);
    assert!(DIALLED_ADDRESSES <= RESOLVED_ADDRESSES);
    assert!(REQUESTS_WAITING * REQUEST_JOINED < PENDING_TASKS);
    assert!(REQUESTS_WAITING <= REQUESTS_IN_WINDOW && REQUESTS_WAITING <= REQUESTS_LISTED);
    assert!(RESOLVE_ATTEMPT.as_millis() * 2 < RESOLVE_TIME.as_millis());
    assert!(HOST + 6 <= REFUSED_TARGET);
    assert!((LOG_LIST + 8) * LOG_TEXT * 12 < LOG_LINE);
};

// --- The install and its self-test, enforced by `owner`.

/// The whole self-test: several browsers in turn, each with [`RUNG`] to draw in.
pub const SELF_TEST: Duration = Duration::from_secs(180);
/// Lines of Chromium's log that a failed self-test shows: an error and what led to it.
pub const INSTALL_LOG_LINES: usize = 15;
