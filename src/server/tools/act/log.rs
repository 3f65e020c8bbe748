//! The last actions of a session, for `GET /actions`: of bounded size, whatever an agent sends.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};

use crate::policy::limits::{ACTION_LOG, ACTION_LOG_BYTES, ACTION_LOG_LIST, ACTION_LOG_TEXT};

/// A ring of actions; the oldest go first.
#[derive(Debug, Default)]
pub(in crate::server) struct ActionLog(Mutex<Ring>);

#[derive(Debug, Default)]
struct Ring {
    entries: VecDeque<(usize, Value)>,
    bytes: usize,
    count: u64,
}

impl ActionLog {
    /// Writes an action down: its page, its fields and what came of it, cut where they are long.
    pub(super) fn add(&self, page: &str, fields: &Map<String, Value>, outcome: &Value) {
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ring.count += 1;
        let mut entry = json!({ "n": ring.count, "page": page });
        entry["did"] = cut(&Value::Object(fields.clone()));
        entry["came"] = cut(outcome);
        ring.push(entry);
    }

    /// All of it.
    pub(in crate::server) fn list(&self) -> Value {
        let ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entries: Vec<&Value> = ring.entries.iter().map(|(_, entry)| entry).collect();
        let dropped = ring.count - entries.len() as u64;
        json!({ "count": ring.count, "dropped": dropped, "actions": entries })
    }
}

impl Ring {
    fn push(&mut self, entry: Value) {
        let size = entry.to_string().len() + 1;
        self.bytes += size;
        self.entries.push_back((size, entry));
        while self.entries.len() > ACTION_LOG
            || (self.bytes > ACTION_LOG_BYTES && self.entries.len() > 1)
        {
            self.bytes -= self.entries.pop_front().map_or(0, |(size, _)| size);
        }
    }
}

/// A value with its long texts and lists cut, and the cut named.
fn cut(value: &Value) -> Value {
    match value {
        Value::String(text) => cut_text(text).into(),
        Value::Array(list) => {
            let mut kept: Vec<Value> = list.iter().take(ACTION_LOG_LIST).map(cut).collect();
            if let Some(more) = list.len().checked_sub(ACTION_LOG_LIST).filter(|n| *n > 0) {
                kept.push(format!("… {more} more").into());
            }
            kept.into()
        }
        Value::Object(members) => {
            let kept = members.iter().take(4 * ACTION_LOG_LIST);
            kept.map(|(name, value)| (cut_text(name), cut(value)))
                .collect::<Map<_, _>>()
                .into()
        }
        other => other.clone(),
    }
}

fn cut_text(text: &str) -> String {
    match text.char_indices().nth(ACTION_LOG_TEXT) {
        Some((end, _)) => format!(
            "{}… {} more characters",
            &text[..end],
            text[end..].chars().count()
        ),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fields(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    #[test]
    fn the_last_256_are_kept_and_the_rest_is_counted() {
        let log = ActionLog::default();
        for n in 0..300 {
            let did = fields(json!({"action": "click", "at": [n, n]}));
            log.add("p1", &did, &json!({"ms": 1}));
        }
        let listed = log.list();
        assert_eq!(
            (&listed["count"], &listed["dropped"]),
            (&json!(300), &json!(44))
        );
        let actions = listed["actions"].as_array().unwrap();
        assert_eq!(actions.len(), 256);
        assert_eq!(
            (&actions[0]["n"], &actions[255]["n"]),
            (&json!(45), &json!(300))
        );
    }

    #[test]
    fn long_texts_and_lists_are_cut_and_the_cut_is_named() {
        let log = ActionLog::default();
        let did = fields(json!({"text": "ü".repeat(1_000), "paths": vec!["a"; 20]}));
        log.add("p1", &did, &Value::Null);
        let did = &log.list()["actions"][0]["did"];
        assert_eq!(
            did["text"],
            format!("{}… 880 more characters", "ü".repeat(120))
        );
        let paths = did["paths"].as_array().unwrap();
        assert_eq!((paths.len(), &paths[8]), (9, &json!("… 12 more")));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(6))]
        #[test]
        fn it_never_passes_its_bytes(sizes in proptest::collection::vec(0usize..2_000, 1..300)) {
            let log = ActionLog::default();
            for size in sizes {
                let names: Map<String, Value> = (0..size / 100)
                    .map(|n| (format!("{n}{}", "\u{1}".repeat(size / 10)), json!("\u{1}".repeat(size))))
                    .collect();
                log.add("p1", &names, &json!({"x": "y".repeat(size)}));
                prop_assert!(log.list().to_string().len() <= ACTION_LOG_BYTES + 128);
            }
        }
    }
}
