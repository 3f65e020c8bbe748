//! The whole life with a real browser: proven by its self-test, started by an ordinary user through the one rule, used by
//! an agent, not to be changed while it runs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Stdio};

use serde_json::{Value, json};

use crate::machine::{ACCOUNT, INSTALLED, Machine, OWNER, PROGRAM, STRANGER};

const NEXT: &str = "/tmp/gpu-browser-next";

/// A session of the owner's.
struct Started {
    child: Child,
    input: ChildStdin,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Started {
    fn new(machine: &Machine, who: &str, before: &str) -> Self {
        Self::with(machine, who, before, "")
    }

    fn with(machine: &Machine, who: &str, before: &str, after: &str) -> Self {
        let line = format!(
            "cd / && exec runuser -u {who} -- env {before} {PROGRAM} start --json --relay local {after}"
        );
        let mut child = machine
            .command(&line)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            input: child.stdin.take().unwrap(),
            lines,
            child,
        }
    }

    /// Waits for an event of a name.
    fn event(&mut self, name: &str) -> Value {
        let mut seen = Vec::new();
        for line in self.lines.by_ref().map_while(Result::ok) {
            let event: Value = serde_json::from_str(&line).unwrap();
            if event["event"] == name {
                return event;
            }
            seen.push(line);
        }
        let mut errors = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut errors)
            .unwrap();
        panic!("no event {name}: {seen:#?} {errors}");
    }

    fn stop(mut self) {
        writeln!(self.input, "stop").unwrap();
        self.event("ended");
        assert!(self.child.wait().unwrap().success());
    }

    /// How it ended by itself.
    fn refused(mut self) -> (Option<i32>, String) {
        let mut errors = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut errors)
            .unwrap();
        (self.child.wait().unwrap().code(), errors)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What an agent's call answers.
fn call(link: &str, tool: &str, body: &Value) -> String {
    let base = link
        .strip_suffix("/agents.md")
        .unwrap()
        .strip_prefix("http://")
        .unwrap();
    let (authority, path) = base.split_once('/').unwrap();
    let mut stream = TcpStream::connect(authority).unwrap();
    let body = body.to_string();
    write!(
        stream,
        "POST /{path}{tool} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{tool}: {answer}");
    text.to_owned()
}

/// A page that is opened, and its picture's first bytes.
fn picture(link: &str) {
    let page: Value =
        serde_json::from_str(&call(link, "/page", &json!({"html": "<h1>hello"}))).unwrap();
    let shot = json!({"page": page["page"], "format": "png"});
    let receipt: Value = serde_json::from_str(&call(link, "/screenshot", &shot)).unwrap();
    let part = call(
        link,
        "/image",
        &json!({"image": receipt["image"], "part": 1}),
    );
    assert!(
        part.starts_with("iVBORw0KGgo"),
        "no PNG: {}",
        &part[..40.min(part.len())]
    );
}

#[test]
fn an_ordinary_user_gets_a_picture_and_an_uninstall_leaves_nothing() {
    let machine = Machine::new();
    // A careless rule of somebody else's, as macOS ships one.
    let keep = r#"Defaults env_keep += "HOME LD_LIBRARY_PATH XDG_CONFIG_HOME""#;
    machine
        .root(&format!(
            "echo '{keep}' > /etc/sudoers.d/keep && chmod 440 /etc/sudoers.d/keep"
        ))
        .expect(0);
    let before = machine.tree();
    let installed = machine.program("install --yes").expect(0);
    for check in [
        "WebGL2",
        "WebGPU",
        "Chromium's sandbox",
        "no way round the proxy",
        "a private address",
        "a context",
        "the owner's home",
        "way in",
    ] {
        let line = installed
            .output
            .lines()
            .find(|line| line.contains(check) && line.starts_with("ok"));
        assert!(line.is_some(), "{check}: {}", installed.output);
    }
    machine.program("doctor").expect(0).says("proven");

    let mut started = Started::new(
        &machine,
        OWNER,
        "HOME=/home/ann LD_LIBRARY_PATH=/tmp LD_PRELOAD=/tmp/none.so XDG_CONFIG_HOME=/home/ann/x DBUS_SESSION_BUS_ADDRESS=unix:path=/no",
    );
    let link = started.event("ready")["link"].as_str().unwrap().to_owned();
    picture(&link);
    under_the_account(&machine);
    // Written under the account, and the owner reads it; a stranger does not.
    machine
        .person(OWNER, &format!("{INSTALLED} logs --json"))
        .expect(0)
        .says(r#""event":"call","tool":"POST /screenshot""#);
    let strange = machine.person(STRANGER, &format!("{INSTALLED} logs --json"));
    assert!(!strange.output.contains("POST /screenshot"), "{strange:?}");

    // Nothing is changed under a running server, and there is one server.
    for change in [
        format!("{NEXT} update --yes"),
        format!("{PROGRAM} uninstall --yes"),
    ] {
        machine
            .root(&format!("SUDO_USER={OWNER} {change}"))
            .expect(3)
            .says("is running");
    }
    let (code, errors) = Started::new(&machine, OWNER, "").refused();
    assert_eq!(code, Some(3), "{errors}");
    started.stop();

    machine
        .root(&format!("SUDO_USER={OWNER} {NEXT} update --yes"))
        .expect(0)
        .says("proven");
    let mut again = Started::new(&machine, OWNER, "");
    picture(again.event("ready")["link"].as_str().unwrap());
    again.stop();
    machine.program("uninstall --yes").expect(0);
    before.assert_same(&machine.tree(), "after a whole life");
}

/// What runs, runs as the account: nothing of the owner's in its environment, its files for it alone.
fn under_the_account(machine: &Machine) {
    let server = format!(
        "pgrep -u {ACCOUNT} -f '^{}'",
        INSTALLED.replace("current/gpu-browser", ".*/gpu-browser server")
    );
    let id = machine.root(&server).expect(0).output.trim().to_owned();
    let environment = machine
        .root(&format!("tr '\\0' '\\n' </proc/{id}/environ"))
        .expect(0)
        .output;
    let mut names: Vec<&str> = environment
        .lines()
        .filter_map(|line| line.split('=').next())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["HOME", "LANG", "PATH", "TMPDIR"], "{environment}");
    assert!(environment.contains("HOME=/var/lib/agent-socket-gpu-browser\n"));
    machine
        .root(&format!("grep Umask /proc/{id}/status"))
        .expect(0)
        .says("0077");
    // It leads a session of its own, and so has no terminal that it could type into.
    let session = machine
        .root(&format!("ps -o sid= -p {id}"))
        .expect(0)
        .output;
    assert_eq!(session.trim(), id);
    machine
        .root("ps -o user:40= -C chromium | sort -u")
        .expect(0)
        .says(ACCOUNT);
}

