//! What an agent must know to call any app, for briefings that do not say it themselves.

use bytes::Bytes;

const MARKER: &str = "<!-- as:contract-v1 -->";

/// Begins with the marker's line and ends with a rule right before the app's own text.
const PREAMBLE: &str = "<!-- as:contract-v1 -->
# A live app behind this link

This page belongs to an app that is running now. Do not only read it out: use the app's tools for what you are asked to do.

- `$BASE` is this page's address without `/agents.md`. Whoever has it can call the app, so keep it to yourself.
- First read `$BASE/tools.json`: each tool's method, path, description and input schema.
- Call a tool over HTTP: `<METHOD> $BASE<path>`, with a JSON body where it takes one.
- `202 {\"taskId\"}` means that the work goes on: poll `$BASE/_as_tasks/<taskId>` until the status is not 202. The final \
answer is given once.
- Errors are `{\"error\":{\"code\",\"message\"}}`. 401: the link was revoked. 404: no such tool. 413: the body is over \
1 MiB. 429: too many calls at once. 503: the app is away, try again in a few seconds. 504: the tool took over 30 s.

---
";

/// The briefing as agents get it.
pub(super) fn served(briefing: &str) -> Bytes {
    if briefing.contains(MARKER) || briefing.contains("tools.json") {
        return Bytes::copy_from_slice(briefing.as_bytes());
    }
    Bytes::from([PREAMBLE, briefing].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_briefing_with_neither_marker_gets_the_preamble() {
        for whole in ["see tools.json", "<!-- as:contract-v1 -->\nmine"] {
            assert_eq!(served(whole), whole);
        }
        let served = served("# mine");
        assert!(served.starts_with(MARKER.as_bytes()) && served.ends_with(b"---\n# mine"));
    }
}
