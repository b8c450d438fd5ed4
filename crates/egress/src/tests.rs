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
#[case("64:ff9b:1::127.0.0.1", "a NAT64 address for local use")]
#[case("64:ff9b:1:7f00:0:100::", "a NAT64 address for local use")]
#[case("64:ff9b:1:a9fe:a9:fe00::", "a NAT64 address for local use")]
#[case("64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "a NAT64 address for local use")]
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
        ..Egress::default()
    };
    assert_eq!(egress.check(address("127.0.0.1")), Ok(()));
    assert_eq!(egress.check(address("::ffff:127.0.0.1")), Ok(()));
    assert_eq!(egress.check(address("::1")), Err("a loopback address"));
    assert_eq!(egress.check(address("169.254.169.254")), Err(METADATA));
}

#[test]
fn an_operator_may_refuse_more() {
    const API_SERVER: &str = "an address of the API server";
    const NODE: &str = "an address of the operator's node";
    let egress = Egress::default();
    let refuse = |why, text: &str| egress.refuse.replace(why, [text.parse().unwrap()]);
    refuse(API_SERVER, "10.96.0.1");
    refuse(NODE, "10.0.0.9");
    // A clone from before the change refuses it too.
    let made = egress.clone();
    refuse(API_SERVER, "10.96.0.2");
    for egress in [egress, made] {
        assert_eq!(egress.check(address("10.96.0.1")), Ok(()));
        assert_eq!(egress.check(address("10.96.0.2")), Err(API_SERVER));
        assert_eq!(egress.check(address("::ffff:10.96.0.2")), Err(API_SERVER));
        assert_eq!(egress.check(address("64:ff9b::10.96.0.2")), Err(API_SERVER));
        assert_eq!(egress.check(address("10.0.0.9")), Err(NODE));
        assert_eq!(egress.check(address("10.0.0.8")), Ok(()));
        let opened = Egress {
            allow: vec!["10.96.0.2".parse().unwrap()],
            ..egress
        };
        assert_eq!(opened.check(address("10.96.0.2")), Ok(()));
    }
}

#[rstest]
#[case("prometheus.monitoring.svc", &[], true)]
#[case("PROMETHEUS.monitoring.svc.", &[], true)]
#[case("a.example.com", &["1.1.1.1"], true)]
#[case("a.b.example.com", &[], true)]
#[case("example.com", &["1.1.1.1"], false)]
#[case("evilexample.com", &[], false)]
#[case("prometheus.monitoring.svc.evil.com", &[], false)]
#[case("other", &["10.1.2.3", "10.1.2.4"], true)]
#[case("other", &["10.1.2.3", "10.2.0.1"], false)]
#[case("other", &[], false)]
#[case("", &["10.1.0.9"], true)]
#[case("", &["::ffff:10.1.0.9"], true)]
#[case("", &["10.2.0.9"], false)]
fn what_is_listed_is_open_and_nothing_else_is(
    #[case] name: &str,
    #[case] addresses: &[&str],
    #[case] expected: bool,
) {
    let listed = ["prometheus.monitoring.svc", "*.Example.com", "10.1.0.0/16"];
    let egress = Egress {
        only: listed.map(|text| text.parse().unwrap()).into(),
        ..Egress::default()
    };
    let addresses: Vec<_> = addresses.iter().map(|text| address(text)).collect();
    let name = Some(name).filter(|name| !name.is_empty());
    assert_eq!(egress.lists(name, &addresses), expected);
    assert!(Egress::default().lists(name, &addresses));
}

