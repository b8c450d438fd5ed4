//! Which addresses the operator connects to.
//!
//! Templates contain addresses, and their author may not be allowed to reach everything that the operator can reach: its loopback,
//! its node, the metadata service with the node's credentials. Those are refused, in every spelling. Private networks are open,
//! because Prometheus runs there. If the metrics' addresses are known, `only` restricts connections to them.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use parking_lot::RwLock;
use url::{Host, Url};

/// Which addresses the operator connects to, beyond those that are always refused.
#[derive(Clone, Debug, Default)]
pub struct Egress {
    /// Allowed although refused by default.
    pub allow: Vec<Cidr>,
    /// Refused in addition, unless allowed: the API server and the operator's node.
    pub refuse: Refusals,
    /// Names of the API server, for proxies that resolve names themselves.
    pub refuse_names: Vec<String>,
    /// If not empty, everything else is refused. It does not allow what is refused above.
    pub only: Vec<Destination>,
}

/// Refused addresses, with the reason. Clones share one list, which may change: API servers come and go.
#[derive(Clone, Debug, Default)]
pub struct Refusals(Arc<RwLock<Vec<(Cidr, &'static str)>>>);

impl Refusals {
    /// Replaces the addresses that were refused for this reason.
    pub fn replace(&self, why: &'static str, ranges: impl IntoIterator<Item = Cidr>) {
        let mut refused = self.0.write();
        refused.retain(|(_, reason)| *reason != why);
        refused.extend(ranges.into_iter().map(|range| (range, why)));
    }

    /// Refuses these too.
    pub fn add(&self, why: &'static str, ranges: impl IntoIterator<Item = Cidr>) {
        let mut refused = self.0.write();
        for range in ranges {
            if !refused.contains(&(range, why)) {
                refused.push((range, why));
            }
        }
    }

    /// Why an address is refused, if it is.
    pub fn find(&self, address: IpAddr) -> Option<&'static str> {
        let refused = self.0.read();
        let found = refused.iter().find(|(range, _)| range.0.contains(&address));
        found.map(|(_, why)| *why)
    }
}

/// An allowed destination: a range of addresses, a host, or with `*.` the hosts below one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// These addresses.
    Range(Cidr),
    /// This name.
    Host(String),
    /// The names that end with this, from a dot on.
    Below(String),
}

/// An invalid destination.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is neither a range of addresses such as 10.1.0.0/16 nor a host such as prometheus.monitoring.svc or *.example.com"
)]
pub struct NoDestination(String);

impl FromStr for Destination {
    type Err = NoDestination;

    fn from_str(text: &str) -> Result<Self, NoDestination> {
        if let Ok(range) = text.parse() {
            return Ok(Self::Range(range));
        }
        let (below, name) = match text.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, text),
        };
        let is_label = |label: &str| {
            let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            !label.is_empty() && label.bytes().all(inner)
        };
        let name = canonical(name);
        // URLs treat a name whose last label is a number as an address, and it was not a valid one above.
        let last = name.rsplit('.').next().unwrap_or_default();
        if !name.split('.').all(is_label) || last.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(NoDestination(text.to_owned()));
        }
        Ok(if below {
            Self::Below(format!(".{name}"))
        } else {
            Self::Host(name)
        })
    }
}

impl Destination {
    fn covers_name(&self, name: &str) -> bool {
        match self {
            Self::Range(_) => false,
            Self::Host(host) => host == name,
            Self::Below(end) => name.ends_with(end),
        }
    }

    fn covers(&self, address: IpAddr) -> bool {
        matches!(self, Self::Range(range) if range.0.contains(&address) || range.0.contains(&address.to_canonical()))
    }
}

/// The form in which names are compared: lower case, without the dot of the root.
fn canonical(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    name.strip_suffix('.').unwrap_or(&name).to_owned()
}

/// A range of addresses: `10.1.0.0/16`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr(IpNet);

/// An invalid range of addresses.
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

impl From<IpAddr> for Cidr {
    fn from(address: IpAddr) -> Self {
        Self(address.into())
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A host that the operator does not connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    host: String,
    /// The address to allow.
    address: Option<IpAddr>,
    /// `a loopback address`, `is a name of the API server`
    why: &'static str,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, .. } = self;
        let why = as_predicate(self.why);
        write!(f, "{host} {why}; the operator does not connect to it")?;
        match self.address {
            Some(address) => write!(f, ", unless it runs with --allow-egress {address}"),
            None => Ok(()),
        }
    }
}

/// Why a host is refused, as a predicate: `is a loopback address`, `has an empty label`.
pub fn as_predicate(why: &str) -> Cow<'_, str> {
    match why.starts_with("is ") || why.starts_with("has ") {
        true => why.into(),
        false => format!("is {why}").into(),
    }
}

