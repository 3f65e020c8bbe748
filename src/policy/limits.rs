//! Every number of the product, with its unit in the type, its reason, and who enforces it.

mod acting;
mod journal;
mod owner;
pub use self::acting::*;
pub use self::journal::*;
pub use self::owner::*;
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

/// The whole self-test of an install, enforced by `owner`: several browsers in turn, each with [`RUNG`] to draw in.
pub const SELF_TEST: Duration = Duration::from_secs(180);
