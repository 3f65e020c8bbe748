//! The proxy's speed beside a direct connection, tinyproxy and squid, on one machine in one run: `make bench` runs it.
//!
//! Everything is in one network namespace that this program makes: a site on a public-range address on its loopback, a
//! scripted name server, our proxy, tinyproxy and squid where they are installed. Nothing leaves it. Rows are run alternately and the
//! median of the rounds is printed, as one JSON line each.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement, not the product"
)]

#[path = "../tests/world/mod.rs"]
mod world;

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gpu_browser::proxy::Credential;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use world::home::{Home, NAME_SERVER, SITE};
use world::names::{self, addresses};
use world::net::Side;

const ROUNDS: usize = 5;
const REQUESTS: usize = 1_600;
const BULK: usize = 512 << 20;
const TINYPROXY: &str = "127.0.0.1:8888";
const SQUID: &str = "127.0.0.1:3128";

/// How a client gets to the site.
#[derive(Clone)]
enum Way {
    Direct,
    Through(SocketAddr, Option<Credential>),
}

impl Way {
    /// A connection on which the site itself answers.
    async fn open(&self) -> TcpStream {
        let site: SocketAddr = format!("{SITE}:80").parse().unwrap();
        let Self::Through(proxy, credential) = self else {
            return TcpStream::connect(site).await.unwrap();
        };
        let mut stream = TcpStream::connect(proxy).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let target = credential
            .as_ref()
            .map_or(format!("{SITE}:80"), |_| "www.example.com:80".to_owned());
        let head = world::client::connect(&target, credential.as_ref());
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(stream.read_u8().await.unwrap());
        }
        assert!(
            answer.starts_with(b"HTTP/1.") && answer[9..12] == *b"200",
            "{}",
            String::from_utf8_lossy(&answer)
        );
        stream
    }
}

/// The site: a byte `p` is answered with a byte, a `b` with the bulk.
async fn site(listener: TcpListener) {
    let block = vec![7_u8; 1 << 20];
    let mut visitors = JoinSet::new();
    while let Ok((mut stream, _)) = listener.accept().await {
        let block = block.clone();
        stream.set_nodelay(true).unwrap();
        visitors.spawn(async move {
            while let Ok(asked) = stream.read_u8().await {
                let size = if asked == b'b' {
                    stream.read_u64().await.unwrap_or(0)
                } else {
                    1
                };
                let mut left = usize::try_from(size).unwrap();
                while left > 0 {
                    let next = left.min(block.len());
                    if stream.write_all(&block[..next]).await.is_err() {
                        return;
                    }
                    left -= next;
                }
            }
        });
    }
}

/// Connections a second with one small exchange each, and the first byte's median and 99th percentile.
async fn small(way: &Way) -> (f64, Duration, Duration) {
    let started = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..8 {
        let way = way.clone();
        clients.spawn(async move {
            let mut times = Vec::new();
            for _ in 0..REQUESTS / 8 {
                let asked = Instant::now();
                let mut stream = way.open().await;
                stream.write_all(b"p").await.unwrap();
                stream.read_u8().await.unwrap();
                times.push(asked.elapsed());
            }
            times
        });
    }
    let mut times: Vec<Duration> = clients.join_all().await.concat();
    let rate = REQUESTS as f64 / started.elapsed().as_secs_f64();
    times.sort();
    (rate, times[times.len() / 2], times[times.len() * 99 / 100])
}

/// Megabytes a second through so many tunnels at once.
async fn bulk(way: &Way, tunnels: usize) -> f64 {
    let mut streams = Vec::new();
    for _ in 0..tunnels {
        streams.push(way.open().await);
    }
    let each = BULK / tunnels;
    let started = Instant::now();
    let mut clients = JoinSet::new();
    for mut stream in streams {
        clients.spawn(async move {
            stream.write_all(b"b").await.unwrap();
            stream.write_u64(each as u64).await.unwrap();
            let (mut left, mut buffer) = (each, vec![0; 256 << 10]);
            while left > 0 {
                left -= stream.read(&mut buffer).await.unwrap();
            }
        });
    }
    clients.join_all().await;
    (each * tunnels) as f64 / 1e6 / started.elapsed().as_secs_f64()
}

fn tinyproxy(folder: &std::path::Path) -> Option<Child> {
    let settings = folder.join("tinyproxy.conf");
    let text = "Port 8888\nListen 127.0.0.1\nMaxClients 1024\nConnectPort 80\nLogLevel Critical\nTimeout 600\n";
    std::fs::write(&settings, text).ok()?;
    let mut command = Command::new("tinyproxy");
    command
        .arg("-d")
        .arg("-c")
        .arg(&settings)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().ok()
}

