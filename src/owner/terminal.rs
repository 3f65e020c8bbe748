//! A terminal: the line that is typed stays at the bottom, whole, and everything else appears above it. While nothing is
//! typed, that line shows how the session is.
//!
//! The editor blocks while it reads and while it prints, so each has a thread of its own; both end with the process.

use std::borrow::Cow;
use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use rustyline::completion::Completer;
use rustyline::config::Configurer as _;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hint, Hinter};
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{ColorMode, Config, Context, Editor, ExternalPrinter, Helper};
use tokio::sync::{mpsc, oneshot};

use super::Failure;
use super::input::{Line, Typing};
use crate::place;
use crate::policy::limits::OWNER_LINES;

const PROMPT: &str = "> ";
/// Columns of the line that says how the session is.
const FACTS: usize = 60;
/// A printed line is on the screen within this; the editor may just be between two lines, where it says nothing of it.
const DRAWN: Duration = Duration::from_millis(50);

/// The owner's terminal.
pub(super) struct Terminal {
    print: mpsc::Sender<(String, oneshot::Sender<()>)>,
    seen: Arc<Mutex<Seen>>,
    saved: Option<Termios>,
}

/// What the editor shows and has seen.
#[derive(Default)]
struct Seen {
    /// When the first character of the present line came.
    begun: Option<Instant>,
    /// How the session is.
    facts: String,
    /// How often the line was drawn.
    drawn: u64,
}

/// The editor's side of it.
struct Typist {
    seen: Arc<Mutex<Seen>>,
    drawn: Arc<Condvar>,
    colours: bool,
}

/// Whether a person sits at both ends.
pub(super) fn is_one() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

impl Terminal {
    /// Takes the terminal; dropped, it is given back as it was.
    pub(super) fn open() -> Result<(Self, mpsc::Receiver<Typing>), Failure> {
        let failed = |error: ReadlineError| Failure::System {
            what: "cannot edit lines on this terminal (give it no terminal, as in `cat | gpu-browser start | cat`)",
            source: std::io::Error::other(error),
        };
        let saved = tcgetattr(std::io::stdin()).ok();
        let (seen, drawn) = (Arc::<Mutex<Seen>>::default(), Arc::new(Condvar::new()));
        let typist = Typist {
            seen: Arc::clone(&seen),
            drawn: Arc::clone(&drawn),
            colours: !place::no_color(),
        };
        let config = Config::builder()
            .auto_add_history(true)
            .max_history_size(OWNER_LINES * 8)
            .map_err(failed)?
            .build();
        let mut editor = Editor::<Typist, MemHistory>::with_history(config, MemHistory::new())
            .map_err(failed)?;
        // Without it, the typist would not hear when its line is drawn. Colours are its own business.
        editor.set_color_mode(ColorMode::Forced);
        editor.set_helper(Some(typist));
        let printer = editor.create_external_printer().map_err(failed)?;
        let (sender, lines) = mpsc::channel(OWNER_LINES);
        let (print, printing) = mpsc::channel(OWNER_LINES);
        let seen_by = (Arc::clone(&seen), drawn);
        thread("console", {
            let seen = Arc::clone(&seen);
            move || read(editor, &seen, &sender)
        })?;
        thread("screen", move || {
            show(printer, printing, &seen_by.0, &seen_by.1);
        })?;
        Ok((Self { print, seen, saved }, lines))
    }

    /// Shows a line above the one that is typed, and waits until it is there.
    pub(super) async fn line(&self, line: String) {
        let (shown, done) = oneshot::channel();
        if self.print.send((line, shown)).await.is_ok() {
            let _ = done.await;
        }
    }

    /// A way to print for what is not the session's own word, like the log.
    pub(super) fn printer(&self) -> mpsc::Sender<(String, oneshot::Sender<()>)> {
        self.print.clone()
    }

    /// Says how the session is, while nothing is typed.
    pub(super) fn facts(&self, facts: String) {
        lock(&self.seen).facts = facts;
    }
}

/// The terminal as it was found: the editor may still wait for a key that nobody presses any more.
impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(saved) = &self.saved {
            let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, saved);
        }
        // The rest of the line that was typed, and bracketed paste.
        let _ = std::io::stdout().write_all(b"\r\x1b[J\x1b[?2004l");
        let _ = std::io::stdout().flush();
    }
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let started = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work);
    started.map(drop).map_err(|source| Failure::System {
        what: "cannot start a thread",
        source,
    })
}

fn read(mut editor: Editor<Typist, MemHistory>, seen: &Mutex<Seen>, typed: &mpsc::Sender<Typing>) {
    loop {
        let ready = Instant::now();
        lock(seen).begun = None;
        let typing = match editor.readline(PROMPT) {
            // A line whose first character nobody saw may be as old as the prompt.
            Ok(text) => Typing::Line(Line {
                text,
                begun: lock(seen).begun.or(Some(ready)),
            }),
            Err(ReadlineError::Interrupted) => Typing::Interrupt,
            // Ctrl-d on an empty line; a terminal that is gone says so by a signal as well.
            Err(ReadlineError::Eof) => Typing::Line(Line {
                text: "help".to_owned(),
                begun: None,
            }),
            Err(_) => return,
        };
        if typed.blocking_send(typing).is_err() {
            return;
        }
    }
}

fn show(
    mut printer: impl ExternalPrinter,
    mut lines: mpsc::Receiver<(String, oneshot::Sender<()>)>,
    seen: &Mutex<Seen>,
    drawn: &Condvar,
) {
    while let Some((line, shown)) = lines.blocking_recv() {
        let before = lock(seen).drawn;
        if printer.print(format!("{line}\n")).is_err() {
            return;
        }
        let waited = drawn.wait_timeout_while(lock(seen), DRAWN, |seen| seen.drawn == before);
        drop(waited);
        let _ = shown.send(());
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A hint that is only looked at.
struct Facts;

impl Hint for Facts {
    fn display(&self) -> &str {
        // As wide as what is drawn in its place.
        const {
            match std::str::from_utf8(&[b' '; FACTS]) {
                Ok(blank) => blank,
                Err(_) => "",
            }
        }
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Hinter for Typist {
    type Hint = Facts;

    fn hint(&self, line: &str, _: usize, _: &Context<'_>) -> Option<Facts> {
        let mut seen = lock(&self.seen);
        if line.is_empty() {
            seen.begun = None;
            return Some(Facts);
        }
        seen.begun.get_or_insert_with(Instant::now);
        None
    }
}

impl Highlighter for Typist {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        lock(&self.seen).drawn += 1;
        self.drawn.notify_all();
        Cow::Borrowed(prompt)
    }

    fn highlight_hint<'h>(&self, _: &'h str) -> Cow<'h, str> {
        let facts: String = lock(&self.seen).facts.chars().take(FACTS).collect();
        if self.colours {
            Cow::Owned(format!("\x1b[2m{facts:FACTS$}\x1b[0m"))
        } else {
            Cow::Owned(format!("{facts:FACTS$}"))
        }
    }
}

impl Completer for Typist {
    type Candidate = String;
}
impl Validator for Typist {}
impl Helper for Typist {}
