//! `POST /screenshot`: a picture of a page, and the receipt for it.

use std::time::{Duration, Instant};

use base64::Engine;
use serde::Deserialize;
use serde_json::{Value, json};

use super::blocking;
use super::eval::{hung, time};
use crate::browser::capture::{Area, CaptureError, Format, Picture, Shot};
use crate::browser::navigate::{Canvas, Summary};
use crate::browser::page::PageError;
use crate::policy::limits::{PICTURE_PIXELS, REPLY_UNITS, SCALE, SCREENSHOT_TIMEOUT};
use crate::server::answer::{Answer, Code, Refused};
use crate::server::arguments::{parse, parse_at};
use crate::server::artifacts::Kind;
use crate::server::blank::{self, Region};
use crate::server::pages::Opened;
use crate::server::session::{Outcome, Session};

/// Characters of a receipt beside its `data`.
const RECEIPT: usize = 4_096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Compression {
    Fast,
    Small,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rectangle {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    page: String,
    #[serde(default)]
    format: Format,
    quality: Option<u32>,
    compression: Option<Compression>,
    #[serde(default)]
    full_page: bool,
    selector: Option<String>,
    clip: Option<Rectangle>,
    scale: Option<f64>,
    max_side: Option<u32>,
    wait_for: Option<String>,
    #[serde(default)]
    inline: bool,
    timeout_ms: Option<u64>,
}

/// A picture that is asked for, checked.
#[derive(Debug)]
pub(super) struct Asked {
    arguments: Arguments,
    within: Duration,
}

impl Asked {
    /// Checks what no type can.
    fn new(arguments: Arguments) -> Result<Self, Refused> {
        let within = time("timeout_ms", arguments.timeout_ms, SCREENSHOT_TIMEOUT)?;
        check(&arguments)?;
        Ok(Self { arguments, within })
    }

    /// From the fields of an action, its page already among them.
    pub(super) fn parse(place: &str, fields: Value) -> Result<Self, Refused> {
        Self::new(parse_at(place, fields)?)
    }
}

/// Takes a picture.
pub(super) async fn post(session: &Session, body: &str) -> Outcome {
    let asked = Asked::new(parse(body)?)?;
    let opened = session.pages.alive(&asked.arguments.page)?;
    shoot(session, &opened, &asked).await.map(Answer::Json)
}

/// Takes the picture that was asked for, keeps it, and gives its receipt.
pub(super) async fn shoot(
    session: &Session,
    opened: &Opened,
    asked: &Asked,
) -> Result<Value, Refused> {
    let Asked { arguments, within } = asked;
    let began = Instant::now();
    let deadline = tokio::time::Instant::now() + *within;
    let outcome = take(session, opened, arguments, deadline).await;
    let (picture, summary, fast) = match outcome {
        Ok(taken) => taken,
        Err(Failure::Refused(refused)) => return Err(refused),
        Err(Failure::Page(PageError::Timeout)) if !opened.page.is_responsive().await => {
            return Err(hung(session, opened).await);
        }
        Err(Failure::Page(error)) => return Err(session.pages.refused(&arguments.page, error)),
    };
    let canvases = regions(&summary, &picture);
    let (bytes, format) = (picture.bytes.clone(), arguments.format);
    let places: Vec<Region> = canvases.iter().map(|(_, region)| *region).collect();
    let judged = blocking(move || blank::judge(&bytes, format, &places));
    let (judged, kept) = tokio::join!(
        judged,
        session.artifacts.keep(Kind::Picture, picture.bytes.clone())
    );
    let judged = judged?.map_err(|error| broken(&error))?;
    let kept = kept.map_err(|error| broken(&error))?;
    let mut receipt = json!({
        "image": kept.id, "format": format.name(), "width": picture.width, "height": picture.height,
        "bytes": kept.bytes, "sha256": kept.sha256, "parts": kept.parts, "css_per_px": picture.css_per_px,
        "blank": judged.whole, "gpu": session.truth.word(),
    });
    if format == Format::Png {
        receipt["compression"] = if fast { "fast" } else { "small" }.into();
    }
    tell_blank(&mut receipt, &judged, &canvases);
    if !session.kit.setup.sandbox {
        receipt["sandbox"] = false.into();
    }
    receipt["ms"] = u64::try_from(began.elapsed().as_millis())
        .unwrap_or(u64::MAX)
        .into();
    if arguments.inline {
        inline(&mut receipt, &picture);
    }
    opened.sight().show(&picture);
    Ok(receipt)
}

enum Failure {
    Refused(Refused),
    Page(PageError),
}

impl From<PageError> for Failure {
    fn from(error: PageError) -> Self {
        Self::Page(error)
    }
}

async fn take(
    session: &Session,
    opened: &Opened,
    arguments: &Arguments,
    deadline: tokio::time::Instant,
) -> Result<(Picture, Summary, bool), Failure> {
    let page = &opened.page;
    if let Some(selector) = &arguments.wait_for
        && !page.wait_for(selector, deadline).await?
    {
        return Err(Failure::Refused(no_match(selector)));
    }
    let area = match (&arguments.selector, arguments.clip, arguments.full_page) {
        (Some(selector), ..) => {
            let found = page.bounds_of(selector, deadline).await?;
            Area::Rectangle(found.ok_or_else(|| Failure::Refused(no_match(selector)))?)
        }
        (
            None,
            Some(Rectangle {
                x,
                y,
                width,
                height,
            }),
            _,
        ) => Area::Rectangle([x, y, width, height]),
        (None, None, true) => Area::FullPage,
        (None, None, false) => Area::Viewport,
    };
    let fast = arguments
        .compression
        .map_or(session.near, |compression| compression == Compression::Fast);
    let shot = Shot {
        format: arguments.format,
        quality: arguments.quality,
        fast,
        area,
        scale: arguments.scale.unwrap_or(1.0),
        max_side: arguments.max_side,
        texture_side: session.truth.verdict().texture_side,
    };
    // Asked at once and not one after the other: on a page that draws all the time each question waits its turn.
    let (picture, summary) = tokio::join!(page.capture(&shot, deadline), page.summary());
    let picture = picture.map_err(|error| match error {
        CaptureError::Page(error) => Failure::Page(error),
        CaptureError::Size { width, height } => Failure::Refused(Refused::new(
            Code::BadArguments,
            format!("the picture would be {width} x {height} pixels"),
            format!(
                "use `clip`, `scale` or `max_side`: at least 1 and at most {PICTURE_PIXELS} pixels"
            ),
        )),
        CaptureError::Stitch(error) => Failure::Refused(Refused::new(
            Code::BadArguments,
            error.to_string(),
            "use `png`, or `scale` or `max_side` for a smaller picture",
        )),
    })?;
    Ok((picture, summary.unwrap_or_default(), fast))
}

fn check(arguments: &Arguments) -> Result<(), Refused> {
    let bad = |message: &str, fix: String| Err(Refused::new(Code::BadArguments, message, fix));
    let areas = [
        arguments.full_page,
        arguments.selector.is_some(),
        arguments.clip.is_some(),
    ];
    if areas.iter().filter(|asked| **asked).count() > 1 {
        return bad(
            "`full_page`, `selector` and `clip` exclude each other",
            "use one of them".to_owned(),
        );
    }
    if arguments
        .quality
        .is_some_and(|quality| !(1..=100).contains(&quality))
    {
        return bad("`quality` is out of bounds", "use 1 to 100".to_owned());
    }
    if arguments.scale.is_some_and(|scale| !SCALE.contains(&scale)) {
        return bad(
            "`scale` is out of bounds",
            format!("use {} to {}", SCALE.start(), SCALE.end()),
        );
    }
    if arguments.max_side.is_some_and(|side| side < 16) {
        return bad("`max_side` is out of bounds", "use 16 or more".to_owned());
    }
    if arguments.clip.is_some_and(|clip| {
        [clip.x, clip.y, clip.width, clip.height]
            .iter()
            .any(|n| *n < 0.0)
    }) {
        return bad(
            "`clip` is out of bounds",
            "use CSS pixels of the page, from 0".to_owned(),
        );
    }
    Ok(())
}

fn no_match(selector: &str) -> Refused {
    let message = format!(
        "{:?} matches nothing",
        crate::browser::fold::short(selector)
    );
    Refused::new(
        Code::BadSelector,
        message,
        "look at the page with `POST /eval`, then mend the selector or raise `timeout_ms`",
    )
}

fn broken(error: &dyn std::error::Error) -> Refused {
    tracing::error!(%error, "a picture could not be kept or judged");
    Refused::new(
        Code::Internal,
        "the picture could not be kept",
        "take it again",
    )
}

/// Where the canvases lie in the picture.
fn regions<'a>(summary: &'a Summary, picture: &Picture) -> Vec<(&'a Canvas, Region)> {
    let (left, top) = picture.origin.unwrap_or(summary.scroll);
    let place = |canvas: &'a Canvas| {
        let [x, y, width, height] = canvas.bounds;
        let px = |css: f64| css / picture.css_per_px;
        let (x, y) = (
            px(x + summary.scroll.0 - left),
            px(y + summary.scroll.1 - top),
        );
        // Whole pixels inside the canvas: the ones at its border may be mixed with what is around it.
        let (right, bottom) = (
            whole((x + px(width)).floor()),
            whole((y + px(height)).floor()),
        );
        let (x, y) = (whole(x.ceil()), whole(y.ceil()));
        let region = Region {
            x,
            y,
            width: right.saturating_sub(x),
            height: bottom.saturating_sub(y),
        };
        let seen = region.width > 0 && region.height > 0 && x < picture.width && y < picture.height;
        seen.then_some((canvas, region))
    };
    summary.canvases.iter().filter_map(place).collect()
}

