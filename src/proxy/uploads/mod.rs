//! The uploads host: files that the agent uploaded, held in memory and served to its pages.

pub mod store;

/// The origin that uploads are served at; matched before the resolver, so the name never goes to DNS.
pub const ORIGIN: &str = "https://uploads.gpu-browser.internal";
/// The host name of [`ORIGIN`].
pub const HOST: &str = "uploads.gpu-browser.internal";
