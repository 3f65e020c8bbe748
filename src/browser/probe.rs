//! What a rung can really do: a page that draws with WebGL2 and WebGPU, shot through the same path as every picture of
//! an agent's, and judged by its pixels. A renderer's name is only used to tell hardware from software.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use super::capture::{Area, CaptureError, Format, Shot};
use super::evaluate::Outcome;
use super::navigate::WaitUntil;
use super::page::{Page, PageError, Viewport};
use super::rung::Rung;
use crate::policy::limits::TILE_SIDE;

/// The page that draws; it must be served in a secure context, or WebGPU is missing.
pub const PAGE: &str = include_str!("probe.html");
/// The viewport that it is made for.
pub const VIEWPORT: Viewport = Viewport {
    width: 320,
    height: 160,
    scale: 1.0,
};

/// Renderers that are the processor.
const SOFTWARE: &[&str] = &[
    "swiftshader",
    "llvmpipe",
    "lavapipe",
    "softpipe",
    "microsoft basic render",
];
const ORANGE: [u8; 3] = [255, 128, 0];
const GREEN: [u8; 3] = [0, 128, 0];
/// How far a colour may be off: dithering and colour spaces, never another colour.
const TOLERANCE: u8 = 6;

/// What a rung was proven to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The rung.
    pub rung: Rung,
    /// Where it draws: `headless` or `xvfb`.
    pub display: String,
    /// `vulkan`, `opengl`, `metal` or `unknown`.
    pub backend: String,
    /// Whether a GPU does the work.
    pub hardware: bool,
    /// WebGL2.
    pub webgl: Api,
    /// WebGPU.
    pub webgpu: Api,
    /// The longest side of a texture, pixels: a picture that is longer is taken in tiles.
    pub texture_side: u32,
}

/// What one interface was proven to do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Api {
    /// What it calls itself: the renderer of WebGL, the adapter of WebGPU.
    pub name: String,
    /// Whether its pixels were right, in the page and in the picture.
    pub proven: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Verdict {
    /// How good a rung is; more is better. WebGL first, then a GPU, then WebGPU.
    pub fn rank(&self) -> (bool, bool, bool) {
        (self.webgl.proven, self.hardware, self.webgpu.proven)
    }

    /// Whether both interfaces are proven.
    pub fn is_whole(&self) -> bool {
        self.webgl.proven && self.webgpu.proven
    }

    /// `hardware` or `software`, as every picture's receipt says it.
    pub fn word(&self) -> &'static str {
        if self.hardware {
            "hardware"
        } else {
            "software"
        }
    }
}

#[derive(Deserialize)]
struct Found {
    webgl: FoundWebgl,
    webgpu: FoundWebgpu,
}

#[derive(Deserialize)]
struct FoundWebgl {
    renderer: Option<String>,
    texture_side: Option<u32>,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct FoundWebgpu {
    adapter: Option<String>,
    centre: Option<[u8; 3]>,
    corner: Option<[u8; 3]>,
    reason: Option<String>,
}

/// Runs the probe on a page, up to a deadline.
pub async fn run(
    page: &Page,
    url: &str,
    rung: Rung,
    deadline: Instant,
) -> Result<Verdict, CaptureError> {
    let navigation = page.navigate(url, WaitUntil::Load, deadline).await?;
    if let Some(error) = navigation.net_error {
        return Err(PageError::NotPrimed(error).into());
    }
    let found = match page
        .evaluate("window.probe", &Value::Null, deadline)
        .await?
    {
        Outcome::Value { value, .. } => serde_json::from_value::<Found>(value).ok(),
        _ => None,
    };
    let found = found.ok_or(PageError::Timeout)?;
    let shot = Shot {
        format: Format::Png,
        quality: None,
        fast: true,
        area: Area::Viewport,
        scale: 1.0,
        max_side: None,
        texture_side: TILE_SIDE,
    };
    let picture = page.capture(&shot, deadline).await?;
    Ok(judge(rung, &found, |x, y| pixel(&picture.bytes, x, y)))
}

/// The verdict from what the page says and what the picture shows.
fn judge(rung: Rung, found: &Found, seen: impl Fn(u32, u32) -> Option<[u8; 3]>) -> Verdict {
    let drawn = |left: u32| {
        [(left + 64, 74, ORANGE), (left + 4, 4, GREEN)].map(|(x, y, colour)| (seen(x, y), colour))
    };
    let pictured = |left: u32| match drawn(left)
        .iter()
        .find(|(seen, colour)| !near(*seen, *colour))
    {
        None => Ok(()),
        Some((Some(seen), colour)) => Err(format!(
            "the picture shows {seen:?} where {colour:?} was drawn"
        )),
        Some((None, _)) => Err("the picture could not be read".to_owned()),
    };
    let renderer = found.webgl.renderer.clone().unwrap_or_default();
    let webgl = api(renderer.clone(), found.webgl.reason.clone(), || pictured(0));
    let webgpu = api(
        found.webgpu.adapter.clone().unwrap_or_default(),
        found.webgpu.reason.clone(),
        || {
            let read = [(found.webgpu.centre, ORANGE), (found.webgpu.corner, GREEN)];
            match read.iter().find(|(seen, colour)| !near(*seen, *colour)) {
                Some((seen, colour)) => Err(format!(
                    "the read-back shows {seen:?} where {colour:?} was drawn"
                )),
                None => pictured(160),
            }
        },
    );
    let lower = renderer.to_lowercase();
    let backend = ["vulkan", "opengl", "metal"]
        .into_iter()
        .find(|backend| lower.contains(backend));
    Verdict {
        rung,
        display: if rung.needs_display() {
            "xvfb"
        } else {
            "headless"
        }
        .to_owned(),
        backend: backend.unwrap_or("unknown").to_owned(),
        hardware: !renderer.is_empty() && !SOFTWARE.iter().any(|name| lower.contains(name)),
        webgl,
        webgpu,
        texture_side: found.webgl.texture_side.unwrap_or(TILE_SIDE),
    }
}

fn api(name: String, reason: Option<String>, pixels: impl FnOnce() -> Result<(), String>) -> Api {
    let outcome = match reason {
        Some(reason) => Err(reason),
        None => pixels(),
    };
    Api {
        name,
        proven: outcome.is_ok(),
        reason: outcome.err(),
    }
}

fn near(seen: Option<[u8; 3]>, colour: [u8; 3]) -> bool {
    seen.is_some_and(|seen| {
        seen.iter()
            .zip(colour)
            .all(|(a, b)| a.abs_diff(b) <= TOLERANCE)
    })
}

/// One pixel of a PNG.
pub fn pixel(picture: &[u8], x: u32, y: u32) -> Option<[u8; 3]> {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(picture));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().ok()?;
    let channels = reader.output_color_type().0.samples();
    for _ in 0..y {
        reader.next_row().ok()??;
    }
    let row = reader.next_row().ok()??;
    let at = x as usize * channels;
    row.data().get(at..at + 3)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SWIFTSHADER: &str =
        "ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero)), SwiftShader driver)";

