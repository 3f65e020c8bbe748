//! `config.toml` and the commands around it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::home::{Home, agent};

#[test]
fn a_key_that_is_none_is_named_with_its_line_and_the_nearest() {
    let home = Home::new();
    home.write_config("# mine\nminuts = 5\n");
    let done = home.run(&["start", "--dev", "--json"]);
    assert_eq!(done.code, Some(2), "{}", done.errors);
    let place = format!("{}:2: ", home.config().display());
    assert!(done.errors.contains(&place), "{}", done.errors);
    assert!(
        done.errors.contains("the nearest one is minutes"),
        "{}",
        done.errors
    );
}

#[test]
fn a_file_that_was_named_must_be_there() {
    let home = Home::new();
    let done = home.run(&["start", "--dev", "--config", "/nowhere/c.toml"]);
    assert_eq!(done.code, Some(1));
    assert!(done.errors.contains("/nowhere/c.toml"), "{}", done.errors);
}

#[test]
fn a_new_file_tells_every_key_and_replaces_nothing() {
    let home = Home::new();
    let path = home.config();
    let printed = format!("{}\n", path.display());
    assert_eq!(home.run(&["config", "path"]).output, printed);
    assert!(!path.exists());
    let made = home.run(&["config", "init"]);
    assert_eq!(
        (made.code, made.output.as_str()),
        (Some(0), printed.as_str())
    );
    std::fs::write(&path, "label = \"mine\"\n").unwrap();
    let again = home.run(&["config", "init"]);
    assert_eq!((again.code, again.output.as_str()), (Some(1), ""));
    assert!(again.errors.contains("--force"), "{}", again.errors);
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        "label = \"mine\"\n"
    );
    assert_eq!(home.run(&["config", "init", "--force"]).code, Some(0));
    assert!(
        std::fs::read_to_string(&path)
            .unwrap()
            .contains("#minutes = 240")
    );
    let other = home.path().join("other.toml");
    let other = other.to_str().unwrap();
    assert_eq!(
        home.run(&["config", "init", "--config", other]).output,
        format!("{other}\n")
    );
}

#[test]
fn the_file_shapes_a_session_and_the_command_line_wins() {
    let home = Home::new();
    home.write_config(
        "minutes = 30\nlabel = \"of-file\"\nhosts = [\"mine.example\"]\ndefault_hosts = false\n",
    );
    home.session(&["--minutes", "90"], |ready, agent| {
        let end = Duration::from_secs(ready["end_unix_s"].as_u64().unwrap());
        let left = (UNIX_EPOCH + end)
            .duration_since(SystemTime::now())
            .unwrap();
        assert!(left > Duration::from_secs(80 * 60), "{left:?}");
        let info = agent.try_info().unwrap().ok();
        assert_eq!(info["allowed_hosts"], json!(["mine.example"]), "{info}");
    });
}

#[test]
fn a_host_that_is_allowed_always_is_in_the_file_and_in_the_next_session() {
    let home = Home::new();
    home.write_config("default_hosts = false # none\nhosts = [\n  \"a.example\", # mine\n]\n");
    let (mut session, ready) = home.start(&[]);
    let plea = json!({"hosts": ["new.example"], "reason": "a model to load"});
    assert_eq!(agent(&ready).post("/request", &plea).status, 202);
    let number = session.event("request")["number"].clone();
    session.say(&format!("allow {number} always"));
    assert_eq!(session.event("answered")["decision"], "allowed");
    session.stop();
    let kept =
        "default_hosts = false # none\nhosts = [\n  \"new.example\",\n  \"a.example\", # mine\n]\n";
    assert_eq!(std::fs::read_to_string(home.config()).unwrap(), kept);
    let log = std::fs::read_to_string(home.log()).unwrap();
    let asked =
        r#""event":"request","number":1,"hosts":["new.example"],"reason":"a model to load""#;
    let said = r#""event":"answered","number":1,"decision":"allowed","by":"owner","hosts":["new.example"]"#;
    assert!(log.contains(asked) && log.contains(said), "{log}");
    home.session(&[], |_, agent| {
        let allowed = agent.try_info().unwrap().ok()["allowed_hosts"].clone();
        assert_eq!(allowed, json!(["a.example", "new.example"]));
    });
}
