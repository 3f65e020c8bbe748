//! The command line, read once into what the session takes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use super::config::{Config, ConfigFile};
use super::logs::Logs;
use super::wish::{Wish, relay_choice};
use crate::browser::rung::GpuChoice;
use crate::policy::allowlist::Rule;
use crate::policy::limits::SESSION_MINUTES_MOST;
use crate::policy::size::parse_memory;
use crate::relay::address::AddressError;
use crate::relay::embedded::{RelayConfig, TlsFiles, parse_duration};

pub use super::installing::arguments::{
    Doctor, Install, Reach, SelfTest, SelfTestBody, Uninstall, Update,
};

/// Lends the GPU of this machine to an agent: a sandboxed headless Chromium behind one link.
#[derive(Debug, Parser)]
#[command(name = "gpu-browser", version)]
pub struct Arguments {
    /// Log more to standard error (RUST_LOG decides in detail)
    #[arg(long, global = true)]
    pub verbose: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The owner's commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The whole loop in one go: true pictures of a WebGL2 and a WebGPU page
    Demo(Demo),
    /// Run a session: print the link, show what happens, take commands on standard input
    Start(Box<Start>),
    /// The parts of the running session
    Status(Status),
    /// End the running session
    Stop(Stop),
    /// A session under the account of an install; `start` speaks with it in lines
    #[command(hide = true)]
    Server,
    /// The embedded relay on its own
    Relay(Relay),
    /// What was asked, allowed, refused and reached in the sessions on this machine
    Logs(Logs),
    /// The file with what every session is to be like
    Config(Config),
    /// Give the browser an account of its own, and yourself the right to start it
    Install(Install),
    /// Put this version in use
    Update(Update),
    /// Remove everything that an install has made
    Uninstall(Uninstall),
    /// Prove that the browser draws, keeps its sandbox and has no way round the proxy
    SelfTest(SelfTest),
    /// Say what works, what does not, and what mends it
    Doctor(Doctor),
    /// The body of the self-test, in a process and a folder of its own
    #[command(name = "__self-test", hide = true)]
    SelfTestBody(SelfTestBody),
    /// Tries a connection from where a browser lives
    #[command(name = "__reach", hide = true)]
    Reach(Reach),
}

/// `gpu-browser demo`.
#[derive(Debug, Args)]
pub struct Demo {
    /// The folder for the pictures
    #[arg(long, value_name = "DIR", default_value = "./demo-out")]
    pub out: PathBuf,
    /// Which rungs to try
    #[arg(long, value_enum, default_value_t)]
    pub gpu: GpuChoice,
    /// The Chromium to start
    #[arg(long, value_name = "PATH")]
    pub chromium: Option<PathBuf>,
}

/// `gpu-browser start`.
#[derive(Debug, Args)]
pub struct Start {
    /// The config file with what is not said here; without it the usual one counts
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The relay that agents reach: its address, or `local` for one on this machine alone [default: local]
    #[arg(long, value_name = "URL|local", value_parser = relay)]
    pub relay: Option<String>,
    /// The length of the session, minutes [default: 240]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=SESSION_MINUTES_MOST))]
    pub minutes: Option<u64>,
    /// A host that pages may reach, or `*.host` for those below it; repeatable
    #[arg(long, value_name = "HOST", value_parser = Rule::parse)]
    pub allow: Vec<Rule>,
    /// Leave out the built-in list of hosts; `=false` takes it, whatever the config file says
    #[arg(long, value_name = "false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub no_default_hosts: Option<bool>,
    /// Let pages reach any public host; `=false` does not, whatever the config file says
    #[arg(long, value_name = "false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub allow_any_public: Option<bool>,
    /// Which rungs to try [default: auto]
    #[arg(long, value_enum)]
    pub gpu: Option<GpuChoice>,
    /// The Chromium to start
    #[arg(long, value_name = "PATH")]
    pub chromium: Option<PathBuf>,
    /// A GPU setting for Chromium; repeatable
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    pub chromium_flag: Vec<String>,
    /// Run as the present user, without an account of its own
    #[arg(long)]
    pub dev: bool,
    /// Run Chromium without its sandbox
    #[arg(long, requires = "dev")]
    pub no_sandbox: bool,
    /// One JSON event a line on standard output, for programs
    #[arg(long)]
    pub json: bool,
    /// Leave out calls, pages and refused hosts
    #[arg(long, conflicts_with = "json")]
    pub quiet: bool,
    /// Copy the link to the clipboard
    #[arg(long, conflicts_with = "json")]
    pub copy: bool,
    /// What to call the link [default: agent]
    #[arg(long)]
    pub label: Option<String>,
    /// The memory that Chromium may hold, as in 2GiB; half of the machine's without it
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    pub max_memory: Option<u64>,
}

