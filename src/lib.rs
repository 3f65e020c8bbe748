//! gpu-browser lends the GPU of a person's own machine to a cloud agent.
//!
//! # Four stories, in the order of a request
//!
//! 1. **A call.** `relay::link` reads a frame and checks its size, kind and JSON; `server::router` finds the tool and
//!    starts it under a deadline; the tool parses its arguments once into a type and works on a `browser::page`; the
//!    answer goes back up, and only the router turns answers into frames, cuts and measures them.
//! 2. **A request of Chromium.** `proxy` takes a connection with its permit; `request` parses it and checks the
//!    password; `gate` asks the allowlist (a `Permit`), the resolver, and the address tables (`VettedAddr`), together a
//!    `Route`; `dial` accepts nothing else; `tunnel` carries bytes, owned and joined.
//! 3. **A start.** `server::launch` tries Chromium's flag sets from the best to the last, each in a network namespace
//!    of its own, and believes pixels alone.
//! 4. **An install.** `install::prepare` makes a plan of actions, the owner agrees, and each action is done between two
//!    lines of a journal; a self-test proves the whole.
//!
//! # Floors
//!
//! `owner` uses `server`; `server` uses `browser`, `relay` and `proxy`; those use `policy`; all use `place`. `install`
//! uses `place` alone and never meets `server`. A room uses
//! only rooms below it, and `tests/floors.rs` keeps it so. `browser` knows no proxy and `relay` knows no tools.

pub mod browser;
pub mod install;
pub mod owner;
pub mod place;
pub mod policy;
pub mod proxy;
pub mod relay;
pub mod server;