impl Egress {
    /// Whether an address may be dialled; `Err` says what kind of address it is.
    pub fn check(&self, address: IpAddr) -> Result<(), &'static str> {
        for form in forms(address) {
            let opened = |cidr: &Cidr| cidr.0.contains(&form) || cidr.0.contains(&address);
            if self.allow.iter().any(opened) {
                continue;
            }
            if let Some(why) = refused(form) {
                return Err(why);
            }
            if let Some(why) = self.refuse.find(form) {
                return Err(why);
            }
        }
        Ok(())
    }

    /// Whether a name may be used behind a proxy, which resolves it; `Err` says why not. Replaces [`check`](Self::check) there.
    pub fn check_name(&self, name: &str) -> Result<(), &'static str> {
        let name = canonical(name);
        // A proxy may treat `localhost..` as `localhost`, and `127.0.0.1..` as an address.
        if name.split('.').any(str::is_empty) {
            return Err("has an empty label");
        }
        if self.refuse_names.iter().any(|refused| canonical(refused) == name) {
            return Err("is a name of the API server");
        }
        let refused = NAMES.iter().find(|(refused, why)| {
            // `prometheus.metadata` is a Service in a namespace.
            let whole = *why == METADATA_NAME && !refused.contains('.');
            let below = name.strip_suffix(refused).is_some_and(|rest| rest.ends_with('.'));
            name == *refused || below && !whole
        });
        for address in pod_addresses(&name) {
            self.check(address)?;
        }
        match refused {
            Some((_, why)) => Err(why),
            None if is_instance_data(&name) => Err(METADATA_NAME),
            None if is_api_server(&name) => Err("is a name of the API server"),
            None => Ok(()),
        }
    }

    /// Why a URL, or a host with a port, can never be connected to, as far as that is known without resolving its host and its
    /// args: the host is a refused address, or a name that always resolves to one.
    pub fn refusal(&self, url: &str) -> Option<Refusal> {
        // A host that depends on args cannot be checked yet; a port or a path may depend on them.
        let host = host(&with_args(url, "1"))?;
        if self::host(&with_args(url, "2"))? != host {
            return None;
        }
        match host {
            Host::Ipv4(address) => self.refusal_of(address.into()),
            Host::Ipv6(address) => self.refusal_of(address.into()),
            Host::Domain(name) => {
                let why = match self.check_name(&name) {
                    Ok(()) if self.never_lists(&name) => NOT_LISTED,
                    Ok(()) | Err(PROXY_NAME) => return None,
                    Err(why) => why,
                };
                // A name is allowed if the address that it resolves to is allowed.
                let address = match why {
                    MACHINE_NAME => Some(IpAddr::from(Ipv4Addr::LOCALHOST)),
                    METADATA_NAME => Some(IpAddr::from(METADATA_ADDRESS)),
                    _ => None,
                };
                let is_open = address.is_some_and(|address| self.check(address).is_ok());
                (!is_open).then_some(Refusal {
                    host: name,
                    address,
                    why,
                })
            }
        }
    }

    fn refusal_of(&self, address: IpAddr) -> Option<Refusal> {
        let host = address.to_string();
        match self.check(address) {
            Err(why) => Some(Refusal {
                host,
                address: Some(address),
                why,
            }),
            Ok(()) => (!self.lists(None, &[address])).then_some(Refusal {
                host,
                address: None,
                why: NOT_LISTED,
            }),
        }
    }

    /// Whether a name is not listed, whatever its addresses are.
    fn never_lists(&self, name: &str) -> bool {
        let by_address = self
            .only
            .iter()
            .any(|listed| matches!(listed, Destination::Range(_)));
        !by_address && !self.lists(Some(name), &[])
    }

    /// Whether a host is listed, by its name or by all of its addresses. If nothing is listed, every host is.
    pub fn lists(&self, name: Option<&str>, addresses: &[IpAddr]) -> bool {
        let by_name = |name: &str| {
            let name = canonical(name);
            self.only.iter().any(|listed| listed.covers_name(&name))
        };
        let by_address = |address: &IpAddr| self.only.iter().any(|listed| listed.covers(*address));
        self.only.is_empty()
            || name.is_some_and(by_name)
            || (!addresses.is_empty() && addresses.iter().all(by_address))
    }
}

/// The host of a URL, as it is dialled. The default scheme is `http`.
fn host(url: &str) -> Option<Host> {
    let url = url.trim();
    let url = match url.contains("://") {
        true => Url::parse(url),
        false => Url::parse(&format!("http://{url}")),
    };
    url.ok()?.host().map(|host| host.to_owned())
}

