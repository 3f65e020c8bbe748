//! All sessions of a relay, and the sockets that wait to resume one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::session::Session;
use crate::policy::limits;
use crate::relay::tokens::SessionId;

/// The sessions by id. A session that was held for too long is not found any more, whether or not it was swept yet.
pub(super) struct Registry {
    hold: Duration,
    sessions: Mutex<HashMap<SessionId, Arc<Session>>>,
    waiting: Mutex<HashMap<SessionId, usize>>,
}

/// No room for another session: the apps of all are there.
#[derive(Debug)]
pub(super) struct Full;

impl Registry {
    pub(super) fn new(hold: Duration) -> Self {
        Self {
            hold,
            sessions: Mutex::default(),
            waiting: Mutex::default(),
        }
    }

    /// Enters a new session. Where there are too many, the one whose app has been away the longest has to go.
    pub(super) fn enter(&self, session: &Arc<Session>) -> Result<(), Full> {
        let mut sessions = lock(&self.sessions);
        if sessions.len() >= limits::RELAY_SESSIONS {
            let held = sessions
                .values()
                .filter_map(|session| Some((session.away()?, session.id)));
            let (_, longest) = held.max_by_key(|(away, _)| *away).ok_or(Full)?;
            if let Some(session) = sessions.remove(&longest) {
                session.end();
            }
        }
        sessions.insert(session.id, Arc::clone(session));
        Ok(())
    }

    /// A session that lives.
    pub(super) fn find(&self, id: SessionId) -> Option<Arc<Session>> {
        let session = lock(&self.sessions).get(&id).cloned()?;
        if self.has_expired(&session) {
            self.end(&session);
            return None;
        }
        Some(session)
    }

    /// Ends a session and forgets it.
    pub(super) fn end(&self, session: &Session) {
        session.end();
        lock(&self.sessions).remove(&session.id);
    }

    /// Forgets the sessions that were held for too long.
    pub(super) fn sweep(&self) {
        let mut sessions = lock(&self.sessions);
        sessions.retain(|_, session| {
            let expired = self.has_expired(session);
            if expired {
                session.end();
            }
            !expired
        });
    }

    /// A place among the sockets that wait on a session, whether or not there is such a session.
    pub(super) fn wait_on(self: &Arc<Self>, id: SessionId) -> Option<WaitingPlace> {
        let mut waiting = lock(&self.waiting);
        let count = waiting.entry(id).or_default();
        if *count >= limits::WAITING_SOCKETS {
            return None;
        }
        *count += 1;
        Some(WaitingPlace {
            registry: Arc::clone(self),
            id,
        })
    }

    fn has_expired(&self, session: &Session) -> bool {
        session.away().is_some_and(|away| away >= self.hold)
    }
}

/// Given back when it is dropped.
pub(super) struct WaitingPlace {
    registry: Arc<Registry>,
    id: SessionId,
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        let mut waiting = lock(&self.registry.waiting);
        if let Some(count) = waiting.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(&self.id);
            }
        }
    }
}

/// The maps are whole after every single step, so that a panic elsewhere cannot have left them broken.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_place_is_free_again_when_its_socket_goes() {
        let registry = Arc::new(Registry::new(Duration::from_secs(1)));
        let (one, other) = (SessionId::random().unwrap(), SessionId::random().unwrap());
        let mut places: Vec<_> = (0..limits::WAITING_SOCKETS)
            .map(|_| registry.wait_on(one).unwrap())
            .collect();
        assert!(registry.wait_on(one).is_none() && registry.wait_on(other).is_some());
        places.pop();
        assert!(registry.wait_on(one).is_some());
        places.clear();
        assert!(lock(&registry.waiting).is_empty());
    }
}
