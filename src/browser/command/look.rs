//! Commands that look into a page: bodies of requests, scripts that run before the page's own, its heap.

use serde::{Deserialize, Serialize};

use super::{Command, is_absent};

commands! {
    /// The body of a request that is done.
    GetResponseBody<'a> = "Network.getResponseBody" -> ResponseBody {
        /// The request.
        request_id: &'a str,
    }
}

/// `Network.getResponseBody`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResponseBody {
    /// The body.
    pub body: String,
    /// Whether it is base64: it is no text.
    #[serde(default)]
    pub base64_encoded: bool,
}
