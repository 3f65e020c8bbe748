//! JSON is the fallback for a Chromium that does not speak CBOR: both give the same.

use gpu_browser::browser::capture::{Area, Format, Shot};
use gpu_browser::browser::wire::Codec;

use crate::bare::Bare;
use crate::stage::turn;

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
    let browser = Bare::open(codec).await;
    let (page, deadline) = (&browser.page, browser.deadline);
    let value = page
        .evaluate(SCRIPT, &serde_json::Value::Null, deadline)
        .await
        .unwrap();
    let picture = page.capture(&SHOT, deadline).await.unwrap();
    browser.close().await;
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
