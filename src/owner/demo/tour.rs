//! One picture of the demo: opened, shot, fetched in its parts, judged, kept.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::agent::Agent;
use super::picture;
use super::steps::{Halt, Steps};
use crate::policy::limits::{LONGEST_TIMEOUT, PART};

/// A picture to take.
pub(super) struct Picture {
    /// Its file's name.
    pub(super) file: &'static str,
    /// What it proves.
    pub(super) api: &'static str,
    page: &'static str,
    width: u32,
    height: u32,
    /// Parts that it must come in at least.
    parts: usize,
}

/// All of them.
pub(super) const PICTURES: [Picture; 3] = [
    Picture {
        file: "webgl.png",
        api: "WebGL2",
        page: "webgl.html",
        width: 1280,
        height: 720,
        parts: 1,
    },
    Picture {
        file: "webgpu.png",
        api: "WebGPU",
        page: "webgpu.html",
        width: 1280,
        height: 720,
        parts: 1,
    },
    Picture {
        file: "webgl-4k.png",
        api: "WebGL2",
        page: "webgl.html",
        width: 3840,
        height: 2160,
        parts: 2,
    },
];

#[derive(Deserialize)]
struct Opened {
    page: String,
    #[serde(default)]
    page_errors: Value,
}

#[derive(Deserialize)]
struct Evaluated {
    value: Value,
}

#[derive(Deserialize)]
struct Receipt {
    image: String,
    parts: usize,
    bytes: usize,
    sha256: String,
    gpu: String,
    blank: Value,
}

/// Takes a picture, proves it and writes it. Its page is closed whatever happens.
pub(super) async fn take(
    steps: &mut Steps<'_>,
    agent: &Agent,
    picture: &Picture,
    gpu: &str,
    out: &Path,
) -> Result<(), Halt> {
    let Picture {
        page,
        width,
        height,
        ..
    } = picture;
    let body = json!({
        "path": page, "width": width, "height": height,
        "wait_for": "[data-state]", "timeout_ms": longest(),
    });
    let what = format!("POST /page, {page} at {width}x{height}");
    let opened: Opened = read(&steps.step(&what, agent.post("/page", &body)).await?)?;
    let taken = shoot(steps, agent, picture, &opened, gpu, out).await;
    let body = json!({ "page": opened.page });
    let closed = steps.step("POST /close", agent.post("/close", &body)).await;
    taken.and(closed.map(drop))
}

async fn shoot(
    steps: &mut Steps<'_>,
    agent: &Agent,
    picture: &Picture,
    opened: &Opened,
    gpu: &str,
    out: &Path,
) -> Result<(), Halt> {
    let body = json!({"page": opened.page, "js": "document.documentElement.dataset.state"});
    let state = steps
        .step("POST /eval, whether it drew", agent.post("/eval", &body))
        .await?;
    let Evaluated { value } = read(&state)?;
    if value != "drawn" {
        let errors = &opened.page_errors;
        return Err(Halt::Wrong(format!(
            "the page says {value}; its errors: {errors}"
        )));
    }
    let body = json!({"page": opened.page, "format": "png", "timeout_ms": longest()});
    let receipt = steps
        .step("POST /screenshot", agent.post("/screenshot", &body))
        .await?;
    let receipt: Receipt = read(&receipt)?;
    let (bytes, parts) = (receipt.bytes, receipt.parts);
    let what = format!("POST /image, {bytes} bytes in {parts} parts");
    let file = steps.step(&what, fetch(agent, &receipt)).await?;
    let judged = async { judge(&file, &receipt, picture, gpu) };
    steps
        .step("checked the hash and the pixels", judged)
        .await?;
    let path = out.join(picture.file);
    let kept = async { tokio::fs::write(&path, &file).await.map_err(Halt::Write) };
    steps.step(&format!("wrote {}", path.display()), kept).await
}

/// Fetches all parts and joins them.
async fn fetch(agent: &Agent, receipt: &Receipt) -> Result<Vec<u8>, Halt> {
    let mut file = Vec::new();
    for part in 1..=receipt.parts {
        let body = json!({"image": receipt.image, "part": part});
        let text = agent.post("/image", &body).await?;
        let bytes = STANDARD.decode(text.trim_ascii());
        let bytes = bytes.map_err(|error| Halt::Wrong(format!("part {part}: {error}")))?;
        if bytes.len() > PART {
            return Err(Halt::Wrong(format!("part {part} is too large")));
        }
        file.extend(bytes);
    }
    Ok(file)
}

/// Whether the file is what the receipt promises, and the picture what the page drew.
fn judge(file: &[u8], receipt: &Receipt, picture: &Picture, gpu: &str) -> Result<(), Halt> {
    let digest = Sha256::digest(file);
    let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let wrong = if hash != receipt.sha256 || file.len() != receipt.bytes {
        "the joined parts are not the file of the receipt".to_owned()
    } else if receipt.parts < picture.parts {
        format!("it came in {} part", receipt.parts)
    } else if receipt.gpu != gpu {
        format!("it was drawn in {}, and the probe says {gpu}", receipt.gpu)
    } else if receipt.blank == true {
        "the receipt says that it is blank".to_owned()
    } else {
        return picture::check(file, picture.width, picture.height).map_err(Halt::Wrong);
    };
    Err(Halt::Wrong(wrong))
}

fn read<T: DeserializeOwned>(reply: &Bytes) -> Result<T, Halt> {
    serde_json::from_slice(reply)
        .map_err(|error| Halt::Wrong(format!("a reply of another shape: {error}")))
}

fn longest() -> u128 {
    LONGEST_TIMEOUT.as_millis()
}
