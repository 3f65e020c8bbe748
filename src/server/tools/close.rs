//! `POST /close`: a page, or all.

use serde::Deserialize;
use serde_json::json;

use crate::server::answer::{Answer, Code, Refused};
use crate::server::arguments::parse;
use crate::server::session::{Outcome, Session};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    page: Option<String>,
    #[serde(default)]
    all: bool,
}

/// Closes and says what was closed.
pub(super) async fn post(session: &Session, body: &str) -> Outcome {
    let closing = match parse(body)? {
        Arguments {
            page: Some(id),
            all: false,
        } => vec![session.pages.get(&id)?],
        Arguments {
            page: None,
            all: true,
        } => session.pages.list(),
        _ => {
            return Err(Refused::new(
                Code::BadArguments,
                "name one `page`, or say `all`",
                "send {\"page\":\"p1\"} or {\"all\":true}",
            ));
        }
    };
    for opened in &closing {
        session.pages.close(opened).await;
    }
    let closed: Vec<&str> = closing.iter().map(|opened| opened.id.as_str()).collect();
    Ok(Answer::Json(
        json!({ "closed": closed, "open": session.pages.list().len() }),
    ))
}
