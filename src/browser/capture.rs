//! Pictures of a page, never older than their call.
//!
//! `Page.captureScreenshot` with the feature `CDPScreenshotNewSurface` gives the page a new surface and waits until the
//! page has drawn on it, so all that a script changed before is in the picture. A frame of a screencast is quicker where
//! many pages are shot at once, but its timestamp says when it was shown and not what it knows: on a WebGL page the
//! first frame after a change is one frame old, every time (measured), so it is not used.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep, timeout_at};

use super::command::{CaptureScreenshot, Clip, GetLayoutMetrics, LayoutMetrics};
use super::page::{Page, PageError};
use super::pipe::CallError;
use super::stitch::{self, StitchError};
use crate::policy::limits::PICTURE_PIXELS;

/// Pauses before another try where Chromium is "unable to capture": a window that was just made or resized.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(4),
    Duration::from_millis(16),
    Duration::from_millis(50),
    Duration::from_millis(200),
];

/// A picture's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Lossless.
    #[default]
    Png,
    /// Lossy, small for photographs.
    Jpeg,
    /// Lossy, smallest and slowest.
    Webp,
}

impl Format {
    /// Its name, in CDP and in file endings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpeg",
            Self::Webp => "webp",
        }
    }
}

/// Which part of a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Area {
    /// What is seen.
    Viewport,
    /// All of it, as far as the document goes.
    FullPage,
    /// A rectangle of the document, CSS pixels: left, top, width, height.
    Rectangle([f64; 4]),
}

/// What picture is wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shot {
    /// Its format.
    pub format: Format,
    /// 0 to 100, for lossy formats.
    pub quality: Option<u32>,
    /// A quick deflate for PNG: the same pixels, up to twice the bytes, a third of the time.
    pub fast: bool,
    /// Which part.
    pub area: Area,
    /// Picture pixels a device pixel.
    pub scale: f64,
    /// The longest side allowed, picture pixels; the scale is lowered to meet it.
    pub max_side: Option<u32>,
    /// The longest side that the GPU can texture; a longer picture is taken in tiles.
    pub texture_side: u32,
}

