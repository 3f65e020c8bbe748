//! One connection of the browser: HTTP/1.1 until a CONNECT is accepted, then what that opened. One task from the accept to
//! the end; dropping it drops all that it waits for, a half-made dial included.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::answers::{self, Body};
use super::contexts::Context;
use super::dial::dial;
use super::failure::Stop;
use super::leash::Leash;
use super::ledger::Entry;
use super::request::{self, Ask, Destination};
use super::tunnel::Tunnel;
use super::{Shared, plain};
use crate::policy::host::{Host, Port};
use crate::policy::limits::{PROXY_HEAD, PROXY_HEAD_TIME};
use crate::policy::refusal::Refusal;

/// A place among the tunnels of the proxy and of the context, free again when it is dropped.
pub(super) struct Place {
    _of_all: OwnedSemaphorePermit,
    _of_context: OwnedSemaphorePermit,
}

impl Place {
    fn take(shared: &Shared, context: &Context) -> Result<Self, Refusal> {
        let take = |places: &Arc<Semaphore>| {
            places
                .clone()
                .try_acquire_owned()
                .map_err(|_| Refusal::TooManyTunnels)
        };
        Ok(Self {
            _of_context: take(&context.tunnels)?,
            _of_all: take(&shared.tunnels)?,
        })
    }
}

/// What a connection becomes after its CONNECT.
enum Opened {
    Tunnel(Tunnel),
    Uploads(Arc<Context>, Place),
}

/// A connection to a site that was made, with all that belongs to it.
pub(super) struct Reached {
    pub(super) stream: TcpStream,
    pub(super) host: Host,
    pub(super) port: Port,
    pub(super) leash: Leash,
    pub(super) context: Arc<Context>,
    pub(super) entry: Arc<Entry>,
    pub(super) place: Place,
}

/// Serves a connection to its end.
pub(super) async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // Without a timer hyper has no time limit for heads at all, whatever its documentation says.
    let _ = stream.set_nodelay(true);
    let opened = Arc::new(Mutex::new(None));
    let service = service_fn(|request| answer(request, shared.clone(), opened.clone()));
    let http = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PROXY_HEAD_TIME)
        .max_buf_size(PROXY_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .without_shutdown();
    let parts = tokio::select! {
        served = http => match served {
            Ok(parts) => parts,
            Err(error) => return tracing::debug!(%error, "a connection to the proxy broke off"),
        },
        () = shared.closing.cancelled() => return,
    };
    let next = opened.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (client, early): (TcpStream, Bytes) = (parts.io.into_inner(), parts.read_buf);
    match next {
        Some(Opened::Tunnel(tunnel)) => tunnel.run(client, &early, &shared).await,
        Some(Opened::Uploads(context, place)) => {
            let leash = Leash::new(&shared, &context);
            tokio::select! {
                () = shared.uploads.serve(client, early) => {}
                _ = leash.cut_own() => {}
            }
            drop(place);
        }
        None => {}
    }
}

async fn answer(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    opened: Arc<Mutex<Option<Opened>>>,
) -> Result<Response<Body>, Infallible> {
    // A request of our own for loopback is refused to whoever makes it: it needs no password.
    if shared.log.is_canary(request::raw_target(request.uri())) {
        return Ok(answers::stopped(Refusal::AddressLiteral.into()));
    }
    let (head, body) = request.into_parts();
    let Some(context) = shared.contexts.authenticate(&head.headers) else {
        let asked = request::parse(&head);
        let is_prime = matches!(asked, Ok(Ask::Plain(Destination::Prime, _)));
        return Ok(if is_prime {
            answers::challenge()
        } else {
            answers::unknown()
        });
    };
    let target = request::raw_target(&head.uri).to_owned();
    let answered = match request::parse(&head) {
        Err(refusal) => Err(refusal.into()),
        Ok(Ask::Plain(Destination::Prime, _)) => {
            context.prime();
            Ok(answers::primed())
        }
        Ok(Ask::Plain(Destination::Uploads, path)) => Ok(answers::to_uploads(&path)),
        Ok(Ask::Plain(Destination::Site(host), path)) => {
            match reach(&shared, &context, &host, Port::Http).await {
                Ok(reached) => plain::forward(reached, head, path, body).await,
                Err(stop) => Err(stop),
            }
        }
        Ok(Ask::Connect(destination, port)) => {
            match open(&shared, &context, destination, port).await {
                Ok(next) => {
                    *opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(next);
                    Ok(answers::established())
                }
                Err(stop) => Err(stop),
            }
        }
    };
    Ok(answered.unwrap_or_else(|stop| {
        // A page that was closed under its request is no refusal to tell anybody of.
        if !context.end.is_cancelled() && !shared.closing.is_cancelled() {
            shared
                .log
                .stopped(&context.user, &context.refused, &target, stop);
        }
        answers::stopped(stop)
    }))
}

async fn open(
    shared: &Arc<Shared>,
    context: &Arc<Context>,
    destination: Destination,
    port: Port,
) -> Result<Opened, Stop> {
    match (destination, port) {
        (Destination::Uploads, Port::Https) => {
            let place = Place::take(shared, context)?;
            Ok(Opened::Uploads(context.clone(), place))
        }
        (Destination::Uploads | Destination::Prime, _) => Err(Refusal::Port.into()),
        (Destination::Site(host), port) => {
            let reached = reach(shared, context, &host, port).await?;
            Ok(Opened::Tunnel(Tunnel::new(reached)))
        }
    }
}

/// The whole way to a site: a place, the gate, the dial. A rule taken back on the way stops it.
async fn reach(
    shared: &Arc<Shared>,
    context: &Arc<Context>,
    host: &Host,
    port: Port,
) -> Result<Reached, Stop> {
    let mut leash = Leash::new(shared, context);
    let permit = leash.permit(host).ok_or(Refusal::HostNotAllowed)?;
    let place = Place::take(shared, context)?;
    let connect = async {
        let route = shared.gate.route(permit, port).await?;
        Ok::<_, Stop>(dial(&route).await?)
    };
    let (stream, address) = tokio::select! {
        connected = connect => connected?,
        end = leash.cut(host) => return Err(end.into()),
    };
    let _ = stream.set_nodelay(true);
    let entry = Entry::open(shared, context, host, port, address);
    let (host, context) = (host.clone(), context.clone());
    Ok(Reached {
        stream,
        host,
        port,
        leash,
        context,
        entry,
        place,
    })
}
