//! Dialling: the addresses of a route in order, each with its time. The one place of the proxy that opens connections.
//!
//! The caller drops the future when the client has left, which drops the attempt with it; nothing is tried in the background,
//! so there is never a second connection to close.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::failure::Failure;
use super::gate::Route;
use crate::policy::limits::DIAL_TIME;

/// Connects to the first address of a route that takes it.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the dial; it takes nothing but a Route"
)]
pub(super) async fn dial(route: &Route) -> Result<(TcpStream, IpAddr), Failure> {
    let port = route.port().number();
    let addresses = route.addresses().iter().map(|address| address.ip());
    first(addresses, |ip| {
        TcpStream::connect(SocketAddr::new(ip, port))
    })
    .await
}

/// The first address that connects in its time.
async fn first<T, F>(
    addresses: impl Iterator<Item = IpAddr>,
    connect: impl Fn(IpAddr) -> F,
) -> Result<(T, IpAddr), Failure>
where
    F: Future<Output = io::Result<T>>,
{
    for ip in addresses {
        match timeout(DIAL_TIME, connect(ip)).await {
            Ok(Ok(stream)) => return Ok((stream, ip)),
            Ok(Err(error)) => tracing::debug!(%ip, %error, "an address took no connection"),
            Err(_) => tracing::debug!(%ip, "an address did not answer in time"),
        }
    }
    Err(Failure::Connect)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn each_address_gets_its_time_and_the_first_that_connects_is_the_last_tried() {
        let tried = RefCell::new(Vec::new());
        let addresses: Vec<IpAddr> = (1..=4).map(|n| IpAddr::from([93, 184, 215, n])).collect();
        let started = Instant::now();
        let connect = |ip: IpAddr| {
            tried.borrow_mut().push(ip);
            let silent = ip == addresses[0];
            let refused = ip == addresses[1];
            async move {
                match (silent, refused) {
                    (true, _) => std::future::pending().await,
                    (_, true) => Err(io::ErrorKind::ConnectionRefused.into()),
                    _ => Ok(()),
                }
            }
        };
        let ((), ip) = first(addresses.iter().copied(), connect).await.unwrap();
        assert_eq!((ip, started.elapsed()), (addresses[2], DIAL_TIME));
        assert_eq!(*tried.borrow(), addresses[..3]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_never_answers_fails_in_its_time() {
        let addresses = [IpAddr::from([93, 184, 215, 1]); 4];
        let started = Instant::now();
        let silent = |_| std::future::pending::<io::Result<()>>();
        assert_eq!(
            first(addresses.into_iter(), silent).await.unwrap_err(),
            Failure::Connect
        );
        assert_eq!(started.elapsed(), DIAL_TIME * 4);
    }
}
