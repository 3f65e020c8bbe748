//! Two internets: one that the proxy reaches, with the sites of the test, and one round the browser that must never see a
//! packet.
//!
//! ```text
//!   the proxy's world:    proxy ── name server, www.example.com
//!                           ↑ one listening socket, made on the other side
//!   the browser's world:  Chromium ── sniffer ── a name server and an internet that answer everything
//! ```

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use gpu_browser::browser::evaluate::Outcome;
use gpu_browser::browser::navigate::WaitUntil;
use gpu_browser::browser::page::{Page, Viewport};
use gpu_browser::browser::targets::Credential;
use gpu_browser::proxy::uploads::ORIGIN;
use gpu_browser::proxy::uploads::store::{Change, Put, UploadPath};
use serde_json::Value;
use tokio::time::Instant;

use crate::browser::{Browser, Kept};
use crate::world::home::{Home, SITE};
use crate::world::names::{self, Asked, addresses};
use crate::world::net::World;
use crate::world::sites::{self, Requests};
use crate::world::sniffer::{Packet, Sniffer};

/// The one host that pages may reach.
pub const ALLOWED: &str = "www.example.com";
/// What a page of a test may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the attacks are made of, as uploads.
const UPLOADS: [(&str, &str); 4] = [
    ("attack.html", include_str!("pages/attack.html")),
    ("attack.js", include_str!("pages/attack.js")),
    ("worker.js", include_str!("pages/worker.js")),
    ("webrtc.js", include_str!("pages/webrtc.js")),
];

pub struct Scene {
    pub home: Home,
    /// The names that the proxy asked for.
    pub asked: Asked,
    pub plain: Requests,
    pub secure: Requests,
    pub around: World,
    pub sniffer: Sniffer,
    pub browser: Browser,
    /// The browser's end of the proxy.
    pub socket: SocketAddr,
}

impl Scene {
    pub async fn new(world: &World, kept: Kept) -> Self {
        let (home, asked) = Home::in_world(world, &[ALLOWED], |_, _| addresses(&[SITE]));
        let plain = sites::open(world, &format!("{SITE}:80"), plain_page);
        let (secure, key) = sites::open_tls(world, &format!("{SITE}:443"));
        let around = surroundings();
        let sniffer = Sniffer::on(&around.home);
        let keys = format!("{},{key}", home.proxy.spki());
        let (browser, socket) = Browser::start(&around.home, kept, &keys).await;
        let at = socket.local_addr().unwrap();
        home.proxy.adopt(socket).unwrap();
        let scene = Self {
            home,
            asked,
            plain,
            secure,
            around,
            sniffer,
            browser,
            socket: at,
        };
        for (path, text) in UPLOADS {
            scene.upload(path, Bytes::from_static(text.as_bytes()));
        }
        scene
    }

    pub fn upload(&self, path: &str, bytes: Bytes) {
        let put = Put {
            path: UploadPath::parse(path).unwrap(),
            bytes,
            content_type: None,
            offset: None,
        };
        let change = Change {
            put: vec![put],
            ..Change::default()
        };
        self.home.uploads.apply(change).unwrap();
    }

    /// A primed page.
    pub async fn page(&self) -> Page {
        let issued = self.home.proxy.issue();
        let credential = Credential {
            user: issued.user,
            password: issued.password,
        };
        let viewport = Viewport {
            width: 640,
            height: 480,
            scale: 1.0,
        };
        let page = Page::open(&self.browser.chromium, credential, viewport);
        page.await.unwrap()
    }

    /// Sends a page to an address, and gives Chromium's word for what went wrong.
    pub async fn show(&self, page: &Page, url: &str) -> Option<String> {
        let deadline = Instant::now() + PATIENCE;
        let shown = page.navigate(url, WaitUntil::DomContentLoaded, deadline);
        let shown = shown.await.unwrap();
        assert!(!shown.timed_out, "{url}");
        shown.net_error
    }

    /// The value of a script in a page.
    pub async fn run(&self, page: &Page, js: &str, args: &Value) -> Value {
        let deadline = Instant::now() + PATIENCE;
        match page.evaluate(js, args, deadline).await.unwrap() {
            Outcome::Value { value, .. } => value,
            other => panic!("{js}: {other:?}"),
        }
    }

    /// Runs the attacks of a script in a page of the uploads host, and gives what each says came of it.
    pub async fn attack(&self, page: &Page, script: &str) -> Value {
        let shown = self.show(page, &format!("{ORIGIN}/attack.html")).await;
        assert_eq!(shown, None, "the uploads host is reached");
        let js = format!("import('/{script}').then(it => it.attack())");
        self.run(page, &js, &Value::Null).await
    }

    /// The targets that a page's context was refused, each with its reason.
    pub fn refused(&self, page: &Page) -> BTreeSet<(String, &'static str)> {
        let refused = self.home.proxy.refusals(page.user()).into_iter();
        refused.map(|host| (host.host, host.reason)).collect()
    }

    /// What the browser sent to anywhere but the proxy.
    pub fn outside(&self) -> Vec<Packet> {
        self.sniffer.besides(self.socket)
    }

    /// The proxy asked its name server for what is allowed and for nothing else.
    pub fn asked_for_nothing_else(&self) {
        let asked = self.asked.lock().unwrap();
        assert!(asked.iter().all(|(name, _)| name == ALLOWED), "{asked:?}");
    }
}

/// The pages of the plain site.
fn plain_page(path: &str) -> String {
    match path {
        "/page" => "<!doctype html><title>plain</title><body>".to_owned(),
        "/storm.js" => include_str!("pages/storm.js").to_owned(),
        "/endless" => "<!doctype html><body><script src=storm.js></script>".to_owned(),
        _ => String::new(),
    }
}

/// The world round a browser: any address is there, and any name has one.
fn surroundings() -> World {
    let world = World::new();
    world.internet.ip("route add local 0.0.0.0/0 dev lo");
    let at = SocketAddr::new(name_server(), 53);
    // The system's own resolver may be one on loopback.
    let side = if at.ip().is_loopback() {
        &world.home
    } else {
        &world.internet
    };
    names::serve(side, at, |_, _| addresses(&["198.41.0.99"]));
    world
}

/// The name server that a browser without a proxy would ask.
fn name_server() -> std::net::IpAddr {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let mut servers = text
        .lines()
        .filter_map(|line| line.strip_prefix("nameserver ")?.trim().parse().ok());
    let first = servers.find(|address: &std::net::IpAddr| address.is_ipv4());
    first.unwrap_or([127, 0, 0, 1].into())
}
