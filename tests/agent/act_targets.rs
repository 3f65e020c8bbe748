//! Targets that a click would miss, pages that go away under it, and what is said about it.

use serde_json::{Value, json};

use crate::act::act;
use crate::daemon::Daemon;

#[tokio::test]
async fn what_covers_a_target_is_named_and_nothing_is_clicked() {
    let daemon = Daemon::shared();
    let html = r#"<!doctype html><body style="margin:0"><button id=a style="width:100px;height:50px">A</button>
        <div id=veil style="position:fixed;inset:0;background:#0008">wait</div><button id=b hidden>B</button>
        <script>window.clicks = 0; onclick = () => clicks++</script>"#;
    let page = daemon.open(html, 300, 200).await;
    for (selector, code, said) in [
        (
            "#a",
            "covered",
            "<div id=\"veil\"> \"wait\" covers <button id=\"a\">",
        ),
        ("#b", "covered", "not visible"),
        ("#c", "bad_selector", "matches nothing"),
        ("a[", "bad_selector", "not a valid selector"),
    ] {
        let body = json!({"page": page, "actions": [
            {"action": "wait", "ms": 1},
            {"action": "click", "selector": selector, "timeout_ms": 100},
            {"action": "key", "key": "a"}, {"action": "wait", "ms": 1}]});
        let status = if code == "covered" { 409 } else { 400 };
        let error = daemon.refused("act", body, status, code).await;
        assert!(error["message"].as_str().unwrap().contains(said), "{error}");
        assert_eq!(error["action"], 1, "{error}");
        assert_eq!(error["done"].as_array().unwrap().len(), 1, "{error}");
        assert_eq!(error["left"], json!(["key", "wait"]), "{error}");
    }
    assert_eq!(daemon.eval(&page, "clicks").await, 0);
    // Its twin: the veil goes while the click waits.
    daemon
        .eval(&page, "setTimeout(() => veil.remove(), 200)")
        .await;
    act(&daemon, &page, json!({"action": "click", "selector": "#a"})).await;
    assert_eq!(daemon.eval(&page, "clicks").await, 1);
    daemon.close(&page).await;
}

#[tokio::test]
async fn nothing_is_sent_where_one_argument_of_the_list_is_wrong() {
    let daemon = Daemon::shared();
    let page = daemon
        .open("<!doctype html><button id=a>A</button><script>window.n = 0; onclick = () => n++</script>", 300, 200)
        .await;
    let before = daemon.get("actions").await["count"].clone();
    let body = json!({"page": page, "actions": [{"action": "click", "selector": "#a"}, {"action": "click", "selector": "#a", "colour": 1}]});
    let error = daemon.refused("act", body, 400, "bad_arguments").await;
    assert!(error["message"].as_str().unwrap().contains("actions[1]"));
    assert_eq!(daemon.eval(&page, "n").await, 0);
    assert_eq!(daemon.get("actions").await["count"], before);
    daemon.close(&page).await;
}

#[tokio::test]
async fn dialogs_popups_and_errors_of_a_click_are_in_its_line() {
    let daemon = Daemon::shared();
    let html = r#"<!doctype html><button id=d onclick="alert('sure?')">D</button><button id=p onclick="window.open('about:blank#x')">P</button>
        <button id=e onclick="console.error('bad'); null.x">E</button><button id=h onclick="location.hash = 'here'">H</button>"#;
    let page = daemon.open(html, 300, 200).await;
    let click = |id: &str| json!({"action": "click", "selector": format!("#{id}")});
    let line = act(&daemon, &page, click("d")).await;
    assert_eq!(
        line["dialogs"]["items"][0],
        json!({"kind": "alert", "message": "sure?"}),
        "{line}"
    );
    let line = act(&daemon, &page, click("p")).await;
    assert_eq!(line["popups"]["count"], 1, "{line}");
    let line = act(&daemon, &page, click("e")).await;
    assert_eq!(line["console_errors"]["items"], json!(["bad"]), "{line}");
    assert_eq!(line["page_errors"]["count"], 1, "{line}");
    let line = act(&daemon, &page, click("h")).await;
    assert!(line["url"].as_str().unwrap().ends_with("#here"), "{line}");
    assert!(line["ms"].as_u64().unwrap() < 1_500, "{line}");
    daemon.close(&page).await;
}

