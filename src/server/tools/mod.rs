//! The agent's tools, one file each: arguments in, an answer or a refusal out.

pub(super) mod act;
mod close;
mod console;
mod eval;
pub mod files;
pub mod image;
mod info;
mod listing;
mod network;
mod page;
mod request;
pub mod schemas;
mod screenshot;
mod snapshot;
mod verdict;

use super::answer::{Answer, Code, Refused};
use super::session::{Outcome, Session};
use crate::browser::page::PageError;
use crate::browser::pipe::CallError;

/// Runs the tool of a method and a path.
pub(super) async fn call(session: &Session, method: &str, path: &str, body: &str) -> Outcome {
    match (method, path) {
        ("GET", "/info") => Ok(Answer::Json(info::get(session))),
        ("POST", "/files") => {
            let (uploads, body) = (std::sync::Arc::clone(&session.kit.uploads), body.to_owned());
            blocking(move || files::post(&uploads, &body)).await?
        }
        ("GET", "/files") => Ok(files::get(&session.kit.uploads)),
        ("POST", "/page") => page::post(session, body).await,
        ("GET", "/pages") => Ok(page::list(session)),
        ("POST", "/close") => close::post(session, body).await,
        ("POST", "/eval") => eval::post(session, body).await,
        ("POST", "/screenshot") => screenshot::post(session, body).await,
        ("POST", "/console") => console::post(session, body),
        ("POST", "/network") => network::post(session, body).await,
        ("POST", "/act") => act::post(session, body).await,
        ("GET", "/actions") => Ok(Answer::Json(session.actions.list())),
        ("POST", "/snapshot") => snapshot::post(session, body).await,
        ("POST", "/request") => request::post(session, body),
        ("GET", "/requests") => Ok(request::list(session)),
        ("POST", "/image") => image::post(&session.artifacts, body).await,
        _ => Err(Refused::new(
            Code::NotFound,
            "there is no such tool",
            "`GET $BASE/tools.json` lists them",
        )),
    }
}

/// Work that keeps a processor busy, off the threads that carry everything else.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refused> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "a tool broke");
        Refused::new(
            Code::Internal,
            "the call broke",
            "try once more, then tell the person whose machine it is",
        )
    })
}

/// The one place where what goes wrong on a page gets its code.
pub(super) fn refused(id: &str, error: &PageError) -> Refused {
    let again = "open the page again with `POST /page`";
    match error {
        PageError::Call(CallError::Closed) => Refused::new(
            Code::BrowserRestarted,
            "the browser was lost during the call",
            again,
        ),
        PageError::Call(CallError::Crashed) => Refused::new(
            Code::PageCrashed,
            format!("the renderer of {id} crashed"),
            "navigate it with `POST /page` and its name, or open another",
        ),
        PageError::Call(CallError::Detached) => {
            Refused::new(Code::NotFound, format!("{id} was closed"), again)
        }
        PageError::Timeout | PageError::Call(CallError::Timeout { .. }) => Refused::new(
            Code::TimedOut,
            format!("{id} did not answer in time"),
            "raise `timeout_ms`, or let the page do less",
        ),
        PageError::Call(CallError::TooLarge { .. }) => Refused::new(
            Code::BadArguments,
            "the result is larger than what the browser can hand out",
            "ask for less at once",
        ),
        PageError::BadSelector(thrown) => {
            let first = thrown.lines().next().unwrap_or_default();
            Refused::new(
                Code::BadSelector,
                crate::browser::fold::short(first),
                "mend the CSS selector",
            )
        }
        PageError::NotPrimed(_)
        | PageError::Call(CallError::Refused { .. } | CallError::Malformed { .. }) => {
            tracing::error!(%error, page = id, "a page does not do what it should");
            Refused::new(
                Code::Internal,
                "the browser refused a step of the call",
                "try once more, then close the page and open it again",
            )
        }
    }
}