/// `gpu-browser status`.
#[derive(Debug, Args)]
pub struct Status {
    /// One JSON object a session
    #[arg(long)]
    pub json: bool,
}

/// `gpu-browser stop`.
#[derive(Debug, Args)]
pub struct Stop {
    /// Which one, where several run: its process, as `status` shows it
    pub process: Option<u32>,
}

/// `gpu-browser relay`.
#[derive(Debug, Args)]
pub struct Relay {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8787", value_parser = listen_at)]
    pub listen: SocketAddr,
    /// A call without a reply is answered after this
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub tool_timeout: Option<Duration>,
    /// An app that is silent for this long is closed and its session held
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub liveness: Option<Duration>,
    /// A session whose app is away is kept this long
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub hold: Option<Duration>,
    /// A certificate (PEM), for a relay that others reach
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Plain http beyond this machine, where something in front of it ends TLS
    #[arg(long)]
    pub insecure: bool,
    /// A host name that it is reached under; repeatable
    #[arg(long, value_name = "HOST", value_parser = own_name)]
    pub name: Vec<String>,
}

impl Start {
    /// The session that was asked for: what the command line says, else what the file says, else what is usual. Lists of
    /// both are taken together.
    pub fn wish(&self, file: ConfigFile) -> Wish {
        let usual = Wish::default();
        let hosts = file.hosts.iter().chain(&self.allow);
        let default_hosts = self.no_default_hosts.map(|no| !no).or(file.default_hosts);
        let any_public = self.allow_any_public.or(file.allow_any_public);
        let label = self.label.clone().or(file.label);
        Wish {
            relay: self.relay.clone().or(file.relay).unwrap_or(usual.relay),
            minutes: self.minutes.or(file.minutes).unwrap_or(usual.minutes),
            hosts: hosts.map(ToString::to_string).collect(),
            default_hosts: default_hosts.unwrap_or(usual.default_hosts),
            allow_any_public: any_public.unwrap_or(usual.allow_any_public),
            gpu: self.gpu.or(file.gpu).unwrap_or(usual.gpu),
            chromium: self.chromium.clone().or(file.chromium),
            chromium_flags: [file.chromium_flags, self.chromium_flag.clone()].concat(),
            label: label.unwrap_or(usual.label),
            max_memory: self.max_memory.or(file.max_memory),
        }
    }
}

impl Demo {
    /// A session on the embedded relay that reaches no host at all.
    pub fn wish(&self) -> Wish {
        Wish {
            default_hosts: false,
            gpu: self.gpu,
            chromium: self.chromium.clone(),
            label: "demo".to_owned(),
            ..Wish::default()
        }
    }
}

impl Relay {
    /// How the relay runs; the protocol's own limits where nothing else is said.
    pub fn config(self) -> RelayConfig {
        let usual = RelayConfig::at(self.listen);
        let files = self.tls_cert.zip(self.tls_key);
        RelayConfig {
            tool_timeout: self.tool_timeout.unwrap_or(usual.tool_timeout),
            liveness: self.liveness.unwrap_or(usual.liveness),
            hold: self.hold.unwrap_or(usual.hold),
            tls: files.map(|(certificate, key)| TlsFiles { certificate, key }),
            insecure: self.insecure,
            names: self.name,
            ..usual
        }
    }
}

/// A relay that can be one, as it was written.
fn relay(text: &str) -> Result<String, AddressError> {
    relay_choice(text).map(|_| text.to_owned())
}

fn listen_at(text: &str) -> Result<SocketAddr, &'static str> {
    let wrong = "write an address and a port, as in 127.0.0.1:8787 or [::1]:8787";
    text.parse().map_err(|_| wrong)
}

