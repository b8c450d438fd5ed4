//! Where the operator connects to, and where not.
//!
//! A template names addresses, and whoever may write one is not always allowed to reach what the operator can reach: its own
//! loopback, its node, the metadata service that hands out the node's credentials. Those are refused, in every spelling.
//! Private networks are open: that is where Prometheus lives.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// Where the operator connects to, beyond what is refused to everybody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Egress {
    /// Opened, though refused otherwise.
    pub allow: Vec<Cidr>,
    /// Refused on top, unless it is opened: the API server, say.
    pub refuse: Vec<Cidr>,
}

/// A range of addresses: `10.1.0.0/16`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr(IpNet);

/// What is no range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a range of addresses such as 127.0.0.1, 10.1.0.0/16 or fd00::/8")]
pub struct NoCidr(String);

impl FromStr for Cidr {
    type Err = NoCidr;

    fn from_str(text: &str) -> Result<Self, NoCidr> {
        let net = text.parse::<IpNet>();
        net.or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
            .map(|net| Self(net.trunc()))
            .map_err(|_| NoCidr(text.to_owned()))
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Egress {
    /// `Err` says what kind of address it is.
    pub fn check(&self, address: IpAddr) -> Result<(), &'static str> {
        for form in forms(address) {
            let opened = |cidr: &Cidr| cidr.0.contains(&form) || cidr.0.contains(&address);
            if self.allow.iter().any(opened) {
                continue;
            }
            if let Some(why) = refused(form) {
                return Err(why);
            }
            if self.refuse.iter().any(|cidr| cidr.0.contains(&form)) {
                return Err("which this operator refuses");
            }
        }
        Ok(())
    }
}

/// The address, and the ones that gateways and sockets make of it.
fn forms(address: IpAddr) -> Vec<IpAddr> {
    let mut forms = vec![address];
    if let IpAddr::V6(address) = address {
        forms.extend(embedded(address).into_iter().map(IpAddr::V4));
    }
    forms
}

/// The IPv4 addresses inside an IPv6 address.
fn embedded(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let segments = address.segments();
    let pair = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    let last = pair(segments[6], segments[7]);
    match segments {
        // IPv4-mapped, its translated cousin, and IPv4-compatible. `::` and `::1` have rules of their own.
        [0, 0, 0, 0, 0, 0xffff, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] => vec![last],
        [0, 0, 0, 0, 0, 0, high, low] if (high, low) > (0, 1) => vec![last],
        // NAT64, the well-known prefix and the one for local use (RFC 6052, RFC 8215).
        [0x64, 0xff9b, 0 | 1, ..] => vec![last],
        // 6to4.
        [0x2002, high, low, ..] => vec![pair(high, low)],
        // Teredo: the server as it is, the client with its bits turned.
        [0x2001, 0, high, low, ..] => vec![pair(high, low), pair(!segments[6], !segments[7])],
        // ISATAP.
        [_, _, _, _, 0 | 0x200, 0x5efe, _, _] => vec![last],
        _ => Vec::new(),
    }
}

const METADATA: &str = "an address of a cloud's metadata service";

/// What is refused to everybody. The first that fits names it.
fn refused(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => V4
            .iter()
            .find(|(net, bits, _)| Ipv4Net::new_assert(*net, *bits).contains(&address))
            .map(|(_, _, why)| *why),
        IpAddr::V6(address) => V6
            .iter()
            .find(|(net, bits, _)| Ipv6Net::new_assert(*net, *bits).contains(&address))
            .map(|(_, _, why)| *why),
    }
}

const V4: [(Ipv4Addr, u8, &str); 10] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, "an unspecified address"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "a loopback address"),
    (Ipv4Addr::new(169, 254, 169, 254), 32, METADATA),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "a link-local address"),
    // Alibaba, Oracle, Azure.
    (Ipv4Addr::new(100, 100, 100, 200), 32, METADATA),
    (Ipv4Addr::new(192, 0, 0, 192), 32, METADATA),
    (Ipv4Addr::new(168, 63, 129, 16), 32, METADATA),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "a multicast address"),
    (Ipv4Addr::new(255, 255, 255, 255), 32, "the broadcast address"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "a reserved address"),
];

