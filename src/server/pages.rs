//! The pages of a session: reserved before the first await, opened from a spare where one is ready, and remembered as
//! lost when their browser was.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::answer::{Code, Refused};
use super::event::{Event, PageState};
use super::guard::{Killed, Watched};
use super::herald::Herald;
use super::keeper::{Browser, running};
use super::launch::Kit;
use super::sight::Sight;
use crate::browser::fold::Life;
use crate::browser::page::{Page, PageError, Viewport};
use crate::browser::pipe::CallError;
use crate::policy::limits::{BROWSER_WAIT, PAGES, VIEWPORT};
use crate::proxy::uploads::store::{Change, UploadPath};

/// Lost pages whose loss is remembered by name.
const REMEMBERED: usize = 64;

/// A page of the agent's and its name.
pub(super) struct Opened {
    pub(super) id: String,
    pub(super) page: Page,
    /// The address that it was last sent to.
    pub(super) url: Mutex<String>,
    /// What the guard knows of it.
    pub(super) watched: Watched,
    /// What the agent has seen of it.
    sight: Mutex<Sight>,
    /// One list of actions at a time: there is one mouse.
    pub(super) hand: tokio::sync::Mutex<()>,
}

impl Opened {
    /// Why its renderer was killed, where it is gone and did not crash by itself.
    pub(super) fn killed(&self) -> Option<Killed> {
        let is_gone = self.page.life() == Life::Crashed;
        is_gone.then(|| self.watched.why_gone()).flatten()
    }

    /// What the agent has seen of it.
    pub(super) fn sight(&self) -> MutexGuard<'_, Sight> {
        self.sight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct Table {
    last: u64,
    reserved: usize,
    open: BTreeMap<u64, Arc<Opened>>,
    lost: BTreeSet<u64>,
}

/// The pages of a session.
pub(super) struct Pages {
    kit: Arc<Kit>,
    browser: watch::Receiver<Browser>,
    opened: Arc<AtomicU64>,
    herald: Herald,
    table: Mutex<Table>,
    spare: Mutex<Option<Page>>,
    spare_taken: Notify,
}

/// A place for a page; given back when it is dropped unused.
pub(super) struct Reservation<'a>(&'a Pages);

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.0.table().reserved -= 1;
    }
}

impl Pages {
    pub(super) fn new(
        kit: Arc<Kit>,
        browser: watch::Receiver<Browser>,
        opened: Arc<AtomicU64>,
        herald: Herald,
    ) -> Self {
        let (table, spare) = (Mutex::default(), Mutex::default());
        Self {
            kit,
            browser,
            opened,
            herald,
            table,
            spare,
            spare_taken: Notify::new(),
        }
    }

