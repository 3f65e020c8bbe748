//! `gpu-browser status` and `gpu-browser stop`, from another terminal.

use serde_json::json;

use super::arguments::{Status, Stop};
use super::screen::Screen;
use super::{Failure, shown, socket, words};
use crate::server::desk::{Ask, Reply};

/// Shows the sessions that run.
pub(super) async fn status(arguments: &Status) -> Result<(), Failure> {
    let replies = socket::ask_all(&Ask::Status).await;
    if replies.is_empty() {
        return Err(Failure::Which(nothing()));
    }
    let mut screen = Screen::new();
    for (process, reply) in replies {
        if arguments.json {
            let value = match reply {
                Reply::Status(status) => json!({ "process": process, "status": status }),
                other => json!({ "process": process, "error": reason(other) }),
            };
            screen.line(&shown::json(&value)).await?;
            continue;
        }
        screen
            .line(&format!("session of process {process}"))
            .await?;
        let lines = match reply {
            Reply::Status(status) => words::status(&status),
            other => vec![shown::text(&reason(other))],
        };
        for line in lines {
            screen.line(&line).await?;
        }
    }
    Ok(())
}

/// Ends the session that runs.
pub(super) async fn stop(arguments: &Stop) -> Result<(), Failure> {
    let running: Vec<u32> = socket::ask_all(&Ask::Status)
        .await
        .into_iter()
        .map(|(process, _)| process)
        .collect();
    let process = match (arguments.process, running.as_slice()) {
        (Some(wanted), running) if running.contains(&wanted) => wanted,
        (Some(wanted), _) => {
            return Err(Failure::Which(format!(
                "no session of process {wanted} runs; `gpu-browser status` lists them"
            )));
        }
        (None, [one]) => *one,
        (None, []) => return Err(Failure::Which(nothing())),
        (None, several) => {
            let named: Vec<String> = several.iter().map(u32::to_string).collect();
            return Err(Failure::Which(format!(
                "several sessions run; name one: gpu-browser stop {}",
                named.join(" | ")
            )));
        }
    };
    let ask = Ask::Stop {
        reason: "stopped from another terminal".to_owned(),
    };
    match socket::ask(process, &ask).await {
        Some(Reply::Stopping) => {
            Screen::new()
                .line(&format!("the session of process {process} is ending"))
                .await
        }
        Some(other) => Err(Failure::Which(reason(other))),
        None => Err(Failure::Which(format!(
            "the session of process {process} does not answer"
        ))),
    }
}

fn nothing() -> String {
    "no session runs; `gpu-browser start` starts one".to_owned()
}

fn reason(reply: Reply) -> String {
    match reply {
        Reply::No { reason } => reason,
        _ => "it gives another answer than was asked for".to_owned(),
    }
}
