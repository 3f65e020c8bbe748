//! Which hosts may be reached: exact names, `*.name` for subdomains, or any public host.
//!
//! | rule | `example.com` | `a.example.com` | `badexample.com` |
//! |---|---|---|---|
//! | `example.com` | yes | no | no |
//! | `*.example.com` | **no** | yes | no |
//!
//! Nothing allowed is an empty list, not a special case. The first decision about a host and every later one, for tunnels that
//! are open already, is the same [`Allowlist::permit`].

use std::collections::BTreeSet;

use super::default_hosts::DEFAULT_HOSTS;
use super::host::Host;
use super::refusal::Refusal;

/// Why a text is no rule; the message says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// `*` alone, or a star that is not the whole first label.
    #[error(
        "{rule:?}: a star may only stand for subdomains, as in `*.example.com`; for every public host use --allow-any-public"
    )]
    Star {
        /// The text as it came.
        rule: String,
    },
    /// A wildcard over a name that strangers register names under.
    #[error(
        "{rule:?}: anyone can have a name under `{suffix}`; name the host itself, or `*.yours.{suffix}`"
    )]
    PublicSuffix {
        /// The text as it came.
        rule: String,
        /// The suffix.
        suffix: String,
    },
    /// A URL, a port or a path.
    #[error("{rule:?}: write the host name alone, without scheme, port or path")]
    NotAHost {
        /// The text as it came.
        rule: String,
    },
    /// A name that the gate never lets through.
    #[error("{rule:?} can never be allowed ({refusal}): {}", refusal.fix())]
    Refused {
        /// The text as it came.
        rule: String,
        /// Why not.
        refusal: Refusal,
    },
}

/// One rule, with its name in wire form: internationalised names are converted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// This host alone.
    Exact(Host),
    /// Every host below this one, and not this one itself.
    Subdomains(Host),
}

impl Rule {
    /// Parses a rule as an owner or an agent writes it.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        let rule = || text.chars().take(80).collect::<String>();
        let (wildcard, name) = match text.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, text),
        };
        if name.contains('*') {
            return Err(RuleError::Star { rule: rule() });
        }
        if name.is_empty() || name.contains(['/', ':', '@', '?', '#', ' ']) {
            return Err(RuleError::NotAHost { rule: rule() });
        }
        let refused = |refusal| RuleError::Refused {
            rule: rule(),
            refusal,
        };
        let name = wire(name).map_err(refused)?;
        // Asked before the gate's own grammar, so that `*.com` is told what it is. A public suffix has no registrable name.
        let suffix = name.strip_suffix('.').unwrap_or(&name);
        if wildcard
            && psl::domain_str(suffix).is_none()
            && psl::suffix(suffix.as_bytes()).is_some_and(|s| s.is_known())
        {
            return Err(RuleError::PublicSuffix {
                rule: rule(),
                suffix: suffix.to_owned(),
            });
        }
        let host = Host::parse(&name).map_err(refused)?;
        Ok(if wildcard {
            Self::Subdomains(host)
        } else {
            Self::Exact(host)
        })
    }

    /// Whether every host of the other rule is one of this rule's.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(own), Self::Exact(host)) => own == host,
            (Self::Exact(_), Self::Subdomains(_)) => false,
            (Self::Subdomains(own), Self::Exact(host)) => {
                host.parents().any(|parent| parent == own.as_str())
            }
            (Self::Subdomains(own), Self::Subdomains(host)) => {
                own == host || host.parents().any(|parent| parent == own.as_str())
            }
        }
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exact(host) => write!(f, "{host}"),
            Self::Subdomains(host) => write!(f, "*.{host}"),
        }
    }
}