#[rstest]
#[case("localhost", true)]
#[case("a.localhost.", true)]
#[case("localhost..", true)]
#[case("169.254.169.254..", true)]
#[case("prometheus..example.com", true)]
#[case(".", true)]
#[case("ip6-localhost", true)]
#[case("prometheus.example.com.", false)]
#[case("METADATA.google.internal", true)]
#[case("kubernetes.default.svc", true)]
#[case("kubernetes.default.svc.cluster.local", true)]
#[case("kubernetes", true)]
#[case("kubernetes.default", true)]
#[case("172-18-0-2.kubernetes.default", true)]
#[case("172-18-0-2.kubernetes.default.svc.cluster.local", true)]
#[case("_https._tcp.kubernetes.default.svc", true)]
#[case("_https._tcp.Kubernetes.Default.SVC.", true)]
#[case("prometheus.kubernetes.svc", false)]
#[case("prometheus.kubernetes", false)]
#[case("kubernetes-metrics.default.svc", false)]
#[case("kubernetes.defaults.svc", false)]
#[case("kubernetes.default.example.com", false)]
#[case("localhost4", true)]
#[case("localhost6.localdomain6", true)]
#[case("metadata.goog", true)]
#[case("metadata.tencentyun.com", true)]
#[case("metadata.azure.internal", true)]
#[case("instance-data.ec2.internal", true)]
#[case("instance-data.eu-west-1.compute.internal", true)]
#[case("169-254-169-254.shop.pod.cluster.local", true)]
#[case("127-0-0-1.shop.pod", true)]
#[case("--1.shop.pod.cluster.local", true)]
#[case("x.169-254-169-254.tenant.pod.cluster.local", true)]
#[case("x.169-254-169-254.tenant.pod", true)]
#[case("10-0-0-7.shop.pod.127-0-0-1.shop.pod", true)]
#[case("10-0-0-7.shop.pod.cluster.local", false)]
#[case("169-254-169-254.shop.svc.cluster.local", false)]
#[case("db-0.db.pod.cluster.local", false)]
#[case("host.docker.internal", true)]
#[case("gateway.docker.internal", true)]
#[case("host.containers.internal", true)]
#[case("metadata.example.com", false)]
#[case("instance-data.example.com", false)]
#[case("docker.example.com", false)]
#[case("mylocalhost", false)]
#[case("prometheus", false)]
fn behind_a_proxy_names_are_refused_that_lead_to_what_is_refused(#[case] name: &str, #[case] refused: bool) {
    assert_eq!(Egress::default().check_name(name).is_err(), refused);
}

#[rstest]
#[case(
    "http://127.0.0.1:9090",
    Some(
        "127.0.0.1 is a loopback address; the operator does not connect to it, unless it runs with --allow-egress 127.0.0.1"
    )
)]
#[case(
    "127.0.0.1:9090/prefix",
    Some(
        "127.0.0.1 is a loopback address; the operator does not connect to it, unless it runs with --allow-egress 127.0.0.1"
    )
)]
#[case(
    " https://me:secret@[::1]/x",
    Some(
        "::1 is a loopback address; the operator does not connect to it, unless it runs with --allow-egress ::1"
    )
)]
#[case(
    "http://0x7f.1",
    Some(
        "127.0.0.1 is a loopback address; the operator does not connect to it, unless it runs with --allow-egress 127.0.0.1"
    )
)]
#[case(
    "http://localhost:9090",
    Some(
        "localhost is a name of the machine itself; the operator does not connect to it, unless it runs with --allow-egress 127.0.0.1"
    )
)]
#[case(
    "http://metadata.google.internal",
    Some(
        "metadata.google.internal is a name of a cloud's metadata service; the operator does not connect to it, unless it runs with --allow-egress 169.254.169.254"
    )
)]
#[case(
    "kubernetes.default.svc",
    Some("kubernetes.default.svc is a name of the API server; the operator does not connect to it")
)]
#[case(
    "http://prometheus..svc",
    Some("prometheus..svc has an empty label; the operator does not connect to it")
)]
#[case::as_it_is_dialled(
    r"http://169.254.169.254\@example.com/x",
    Some(
        "169.254.169.254 is an address of a cloud's metadata service; the operator does not connect to it, unless it runs with --allow-egress 169.254.169.254"
    )
)]
#[case::without_a_host_in_its_place(
    "http:///127.0.0.1/",
    Some(
        "127.0.0.1 is a loopback address; the operator does not connect to it, unless it runs with --allow-egress 127.0.0.1"
    )
)]
#[case::a_name_and_a_path(r"http://prom.example\@127.0.0.1/", None)]
#[case::whose_port_is_an_arg(
    "http://user:{{ args.password }}@127.0.0.1:{{args.port}}/{{args.path}}",
    Some(
        "127.0.0.1 is a loopback address; the operator does not connect to it, unless it runs with --allow-egress 127.0.0.1"
    )
)]
#[case::whose_port_is_an_arg_and_no_scheme(
    "localhost:{{args.port}}",
    Some(
        "localhost is a name of the machine itself; the operator does not connect to it, unless it runs with --allow-egress 127.0.0.1"
    )
)]
#[case::whose_host_is_an_arg("http://{{args.host}}:9090", None)]
#[case::whose_host_ends_with_an_arg("http://127.0.0.{{args.last}}", None)]
#[case::whose_arg_is_not_closed(
    "http://127.0.0.1:{{args.port",
    Some(
        "127.0.0.1 is a loopback address; the operator does not connect to it, unless it runs with --allow-egress 127.0.0.1"
    )
)]
#[case::an_address_in_the_query("prom.example:9090/q?u=http://127.0.0.1/", None)]
#[case("http://prometheus.monitoring:9090", None)]
#[case("http://10.0.0.7:9090", None)]
#[case("http://prometheus.metadata:9090", None)]
#[case("http://host.docker.internal:9090", None)]
#[case("http://{{args.host}}:9090", None)]
#[case("", None)]
fn what_can_never_be_connected_to_is_known_before(#[case] url: &str, #[case] expected: Option<&str>) {
    let refusal = Egress::default().refusal(url).map(|refusal| refusal.to_string());
    assert_eq!(refusal.as_deref(), expected);
}

