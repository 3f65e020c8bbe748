//! The body of the self-test: a whole session on the embedded relay, used as an agent uses it, and looked at from outside.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::super::Failure;
use super::super::demo::agent::{Agent, AgentError};
use super::super::helper;
use super::super::installing::arguments::SelfTestBody;
use super::super::screen::Screen;
use super::super::session::{News, Session};
use super::super::wish::Wish;
use super::super::words;
use super::{Check, make_place, processes, written};
use crate::policy::limits::SHUTDOWN;
use crate::server::desk::Ask;
use crate::server::{Event, Ready};

/// An address of a private network, as a page would name it.
const PRIVATE: &str = "10.0.0.1";
/// A page that wants something of the owner's network.
const PAGE: &str = "<p>self-test<script>fetch('http://10.0.0.1/').catch(() => 0)</script>";
/// A refusal is told within this.
const TOLD: Duration = Duration::from_secs(5);

/// Runs all checks and writes the report to standard output.
pub(in crate::owner) async fn run(arguments: SelfTestBody) -> Result<(), Failure> {
    make_place().map_err(|source| Failure::System {
        what: "cannot make the folder of the self-test",
        source,
    })?;
    let mut checks = Vec::new();
    if let Some(home) = &arguments.closed {
        checks.push(closed(home));
    }
    let wish = Wish {
        chromium: arguments.chromium,
        default_hosts: false,
        label: "self-test".to_owned(),
        ..Wish::default()
    };
    let mut session = Session::local(wish.config(helper()?, true)?);
    match ready(&mut session).await {
        Ok(ready) => checks.extend(looked_at(&ready, &mut session).await),
        Err(why) => checks.push(Check::new("a browser", false, why)),
    }
    end(session).await;
    Screen::new().line(&written(&checks)).await
}

/// The owner's home, which a page that got out of everything else must find closed.
fn closed(home: &Path) -> Check {
    let name = "the owner's home";
    match std::fs::read_dir(home) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Check::new(
            name,
            true,
            format!("{} is closed to the account", home.display()),
        ),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Check::new(name, true, "there is none")
        }
        _ => Check::new(
            name,
            false,
            format!(
                "the account can read {0}; close it with `chmod o-rwx {0}`",
                home.display()
            ),
        ),
    }
}

async fn looked_at(ready: &Ready, session: &mut Session) -> Vec<Check> {
    let mut checks = vec![Check::new(
        "a browser",
        true,
        format!("{}, {}", ready.browser, ready.gpu.rung.name()),
    )];
    for (name, api) in [("WebGL2", &ready.gpu.webgl), ("WebGPU", &ready.gpu.webgpu)] {
        checks.push(Check::new(name, api.proven, words::api(api)));
    }
    let why = ready
        .network_namespace_reason
        .as_deref()
        .unwrap_or_default();
    checks.push(if ready.network_namespace {
        Check::new(
            "a network of its own",
            true,
            "it holds `lo` and the proxy's socket",
        )
    } else {
        Check::new(
            "a network of its own",
            !cfg!(target_os = "linux"),
            format!("there is none: {why}; `gpu-browser doctor` says which switch is off"),
        )
    });
    match used(ready, session).await {
        Ok(more) => checks.extend(more),
        Err(error) => checks.push(Check::new("a page", false, error.to_string())),
    }
    checks
}

async fn used(ready: &Ready, session: &mut Session) -> Result<Vec<Check>, AgentError> {
    let agent = Agent::new(&ready.link)?;
    let page = open(&agent).await?;
    let mut checks = vec![
        processes::sandbox(),
        refused(session).await,
        direct(ready).await,
    ];
    agent.post("/close", &json!({ "page": page })).await?;
    // A browser that goes down with a context would go down here.
    let again = open(&agent).await?;
    let closed = agent.post("/close", &json!({ "page": again })).await;
    checks.push(Check::new(
        "a context",
        closed.is_ok(),
        "one was opened and closed, and the browser is still there",
    ));
    Ok(checks)
}

async fn open(agent: &Agent) -> Result<String, AgentError> {
    let answer = agent.post("/page", &json!({ "html": PAGE })).await?;
    let verdict: Value = serde_json::from_slice(&answer).unwrap_or_default();
    Ok(verdict["page"].as_str().unwrap_or_default().to_owned())
}

/// The session's own word on itself, or why there is none.
async fn ready(session: &mut Session) -> Result<Box<Ready>, String> {
    loop {
        match session.news().await {
            News::Event(Event::Ready(ready)) => return Ok(ready),
            News::Event(_) => {}
            News::Over(Ok(ending)) => return Err(ending.reason),
            News::Over(Err(failure)) => return Err(failure.to_string()),
        }
    }
}

async fn end(mut session: Session) {
    let desk = session.desk().clone();
    let mut asking = JoinSet::new();
    let reason = "the self-test is done".to_owned();
    asking.spawn(async move { desk.ask(Ask::Stop { reason }).await });
    let over = async { while let News::Event(_) = session.news().await {} };
    let _ = timeout(2 * SHUTDOWN, over).await;
}

/// The proxy's own word on the page's wish.
async fn refused(session: &mut Session) -> Check {
    let heard = async {
        loop {
            match session.news().await {
                News::Event(Event::Refused { host, reason }) if host.contains(PRIVATE) => {
                    return Some(reason);
                }
                News::Event(_) => {}
                News::Over(_) => return None,
            }
        }
    };
    let name = "a private address";
    match timeout(TOLD, heard).await {
        Ok(Some(reason)) => {
            Check::new(name, true, format!("the proxy refused {PRIVATE}: {reason}"))
        }
        _ => Check::new(name, false, format!("the proxy did not refuse {PRIVATE}")),
    }
}

/// From the browser's namespace to the relay's own port, which is open to everything outside of it.
async fn direct(ready: &Ready) -> Check {
    let name = "no way round the proxy";
    if !cfg!(target_os = "linux") {
        return Check::new(name, true, "not to be tested on this system");
    }
    let port = url::Url::parse(&ready.relay)
        .ok()
        .and_then(|url| url.port_or_known_default());
    let (Some(browser), Some(port)) = (processes::browser(), port) else {
        return Check::new(name, false, "the browser or the relay could not be found");
    };
    let to = SocketAddr::from(([127, 0, 0, 1], port));
    match (reach(0, to).await, reach(browser, to).await) {
        (Ok((outside, _)), Ok((inside, words)))
            if outside.success() && !inside.success() && words.contains("no connection") =>
        {
            Check::new(
                name,
                true,
                "a direct connection from the browser's network fails, and works outside of it",
            )
        }
        (Ok((outside, _)), Ok((_, words))) if outside.success() && words.is_empty() => Check::new(
            name,
            false,
            "a direct connection from the browser's network works",
        ),
        (outside, inside) => Check::new(
            name,
            false,
            format!("it could not be tested: {outside:?}, {inside:?}"),
        ),
    }
}

async fn reach(process: u32, to: SocketAddr) -> std::io::Result<(ExitStatus, String)> {
    let program = helper().map_err(std::io::Error::other)?;
    #[expect(
        clippy::disallowed_methods,
        reason = "a process with threads cannot enter a namespace: our own program does, as a child"
    )]
    let mut command = Command::new(program);
    command
        .args(["__reach", &process.to_string(), &to.to_string()])
        .env_clear()
        .kill_on_drop(true);
    let output = command.output().await?;
    Ok((
        output.status,
        String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    ))
}
