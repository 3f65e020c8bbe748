//! Addresses that no page may reach, in every way that somebody understands.

/// Every way to write loopback or the metadata service that browsers, resolvers or socket libraries understand.
pub const SPELLINGS: [&str; 22] = [
    "127.0.0.1",
    "127.0.0.1.",
    "127.0.0.1..",
    "127.1",
    "127.0.1",
    "0x7f.1",
    "0x7f000001",
    "2130706433",
    "017700000001",
    "0177.0.0.1",
    "127.0.0.0x1",
    "0",
    "0.0.0.0",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:0:0:1]",
    "localhost",
    "LocalHost.",
    "x.localhost",
    "169.254.169.254",
];
