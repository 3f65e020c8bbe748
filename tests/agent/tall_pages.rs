//! Full pages, taller than what a GPU can texture: every row is there once, in its place.

use serde_json::json;

use crate::daemon::Daemon;
use crate::pixels::shoot;

/// Rows of one CSS pixel, each of its own colour.
const ROWS: usize = 20_000;

fn colour(row: usize) -> [u8; 3] {
    [
        u8::try_from(row % 256).unwrap(),
        u8::try_from(40 + row / 256).unwrap(),
        128,
    ]
}

#[tokio::test]
async fn a_page_of_20000_rows_has_each_row_once_and_in_its_place() {
    let daemon = Daemon::shared();
    let html = format!(
        "<!doctype html><body style='margin:0'><script>
        let rows = '';
        for (let y = 0; y < {ROWS}; y++) rows += `<div style='height:1px;background:rgb(${{y % 256}},${{40 + (y >> 8)}},128)'></div>`;
        document.body.innerHTML = rows</script>"
    );
    let page = daemon.open(&html, 1280, 720).await;
    for format in ["png", "jpeg"] {
        let body = json!({"page": page, "format": format, "full_page": true, "quality": 95});
        let shot = shoot(&daemon, body).await;
        assert_eq!(shot.size(), (1280, ROWS));
        assert_eq!(
            (&shot.receipt["blank"], &shot.receipt["css_per_px"]),
            (&json!(false), &json!(1.0))
        );
        let tolerance = if format == "png" { 0 } else { 40 };
        for row in 0..ROWS {
            for x in [0, 640, 1279] {
                assert!(
                    shot.near((x, row), colour(row), tolerance),
                    "{format} ({x}, {row}): {:?} and not {:?}",
                    shot.at(x, row),
                    colour(row)
                );
            }
        }
    }
    daemon.close(&page).await;
}

#[tokio::test]
async fn a_tall_page_can_be_shrunk_to_a_largest_side() {
    let daemon = Daemon::shared();
    let html = "<!doctype html><body style='margin:0;background:linear-gradient(#000,#fff);height:12000px'>";
    let page = daemon.open(html, 1200, 700).await;
    let shot = shoot(
        &daemon,
        json!({"page": page, "full_page": true, "max_side": 1200}),
    )
    .await;
    assert_eq!(shot.size(), (120, 1200));
    assert_eq!(shot.receipt["css_per_px"], json!(10.0));
    for y in 0..1200 {
        let grey = u8::try_from(y * 255 / 1200).unwrap();
        assert!(
            shot.near((60, y), [grey; 3], 3),
            "{y}: {:?}",
            shot.at(60, y)
        );
    }
    daemon.close(&page).await;
}
