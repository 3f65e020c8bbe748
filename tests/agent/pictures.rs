//! True pictures: what a page draws is what the agent gets, in every format, size and cut.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::pixels::{RED, Shot, decode, fetch, sha256, shoot};

/// A triangle of (255, 153, 51) on (0, 102, 51).
const WEBGL: &str = include_str!("webgl.html");
const WEBGPU: &str = include_str!("webgpu.html");
const GROUND: [u8; 3] = [0, 102, 51];
const TRIANGLE: [u8; 3] = [255, 153, 51];

/// Four rectangles of 100 x 80 CSS pixels: red, green; blue, white; then nothing but grey.
const TILES: &str = "<!doctype html><style>body{margin:0;background:#808080}div{position:absolute;width:100px;height:80px}</style>
<div style='background:#f00'></div><div id=green style='background:#0f0;left:100px'></div>
<div style='background:#00f;top:80px'></div><div style='background:#fff;left:100px;top:80px'></div>";
const GREEN: [u8; 3] = [0, 255, 0];
const BLUE: [u8; 3] = [0, 0, 255];
const WHITE: [u8; 3] = [255, 255, 255];
const GREY: [u8; 3] = [128, 128, 128];

/// What is asked, the size, CSS pixels a pixel, the colours of the left top and the right bottom corner.
type Row = (Value, (usize, usize), f64, [u8; 3], [u8; 3]);

fn assert_triangle(shot: &Shot, tolerance: u8) {
    let (right, bottom) = (shot.width - 1, shot.height - 1);
    for corner in [(0, 0), (right, 0), (2, bottom / 2), (right - 2, bottom / 4)] {
        assert!(
            shot.near(corner, GROUND, tolerance),
            "{corner:?}: {:?}",
            shot.at(corner.0, corner.1)
        );
    }
    for inside in [
        (right / 2, bottom / 2),
        (right / 2, bottom / 4),
        (right / 5, bottom * 9 / 10),
    ] {
        assert!(
            shot.near(inside, TRIANGLE, tolerance),
            "{inside:?}: {:?}",
            shot.at(inside.0, inside.1)
        );
    }
    assert_eq!(shot.receipt["blank"], false, "{}", shot.receipt);
    assert!(
        shot.receipt.get("blank_canvases").is_none(),
        "{}",
        shot.receipt
    );
}

async fn drawn(daemon: &Daemon, html: &str) -> String {
    let body = json!({"html": html, "width": 400, "height": 300, "wait_for": "#drawn"});
    let verdict = daemon.ok("page", body).await;
    assert!(
        verdict.get("timed_out").is_none() && verdict.get("page_errors").is_none(),
        "{verdict}"
    );
    assert_eq!(
        (
            &verdict["canvases"]["count"],
            &verdict["canvases"]["items"][0]["width"]
        ),
        (&json!(1), &json!(400))
    );
    verdict["page"].as_str().unwrap().to_owned()
}

async fn every_format_is_true(html: &str) {
    let daemon = Daemon::shared();
    let page = drawn(&daemon, html).await;
    let info = daemon.get("info").await;
    for (format, tolerance) in [("png", 0), ("jpeg", 6), ("webp", 8)] {
        let shot = shoot(
            &daemon,
            json!({"page": page, "format": format, "quality": 95}),
        )
        .await;
        assert_eq!(shot.size(), (400, 300));
        assert_triangle(&shot, tolerance);
        assert_eq!(shot.receipt["gpu"], info["gpu"]["kind"], "{}", shot.receipt);
    }
    daemon.close(&page).await;
}

#[tokio::test]
async fn a_webgl2_page_is_drawn_to_the_pixel_in_every_format() {
    every_format_is_true(WEBGL).await;
}

#[tokio::test]
async fn a_webgpu_page_is_drawn_to_the_pixel_in_every_format() {
    every_format_is_true(WEBGPU).await;
}

#[tokio::test]
async fn the_viewport_and_its_scale_are_the_pictures_size() {
    let daemon = Daemon::shared();
    for (width, height, tenths) in [
        (320, 200, 10),
        (16, 16, 10),
        (640, 360, 20),
        (1920, 1080, 5),
    ] {
        let scale = f64::from(tenths) / 10.0;
        let body = json!({"html": TILES, "width": width, "height": height, "scale": scale});
        let verdict = daemon.ok("page", body).await;
        let page = verdict["page"].as_str().unwrap();
        let shot = shoot(&daemon, json!({ "page": page })).await;
        let px = |css: u32| (css * tenths / 10) as usize;
        assert_eq!(shot.size(), (px(width), px(height)));
        assert_eq!(
            shot.receipt["css_per_px"],
            json!(1.0 / scale),
            "{}",
            shot.receipt
        );
        assert_eq!(shot.at(1, 1), RED);
        if width > 200 {
            assert_eq!(shot.at(px(150), px(40)), GREEN);
            assert_eq!(shot.at(px(50), px(120)), BLUE);
            assert_eq!(shot.at(px(250), px(120)), GREY);
        }
        daemon.close(page).await;
    }
}