#[test]
fn a_killed_update_keeps_servers_out_until_it_is_finished() {
    let machine = Machine::new();
    machine.install();
    let update = format!("SUDO_USER={OWNER} {NEXT} update --yes --skip-self-test");
    machine
        .root(&format!("{update} --stop-after 4; exit $?"))
        .expect(137);
    let (code, errors) = Started::new(&machine, OWNER, "").refused();
    assert_eq!(code, Some(3), "{errors}");
    assert!(errors.contains("left unfinished"), "{errors}");
    machine.root(&update).expect(5);
    let mut started = Started::new(&machine, OWNER, "");
    started.event("ready");
    started.stop();
}

#[test]
fn a_stranger_starts_nothing() {
    let machine = Machine::new();
    machine.install();
    let (code, errors) = Started::new(&machine, STRANGER, "").refused();
    assert_eq!(code, Some(1), "{errors}");
    assert!(
        errors.contains("sudo does not let you") && errors.contains("--owner"),
        "{errors}"
    );
}

#[test]
fn a_server_that_is_killed_ends_the_owners_command_with_the_reason_and_leaves_no_process() {
    let machine = Machine::new();
    machine.install();
    let mut started = Started::new(&machine, OWNER, "");
    started.event("ready");
    machine
        .root(&format!("pkill -KILL -u {ACCOUNT} -f 'gpu-browser server'"))
        .expect(0);
    let reason = started.event("ended")["reason"].to_string();
    assert!(reason.contains("the session was lost"), "{reason}");
    assert_eq!(started.refused().0, Some(1));
    machine
        // What is dead and not reaped is no process any more.
        .root(&format!(
            "for n in $(seq 50); do ps -u {ACCOUNT} -o stat= | grep -q '^[^Z]' || exit 0; sleep 0.1; done; \
             ps -u {ACCOUNT} -o pid,ppid,stat,args; exit 9"
        ))
        .expect(0);
    let mut again = Started::new(&machine, OWNER, "");
    again.event("ready");
    again.stop();
}

#[test]
fn no_program_of_the_owners_choice_runs_as_the_account() {
    let machine = Machine::new();
    machine.install();
    let own = format!("/home/{OWNER}/chromium");
    machine
        .root(&format!(
            "cp /usr/bin/id {own} && chown {OWNER} {own} && chmod 755 {own}"
        ))
        .expect(0);
    let (code, errors) = Started::with(&machine, OWNER, "", &format!("--chromium {own}")).refused();
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("root alone"), "{errors}");
    // Its twin: the system's own.
    let path = machine
        .root("ls /usr/lib/chromium/chromium /usr/lib64/chromium*/chromium* 2>/dev/null | head -1")
        .output;
    let mut started = Started::with(&machine, OWNER, "", &format!("--chromium {}", path.trim()));
    started.event("ready");
    started.stop();
}

#[test]
fn a_home_that_the_account_can_read_fails_the_self_test() {
    let machine = Machine::new();
    machine.root(&format!("chmod 755 /home/{OWNER}")).expect(0);
    machine
        .program("install --yes")
        .expect(5)
        .says("installed, not proven")
        .says("chmod o-rwx");
    machine.root(&format!("chmod 700 /home/{OWNER}")).expect(0);
    machine.program("doctor --fix").expect(0).says("running: ");
    machine.program("doctor").expect(0).says("proven");
}
