//! The life of a session: everything is started in one order, and ended in the opposite one.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::answer::Answer;
use super::approvals::Approvals;
use super::artifacts::Artifacts;
use super::audit::{Audit, Record};
use super::chronicle::Chronicle;
use super::desk::{Ending, OpenPage};
use super::guard::{Guard, LastCall, bound};
use super::herald::Herald;
use super::keeper::{Browser, Keeper, Vitals};
use super::launch::Kit;
use super::linked::connect;
use super::pages::Pages;
use super::router::Router;
use super::tools::act::{ActionLog, Picked};
use super::truth::Truth;
use super::{Event, Ready, RelayChoice, ServerConfig, StartError};
use crate::browser::chromium::{Chromium, Setup};
use crate::browser::find::find;
use crate::browser::folder::RunFolder;
use crate::browser::processes::machine_memory;
use crate::policy::allowlist::Allowlist;
use crate::policy::approval::{AnswerError, Decision};
use crate::policy::limits::{PROXY_EVENTS, REQUEST_NOTE, SHUTDOWN};
use crate::proxy::uploads::UploadStore;
use crate::proxy::{
    Event as ProxyEvent, Proxy, ProxyConfig, of_this_machine, resolve::ResolverConfig,
};
use crate::relay::embedded::EmbeddedRelay;
use crate::relay::link::Link;

/// What the tools work on.
pub(super) struct Session {
    pub(super) kit: Arc<Kit>,
    pub(super) pages: Arc<Pages>,
    pub(super) browser: watch::Receiver<Browser>,
    pub(super) artifacts: Artifacts,
    pub(super) truth: Arc<Truth>,
    pub(super) last_call: Arc<LastCall>,
    /// Bytes of memory that Chromium may hold.
    pub(super) max_memory: u64,
    pub(super) actions: ActionLog,
    pub(super) picked: Arc<Picked>,
    pub(super) approvals: Arc<Approvals>,
    pub(super) vitals: Arc<Vitals>,
    pub(super) allow: watch::Receiver<Arc<Allowlist>>,
    pub(super) end: SystemTime,
    /// Whether pictures go a short way, so that the quick deflate is the better default.
    pub(super) near: bool,
}

/// A running session.
pub(super) struct Server {
    pub(super) session: Arc<Session>,
    pub(super) link: Link,
    relay: Option<EmbeddedRelay>,
    pub(super) relay_address: String,
    pub(super) began: Instant,
    chronicle: Chronicle,
    tasks: JoinSet<()>,
    closing: CancellationToken,
    over: mpsc::Receiver<String>,
    until: tokio::time::Instant,
}

