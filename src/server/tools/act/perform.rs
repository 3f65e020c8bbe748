//! Doing an action: its target found, its input sent, its own proof taken.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::{blocking, screenshot};
use super::arguments::Action;
use super::target::{Target, missed};
use super::{Hand, Line};
use crate::browser::fold::short;
use crate::browser::input::keys::{Modifiers, Stroke};
use crate::browser::input::{Drag, Unpicked};
use crate::browser::locate::{Aim, Miss, Spot};
use crate::policy::limits::TYPED_KEYS;
use crate::proxy::uploads::store::UploadPath;
use crate::server::answer::{Code, Refused};

/// What proves that an action was felt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proof {
    /// It does nothing to the page.
    None,
    /// Its line says it already.
    Own,
    /// An event of it at its element, or a change of the page.
    Event,
}

impl Hand<'_> {
    /// Does an action, and writes into its line what is known of it by itself.
    pub(super) async fn perform(&self, action: &Action, line: &mut Line) -> Result<Proof, Refused> {
        match action {
            Action::Click {
                target,
                button,
                count,
                modifiers,
                patience,
            } => {
                let spot = self.spot(target, false, *patience, line).await?;
                self.watch(&["mousedown", "click", "auxclick", "contextmenu"], true)
                    .await?;
                let at = (spot.x, spot.y);
                let page = &self.opened.page;
                let clicked = page.click(at, *button, *count, *modifiers, self.deadline);
                self.ok(clicked.await).await?;
                Ok(Proof::Event)
            }
            Action::Hover {
                target,
                modifiers,
                patience,
            } => {
                let spot = self.spot(target, false, *patience, line).await?;
                self.watch(&["mousemove", "mouseover"], true).await?;
                let page = &self.opened.page;
                let hovered = page.hover((spot.x, spot.y), *modifiers, self.deadline);
                self.ok(hovered.await).await?;
                Ok(Proof::Event)
            }
            Action::Drag { patience, .. } => self.drag(action, *patience, line).await,
            Action::Scroll { .. } => self.scroll(action, line).await,
            Action::Type {
                target,
                text,
                clear,
                patience,
            } => {
                self.focus(target.as_ref(), *clear, *patience, line).await?;
                self.write(text, *clear, line).await
            }
            Action::Key {
                target,
                stroke,
                count,
                hold,
                patience,
            } => {
                self.focus(target.as_ref(), false, *patience, line).await?;
                self.watch(&["keydown"], false).await?;
                let page = &self.opened.page;
                let pressed = page.press(stroke, *count, *hold, self.deadline);
                self.ok(pressed.await).await?;
                line.insert("key".to_owned(), stroke.key.as_str().into());
                Ok(Proof::Event)
            }
            Action::Select {
                target,
                wanted,
                patience,
            } => self.select(target, wanted, *patience, line).await,
            Action::Upload { target, paths } => self.upload(target, paths, line).await,
            Action::Wait { condition, within } => self.wait(condition, *within).await,
            Action::Screenshot(asked) => {
                let receipt = screenshot::shoot(self.session, self.opened, asked).await?;
                line.insert("receipt".to_owned(), receipt);
                Ok(Proof::None)
            }
        }
    }

    /// Finds a target, says in the line what it is, and gives the point to act on.
    async fn spot(
        &self,
        target: &Target,
        covered: bool,
        patience: Duration,
        line: &mut Line,
    ) -> Result<Spot, Refused> {
        let spot = self.find(target, covered, patience).await?;
        if let Some(on) = &spot.on {
            line.insert("on".to_owned(), short(on).into());
        }
        let frame = self.opened.sight().frame(self.opened.page.viewport());
        if let Some(at) = frame.pixel(spot.x, spot.y) {
            line.insert("at".to_owned(), json!(at));
        }
        Ok(spot)
    }

    async fn find(
        &self,
        target: &Target,
        covered: bool,
        patience: Duration,
    ) -> Result<Spot, Refused> {
        let aim = target.aim(self.opened)?;
        let page = &self.opened.page;
        let found = page.locate(&aim, covered, patience, self.deadline).await;
        let found = self.ok(found).await?;
        found.map_err(|miss| missed(&target.shown(), miss))
    }

    async fn watch(&self, kinds: &[&str], aimed: bool) -> Result<(), Refused> {
        let watched = self.opened.page.watch(kinds, aimed, self.deadline).await;
        self.ok(watched).await
    }

    /// The value, or the refusal for what went wrong on the page.
    pub(super) async fn ok<T>(
        &self,
        done: Result<T, crate::browser::page::PageError>,
    ) -> Result<T, Refused> {
        match done {
            Ok(value) => Ok(value),
            Err(error) => Err(self.failed(error).await),
        }
    }

    async fn drag(
        &self,
        action: &Action,
        patience: Duration,
        line: &mut Line,
    ) -> Result<Proof, Refused> {
        let Action::Drag {
            from,
            to,
            steps,
            button,
            modifiers,
            ..
        } = action
        else {
            return Ok(Proof::None);
        };
        // Finding one end may scroll the other away, so the first is looked at once more.
        self.find(to, true, patience).await?;
        self.find(from, false, patience).await?;
        let end = self.find(to, true, patience).await?;
        let start = self.spot(from, false, patience, line).await?;
        if let Some(on) = &end.on {
            line.insert("to".to_owned(), short(on).into());
        }
        self.watch(&["mousedown", "pointerdown", "dragstart"], true)
            .await?;
        let drag = Drag {
            from: (start.x, start.y),
            to: (end.x, end.y),
            steps: *steps,
            button: *button,
            modifiers: *modifiers,
        };
        let dropped = self.opened.page.drag(&drag, self.deadline).await;
        if self.ok(dropped).await? {
            line.insert("dropped".to_owned(), true.into());
        }
        Ok(Proof::Event)
    }

    async fn scroll(&self, action: &Action, line: &mut Line) -> Result<Proof, Refused> {
        let Action::Scroll {
            target,
            by,
            norm,
            modifiers,
            patience,
        } = action
        else {
            return Ok(Proof::None);
        };
        let at = match target {
            Some(target) => {
                let spot = self.spot(target, true, *patience, line).await?;
                (spot.x, spot.y)
            }
            None => {
                let viewport = self.opened.page.viewport();
                (
                    f64::from(viewport.width) / 2.0,
                    f64::from(viewport.height) / 2.0,
                )
            }
        };
        // Without a distance, finding it has brought it into view.
        let Some(by) = by else {
            return Ok(Proof::Own);
        };
        let page = &self.opened.page;
        let by = self
            .opened
            .sight()
            .frame(page.viewport())
            .distance(*by, *norm);
        self.watch(&["wheel"], false).await?;
        let scrolled = page.scroll(at, by, *modifiers, self.deadline).await;
        match self.ok(scrolled).await? {
            Some(scrolled) => {
                let of = scrolled.of.map(|of| short(&of));
                line.insert(
                    "scrolled".to_owned(),
                    json!({ "css_by": scrolled.by, "css_to": scrolled.to, "of": of }),
                );
                Ok(Proof::Own)
            }
            None => {
                line.insert("scrolled".to_owned(), Value::Null);
                Ok(Proof::Event)
            }
        }
    }

    /// Gives the focus to a target: as a script would, and with a click where it takes it only so.
    async fn focus(
        &self,
        target: Option<&Target>,
        select_all: bool,
        patience: Duration,
        line: &mut Line,
    ) -> Result<(), Refused> {
        let Some(target) = target else { return Ok(()) };
        let page = &self.opened.page;
        let spot = self.spot(target, true, patience, line).await?;
        if self.ok(page.focus(select_all, self.deadline).await).await? {
            return Ok(());
        }
        let at = (spot.x, spot.y);
        let clicked = page.click(
            at,
            Default::default(),
            1,
            Modifiers::default(),
            self.deadline,
        );
        self.ok(clicked.await).await?;
        self.ok(page.focus(select_all, self.deadline).await)
            .await
            .map(drop)
    }

    async fn write(&self, text: &str, clear: bool, line: &mut Line) -> Result<Proof, Refused> {
        let page = &self.opened.page;
        let loader = page.observed.document().loader;
        self.watch(&["keydown", "input"], false).await?;
        if text.is_empty() && clear {
            let delete = Stroke::parse("Delete").map_err(|_| missed("Delete", Miss::None))?;
            let pressed = page.press(&delete, 1, Duration::ZERO, self.deadline);
            self.ok(pressed.await).await?;
        } else if text.chars().count() > TYPED_KEYS {
            self.ok(page.insert(text, self.deadline).await).await?;
        } else {
            self.ok(page.type_text(text, self.deadline).await).await?;
        }
        line.insert("typed".to_owned(), text.chars().count().into());
        let held = self.ok(page.held(text, self.deadline).await).await?;
        if page.observed.document().loader != loader {
            return Ok(Proof::Event);
        }
        if let Some(on) = &held.on {
            line.insert("on".to_owned(), short(on).into());
        }
        match &held.value {
            Some(value) => {
                line.insert("value".to_owned(), short(value).into());
                if !held.holds {
                    let why = "the field holds something else than what was typed";
                    line.insert("unverifiable".to_owned(), why.into());
                }
            }
            None => {
                let why = "no text field has the focus: the keys went to the page";
                line.insert("unverifiable".to_owned(), why.into());
            }
        }
        Ok(Proof::Own)
    }

    async fn select(
        &self,
        target: &Target,
        wanted: &[Value],
        patience: Duration,
        line: &mut Line,
    ) -> Result<Proof, Refused> {
        let aim = target.aim(self.opened)?;
        self.watch(&[], false).await?;
        let page = &self.opened.page;
        let chosen = page.choose(&aim, wanted, patience, self.deadline).await;
        let chosen = self.ok(chosen).await?;
        let chosen = chosen.map_err(|miss| missed(&target.shown(), miss))?;
        line.insert("on".to_owned(), short(&chosen.on).into());
        line.insert("selected".to_owned(), chosen.selected);
        Ok(Proof::Own)
    }

    async fn upload(
        &self,
        target: &Target,
        paths: &[UploadPath],
        line: &mut Line,
    ) -> Result<Proof, Refused> {
        let aim: Aim = target.aim(self.opened)?;
        let written = self.written(paths).await?;
        self.watch(&[], false).await?;
        let picked = self
            .opened
            .page
            .pick_files(&aim, &written, self.deadline)
            .await;
        let shown = target.shown();
        match self.ok(picked).await? {
            Ok(names) => {
                let names: Vec<String> = names.iter().map(|name| short(name)).collect();
                line.insert("on".to_owned(), shown.into());
                line.insert("files".to_owned(), json!(names));
                Ok(Proof::Own)
            }
            Err(Unpicked::Missed(miss)) => Err(missed(&shown, miss)),
            Err(Unpicked::Disabled) => Err(missed(&shown, Miss::Disabled { on: shown.clone() })),
            Err(Unpicked::NoFileInput) => Err(Refused::new(
                Code::BadArguments,
                format!("{shown} is no file input"),
                "aim at the <input type=file>, which may be hidden",
            )),
            Err(Unpicked::OneOnly) => Err(Refused::new(
                Code::BadArguments,
                format!("{shown} takes one file"),
                "pick one",
            )),
        }
    }

    /// The uploads as files that the browser can read.
    async fn written(&self, paths: &[UploadPath]) -> Result<Vec<String>, Refused> {
        let kit = Arc::clone(&self.session.kit);
        let picked = Arc::clone(&self.session.picked);
        let paths = paths.to_vec();
        let written = blocking(move || {
            let files = paths.iter().filter_map(|path| {
                let name = path.as_str().rsplit('/').next().unwrap_or_default();
                Some((name.to_owned(), kit.uploads.get(path)?.chunks.concat()))
            });
            let files: Vec<_> = files.collect();
            picked.write(&kit.folder, &files)
        });
        written.await?.map_err(|error| {
            tracing::error!(%error, "an upload could not be handed to the browser");
            Refused::new(
                Code::Internal,
                "the file could not be handed to the browser",
                "try once more",
            )
        })
    }
}