/// A `Host` header is compared with it, which carries neither scheme nor path.
fn own_name(text: &str) -> Result<String, &'static str> {
    match url::Host::parse(text) {
        Ok(url::Host::Domain(name)) => Ok(name),
        _ => Err("write a host name alone, as in relay.example"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owner::wish::Usage;
    use crate::policy::allowlist::Allowlist;
    use crate::policy::host::Host;
    use crate::policy::limits::SESSION;
    use crate::server::RelayChoice;
    use crate::server::ServerConfig;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(std::iter::once("gpu-browser").chain(line.split_whitespace()))
    }

    fn config(line: &str) -> Result<ServerConfig, Usage> {
        match parse(line).unwrap().command {
            Command::Start(start) => start
                .wish(ConfigFile::default())
                .config(PathBuf::from("/helper"), true),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn bad_usage_is_code_2_and_names_what_is_wrong() {
        for (line, named) in [
            ("", "Usage"),
            ("fly", "fly"),
            ("start --minutes 0", "0"),
            ("start --minutes ten", "ten"),
            ("start --minutes -1", "-1"),
            ("start --minutes 99999999999", "99999999999"),
            ("start --no-sandbox", "--dev"),
            ("start --gpu fast", "hardware"),
            ("start --max-memory 2", "2GiB"),
            ("start --max-memory 1MiB", "512 MiB"),
            ("start --relay ftp://x", "https"),
            ("start --relay http://relay.example", "https"),
            ("start --allow *.com", "com"),
            ("start --allow *", "--allow-any-public"),
            ("start --allow https://a.example/x", "host name alone"),
            ("start --allow 10.0.0.1", "10.0.0.1"),
            ("relay --hold 5", "30s"),
            ("logs --since yesterday", "10m"),
            ("config", "init"),
            ("relay --liveness 0s", "30s"),
            ("relay --tool-timeout 1d", "24h"),
            ("relay --listen nowhere", "127.0.0.1:8787"),
            ("relay --listen 8787", "127.0.0.1:8787"),
            ("relay --name https://relay.example", "relay.example"),
            ("relay --name 192.0.2.1", "host name alone"),
            ("relay --tls-cert a.pem", "--tls-key"),
        ] {
            let error = parse(line).expect_err(line);
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.to_string().contains(named), "{line}: {error}");
        }
    }

    #[test]
    fn a_refused_switch_is_named() {
        let refused = config("start --dev --chromium-flag --no-sandbox").map(|_| ());
        assert!(refused.unwrap_err().to_string().contains("--no-sandbox"));
        let taken = config(
            "start --dev --chromium-flag --use-angle=vulkan --chromium-flag=--ignore-gpu-blocklist",
        );
        assert_eq!(
            taken.unwrap().switches.switches(),
            ["--use-angle=vulkan", "--ignore-gpu-blocklist"]
        );
    }

    #[test]
    fn the_command_line_wins_over_the_file_and_the_file_over_what_is_usual() {
        let text = r#"
            relay = "https://relay.example"
            minutes = 30
            hosts = ["file.example"]
            default_hosts = false
            allow_any_public = true
            gpu = "software"
            chromium_flags = ["--use-angle=gl"]
            label = "file"
        "#;
        let config = |line: &str| match parse(line).unwrap().command {
            Command::Start(start) => {
                let file = ConfigFile::parse(text, "c.toml".as_ref()).unwrap();
                start.wish(file).config("/helper".into(), true).unwrap()
            }
            other => panic!("{other:?}"),
        };
        let of_file = config("start");
        assert_eq!(of_file.length, Duration::from_secs(30 * 60));
        assert_eq!(
            (of_file.gpu, of_file.label.as_str()),
            (GpuChoice::Software, "file")
        );
        assert!(matches!(of_file.relay, RelayChoice::At(_)) && of_file.allow.any_public());
        assert_eq!(of_file.allow.rules().count(), 1);
        let of_line = config(
            "start --relay local --minutes 5 --gpu auto --label line --allow line.example \
             --no-default-hosts=false --allow-any-public=false --chromium-flag --use-angle=vulkan",
        );
        assert_eq!(of_line.length, Duration::from_secs(5 * 60));
        assert_eq!(
            (of_line.gpu, of_line.label.as_str()),
            (GpuChoice::Auto, "line")
        );
        assert!(matches!(of_line.relay, RelayChoice::Local) && !of_line.allow.any_public());
        let usual = Allowlist::default_rules().count();
        assert_eq!(of_line.allow.rules().count(), usual + 2);
        assert_eq!(
            of_line.switches.switches().last().unwrap(),
            "--use-angle=vulkan"
        );
    }

    #[test]
    fn a_session_of_thirty_days_works_and_four_hours_are_usual() {
        assert_eq!(config("start").unwrap().length, SESSION);
        let month = config("start --minutes 43200").unwrap();
        assert_eq!(month.length, Duration::from_secs(30 * 24 * 3600));
    }

    #[test]
    fn the_list_of_hosts_is_what_was_asked_for() {
        let allows = |line: &str, host: &str| {
            let list = config(line).unwrap().allow;
            list.permit(&Host::parse(host).unwrap()).is_some()
        };
        let built_in = Allowlist::default_rules().find_map(|rule| match rule {
            Rule::Exact(host) => Some(host.to_string()),
            Rule::Subdomains(_) => None,
        });
        let built_in = built_in.unwrap();
        assert!(allows("start", &built_in));
        assert!(!allows("start --no-default-hosts", &built_in));
        assert!(!allows("start", "mine.example"));
        assert!(allows(
            "start --allow mine.example --no-default-hosts",
            "mine.example"
        ));
        assert!(allows("start --allow-any-public", "other.example"));
    }
}
