//! A ring bounded in entries and in bytes, with a clock that ticks at every change: a reader that remembers the clock
//! asks for what changed since.

use std::collections::VecDeque;

/// Entries in the order they came, numbered from 1.
#[derive(Debug)]
pub struct Ring<T> {
    kept: VecDeque<Kept<T>>,
    /// Entries that made room for newer ones.
    dropped: u64,
    clock: u64,
    bytes: usize,
    most: usize,
    most_bytes: usize,
}

#[derive(Debug)]
struct Kept<T> {
    entry: T,
    bytes: usize,
    /// The clock at its last change.
    changed: u64,
}

/// An entry as a reader sees it.
#[derive(Debug)]
pub struct Seen<'a, T> {
    /// Its number, for good.
    pub number: u64,
    /// The clock at its last change.
    pub changed: u64,
    /// The entry.
    pub entry: &'a T,
}

impl<T> Ring<T> {
    /// An empty ring that holds so many entries and bytes.
    pub fn new(most: usize, most_bytes: usize) -> Self {
        Self {
            kept: VecDeque::new(),
            dropped: 0,
            clock: 0,
            bytes: 0,
            most,
            most_bytes,
        }
    }

    /// Adds an entry that takes so many bytes, and gives its number. [`Ring::overflow`] then makes room.
    pub fn push(&mut self, entry: T, bytes: usize) -> u64 {
        self.clock += 1;
        self.bytes += bytes;
        self.kept.push_back(Kept {
            entry,
            bytes,
            changed: self.clock,
        });
        self.next_number() - 1
    }

    /// Takes the oldest entry out while there is too much; at least one stays.
    pub fn overflow(&mut self) -> Option<T> {
        let over = self.kept.len() > self.most || self.bytes > self.most_bytes;
        if !over || self.kept.len() == 1 {
            return None;
        }
        let oldest = self.kept.pop_front()?;
        self.bytes -= oldest.bytes;
        self.dropped += 1;
        Some(oldest.entry)
    }

    /// Changes an entry that is still there; `change` gives the bytes that it takes from now on.
    pub fn change(&mut self, number: u64, change: impl FnOnce(&mut T) -> usize) {
        let clock = self.clock + 1;
        let index = self.index(number);
        if let Some(kept) = index.and_then(|index| self.kept.get_mut(index)) {
            self.bytes -= kept.bytes;
            kept.bytes = change(&mut kept.entry);
            self.bytes += kept.bytes;
            kept.changed = clock;
            self.clock = clock;
        }
    }

    /// An entry that is still there.
    pub fn get(&self, number: u64) -> Option<&T> {
        Some(&self.kept.get(self.index(number)?)?.entry)
    }

    /// The entries in the order they came.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Seen<'_, T>> {
        let first = self.dropped + 1;
        self.kept
            .iter()
            .enumerate()
            .map(move |(index, kept)| seen((first + index as u64, kept)))
    }

    /// The number of the entry that comes next.
    pub fn next_number(&self) -> u64 {
        self.dropped + self.kept.len() as u64 + 1
    }

    /// Entries that made room for newer ones.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn index(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.dropped + 1)?).ok()
    }
}

fn seen<T>((number, kept): (u64, &Kept<T>)) -> Seen<'_, T> {
    Seen {
        number,
        changed: kept.changed,
        entry: &kept.entry,
    }
}

/// Entries picked for a reply, and how many more there are.
#[derive(Debug)]
pub struct Picked<'a, T> {
    /// At most as many as were asked for.
    pub entries: Vec<Seen<'a, T>>,
    /// Entries that fit the question and are not among them.
    pub left_out: usize,
    /// Where the next question goes on.
    pub cursor: u64,
}

impl<T> Ring<T> {
    /// The entries that changed after a cursor and fit. A reader with a cursor gets the oldest changes first, and goes
    /// on behind them; one without gets the newest of those that are numbered `from` or higher.
    pub fn pick(
        &self,
        since: Option<u64>,
        from: u64,
        limit: usize,
        fits: impl Fn(&T) -> bool,
    ) -> Picked<'_, T> {
        let fitting = |seen: &Seen<'_, T>| {
            let new = since.map_or(seen.number >= from, |since| seen.changed > since);
            new && fits(seen.entry)
        };
        let mut entries: Vec<_> = self.iter().filter(fitting).collect();
        let left_out = entries.len().saturating_sub(limit);
        let mut cursor = self.clock;
        if since.is_some() {
            entries.sort_by_key(|seen| seen.changed);
            entries.truncate(limit);
            if left_out > 0 {
                cursor = entries.last().map_or(cursor, |seen| seen.changed);
            }
        } else {
            entries.drain(..left_out);
        }
        Picked {
            entries,
            left_out,
            cursor,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pushed(ring: &mut Ring<u32>, entry: u32, bytes: usize) -> u64 {
        let number = ring.push(entry, bytes);
        while ring.overflow().is_some() {}
        number
    }

    #[test]
    fn the_oldest_makes_room_and_is_counted() {
        let mut ring = Ring::new(3, 100);
        for n in 1..=5 {
            assert_eq!(pushed(&mut ring, n, 10), u64::from(n));
        }
        let numbers: Vec<_> = ring.iter().map(|seen| seen.number).collect();
        assert_eq!((numbers, ring.dropped()), (vec![3, 4, 5], 2));
        pushed(&mut ring, 6, 95);
        assert_eq!(
            (ring.get(5), ring.get(6), ring.dropped()),
            (None, Some(&6), 5)
        );
        pushed(&mut ring, 7, 1_000);
        assert_eq!(ring.iter().count(), 1, "one that is too large stays alone");
    }

    #[test]
    fn a_reader_with_a_cursor_misses_nothing_and_sees_changes() {
        let mut ring = Ring::new(10, 100);
        for n in 1..=6 {
            pushed(&mut ring, n, 1);
        }
        let first = ring.pick(Some(0), 0, 4, |_| true);
        assert_eq!(
            (first.entries.len(), first.left_out, first.cursor),
            (4, 2, 4)
        );
        let rest = ring.pick(Some(first.cursor), 0, 4, |_| true);
        assert_eq!((rest.entries.len(), rest.left_out, rest.cursor), (2, 0, 6));
        let cursor = rest.cursor;
        ring.change(2, |entry| {
            *entry = 20;
            1
        });
        let changed = ring.pick(Some(cursor), 0, 4, |_| true);
        assert_eq!(changed.entries[0].entry, &20);
        let newest = ring.pick(None, 0, 2, |n| *n < 20);
        let entries: Vec<_> = newest.entries.iter().map(|seen| *seen.entry).collect();
        assert_eq!((entries, newest.left_out), (vec![5, 6], 3));
    }

    proptest! {
        #[test]
        fn it_never_holds_more_than_it_may(steps in proptest::collection::vec((0_usize..60, any::<bool>()), 0..200)) {
            let mut ring = Ring::new(8, 100);
            for (bytes, change) in steps {
                if change {
                    ring.change(ring.dropped() + 1, |_| bytes);
                } else {
                    ring.push(0, bytes);
                }
                while ring.overflow().is_some() {}
                prop_assert!(ring.kept.len() <= 8 && (ring.bytes <= 100 || ring.kept.len() == 1));
                prop_assert_eq!(ring.bytes, ring.kept.iter().map(|kept| kept.bytes).sum::<usize>());
            }
        }
    }
}
