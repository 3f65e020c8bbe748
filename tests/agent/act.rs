//! Each action on a real page: what the page felt, and what the agent was told.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::daemon::Daemon;

/// A page that writes down the trusted events that it gets.
const FELT: &str = r#"<!doctype html><title>felt</title><style>body{margin:0;height:3000px}</style>
<button id=go style="position:absolute;left:40px;top:40px;width:100px;height:40px">Go</button>
<input id=name style="position:absolute;left:40px;top:100px">
<div id=pad style="position:absolute;left:200px;top:40px;width:300px;height:150px;background:#ccc"></div>
<script>
  window.felt = [];
  for (const kind of ['mousedown','mouseup','click','dblclick','contextmenu','mousemove','keydown','keyup','wheel','input'])
    addEventListener(kind, e => felt.push([kind, e.isTrusted, e.target.id, e.clientX ?? e.key, e.button ?? e.code,
      (e.ctrlKey ? 'c' : '') + (e.shiftKey ? 's' : '') + (e.altKey ? 'a' : '') + (e.metaKey ? 'm' : ''), e.detail]), {passive: true});
  window.of = kind => felt.filter(f => f[0] === kind);
</script>"#;

/// Does one action that must go well, and gives its line.
pub(crate) async fn act(daemon: &Daemon, page: &str, action: Value) -> Value {
    let body = json!({"page": page, "actions": [action]});
    daemon.ok("act", body).await["done"][0].take()
}

#[tokio::test]
async fn a_click_is_trusted_and_lands_where_it_should() {
    let daemon = Daemon::shared();
    let page = daemon.open(FELT, 600, 300).await;
    for target in [
        json!({"selector": "#go"}),
        json!({"at": [90, 60]}),
        json!({"at": [0.15, 0.2], "unit": "norm"}),
    ] {
        daemon.eval(&page, "felt.length = 0").await;
        let mut action = target;
        action["action"] = "click".into();
        let line = act(&daemon, &page, action).await;
        assert_eq!(line["at"], json!([90.0, 60.0]), "{line}");
        assert!(
            line["on"]
                .as_str()
                .unwrap()
                .starts_with("<button id=\"go\">"),
            "{line}"
        );
        assert!(line.get("unverifiable").is_none(), "{line}");
        let clicks = daemon.eval(&page, "of('click')").await;
        assert_eq!(clicks, json!([["click", true, "go", 90, 0, "", 1]]));
    }
    daemon.eval(&page, "felt.length = 0").await;
    let twice =
        json!({"action": "click", "selector": "#go", "count": 2, "modifiers": ["ctrl", "Shift"]});
    act(&daemon, &page, twice).await;
    let twice = daemon.eval(&page, "of('dblclick')").await;
    assert_eq!(twice, json!([["dblclick", true, "go", 90, 0, "cs", 2]]));
    let right = json!({"action": "click", "selector": "#go", "button": "right"});
    act(&daemon, &page, right).await;
    assert_eq!(
        daemon.eval(&page, "of('contextmenu')[0].slice(1, 3)").await,
        json!([true, "go"])
    );
    daemon.close(&page).await;
}

#[tokio::test]
async fn a_point_is_a_pixel_of_the_last_picture() {
    let daemon = Daemon::shared();
    let page = daemon.open(FELT, 600, 300).await;
    daemon
        .ok("screenshot", json!({"page": page, "max_side": 300}))
        .await;
    act(&daemon, &page, json!({"action": "click", "at": [45, 30]})).await;
    assert_eq!(
        daemon.eval(&page, "of('click')[0].slice(2, 4)").await,
        json!(["go", 90])
    );
    // A part of the page far below: the page is scrolled there.
    daemon
        .eval(&page, "felt.length = 0; pad.style.top = '2000px'")
        .await;
    let clip = json!({"x": 200, "y": 2000, "width": 300, "height": 100});
    daemon
        .ok("screenshot", json!({"page": page, "clip": clip}))
        .await;
    act(&daemon, &page, json!({"action": "click", "at": [50, 50]})).await;
    assert_eq!(
        daemon.eval(&page, "of('click')[0].slice(2, 4)").await,
        json!(["pad", 250])
    );
    let outside = json!({"page": page, "actions": [{"action": "click", "at": [999, 5]}]});
    let error = daemon.refused("act", outside, 400, "bad_arguments").await;
    assert!(error["message"].as_str().unwrap().contains("300 x 100"));
    daemon.close(&page).await;
}

