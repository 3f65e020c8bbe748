//! Large uploads in a page of a real Chromium.

use std::time::Duration;

use bytes::Bytes;
use gpu_browser::policy::limits::MIB;
use gpu_browser::proxy::uploads::ORIGIN;
use gpu_browser::proxy::uploads::store::{Change, Put, UploadPath};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::browser::Kept;
use crate::scene::Scene;
use crate::world::net::at_home;

const SIZE: usize = 100_000_000;
/// A slow machine's; memory speed is a matter of the bench.
const AT_MOST: Duration = Duration::from_secs(5);

const LOAD: &str = r"(async () => {
    const began = performance.now();
    const bytes = await fetch('/big.bin').then(got => got.arrayBuffer());
    const ms = performance.now() - began;
    const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
    return {ms, length: bytes.byteLength, hash: Array.from(hash, byte => byte.toString(16).padStart(2, '0')).join('')};
})()";

/// Bytes that no compression makes smaller and no part of which is like another.
fn noise() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.take(SIZE / 8).flatten().collect()
}

#[test]
fn a_hundred_megabytes_in_parts_come_whole_into_a_page() {
    at_home(|world| async move {
        let scene = Scene::new(&world, Kept::Namespaced).await;
        let bytes = noise();
        for (number, part) in bytes.chunks(MIB).enumerate() {
            let put = Put {
                path: UploadPath::parse("big.bin").unwrap(),
                bytes: Bytes::copy_from_slice(part),
                content_type: None,
                offset: Some(number * MIB),
            };
            let change = Change {
                put: vec![put],
                ..Change::default()
            };
            scene.home.uploads.apply(change).unwrap();
        }
        let page = scene.page().await;
        let shown = scene.show(&page, &format!("{ORIGIN}/attack.html")).await;
        assert_eq!(shown, None);
        let loaded = scene.run(&page, LOAD, &Value::Null).await;
        let hash: String = Sha256::digest(&bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(loaded["length"], SIZE);
        assert_eq!(loaded["hash"], hash);
        let ms = loaded["ms"].as_f64().unwrap();
        println!("{:.0} MB/s into a page", SIZE as f64 / 1e3 / ms);
        assert!(ms < AT_MOST.as_secs_f64() * 1e3, "{ms} ms");
    });
}
