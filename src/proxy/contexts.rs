//! Browser contexts as the proxy knows them: a user name each, one password a run, and what belongs to one.
//!
//! # Basic, and why it is enough
//!
//! `Proxy-Authorization: Basic base64(user ":" password)`. The wire is loopback or a namespace of its own, and the password is
//! 256 random bits, new every run. Comparing takes the same time wherever the first wrong byte is, and for unknown users too.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hyper::HeaderMap;
use hyper::header::PROXY_AUTHORIZATION;
use subtle::ConstantTimeEq;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use super::events::{RefusedHost, RefusedHosts};
use crate::policy::limits::TUNNELS_PER_CONTEXT;

/// What a browser context answers the proxy's challenge with.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// `ctx-N`; it is no secret and is in the log.
    pub user: String,
    /// The run's password.
    pub password: String,
}

impl std::fmt::Debug for Credential {
    /// The password stays out of every log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// One browser context.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) user: String,
    /// Refused hosts of its pages.
    pub(super) refused: RefusedHosts,
    /// Its share of the tunnels.
    pub(super) tunnels: Arc<Semaphore>,
    /// Ends its tunnels.
    pub(super) end: CancellationToken,
    primed: watch::Sender<bool>,
}

impl Context {
    fn new(user: String) -> Self {
        Self {
            user,
            refused: RefusedHosts::default(),
            tunnels: Arc::new(Semaphore::new(TUNNELS_PER_CONTEXT)),
            end: CancellationToken::new(),
            primed: watch::Sender::new(false),
        }
    }

    pub(super) fn prime(&self) {
        self.primed.send_replace(true);
    }

    pub(super) fn unprime(&self) {
        self.primed.send_replace(false);
    }

    pub(super) fn is_primed(&self) -> bool {
        *self.primed.borrow()
    }

    /// Waits until it is primed; false when it is retired first.
    pub(super) async fn wait_primed(&self) -> bool {
        let mut primed = self.primed.subscribe();
        tokio::select! {
            seen = primed.wait_for(|primed| *primed) => seen.is_ok(),
            () = self.end.cancelled() => false,
        }
    }

    pub(super) fn refused_hosts(&self) -> Vec<RefusedHost> {
        self.refused.list()
    }
}

/// The live contexts.
pub(super) struct Contexts {
    password: String,
    issued: AtomicU64,
    challenges: AtomicU64,
    live: Mutex<HashMap<String, Arc<Context>>>,
}

impl Contexts {
    pub(super) fn new() -> Result<Self, getrandom::Error> {
        let mut secret = [0_u8; 32];
        getrandom::fill(&mut secret)?;
        Ok(Self {
            password: URL_SAFE_NO_PAD.encode(secret),
            issued: AtomicU64::new(0),
            challenges: AtomicU64::new(0),
            live: Mutex::default(),
        })
    }

    pub(super) fn issue(&self) -> Credential {
        let user = format!("ctx-{}", self.issued.fetch_add(1, Ordering::Relaxed) + 1);
        self.lock()
            .insert(user.clone(), Arc::new(Context::new(user.clone())));
        Credential {
            user,
            password: self.password.clone(),
        }
    }

    pub(super) fn retire(&self, user: &str) {
        if let Some(context) = self.lock().remove(user) {
            context.end.cancel();
        }
    }

    pub(super) fn find(&self, user: &str) -> Option<Arc<Context>> {
        self.lock().get(user).cloned()
    }

    /// The context whose user name and password the headers carry. Anything else is one more challenge.
    pub(super) fn authenticate(&self, headers: &HeaderMap) -> Option<Arc<Context>> {
        let context = self.recognise(headers);
        if context.is_none() {
            self.challenges.fetch_add(1, Ordering::Relaxed);
        }
        context
    }

    pub(super) fn challenges(&self) -> u64 {
        self.challenges.load(Ordering::Relaxed)
    }

    fn recognise(&self, headers: &HeaderMap) -> Option<Arc<Context>> {
        let mut given = headers.get_all(PROXY_AUTHORIZATION).iter();
        let (first, None) = (given.next()?, given.next()) else {
            return None;
        };
        let (scheme, text) = first.to_str().ok()?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let decoded = STANDARD.decode(text.trim()).ok()?;
        let colon = decoded.iter().position(|byte| *byte == b':')?;
        let (user, password) = (&decoded[..colon], &decoded[colon + 1..]);
        let right: bool = password.ct_eq(self.password.as_bytes()).into();
        let context = std::str::from_utf8(user)
            .ok()
            .and_then(|user| self.find(user));
        context.filter(|_| right)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Context>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[String]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(PROXY_AUTHORIZATION, value.parse().unwrap());
        }
        headers
    }

    fn basic(user: &str, password: &str) -> String {
        format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
    }

    #[test]
    fn only_the_right_password_of_a_live_context_is_taken() {
        let contexts = Contexts::new().unwrap();
        let Credential { user, password } = contexts.issue();
        let right = basic(&user, &password);
        assert_eq!(
            contexts
                .authenticate(&headers(std::slice::from_ref(&right)))
                .unwrap()
                .user,
            "ctx-1"
        );
        let cut = &password[..password.len() - 1];
        for wrong in [
            vec![],
            vec![basic(&user, "")],
            vec![basic(&user, cut)],
            vec![basic(&user, &format!("{password}x"))],
            vec![basic("ctx-2", &password)],
            vec![basic("", &password)],
            vec![right.replace("Basic", "Bearer")],
            vec!["Basic".to_owned()],
            vec!["Basic ====".to_owned()],
            vec![right.clone(), right.clone()],
        ] {
            assert!(
                contexts.authenticate(&headers(&wrong)).is_none(),
                "{wrong:?}"
            );
        }
        assert_eq!(contexts.challenges(), 10);
        contexts.retire(&user);
        assert!(
            contexts.authenticate(&headers(&[right])).is_none(),
            "a retired context is known no more"
        );
    }

    #[test]
    fn each_run_has_its_own_password_and_no_log_shows_it() {
        let (one, other) = (
            Contexts::new().unwrap().issue(),
            Contexts::new().unwrap().issue(),
        );
        assert_ne!(one.password, other.password);
        assert!(!format!("{one:?}").contains(&one.password));
    }

    #[tokio::test]
    async fn a_context_that_is_retired_ends_the_wait_for_its_priming() {
        let contexts = Contexts::new().unwrap();
        let user = contexts.issue().user;
        let context = contexts.find(&user).unwrap();
        let (primed, ()) = tokio::join!(context.wait_primed(), async { contexts.retire(&user) });
        assert!(!primed);
    }
}
