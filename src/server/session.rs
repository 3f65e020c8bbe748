//! The life of a session: everything is started in one order, and ended in the opposite one.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::answer::Answer;
use super::artifacts::Artifacts;
use super::audit::Record;
use super::briefing::{Facts, briefing};
use super::chronicle::Chronicle;
use super::keeper::{Browser, Keeper};
use super::launch::Kit;
use super::pages::Pages;
use super::router::Router;
use super::tools::schemas;
use super::{Event, Ready, RelayChoice, ServerConfig, StartError};
use crate::browser::chromium::{Chromium, Setup};
use crate::browser::find::find;
use crate::browser::folder::RunFolder;
use crate::browser::probe::Verdict;
use crate::place;
use crate::policy::allowlist::Allowlist;
use crate::policy::limits::{OWNER_EVENTS, PROXY_EVENTS, SHUTDOWN};
use crate::proxy::uploads::UploadStore;
use crate::proxy::{
    Event as ProxyEvent, Proxy, ProxyConfig, of_this_machine, resolve::ResolverConfig,
};
use crate::relay::embedded::{EmbeddedRelay, RelayConfig};
use crate::relay::link::{Link, LinkConfig, LinkError, LinkEvent, LinkTiming, ListedLink, Minted};
use crate::relay::registration::{Registration, ToolSpec};

/// What the tools work on.
pub(super) struct Session {
    pub(super) kit: Arc<Kit>,
    pub(super) pages: Arc<Pages>,
    pub(super) browser: watch::Receiver<Browser>,
    pub(super) artifacts: Artifacts,
    pub(super) verdict: Verdict,
    pub(super) allow: watch::Sender<Arc<Allowlist>>,
    pub(super) end: SystemTime,
    /// Whether pictures go a short way, so that the quick deflate is the better default.
    pub(super) near: bool,
}

/// A running session.
pub struct Server {
    session: Arc<Session>,
    link: Link,
    relay: Option<EmbeddedRelay>,
    chronicle: Chronicle,
    tasks: JoinSet<()>,
    closing: CancellationToken,
    over: mpsc::Receiver<String>,
    until: tokio::time::Instant,
}

impl Server {
    /// Starts a session; when this returns, the link works.
    pub async fn start(
        config: ServerConfig,
        owner: mpsc::Sender<Event>,
    ) -> Result<Self, StartError> {
        let began = Instant::now();
        let warn = owner.clone();
        let mut chronicle = Chronicle::open(config.log.as_deref(), move |warning| {
            let _ = warn.try_send(Event::Progress(warning));
        });
        let (events, told) = mpsc::channel(OWNER_EVENTS);
        chronicle.hear(told, owner);
        let tell = |line: String| drop(events.try_send(Event::Progress(line)));
        let (allow, allowed) = watch::channel(Arc::new(config.allow.clone()));
        let (proxy_events, refusals) = mpsc::channel(PROXY_EVENTS);
        let kit = Arc::new(make_kit(&config, allowed, proxy_events)?);
        let (chromium, body, verdict) = kit.climb(config.gpu, &tell).await?;
        let (state, browser) = watch::channel(Browser::Running(Arc::new(chromium.clone())));
        let closing = CancellationToken::new();
        let opened = Arc::new(AtomicU64::new(0));
        let pages = Pages::new(
            Arc::clone(&kit),
            browser.clone(),
            Arc::clone(&opened),
            events.clone(),
        );
        let pages = Arc::new(pages);
        let mut tasks = JoinSet::new();
        let keeper = Keeper {
            kit: Arc::clone(&kit),
            state,
            events: events.clone(),
            opened,
            closing: closing.clone(),
        };
        tasks.spawn(keeper.keep(chromium.clone(), body));
        tasks.spawn(Arc::clone(&pages).keep_spare(closing.clone()));
        let refused = events.clone();
        chronicle.hear_proxy(refusals, Arc::clone(&pages), move |event| {
            let _ = refused.try_send(event);
        });
        let session = Arc::new(Session {
            artifacts: Artifacts::new(kit.folder.artifacts()),
            near: matches!(config.relay, RelayChoice::Local),
            end: SystemTime::now() + config.length,
            kit,
            pages,
            browser,
            verdict,
            allow,
        });
        let (over_sender, over) = mpsc::channel(1);
        let until = tokio::time::Instant::now() + config.length;
        let linked = connect(&config, &session, &tell).await;
        let (link, relay, calls, address, minted) = match linked {
            Ok(linked) => linked,
            Err(error) => {
                closing.cancel();
                join(&mut tasks).await;
                return Err(error);
            }
        };
        let router = Router {
            session: Arc::clone(&session),
            link: link.clone(),
            events: events.clone(),
        };
        tasks.spawn(router.run(calls, over_sender, closing.clone()));
        chronicle
            .audit()
            .write(started(&session, &chromium, &address));
        let _ = events.try_send(ready(
            &session,
            &chromium,
            minted.link,
            address,
            began.elapsed(),
        ));
        Ok(Self {
            session,
            link,
            relay,
            chronicle,
            tasks,
            closing,
            over,
            until,
        })
    }

