//! The fields of each action: what serde takes, and what no type can check.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::super::eval::time;
use super::arguments::{Action, Condition};
use super::target::{Fields, Target, Unit, bad};
use crate::browser::fold::short;
use crate::browser::input::Button;
use crate::browser::input::keys::{Modifiers, Stroke};
use crate::browser::wait::Sign;
use crate::policy::limits::{
    ACT_WAIT, ACTION_COUNT, DRAG_STEPS, LONGEST_TIMEOUT, PATIENCE, PICKED_FILES, TYPED,
};
use crate::proxy::uploads::UploadStore;
use crate::proxy::uploads::store::UploadPath;
use crate::server::answer::{Code, Refused};
use crate::server::arguments::parse_at;

/// An action's fields with those of its target: serde cannot flatten one type into another and refuse what neither has.
macro_rules! aimed {
    ($(struct $name:ident { $($(#[$about:meta])* $field:ident: $kind:ty,)* })*) => {$(
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct $name {
            at: Option<[f64; 2]>,
            unit: Option<Unit>,
            selector: Option<String>,
            #[serde(rename = "ref")]
            reference: Option<String>,
            $($(#[$about])* $field: $kind,)*
        }

        impl $name {
            fn target(&self) -> Fields {
                let (selector, reference) = (self.selector.clone(), self.reference.clone());
                Fields { at: self.at, unit: self.unit, selector, reference }
            }
        }
    )*};
}

aimed! {
    struct Click {
        timeout_ms: Option<u64>,
        #[serde(default)]
        modifiers: Vec<String>,
        #[serde(default)]
        button: Button,
        count: Option<u32>,
    }
    struct Hover {
        timeout_ms: Option<u64>,
        #[serde(default)]
        modifiers: Vec<String>,
    }
    struct Scroll {
        timeout_ms: Option<u64>,
        by: Option<[f64; 2]>,
        #[serde(default)]
        modifiers: Vec<String>,
    }
    struct Type {
        timeout_ms: Option<u64>,
        text: String,
        #[serde(default)]
        clear: bool,
    }
    struct Key {
        timeout_ms: Option<u64>,
        key: String,
        count: Option<u32>,
        hold_ms: Option<u64>,
    }
    struct Select {
        timeout_ms: Option<u64>,
        value: Option<Value>,
        values: Option<Vec<Value>>,
    }
    struct Upload {
        path: Option<String>,
        paths: Option<Vec<String>>,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DragFields {
    from: Fields,
    to: Fields,
    steps: Option<u32>,
    #[serde(default)]
    button: Button,
    #[serde(default)]
    modifiers: Vec<String>,
    timeout_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wait {
    ms: Option<u64>,
    selector: Option<String>,
    text: Option<String>,
    gone: Option<String>,
    js: Option<String>,
    network: Option<Network>,
    timeout_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Network {
    Quiet,
}

impl Action {
    /// From its fields, which are of no other action's.
    pub(super) fn from_fields(
        uploads: &UploadStore,
        place: &str,
        name: &str,
        fields: Value,
    ) -> Result<Self, Refused> {
        match name {
            "click" => click(place, &parse_at(place, fields)?),
            "hover" => {
                let hover: Hover = parse_at(place, fields)?;
                Ok(Self::Hover {
                    target: hover.target().required(place)?,
                    modifiers: modifiers(place, &hover.modifiers)?,
                    patience: patience(place, hover.timeout_ms)?,
                })
            }
            "drag" => drag(place, parse_at(place, fields)?),
            "scroll" => scroll(place, &parse_at(place, fields)?),
            "type" => text(place, parse_at(place, fields)?),
            "key" => key(place, &parse_at(place, fields)?),
            "select" => select(place, &parse_at(place, fields)?),
            "upload" => upload(uploads, place, &parse_at(place, fields)?),
            _ => wait(place, parse_at(place, fields)?),
        }
    }
}

fn click(place: &str, click: &Click) -> Result<Action, Refused> {
    Ok(Action::Click {
        target: click.target().required(place)?,
        button: click.button,
        count: within(place, "count", click.count, 1, 3)?,
        modifiers: modifiers(place, &click.modifiers)?,
        patience: patience(place, click.timeout_ms)?,
    })
}

fn drag(place: &str, drag: DragFields) -> Result<Action, Refused> {
    Ok(Action::Drag {
        from: drag.from.required(&format!("{place}.from"))?,
        to: drag.to.required(&format!("{place}.to"))?,
        steps: within(place, "steps", drag.steps, 10, DRAG_STEPS)?,
        button: drag.button,
        modifiers: modifiers(place, &drag.modifiers)?,
        patience: patience(place, drag.timeout_ms)?,
    })
}

fn scroll(place: &str, scroll: &Scroll) -> Result<Action, Refused> {
    let mut fields = scroll.target();
    let norm = fields.unit == Some(Unit::Norm);
    // The unit counts for `by` too, and may stand with it alone.
    if fields.at.is_none() && scroll.by.is_some() {
        fields.unit = None;
    }
    let target = fields.optional(place)?;
    if target.is_none() && scroll.by.is_none() {
        return Err(bad(
            place,
            "it goes nowhere",
            "give `by` [right,down], or `selector` or `ref` to scroll to",
        ));
    }
    if scroll.by.is_none() && matches!(target, Some(Target::At { .. })) {
        return Err(bad(
            place,
            "`at` needs `by`",
            "give `by` [right,down] in pixels",
        ));
    }
    Ok(Action::Scroll {
        target,
        by: scroll.by,
        norm,
        modifiers: modifiers(place, &scroll.modifiers)?,
        patience: patience(place, scroll.timeout_ms)?,
    })
}

fn text(place: &str, typed: Type) -> Result<Action, Refused> {
    if typed.text.len() > TYPED {
        let fix = format!("type at most {TYPED} bytes at once");
        return Err(bad(place, "`text` is too long", &fix));
    }
    if typed.text.is_empty() && !typed.clear {
        return Err(bad(place, "`text` is empty", "give a text, or `clear`"));
    }
    Ok(Action::Type {
        target: typed.target().optional(place)?,
        clear: typed.clear,
        patience: patience(place, typed.timeout_ms)?,
        text: typed.text,
    })
}

fn key(place: &str, key: &Key) -> Result<Action, Refused> {
    let stroke = Stroke::parse(&key.key).map_err(|unknown| {
        bad(
            place,
            &unknown.to_string(),
            "use W3C names: \"a\", \"Enter\", \"ArrowLeft\", \"Control+a\"",
        )
    })?;
    let hold = match key.hold_ms {
        None => Duration::ZERO,
        asked => time("hold_ms", asked, Duration::ZERO)?,
    };
    Ok(Action::Key {
        target: key.target().optional(place)?,
        stroke,
        count: within(place, "count", key.count, 1, ACTION_COUNT)?,
        hold,
        patience: patience(place, key.timeout_ms)?,
    })
}

fn select(place: &str, select: &Select) -> Result<Action, Refused> {
    let wanted = match (&select.value, &select.values) {
        (Some(one), None) => vec![one.clone()],
        (None, Some(many)) => many.clone(),
        _ => {
            return Err(bad(
                place,
                "it names no option",
                "give `value` (or `values`): an option's value, label, or index from 0",
            ));
        }
    };
    let sound = |wanted: &Value| wanted.is_string() || wanted.is_u64();
    if !wanted.iter().all(sound) {
        return Err(bad(
            place,
            "an option is a text or an index",
            "give its value, label, or index from 0",
        ));
    }
    let target = select.target().required(place)?;
    no_point(place, &target)?;
    Ok(Action::Select {
        target,
        wanted,
        patience: patience(place, select.timeout_ms)?,
    })
}

fn upload(uploads: &UploadStore, place: &str, upload: &Upload) -> Result<Action, Refused> {
    let names = match (&upload.path, &upload.paths) {
        (Some(one), None) => vec![one.clone()],
        (None, Some(many)) if (1..=PICKED_FILES).contains(&many.len()) => many.clone(),
        _ => {
            let fix = format!("give `path`, or `paths` with 1 to {PICKED_FILES} of them");
            return Err(bad(place, "it names no upload", &fix));
        }
    };
    let target = upload.target().required(place)?;
    no_point(place, &target)?;
    let known = |name: String| {
        let path =
            UploadPath::parse(name.strip_prefix('/').unwrap_or(&name)).map_err(|refusal| {
                Refused::new(
                    Code::BadPath,
                    format!("{place}: {refusal}"),
                    "use the path that the file was uploaded under",
                )
            })?;
        match uploads.get(&path) {
            Some(_) => Ok(path),
            None => Err(Refused::new(
                Code::NotFound,
                format!("{place}: there is no upload {:?}", path.as_str()),
                "`GET /files` lists them; `POST /files` makes one",
            )),
        }
    };
    Ok(Action::Upload {
        target,
        paths: names.into_iter().map(known).collect::<Result<_, _>>()?,
    })
}

fn wait(place: &str, wait: Wait) -> Result<Action, Refused> {
    let text = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let most = LONGEST_TIMEOUT;
    let mut asked = Vec::new();
    if let Some(ms) = wait.ms {
        let pause = Duration::from_millis(ms);
        if pause > most {
            let fix = format!("wait at most {} ms", most.as_millis());
            return Err(bad(place, &format!("`ms` is {ms}"), &fix));
        }
        asked.push(Condition::Time(pause));
    }
    asked.extend(text(wait.selector).map(|it| Condition::Sign(Sign::Selector(it))));
    asked.extend(text(wait.text).map(|it| Condition::Sign(Sign::Text(it))));
    asked.extend(text(wait.gone).map(|it| Condition::Sign(Sign::Gone(it))));
    asked.extend(text(wait.js).map(Condition::True));
    asked.extend(wait.network.map(|Network::Quiet| Condition::Quiet));
    let within = time("timeout_ms", wait.timeout_ms, ACT_WAIT)
        .map_err(|refused| at_place(place, refused))?;
    match (asked.pop(), asked.is_empty()) {
        (Some(condition), true) => Ok(Action::Wait { condition, within }),
        _ => Err(bad(
            place,
            "a wait is for one thing",
            "give one of `ms`, `selector`, `text`, `gone`, `js`, `network` \"quiet\"",
        )),
    }
}

fn at_place(place: &str, mut refused: Refused) -> Refused {
    refused.message = format!("{place}: {}", refused.message);
    refused
}

fn patience(place: &str, asked: Option<u64>) -> Result<Duration, Refused> {
    time("timeout_ms", asked, PATIENCE).map_err(|refused| at_place(place, refused))
}

fn within(
    place: &str,
    field: &str,
    asked: Option<u32>,
    default: u32,
    most: u32,
) -> Result<u32, Refused> {
    let asked = asked.unwrap_or(default);
    if (1..=most).contains(&asked) {
        return Ok(asked);
    }
    let message = format!("`{field}` is {asked}");
    Err(bad(place, &message, &format!("use 1 to {most}")))
}

fn modifiers(place: &str, names: &[String]) -> Result<Modifiers, Refused> {
    names.iter().try_fold(Modifiers::default(), |held, name| {
        Modifiers::named(name)
            .map(|modifier| held.and(modifier))
            .ok_or_else(|| {
                let message = format!("there is no modifier {:?}", short(name));
                bad(
                    place,
                    &message,
                    "use \"Control\", \"Shift\", \"Alt\", \"Meta\"",
                )
            })
    })
}

fn no_point(place: &str, target: &Target) -> Result<(), Refused> {
    match target {
        Target::At { .. } => Err(bad(
            place,
            "it takes an element and no point",
            "use `selector`, or `ref` of the last snapshot",
        )),
        _ => Ok(()),
    }
}
