//! The keyboard: strokes with their modifiers, and text.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::super::command::act::{DispatchKeyEvent, InsertText};
use super::super::page::{Page, PageError};
use super::keys::{Modifiers, Named, Stroke};

impl Page {
    /// Presses a key, with its modifiers, some times; held down for a while where that is asked.
    pub async fn press(
        &self,
        stroke: &Stroke,
        count: u32,
        hold: Duration,
        deadline: Instant,
    ) -> Result<(), PageError> {
        let mut down = Vec::new();
        let mut held = Modifiers::default();
        for (modifier, key) in stroke.modifiers.keys() {
            held = held.and(modifier);
            down.push(modifier_event("rawKeyDown", key, held));
        }
        self.burst(&down, deadline).await?;
        let pair = [pressed(stroke), released(stroke)];
        if hold.is_zero() {
            let strokes: Vec<_> = (0..count).flat_map(|_| pair.clone()).collect();
            self.burst(&strokes, deadline).await?;
        } else {
            self.hold(&pair, count, hold, deadline).await?;
        }
        let up: Vec<_> = stroke
            .modifiers
            .keys()
            .map(|(_, key)| modifier_event("keyUp", key, Modifiers::default()))
            .rev()
            .collect();
        self.burst(&up, deadline).await
    }

    /// Each press lasts a while. A deadline lets the key go all the same: no key stays down after a call.
    async fn hold(
        &self,
        [down, up]: &[DispatchKeyEvent<'_>; 2],
        count: u32,
        hold: Duration,
        deadline: Instant,
    ) -> Result<(), PageError> {
        for _ in 0..count {
            self.burst(std::slice::from_ref(down), deadline).await?;
            let waited = timeout_at(deadline, sleep(hold)).await;
            if waited.is_err() {
                self.connection.tell(Some(&self.session), up);
                return Err(PageError::Timeout);
            }
            self.burst(std::slice::from_ref(up), deadline).await?;
        }
        Ok(())
    }

    /// Types a text key by key; what no key of the layout writes is inserted as an input method does.
    pub async fn type_text(&self, text: &str, deadline: Instant) -> Result<(), PageError> {
        let text = text.replace("\r\n", "\n");
        let on_keyboard = Stroke::is_on_keyboard;
        let mut rest = text.as_str();
        while let Some(first) = rest.chars().next() {
            let same = |character| on_keyboard(character) == on_keyboard(first);
            let end = rest.find(|character| !same(character));
            let (run, left) = rest.split_at(end.unwrap_or(rest.len()));
            rest = left;
            if on_keyboard(first) {
                self.type_keys(run, deadline).await?;
            } else {
                self.insert(run, deadline).await?;
            }
        }
        Ok(())
    }

    async fn type_keys(&self, text: &str, deadline: Instant) -> Result<(), PageError> {
        let strokes: Vec<Stroke> = text
            .chars()
            .map(|character| Stroke::character(character, Modifiers::default()))
            .collect();
        let events: Vec<_> = strokes
            .iter()
            .flat_map(|stroke| [pressed(stroke), released(stroke)])
            .collect();
        self.burst(&events, deadline).await
    }

    /// Puts a text in at once, without keys: for long ones.
    pub async fn insert(&self, text: &str, deadline: Instant) -> Result<(), PageError> {
        self.burst(&[InsertText { text }], deadline).await
    }
}

fn pressed(stroke: &Stroke) -> DispatchKeyEvent<'_> {
    let kind = if stroke.text.is_some() {
        "keyDown"
    } else {
        "rawKeyDown"
    };
    key_event(kind, stroke)
}

fn released(stroke: &Stroke) -> DispatchKeyEvent<'_> {
    DispatchKeyEvent {
        text: None,
        commands: Vec::new(),
        ..key_event("keyUp", stroke)
    }
}

fn key_event<'a>(kind: &'a str, stroke: &'a Stroke) -> DispatchKeyEvent<'a> {
    DispatchKeyEvent {
        kind,
        modifiers: stroke.modifiers.bits(),
        key: &stroke.key,
        code: &stroke.code,
        windows_virtual_key_code: stroke.virtual_key,
        location: stroke.location,
        text: stroke.text.as_deref(),
        auto_repeat: false,
        commands: stroke.commands(),
    }
}

fn modifier_event(
    kind: &'static str,
    key: &'static Named,
    held: Modifiers,
) -> DispatchKeyEvent<'static> {
    DispatchKeyEvent {
        kind,
        modifiers: held.bits(),
        key: key.key,
        code: key.code,
        windows_virtual_key_code: key.virtual_key,
        location: key.location,
        text: None,
        auto_repeat: false,
        commands: Vec::new(),
    }
}