#[test]
fn a_name_is_open_where_its_address_is() {
    let egress = Egress {
        allow: vec!["127.0.0.1".parse().unwrap()],
        ..Egress::default()
    };
    assert_eq!(egress.refusal("http://localhost:9090"), None);
    assert_eq!(egress.refusal("http://127.0.0.1:9090"), None);
    assert!(egress.refusal("http://metadata").is_some());
}

#[rstest]
#[case(&["10.0.0.0/8"], "http://8.8.8.8/x", true)]
#[case(&["10.0.0.0/8"], "http://10.1.2.3/x", false)]
#[case::its_addresses_may_be(&["10.0.0.0/8"], "http://prometheus", false)]
#[case(&["*.example.com"], "http://prometheus", true)]
#[case(&["*.example.com"], "http://prometheus.example.com", false)]
#[case(&["*.example.com"], "http://10.1.2.3", true)]
fn what_is_not_listed_is_refused_before(#[case] only: &[&str], #[case] url: &str, #[case] refused: bool) {
    let egress = Egress {
        only: only.iter().map(|listed| listed.parse().unwrap()).collect(),
        ..Egress::default()
    };
    let refusal = egress.refusal(url).map(|refusal| refusal.to_string());
    assert_eq!(refusal.is_some(), refused, "{refusal:?}");
    assert!(refusal.is_none_or(|why| why.contains("is not listed in --egress-only; the operator does not")));
}

#[test]
fn a_name_of_the_api_server_is_refused() {
    let egress = Egress {
        refuse_names: vec!["api.example.com".to_owned()],
        ..Egress::default()
    };
    assert!(egress.check_name("API.example.com.").is_err());
    assert!(egress.check_name("prometheus.example.com").is_ok());
}

#[rstest]
#[case("")]
#[case("*.")]
#[case("http://prometheus")]
#[case("prometheus:9090")]
#[case("a..b")]
#[case("10.1.0.0/40")]
#[case("10.1.0")]
#[case("*")]
fn what_is_no_destination_is_refused_with_what_is_one(#[case] text: &str) {
    let error = text.parse::<Destination>().unwrap_err().to_string();
    assert!(
        error.contains("is neither a range of addresses such as"),
        "{error}"
    );
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
