//! A session under the account of the install, as the owner's command has it: a child behind two pipes.

use std::collections::HashMap;
use std::process::Stdio;

use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::wire::{Opening, Question, Says, Sealed, new_key};
use super::{Desk, Session};
use crate::owner::Failure;
use crate::owner::wish::Wish;
use crate::place;
use crate::policy::limits::{OWNER_ASKS, OWNER_EVENTS, SERVER_LINE, SHUTDOWN};
use crate::server::Event;
use crate::server::desk::{Asked, Ending, Reply};

/// Starts the installed server, as the one rule of the install lets the owner.
///
/// # Errors
/// Where sudo cannot be started.
pub(in crate::owner) fn remote(wish: Wish) -> Result<Session, Failure> {
    let system = |what| move |source| Failure::System { what, source };
    let key = new_key().map_err(|error| {
        system("the kernel gives no random bytes")(std::io::Error::other(error))
    })?;
    let mut child = start().map_err(system("cannot start sudo"))?;
    let pipe = || system("the server has no pipes")(std::io::Error::other("a pipe is missing"));
    let input = child.stdin.take().ok_or_else(pipe)?;
    let output = child.stdout.take().ok_or_else(pipe)?;
    let errors = child.stderr.take().ok_or_else(pipe)?;
    let (asks, asked) = mpsc::channel(OWNER_ASKS);
    let (events, heard) = mpsc::channel(OWNER_EVENTS);
    let mut life = JoinSet::new();
    let wire = Wire {
        key,
        input,
        waiting: HashMap::new(),
        last: 0,
        events: events.clone(),
    };
    life.spawn(async move {
        let mut lines = JoinSet::new();
        let (sender, said) = mpsc::channel(OWNER_EVENTS);
        lines.spawn(lines_of(output, sender));
        let (texts, mut text) = mpsc::channel(OWNER_EVENTS);
        lines.spawn(lines_of(errors, texts));
        lines.spawn(async move {
            while let Some(text) = text.recv().await {
                let _ = events.send(Event::Progress { text }).await;
            }
        });
        let over = wire.serve(wish, asked, said).await;
        let status = timeout(SHUTDOWN, child.wait()).await;
        lines.shutdown().await;
        over.unwrap_or_else(|| {
            let how = status
                .ok()
                .and_then(Result::ok)
                .map_or_else(|| "it does not end".to_owned(), |status| status.to_string());
            Err(Failure::Lost(format!(
                "the server said nothing more ({how})"
            )))
        })
    });
    Ok(Session {
        desk: Desk(asks),
        events: heard,
        life,
    })
}

/// `sudo -n`: the rule asks no password, and where it is missing, nothing may be asked in the middle of a session.
#[expect(
    clippy::disallowed_methods,
    reason = "the server is started through sudo, which is what changes the account"
)]
fn start() -> std::io::Result<Child> {
    Command::new("sudo")
        .args(["-n", "-u", place::ACCOUNT, "--"])
        .arg(place::installed_program())
        .arg("server")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

struct Wire {
    key: String,
    input: ChildStdin,
    waiting: HashMap<u64, oneshot::Sender<Reply>>,
    last: u64,
    events: mpsc::Sender<Event>,
}

impl Wire {
    /// Carries questions and news until the server's last word; `None` where it has none.
    async fn serve(
        mut self,
        wish: Wish,
        mut asked: mpsc::Receiver<Asked>,
        mut said: mpsc::Receiver<String>,
    ) -> Option<Result<Ending, Failure>> {
        let opening = serde_json::to_string(&Opening {
            key: self.key.clone(),
            wish,
        })
        .unwrap_or_default();
        // A server that is gone already says why on its other pipes.
        self.send(opening).await;
        loop {
            tokio::select! {
                line = said.recv() => {
                    let line = line?;
                    match Sealed::read(&self.key, &line) {
                    Some(Says::Event(event)) => drop(self.events.send(event).await),
                    Some(Says::Reply { id, reply }) => {
                        if let Some(answer) = self.waiting.remove(&id) {
                            let _ = answer.send(reply);
                        }
                    }
                    Some(Says::Ended(ending)) => return Some(Ok(ending)),
                    Some(Says::Failed { message, exit_code }) => return Some(Err(Failure::Server { message, exit_code })),
                    // Whoever wrote it has no key: it is text, and no more.
                    None => self.text(line).await,
                    }
                }
                Some((ask, answer)) = asked.recv() => {
                    self.last += 1;
                    self.waiting.insert(self.last, answer);
                    let question = serde_json::to_string(&Question { id: self.last, ask }).unwrap_or_default();
                    self.send(question).await;
                }
            }
        }
    }

    async fn text(&self, text: String) {
        let _ = self.events.send(Event::Progress { text }).await;
    }

    async fn send(&mut self, mut line: String) {
        line.push('\n');
        let written = async {
            self.input.write_all(line.as_bytes()).await?;
            self.input.flush().await
        };
        if let Err(error) = written.await {
            tracing::debug!(%error, "the server takes no more lines");
        }
    }
}

/// Hands on the lines of a pipe, each cut at [`SERVER_LINE`].
async fn lines_of(pipe: impl AsyncRead + Unpin, lines: mpsc::Sender<String>) {
    let mut pipe = BufReader::new(pipe);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut pipe)
            .take(SERVER_LINE)
            .read_until(b'\n', &mut line)
            .await
        {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        if lines.send(text).await.is_err() {
            return;
        }
    }
}