#[tokio::test]
async fn keys_and_text_arrive_as_from_a_keyboard() {
    let daemon = Daemon::shared();
    let page = daemon.open(FELT, 600, 300).await;
    let text = "Hello, Wörld! 😀 a\u{202e}b";
    let line = act(
        &daemon,
        &page,
        json!({"action": "type", "selector": "#name", "text": text}),
    )
    .await;
    assert_eq!(
        (&line["value"], line.get("unverifiable")),
        (&json!(text), None),
        "{line}"
    );
    assert_eq!(daemon.eval(&page, "document.all.name.value").await, text);
    assert_eq!(
        daemon
            .eval(&page, "of('keydown').slice(0, 2).map(k => k.slice(1, 6))")
            .await,
        json!([
            [true, "name", "H", "KeyH", "s"],
            [true, "name", "e", "KeyE", ""]
        ])
    );
    // All of it is selected and typed over.
    act(&daemon, &page, json!({"action": "key", "key": "ctrl+a"})).await;
    let line = act(&daemon, &page, json!({"action": "type", "text": "new"})).await;
    assert_eq!(line["value"], "new", "{line}");
    let line = act(
        &daemon,
        &page,
        json!({"action": "type", "selector": "#name", "text": "er"}),
    )
    .await;
    assert_eq!(line["value"], "newer", "{line}");
    let line = act(
        &daemon,
        &page,
        json!({"action": "type", "selector": "#name", "text": "x", "clear": true}),
    )
    .await;
    assert_eq!(line["value"], "x", "{line}");
    let long = "long text, ".repeat(1_000);
    let line = act(
        &daemon,
        &page,
        json!({"action": "type", "selector": "#name", "text": long, "clear": true}),
    )
    .await;
    assert_eq!(line["typed"], 11_000, "{line}");
    assert_eq!(daemon.eval(&page, "document.all.name.value").await, long);
    // A key that is held is down for as long.
    daemon.eval(&page, "document.activeElement.blur(); felt.length = 0; window.t = []; onkeydown = onkeyup = e => t.push(e.timeStamp)").await;
    act(
        &daemon,
        &page,
        json!({"action": "key", "key": "w", "hold_ms": 300}),
    )
    .await;
    let held = daemon.eval(&page, "t[1] - t[0]").await;
    assert!(held.as_f64().unwrap() >= 280.0, "{held}");
    // Nothing has the focus: the agent is told that nothing proves it.
    let line = act(&daemon, &page, json!({"action": "type", "text": "lost"})).await;
    assert!(
        line["unverifiable"]
            .as_str()
            .unwrap()
            .contains("no text field"),
        "{line}"
    );
    daemon.close(&page).await;
}

#[tokio::test]
async fn a_drag_of_300_moves_is_felt_from_end_to_end_in_no_time() {
    let daemon = Daemon::shared();
    let page = daemon.open(FELT, 600, 300).await;
    let listen = "window.path = []; pad.onpointermove = e => { for (const c of e.getCoalescedEvents()) if (e.buttons) path.push([c.clientX, c.clientY]) }";
    daemon.eval(&page, listen).await;
    let began = Instant::now();
    let drag = json!({"action": "drag", "from": {"at": [210, 50]}, "to": {"at": [480, 180]}, "steps": 300});
    let line = act(&daemon, &page, drag).await;
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
    assert!(line.get("unverifiable").is_none(), "{line}");
    let path = daemon.eval(&page, "path").await;
    let path = path.as_array().unwrap();
    assert!(path.len() > 200, "{} moves", path.len());
    assert_eq!(path.last().unwrap(), &json!([480, 180]));
    let ends = "[of('mousedown')[0].slice(1, 4), of('mouseup')[0].slice(1, 4)]";
    assert_eq!(
        daemon.eval(&page, ends).await,
        json!([[true, "pad", 210], [true, "pad", 480]])
    );
    daemon.close(&page).await;
}

#[tokio::test]
async fn a_draggable_element_is_dropped() {
    let daemon = Daemon::shared();
    let html = r#"<!doctype html><body style="margin:0"><div id=a draggable=true style="position:absolute;width:80px;height:80px;background:red">a</div>
        <div id=b style="position:absolute;left:200px;width:80px;height:80px;background:blue"></div>
        <script>a.ondragstart = e => e.dataTransfer.setData('text/plain', 'cargo');
        b.ondragover = e => e.preventDefault(); b.ondrop = e => { window.got = [e.isTrusted, e.dataTransfer.getData('text/plain')] }</script>"#;
    let page = daemon.open(html, 400, 200).await;
    let drag = json!({"action": "drag", "from": {"selector": "#a"}, "to": {"selector": "#b"}});
    let line = act(&daemon, &page, drag.clone()).await;
    assert_eq!(line["dropped"], true, "{line}");
    assert_eq!(daemon.eval(&page, "got").await, json!([true, "cargo"]));
    let hover = act(&daemon, &page, json!({"action": "hover", "selector": "#b"})).await;
    assert!(hover.get("unverifiable").is_none(), "{hover}");
    daemon.close(&page).await;
}

