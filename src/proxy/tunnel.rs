//! A tunnel: two sockets, bytes both ways, until both sides have ended, or one of the limits does.
//!
//! - On 443 the client's first record has to be a ClientHello for the host, and only then a byte goes out.
//! - An end of one direction is passed on as an end of that direction: an answer that comes after the request's end is
//!   carried whole.
//! - A buffer is held only while bytes flow, so that hundreds of idle tunnels cost their sockets and no more.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::time::{Instant, sleep_until};

use super::connection::Reached;
use super::leash::End;
use super::ledger::Entry;
use super::{Shared, hello};
use crate::policy::host::Port;
use crate::policy::limits::{TUNNEL_BUFFER, TUNNEL_IDLE};
use crate::policy::refusal::Refusal;

/// A connection to a site whose client has been told that it is open.
pub(super) struct Tunnel {
    to: Reached,
}

impl Tunnel {
    pub(super) fn new(to: Reached) -> Self {
        Self { to }
    }

    /// Carries bytes to the end.
    pub(super) async fn run(mut self, mut client: TcpStream, early: &[u8], shared: &Shared) {
        let reason = self.carry(&mut client, early, shared).await;
        self.to.entry.ends(reason);
    }

    async fn carry(
        &mut self,
        client: &mut TcpStream,
        early: &[u8],
        shared: &Shared,
    ) -> &'static str {
        let traffic = Traffic::new(&self.to.entry);
        let host = self.to.host.clone();
        let context = &self.to.context;
        let target = format!("{host}:{}", self.to.port.number());
        let tell = |refusal: Refusal| {
            let reason = refusal.into();
            shared
                .log
                .stopped(&context.user, &context.refused, &target, reason);
        };
        let work = async {
            let first = match self.to.port {
                Port::Https => match hello::read(client, early, &host).await {
                    Ok(Ok(Some(first))) => first,
                    Ok(Ok(None)) => return Ok(End::Closed.as_str()),
                    Ok(Err(refusal)) => {
                        tell(refusal);
                        return Ok(refusal.as_str());
                    }
                    Err(error) => return Err(error),
                },
                Port::Http => early.to_vec(),
            };
            self.to.stream.write_all(&first).await?;
            traffic.sent(first.len());
            both_ways(client, &mut self.to.stream, &traffic).await?;
            Ok::<_, io::Error>(End::Closed.as_str())
        };
        tokio::select! {
            ended = work => ended.unwrap_or(End::Broken.as_str()),
            end = self.to.leash.cut(&host) => {
                if end == End::Withdrawn {
                    tell(Refusal::Withdrawn);
                }
                end.as_str()
            }
            () = traffic.idle() => End::Idle.as_str(),
        }
    }
}

/// Where bytes are counted, and when the last ones were carried.
struct Traffic {
    entry: Arc<Entry>,
    started: Instant,
    /// Milliseconds after the start.
    last: AtomicU64,
}

impl Traffic {
    fn new(entry: &Arc<Entry>) -> Self {
        Self {
            entry: entry.clone(),
            started: Instant::now(),
            last: AtomicU64::new(0),
        }
    }

    fn sent(&self, bytes: usize) {
        self.entry.sent(bytes);
        self.carried();
    }

    fn received(&self, bytes: usize) {
        self.entry.received(bytes);
        self.carried();
    }

    fn carried(&self) {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }

    /// Resolves when nothing was carried for the idle limit.
    async fn idle(&self) {
        loop {
            let last = self.started + Duration::from_millis(self.last.load(Ordering::Relaxed));
            if last.elapsed() >= TUNNEL_IDLE {
                return;
            }
            sleep_until(last + TUNNEL_IDLE).await;
        }
    }
}

/// Carries both directions until both have ended, or one has broken.
async fn both_ways(
    client: &mut TcpStream,
    site: &mut TcpStream,
    traffic: &Traffic,
) -> io::Result<()> {
    let (from_client, to_client) = client.split();
    let (from_site, to_site) = site.split();
    tokio::try_join!(
        one_way(from_client, to_site, |bytes| traffic.sent(bytes)),
        one_way(from_site, to_client, |bytes| traffic.received(bytes)),
    )?;
    Ok(())
}

/// Carries one direction to its end and passes the end on.
async fn one_way(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    count: impl Fn(usize),
) -> io::Result<()> {
    loop {
        from.readable().await?;
        let mut buffer = Vec::with_capacity(TUNNEL_BUFFER);
        // Reads on with this buffer for as long as there is something to read, then gives it back.
        while from.readable().now_or_never().is_some() {
            buffer.clear();
            let read = from.read_buf(&mut buffer).await?;
            if read == 0 {
                return to.shutdown().await;
            }
            to.write_all(&buffer).await?;
            count(read);
        }
    }
}
