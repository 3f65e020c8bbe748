//! Names to addresses: the name with its final dot, so no search list; no hosts file; bounded in answers and in time.
//!
//! Both address families are asked at once. Once one has answered, the other gets a moment more, because some name servers
//! never answer for IPv6. A route is made from one answer and never asked for again, so a name whose answers change
//! between a check and a dial gains nothing.

use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::{Mutex, PoisonError};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverOpts};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use tokio::time::timeout;

use super::failure::Failure;
use crate::policy::allowlist::Permit;
use crate::policy::limits::{
    RESOLVE_ATTEMPT, RESOLVE_GRACE, RESOLVE_TIME, RESOLVED_ADDRESSES, RESOLVER_CACHE,
};

/// Which name servers are asked.
#[derive(Debug, Clone)]
pub enum ResolverConfig {
    /// Those of the machine.
    System,
    /// These.
    NameServers(Vec<SocketAddr>),
}

/// Asks name servers. It is built when it is first needed and, with the machine's own servers, again after they have failed:
/// a laptop that moves has others, and one without a network has none yet and still serves uploads.
pub(super) struct Resolver {
    source: ResolverConfig,
    built: Mutex<Option<TokioResolver>>,
}

impl Resolver {
    pub(super) fn new(source: ResolverConfig) -> Self {
        Self {
            source,
            built: Mutex::new(None),
        }
    }

    fn built(&self) -> Result<TokioResolver, Failure> {
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(resolver) = built.as_ref() {
            return Ok(resolver.clone());
        }
        let resolver = build(&self.source).map_err(|error| {
            tracing::warn!(%error, "the machine's name servers are not known");
            Failure::NameServer
        })?;
        Ok(built.insert(resolver).clone())
    }

    fn forget(&self) {
        *self.built.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The addresses of a permitted host, IPv4 and IPv6 in turn, so that either family is dialled early.
    pub(super) async fn addresses(&self, permit: &Permit) -> Result<Vec<IpAddr>, Failure> {
        let name =
            Name::from_ascii(format!("{}.", permit.host())).map_err(|_| Failure::NameNotFound)?;
        let resolver = self.built()?;
        let silence = || (Err(Failure::NameServer), Err(Failure::NameServer));
        let both = timeout(RESOLVE_TIME, both_families(&resolver, name)).await;
        let (v4, v6) = both.unwrap_or_else(|_| silence());
        let failed = v4.is_err() || v6.is_err();
        let answers = interleave(v4.unwrap_or_default(), v6.unwrap_or_default());
        match (answers.is_empty(), failed) {
            (false, _) => Ok(answers),
            (true, false) => Err(Failure::NameNotFound),
            (true, true) => {
                self.forget();
                Err(Failure::NameServer)
            }
        }
    }
}

async fn both_families(resolver: &TokioResolver, name: Name) -> (Answer, Answer) {
    let mut v4 = pin!(family(resolver, name.clone(), RecordType::A));
    let mut v6 = pin!(family(resolver, name, RecordType::AAAA));
    tokio::select! {
        first = &mut v4 => {
            let other = grace(&first, v6).await;
            (first, other)
        }
        first = &mut v6 => {
            let other = grace(&first, v4).await;
            (other, first)
        }
    }
}

/// One question. A name without such addresses is an empty answer, and no failure.
async fn family(resolver: &TokioResolver, name: Name, family: RecordType) -> Answer {
    match resolver.lookup(name, family).await {
        Ok(answer) => Ok(answer
            .answers()
            .iter()
            .filter_map(|record| address(&record.data))
            .take(RESOLVED_ADDRESSES)
            .collect()),
        Err(error) if error.is_no_records_found() => Ok(Vec::new()),
        Err(error) => {
            tracing::debug!(%error, %family, "a name server failed");
            Err(Failure::NameServer)
        }
    }
}

type Answer = Result<Vec<IpAddr>, Failure>;

/// Waits for the other family: shortly where the first has addresses, else as long as it takes.
async fn grace(first: &Answer, other: impl Future<Output = Answer>) -> Answer {
    match first {
        Ok(addresses) if !addresses.is_empty() => timeout(RESOLVE_GRACE, other)
            .await
            .unwrap_or(Err(Failure::NameServer)),
        _ => other.await,
    }
}

fn address(data: &RData) -> Option<IpAddr> {
    match data {
        RData::A(v4) => Some(IpAddr::V4(v4.0)),
        RData::AAAA(v6) => Some(IpAddr::V6(v6.0)),
        _ => None,
    }
}

fn interleave(v4: Vec<IpAddr>, v6: Vec<IpAddr>) -> Vec<IpAddr> {
    let (mut v4, mut v6) = (v4.into_iter(), v6.into_iter());
    let mut answers = Vec::new();
    loop {
        match (v4.next(), v6.next()) {
            (None, None) => break,
            (a, b) => answers.extend(a.into_iter().chain(b)),
        }
    }
    answers.truncate(RESOLVED_ADDRESSES);
    answers
}

fn name_server(at: SocketAddr) -> NameServerConfig {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
        connection.port = at.port();
        connection
    });
    NameServerConfig::new(at.ip(), true, connections.to_vec())
}

fn build(source: &ResolverConfig) -> Result<TokioResolver, NetError> {
    let servers = match source {
        ResolverConfig::System => {
            hickory_resolver::system_conf::read_system_conf()?
                .0
                .name_servers
        }
        ResolverConfig::NameServers(servers) => {
            servers.iter().map(|server| name_server(*server)).collect()
        }
    };
    // The machine's search list and domain are left behind here, and its hosts file below.
    let config = hickory_resolver::config::ResolverConfig::from_name_servers(servers);
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    set_limits(builder.options_mut());
    builder.build()
}

fn set_limits(options: &mut ResolverOpts) {
    options.use_hosts_file = ResolveHosts::Never;
    options.timeout = RESOLVE_ATTEMPT;
    options.attempts = 1;
    options.cache_size = RESOLVER_CACHE;
    options.os_port_selection = true;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn both_families_are_dialled_early() {
        let mixed = interleave(
            addresses(&["1.1.1.1", "1.1.1.2", "1.1.1.3"]),
            addresses(&["2606::1"]),
        );
        assert_eq!(
            mixed,
            addresses(&["1.1.1.1", "2606::1", "1.1.1.2", "1.1.1.3"])
        );
        let many = vec!["1.1.1.1".parse().unwrap(); 2_000];
        assert_eq!(interleave(many.clone(), many).len(), RESOLVED_ADDRESSES);
    }

    #[tokio::test(start_paused = true)]
    async fn a_family_that_never_answers_costs_a_moment_where_the_other_did() {
        let silent = || std::future::pending::<Answer>();
        let started = tokio::time::Instant::now();
        assert_eq!(
            grace(&Ok(addresses(&["1.1.1.1"])), silent()).await,
            Err(Failure::NameServer)
        );
        assert_eq!(started.elapsed(), RESOLVE_GRACE);
        let late = async {
            tokio::time::sleep(RESOLVE_ATTEMPT).await;
            Ok(addresses(&["2606::1"]))
        };
        assert_eq!(
            grace(&Ok(Vec::new()), late).await,
            Ok(addresses(&["2606::1"]))
        );
    }
}