#[tokio::test]
async fn a_click_that_navigates_waits_for_the_next_page() {
    let daemon = Daemon::shared();
    let next = "<!doctype html><title>next</title><button id=b onclick='document.title = `done`'>B</button>";
    let start = "<!doctype html><title>start</title><a id=a href=next.html>A</a><form action=next.html><input name=q id=q></form>";
    daemon.ok("files", json!({"files": [{"path": "nav/next.html", "text": next}, {"path": "nav/start.html", "text": start}]})).await;
    let page = daemon.ok("page", json!({"path": "nav/start.html"})).await["page"].take();
    let body = json!({"page": page, "actions": [{"action": "click", "selector": "#a"}, {"action": "click", "selector": "#b"}]});
    let done = daemon.ok("act", body).await;
    assert_eq!(done["done"][0]["title"], "next", "{done}");
    assert!(
        done["done"][0]["url"]
            .as_str()
            .unwrap()
            .ends_with("/nav/next.html"),
        "{done}"
    );
    assert_eq!(
        daemon.eval(page.as_str().unwrap(), "document.title").await,
        "done"
    );
    // A form that a key sends off.
    daemon
        .ok("page", json!({"page": page, "path": "nav/start.html"}))
        .await;
    let body = json!({"page": page, "actions": [{"action": "type", "selector": "#q", "text": "x y"}, {"action": "key", "key": "Return"}]});
    let done = daemon.ok("act", body).await;
    assert!(
        done["done"][1]["url"]
            .as_str()
            .unwrap()
            .ends_with("next.html?q=x+y"),
        "{done}"
    );
    daemon.close(page.as_str().unwrap()).await;
}

#[tokio::test]
async fn frames_of_the_same_origin_and_shadow_roots_are_reached() {
    let daemon = Daemon::shared();
    let html = r#"<!doctype html><body style="margin:0"><div style="height:500px"></div>
        <iframe id=f style="margin:30px;border:7px solid;padding:5px;width:200px;height:100px" srcdoc="<body style='margin:0'><div style='height:300px'></div><button id=in onclick='top.hits.push(event.isTrusted)'>In</button>"></iframe>
        <div id=host></div><script>window.hits = []; const root = host.attachShadow({mode: 'open'});
        root.innerHTML = '<button class=deep>Deep</button>'; root.firstChild.onclick = e => hits.push(e.isTrusted)</script>"#;
    let page = daemon.open(html, 400, 300).await;
    for selector in ["#in", ".deep"] {
        let line = act(
            &daemon,
            &page,
            json!({"action": "click", "selector": selector}),
        )
        .await;
        assert!(line.get("unverifiable").is_none(), "{line}");
    }
    assert_eq!(daemon.eval(&page, "hits").await, json!([true, true]));
    daemon.close(&page).await;
}

#[tokio::test]
async fn a_page_that_redefines_everything_is_acted_on_all_the_same() {
    let daemon = Daemon::shared();
    let html = r#"<!doctype html><script>
        const no = () => { throw new Error('mine') };
        for (const type of [Array, Object, Element, Node, Document, EventTarget, Map, Promise, String])
          for (const name of Object.getOwnPropertyNames(type.prototype))
            try { if (typeof type.prototype[name] === 'function' && name !== 'constructor') type.prototype[name] = no } catch {}
        JSON.stringify = JSON.parse = Array.from = requestAnimationFrame = setTimeout = performance.now = no;
        for (const name of ['$gb', 'picked']) Object.defineProperty(globalThis, name, {get: no});
        </script><form name=querySelector><input name=getClientRects id=i><input name=parentNode></form>
        <img name=elementFromPoint><img name=body><button id=b onclick="document.title = 'clicked ' + event.isTrusted">B</button>"#;
    let page = daemon.ok("page", json!({"html": html})).await["page"].take();
    let body = json!({"page": page, "actions": [
        {"action": "click", "selector": "#b"}, {"action": "type", "selector": "#i", "text": "typed"},
        {"action": "wait", "text": "B"}, {"action": "hover", "selector": "form"}, {"action": "scroll", "by": [0, 10]}]});
    let done = daemon.ok("act", body).await;
    assert_eq!(done["done"][1]["value"], "typed", "{done}");
    let shot = daemon.ok("snapshot", json!({"page": page})).await;
    assert_eq!(shot["title"], "clicked true", "{shot}");
    assert!(
        shot["tree"].as_str().unwrap().contains("button \"B\""),
        "{shot}"
    );
    daemon.close(page.as_str().unwrap()).await;
}

#[tokio::test]
async fn the_last_actions_are_remembered_with_what_came_of_them() {
    let daemon = Daemon::start();
    let page = daemon.open("<!doctype html><input id=i>", 300, 200).await;
    act(
        &daemon,
        &page,
        json!({"action": "type", "selector": "#i", "text": "y".repeat(5_000)}),
    )
    .await;
    let wrong = json!({"page": page, "actions": [{"action": "click", "ref": "e1"}]});
    daemon.refused("act", wrong, 409, "stale_ref").await;
    let waits: Vec<Value> = vec![json!({"action": "wait", "ms": 0}); 50];
    for _ in 0..6 {
        daemon
            .ok("act", json!({"page": page, "actions": waits}))
            .await;
    }
    let log = daemon.get("actions").await;
    assert_eq!((&log["count"], &log["dropped"]), (&json!(302), &json!(46)));
    assert_eq!(log["actions"].as_array().unwrap().len(), 256);
}
