//! A Chromium on a side of the world, with the command line that a test gives it.

use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use gpu_browser::browser::account::unprivileged;
use gpu_browser::browser::chromium::Chromium;
use gpu_browser::browser::command::{
    Command as CdpCommand, EnableFetch, NoReply, RequestPattern, SetAutoAttach,
};
use gpu_browser::browser::find::find;
use gpu_browser::browser::flags::{self, PREFERENCES, Start};
use gpu_browser::browser::folder::RunFolder;
use gpu_browser::browser::namespace::{Arrived, Orders, Program, receive};
use gpu_browser::browser::pipe::Connection;
use gpu_browser::browser::rung::Rung;
use gpu_browser::browser::targets::Targets;
use gpu_browser::browser::wire::Codec;
use gpu_browser::policy::switches::OwnerSwitches;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::Serialize;
use tokio::task::JoinSet;

use crate::world::net::Side;

/// How a browser is kept from the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// By a namespace of its own, with no switch but the proxy's.
    Namespaced,
    /// By our switches and preferences, in the network of the side.
    Switched,
    /// By our switches and preferences, less the one that begins so.
    SwitchedBut(&'static str),
    /// By nothing but the proxy's switch, in the network of the side.
    Free,
}

/// A running browser; dropped, it and all that it started are gone.
pub struct Browser {
    pub chromium: Chromium,
    process: Child,
    _folder: RunFolder,
    _tasks: JoinSet<()>,
}

/// `Security.setIgnoreCertificateErrors`: where no switch names the keys of our sites, the test says that they will do.
#[derive(Serialize)]
struct IgnoreCertificateErrors {
    ignore: bool,
}

impl CdpCommand for IgnoreCertificateErrors {
    const METHOD: &'static str = "Security.setIgnoreCertificateErrors";
    type Reply = NoReply;
}

impl Browser {
    /// Starts one; the socket is what it believes to be its proxy.
    pub async fn start(side: &Side, kept: Kept, keys: &str) -> (Self, TcpListener) {
        let account = unprivileged();
        let folder = RunFolder::create(account.as_ref()).unwrap();
        let profile = folder.new_profile().unwrap();
        let orders = Orders {
            account,
            network: kept == Kept::Namespaced,
            parent: std::process::id(),
        };
        let (process, control, pipe) = helper(side, &orders, folder.environment());
        let (arrived, inside) = receive(&control).unwrap();
        let socket = match (arrived, inside) {
            (Arrived::Namespace, Some(socket)) => socket,
            (Arrived::Host, None) => {
                side.on_thread(|| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap())
            }
            other => panic!("{other:?}"),
        };
        let port = socket.local_addr().unwrap().port();
        let is_bare = matches!(kept, Kept::Namespaced | Kept::Free);
        let preferences = if is_bare { "{}" } else { PREFERENCES };
        let preferences = preferences.as_bytes();
        folder
            .write("profile/Default/Preferences", preferences)
            .unwrap();
        let arguments = match kept {
            Kept::Namespaced | Kept::Free => bare(port, &profile),
            Kept::Switched => ours(port, &profile, keys),
            Kept::SwitchedBut(one) => {
                let mut line = ours(port, &profile, keys);
                line.retain(|switch| !switch.starts_with(one));
                line
            }
        };
        let program = Program {
            path: find(None).unwrap().as_path().to_owned(),
            arguments,
            pipe: true,
        };
        serde_json::to_writer(&control, &program).unwrap();
        drop(control);
        let mut tasks = JoinSet::new();
        let chromium = connect(pipe, process.id(), &mut tasks).await;
        if is_bare {
            let ignore = IgnoreCertificateErrors { ignore: true };
            chromium.connection.start(None, &ignore).await.unwrap();
        }
        let browser = Self {
            chromium,
            process,
            _folder: folder,
            _tasks: tasks,
        };
        (browser, socket)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let group = Pid::from_raw(i32::try_from(self.process.id()).unwrap());
        let _ = killpg(group, Signal::SIGKILL);
        let _ = self.process.wait();
    }
}

fn helper(
    side: &Side,
    orders: &Orders,
    environment: Vec<(&'static str, std::path::PathBuf)>,
) -> (Child, UnixStream, UnixStream) {
    let orders = serde_json::to_string(orders).unwrap();
    let (control, input) = UnixStream::pair().unwrap();
    let (pipe, output) = UnixStream::pair().unwrap();
    let process = side.on_thread(move || {
        Command::new(env!("CARGO_BIN_EXE_gpu-browser"))
            .args(["__enter", &orders])
            .env_clear()
            .envs(environment)
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(input)))
            .stdout(Stdio::from(OwnedFd::from(output)))
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap()
    });
    (process, control, pipe)
}

/// What it takes to run without a screen and to be spoken to, and the proxy.
fn bare(port: u16, profile: &Path) -> Vec<String> {
    vec![
        "--headless=new".to_owned(),
        format!("--user-data-dir={}", profile.display()),
        "--remote-debugging-pipe=cbor".to_owned(),
        format!("--proxy-server=http://127.0.0.1:{port}"),
    ]
}

/// What a session starts it with.
fn ours(port: u16, profile: &Path, keys: &str) -> Vec<String> {
    flags::command_line(&Start {
        rung: Rung::SoftwareHeadless,
        proxy_port: port,
        uploads_key: keys,
        profile,
        cbor: true,
        sandbox: true,
        owner: &OwnerSwitches::default(),
    })
}

async fn connect(pipe: UnixStream, process: u32, tasks: &mut JoinSet<()>) -> Chromium {
    pipe.set_nonblocking(true).unwrap();
    let (input, output) = tokio::net::UnixStream::from_std(pipe).unwrap().into_split();
    let connection = Connection::open(Codec::Cbor, input, output, tasks);
    let chromium = Chromium {
        targets: Targets::listen(&connection),
        connection: connection.clone(),
        version: String::new(),
        process,
        rung: Rung::SoftwareHeadless,
        isolation: Ok(()),
    };
    let attach = SetAutoAttach {
        auto_attach: true,
        wait_for_debugger_on_start: true,
        flatten: true,
    };
    connection.start(None, &attach).await.unwrap();
    let pattern = RequestPattern {
        url_pattern: "http://prime.gpu-browser.internal/*",
    };
    let trap = EnableFetch {
        patterns: vec![pattern],
        handle_auth_requests: true,
    };
    connection.start(None, &trap).await.unwrap();
    chromium
}
