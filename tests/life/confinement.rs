//! What the kernel says of a running browser: whose it is, what it sees, and what keeps it there.

use std::collections::BTreeSet;

use crate::processes::Process;
use crate::stage::{SECRET, Stage};

/// All that a browser may find in its environment.
const KNOWN: &[&str] = &[
    "HOME",
    "TMPDIR",
    "PATH",
    "LANG",
    "BREAKPAD_DUMP_LOCATION",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "XAUTHORITY",
];
/// Added by Chromium itself to what it starts.
const CHROMIUMS_OWN: &[&str] = &["CHROME_CRASHPAD_PIPE_NAME", "CHROME_DESKTOP"];
/// `TCP_LISTEN` in the kernel's tables.
const LISTENING: &str = "0A";

/// The names in the environment of a process. Chromium writes its title over a part of that memory: what has a dash
/// or a space in its name belongs to its command line.
fn names(process: &Process) -> BTreeSet<String> {
    let environment = process.read("environ");
    let entries = environment.split('\0');
    entries
        .filter_map(|entry| entry.split_once('='))
        .filter(|(name, _)| !name.contains(['-', ' ']))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// Addresses that something listens on in the network namespace of a process.
fn listeners(process: &Process) -> Vec<String> {
    let tables = ["net/tcp", "net/tcp6"].map(|table| process.read(table));
    assert!(!tables[0].is_empty());
    let rows = tables.iter().flat_map(|table| table.lines().skip(1));
    let columns = rows.map(|row| row.split_whitespace().collect::<Vec<_>>());
    columns
        .filter(|columns| columns[3] == LISTENING)
        .map(|columns| columns[1].to_owned())
        .collect()
}

/// The sockets that a process has open, by their numbers in the kernel's tables.
fn sockets(process: &Process) -> Vec<String> {
    let entries = std::fs::read_dir(process.file("fd")).unwrap();
    entries
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|target| Some(target.to_str()?.strip_prefix("socket:")?.to_owned()))
        .collect()
}

#[test]
fn the_browser_is_confined_by_the_kernel() {
    let (stage, agent) = Stage::ready();
    agent.open("<p>a page");
    let daemon = stage.daemon();
    let main = stage.chromium().unwrap();

    // Not root, in none of its ids, with no way back up.
    for line in ["Uid", "Gid"] {
        let ids = main.status(line);
        assert!(ids.split_whitespace().all(|id| id != "0"), "{line}: {ids}");
    }
    assert_eq!(main.status("NoNewPrivs"), "1");
    let groups = main.status("Groups");
    assert!(groups.split_whitespace().all(|id| id != "0"), "{groups}");
    for kind in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(main.status(kind).trim_matches('0'), "", "{kind}");
    }

    // A network of its own, with the one socket that the daemon accepts on.
    for kind in ["net", "user"] {
        assert_ne!(main.namespace(kind), daemon.namespace(kind), "{kind}");
    }
    let interfaces = main.read("net/dev");
    let interfaces: Vec<&str> = interfaces
        .lines()
        .skip(2)
        .filter_map(|line| line.split(':').next())
        .map(str::trim)
        .collect();
    assert_eq!(interfaces, ["lo"]);
    let listening = listeners(&main);
    let argument = main.command.split_once("--proxy-server=").unwrap().1;
    let port = argument.split_whitespace().next().unwrap();
    let port: u16 = port.rsplit_once(':').unwrap().1.parse().unwrap();
    assert_eq!(listening, [format!("0100007F:{port:04X}")]);
    assert!(!main.command.contains("--remote-debugging-port"));

    // The pipe is a socket pair, which cannot be opened again through /proc.
    let links = [3, 4].map(|number| std::fs::read_link(main.file("fd").join(number.to_string())));
    let [input, output] = links.map(|link| link.unwrap().to_string_lossy().into_owned());
    assert!(input.starts_with("socket:"), "{input}");
    assert_eq!(input, output);
    let standard =
        [0, 1].map(|number| std::fs::read_link(main.file("fd").join(number.to_string())));
    for link in standard {
        assert_eq!(link.unwrap().to_str(), Some("/dev/null"));
    }
}

