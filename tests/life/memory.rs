//! The daemon's own memory, without Chromium's: small after a hundred pictures, and no larger after a thousand.

use serde_json::json;

use crate::stage::Stage;

/// KiB after the first hundred pictures.
///
/// The promise is the release build's 30 MiB; an unoptimised program maps twice its code, 31 MiB, beside 7 MiB of its own.
const MOST: u64 = if cfg!(debug_assertions) {
    44 * 1024
} else {
    30 * 1024
};
/// KiB by which it may differ from the hundredth picture to the thousandth: pages of the allocator, not a leak, which
/// even at 4 KiB a picture would be 3.6 MiB.
const GROWTH: u64 = 2 * 1024;

const PAGE: &str =
    "<body style='margin:0;font:24px sans-serif;background:linear-gradient(45deg,#246,#fc8)'>
<script>
for (let row = 0; row < 30; row++) {
  const line = document.createElement('p');
  line.textContent = 'Row ' + row + ': ' + Math.sin(row).toFixed(9).repeat(8);
  document.body.append(line);
}
</script>";

#[test]
fn a_thousand_pictures_leave_the_daemon_as_small_as_a_hundred() {
    let (stage, agent) = Stage::ready();
    let page = agent.open(PAGE);
    let daemon = stage.daemon();
    let start = daemon.resident();
    let shoot = || agent.post("/screenshot", &json!({"page": page})).ok();
    for _ in 0..100 {
        let receipt = shoot();
        assert_eq!(
            (&receipt["width"], &receipt["height"], &receipt["blank"]),
            (&json!(1280), &json!(720), &json!(false))
        );
        agent.fetch(&receipt);
    }
    let hundred = daemon.resident();
    let mut seen = Vec::new();
    for count in 101..=1_000 {
        shoot();
        if count % 100 == 0 {
            seen.push(daemon.resident());
        }
    }
    for line in ["RssAnon", "RssFile"] {
        println!("{line}: {}", daemon.status(line));
    }
    println!("KiB at the start {start}, after 100 {hundred}, then each 100: {seen:?}");
    assert!(hundred < MOST, "{hundred} KiB after 100 pictures");
    let last = *seen.last().unwrap();
    assert!(
        last <= hundred + GROWTH,
        "from {hundred} KiB after 100 pictures to {last} KiB after 1,000: {seen:?}"
    );
}
