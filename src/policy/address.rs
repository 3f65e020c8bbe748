//! Addresses that may be dialled: public unicast, and nothing that is special, local or the owner's own.
//!
//! An IPv6 address with an IPv4 address in it is judged by the block it is in, and never unwrapped: one rule, and no
//! decoder to get wrong. Blocks that the registry calls global but that only carry infrastructure anycast are refused as
//! well, for no web page lives there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// What kind of place a refused address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(
    missing_docs,
    reason = "the variants are the words of the registry; the tables below say what they cover"
)]
pub enum AddressKind {
    ThisNetwork,
    Private,
    Shared,
    Loopback,
    LinkLocal,
    Metadata,
    Protocol,
    Documentation,
    Transition,
    Infrastructure,
    Benchmarking,
    Multicast,
    Reserved,
    EmbeddedIpv4,
    UniqueLocal,
    /// An address of this machine, or one on a link that it is attached to.
    OwnNetwork,
}

impl AddressKind {
    /// Every kind.
    pub const ALL: &[Self] = &[
        Self::ThisNetwork,
        Self::Private,
        Self::Shared,
        Self::Loopback,
        Self::LinkLocal,
        Self::Metadata,
        Self::Protocol,
        Self::Documentation,
        Self::Transition,
        Self::Infrastructure,
        Self::Benchmarking,
        Self::Multicast,
        Self::Reserved,
        Self::EmbeddedIpv4,
        Self::UniqueLocal,
        Self::OwnNetwork,
    ];

    /// The stable word of the kind, as a reason of a refusal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ThisNetwork => "address_this_network",
            Self::Private => "address_private",
            Self::Shared => "address_shared",
            Self::Loopback => "address_loopback",
            Self::LinkLocal => "address_link_local",
            Self::Metadata => "address_metadata",
            Self::Protocol => "address_protocol",
            Self::Documentation => "address_documentation",
            Self::Transition => "address_transition",
            Self::Infrastructure => "address_infrastructure",
            Self::Benchmarking => "address_benchmarking",
            Self::Multicast => "address_multicast",
            Self::Reserved => "address_reserved",
            Self::EmbeddedIpv4 => "address_embedded_ipv4",
            Self::UniqueLocal => "address_unique_local",
            Self::OwnNetwork => "address_own_network",
        }
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(head: [u16; 3], length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(
        Ipv6Addr::new(head[0], head[1], head[2], 0, 0, 0, 0, 0),
        length,
    )
}

/// IPv4 to refuse; the first row that holds the address names its kind. Everything else is public.
const REFUSED_V4: &[(Ipv4Net, AddressKind)] = &[
    (v4(0, 0, 0, 0, 8), AddressKind::ThisNetwork), // RFC 791, 1122
    (v4(10, 0, 0, 0, 8), AddressKind::Private),    // RFC 1918
    (v4(100, 64, 0, 0, 10), AddressKind::Shared), // RFC 6598; Tailscale and 100.100.100.200 live here
    (v4(127, 0, 0, 0, 8), AddressKind::Loopback), // RFC 1122
    (v4(168, 63, 129, 16, 32), AddressKind::Metadata), // Azure's host, in public space
    (v4(169, 254, 169, 254, 32), AddressKind::Metadata), // the clouds' metadata
    (v4(169, 254, 0, 0, 16), AddressKind::LinkLocal), // RFC 3927
    (v4(172, 16, 0, 0, 12), AddressKind::Private), // RFC 1918
    (v4(192, 0, 0, 0, 24), AddressKind::Protocol), // RFC 6890: DS-Lite, dummy, PCP, TURN, NAT64 discovery
    (v4(192, 0, 2, 0, 24), AddressKind::Documentation), // RFC 5737
    (v4(192, 31, 196, 0, 24), AddressKind::Infrastructure), // RFC 7535, AS112
    (v4(192, 52, 193, 0, 24), AddressKind::Infrastructure), // RFC 7450, AMT
    (v4(192, 88, 99, 0, 24), AddressKind::Transition), // RFC 7526, 6to4 relays
    (v4(192, 168, 0, 0, 16), AddressKind::Private), // RFC 1918
    (v4(192, 175, 48, 0, 24), AddressKind::Infrastructure), // RFC 7534, AS112
    (v4(198, 18, 0, 0, 15), AddressKind::Benchmarking), // RFC 2544
    (v4(198, 51, 100, 0, 24), AddressKind::Documentation), // RFC 5737
    (v4(203, 0, 113, 0, 24), AddressKind::Documentation), // RFC 5737
    (v4(224, 0, 0, 0, 4), AddressKind::Multicast), // RFC 1112
    (v4(240, 0, 0, 0, 4), AddressKind::Reserved),  // RFC 1112, and the limited broadcast of RFC 919
];

