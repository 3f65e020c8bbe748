//! No picture is older than its call: a page that is changed through `/eval` and shot at once shows the change.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

use crate::daemon::Daemon;
use crate::pixels::decode;

const DOM: &str = "<!doctype html><body style='margin:0'><script>
    window.show = (r, g, b) => { document.body.style.background = `rgb(${r},${g},${b})` }</script>";

/// It draws in each of its frames what was told last, as a game does.
const ANIMATED: &str = "<!doctype html><body style='margin:0'><canvas width=320 height=200 style='display:block'></canvas><script>
    const gl = document.querySelector('canvas').getContext('webgl2', {antialias: false});
    let colour = [0, 0, 0];
    window.show = (...told) => { colour = told };
    requestAnimationFrame(function frame() {
        gl.clearColor(...colour.map(n => n / 255), 1);
        gl.clear(gl.COLOR_BUFFER_BIT);
        requestAnimationFrame(frame);
    })</script>";

/// A colour for each of 512 turns, far enough from the others to be told apart in a lossy picture.
fn colour(turn: usize) -> [u8; 3] {
    [1, 8, 64].map(|place| u8::try_from(turn / place % 8).unwrap() * 36)
}

async fn each_change_is_seen(html: &str, format: &str, times: usize, tolerance: u8) {
    let daemon = Daemon::shared();
    let page = daemon.open(html, 320, 200).await;
    for turn in 1..=times {
        let [r, g, b] = colour(turn);
        daemon.eval(&page, &format!("show({r}, {g}, {b})")).await;
        let body = json!({"page": page, "format": format, "quality": 90, "inline": true});
        let mut receipt = daemon.ok("screenshot", body).await;
        let file = BASE64_STANDARD
            .decode(receipt["data"].take().as_str().unwrap())
            .unwrap();
        let shot = decode(receipt, &file);
        for at in [(0, 0), (160, 100), (319, 199)] {
            assert!(
                shot.near(at, [r, g, b], tolerance),
                "{format}, turn {turn}, {at:?}: {:?} and not {:?}",
                shot.at(at.0, at.1),
                [r, g, b]
            );
        }
    }
    daemon.close(&page).await;
}

#[tokio::test]
async fn a_png_shows_the_change_500_times() {
    each_change_is_seen(DOM, "png", 500, 0).await;
}

#[tokio::test]
async fn a_jpeg_shows_the_change_500_times() {
    each_change_is_seen(DOM, "jpeg", 500, 12).await;
}

#[tokio::test]
async fn a_webp_shows_the_change_500_times() {
    each_change_is_seen(DOM, "webp", 500, 12).await;
}

#[tokio::test]
async fn a_webgl_page_that_draws_all_the_time_shows_the_change_100_times() {
    each_change_is_seen(ANIMATED, "png", 100, 0).await;
}
