//! Network namespaces: each side of the world is one, with a thread and a runtime that live in it.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Pid, gettid};
use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

/// A namespace. Sockets that its tasks make are in it.
pub struct Side {
    tasks: Handle,
    thread_id: Pid,
    end: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Side {
    /// A namespace with nothing but its loopback.
    pub fn new() -> Self {
        let end = CancellationToken::new();
        let (sender, made) = mpsc::channel();
        let ended = end.clone();
        let thread = thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET)
                .expect("network namespaces need root: run the tests as root");
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            sender.send((runtime.handle().clone(), gettid())).unwrap();
            runtime.block_on(ended.cancelled());
            runtime.shutdown_background();
        });
        let (tasks, thread_id) = made
            .recv()
            .expect("network namespaces need root: run the tests as root");
        let side = Self {
            tasks,
            thread_id,
            end,
            thread: Some(thread),
        };
        side.ip("link set lo up");
        side
    }

    /// Does something on the thread of the namespace, which may be the one that asks.
    pub fn on_thread<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        if gettid() == self.thread_id {
            return work();
        }
        let (sender, done) = mpsc::channel();
        self.tasks
            .spawn(async move { sender.send(work()).unwrap() });
        done.recv().unwrap()
    }

    /// Runs `ip` in the namespace.
    pub fn ip(&self, arguments: &str) {
        let words: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
        let output = self.on_thread(move || {
            Command::new("ip")
                .args(words)
                .output()
                .expect("the tests need iproute2")
        });
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "ip {arguments}: {error}");
    }

    /// Starts a task in the namespace; it ends with it.
    pub fn start(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        self.end.cancel();
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Two namespaces and the wire between them. The default route of home leads to the internet, which holds any address that
/// a test gives it.
pub struct World {
    pub home: Side,
    pub internet: Side,
}

impl World {
    pub fn new() -> Self {
        let (home, internet) = (Side::new(), Side::new());
        home.ip(&format!(
            "link add home0 type veth peer name net0 netns {}",
            internet.thread_id
        ));
        for (side, link, number) in [(&home, "home0", 1), (&internet, "net0", 2)] {
            side.ip(&format!("addr add 10.77.0.{number}/30 dev {link}"));
            side.ip(&format!("-6 addr add fd77::{number}/126 dev {link} nodad"));
            side.ip(&format!("link set {link} up"));
        }
        home.ip("route add default via 10.77.0.2");
        home.ip("-6 route add default via fd77::2");
        Self { home, internet }
    }

    /// Gives the internet an address.
    pub fn holds(&self, address: SocketAddr) {
        let (family, length) = if address.is_ipv4() {
            ("-4", 32)
        } else {
            ("-6", 128)
        };
        let nodad = if address.is_ipv4() { "" } else { " nodad" };
        // The same address for two ports is one address.
        let command = format!(
            "{family} addr replace {}/{length} dev lo{nodad}",
            address.ip()
        );
        self.internet.ip(&command);
    }
}

/// Runs a test whose code is at home.
pub fn at_home<F>(test: impl FnOnce(std::sync::Arc<World>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let world = std::sync::Arc::new(World::new());
    let (sender, done) = mpsc::channel();
    let running = world.home.tasks.spawn(test(world.clone()));
    world
        .home
        .tasks
        .spawn(async move { sender.send(running.await).unwrap() });
    if let Err(failed) = done.recv().unwrap() {
        std::panic::resume_unwind(failed.into_panic());
    }
}
