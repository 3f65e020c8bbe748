//! The gate: a host becomes addresses that may be dialled, or a reason why not.
//!
//! ```text
//! Host ──allowlist──▶ Permit ──resolver──▶ answers ──address tables──▶ Route ──▶ dial
//! ```
//!
//! Each arrow is the only way to make what it points to: fields are private, and [`Route`] is all that a dial takes. An
//! address that was not judged cannot be dialled, because that does not compile.

use std::net::IpAddr;

use super::failure::{Failure, Stop};
use super::interfaces::{Fresh, OwnAddresses};
use super::resolve::Resolver;
use crate::policy::address::{OwnNetwork, Verdict, VettedAddr, vet};
use crate::policy::allowlist::Permit;
use crate::policy::host::Port;
use crate::policy::limits::{DIALLED_ADDRESSES, RESOLVED_ADDRESSES};
use crate::policy::refusal::Refusal;

/// A permitted host with addresses that were judged, at least one, in the order they are dialled. There is no other way to make
/// one than [`Route::vet`]:
///
/// ```compile_fail,E0451
/// use gpu_browser::{policy::{allowlist::Permit, host::Port}, proxy::gate::Route};
/// fn unjudged(permit: Permit) -> Route {
///     Route { permit, port: Port::Https, addresses: Vec::new() }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Route {
    permit: Permit,
    port: Port,
    addresses: Vec<VettedAddr>,
}

impl Route {
    /// Judges a name server's answers. One refused address refuses the name, so that a mixed answer gets nowhere; answers of
    /// NAT64 are left out, for they stand beside every ordinary name on some networks.
    pub fn vet(
        permit: Permit,
        port: Port,
        answers: &[IpAddr],
        own: &OwnNetwork,
    ) -> Result<Self, Stop> {
        let mut addresses = Vec::new();
        for answer in answers.iter().take(RESOLVED_ADDRESSES) {
            match vet(*answer, own) {
                Verdict::Allow(address) => addresses.push(address),
                Verdict::Refuse(kind) => return Err(Refusal::Address(kind).into()),
                Verdict::Drop => {}
            }
        }
        addresses.truncate(DIALLED_ADDRESSES);
        match (addresses.is_empty(), answers.is_empty()) {
            (false, _) => Ok(Self {
                permit,
                port,
                addresses,
            }),
            (true, true) => Err(Failure::NameNotFound.into()),
            (true, false) => Err(Failure::OnlyTranslated.into()),
        }
    }

    /// The permit it stands on.
    pub fn permit(&self) -> &Permit {
        &self.permit
    }

    /// The port.
    pub fn port(&self) -> Port {
        self.port
    }

    /// The addresses to dial, in order.
    pub fn addresses(&self) -> &[VettedAddr] {
        &self.addresses
    }
}

/// What turns permits into routes.
pub(super) struct Gate {
    resolver: Resolver,
    own: Fresh,
}

impl Gate {
    pub(super) fn new(resolver: Resolver, own: OwnAddresses) -> Self {
        Self {
            resolver,
            own: Fresh::new(own),
        }
    }