#[tokio::test]
async fn a_clip_a_selector_a_scale_and_a_largest_side_cut_and_shrink() {
    let daemon = Daemon::shared();
    let page = daemon.open(TILES, 400, 300).await;
    let rows: [Row; 8] = [
        (
            json!({"clip": {"x": 0, "y": 0, "width": 200, "height": 160}}),
            (200, 160),
            1.0,
            RED,
            WHITE,
        ),
        (
            json!({"clip": {"x": 100, "y": 79, "width": 1, "height": 2}}),
            (1, 2),
            1.0,
            GREEN,
            WHITE,
        ),
        (
            json!({"clip": {"x": 50, "y": 40, "width": 100, "height": 80}, "scale": 2}),
            (200, 160),
            0.5,
            RED,
            WHITE,
        ),
        (json!({"selector": "#green"}), (100, 80), 1.0, GREEN, GREEN),
        (
            json!({"selector": "#green", "scale": 0.5}),
            (50, 40),
            2.0,
            GREEN,
            GREEN,
        ),
        (json!({"scale": 0.5}), (200, 150), 2.0, RED, GREY),
        (json!({"max_side": 100}), (100, 75), 4.0, RED, GREY),
        (json!({"max_side": 4000}), (400, 300), 1.0, RED, GREY),
    ];
    for (mut body, size, css_per_px, first, last) in rows {
        body["page"] = page.as_str().into();
        let shot = shoot(&daemon, body.clone()).await;
        assert_eq!(shot.size(), size, "{body}");
        assert_eq!(shot.receipt["css_per_px"], json!(css_per_px), "{body}");
        assert_eq!(shot.at(0, 0), first, "{body}");
        assert_eq!(shot.at(size.0 - 1, size.1 - 1), last, "{body}");
    }
    daemon.close(&page).await;
}

#[tokio::test]
async fn blank_says_whether_anything_was_drawn() {
    let daemon = Daemon::shared();
    let canvas = "<!doctype html><body style='margin:0;background:#123'><p>text</p><canvas id=c width=100 height=100></canvas>";
    let draw = "<script>const c = document.getElementById('c').getContext('2d'); c.fillStyle = '#f00'; c.fillRect(9, 9, 50, 50)</script>";
    for (html, blank, canvases) in [
        (
            "<!doctype html><body style='background:#fff'>".to_owned(),
            true,
            None,
        ),
        (
            "<!doctype html><body style='background:#f0f'>".to_owned(),
            true,
            None,
        ),
        ("<!doctype html><h1>drawn</h1>".to_owned(), false, None),
        (canvas.to_owned(), true, Some("c")),
        (format!("{canvas}{draw}"), false, None),
    ] {
        let page = daemon.open(&html, 320, 300).await;
        for format in ["png", "jpeg", "webp"] {
            let receipt = daemon
                .ok("screenshot", json!({"page": page, "format": format}))
                .await;
            assert_eq!(receipt["blank"], blank, "{html} {receipt}");
            assert_eq!(
                receipt["blank_canvases"][0]["id"].as_str(),
                canvases,
                "{html} {receipt}"
            );
            assert_eq!(
                receipt["blank_cause"].is_string(),
                blank,
                "{html} {receipt}"
            );
        }
        daemon.close(&page).await;
    }
}

#[tokio::test]
async fn a_noisy_4k_picture_comes_in_parts_that_join_to_its_file() {
    let daemon = Daemon::shared();
    let html = "<!doctype html><body style='margin:0'><canvas width=3840 height=2160 style='display:block'></canvas><script>
        const c = document.querySelector('canvas').getContext('2d'), d = c.createImageData(3840, 2160);
        const p = new Uint32Array(d.data.buffer);
        let s = 1;
        for (let i = 0; i < p.length; i++) { s ^= s << 13; s ^= s >>> 17; s ^= s << 5; p[i] = s | 0xff000000 }
        c.putImageData(d, 0, 0);
        window.at = (x, y) => { const i = (y * 3840 + x) * 4; return [...d.data.slice(i, i + 3)] }</script>";
    let page = daemon.open(html, 3840, 2160).await;
    let shot = shoot(&daemon, json!({ "page": page })).await;
    assert!(
        shot.receipt["parts"].as_u64().unwrap() >= 5,
        "{}",
        shot.receipt
    );
    assert_eq!(shot.receipt["blank"], false);
    for (x, y) in [(0, 0), (3839, 0), (1234, 987), (3839, 2159)] {
        let drawn = daemon.eval(&page, &format!("at({x}, {y})")).await;
        assert_eq!(json!(shot.at(x, y)), drawn, "({x}, {y})");
    }
    let receipt = daemon
        .ok("screenshot", json!({"page": page, "inline": true}))
        .await;
    assert!(
        receipt.get("data").is_none() && receipt["inline"].is_string(),
        "{receipt}"
    );
    daemon.close(&page).await;
}

#[tokio::test]
async fn an_inline_picture_is_the_one_that_its_parts_join_to() {
    let daemon = Daemon::shared();
    let page = daemon.open(TILES, 320, 200).await;
    let mut receipt = daemon
        .ok("screenshot", json!({"page": page, "inline": true}))
        .await;
    let data = receipt["data"].take();
    let file = BASE64_STANDARD.decode(data.as_str().unwrap()).unwrap();
    assert_eq!(receipt["sha256"], sha256(&file));
    assert_eq!(fetch(&daemon, &receipt).await, file);
    assert_eq!(decode(receipt, &file).at(50, 120), BLUE);
    daemon.close(&page).await;
}