    fn found(renderer: &str, webgpu: &Value) -> Found {
        serde_json::from_value(
            json!({"webgl": {"renderer": renderer, "texture_side": 8192}, "webgpu": webgpu}),
        )
        .unwrap()
    }

    fn right(x: u32, _: u32) -> Option<[u8; 3]> {
        Some(if x % 160 == 64 { ORANGE } else { GREEN })
    }

    fn drawn() -> Value {
        json!({"adapter": "google swiftshader", "centre": ORANGE, "corner": GREEN})
    }

    #[test]
    fn software_is_told_from_hardware_by_name() {
        for (renderer, hardware, backend) in [
            (SWIFTSHADER, false, "vulkan"),
            (
                "ANGLE (Mesa, llvmpipe (LLVM 15.0.6, 256 bits), OpenGL 4.5)",
                false,
                "opengl",
            ),
            (
                "ANGLE (Apple, ANGLE Metal Renderer: Apple M3)",
                true,
                "metal",
            ),
            (
                "ANGLE (NVIDIA, Vulkan 1.4.312 (NVIDIA H200), NVIDIA)",
                true,
                "vulkan",
            ),
            ("", false, "unknown"),
        ] {
            let verdict = judge(Rung::HardwareVulkan, &found(renderer, &drawn()), right);
            assert_eq!(
                (verdict.hardware, verdict.backend.as_str()),
                (hardware, backend),
                "{renderer}"
            );
        }
    }

    #[test]
    fn a_black_or_white_canvas_is_never_proven() {
        for colour in [[0, 0, 0], [255, 255, 255]] {
            let gpu_lost = |x: u32, y: u32| if x >= 160 { Some(colour) } else { right(x, y) };
            let verdict = judge(
                Rung::SoftwareHeadless,
                &found(SWIFTSHADER, &drawn()),
                gpu_lost,
            );
            assert!(verdict.webgl.proven && !verdict.webgpu.proven);
            assert!(verdict.webgpu.reason.unwrap().contains("the picture shows"));
        }
        let wrong = json!({"adapter": "a", "centre": [0, 0, 0], "corner": GREEN});
        let verdict = judge(Rung::SoftwareX, &found(SWIFTSHADER, &wrong), right);
        assert!(verdict.webgpu.reason.unwrap().contains("read-back"));
        let missing = json!({"reason": "navigator.gpu is missing"});
        let verdict = judge(Rung::SoftwareX, &found(SWIFTSHADER, &missing), right);
        assert_eq!(
            verdict.webgpu.reason.as_deref(),
            Some("navigator.gpu is missing")
        );
    }

    #[test]
    fn hardware_beats_software_and_webgl_comes_first() {
        let verdict = |hardware, webgpu| {
            let mut verdict = judge(Rung::SoftwareX, &found(SWIFTSHADER, &drawn()), right);
            verdict.hardware = hardware;
            verdict.webgpu.proven = webgpu;
            verdict
        };
        assert!(verdict(true, false).rank() > verdict(false, true).rank());
        assert!(verdict(true, true).rank() > verdict(true, false).rank());
    }
}
