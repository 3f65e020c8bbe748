//! A session at its relay: registered, with the first link made.

use std::time::SystemTime;

use tokio::sync::mpsc;

use super::briefing::{Facts, briefing};
use super::herald::Herald;
use super::relay_wait::until_up;
use super::tools::schemas;
use super::{Event, RelayChoice, ServerConfig, StartError};
use crate::browser::probe::Verdict;
use crate::place;
use crate::relay::embedded::{EmbeddedRelay, RelayConfig};
use crate::relay::link::{Link, LinkConfig, LinkEvent, LinkTiming, Minted};
use crate::relay::registration::{Registration, ToolSpec};

/// A session at a relay, with its first link.
pub(super) struct Linked {
    pub(super) link: Link,
    pub(super) relay: Option<EmbeddedRelay>,
    pub(super) calls: mpsc::Receiver<LinkEvent>,
    pub(super) address: String,
    pub(super) minted: Minted,
}

/// Registers at the relay and makes the first link.
pub(super) async fn connect(
    config: &ServerConfig,
    verdict: &Verdict,
    end: SystemTime,
    herald: &Herald,
) -> Result<Linked, StartError> {
    let (relay, address) = match &config.relay {
        RelayChoice::Local => {
            let relay = EmbeddedRelay::bind(RelayConfig::local()).await?;
            let address = relay.local_address();
            (Some(relay), address)
        }
        RelayChoice::At(address) => (None, address.clone()),
    };
    herald.tell(Event::Progress {
        text: format!("registering at {address}"),
    });
    let registration = registration(verdict, end).map_err(|reason| StartError::Link {
        reason,
        fix: String::new(),
    })?;
    let shown = address.to_string();
    let (link, mut calls) = Link::open(LinkConfig {
        relay: address,
        registration,
        timing: LinkTiming::default(),
        extra_roots: Vec::new(),
    });
    if let Err(error) = until_up(&mut calls, end, herald).await {
        link.close().await;
        return Err(error);
    }
    match link.mint(&config.label).await {
        Ok(minted) => Ok(Linked {
            link,
            relay,
            calls,
            address: shown,
            minted,
        }),
        Err(error) => {
            link.close().await;
            Err(StartError::Link {
                reason: error.to_string(),
                fix: "Try again.".to_owned(),
            })
        }
    }
}

fn registration(verdict: &Verdict, end: SystemTime) -> Result<Registration, String> {
    let minutes = end
        .duration_since(SystemTime::now())
        .unwrap_or_default()
        .as_secs()
        .div_ceil(60);
    let end = format!("The session ends in {minutes} minutes, or when its owner stops it.");
    let text = briefing(&Facts {
        gpu: &gpu_sentence(verdict),
        end: &end,
    });
    let tools: Vec<ToolSpec> = schemas::tools()
        .into_iter()
        .map(|tool| ToolSpec {
            method: tool.method.to_owned(),
            path: tool.path.to_owned(),
            description: tool.description.to_owned(),
            input_schema: tool.input_schema,
        })
        .collect();
    let description = "A Chromium on the GPU of a person's own machine: upload a page, open it, get true pictures";
    Registration::new(place::APP_ID, description, &text, &tools).map_err(|error| error.to_string())
}

/// What the briefing says of the GPU.
fn gpu_sentence(verdict: &Verdict) -> String {
    let api = |name: &str, proven: bool| {
        format!("{name} {}", if proven { "works" } else { "does NOT work" })
    };
    format!(
        "Rendering is in **{}** ({}); {} and {}, proven by pixels.",
        verdict.word(),
        verdict.rung.name(),
        api("WebGL2", verdict.webgl.proven),
        api("WebGPU", verdict.webgpu.proven)
    )
}
