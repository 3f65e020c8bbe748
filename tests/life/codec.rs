//! JSON is the fallback for a Chromium that does not speak CBOR: both give the same.

use std::sync::Arc;
use std::time::Duration;

use gpu_browser::browser::capture::{Area, Format, Shot};
use gpu_browser::browser::chromium::{Chromium, Setup};
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

use crate::stage::{PROGRAM, turn};

const VIEWPORT: Viewport = Viewport {
    width: 320,
    height: 200,
    scale: 1.0,
};
const SHOT: Shot = Shot {
    format: Format::Png,
    quality: None,
    fast: true,
    area: Area::Viewport,
    scale: 1.0,
    max_side: None,
    texture_side: 4_096,
};
/// A script with what a codec can get wrong: every kind of value, numbers at their edges, text of every length of UTF-8.
const SCRIPT: &str = "document.body.style.background = 'rgb(18, 52, 86)'; ({ text: 'ä€😀\\u0000\"', \
    long: 'x'.repeat(70000).length, numbers: [0, -1, 1.5, 2 ** 31, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, 1e300, 24, 256, 65536], \
    none: null, yes: true, empty: [{}, [], ''] })";

/// What a browser gives that is spoken to in a codec: a script's value as JSON, and a picture.
async fn seen(codec: Codec) -> (String, Vec<u8>) {
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
    let deadline = Instant::now() + Duration::from_secs(15);
    let navigation = page
        .navigate("about:blank", WaitUntil::Load, deadline)
        .await;
    assert!(!navigation.unwrap().timed_out);
    let value = page
        .evaluate(SCRIPT, &serde_json::Value::Null, deadline)
        .await
        .unwrap();
    let picture = page.capture(&SHOT, deadline).await.unwrap();
    page.close().await;
    body.end(Duration::from_secs(2)).await;
    proxy.close().await;
    (format!("{value:?}"), picture.bytes.to_vec())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_gives_what_cbor_gives() {
    let _turn = turn();
    let (cbor, cbor_picture) = seen(Codec::Cbor).await;
    let (json, json_picture) = seen(Codec::Json).await;
    assert!(cbor.starts_with("Value") && cbor.contains("ä€😀"), "{cbor}");
    assert_eq!(cbor, json);
    assert_eq!(crate::agent::pixel(&cbor_picture, 160, 100), [18, 52, 86]);
    assert_eq!(cbor_picture, json_picture);
}