#[test]
fn every_process_of_the_browser_is_where_it_should_be() {
    let (stage, agent) = Stage::ready();
    agent.open(
        "<canvas></canvas><script>document.querySelector('canvas').getContext('webgl2')</script>",
    );
    let daemon = stage.daemon();
    let main = stage.chromium().unwrap();
    let children = stage.children();
    let of_browser = children.iter().filter(|one| one.command.contains("chrom"));
    let mut kinds = BTreeSet::new();
    for one in of_browser {
        if !one.is_alive() {
            continue;
        }
        let command = &one.command;
        assert_ne!(one.namespace("net"), daemon.namespace("net"), "{command}");
        assert!(
            !one.status("Uid").split_whitespace().any(|id| id == "0"),
            "{command}"
        );
        assert!(!command.contains("no-sandbox"), "{command}");
        let kind = command.split("--type=").nth(1).unwrap_or("browser");
        let kind = kind.split_whitespace().next().unwrap();
        kinds.insert(kind.to_owned());
        if kind != "renderer" {
            continue;
        }
        // The sandbox proper: system calls filtered, and nothing of the browser's world to be seen.
        assert_eq!(one.status("Seccomp"), "2", "{command}");
        assert_eq!(one.status("NoNewPrivs"), "1", "{command}");
        for namespace in ["user", "pid", "net"] {
            assert_ne!(
                one.namespace(namespace),
                main.namespace(namespace),
                "{namespace} of {command}"
            );
        }
        let own = one.status("NSpid");
        assert!(own.split_whitespace().count() > 1, "{own}");
    }
    for kind in ["browser", "zygote", "gpu-process", "renderer", "utility"] {
        assert!(kinds.contains(kind), "no {kind} among {kinds:?}");
    }
}

#[test]
fn the_display_is_an_ordinary_account_s_and_listens_on_no_network() {
    let (stage, agent) = Stage::ready();
    agent.open("<p>a page");
    let children = stage.children();
    let Some(display) = children.iter().find(|one| one.command.contains("Xvfb")) else {
        // A rung that needs no display has none.
        assert!(
            !stage
                .chromium()
                .unwrap()
                .command
                .contains("--ozone-platform=x11")
        );
        return;
    };
    assert!(!display.status("Uid").split_whitespace().any(|id| id == "0"));
    let held = sockets(display);
    let tables = ["net/tcp", "net/tcp6"].map(|table| display.read(table));
    for row in tables.iter().flat_map(|table| table.lines().skip(1)) {
        let inode = format!("[{}]", row.split_whitespace().nth(9).unwrap());
        assert!(
            !held.contains(&inode),
            "the display is on the network: {row}"
        );
    }
}

#[test]
fn nothing_of_the_owner_s_environment_reaches_the_browser() {
    let (stage, agent) = Stage::ready();
    agent.open("<p>a page");
    let daemon = stage.daemon();
    assert!(daemon.read("environ").contains(SECRET));
    let children = stage.children();
    assert!(children.len() > 4, "{children:#?}");
    let known: BTreeSet<String> = KNOWN
        .iter()
        .chain(CHROMIUMS_OWN)
        .map(|name| (*name).to_owned())
        .collect();
    let mut whole = 0;
    for one in children {
        let names = names(&one);
        let more: Vec<_> = names.difference(&known).collect();
        assert!(more.is_empty(), "{more:?} in {}", one.command);
        assert!(!one.read("environ").contains(SECRET), "{}", one.command);
        whole += usize::from(names.contains("HOME") && names.contains("PATH"));
    }
    // Where a title was written over all of it, there was nothing to see.
    assert!(whole > 0, "no environment could be read");
}