/// The only IPv6 block with public unicast in it, RFC 4291.
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0, 0], 3);

/// NAT64's well-known prefix, RFC 6052: a network that makes such answers makes one for every IPv4-only name, so they are
/// left out and the name's own IPv4 addresses are used.
const NAT64: Ipv6Net = v6([0x64, 0xff9b, 0], 96);

/// IPv6 to refuse inside [`GLOBAL_V6`].
const REFUSED_V6: &[(Ipv6Net, AddressKind)] = &[
    (v6([0x2001, 0, 0], 32), AddressKind::Transition), // RFC 4380, Teredo
    (v6([0x2001, 2, 0], 48), AddressKind::Benchmarking), // RFC 5180
    (v6([0x2001, 0, 0], 23), AddressKind::Protocol), // RFC 2928: anycast, AMT, AS112, ORCHID, drone ids
    (v6([0x2001, 0xdb8, 0], 32), AddressKind::Documentation), // RFC 3849
    (v6([0x2002, 0, 0], 16), AddressKind::Transition), // RFC 3056, 6to4
    (v6([0x2620, 0x4f, 0x8000], 48), AddressKind::Infrastructure), // RFC 7534, AS112
    (v6([0x3ffe, 0, 0], 16), AddressKind::Reserved), // RFC 3701, 6bone
    (v6([0x3fff, 0, 0], 20), AddressKind::Documentation), // RFC 9637
];

/// Names for blocks outside [`GLOBAL_V6`], which are refused with or without one.
const NAMED_V6: &[(Ipv6Net, AddressKind)] = &[
    (
        Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128),
        AddressKind::Loopback,
    ),
    (
        Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 128),
        AddressKind::ThisNetwork,
    ),
    (v6([0, 0, 0], 64), AddressKind::EmbeddedIpv4), // compatible, mapped and translated: RFC 4291, 2765
    (v6([0x64, 0xff9b, 1], 48), AddressKind::Transition), // RFC 8215, NAT64 of the local network
    (
        Ipv6Net::new_assert(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 128),
        AddressKind::Metadata,
    ),
    (v6([0xfc00, 0, 0], 7), AddressKind::UniqueLocal), // RFC 4193
    (v6([0xfe80, 0, 0], 10), AddressKind::LinkLocal),  // RFC 4291
    (v6([0xfec0, 0, 0], 10), AddressKind::UniqueLocal), // RFC 3879, site-local
    (v6([0xff00, 0, 0], 8), AddressKind::Multicast),   // RFC 4291
];

/// The addresses of the machine's interfaces with the prefixes that are on their links. Printers and desktops have
/// global IPv6 addresses too, so being global is not enough.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnNetwork {
    on_link: Vec<IpNet>,
}

impl OwnNetwork {
    /// From the interfaces' addresses, each with its prefix; one of full length is the address alone.
    pub fn new(interfaces: impl IntoIterator<Item = IpNet>) -> Self {
        Self {
            on_link: interfaces.into_iter().collect(),
        }
    }

    fn holds(&self, address: IpAddr) -> bool {
        self.on_link.iter().any(|prefix| prefix.contains(&address))
    }
}

/// An address that was judged and may be dialled. There is no other way to make one than [`vet`]:
///
/// ```compile_fail,E0423
/// let unjudged = gpu_browser::policy::address::VettedAddr("127.0.0.1".parse().unwrap());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VettedAddr(IpAddr);

impl VettedAddr {
    /// The address.
    pub fn ip(self) -> IpAddr {
        self.0
    }
}

