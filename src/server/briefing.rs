//! The briefing, `agents.md`: all that a language model with nothing but `curl` needs to know, in at most 6 KB.

use crate::policy::limits::{
    ARTIFACTS, CALL_DEADLINE, EVAL_VALUE, EVAL_VALUE_MOST, KIB, LONGEST_TIMEOUT, MIB, PAGES,
    PICTURE_PIXELS, REQUEST_BODY, UPLOAD_BYTES, UPLOAD_FILES, VERDICT_LIST, VIEWPORT_SIDE,
};
use crate::proxy::uploads::ORIGIN;

const TEMPLATE: &str = include_str!("briefing.md");

/// What differs from session to session. Both are sentences of ours; nothing that came from outside goes in here.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Which GPU there is, and what was proven on it.
    pub gpu: &'a str,
    /// When the session ends.
    pub end: &'a str,
}

/// The briefing of a session. Limits come from the code that keeps them, so that the text cannot drift from it.
pub fn briefing(facts: &Facts<'_>) -> String {
    let limits = [
        ("body_kib", REQUEST_BODY / KIB),
        ("list", VERDICT_LIST),
        ("pages", PAGES),
        ("upload_files", UPLOAD_FILES),
        ("upload_mib", UPLOAD_BYTES / MIB),
        ("artifacts", ARTIFACTS),
        ("value_kib", EVAL_VALUE / KIB),
        ("value_most_kib", EVAL_VALUE_MOST / KIB),
    ];
    let others = [
        ("gpu", facts.gpu.to_owned()),
        ("end", facts.end.to_owned()),
        ("origin", ORIGIN.to_owned()),
        ("longest_ms", LONGEST_TIMEOUT.as_millis().to_string()),
        ("side_min", VIEWPORT_SIDE.start().to_string()),
        ("side_max", VIEWPORT_SIDE.end().to_string()),
        ("megapixels", (PICTURE_PIXELS / 1_000_000).to_string()),
        ("deadline", CALL_DEADLINE.as_secs().to_string()),
    ];
    let limits = limits.map(|(name, limit)| (name, limit.to_string()));
    limits
        .into_iter()
        .chain(others)
        .fold(TEMPLATE.to_owned(), |text, (name, value)| {
            text.replace(&format!("{{{{{name}}}}}"), &value)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::answer::Code;

    fn example() -> String {
        briefing(&Facts {
            gpu: "The GPU is real hardware (NVIDIA GeForce RTX 4090, Vulkan); WebGL2 and WebGPU are proven by pixels.",
            end: "The session ends 2026-11-30 18:00 UTC.",
        })
    }

    #[test]
    fn it_fits_6_kb_and_begins_with_the_marker() {
        let text = example();
        assert!(text.len() <= 6 * KIB, "{} bytes", text.len());
        assert!(text.starts_with("<!-- as:contract-v1 -->\n"));
    }

    #[test]
    fn no_placeholder_is_left_and_each_fact_is_in() {
        let text = example();
        assert!(!text.contains("{{"));
        for fact in [
            "RTX 4090",
            "18:00 UTC",
            ORIGIN,
            "8 pages",
            "512 files, 256 MiB",
            "16 to 8192",
        ] {
            assert!(text.contains(fact), "{fact}");
        }
    }

    #[test]
    fn each_code_of_a_refusal_is_explained() {
        let text = example();
        for code in Code::ALL {
            let name = code.wire().1;
            assert!(text.contains(&format!("`{name}`")), "{name}");
        }
    }
}