#[tokio::test]
async fn a_wheel_scrolls_what_is_under_it_and_says_how_far() {
    let daemon = Daemon::shared();
    let html = r#"<!doctype html><body style="margin:0;height:5000px"><div id=box style="width:100px;height:100px;overflow:auto"><div style="height:900px">x</div></div>
        <canvas id=c width=100 height=100></canvas><p id=far style="position:absolute;top:4000px">far</p>
        <script>c.addEventListener('wheel', e => { e.preventDefault(); window.zoom = [e.isTrusted, e.deltaY] }, {passive: false})</script>"#;
    let page = daemon.open(html, 400, 300).await;
    let line = act(
        &daemon,
        &page,
        json!({"action": "scroll", "selector": "#box", "by": [0, 120]}),
    )
    .await;
    assert_eq!(line["scrolled"]["css_by"], json!([0.0, 120.0]), "{line}");
    assert_eq!(
        daemon.eval(&page, "[box.scrollTop, scrollY]").await,
        json!([120, 0])
    );
    let line = act(
        &daemon,
        &page,
        json!({"action": "scroll", "at": [0.75, 0.6], "by": [0, 0.5], "unit": "norm"}),
    )
    .await;
    assert_eq!(line["scrolled"]["css_by"], json!([0.0, 150.0]), "{line}");
    act(
        &daemon,
        &page,
        json!({"action": "scroll", "selector": "#far"}),
    )
    .await;
    let seen = daemon.eval(&page, "far.getBoundingClientRect().top").await;
    assert!((0.0..300.0).contains(&seen.as_f64().unwrap()), "{seen}");
    // A canvas that zooms scrolls nothing, and has felt it all the same.
    daemon.eval(&page, "scrollTo(0, 0)").await;
    let line = act(
        &daemon,
        &page,
        json!({"action": "scroll", "selector": "#c", "by": [0, -40]}),
    )
    .await;
    assert_eq!(
        (&line["scrolled"], line.get("unverifiable")),
        (&Value::Null, None),
        "{line}"
    );
    assert_eq!(daemon.eval(&page, "zoom").await, json!([true, -40]));
    daemon.close(&page).await;
}

#[tokio::test]
async fn options_are_selected_and_uploads_are_picked() {
    let daemon = Daemon::shared();
    let files = json!({"files": [{"path": "in/a.txt", "text": "alpha"}, {"path": "in/b ü.bin", "base64": "AAECAw=="}]});
    daemon.ok("files", files).await;
    let html = r#"<!doctype html><select id=s><option value=r>Red</option><option value=g>Green</option><option disabled>Blue</option></select>
        <input type=file id=one style="display:none"><input type=file id=many multiple><p id=p>no</p>
        <script>s.onchange = () => window.chosen = s.value;
        one.onchange = async e => window.one_ = [e.isTrusted, one.files[0].name, one.files[0].type, await one.files[0].text()];
        many.onchange = async () => window.many_ = await Promise.all([...many.files].map(async f => [f.name, new Uint8Array(await f.arrayBuffer()).length]))</script>"#;
    let page = daemon.open(html, 400, 300).await;
    for (value, label) in [
        (json!("g"), "Green"),
        (json!("Red"), "Red"),
        (json!(1), "Green"),
    ] {
        let line = act(
            &daemon,
            &page,
            json!({"action": "select", "selector": "#s", "value": value}),
        )
        .await;
        assert_eq!(line["selected"][0]["label"], label, "{line}");
    }
    assert_eq!(daemon.eval(&page, "chosen").await, "g");
    let one = json!({"action": "upload", "selector": "#one", "path": "in/a.txt"});
    assert_eq!(act(&daemon, &page, one).await["files"], json!(["a.txt"]));
    let read = |name: &str| {
        format!(
            "new Promise(done => {{ const look = () => window.{name} ? done({name}) : setTimeout(look, 10); look() }})"
        )
    };
    assert_eq!(
        daemon.eval(&page, &read("one_")).await,
        json!([true, "a.txt", "text/plain", "alpha"])
    );
    let many =
        json!({"action": "upload", "selector": "#many", "paths": ["in/a.txt", "in/b ü.bin"]});
    act(&daemon, &page, many).await;
    assert_eq!(
        daemon.eval(&page, &read("many_")).await,
        json!([["a.txt", 5], ["b ü.bin", 4]])
    );
    for (action, status, code) in [
        (
            json!({"action": "select", "selector": "#s", "value": "Pink"}),
            400,
            "bad_arguments",
        ),
        (
            json!({"action": "select", "selector": "#s", "value": "Blue"}),
            409,
            "covered",
        ),
        (
            json!({"action": "select", "selector": "#p", "value": "x"}),
            400,
            "bad_arguments",
        ),
        (
            json!({"action": "upload", "selector": "#p", "path": "in/a.txt"}),
            400,
            "bad_arguments",
        ),
        (
            json!({"action": "upload", "selector": "#one", "paths": ["in/a.txt", "in/b ü.bin"]}),
            400,
            "bad_arguments",
        ),
        (
            json!({"action": "upload", "selector": "#no", "path": "in/a.txt"}),
            400,
            "bad_selector",
        ),
    ] {
        let mut action = action;
        if action["action"] == "select" {
            action["timeout_ms"] = 50.into();
        }
        let body = json!({"page": page, "actions": [action]});
        daemon.refused("act", body, status, code).await;
    }
    daemon.close(&page).await;
}
