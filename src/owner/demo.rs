//! `gpu-browser demo`: the whole loop in one go. It does what an agent does, over HTTP, and believes pixels alone.

pub(super) mod agent;
mod picture;
mod steps;
mod tour;

use std::path::Path;
use std::time::Instant;

use serde_json::json;

use self::agent::Agent;
use self::steps::{Halt, Steps};
use self::tour::{PICTURES, Picture};
use super::arguments::Demo;
use super::session::{News, Session};
use super::start::end;
use super::stop::Stop;
use super::teller::{Style, Teller};
use super::{Failure, helper, shown, words};
use crate::server::Ready;
use crate::server::desk::Ending;

/// The pages, which ship with the program.
const PAGES: [(&str, &str); 2] = [
    ("webgl.html", include_str!("demo/webgl.html")),
    ("webgpu.html", include_str!("demo/webgpu.html")),
];

/// Runs the demo; done only where every picture is proven.
pub(super) async fn run(arguments: Demo) -> Result<(), Failure> {
    let began = Instant::now();
    let mut stop = Stop::listen()?;
    let mut teller = Teller::new(Style::Steps);
    tokio::fs::create_dir_all(&arguments.out)
        .await
        .map_err(|source| Failure::System {
            what: "cannot make the folder of --out",
            source,
        })?;
    let mut session = Session::local(arguments.wish().config(helper()?, true)?);
    let outcome = tokio::select! {
        outcome = show(&mut teller, &mut session, &arguments.out, began) => outcome,
        _ = stop.wait() => Err(Failure::Stopped),
    };
    let _ = end(session, "the demo is done", &mut teller).await;
    outcome
}

async fn show(
    teller: &mut Teller,
    session: &mut Session,
    out: &Path,
    began: Instant,
) -> Result<(), Failure> {
    let ready = ready(teller, session).await?;
    let mut steps = Steps::new(&mut teller.screen);
    tell_truth(&mut steps, &ready).await?;
    let unproven = tokio::select! {
        unproven = walk(&mut steps, &ready, out) => unproven?,
        failure = hear(session) => return Err(failure),
    };
    steps
        .say(&format!("{:>6} ms  in all", began.elapsed().as_millis()))
        .await?;
    if unproven.is_empty() {
        let word = ready.gpu.word();
        return steps
            .say(&format!(
                "proven: WebGL2 and WebGPU draw true pictures here, in {word}"
            ))
            .await;
    }
    Err(Failure::Demo(unproven.join("; ")))
}

/// The session's own word on itself, which may come just after its start is done.
async fn ready(teller: &mut Teller, session: &mut Session) -> Result<Box<Ready>, Failure> {
    loop {
        if let Some(ready) = teller.ready.take() {
            return Ok(ready);
        }
        match session.news().await {
            News::Event(event) => teller.tell(&event).await?,
            News::Over(over) => return Err(early(over)),
        }
    }
}

/// Takes events, which must be read: the demo tells its own steps.
async fn hear(session: &mut Session) -> Failure {
    loop {
        if let News::Over(over) = session.news().await {
            return early(over);
        }
    }
}

/// The session was over before the demo was.
fn early(over: Result<Ending, Failure>) -> Failure {
    match over {
        Ok(ending) => Failure::Ended(ending.reason),
        Err(failure) => failure,
    }
}

async fn tell_truth(steps: &mut Steps<'_>, ready: &Ready) -> Result<(), Failure> {
    let gpu = &ready.gpu;
    steps
        .say(&format!(
            "{:>6} ms  started {}",
            ready.start_ms,
            shown::text(&ready.browser)
        ))
        .await?;
    steps
        .say(&format!(
            "           rung {}: {}, {}, {}",
            gpu.rung.name(),
            gpu.word(),
            shown::text(&gpu.backend),
            shown::text(&gpu.display)
        ))
        .await?;
    for (name, api) in [("WebGL2", &gpu.webgl), ("WebGPU", &gpu.webgpu)] {
        steps
            .say(&format!("           {name} {}", words::api(api)))
            .await?;
    }
    Ok(())
}

/// All steps; returns what was not proven, and why.
async fn walk(steps: &mut Steps<'_>, ready: &Ready, out: &Path) -> Result<Vec<String>, Failure> {
    let mut unproven = Vec::new();
    for (name, api) in [("WebGL2", &ready.gpu.webgl), ("WebGPU", &ready.gpu.webgpu)] {
        if !api.proven {
            unproven.push(format!("{name}: {}", words::api(api)));
        }
    }
    let agent = match prepare(steps, &ready.link).await {
        Ok(agent) => agent,
        Err(halt) => {
            unproven.push(halt.unproven()?);
            return Ok(unproven);
        }
    };
    for picture in &PICTURES {
        if let Err(halt) = tour::take(steps, &agent, picture, ready.gpu.word(), out).await {
            let Picture { file, api, .. } = picture;
            unproven.push(format!("{api}, {file}: {}", halt.unproven()?));
        }
    }
    Ok(unproven)
}

/// Reads the briefing and uploads the pages.
async fn prepare(steps: &mut Steps<'_>, link: &str) -> Result<Agent, Halt> {
    let agent = Agent::new(link)?;
    steps
        .step("GET agents.md, the briefing", agent.get("/agents.md"))
        .await?;
    let files: Vec<_> = PAGES
        .iter()
        .map(|(path, text)| json!({"path": path, "text": text}))
        .collect();
    let body = json!({ "files": files });
    steps
        .step("POST /files, both pages", agent.post("/files", &body))
        .await?;
    Ok(agent)
}