    /// Resolves a permitted host once and judges the answers.
    pub(super) async fn route(&self, permit: Permit, port: Port) -> Result<Route, Stop> {
        let answers = self.resolver.addresses(&permit).await?;
        Route::vet(permit, port, &answers, &*self.own.get()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::address::AddressKind;
    use crate::policy::allowlist::{Allowlist, Rule};
    use crate::policy::host::Host;
    use ipnet::{IpNet, Ipv4Net};
    use proptest::prelude::*;
    use std::str::FromStr;

    fn permit() -> Permit {
        Allowlist::default()
            .or_any_public()
            .permit(&Host::parse("a.example").unwrap())
            .unwrap()
    }

    fn judge(answers: &[&str]) -> Result<Vec<String>, Stop> {
        let answers: Vec<IpAddr> = answers.iter().map(|text| text.parse().unwrap()).collect();
        let route = Route::vet(permit(), Port::Https, &answers, &OwnNetwork::default())?;
        Ok(route
            .addresses()
            .iter()
            .map(|address| address.ip().to_string())
            .collect())
    }

    #[test]
    fn one_refused_address_refuses_the_name_and_says_its_kind() {
        for (answers, kind) in [
            (vec!["93.184.215.14", "10.0.0.1"], AddressKind::Private),
            (vec!["127.0.0.1"], AddressKind::Loopback),
            (vec!["93.184.215.14", "::1"], AddressKind::Loopback),
            (
                vec!["64:ff9b::808:808", "169.254.169.254"],
                AddressKind::Metadata,
            ),
        ] {
            assert_eq!(
                judge(&answers),
                Err(Refusal::Address(kind).into()),
                "{answers:?}"
            );
        }
        assert_eq!(judge(&["93.184.215.14"]).unwrap(), ["93.184.215.14"]);
    }

    #[test]
    fn nat64_answers_are_left_out_and_the_rest_is_used() {
        assert_eq!(
            judge(&["64:ff9b::5db8:d70e", "93.184.215.14"]).unwrap(),
            ["93.184.215.14"]
        );
        assert_eq!(
            judge(&["64:ff9b::5db8:d70e"]),
            Err(Failure::OnlyTranslated.into())
        );
        assert_eq!(judge(&[]), Err(Failure::NameNotFound.into()));
    }

    #[test]
    fn at_most_four_addresses_are_dialled() {
        let answers: Vec<String> = (1..=16).map(|n| format!("93.184.215.{n}")).collect();
        let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
        assert_eq!(judge(&answers).unwrap(), answers[..DIALLED_ADDRESSES]);
    }

    fn any_address() -> impl Strategy<Value = IpAddr> {
        prop_oneof![
            any::<u32>().prop_map(|bits| IpAddr::V4(bits.into())),
            any::<u128>().prop_map(|bits| IpAddr::V6(bits.into())),
            (any::<u128>(), 0..4_u128)
                .prop_map(|(bits, head)| IpAddr::V6((bits >> 3 | head << 125).into())),
            prop::sample::select(vec![
                "127.0.0.1",
                "10.1.2.3",
                "169.254.169.254",
                "64:ff9b::1",
                "2606:4700::1111",
                "1.1.1.1"
            ])
            .prop_map(|text| text.parse().unwrap()),
        ]
    }

    proptest! {
        /// Whatever the owner's rules, the page's wish, the owner's own networks and a name server's answers: what is dialled is
        /// covered by the rules, in the answer, and allowed on its own.
        #[test]
        fn no_rule_set_and_no_answer_ever_make_a_route_to_a_refused_address(
            rules in prop::collection::btree_set("(\\*\\.)?([ab]\\.){1,2}example\\.com", 0..6),
            is_any in any::<bool>(),
            host in "([ab]\\.){0,3}example\\.com",
            answers in prop::collection::vec(any_address(), 0..40),
            own in prop::collection::vec((any::<u32>(), 8..=32_u8), 0..3),
        ) {
            let list = Allowlist::new(rules.iter().map(|rule| Rule::parse(rule).unwrap()));
            let list = if is_any { list.or_any_public() } else { list };
            let Some(permit) = list.permit(&Host::parse(&host).unwrap()) else {
                prop_assert!(!is_any);
                return Ok(());
            };
            let nets = own.iter().map(|(bits, length)| Ipv4Net::new((*bits).into(), *length).unwrap().into());
            let own = OwnNetwork::new(nets.chain([IpNet::from_str("1.1.1.0/24").unwrap()]));
            if let Ok(route) = Route::vet(permit, Port::Http, &answers, &own) {
                prop_assert!(!route.addresses().is_empty() && route.addresses().len() <= DIALLED_ADDRESSES);
                for address in route.addresses() {
                    prop_assert!(answers.contains(&address.ip()));
                    prop_assert_eq!(vet(address.ip(), &own), Verdict::Allow(*address));
                }
                let looked_at = answers.iter().take(RESOLVED_ADDRESSES);
                prop_assert!(!looked_at.into_iter().any(|answer| matches!(vet(*answer, &own), Verdict::Refuse(_))));
            }
        }
    }
}