const V6: [(Ipv6Addr, u8, &str); 8] = [
    (Ipv6Addr::UNSPECIFIED, 128, "an unspecified address"),
    (Ipv6Addr::LOCALHOST, 128, "a loopback address"),
    // Amazon (also the agent for pod identities), Google, Oracle, Scaleway.
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0), 64, METADATA),
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128, METADATA),
    (
        Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
        128,
        METADATA,
    ),
    (Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42), 128, METADATA),
    (
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0),
        10,
        "a link-local address",
    ),
    (
        Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0),
        8,
        "a multicast address",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[rstest]
    #[case("0.0.0.0", "an unspecified address")]
    #[case("0.1.2.3", "an unspecified address")]
    #[case("127.0.0.1", "a loopback address")]
    #[case("127.255.255.254", "a loopback address")]
    #[case("169.254.169.254", METADATA)]
    #[case("169.254.170.2", "a link-local address")]
    #[case("100.100.100.200", METADATA)]
    #[case("192.0.0.192", METADATA)]
    #[case("168.63.129.16", METADATA)]
    #[case("224.0.0.1", "a multicast address")]
    #[case("239.255.255.255", "a multicast address")]
    #[case("255.255.255.255", "the broadcast address")]
    #[case("240.0.0.1", "a reserved address")]
    #[case("::", "an unspecified address")]
    #[case("::1", "a loopback address")]
    #[case("fe80::1", "a link-local address")]
    #[case("febf::1", "a link-local address")]
    #[case("ff02::1", "a multicast address")]
    #[case("fd00:ec2::254", METADATA)]
    #[case("fd00:ec2::23", METADATA)]
    #[case("fd20:ce::254", METADATA)]
    #[case("::ffff:127.0.0.1", "a loopback address")]
    #[case("::ffff:169.254.169.254", METADATA)]
    #[case("::ffff:0:127.0.0.1", "a loopback address")]
    #[case("::127.0.0.1", "a loopback address")]
    #[case("64:ff9b::7f00:1", "a loopback address")]
    #[case("64:ff9b::169.254.169.254", METADATA)]
    #[case("64:ff9b:1::127.0.0.1", "a loopback address")]
    #[case("2002:7f00:1::", "a loopback address")]
    #[case("2002:a9fe:a9fe::1", METADATA)]
    #[case("2001:0:7f00:1::", "a loopback address")]
    #[case("2001:0:808:808::80ff:fffe", "a loopback address")]
    #[case("2001:db8::5efe:127.0.0.1", "a loopback address")]
    fn an_address_of_the_operators_own_is_refused(#[case] text: &str, #[case] why: &str) {
        assert_eq!(Egress::default().check(address(text)), Err(why));
    }

    #[rstest]
    #[case("10.0.0.7")]
    #[case("172.16.0.1")]
    #[case("192.168.1.1")]
    #[case("100.64.0.1")]
    #[case("fc00::1")]
    #[case("fd12:3456::1")]
    #[case("1.1.1.1")]
    #[case("2606:4700::1111")]
    #[case("::ffff:10.0.0.7")]
    #[case("64:ff9b::808:808")]
    fn private_and_public_addresses_are_open(#[case] text: &str) {
        assert_eq!(Egress::default().check(address(text)), Ok(()));
    }

    #[test]
    fn what_is_opened_is_open_in_every_spelling_and_nothing_else_is() {
        let egress = Egress {
            allow: vec!["127.0.0.0/8".parse().unwrap()],
            refuse: Vec::new(),
        };
        assert_eq!(egress.check(address("127.0.0.1")), Ok(()));
        assert_eq!(egress.check(address("::ffff:127.0.0.1")), Ok(()));
        assert_eq!(egress.check(address("::1")), Err("a loopback address"));
        assert_eq!(egress.check(address("169.254.169.254")), Err(METADATA));
    }

    #[test]
    fn an_operator_may_refuse_more() {
        let egress = Egress {
            allow: Vec::new(),
            refuse: vec!["10.96.0.1".parse().unwrap()],
        };
        assert_eq!(
            egress.check(address("10.96.0.1")),
            Err("which this operator refuses")
        );
        assert_eq!(
            egress.check(address("::ffff:10.96.0.1")),
            Err("which this operator refuses")
        );
        assert_eq!(egress.check(address("10.96.0.2")), Ok(()));
    }

    #[rstest]
    #[case("10.0.0.0/33")]
    #[case("10.0.0/8")]
    #[case("everything")]
    #[case("")]
    fn what_is_no_range_is_told_with_what_is_one(#[case] text: &str) {
        assert_eq!(
            text.parse::<Cidr>().unwrap_err().to_string(),
            format!("{text:?} is not a range of addresses such as 127.0.0.1, 10.1.0.0/16 or fd00::/8")
        );
    }

    #[test]
    fn a_range_is_written_without_its_host() {
        assert_eq!("10.1.2.3/8".parse::<Cidr>().unwrap().to_string(), "10.0.0.0/8");
        assert_eq!("127.0.0.1".parse::<Cidr>().unwrap().to_string(), "127.0.0.1/32");
    }
}