fn whole(side: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float cast saturates"
    )]
    let whole = side.max(0.0) as u32;
    whole
}

/// Names the canvases that did not draw, and the likely cause.
fn tell_blank(receipt: &mut Value, judged: &blank::Verdict, canvases: &[(&Canvas, Region)]) {
    let blank = canvases
        .iter()
        .zip(&judged.regions)
        .filter(|(_, blank)| **blank)
        .map(|((canvas, _), _)| *canvas);
    let names: Vec<Value> = blank
        .map(|canvas| json!({ "id": canvas.id, "width": canvas.width, "height": canvas.height }))
        .collect();
    if !names.is_empty() {
        receipt["blank"] = true.into();
        receipt["blank_canvases"] = names.into();
        receipt["blank_cause"] = "the canvas has one colour: it has not drawn yet, its context was lost, or its shaders failed; \
             read `page_errors` and `console_errors` of the verdict, or wait for a frame"
            .into();
    } else if judged.whole {
        receipt["blank_cause"] =
            "the page has one colour: it has not drawn yet, or a script failed; read the verdict"
                .into();
    }
}

/// Puts the picture into the reply where it fits one frame.
fn inline(receipt: &mut Value, picture: &Picture) {
    if picture.bytes.len().div_ceil(3) * 4 + RECEIPT < REPLY_UNITS {
        receipt["data"] = base64::prelude::BASE64_STANDARD
            .encode(&picture.bytes)
            .into();
    } else {
        receipt["inline"] = "too large for one reply; fetch its parts with `POST /image`".into();
    }
}
