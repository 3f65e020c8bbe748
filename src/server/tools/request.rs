//! `POST /request`: a plea for more hosts, which only the owner can grant; `GET /requests`: what became of all.

use serde::Deserialize;
use serde_json::json;

use crate::policy::allowlist::Rule;
use crate::policy::approval::AskRefusal;
use crate::policy::limits::{REQUEST_HOSTS, REQUEST_REASON, REQUESTS_IN_WINDOW, REQUESTS_WAITING};
use crate::server::answer::{Answer, Code, Refused};
use crate::server::approvals::Taken;
use crate::server::arguments::parse;
use crate::server::session::{Outcome, Session};

/// The body of a request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    hosts: Vec<String>,
    reason: String,
    page: Option<String>,
}

/// Takes the plea to the owner.
pub(super) fn post(session: &Session, body: &str) -> Outcome {
    let Arguments {
        hosts,
        reason,
        page,
    } = parse(body)?;
    let rules = rules(&hosts)?;
    let reason = worded(&reason)?;
    if let Some(page) = &page {
        session.pages.get(page)?;
    }
    match session.approvals.ask(rules, reason, page) {
        Ok(Taken::Task(task)) => Ok(Answer::Accepted { task }),
        Ok(Taken::Allowed) => Ok(Answer::Json(
            json!({ "decision": "allowed", "hosts": hosts }),
        )),
        Err(refusal) => Err(refused(&refusal)),
    }
}

/// What was asked and answered.
pub(super) fn list(session: &Session) -> Answer {
    Answer::Json(session.approvals.list())
}

/// All hosts as rules, or the first that can never be one: the owner is not asked what may not be answered with yes.
fn rules(hosts: &[String]) -> Result<Vec<Rule>, Refused> {
    if hosts.is_empty() || hosts.len() > REQUEST_HOSTS {
        let message = format!("hosts: {} of them", hosts.len());
        let fix = format!("name 1 to {REQUEST_HOSTS} hosts, like [\"cdn.example.com\"]");
        return Err(Refused::new(Code::BadArguments, message, fix));
    }
    hosts
        .iter()
        .map(|host| {
            Rule::parse(host).map_err(|error| {
                let fix = "a host is a public DNS name without scheme, port or path, or `*.name` for those below it; serve private files as uploads";
                Refused::new(Code::BadHost, error.to_string(), fix)
            })
        })
        .collect()
}

fn worded(reason: &str) -> Result<String, Refused> {
    let reason = reason.trim();
    let length = reason.chars().count();
    if (1..=REQUEST_REASON).contains(&length) {
        return Ok(reason.to_owned());
    }
    let fix = format!(
        "say in 1 to {REQUEST_REASON} characters what the hosts are needed for: a person reads it"
    );
    Err(Refused::new(
        Code::BadArguments,
        format!("reason: {length} characters"),
        fix,
    ))
}

fn refused(refusal: &AskRefusal) -> Refused {
    match refusal {
        AskRefusal::AlreadyDenied(rule) => Refused::new(
            Code::AlreadyDenied,
            format!("{rule} was denied in this session"),
            "do without it: upload the file, or use an allowed host (`GET /info`)",
        ),
        AskRefusal::TooManyWaiting => Refused::new(
            Code::TooManyRequests,
            format!("{REQUESTS_WAITING} requests wait for the owner"),
            "wait for their answers; ask for all hosts in one request",
        ),
        AskRefusal::TooManyLately { wait } => Refused::new(
            Code::TooManyRequests,
            format!("{REQUESTS_IN_WINDOW} requests in an hour are the most"),
            format!(
                "go on without them, or ask again in {} s",
                wait.as_secs() + 1
            ),
        )
        .with("retry_after_s", wait.as_secs() + 1),
        AskRefusal::TooManyJoined => Refused::new(
            Code::TooManyRequests,
            "too many calls wait for this question",
            "poll the task that you have; `GET /requests` shows the answer",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_can_never_be_allowed_is_refused_before_the_owner_sees_it() {
        for host in [
            "10.0.0.1",
            "localhost",
            "printer.local",
            "*.com",
            "*",
            "https://a.example/",
            "a.example:8080",
            "::1",
            "metadata.internal",
            "",
            "a\u{202e}b",
        ] {
            let refused = rules(&[host.to_owned()]).unwrap_err();
            assert_eq!((refused.status, refused.code), (400, "bad_host"), "{host}");
        }
        assert_eq!(
            rules(&["CDN.example.com.".to_owned(), "*.b.example".to_owned()])
                .unwrap()
                .len(),
            2
        );
        assert!(rules(&[]).is_err());
        assert!(rules(&vec!["a.example".to_owned(); REQUEST_HOSTS + 1]).is_err());
    }

    #[test]
    fn a_reason_is_what_a_person_can_read() {
        assert!(worded("  ").is_err());
        assert!(worded(&"ä".repeat(REQUEST_REASON + 1)).is_err());
        assert_eq!(
            worded(" the model is there ").unwrap(),
            "the model is there"
        );
    }
}
