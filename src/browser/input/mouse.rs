//! The mouse: clicks, movements, drags and the wheel.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::super::command::act::{DispatchDragEvent, DispatchMouseEvent, SetInterceptDrags};
use super::super::page::{Page, PageError};
use super::keys::Modifiers;

/// CSS pixels after which a drag and drop has begun, where one begins.
const DRAG_THRESHOLD: f64 = 8.0;
/// Chromium tells us of a drag within this, once its page has begun it.
const DRAG_BEGINS: Duration = Duration::from_secs(1);

/// A button of the mouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Button {
    /// The main one.
    #[default]
    Left,
    /// The wheel's.
    Middle,
    /// The one of the context menu.
    Right,
}

impl Button {
    fn name(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Middle => "middle",
            Self::Right => "right",
        }
    }

    fn bit(self) -> u32 {
        match self {
            Self::Left => 1,
            Self::Right => 2,
            Self::Middle => 4,
        }
    }
}

/// A drag: pressed at one point, moved in steps, released at another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drag {
    /// CSS pixels of the viewport.
    pub from: (f64, f64),
    /// CSS pixels of the viewport.
    pub to: (f64, f64),
    /// Movements between the two.
    pub steps: u32,
    /// The button that is held.
    pub button: Button,
    /// The modifier keys that are held.
    pub modifiers: Modifiers,
}

impl Drag {
    /// How many of its movements it takes until a drag and drop has begun.
    fn beginning(&self, points: &[(f64, f64)]) -> usize {
        let near = |(x, y): &&(f64, f64)| (x - self.from.0).hypot(y - self.from.1) < DRAG_THRESHOLD;
        let still = points.iter().take_while(near).count();
        (still + 1).min(points.len())
    }

    /// The points of its movements; the last one is where it ends.
    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        let Self {
            from, to, steps, ..
        } = *self;
        (1..=steps).map(move |step| {
            let part = f64::from(step) / f64::from(steps);
            (
                from.0 + (to.0 - from.0) * part,
                from.1 + (to.1 - from.1) * part,
            )
        })
    }
}

fn event(
    kind: &'static str,
    (x, y): (f64, f64),
    modifiers: Modifiers,
) -> DispatchMouseEvent<'static> {
    DispatchMouseEvent {
        kind,
        x,
        y,
        modifiers: modifiers.bits(),
        button: "none",
        buttons: 0,
        click_count: 0,
        delta_x: None,
        delta_y: None,
    }
}

impl Page {
    /// Moves the mouse to a point and clicks there.
    pub async fn click(
        &self,
        at: (f64, f64),
        button: Button,
        count: u32,
        modifiers: Modifiers,
        deadline: Instant,
    ) -> Result<(), PageError> {
        let mut commands = vec![event("mouseMoved", at, modifiers)];
        for click_count in 1..=count {
            for (kind, buttons) in [("mousePressed", button.bit()), ("mouseReleased", 0)] {
                commands.push(DispatchMouseEvent {
                    button: button.name(),
                    buttons,
                    click_count,
                    ..event(kind, at, modifiers)
                });
            }
        }
        self.burst(&commands, deadline).await
    }

    /// Moves the mouse to a point.
    pub async fn hover(
        &self,
        at: (f64, f64),
        modifiers: Modifiers,
        deadline: Instant,
    ) -> Result<(), PageError> {
        let moved = [event("mouseMoved", at, modifiers)];
        self.burst(&moved, deadline).await
    }

    /// Turns the wheel at a point.
    pub async fn wheel(
        &self,
        at: (f64, f64),
        by: (f64, f64),
        modifiers: Modifiers,
        deadline: Instant,
    ) -> Result<(), PageError> {
        let turned = [DispatchMouseEvent {
            delta_x: Some(by.0),
            delta_y: Some(by.1),
            ..event("mouseWheel", at, modifiers)
        }];
        self.burst(&turned, deadline).await
    }

    /// Drags. Where the page begins a drag and drop of its own with that, the movements become those of that drag;
    /// `true` says that they did.
    pub async fn drag(&self, drag: &Drag, deadline: Instant) -> Result<bool, PageError> {
        let intercept = |enabled| {
            self.connection
                .tell(Some(&self.session), &SetInterceptDrags { enabled });
        };
        self.observed.activity.take_drag();
        intercept(true);
        let dragged = self.press_and_move(drag, deadline).await;
        intercept(false);
        dragged
    }

    async fn press_and_move(&self, drag: &Drag, deadline: Instant) -> Result<bool, PageError> {
        let held = |kind, at| DispatchMouseEvent {
            button: drag.button.name(),
            buttons: drag.button.bit(),
            ..event(kind, at, drag.modifiers)
        };
        let pressed = DispatchMouseEvent {
            click_count: 1,
            ..held("mousePressed", drag.from)
        };
        let points: Vec<(f64, f64)> = drag.points().collect();
        let (first, rest) = points.split_at(drag.beginning(&points));
        let mut commands = vec![event("mouseMoved", drag.from, drag.modifiers), pressed];
        commands.extend(first.iter().map(|point| held("mouseMoved", *point)));
        self.burst(&commands, deadline).await?;
        if self.is_dragging(deadline).await? {
            let begun = self.observed.drag_begun();
            let within = deadline.min(Instant::now() + DRAG_BEGINS);
            let _ = timeout_at(within, begun).await;
            if let Some(data) = self.observed.activity.take_drag() {
                self.drop_at(drag, &points, &data, deadline).await?;
                return Ok(true);
            }
        }
        let mut commands: Vec<_> = rest.iter().map(|at| held("mouseMoved", *at)).collect();
        commands.push(DispatchMouseEvent {
            buttons: 0,
            click_count: 1,
            ..held("mouseReleased", drag.to)
        });
        self.burst(&commands, deadline).await?;
        Ok(false)
    }

    async fn drop_at(
        &self,
        drag: &Drag,
        points: &[(f64, f64)],
        data: &Value,
        deadline: Instant,
    ) -> Result<(), PageError> {
        let step = |kind, (x, y)| DispatchDragEvent {
            kind,
            x,
            y,
            data: data.clone(),
            modifiers: drag.modifiers.bits(),
        };
        let mut commands = vec![step("dragEnter", drag.from)];
        commands.extend(points.iter().map(|at| step("dragOver", *at)));
        commands.push(step("drop", drag.to));
        self.burst(&commands, deadline).await?;
        let released = [DispatchMouseEvent {
            button: drag.button.name(),
            click_count: 1,
            ..event("mouseReleased", drag.to, drag.modifiers)
        }];
        self.burst(&released, deadline).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drag_goes_in_equal_steps_and_ends_at_its_end() {
        let drag = Drag {
            from: (0.0, 10.0),
            to: (30.0, 40.0),
            steps: 3,
            button: Button::Left,
            modifiers: Modifiers::default(),
        };
        let points: Vec<_> = drag.points().collect();
        assert_eq!(points, [(10.0, 20.0), (20.0, 30.0), (30.0, 40.0)]);
        assert_eq!(drag.beginning(&points), 1);
        assert_eq!(drag.beginning(&[(1.0, 11.0), (5.0, 15.0), (7.0, 17.0)]), 3);
    }
}
