//! The names and secrets of a session: its id, its links' tokens, the secret that resumes it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq as _;

/// Crockford's base32: no `I`, `L`, `O`, `U`.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Characters of a session id.
const ID: usize = 8;
/// Characters of a token's verifier: 16 random bytes in base64url.
const VERIFIER: usize = 22;

/// A session's public name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId([u8; ID]);

impl SessionId {
    /// A new one, from the kernel's randomness.
    ///
    /// # Errors
    /// Where the kernel gives no random bytes.
    pub fn random() -> Result<Self, getrandom::Error> {
        let bytes: [u8; ID] = random()?;
        Ok(Self(bytes.map(|byte| ALPHABET[usize::from(byte & 31)])))
    }

    /// Exactly eight characters of the alphabet; lower case is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; ID] = text.as_bytes().try_into().ok()?;
        let known = bytes.iter().all(|byte| ALPHABET.contains(byte));
        known.then_some(Self(bytes))
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Only ASCII gets in.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The secret half of an agent's token.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Verifier([u8; VERIFIER]);

/// An agent's whole credential, `as_<session id>_<verifier>`. Its `Debug` keeps the secret half to itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AgentToken {
    /// The session that it opens.
    pub session: SessionId,
    /// What proves the right to it.
    pub verifier: Verifier,
}

impl AgentToken {
    /// A new token of a session.
    ///
    /// # Errors
    /// Where the kernel gives no random bytes.
    pub fn random(session: SessionId) -> Result<Self, getrandom::Error> {
        let bytes: [u8; 16] = random()?;
        let mut verifier = [0; VERIFIER];
        // 16 bytes are always 22 characters.
        let _ = URL_SAFE_NO_PAD.encode_slice(bytes, &mut verifier);
        Ok(Self {
            session,
            verifier: Verifier(verifier),
        })
    }

    /// The form alone; whether the token is live is the session's business. Nothing is percent-decoded.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (session, verifier) = text.strip_prefix("as_")?.split_at_checked(ID)?;
        let verifier: [u8; VERIFIER] = verifier.strip_prefix('_')?.as_bytes().try_into().ok()?;
        let is_base64url = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let session = SessionId::parse(session)?;
        let well_formed = verifier.iter().all(is_base64url);
        well_formed.then_some(Self {
            session,
            verifier: Verifier(verifier),
        })
    }
}

impl fmt::Display for AgentToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verifier = std::str::from_utf8(&self.verifier.0).unwrap_or_default();
        write!(formatter, "as_{}_{verifier}", self.session)
    }
}

impl fmt::Debug for AgentToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "as_{}_…", self.session)
    }
}

/// What an app proves itself with when it comes back: 32 random bytes in base64url. Compared in constant time.
#[derive(Clone)]
pub struct ResumeSecret(String);

impl ResumeSecret {
    /// A new one.
    ///
    /// # Errors
    /// Where the kernel gives no random bytes.
    pub fn random() -> Result<Self, getrandom::Error> {
        let bytes: [u8; 32] = random()?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// One that a relay has given to us.
    pub(super) fn given(text: String) -> Self {
        Self(text)
    }

    /// Its text, for the one frame that carries it.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }

    /// Whether `claimed` is this secret.
    #[must_use]
    pub fn matches(&self, claimed: &str) -> bool {
        self.0.as_bytes().ct_eq(claimed.as_bytes()).into()
    }
}

impl fmt::Debug for ResumeSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ResumeSecret(…)")
    }
}

fn random<const N: usize>() -> Result<[u8; N], getrandom::Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_what_is_read() {
        let session = SessionId::random().unwrap();
        let token = AgentToken::random(session).unwrap();
        assert_eq!(SessionId::parse(session.as_str()), Some(session));
        assert_eq!(token.to_string().len(), 34);
        assert_eq!(AgentToken::parse(&token.to_string()), Some(token));
        assert_eq!(ResumeSecret::random().unwrap().expose().len(), 43);
    }

    #[test]
    fn malformed_tokens_are_none() {
        let good = "as_0123ABCD_abcdefghijklmnopqrst-_";
        assert!(AgentToken::parse(good).is_some());
        for bad in [
            "",
            "as_",
            "as_0123ABCD_abcdefghijklmnopqrst-",
            "as_0123ABCD_abcdefghijklmnopqrst-_x",
            "as_0123abcd_abcdefghijklmnopqrst-_",
            "as_0123ABCI_abcdefghijklmnopqrst-_",
            "AS_0123ABCD_abcdefghijklmnopqrst-_",
            "as_0123ABCD-abcdefghijklmnopqrst-_",
            "as_0123ABCD_abcdefghijklmnopqrst%5F",
            "as_0123ABCÜ_abcdefghijklmnopqrst-_",
        ] {
            assert!(AgentToken::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn only_the_secret_itself_matches() {
        let secret = ResumeSecret::random().unwrap();
        assert!(secret.matches(secret.expose()));
        assert!(!secret.matches("") && !secret.matches(&secret.expose()[..42]));
        assert!(!format!("{secret:?}").contains(secret.expose()));
    }
}
