//! Fifty rounds in which a part is killed in the middle of calls and under an open question. After each, the session works
//! or is gone with all that was its own, and the owner's answer has arrived.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::processes::{Process, naming};
use crate::relays::Relay;
use crate::requests::end_of;
use crate::stage::{Stage, pid, until_empty};

const START: Duration = Duration::from_secs(90);
/// The relay is tried again after 1, 2, 4 … s, and a browser is started again after 1 s.
const BACK: Duration = Duration::from_secs(20);
const SOON: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Chromium,
    Xvfb,
    Relay,
    Daemon,
}

/// The parts of one session, each a process.
struct Scene {
    relay: Relay,
    address: String,
    stage: Stage,
    agent: Agent,
    asked: u64,
}

impl Scene {
    fn start() -> Self {
        let (relay, address) = Relay::run(&["--listen", "127.0.0.1:0"]);
        let (stage, agent) = session(&address);
        Self {
            relay,
            address,
            stage,
            agent,
            asked: 0,
        }
    }

    fn process(&self, part: &str) -> Process {
        let found = self
            .stage
            .children()
            .into_iter()
            .find(|one| one.command.contains(part));
        found.unwrap_or_else(|| panic!("no {part}"))
    }

    /// An open question; the task to poll.
    fn ask(&mut self) -> String {
        self.asked += 1;
        let host = format!("h{}.example", self.asked);
        let reply = self
            .agent
            .post("/request", &json!({"hosts": [host], "reason": "storm"}));
        assert_eq!(reply.status, 202, "{reply:?}");
        assert_eq!(self.stage.event("request", SOON)["number"], self.asked);
        reply.json()["taskId"].as_str().unwrap().to_owned()
    }

    /// The owner's answer, and that it took effect.
    fn answer(&mut self) {
        self.stage.say(&format!("allow {}", self.asked));
        assert_eq!(self.stage.event("answered", SOON)["number"], self.asked);
    }

    fn decision(&self) -> Value {
        self.agent.get("/requests").ok()["requests"][0]["decision"].clone()
    }

    fn draws(&self) {
        let body = json!({"html": "<body style='background:#123456'>", "width": 64, "height": 64});
        let deadline = Instant::now() + BACK;
        loop {
            let reply = self.agent.post("/page", &body);
            if reply.status == 200 {
                let page = reply.json()["page"].clone();
                let shot = self.agent.post("/screenshot", &json!({"page": page})).ok();
                assert_eq!((&shot["width"], &shot["height"]), (&json!(64), &json!(64)));
                self.agent.post("/close", &json!({"all": true})).ok();
                return;
            }
            assert!(Instant::now() < deadline, "{reply:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn session(relay: &str) -> (Stage, Agent) {
    let stage = Stage::run(&["start", "--dev", "--json", "--relay", relay]);
    let ready = stage.event("ready", START);
    let agent = Agent::new(ready["link"].as_str().unwrap());
    (stage, agent)
}

/// Calls until told to stop; none may hang, and each answer is one.
fn keep_calling(agent: &Agent, stop: &Arc<AtomicBool>) -> JoinHandle<()> {
    let (agent, stop) = (agent.clone(), Arc::clone(stop));
    let page = agent.open("<p>calls");
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            // The relay may be what was killed, so that nobody answers.
            if let Ok(reply) = agent.try_post("/eval", &json!({"page": page, "js": "1 + 1"})) {
                let is_known = matches!(
                    reply.code().as_deref(),
                    None | Some(
                        "browser_restarted" | "app_offline" | "token_invalid" | "not_found"
                    )
                );
                assert!(is_known, "{reply:?}");
            }
        }
    })
}

fn round(scene: &mut Scene, victim: Victim) {
    let task = scene.ask();
    let stop = Arc::new(AtomicBool::new(false));
    let calls = keep_calling(&scene.agent, &stop);
    std::thread::sleep(Duration::from_millis(150));
    match victim {
        Victim::Chromium | Victim::Xvfb => {
            let process = match victim {
                Victim::Xvfb => scene.process("Xvfb"),
                _ => scene.stage.chromium().unwrap(),
            };
            kill(pid(process.id), Signal::SIGKILL).unwrap();
            scene.answer();
            assert_eq!(end_of(&scene.agent, &task)["decision"], "allowed");
        }
        Victim::Relay => {
            scene.relay.kill();
            // Answered while nobody can hear it.
            scene.answer();
            scene.relay =
                Relay::run(&["--listen", scene.address.strip_prefix("http://").unwrap()]).0;
            let replaced = scene.stage.event("link", BACK);
            scene.agent = Agent::new(replaced["link"].as_str().unwrap());
            assert_eq!(scene.decision(), "allowed");
        }
        Victim::Daemon => {
            let before = scene.stage.children();
            scene.stage.signal(Signal::SIGKILL);
            scene.stage.ended(SOON);
            let left = until_empty(SOON, || {
                let mut left: Vec<Process> = before
                    .iter()
                    .filter(|one| one.is_alive())
                    .cloned()
                    .collect();
                left.extend(naming(scene.stage.folder()));
                left
            });
            assert!(left.is_empty(), "outlived the daemon: {left:#?}");
        }
    }
    stop.store(true, Ordering::Relaxed);
    calls.join().unwrap();
}

#[test]
fn fifty_killings_in_any_order_lose_no_answer_and_leave_no_process() {
    let mut order: Vec<Victim> = [
        (Victim::Chromium, 14),
        (Victim::Xvfb, 12),
        (Victim::Relay, 14),
        (Victim::Daemon, 10),
    ]
    .into_iter()
    .flat_map(|(victim, times)| vec![victim; times])
    .collect();
    shuffle(&mut order);
    println!("{order:?}");
    let mut scene = Scene::start();
    for (number, victim) in order.into_iter().enumerate() {
        println!("round {number}: {victim:?}");
        round(&mut scene, victim);
        if victim == Victim::Daemon {
            drop(scene);
            scene = Scene::start();
        }
        scene.draws();
        if scene.asked == 18 {
            // Twenty requests an hour are the most.
            scene = restarted(scene);
        }
    }
}

/// Ends a session in order, and begins another.
fn restarted(mut scene: Scene) -> Scene {
    scene.stage.say("stop");
    assert_eq!(scene.stage.ended(SOON).status.code(), Some(0));
    drop(scene);
    Scene::start()
}

fn shuffle(order: &mut [Victim]) {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).unwrap();
    let mut state = u64::from_le_bytes(seed) | 1;
    for at in (1..order.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        order.swap(at, usize::try_from(state % (at as u64 + 1)).unwrap());
    }
}
