//! A browser with one page, and nothing of a session around it.

use std::sync::Arc;
use std::time::Duration;

use gpu_browser::browser::chromium::{Body, Chromium, Setup};
use gpu_browser::browser::find::find;
use gpu_browser::browser::folder::RunFolder;
use gpu_browser::browser::navigate::WaitUntil;
use gpu_browser::browser::page::{Page, Viewport};
use gpu_browser::browser::rung::Rung;
use gpu_browser::browser::targets::Credential;
use gpu_browser::browser::wire::Codec;
use gpu_browser::policy::allowlist::Allowlist;
use gpu_browser::proxy::resolve::ResolverConfig;
use gpu_browser::proxy::uploads::UploadStore;
use gpu_browser::proxy::{Proxy, ProxyConfig, of_this_machine};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::stage::PROGRAM;

const VIEWPORT: Viewport = Viewport {
    width: 320,
    height: 200,
    scale: 1.0,
};

/// A browser and its page, which shows `about:blank`.
pub struct Bare {
    pub page: Page,
    pub deadline: Instant,
    body: Body,
    proxy: Proxy,
    _folder: RunFolder,
}

impl Bare {
    pub async fn open(codec: Codec) -> Self {
        let (_allow, allowed) = watch::channel(Arc::new(Allowlist::new([])));
        let (events, _lines) = mpsc::channel(8);
        let proxy = Proxy::new(ProxyConfig {
            allow: allowed,
            uploads: Arc::new(UploadStore::new()),
            own_addresses: of_this_machine(),
            resolver: ResolverConfig::System,
            events,
        })
        .unwrap();
        let setup = Setup::new(find(None).unwrap(), PROGRAM.into(), proxy.spki().to_owned());
        let folder = RunFolder::create(setup.account.as_ref()).unwrap();
        let (chromium, body, listener) =
            Chromium::launch_speaking(codec, &setup, Rung::SoftwareHeadless, &folder)
                .await
                .unwrap();
        proxy.adopt(listener).unwrap();
        assert!(chromium.version.contains('/'), "{}", chromium.version);
        let issued = proxy.issue();
        let credential = Credential {
            user: issued.user.clone(),
            password: issued.password,
        };
        let page = Page::open(&chromium, credential, VIEWPORT).await.unwrap();
        assert!(proxy.wait_primed(&issued.user).await);
        let deadline = Instant::now() + Duration::from_secs(30);
        let navigation = page
            .navigate("about:blank", WaitUntil::Load, deadline)
            .await;
        assert!(!navigation.unwrap().timed_out);
        Self {
            page,
            deadline,
            body,
            proxy,
            _folder: folder,
        }
    }

    pub async fn close(self) {
        self.page.close().await;
        self.body.end(Duration::from_secs(2)).await;
        self.proxy.close().await;
    }
}
