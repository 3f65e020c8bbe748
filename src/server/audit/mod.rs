//! The audit log: a file of JSON lines of what was asked, allowed, refused and reached in a session, and no content.
//!
//! Whoever writes never waits: lines queue, one thread writes them, and what the queue does not take is counted and the count
//! written. A log that cannot be written is told once, and the session goes on. The thread is in its owner's `JoinSet`.

mod file;
mod record;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use time::OffsetDateTime;
use tokio::sync::mpsc;

pub use self::file::{AuditError, BASE, Rotation, names};
pub use self::record::{Line, Record, place_of};

use self::file::LogFile;
use crate::policy::limits::LOG_QUEUE;

/// The way to the log; clones lead to the same one.
#[derive(Debug, Clone, Default)]
pub struct Audit {
    /// Nothing where there is no log.
    queue: Option<mpsc::Sender<Order>>,
    dropped: Arc<AtomicU64>,
}

/// What the writer is told.
#[derive(Debug)]
enum Order {
    Write(Box<Line>),
    Close,
}

/// The one that writes; it has a thread for itself, since a disk makes it wait.
#[derive(Debug)]
pub struct Writer {
    orders: mpsc::Receiver<Order>,
    dropped: Arc<AtomicU64>,
    file: LogFile,
}

impl Audit {
    /// Opens the log in a folder, which is made where it is missing.
    ///
    /// # Errors
    /// Where the folder or its file cannot be had.
    pub fn open(folder: &Path) -> Result<(Self, Writer), AuditError> {
        Self::open_with(folder, Rotation::default())
    }

    fn open_with(folder: &Path, rotation: Rotation) -> Result<(Self, Writer), AuditError> {
        let file = LogFile::open(folder, rotation)?;
        let (queue, orders) = mpsc::channel(LOG_QUEUE);
        let dropped = Arc::<AtomicU64>::default();
        let audit = Self {
            queue: Some(queue),
            dropped: Arc::clone(&dropped),
        };
        let writer = Writer {
            orders,
            dropped,
            file,
        };
        Ok((audit, writer))
    }

    /// Writes a record with the time it is now. A full queue drops it.
    pub fn write(&self, record: Record) {
        let Some(queue) = &self.queue else { return };
        let line = Line {
            t: OffsetDateTime::now_utc(),
            record,
        };
        if queue.try_send(Order::Write(Box::new(line))).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Ends the writer once all that waits is written. What is written later is dropped.
    pub async fn close(&self) {
        if let Some(queue) = &self.queue {
            let _ = queue.send(Order::Close).await;
        }
    }
}

impl Writer {
    /// Writes until the log is closed. The first failure is told; a later line may get through again.
    pub fn run(mut self, tell: impl FnOnce(AuditError)) {
        let mut tell = Some(tell);
        while let Some(Order::Write(line)) = self.orders.blocking_recv() {
            let count = self.dropped.swap(0, Ordering::Relaxed);
            let lost = (count > 0).then_some(Line {
                t: line.t,
                record: Record::Dropped { count },
            });
            for line in lost.into_iter().chain([*line]) {
                if let Err(error) = self.file.append(&line.to_json()) {
                    tracing::warn!(%error, "the log cannot be written");
                    if let Some(tell) = tell.take() {
                        tell(error);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn call(ms: u64) -> Record {
        Record::Call {
            tool: "GET /info".into(),
            page: None,
            status: 200,
            ms,
        }
    }

    fn lines(folder: &Path) -> Vec<Line> {
        let text = fs::read_to_string(folder.join(BASE)).unwrap();
        text.lines()
            .map(|line| Line::parse(line).unwrap())
            .collect()
    }

    #[tokio::test]
    async fn what_the_queue_does_not_take_is_counted_and_the_count_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let (audit, writer) = Audit::open(folder.path()).unwrap();
        let all = u64::try_from(LOG_QUEUE).unwrap() + 7;
        (0..all).for_each(|ms| audit.write(call(ms)));
        let thread = std::thread::spawn(move || writer.run(|error| panic!("{error}")));
        audit.close().await;
        thread.join().unwrap();
        let lines = lines(folder.path());
        assert_eq!(lines.len(), LOG_QUEUE + 1);
        assert_eq!(lines[0].record, Record::Dropped { count: 7 });
        assert_eq!(lines[LOG_QUEUE].record, call(all - 8));
    }

    #[tokio::test]
    async fn a_log_that_cannot_be_written_is_told_once_and_stops_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let rotation = Rotation { bytes: 1, kept: 1 };
        let (audit, writer) = Audit::open_with(folder.path(), rotation).unwrap();
        audit.write(call(1));
        // A folder in the way of the next rotation, which no rename replaces.
        fs::create_dir_all(folder.path().join("log.1.jsonl/x")).unwrap();
        (2..5).for_each(|ms| audit.write(call(ms)));
        let (sender, told) = std::sync::mpsc::channel();
        let thread =
            std::thread::spawn(move || writer.run(move |error| sender.send(error).unwrap()));
        audit.close().await;
        thread.join().unwrap();
        assert_eq!(told.iter().count(), 1);
        audit.write(call(6));
    }

    #[test]
    fn no_log_is_no_trouble() {
        Audit::default().write(call(1));
    }
}