/// A picture.
#[derive(Debug, Clone)]
pub struct Picture {
    /// The file.
    pub bytes: Bytes,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// Where its left top corner lies in the document, CSS pixels; `None` where that is the viewport's.
    pub origin: Option<(f64, f64)>,
    /// CSS pixels a picture pixel.
    pub css_per_px: f64,
}

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The page's reason.
    #[error(transparent)]
    Page(#[from] PageError),
    /// The area has no pixels, or too many.
    #[error("the picture would be {width} x {height} pixels")]
    Size {
        /// Pixels.
        width: u64,
        /// Pixels.
        height: u64,
    },
    /// The tiles could not be joined.
    #[error(transparent)]
    Stitch(#[from] StitchError),
}

/// The plan of a picture: the part of the document, the scale, and the pixels that come of it.
struct Plan {
    rectangle: [f64; 4],
    scale: f64,
    pixels: (u32, u32),
    css_per_px: f64,
    beyond: bool,
}

impl Page {
    /// Takes a picture, or gives up at the deadline.
    pub async fn capture(&self, shot: &Shot, deadline: Instant) -> Result<Picture, CaptureError> {
        let _camera = timeout_at(deadline, self.camera.lock())
            .await
            .map_err(|_| PageError::Timeout)?;
        let viewport = self.viewport();
        let plain = shot.area == Area::Viewport && shot.scale == 1.0;
        if plain
            && shot
                .max_side
                .is_none_or(|most| most >= viewport.pixels().0.max(viewport.pixels().1))
        {
            let bytes = self.shoot(shot, None, deadline).await?;
            let (width, height) = viewport.pixels();
            return Ok(Picture {
                bytes,
                width,
                height,
                origin: None,
                css_per_px: 1.0 / viewport.scale,
            });
        }
        let plan = self.plan(shot, deadline).await?;
        let origin = plan
            .beyond
            .then_some((plan.rectangle[0], plan.rectangle[1]));
        let bytes = if plan.pixels.0.max(plan.pixels.1) > shot.texture_side {
            self.shoot_tiles(shot, &plan, deadline).await?
        } else {
            self.shoot(
                shot,
                Some((plan.clip(plan.rectangle), plan.beyond)),
                deadline,
            )
            .await?
        };
        let (width, height) = plan.pixels;
        Ok(Picture {
            bytes,
            width,
            height,
            origin,
            css_per_px: plan.css_per_px,
        })
    }

    async fn plan(&self, shot: &Shot, deadline: Instant) -> Result<Plan, CaptureError> {
        let metrics = self
            .connection
            .start(Some(&self.session), &GetLayoutMetrics {});
        let LayoutMetrics {
            css_visual_viewport: seen,
            css_content_size: content,
        } = timeout_at(deadline, metrics)
            .await
            .map_err(|_| PageError::Timeout)?
            .map_err(PageError::from)?;
        let viewport = self.viewport();
        let (rectangle, beyond) = match shot.area {
            Area::Viewport => (
                [
                    seen.page_x,
                    seen.page_y,
                    f64::from(viewport.width),
                    f64::from(viewport.height),
                ],
                false,
            ),
            Area::FullPage => (
                [0.0, 0.0, content.width.ceil(), content.height.ceil()],
                true,
            ),
            Area::Rectangle(rectangle) => (rectangle, true),
        };
        let longest = rectangle[2].max(rectangle[3]) * viewport.scale * shot.scale;
        let shrink = shot
            .max_side
            .map_or(1.0, |most| (f64::from(most) / longest).min(1.0));
        let scale = shot.scale * shrink;
        let sides = [rectangle[2], rectangle[3]].map(|css| pixels(css * viewport.scale * scale));
        let (width, height) = (sides[0], sides[1]);
        if width == 0 || height == 0 || width * height > PICTURE_PIXELS {
            return Err(CaptureError::Size { width, height });
        }
        let pixels = (
            u32::try_from(width).unwrap_or(u32::MAX),
            u32::try_from(height).unwrap_or(u32::MAX),
        );
        Ok(Plan {
            rectangle,
            scale,
            pixels,
            css_per_px: 1.0 / (viewport.scale * scale),
            beyond,
        })
    }

    /// One picture of Chromium's, asked for again while it is not able to.
    async fn shoot(
        &self,
        shot: &Shot,
        clip: Option<(Clip, bool)>,
        deadline: Instant,
    ) -> Result<Bytes, PageError> {
        let command = CaptureScreenshot {
            format: shot.format.name(),
            quality: shot.quality.filter(|_| shot.format != Format::Png),
            clip: clip.map(|(clip, _)| clip),
            capture_beyond_viewport: clip.is_some_and(|(_, beyond)| beyond),
            optimize_for_speed: shot.fast && shot.format == Format::Png,
        };
        let mut pauses = PAUSES.into_iter().chain(std::iter::repeat(PAUSES[3]));
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self
                .connection
                .start_raw(Some(&self.session), &command, left)
                .await
            {
                Ok(payload) => {
                    let malformed = |_| CallError::Malformed {
                        method: "Page.captureScreenshot",
                    };
                    return Ok(payload.binary("data").map_err(malformed)?);
                }
                Err(CallError::Refused { message, .. })
                    if message.contains("Unable to capture") =>
                {
                    sleep(pauses.next().unwrap_or_default()).await;
                }
                Err(CallError::Timeout { .. }) => return Err(PageError::Timeout),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes the picture in tiles that the GPU can texture, and joins them.
    async fn shoot_tiles(
        &self,
        shot: &Shot,
        plan: &Plan,
        deadline: Instant,
    ) -> Result<Bytes, CaptureError> {
        let tile = Shot {
            format: Format::Png,
            fast: true,
            ..*shot
        };
        let mut joined = stitch::Canvas::new(plan.pixels);
        let step = shot.texture_side;
        for top in (0..plan.pixels.1).step_by(step as usize) {
            for left in (0..plan.pixels.0).step_by(step as usize) {
                let size = (
                    step.min(plan.pixels.0 - left),
                    step.min(plan.pixels.1 - top),
                );
                let css = |px: u32| f64::from(px) * plan.css_per_px;
                let [x, y, ..] = plan.rectangle;
                let rectangle = [x + css(left), y + css(top), css(size.0), css(size.1)];
                let picture = self
                    .shoot(&tile, Some((plan.clip(rectangle), true)), deadline)
                    .await?;
                joined.place(left, top, &picture)?;
            }
        }
        let (format, quality) = (shot.format, shot.quality);
        let encoded = tokio::task::spawn_blocking(move || joined.encode(format, quality));
        Ok(encoded.await.map_err(|_| StitchError::Encode)??)
    }
}

impl Plan {
    fn clip(&self, [x, y, width, height]: [f64; 4]) -> Clip {
        Clip {
            x,
            y,
            width,
            height,
            scale: self.scale,
        }
    }
}

/// Whole pixels of a side, as Chromium rounds them.
fn pixels(side: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float cast saturates"
    )]
    let whole = side.round() as u64;
    whole
}