impl Server {
    /// Starts a session; when this returns, the link works. Stopped before that, it ends what it has begun in order.
    pub(super) async fn start(
        config: ServerConfig,
        events: mpsc::Sender<Event>,
        stopped: &CancellationToken,
    ) -> Result<Self, StartError> {
        let began = Instant::now();
        let warn = events.clone();
        let mut chronicle = Chronicle::open(config.log.as_deref(), move |text| {
            let _ = warn.try_send(Event::Progress { text });
        });
        let herald = Herald::new(events).with_log(chronicle.audit());
        let tell = |text: String| herald.tell(Event::Progress { text });
        let (allow, allowed) = watch::channel(Arc::new(config.allow.clone()));
        let (proxy_events, refusals) = mpsc::channel(PROXY_EVENTS);
        let kit = Arc::new(make_kit(&config, allowed.clone(), proxy_events)?);
        let (chromium, body, verdict) = tokio::select! {
            climbed = kit.climb(config.gpu, &tell) => climbed?,
            () = stopped.cancelled() => return Err(StartError::Unwanted),
        };
        let (end, until) = (
            SystemTime::now() + config.length,
            tokio::time::Instant::now() + config.length,
        );
        let (state, browser) = watch::channel(Browser::Running(Arc::new(chromium.clone())));
        let closing = CancellationToken::new();
        let opened = Arc::new(AtomicU64::new(0));
        let pages = Arc::new(Pages::new(
            Arc::clone(&kit),
            browser.clone(),
            Arc::clone(&opened),
            herald.clone(),
        ));
        let mut tasks = JoinSet::new();
        let vitals = Arc::new(Vitals::default());
        let (orders, ordered) = mpsc::channel(1);
        let guard = Guard {
            kit: Arc::clone(&kit),
            pages: Arc::clone(&pages),
            browser: browser.clone(),
            vitals: Arc::clone(&vitals),
            truth: Arc::new(Truth::new(verdict.clone())),
            herald: herald.clone(),
            orders,
            bound: bound(config.max_memory, machine_memory()),
            last_call: Arc::new(LastCall::new()),
        };
        let (truth, last_call, max_memory) = (
            Arc::clone(&guard.truth),
            Arc::clone(&guard.last_call),
            guard.bound,
        );
        let keeper = Keeper {
            kit: Arc::clone(&kit),
            state,
            vitals: Arc::clone(&vitals),
            herald: herald.clone(),
            opened,
            orders: ordered,
            closing: closing.clone(),
        };
        guard.start(&mut tasks, &closing);
        tasks.spawn(keeper.keep(chromium.clone(), body));
        tasks.spawn(Arc::clone(&pages).keep_spare(closing.clone()));
        chronicle.hear_proxy(refusals, Arc::clone(&pages), herald.clone());
        let linked = tokio::select! {
            linked = connect(&config, &verdict, end, &herald) => linked,
            () = stopped.cancelled() => Err(StartError::Unwanted),
        };
        let linked = match linked {
            Ok(linked) => linked,
            Err(error) => {
                closing.cancel();
                join(&mut tasks).await;
                return Err(error);
            }
        };
        let approvals = Arc::new(Approvals::new(allow, linked.link.clone(), herald.clone()));
        tasks.spawn(Arc::clone(&approvals).keep(closing.clone()));
        let session = Arc::new(Session {
            artifacts: Artifacts::new(kit.folder.artifacts()),
            actions: ActionLog::default(),
            picked: Arc::default(),
            near: matches!(config.relay, RelayChoice::Local),
            kit,
            pages,
            browser,
            truth,
            last_call,
            max_memory,
            approvals,
            vitals,
            allow: allowed,
            end,
        });
        let router = Router {
            session: Arc::clone(&session),
            link: linked.link.clone(),
            herald: herald.clone(),
        };
        let (over_sender, over) = mpsc::channel(1);
        tasks.spawn(router.run(linked.calls, over_sender, closing.clone()));
        chronicle
            .audit()
            .write(started(&session, &chromium, &linked.address));
        herald.tell(ready(
            &session,
            &chromium,
            linked.minted.link,
            linked.address.clone(),
            began.elapsed(),
        ));
        Ok(Self {
            session,
            link: linked.link,
            relay: linked.relay,
            relay_address: linked.address,
            began,
            chronicle,
            tasks,
            closing,
            over,
            until,
        })
    }

    /// Becomes ready when the session is over by itself, with the reason.
    pub(super) async fn over(&mut self) -> Ending {
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
            () = tokio::time::sleep_until(self.until) => Ending::wanted("its time is over"),
            Some(reason) = self.over.recv() => Ending::early(reason),
            reason = failed => Ending::early(reason),
        }
    }

    /// Ends everything in order, within [`SHUTDOWN`]: no more calls, no more pages, no browser, no proxy, no log, no folder.
    pub(super) async fn end(mut self, reason: &str) {
        let ended = timeout(SHUTDOWN, async {
            self.session.approvals.close();
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
    pub(super) fn hosts(&self) -> Vec<String> {
        self.session.hosts()
    }

    /// The open pages.
    pub(super) fn pages(&self) -> Vec<OpenPage> {
        let open = self.session.pages.list().into_iter();
        open.map(|opened| OpenPage {
            page: opened.id.clone(),
            url: opened.url(),
        })
        .collect()
    }

    /// The way to the relay.
    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    /// The way into the log.
    pub(super) fn audit(&self) -> Audit {
        self.chronicle.audit()
    }

    /// The owner's word on a request: the hosts that it was about.
    pub(super) fn answer(
        &self,
        number: u32,
        decision: Decision,
        note: Option<String>,
    ) -> Result<Vec<String>, AnswerError> {
        let note = note.map(|note| note.chars().take(REQUEST_NOTE).collect());
        let request = self.session.approvals.answer(number, decision, note)?;
        Ok(request.hosts.iter().map(ToString::to_string).collect())
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

fn ready(
    session: &Session,
    chromium: &Chromium,
    link: String,
    relay: String,
    took: Duration,
) -> Event {
    let account = session.kit.setup.account.as_ref();
    Event::Ready(Box::new(Ready {
        link,
        relay,
        gpu: session.truth.verdict(),
        browser: chromium.version.clone(),
        sandbox: session.kit.setup.sandbox,
        network_namespace: chromium.isolation.is_ok(),
        network_namespace_reason: chromium.isolation.as_ref().err().cloned(),
        account: account.map(|account| account.name.clone()),
        end_unix_s: session
            .end
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs()),
        start_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    }))
}

/// The session's begin, for the log.
fn started(session: &Session, chromium: &Chromium, relay: &str) -> Record {
    Record::Started {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        relay: relay.to_owned(),
        gpu: session.truth.word().to_owned(),
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
