//! `gpu-browser relay`: the embedded relay on its own, until it is stopped.

use super::Failure;
use super::arguments::Relay;
use super::screen::Screen;
use super::stop::Stop;
use crate::relay::embedded::EmbeddedRelay;

/// Listens, says where, and serves until a signal.
pub(super) async fn run(arguments: Relay) -> Result<(), Failure> {
    let mut stop = Stop::listen()?;
    let config = arguments.config();
    let scheme = if config.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let relay = EmbeddedRelay::bind(config).await?;
    let mut screen = Screen::new();
    let told = screen
        .line(&format!("relay at {scheme}://{}", relay.address()))
        .await;
    if told.is_ok() {
        stop.wait().await;
    }
    relay.close().await;
    told
}