/// What the tables say about an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may be dialled.
    Allow(VettedAddr),
    /// It refuses the whole name.
    Refuse(AddressKind),
    /// It is left out, and the rest of the answer is used.
    Drop,
}

/// Judges an address.
pub fn vet(address: IpAddr, own: &OwnNetwork) -> Verdict {
    let special = match address {
        IpAddr::V4(v4) => find(REFUSED_V4, |block| block.contains(&v4)),
        IpAddr::V6(v6) if NAT64.contains(&v6) => return Verdict::Drop,
        IpAddr::V6(v6) if GLOBAL_V6.contains(&v6) => find(REFUSED_V6, |block| block.contains(&v6)),
        IpAddr::V6(v6) => {
            find(NAMED_V6, |block| block.contains(&v6)).or(Some(AddressKind::Reserved))
        }
    };
    match special {
        Some(kind) => Verdict::Refuse(kind),
        None if own.holds(address) => Verdict::Refuse(AddressKind::OwnNetwork),
        None => Verdict::Allow(VettedAddr(address)),
    }
}

fn find<N>(table: &[(N, AddressKind)], holds: impl Fn(&N) -> bool) -> Option<AddressKind> {
    table
        .iter()
        .find(|(block, _)| holds(block))
        .map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VECTORS: &str = include_str!("../../tests/data/addresses.tsv");

    #[test]
    fn every_vector_gets_its_verdict() {
        let rows = VECTORS.lines().filter(|line| !line.starts_with('#'));
        let mut count = 0;
        for row in rows {
            let [address, verdict, why] = row.split('\t').collect::<Vec<_>>()[..] else {
                panic!("{row:?}")
            };
            let got = match vet(address.parse().unwrap(), &OwnNetwork::default()) {
                Verdict::Allow(_) => "allow",
                Verdict::Refuse(_) => "refuse",
                Verdict::Drop => "drop",
            };
            assert_eq!(got, verdict, "{address} ({why})");
            count += 1;
        }
        assert_eq!(count, 81, "vectors were lost");
    }

    #[test]
    fn an_address_on_the_owners_link_is_refused_though_it_is_global() {
        let own = OwnNetwork::new([
            "2a00:1450:1:2::5/64".parse().unwrap(),
            "93.184.215.14/32".parse().unwrap(),
        ]);
        for address in ["2a00:1450:1:2::5", "2a00:1450:1:2:ffff::9", "93.184.215.14"] {
            let verdict = vet(address.parse().unwrap(), &own);
            assert_eq!(
                verdict,
                Verdict::Refuse(AddressKind::OwnNetwork),
                "{address}"
            );
        }
        for twin in ["2a00:1450:1:3::5", "93.184.215.15"] {
            assert!(
                matches!(vet(twin.parse().unwrap(), &own), Verdict::Allow(_)),
                "{twin}"
            );
        }
    }

    #[test]
    fn the_kind_is_told_where_it_helps() {
        for (address, kind) in [
            ("169.254.169.254", AddressKind::Metadata),
            ("fd00:ec2::254", AddressKind::Metadata),
            ("168.63.129.16", AddressKind::Metadata),
            ("169.254.1.1", AddressKind::LinkLocal),
            ("::1", AddressKind::Loopback),
            ("::ffff:8.8.8.8", AddressKind::EmbeddedIpv4),
            ("fd12::1", AddressKind::UniqueLocal),
            ("2001::1", AddressKind::Transition),
        ] {
            assert_eq!(
                vet(address.parse().unwrap(), &OwnNetwork::default()),
                Verdict::Refuse(kind),
                "{address}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_std_calls_special_is_never_allowed(v4: u32, v6: u128) {
            let (v4, v6) = (Ipv4Addr::from(v4), Ipv6Addr::from(v6));
            if v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast() || v4.is_unspecified() {
                prop_assert!(!matches!(vet(v4.into(), &OwnNetwork::default()), Verdict::Allow(_)));
            }
            if v6.segments()[0] & 0xe000 != 0x2000 {
                prop_assert!(!matches!(vet(v6.into(), &OwnNetwork::default()), Verdict::Allow(_)));
            }
        }
    }
}