    /// A place for a new page.
    pub(super) fn reserve(&self) -> Result<Reservation<'_>, Refused> {
        self.bury();
        let mut table = self.table();
        if table.open.len() + table.reserved >= PAGES {
            let message = format!("all {PAGES} pages are open");
            return Err(Refused::new(
                Code::TooManyPages,
                message,
                "close one with `POST /close`, or navigate an open one",
            ));
        }
        table.reserved += 1;
        Ok(Reservation(self))
    }

    /// Opens a blank page in its place, from the spare where there is one.
    pub(super) async fn open(
        &self,
        place: Reservation<'_>,
        viewport: Viewport,
    ) -> Result<Arc<Opened>, Refused> {
        let Some(chromium) = running(&self.browser, BROWSER_WAIT).await else {
            return Err(self.no_browser());
        };
        let spare = self
            .take_spare()
            .filter(|page| page.belongs_to(&chromium) && page.life() == Life::Alive);
        let page = match spare {
            Some(page) => page
                .set_viewport(viewport)
                .await
                .map(|()| page)
                .map_err(Into::into),
            None => self.kit.open(&chromium, viewport).await,
        };
        self.spare_taken.notify_one();
        let page = page.map_err(|error| self.refused("", error))?;
        self.opened.fetch_add(1, Ordering::Relaxed);
        let mut table = self.table();
        table.last += 1;
        let opened = Arc::new(Opened {
            id: format!("p{}", table.last),
            page,
            url: Mutex::default(),
            watched: Watched::new(),
            sight: Mutex::default(),
            hand: tokio::sync::Mutex::default(),
        });
        let number = table.last;
        table.open.insert(number, Arc::clone(&opened));
        drop(table);
        drop(place);
        Ok(opened)
    }

    /// The page of a name, where it is there; one that was put to rest goes on.
    pub(super) fn get(&self, id: &str) -> Result<Arc<Opened>, Refused> {
        self.bury();
        let table = self.table();
        let number = number(id);
        if let Some(opened) = number.and_then(|number| table.open.get(&number)) {
            opened.watched.used(|| opened.page.thaw());
            return Ok(Arc::clone(opened));
        }
        if number.is_some_and(|number| table.lost.contains(&number)) {
            let message = format!("the browser was lost, and {} with it", shown(id));
            return Err(Refused::new(
                Code::BrowserRestarted,
                message,
                "open the page again with `POST /page`; uploads are still there",
            ));
        }
        Err(Refused::new(
            Code::NotFound,
            format!("there is no page {}", shown(id)),
            "`GET /pages` lists the open ones; `POST /page` opens one",
        ))
    }

    /// The page of a name, where its renderer lives: a crashed one can be navigated and closed, but not looked at.
    pub(super) fn alive(&self, id: &str) -> Result<Arc<Opened>, Refused> {
        let opened = self.get(id)?;
        match opened.page.life() {
            Life::Crashed => Err(self.refused(id, CallError::Crashed)),
            Life::Alive | Life::Closed => Ok(opened),
        }
    }

    /// The name of the page whose browser context has this user name at the proxy.
    pub(super) fn name_of(&self, user: &str) -> Option<String> {
        let table = self.table();
        let mut open = table.open.values();
        open.find(|opened| opened.page.user() == user)
            .map(|opened| opened.id.clone())
    }

    /// The open pages in the order they were opened.
    pub(super) fn list(&self) -> Vec<Arc<Opened>> {
        self.bury();
        self.table().open.values().cloned().collect()
    }

    /// Closes a page, hung or not.
    pub(super) async fn close(&self, opened: &Opened) {
        if let Some(number) = number(&opened.id) {
            self.table().open.remove(&number);
        }
        self.end(opened).await;
        self.tell(opened, PageState::Closed, None);
    }

    async fn end(&self, opened: &Opened) {
        opened.page.close().await;
        self.forget(opened);
    }

    /// What the proxy knows of a page and serves for it goes with the page.
    fn forget(&self, opened: &Opened) {
        self.kit.proxy.retire(opened.page.user());
        if let Ok(path) = UploadPath::parse(&inline_path(&opened.id)) {
            // Most pages were not given as text; for them there is nothing to delete.
            let _ = self.kit.uploads.apply(Change {
                delete: vec![path],
                ..Change::default()
            });
        }
    }

    /// What a page was told to show.
    pub(super) fn sent_to(&self, opened: &Opened, url: &str) {
        opened.watched.renewed();
        url.clone_into(&mut opened.url.lock().unwrap_or_else(PoisonError::into_inner));
        self.tell(opened, PageState::Opened, None);
    }

    /// The refusal for something that did not work on a page.
    pub(super) fn refused(&self, id: &str, error: impl Into<PageError>) -> Refused {
        let error = error.into();
        if matches!(error, PageError::Call(CallError::Crashed)) {
            let opened = number(id).and_then(|number| self.table().open.get(&number).cloned());
            if let Some(killed) = opened.and_then(|opened| opened.killed()) {
                let message = format!("{id} was killed: {}", killed.reason);
                return Refused::new(Code::PageCrashed, message, killed.fix);
            }
        }
        super::tools::refused(id, &error)
    }

    /// Keeps one primed blank page ready while the browser runs.
    pub(super) async fn keep_spare(self: Arc<Self>, closing: CancellationToken) {
        let work = async {
            loop {
                if self.spare().is_none()
                    && let Some(chromium) = running(&self.browser, BROWSER_WAIT).await
                {
                    let (width, height) = VIEWPORT;
                    match self
                        .kit
                        .open(
                            &chromium,
                            Viewport {
                                width,
                                height,
                                scale: 1.0,
                            },
                        )
                        .await
                    {
                        Ok(page) => *self.spare() = Some(page),
                        Err(error) => tracing::debug!(%error, "no spare page"),
                    }
                }
                self.spare_taken.notified().await;
            }
        };
        tokio::select! {
            () = work => {}
            () = closing.cancelled() => {}
        }
    }

    /// Moves pages whose browser is gone, or that closed themselves, out of the table.
    fn bury(&self) {
        let mut table = self.table();
        let dead =
            |opened: &Arc<Opened>| opened.page.life() == Life::Closed || opened.page.is_orphan();
        let gone: Vec<_> = table
            .open
            .extract_if(.., |_, opened| dead(opened))
            .collect();
        for (number, opened) in gone {
            if opened.page.is_orphan() {
                table.lost.insert(number);
                if table.lost.len() > REMEMBERED {
                    table.lost.pop_first();
                }
            }
            self.forget(&opened);
            self.tell(&opened, PageState::Lost, None);
        }
    }

    fn no_browser(&self) -> Refused {
        match &*self.browser.borrow() {
            Browser::Failed(reason) => {
                tracing::error!(%reason, "a call came, and no browser stays");
                Refused::new(
                    Code::Internal,
                    "the browser cannot be started any more",
                    "tell the person whose machine it is",
                )
            }
            _ => Refused::new(
                Code::BrowserRestarted,
                "the browser was lost and is being started again",
                "try again in a few seconds",
            ),
        }
    }

    /// Tells the owner what became of a page.
    pub(super) fn tell(&self, opened: &Opened, state: PageState, reason: Option<String>) {
        let url = opened
            .url
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        self.herald.tell(Event::Page {
            page: opened.id.clone(),
            state,
            url,
            reason,
        });
    }

    fn take_spare(&self) -> Option<Page> {
        self.spare().take()
    }

    fn spare(&self) -> MutexGuard<'_, Option<Page>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a page that was given as text is served: on the uploads origin, so that it may use the agent's files.
pub(super) fn inline_path(id: &str) -> String {
    format!("_pages/{id}.html")
}

fn number(id: &str) -> Option<u64> {
    id.strip_prefix('p')?.parse().ok()
}

/// A name as it came, cut.
fn shown(id: &str) -> String {
    format!("{:?}", id.chars().take(20).collect::<String>())
}