/// A URL whose args, such as `{{args.port}}`, all have this value.
fn with_args(url: &str, value: &str) -> String {
    let mut parts = url.split("{{");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(value);
        text.push_str(part.split_once("}}").map_or("", |(_, rest)| rest));
    }
    text
}

/// The reason for a host that is not in [`Egress::only`].
pub const NOT_LISTED: &str = "is not listed in --egress-only";

/// Names of this machine or of a metadata service, including everything below them.
const NAMES: [(&str, &str); 16] = [
    ("ip6-localhost", MACHINE_NAME),
    ("ip6-loopback", MACHINE_NAME),
    ("localdomain4", MACHINE_NAME),
    ("localdomain6", MACHINE_NAME),
    ("localhost", MACHINE_NAME),
    ("localhost.localdomain", MACHINE_NAME),
    ("localhost4", MACHINE_NAME),
    ("localhost6", MACHINE_NAME),
    ("docker.internal", PROXY_NAME),
    ("containers.internal", PROXY_NAME),
    ("instance-data", METADATA_NAME),
    ("metadata", METADATA_NAME),
    ("metadata.azure.internal", METADATA_NAME),
    ("metadata.goog", METADATA_NAME),
    ("metadata.google.internal", METADATA_NAME),
    ("metadata.tencentyun.com", METADATA_NAME),
];

/// The addresses in the name of a pod: `10-0-0-7.shop.pod.cluster.local`. The cluster DNS resolves it whether or not the pod
/// exists, and may ignore labels before it.
fn pod_addresses(name: &str) -> Vec<IpAddr> {
    let labels: Vec<_> = name.split('.').collect();
    let addresses = labels.windows(3).filter_map(|labels| match labels {
        [address, _namespace, "pod"] => {
            let v4 = address.replace('-', ".").parse().map(IpAddr::V4);
            v4.or_else(|_| address.replace('-', ":").parse().map(IpAddr::V6))
                .ok()
        }
        _ => None,
    });
    addresses.collect()
}

/// Whether a name is that of the API server's Service, or of its ports or endpoints: `172-18-0-2.kubernetes.default.svc`
fn is_api_server(name: &str) -> bool {
    let labels: Vec<_> = name.split('.').collect();
    name == "kubernetes"
        || labels.ends_with(&["kubernetes", "default"])
        || labels
            .windows(3)
            .any(|labels| labels == ["kubernetes", "default", "svc"])
}

/// In every EC2 region: `instance-data.ec2.internal`, `instance-data.eu-west-1.compute.internal`
fn is_instance_data(name: &str) -> bool {
    name.starts_with("instance-data.") && name.ends_with(".internal")
}

const MACHINE_NAME: &str = "is a name of the machine itself";
const METADATA_NAME: &str = "is a name of a cloud's metadata service";
/// The names that Docker and Podman use. Without a proxy, the address decides.
const PROXY_NAME: &str = "is a name of the machine that a container runs on, which may be that of the proxy";

/// The metadata service of nearly all clouds.
const METADATA_ADDRESS: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);

/// The address, and the forms that gateways and sockets translate it to.
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
        // IPv4-mapped, IPv4-translated, and IPv4-compatible. `::` and `::1` have rules of their own.
        [0, 0, 0, 0, 0, 0xffff, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] => vec![last],
        [0, 0, 0, 0, 0, 0, high, low] if (high, low) > (0, 1) => vec![last],
        // NAT64 (RFC 6052). In the local-use prefix (RFC 8215) the address may be anywhere, so the whole prefix is refused.
        [0x64, 0xff9b, 0, ..] => vec![last],
        // 6to4.
        [0x2002, high, low, ..] => vec![pair(high, low)],
        // Teredo: the server's address as it is, the client's with inverted bits.
        [0x2001, 0, high, low, ..] => vec![pair(high, low), pair(!segments[6], !segments[7])],
        // ISATAP.
        [_, _, _, _, 0 | 0x200, 0x5efe, _, _] => vec![last],
        _ => Vec::new(),
    }
}

const METADATA: &str = "an address of a cloud's metadata service";

/// Addresses that are always refused. The first match names the kind.
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
    (METADATA_ADDRESS, 32, METADATA),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "a link-local address"),
    // Alibaba, Oracle, Azure.
    (Ipv4Addr::new(100, 100, 100, 200), 32, METADATA),
    (Ipv4Addr::new(192, 0, 0, 192), 32, METADATA),
    (Ipv4Addr::new(168, 63, 129, 16), 32, METADATA),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "a multicast address"),
    (Ipv4Addr::new(255, 255, 255, 255), 32, "the broadcast address"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "a reserved address"),
];

const V6: [(Ipv6Addr, u8, &str); 9] = [
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
        Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0),
        48,
        "a NAT64 address for local use",
    ),
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
mod tests;