    /// Becomes ready when the session is over by itself, with the reason.
    pub async fn over(&mut self) -> String {
        let mut browser = self.session.browser.clone();
        let failed = async {
            loop {
                if let Browser::Failed(reason) = &*browser.borrow_and_update() {
                    return format!("the browser cannot be started any more: {reason}");
                }
                if browser.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        tokio::select! {
            () = tokio::time::sleep_until(self.until) => "its time is over".to_owned(),
            Some(reason) = self.over.recv() => reason,
            reason = failed => reason,
        }
    }

    /// Ends everything in order, within [`SHUTDOWN`]: no more calls, no more pages, no browser, no proxy, no log, no folder.
    pub async fn end(mut self, reason: &str) {
        let ended = timeout(SHUTDOWN, async {
            self.link.close().await;
            if let Some(relay) = self.relay.take() {
                relay.close().await;
            }
            self.closing.cancel();
            join(&mut self.tasks).await;
            self.session.kit.proxy.close().await;
            self.chronicle.end(reason).await;
        });
        if ended.await.is_err() {
            tracing::warn!("the session did not end in time; what is left of it is killed");
        }
    }

    /// The hosts that pages may reach.
    pub fn hosts(&self) -> Vec<String> {
        self.session.hosts()
    }

    /// The open pages: name and address.
    pub fn pages(&self) -> Vec<(String, String)> {
        self.session
            .pages
            .list()
            .iter()
            .map(|opened| (opened.id.clone(), opened.url()))
            .collect()
    }

    /// Makes another link.
    pub async fn new_link(&self, label: &str) -> Result<Minted, LinkError> {
        self.link.mint(label).await
    }

    /// The links that live.
    pub async fn links(&self) -> Result<Vec<ListedLink>, LinkError> {
        self.link.list().await
    }

    /// Kills a link.
    pub async fn revoke(&self, token: &str) -> Result<bool, LinkError> {
        self.link.revoke(token).await
    }
}

impl Session {
    /// The rules of the allowlist as text.
    pub(super) fn hosts(&self) -> Vec<String> {
        let allow = self.allow.borrow();
        let any = allow.any_public().then(|| "any public host".to_owned());
        any.into_iter()
            .chain(allow.rules().map(ToString::to_string))
            .collect()
    }

    /// What the briefing says of the GPU.
    pub(super) fn gpu_sentence(&self) -> String {
        let api = |name: &str, proven: bool| {
            format!("{name} {}", if proven { "works" } else { "does NOT work" })
        };
        format!(
            "Rendering is in **{}** ({}); {} and {}, proven by pixels.",
            self.verdict.word(),
            self.verdict.rung.name(),
            api("WebGL2", self.verdict.webgl.proven),
            api("WebGPU", self.verdict.webgpu.proven)
        )
    }
}

fn make_kit(
    config: &ServerConfig,
    allow: watch::Receiver<Arc<Allowlist>>,
    events: mpsc::Sender<ProxyEvent>,
) -> Result<Kit, StartError> {
    let program = find(config.chromium.as_deref())?;
    let uploads = Arc::new(UploadStore::new());
    let proxy = Proxy::new(ProxyConfig {
        allow,
        uploads: Arc::clone(&uploads),
        own_addresses: of_this_machine(),
        resolver: ResolverConfig::System,
        events,
    })?;
    let mut setup = Setup::new(program, config.helper.clone(), proxy.spki().to_owned());
    setup.sandbox = config.sandbox;
    setup.switches = config.switches.clone();
    let folder = RunFolder::create(setup.account.as_ref()).map_err(StartError::Folder)?;
    Ok(Kit {
        setup,
        folder,
        proxy: Arc::new(proxy),
        uploads,
    })
}

type Linked = (
    Link,
    Option<EmbeddedRelay>,
    mpsc::Receiver<LinkEvent>,
    String,
    Minted,
);

/// Registers at the relay and makes the first link.
async fn connect(
    config: &ServerConfig,
    session: &Session,
    tell: &impl Fn(String),
) -> Result<Linked, StartError> {
    let (relay, address) = match &config.relay {
        RelayChoice::Local => {
            let relay = EmbeddedRelay::bind(RelayConfig::local()).await?;
            let address = relay.local_address();
            (Some(relay), address)
        }
        RelayChoice::At(address) => (None, address.clone()),
    };
    tell(format!("registering at {address}"));
    let registration = registration(session).map_err(|reason| StartError::Link {
        reason,
        fix: String::new(),
    })?;
    let shown = address.to_string();
    let (link, mut calls) = Link::open(LinkConfig {
        relay: address,
        registration,
        timing: LinkTiming::default(),
        extra_roots: Vec::new(),
    });
    loop {
        let refused = match calls.recv().await {
            Some(LinkEvent::Up { .. }) => break,
            // A start that cannot reach the relay says so at once; a session that has begun goes on trying.
            Some(LinkEvent::Away { reason, .. }) => (reason.to_string(), reason.fix().to_owned()),
            Some(LinkEvent::Ended(ending)) => (ending.to_string(), ending.fix().to_owned()),
            Some(_) => continue,
            None => ("the link ended".to_owned(), String::new()),
        };
        link.close().await;
        return Err(StartError::Link {
            reason: refused.0,
            fix: refused.1,
        });
    }
    match link.mint(&config.label).await {
        Ok(minted) => Ok((link, relay, calls, shown, minted)),
        Err(error) => {
            link.close().await;
            Err(StartError::Link {
                reason: error.to_string(),
                fix: "Try again.".to_owned(),
            })
        }
    }
}

fn registration(session: &Session) -> Result<Registration, String> {
    let minutes = session
        .end
        .duration_since(SystemTime::now())
        .unwrap_or_default()
        .as_secs()
        .div_ceil(60);
    let end = format!("The session ends in {minutes} minutes, or when its owner stops it.");
    let text = briefing(&Facts {
        gpu: &session.gpu_sentence(),
        end: &end,
    });
    let tools: Vec<ToolSpec> = schemas::tools()
        .into_iter()
        .map(|tool| ToolSpec {
            method: tool.method.to_owned(),
            path: tool.path.to_owned(),
            description: tool.description.to_owned(),
            input_schema: tool.input_schema,
        })
        .collect();
    let description = "A Chromium on the GPU of a person's own machine: upload a page, open it, get true pictures";
    Registration::new(place::APP_ID, description, &text, &tools).map_err(|error| error.to_string())
}

fn ready(
    session: &Session,
    chromium: &Chromium,
    link: String,
    relay: String,
    took: Duration,
) -> Event {
    Event::Ready(Box::new(Ready {
        link,
        relay,
        gpu: session.verdict.clone(),
        version: chromium.version.clone(),
        sandbox: session.kit.setup.sandbox,
        isolation: chromium.isolation.clone(),
        account: session
            .kit
            .setup
            .account
            .as_ref()
            .map(|account| account.name.clone()),
        end: session.end,
        start_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    }))
}

/// The session's begin, for the log.
fn started(session: &Session, chromium: &Chromium, relay: &str) -> Record {
    Record::Started {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        relay: relay.to_owned(),
        gpu: session.verdict.word().to_owned(),
        browser: chromium.version.clone(),
        sandbox: session.kit.setup.sandbox,
        network_namespace: chromium.isolation.is_ok(),
        hosts: session.hosts(),
    }
}

async fn join(tasks: &mut JoinSet<()>) {
    while tasks.join_next().await.is_some() {}
}

/// The whole answer of a tool.
pub(super) type Outcome = Result<Answer, super::answer::Refused>;
