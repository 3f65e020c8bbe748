//! What an action aims at, as an agent writes it: a pixel, a selector, or a ref.

use serde::Deserialize;

use crate::browser::fold::short;
use crate::browser::locate::{Aim, Miss};
use crate::server::answer::{Code, Refused};
use crate::server::pages::Opened;
use crate::server::sight::Stale;

/// The fields of a target.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fields {
    pub(super) at: Option<[f64; 2]>,
    pub(super) unit: Option<Unit>,
    pub(super) selector: Option<String>,
    #[serde(rename = "ref")]
    pub(super) reference: Option<String>,
}

/// What the numbers of `at` count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Unit {
    /// Pixels of the last picture.
    Px,
    /// 0 to 1 of it.
    Norm,
}

/// What an action aims at.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Target {
    At { x: f64, y: f64, norm: bool },
    Selector(String),
    Ref(u64),
}

impl Fields {
    /// At most one target; `place` is where the fields lie in the body.
    pub(super) fn optional(self, place: &str) -> Result<Option<Target>, Refused> {
        if self.unit.is_some() && self.at.is_none() {
            return Err(bad(place, "`unit` belongs to `at`", "give `at` with it"));
        }
        match (self.at, self.selector, self.reference) {
            (None, None, None) => Ok(None),
            (Some([x, y]), None, None) => {
                let norm = self.unit == Some(Unit::Norm);
                if norm && ![x, y].iter().all(|part| (0.0..=1.0).contains(part)) {
                    return Err(bad(
                        place,
                        "`at` is out of bounds",
                        "with `unit` `norm` both numbers are from 0 to 1",
                    ));
                }
                Ok(Some(Target::At { x, y, norm }))
            }
            (None, Some(selector), None) if !selector.trim().is_empty() => {
                Ok(Some(Target::Selector(selector)))
            }
            (None, None, Some(reference)) => parse_ref(place, &reference).map(Some),
            (None, Some(_), None) => Err(bad(place, "`selector` is empty", "name an element")),
            _ => Err(bad(
                place,
                "`at`, `selector` and `ref` exclude each other",
                "use one of them",
            )),
        }
    }

    /// Exactly one target.
    pub(super) fn required(self, place: &str) -> Result<Target, Refused> {
        self.optional(place)?.ok_or_else(|| {
            bad(
                place,
                "it has no target",
                "give `at` [x,y], `selector`, or `ref` of the last snapshot",
            )
        })
    }
}

fn parse_ref(place: &str, text: &str) -> Result<Target, Refused> {
    let number = text
        .strip_prefix('e')
        .and_then(|number| number.parse().ok());
    number.map(Target::Ref).ok_or_else(|| {
        let message = format!("`ref` is {:?}", short(text));
        bad(
            place,
            &message,
            "a ref is like \"e12\"; `POST /snapshot` gives them out",
        )
    })
}

/// A refusal of an argument at its place.
pub(super) fn bad(place: &str, message: &str, fix: &str) -> Refused {
    Refused::new(Code::BadArguments, format!("{place}: {message}"), fix)
}

impl Target {
    /// The element or point of the page as it is now.
    pub(super) fn aim(&self, opened: &Opened) -> Result<Aim, Refused> {
        match self {
            Self::Selector(selector) => Ok(Aim::Selector(selector.clone())),
            Self::Ref(number) => node(opened, *number).map(Aim::Node),
            Self::At { x, y, norm } => {
                let frame = opened.sight().frame(opened.page.viewport());
                frame.aim(*x, *y, *norm).ok_or_else(|| {
                    let (width, height) = frame.size();
                    Refused::new(
                        Code::BadArguments,
                        format!("{x},{y} is outside the last picture, which is {width} x {height} pixels"),
                        "aim inside it, or take another picture first",
                    )
                })
            }
        }
    }

    /// As an agent knows it.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::At { x, y, .. } => format!("{x},{y}"),
            Self::Selector(selector) => format!("{:?}", short(selector)),
            Self::Ref(number) => format!("e{number}"),
        }
    }
}

/// The node of a ref, or why it is stale.
fn node(opened: &Opened, number: u64) -> Result<i64, Refused> {
    let loader = opened.page.observed.document().loader;
    let why = match opened.sight().node(number, &loader) {
        Ok(node) => return Ok(node),
        Err(Stale::NoSnapshot) => "no snapshot of the page was taken",
        Err(Stale::Older) => "it is from an earlier snapshot",
        Err(Stale::Unknown) => "no snapshot has given it out",
        Err(Stale::Navigated) => "the page has navigated since",
    };
    Err(stale(&format!("e{number}"), why))
}

fn stale(reference: &str, why: &str) -> Refused {
    Refused::new(
        Code::StaleRef,
        format!("{reference} is stale: {why}"),
        "take a new snapshot with `POST /snapshot` and use its refs",
    )
}

/// The refusal for a target that an action would miss.
pub(in crate::server::tools) fn missed(target: &str, miss: Miss) -> Refused {
    let on = |on: Option<String>| on.map_or_else(|| target.to_owned(), |on| short(&on));
    match miss {
        Miss::None => Refused::new(
            Code::BadSelector,
            format!("{target} matches nothing"),
            "look with `POST /snapshot`, then mend the selector or raise `timeout_ms`",
        ),
        Miss::Selector { says } => {
            Refused::new(Code::BadSelector, short(&says), "mend the CSS selector")
        }
        Miss::Stale => stale(target, "its element is not in the page any more"),
        Miss::Hidden { on: element } => Refused::new(
            Code::Covered,
            format!("{} is there but not visible", on(element)),
            "make it visible first, or aim at something that is seen",
        ),
        Miss::Outside { on: element } => Refused::new(
            Code::Covered,
            format!("{} cannot be brought into the viewport", on(element)),
            "make the viewport larger with `POST /page`, or scroll what holds it",
        ),
        Miss::Covered { on: element, by } => {
            let by = by.map_or_else(|| "something else".to_owned(), |by| short(&by));
            let message = format!("{by} covers {}; a click would miss it", on(element));
            Refused::new(
                Code::Covered,
                message,
                "close what covers it, or aim at that, or at another point with `at`",
            )
            .with("covered_by", by)
        }
        Miss::NoSelect { on } => Refused::new(
            Code::BadArguments,
            format!("{} is no <select>", short(&on)),
            "click it to open it, then click an option",
        ),
        Miss::NoOption {
            on,
            says,
            options,
            count,
        } => Refused::new(
            Code::BadArguments,
            format!("{} has no option {:?}", short(&on), short(&says)),
            "use one of `options`, by value, label or index",
        )
        .with("options", options)
        .with("options_count", count),
        Miss::Disabled { on } => Refused::new(
            Code::Covered,
            format!("{}, or that option of it, is disabled", short(&on)),
            "enable it first",
        ),
        Miss::OneOnly { on } => Refused::new(
            Code::BadArguments,
            format!("{} takes one option", short(&on)),
            "select one",
        ),
        Miss::Timeout => Refused::new(
            Code::TimedOut,
            format!("{target} did not come in time"),
            "look at the page, then mend the condition or raise `timeout_ms`",
        ),
    }
}