/// Squid without its cache and its log, which the others have neither of.
fn squid(folder: &std::path::Path) -> Option<Child> {
    let settings = folder.join("squid.conf");
    let text = format!(
        "http_port {SQUID}\nhttp_access allow all\ncache deny all\naccess_log none\ncache_log /dev/null\n\
        pid_filename none\nmax_filedescriptors 8192\nshutdown_lifetime 0 seconds\nworkers 1\n\
        dns_nameservers 9.9.9.9\nnetdb_filename none\ncoredump_dir {}\n",
        folder.display()
    );
    std::fs::write(&settings, text).ok()?;
    // It belongs to the administrator's commands, which are not on everybody's path.
    let mut command = Command::new("/usr/sbin/squid");
    command
        .args(["-N", "-f"])
        .arg(&settings)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().ok()
}

/// Resident memory of a process, its threads included, in kilobytes.
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

async fn measure(mut ways: Vec<(&str, Way)>) {
    let mut rows: Vec<[Vec<f64>; 5]> = vec![Default::default(); ways.len()];
    for _ in 0..ROUNDS {
        for ((_, way), row) in ways.iter_mut().zip(&mut rows) {
            let (rate, middle, late) = small(way).await;
            row[0].push(rate);
            row[1].push(middle.as_secs_f64() * 1e6);
            row[2].push(late.as_secs_f64() * 1e6);
            row[3].push(bulk(way, 1).await);
            row[4].push(bulk(way, 64).await);
        }
    }
    for ((name, _), row) in ways.iter().zip(rows) {
        let [rate, middle, late, one, many] = row.map(median);
        println!(
            "{{\"way\":\"{name}\",\"connections_per_s\":{rate:.0},\"first_byte_p50_us\":{middle:.0},\"first_byte_p99_us\":{late:.0},\"mb_per_s_1\":{one:.0},\"mb_per_s_64\":{many:.0}}}"
        );
    }
}

/// The program calls itself for the part that stands apart: our proxy in a process of its own, like tinyproxy.
fn serve() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let home = Home::new(&["www.example.com"], &[NAME_SERVER.parse().unwrap()]);
        let contexts: Vec<Credential> = (0..8).map(|_| home.proxy.issue()).collect();
        println!("{} {}", home.at, contexts[0].password);
        std::future::pending::<()>().await;
    });
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return serve();
    }
    let side = Side::new();
    for address in [SITE, "9.9.9.9"] {
        side.ip(&format!("addr add {address}/32 dev lo"));
    }
    // A closed connection keeps its port for a minute, and rounds are quick.
    let ports = "/proc/sys/net/ipv4/ip_local_port_range";
    side.on_thread(move || std::fs::write(ports, "1024 65000").unwrap());
    names::serve(&side, NAME_SERVER.parse().unwrap(), |_, _| {
        addresses(&[SITE, "2600:1f18::1"])
    });
    // A thread is born into the namespace of the one that makes it.
    let measuring = side.on_thread(|| std::thread::spawn(run));
    measuring.join().unwrap();
}

fn run() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind(format!("{SITE}:80")).await.unwrap();
        let mut sites = JoinSet::new();
        sites.spawn(site(listener));
        let mut ours = Command::new(std::env::current_exe().unwrap())
            .arg("serve")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (at, password) = where_it_is(&mut ours);
        let credential = |number: usize| Credential {
            user: format!("ctx-{number}"),
            password: password.clone(),
        };
        let folder = tempfile::tempdir().unwrap();
        let (tinyproxy, squid) = (tinyproxy(folder.path()), squid(folder.path()));
        for (at, child) in [(TINYPROXY, &tinyproxy), (SQUID, &squid)] {
            while child.is_some() && TcpStream::connect(at).await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        let ways: Vec<Way> = (1..=8)
            .map(|number| Way::Through(at, Some(credential(number))))
            .collect();
        let mut rows = vec![("direct", Way::Direct), ("ours", ways[0].clone())];
        for (name, at, child) in [
            ("tinyproxy", TINYPROXY, &tinyproxy),
            ("squid", SQUID, &squid),
        ] {
            if child.is_some() {
                rows.push((name, Way::Through(at.parse().unwrap(), None)));
            }
        }
        measure(rows).await;
        let before = resident(ours.id());
        let mut idle = Vec::new();
        for way in ways.iter().cycle().take(512) {
            let mut stream = way.open().await;
            stream.write_all(b"p").await.unwrap();
            stream.read_u8().await.unwrap();
            idle.push(stream);
        }
        println!(
            "{{\"way\":\"ours\",\"kb_before\":{before},\"kb_with_512_idle_tunnels\":{}}}",
            resident(ours.id())
        );
        for child in [Some(ours), tinyproxy, squid].iter_mut().flatten() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    });
}

fn where_it_is(ours: &mut Child) -> (SocketAddr, String) {
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(ours.stdout.as_mut().unwrap()),
        &mut line,
    )
    .unwrap();
    let (at, password) = line.trim().split_once(' ').unwrap();
    (at.parse().unwrap(), password.to_owned())
}
