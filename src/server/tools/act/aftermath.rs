//! What came of an action: where the page went, what it said, and whether anything proves that the action was felt.

use serde_json::json;

use super::perform::Proof;
use super::{Hand, Line, is_empty};
use crate::browser::fold::{Capped, Events, short};
use crate::browser::wait::Moved;
use crate::server::answer::Refused;

impl Hand<'_> {
    /// Completes the line of an action that was done.
    pub(super) async fn aftermath(
        &mut self,
        loader: &str,
        proof: Proof,
        line: &mut Line,
    ) -> Result<(), Refused> {
        if let Proof::None = proof {
            let happened = self.opened.page.observed.take_events();
            events(&happened, line);
            return Ok(());
        }
        let page = &self.opened.page;
        let seen = match page.testimony(self.deadline).await {
            Ok(seen) => seen,
            Err(error) => return Err(self.failed(error).await),
        };
        let moved = page.until_arrived(loader, self.deadline).await;
        let shown = match &moved {
            Moved::Arrived => match page.testimony(self.deadline).await {
                Ok(shown) => shown,
                Err(error) => return Err(self.failed(error).await),
            },
            _ => seen.clone(),
        };
        if shown.url != self.url || moved == Moved::Arrived {
            line.insert("url".to_owned(), short(&shown.url).into());
            line.insert("title".to_owned(), short(&shown.title).into());
            self.url = shown.url;
        }
        if let Moved::UnderWay(url) = &moved {
            line.insert("navigating".to_owned(), short(url).into());
        }
        let happened = page.observed.take_events();
        let news = moved != Moved::Stayed || !is_empty(&happened);
        if moved == Moved::Stayed {
            line.insert("changed".to_owned(), seen.changed.into());
        }
        let silent = proof == Proof::Event && seen.received == 0 && !seen.changed && !news;
        if silent {
            line.insert(
                "unverifiable".to_owned(),
                "nothing shows that the page felt it: take a picture".into(),
            );
        }
        events(&happened, line);
        Ok(())
    }
}

/// The lists of what a page did since it was last asked; empty ones are left out.
pub(super) fn events(events: &Events, line: &mut Line) {
    fn filled<T: serde::Serialize>(name: &str, list: &Capped<T>, line: &mut Line) {
        if list.count > 0 {
            line.insert(name.to_owned(), json!(list));
        }
    }
    filled("dialogs", &events.dialogs, line);
    filled("popups", &events.popups, line);
    filled("downloads", &events.downloads, line);
    filled("page_errors", &events.page_errors, line);
    filled("console_errors", &events.console_errors, line);
    filled("failed_requests", &events.failed_requests, line);
}
