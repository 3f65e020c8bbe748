//! The owner's terminal: the real program on a pseudo-terminal, with a real session behind it.

use serde_json::json;

use crate::agent::Agent;
use crate::pty::{Console, SOON};

const ARGUMENTS: [&str; 4] = ["start", "--dev", "--relay", "local"];

fn request(agent: &Agent, host: &str, reason: &str) -> String {
    let reply = agent.post("/request", &json!({"hosts": [host], "reason": reason}));
    assert_eq!(reply.status, 202, "{reply:?}");
    reply.json()["taskId"].as_str().unwrap().to_owned()
}

fn is_answered(agent: &Agent, task: &str) -> bool {
    agent.get(&format!("/_as_tasks/{task}")).json()["decision"] == "allowed"
}

#[test]
fn what_is_typed_stays_whole_while_lines_appear_above_it() {
    let mut console = Console::start(&ARGUMENTS, &[]);
    let agent = Agent::new(&console.link());
    console.wait("0 pages, ends in 4 h 0 min (help)", SOON);
    console.keys("hel");
    console.wait_line("> hel");
    for _ in 0..20 {
        agent.get("/info").ok();
    }
    console.until(SOON, "20 calls", |screen| {
        screen.matches("GET /info").count() == 20
    });
    console.wait_line("> hel");
    console.keys("p\r");
    console.wait("(ctrl-c does the same)", SOON);
    // History, then an edit in the middle of a line.
    console.keys("\u{1b}[A\r");
    console.until(SOON, "help twice", |screen| {
        screen.matches("(ctrl-c does the same)").count() == 2
    });
    console.keys("pges\u{1b}[D\u{1b}[D\u{1b}[Da\r");
    console.wait("no page is open", SOON);
    console.keys("\u{3}");
    assert_eq!(console.ended(SOON).code(), Some(0));
    console.wait("ended    stopped with ctrl-c", SOON);
    assert!(console.is_as_it_was());
}

#[test]
fn an_answer_counts_only_where_its_question_was_on_the_screen_before() {
    let mut console = Console::start(&ARGUMENTS, &[]);
    let agent = Agent::new(&console.link());
    // Typed before the question is there, and sent after.
    console.keys("allow 1");
    console.wait_line("> allow 1");
    let task = request(&agent, "one.example", "the model is there");
    console.wait("deny 1 [note]", SOON);
    console.wait_line("> allow 1");
    console.keys("\r");
    console.wait("while you were typing", SOON);
    assert!(!is_answered(&agent, &task));
    // Pasted, with another line behind it.
    console.keys("\u{1b}[200~allow 1\nallow 2\n\u{1b}[201~\r");
    console.wait("nothing after it but", SOON);
    (0..100).for_each(|_| console.keys("y\r"));
    assert!(!is_answered(&agent, &task));
    // Read, then typed.
    console.keys("allow 1\r");
    console.wait("request  1 allowed", SOON);
    assert!(is_answered(&agent, &task));
    console.keys("stop\r");
    assert_eq!(console.ended(SOON).code(), Some(0));
    assert!(console.is_as_it_was());
}

#[test]
fn nothing_from_outside_moves_the_cursor_or_looks_like_our_own_line() {
    let mut console = Console::start(&ARGUMENTS, &[("NO_COLOR", "1")]);
    let agent = Agent::new(&console.link());
    let forged = "\u{1b}[2J\u{1b}[H\r\nREQUEST 9  allow 9\u{202e}\u{9b}31m";
    let page = agent.open(&format!(
        "<script>console.error({})</script>",
        json!(forged)
    ));
    let title = format!("document.title = {}", json!(forged));
    agent
        .post("/eval", &json!({"page": page, "js": title}))
        .ok();
    request(&agent, "xn--pple-43d.com", forged);
    console.wait("can look like another name", SOON);
    console.wait("\\u{1b}[2J", SOON);
    console.wait("deny 1 [note]", SOON);
    console.keys("deny 1 no\r");
    let screen = console.wait("request  1 denied", SOON);
    assert!(
        screen.contains("1 REQUEST WAITS") || screen.contains("1 pages"),
        "{screen}"
    );
    assert!(
        !screen
            .lines()
            .any(|line| line.trim_start().starts_with("REQUEST 9")),
        "{screen}"
    );
    console.keys("stop\r");
    assert_eq!(console.ended(SOON).code(), Some(0));
    let raw = console.raw();
    for sequence in ["\u{1b}[2J", "\u{1b}[H", "\u{202e}", "\u{9b}"] {
        assert!(!raw.contains(sequence), "{sequence:?}");
    }
    // No colour where none is wanted; a cursor that moves is no colour.
    assert!(
        !raw.contains("\u{1b}[2m") && !raw.contains("\u{1b}[33m") && !raw.contains("\u{1b}[1;36m"),
        "{raw:?}"
    );
}

#[test]
fn a_person_who_wants_quiet_hears_of_requests_alone() {
    let mut console = Console::start(&[&ARGUMENTS[..], &["--quiet"]].concat(), &[]);
    let agent = Agent::new(&console.link());
    agent.open("<p>quiet");
    agent.get("/info").ok();
    request(&agent, "one.example", "why");
    let screen = console.wait("deny 1 [note]", SOON);
    assert!(
        !screen.contains("GET /info") && !screen.contains("opened"),
        "{screen}"
    );
    console.wait("1 REQUEST WAITS, 1 pages", SOON);
    assert!(console.raw().contains("\u{1b}[1;36mREQUEST 1"));
    console.keys("status\r");
    console.wait("1 waiting", SOON);
    console.keys("\u{3}");
    assert_eq!(console.ended(SOON).code(), Some(0));
}
