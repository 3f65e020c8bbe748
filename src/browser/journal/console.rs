//! The console of a page: equal lines are one entry with a count, wherever between them others came.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use super::line::{Level, Line};
use super::ring::{Picked, Ring};
use crate::policy::limits::{CONSOLE_BYTES, CONSOLE_LINES};

/// Bytes of an entry beside its texts.
const ENTRY: usize = 128;

/// A line and how often it came.
#[derive(Debug)]
pub struct Entry {
    /// The line as it came first.
    pub line: Line,
    /// How often.
    pub count: u64,
    /// When it came last, milliseconds of the epoch.
    pub last: f64,
    hash: u64,
}

/// Which lines are wanted.
#[derive(Debug, Default)]
pub struct Wanted {
    /// This level or a graver one.
    pub level: Level,
    /// Lines with this text, in lower case.
    pub find: Option<String>,
}

/// The lines of a page.
#[derive(Debug)]
pub struct Console {
    ring: Ring<Entry>,
    /// Entries of the document that is shown, by the hash of their lines; the seed keeps pages from making equal ones.
    known: HashMap<u64, u64>,
    seed: RandomState,
    /// The first entry of the document that is shown.
    from: u64,
}

impl Default for Console {
    fn default() -> Self {
        Self {
            ring: Ring::new(CONSOLE_LINES, CONSOLE_BYTES),
            known: HashMap::new(),
            seed: RandomState::new(),
            from: 0,
        }
    }
}

impl Console {
    /// Adds a line, to its equal where there is one.
    pub fn add(&mut self, line: Line) {
        let hash = self.seed.hash_one((line.level, &line.text, &line.place));
        if let Some(number) = self.known.get(&hash).copied()
            && let Some(entry) = self.ring.get(number)
            && entry.line.is_equal(&line)
        {
            let bytes = weight(&entry.line);
            self.ring.change(number, |entry| {
                entry.count += 1;
                entry.last = line.time;
                bytes
            });
            return;
        }
        let bytes = weight(&line);
        let entry = Entry {
            last: line.time,
            line,
            count: 1,
            hash,
        };
        let number = self.ring.push(entry, bytes);
        self.known.insert(hash, number);
        while let Some(old) = self.ring.overflow() {
            // Where its hash has become another's, that one merely gets a second entry.
            self.known.remove(&old.hash);
        }
    }

    /// Lines of another document are other lines.
    pub(super) fn navigated(&mut self) {
        self.known.clear();
        self.from = self.ring.next_number();
    }

    /// The lines since a cursor, or of the document that is shown.
    pub fn pick(&self, since: Option<u64>, wanted: &Wanted, limit: usize) -> Picked<'_, Entry> {
        self.ring.pick(since, self.from, limit, |entry| {
            entry.line.level >= wanted.level
                && wanted
                    .find
                    .as_ref()
                    .is_none_or(|find| entry.line.holds(find))
        })
    }

    /// Entries that made room for newer ones.
    pub fn dropped(&self) -> u64 {
        self.ring.dropped()
    }
}

fn weight(line: &Line) -> usize {
    let texts = [line.place.as_ref(), line.stack.as_ref()];
    let rest: usize = texts.into_iter().flatten().map(String::len).sum();
    ENTRY + line.text.len() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(level: Level, text: &str) -> Line {
        Line {
            level,
            text: text.to_owned(),
            place: None,
            stack: None,
            time: 0.0,
        }
    }

    fn read(
        console: &Console,
        since: Option<u64>,
        level: Level,
        find: Option<&str>,
    ) -> Vec<String> {
        let wanted = Wanted {
            level,
            find: find.map(str::to_owned),
        };
        let picked = console.pick(since, &wanted, 100);
        let seen = picked.entries.iter();
        seen.map(|seen| format!("{} x{}", seen.entry.line.text, seen.entry.count))
            .collect()
    }

    #[test]
    fn equal_lines_are_one_whatever_comes_between() {
        let mut console = Console::default();
        for _ in 0..214 {
            console.add(line(Level::Error, "broken"));
            console.add(line(Level::Log, "frame"));
            console.add(line(Level::Warning, "broken"));
        }
        let all = read(&console, None, Level::Debug, None);
        assert_eq!(all, ["broken x214", "frame x214", "broken x214"]);
        assert_eq!(read(&console, None, Level::Error, None), ["broken x214"]);
        assert_eq!(
            read(&console, None, Level::Debug, Some("fra")),
            ["frame x214"]
        );
    }

    #[test]
    fn another_document_begins_anew_and_a_cursor_reaches_back() {
        let mut console = Console::default();
        console.add(line(Level::Log, "one"));
        console.navigated();
        assert!(read(&console, None, Level::Debug, None).is_empty());
        console.add(line(Level::Log, "one"));
        assert_eq!(read(&console, None, Level::Debug, None), ["one x1"]);
        assert_eq!(read(&console, Some(0), Level::Debug, None).len(), 2);
    }

    #[test]
    fn many_different_lines_leave_a_bounded_ring_and_a_bounded_index() {
        let mut console = Console::default();
        for n in 0..CONSOLE_LINES * 3 {
            console.add(line(Level::Log, &n.to_string()));
        }
        assert_eq!(console.dropped(), 2 * CONSOLE_LINES as u64);
        assert_eq!(console.known.len(), CONSOLE_LINES);
    }
}