/// The wire form of a name. Unicode digits and full stops become ASCII ones here, so the tests for addresses come after it.
/// Plain ASCII is left alone, for IDNA knows no underscore; what claims to be punycode must be.
fn wire(name: &str) -> Result<String, Refusal> {
    let lower = name.to_ascii_lowercase();
    if lower.is_ascii() && !lower.contains("xn--") {
        return Ok(lower);
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    idna::domain_to_ascii_strict(name).map_err(|_| Refusal::BadAuthority)
}

/// Proof that the allowlist covers a host. There is no other way to make one than [`Allowlist::permit`]:
///
/// ```compile_fail,E0423
/// use gpu_browser::policy::{allowlist::Permit, host::Host};
/// let unasked = Permit(Host::parse("a.example").unwrap());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permit(Host);

impl Permit {
    /// The host that may be reached.
    pub fn host(&self) -> &Host {
        &self.0
    }
}

/// The hosts that may be reached now. A change is a new list, sent through a watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowlist {
    rules: BTreeSet<Rule>,
    exact: BTreeSet<Host>,
    subdomains: BTreeSet<Host>,
    any_public: bool,
}

impl Allowlist {
    /// A list of these rules.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        let rules: BTreeSet<Rule> = rules.into_iter().collect();
        let (mut exact, mut subdomains) = (BTreeSet::new(), BTreeSet::new());
        for rule in &rules {
            match rule {
                Rule::Exact(host) => exact.insert(host.clone()),
                Rule::Subdomains(host) => subdomains.insert(host.clone()),
            };
        }
        Self {
            rules,
            exact,
            subdomains,
            any_public: false,
        }
    }

    /// The rules of the built-in list.
    pub fn default_rules() -> impl Iterator<Item = Rule> {
        DEFAULT_HOSTS
            .iter()
            .filter_map(|name| Rule::parse(name).ok())
    }

    /// The same list, letting any public host through besides (`--allow-any-public`).
    #[must_use]
    pub fn or_any_public(mut self) -> Self {
        self.any_public = true;
        self
    }

    /// The list with one rule more.
    #[must_use]
    pub fn with(&self, rule: Rule) -> Self {
        let list = Self::new(self.rules.iter().cloned().chain([rule]));
        Self {
            any_public: self.any_public,
            ..list
        }
    }

    /// The list with one rule less.
    #[must_use]
    pub fn without(&self, rule: &Rule) -> Self {
        let list = Self::new(self.rules.iter().filter(|held| *held != rule).cloned());
        Self {
            any_public: self.any_public,
            ..list
        }
    }

    /// The rules, in order.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// Whether any public host may be reached.
    pub fn any_public(&self) -> bool {
        self.any_public
    }

    /// Whether every host of a rule may be reached already.
    pub fn covers(&self, rule: &Rule) -> bool {
        self.any_public || self.rules.iter().any(|held| held.covers(rule))
    }

    /// Whether a host may be reached: the one decision, first and again.
    pub fn permit(&self, host: &Host) -> Option<Permit> {
        let covered = self.any_public
            || self.exact.contains(host)
            || host
                .parents()
                .any(|parent| self.subdomains.contains(parent));
        covered.then(|| Permit(host.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(rules: &[&str]) -> Allowlist {
        Allowlist::new(rules.iter().map(|rule| Rule::parse(rule).unwrap()))
    }

    fn allows(list: &Allowlist, host: &str) -> bool {
        list.permit(&Host::parse(host).unwrap()).is_some()
    }

    #[test]
    fn a_rule_covers_what_its_table_says() {
        let exact = list(&["example.com"]);
        let below = list(&["*.example.com"]);
        for (host, by_exact, by_below) in [
            ("example.com", true, false),
            ("EXAMPLE.com.", true, false),
            ("a.example.com", false, true),
            ("a.b.example.com", false, true),
            ("badexample.com", false, false),
            ("example.com.evil.net", false, false),
            ("a.badexample.com", false, false),
            ("com.example", false, false),
        ] {
            assert_eq!(allows(&exact, host), by_exact, "{host}");
            assert_eq!(allows(&below, host), by_below, "*.: {host}");
        }
    }

    #[test]
    fn an_empty_list_allows_nothing_and_any_public_allows_every_name() {
        assert!(!allows(&Allowlist::default(), "example.com"));
        let any = Allowlist::default().or_any_public();
        assert!(allows(&any, "example.com"));
        assert!(allows(
            &any.with(Rule::parse("a.example").unwrap()),
            "example.com"
        ));
    }

    #[test]
    fn a_wildcard_over_a_public_suffix_is_refused_by_name() {
        for (rule, suffix) in [
            ("*.com", "com"),
            ("*.co.uk", "co.uk"),
            ("*.github.io", "github.io"),
            ("*.GitHub.io.", "github.io"),
            ("*.s3.amazonaws.com", "s3.amazonaws.com"),
        ] {
            let refused = Rule::parse(rule).unwrap_err();
            assert_eq!(
                refused,
                RuleError::PublicSuffix {
                    rule: rule.into(),
                    suffix: suffix.into()
                }
            );
        }
        for twin in [
            "*.example.com",
            "*.example.co.uk",
            "*.me.github.io",
            "github.io",
        ] {
            assert!(Rule::parse(twin).is_ok(), "{twin}");
        }
    }

    #[test]
    fn a_rule_that_is_no_host_is_refused_with_what_to_write() {
        for rule in ["*", "*.", "a.*.com", "*foo.com", "**.foo.com"] {
            let refused = Rule::parse(rule).unwrap_err();
            assert!(
                matches!(refused, RuleError::Star { .. } | RuleError::NotAHost { .. }),
                "{rule}: {refused}"
            );
            assert!(
                refused.to_string().contains(&format!("{rule:?}")),
                "it names the rule: {refused}"
            );
        }
        for rule in [
            "https://example.com",
            "example.com:443",
            "example.com/x",
            "u@example.com",
            "",
            "a b.com",
        ] {
            assert!(
                matches!(Rule::parse(rule), Err(RuleError::NotAHost { .. })),
                "{rule}"
            );
        }
        for rule in [
            "127.0.0.1",
            "１２７.０.０.１",
            "127。0。0。1",
            "localhost",
            "nas",
            "*.local",
            "*.internal",
            "xn--a.com",
            "xn--zzzzzzz99.com",
        ] {
            assert!(
                matches!(Rule::parse(rule), Err(RuleError::Refused { .. })),
                "{rule}: {:?}",
                Rule::parse(rule)
            );
        }
    }

    #[test]
    fn a_rule_is_kept_in_wire_form() {
        for (written, wire) in [
            ("BÜCHER.example", "xn--bcher-kva.example"),
            ("*.bücher.example", "*.xn--bcher-kva.example"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            (" example.com. ", "example.com"),
            ("_dmarc.example.com", "_dmarc.example.com"),
        ] {
            assert_eq!(Rule::parse(written).unwrap().to_string(), wire);
        }
    }

    #[test]
    fn a_rule_taken_back_no_longer_permits() {
        let rule = Rule::parse("a.example").unwrap();
        let wide = list(&["b.example"]).with(rule.clone());
        assert!(allows(&wide, "a.example"));
        let narrow = wide.without(&rule);
        assert!(!allows(&narrow, "a.example") && allows(&narrow, "b.example"));
    }

    #[test]
    fn the_built_in_rules_are_all_there() {
        assert_eq!(Allowlist::default_rules().count(), DEFAULT_HOSTS.len());
    }

    proptest! {
        /// The sets answer as a plain look at each rule would.
        #[test]
        fn any_rule_set_permits_what_one_of_its_rules_covers(
            rules in prop::collection::btree_set("(\\*\\.)?([ab]\\.){1,2}example\\.com", 0..6),
            host in "([ab]\\.){0,3}example\\.com",
        ) {
            let list = Allowlist::new(rules.iter().map(|rule| Rule::parse(rule).unwrap()));
            let covered = rules.iter().any(|rule| match rule.strip_prefix('*') {
                Some(ending) => host.ends_with(ending),
                None => *rule == host,
            });
            let permit = list.permit(&Host::parse(&host).unwrap());
            prop_assert_eq!(permit.map(|permit| permit.host().to_string()), covered.then_some(host));
        }
    }
}
