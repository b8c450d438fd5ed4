//! Graphite, Datadog, New Relic, InfluxDB, Wavefront and SkyWalking, each with a stand-in that checks requests and responds in the
//! documented format.

use rstest::rstest;
use serde_json::{Value, json};
use stateward_analysis::http::Http;
use stateward_analysis::{MapSecrets, Providers, Redactor};
use stateward_core::analysis::Data;

use crate::stand_in::{
    Names, Seen, StandIn, ask, ask_hiding, loopback, owned, providers, status, with_secrets,
};
use crate::tls::serve;
use stateward_analysis::testing::Authority;

/// Six o'clock.
const NOW: i64 = 1_794_808_800;

#[tokio::test]
async fn graphite_renders_a_target() {
    let server = StandIn::answering(|_| {
        json!([
            {"target": "a", "datapoints": [[0.5, 100], [null, 160], ["2", "220"]]},
            {"target": "b", "datapoints": [[9, 999]]},
        ])
        .to_string()
    })
    .await;
    let query = "target=summarize(\n  app.errors,\n  '5min')&from=-5min";
    let reply = ask(
        &providers(),
        json!({"graphite": {"address": server.url("/g"), "query": query}}),
    )
    .await
    .unwrap();
    assert_eq!(reply.data, Data::Numbers(vec![0.5, 2.0]));
    assert_eq!(reply.newest, jiff::Timestamp::from_second(220).ok());
    let seen = server.only();
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("GET", "/g/render"));
    assert_eq!(
        seen.query,
        owned(&[
            ("target", "summarize(app.errors,'5min')"),
            ("from", "-5min"),
            ("format", "json")
        ])
    );
}

#[rstest]
#[case("[]", Ok(Data::Numbers(vec![])))]
#[case(r#"[{"target": "a", "datapoints": [[null, 1]]}]"#, Ok(Data::Numbers(vec![])))]
#[case(r#"[{"target": "a", "datapoints": [[true, 1]]}]"#, Err("Malformed"))]
#[case(r#"{"a": 1}"#, Err("Malformed"))]
#[tokio::test]
async fn graphite_may_have_nothing_or_nonsense(
    #[case] body: &'static str,
    #[case] expected: Result<Data, &str>,
) {
    let server = StandIn::answering(move |_| body).await;
    let metric = json!({"graphite": {"address": server.url(""), "query": "target=a"}});
    let got = ask(&providers(), metric).await;
    assert_eq!(
        got.map(|reply| reply.data).map_err(|error| error.kind()),
        expected
    );
}

fn datadog(server: &StandIn) -> Providers {
    let address = server.url("");
    with_secrets(MapSecrets::default().with(
        "shop",
        "datadog",
        &[("api-key", "api\n"), ("app-key", "app"), ("address", &address)],
    ))
}

#[rstest]
#[case(json!({"series": [{"pointlist": [[1000.0, 0.5], [2000.0, 0.25], [3000.0, null]]}]}), Data::Number(0.25), Some(2))]
#[case(json!({"series": []}), Data::Nothing, None)]
#[case(json!({"status": "ok"}), Data::Nothing, None)]
#[tokio::test]
async fn datadog_v1_gives_the_last_point(
    #[case] body: Value,
    #[case] expected: Data,
    #[case] newest: Option<i64>,
) {
    let server = StandIn::answering(move |_| body.to_string()).await;
    let metric = json!({"datadog": {"query": "avg:errors{*}", "interval": "10m"}});
    let reply = ask(&datadog(&server), metric).await.unwrap();
    assert_eq!(reply.data, expected);
    assert_eq!(reply.newest.map(|time| time.as_second()), newest);
    let seen = server.only();
    assert_eq!(
        (seen.method.as_str(), seen.path.as_str()),
        ("GET", "/api/v1/query")
    );
    let (from, to) = ((NOW - 600).to_string(), NOW.to_string());
    assert_eq!(
        seen.query,
        owned(&[("query", "avg:errors{*}"), ("from", &from), ("to", &to)])
    );
    assert_eq!(seen.header("dd-api-key"), "api");
    assert_eq!(seen.header("dd-application-key"), "app");
}

#[rstest]
#[case(json!([{"name": "query", "type": "number", "values": [0.5]}]), Data::Number(0.5), None)]
#[case(json!([{"values": [3]}]), Data::Number(3.0), None)]
#[case(json!([{"type": "number", "values": [null]}]), Data::Nothing, None)]
#[case(json!([]), Data::Nothing, None)]
#[case(
    json!([
        {"name": "region", "type": "group", "values": [["eu"], ["us"], ["ap"]]},
        {"name": "host", "type": "group", "values": [["a"], ["b"], ["c"]]},
        {"name": "query", "type": "number", "values": [1.5, null, 2]},
    ]),
    Data::Numbers(vec![1.5, 2.0]),
    Some(json!([{"name": "eu,a", "value": 1.5}, {"name": "ap,c", "value": 2.0}])),
)]
#[tokio::test]
async fn datadog_v2_gives_a_value_or_one_for_each_group(
    #[case] columns: Value,
    #[case] expected: Data,
    #[case] groups: Option<Value>,
) {
    let server =
        StandIn::answering(move |_| json!({"data": {"attributes": {"columns": columns}}}).to_string()).await;
    let metric = json!({"datadog": {
        "apiVersion": "v2", "queries": {"a": "sum:errors{*}", "b": "sum:all{*}"}, "formula": "a/b", "aggregator": "mean",
    }});
    let reply = ask(&datadog(&server), metric).await.unwrap();
    assert_eq!(reply.data, expected);
    let noted = reply
        .notes
        .get("groups")
        .map(|it| serde_json::from_str(it).unwrap());
    assert_eq!(noted, groups);
    let seen = server.only();
    assert_eq!(
        (seen.method.as_str(), seen.path.as_str()),
        ("POST", "/api/v2/query/scalar")
    );
    assert_eq!(seen.header("content-type"), "application/json");
    let query = |name: &str, query: &str| json!({"aggregator": "mean", "data_source": "metrics", "name": name, "query": query});
    assert_eq!(
        seen.json(),
        json!({"data": {"type": "scalar_request", "attributes": {
            "from": (NOW - 300) * 1000, "to": NOW * 1000,
            "queries": [query("a", "sum:errors{*}"), query("b", "sum:all{*}")],
            "formulas": [{"formula": "a/b"}],
        }}})
    );
}

#[tokio::test]
async fn datadog_v2_notes_a_hundred_groups_from_both_ends() {
    let server = StandIn::answering(|_| {
        let names: Vec<_> = (0..500).map(|n| json!([format!("h{n}")])).collect();
        let values: Vec<_> = (0..500).collect();
        json!({"data": {"attributes": {"columns": [
            {"type": "group", "values": names}, {"type": "number", "values": values},
        ]}}})
        .to_string()
    })
    .await;
    let metric = json!({"datadog": {"apiVersion": "v2", "query": "q"}});
    let reply = ask(&datadog(&server), metric).await.unwrap();
    assert!(matches!(reply.data, Data::Numbers(numbers) if numbers.len() == 500));
    let groups: Vec<Value> = serde_json::from_str(&reply.notes["groups"]).unwrap();
    assert_eq!(groups.len(), 100);
    assert_eq!(
        (&groups[0]["name"], &groups[99]["name"]),
        (&json!("h0"), &json!("h499"))
    );
    assert_eq!(reply.notes["groups_truncated"], "true");
}

#[tokio::test]
async fn datadog_v2_tells_what_is_wrong_with_a_query() {
    let server = StandIn::answering(|_| r#"{"data": {"errors": "no such metric for app"}}"#).await;
    let metric = json!({"datadog": {"apiVersion": "v2", "query": "q"}});
    assert_eq!(
        ask(&datadog(&server), metric).await.unwrap_err().to_string(),
        format!(
            "{}: answered with an error: no such metric for (redacted)",
            server.url("")
        )
    );
}

#[tokio::test]
async fn a_secret_without_its_keys_is_named() {
    let secrets = MapSecrets::default().with("shop", "datadog", &[("api-key", "a"), ("app-key", "  ")]);
    assert_eq!(
        ask(&with_secrets(secrets), json!({"datadog": {"query": "q"}}))
            .await
            .unwrap_err()
            .to_string(),
        "secret shop/datadog has no key app-key, or it is empty, no text or longer than 16 KiB"
    );
}

#[tokio::test]
async fn secrets_of_other_namespaces_are_never_read() {
    let secrets = MapSecrets::default()
        .with(
            "stateward-system",
            "datadog",
            &[("api-key", "a"), ("app-key", "b")],
        )
        .with("other", "datadog", &[("api-key", "a"), ("app-key", "b")]);
    let error = ask(&with_secrets(secrets), json!({"datadog": {"query": "q"}}))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "SecretMissing");
}

fn new_relic(server: &StandIn) -> Providers {
    let url = server.url("/graphql");
    with_secrets(MapSecrets::default().with(
        "shop",
        "nr",
        &[
            ("personal-api-key", "NRAK-canary"),
            ("account-id", "42"),
            ("base-url-nerdgraph", &url),
        ],
    ))
}

#[rstest]
#[case(json!([{"count": 3}]), Data::Document(json!({"count": 3})))]
#[case(json!([{"count": 3}, {"count": 4}]), Data::Document(json!([{"count": 3}, {"count": 4}])))]
#[case(json!([]), Data::Nothing)]
#[case(json!([{}]), Data::Nothing)]
#[tokio::test]
async fn new_relic_gives_the_results_of_nrql(#[case] results: Value, #[case] expected: Data) {
    let server = StandIn::answering(move |_| {
        json!({"data": {"actor": {"account": {"nrql": {"results": results}}}}}).to_string()
    })
    .await;
    let metric = json!({"newRelic": {"profile": "nr", "query": "FROM T SELECT count(*)", "timeout": 7}});
    let reply = ask(&new_relic(&server), metric).await.unwrap();
    assert_eq!(reply.data, expected);
    assert_eq!(reply.notes["ResolvedNewRelicQuery"], "FROM T SELECT count(*)");
    let seen = server.only();
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/graphql"));
    assert_eq!(seen.header("api-key"), "NRAK-canary");
    let body = seen.json();
    assert_eq!(
        body["variables"],
        json!({"accountId": 42, "query": "FROM T SELECT count(*)", "timeout": 7})
    );
    let query = body["query"].as_str().unwrap();
    assert!(
        query.contains("nrql(query: $query, timeout: $timeout) { results }"),
        "{query}"
    );
}

#[rstest]
#[case(
    r#"{"errors": [{"message": "NRQL Syntax Error for NRAK-canary"}]}"#,
    "answered with an error: NRQL Syntax Error for (redacted)"
)]
#[case(
    r#"{"data": {"actor": null}}"#,
    "the answer is not New Relic's JSON with results"
)]
#[case("nope", "the answer is not GraphQL's JSON with data or errors")]
#[tokio::test]
async fn new_relic_tells_what_is_wrong(#[case] body: &'static str, #[case] expected: &str) {
    let server = StandIn::answering(move |_| body).await;
    let metric = json!({"newRelic": {"profile": "nr", "query": "q"}});
    assert_eq!(
        ask(&new_relic(&server), metric).await.unwrap_err().to_string(),
        format!("{}: {expected}", server.url(""))
    );
}

fn influxdb(server: &StandIn) -> Providers {
    let address = server.url("/influx");
    with_secrets(MapSecrets::default().with(
        "shop",
        "influxdb",
        &[("authToken", "canary"), ("org", "my org"), ("address", &address)],
    ))
}

#[rstest]
#[case("#datatype,string,long,double\r\n#group,false,false,false\r\n#default,_result,,\r\n,result,table,_value\r\n,,0,0.5\r\n,,0,2\r\n\r\n", Data::Numbers(vec![0.5, 2.0]))]
#[case("#datatype,string,long,string\r\n#default,_result,,\r\n,result,table,_value\r\n,,0,good\r\n\r\n", Data::Document(json!(["good"])))]
#[case("\r\n", Data::Numbers(vec![]))]
#[tokio::test]
async fn influxdb_gives_the_values_of_a_flux_query(#[case] body: &'static str, #[case] expected: Data) {
    let server = StandIn::answering(move |_| body).await;
    let flux = "from(bucket: \"b\") |> range(start: -5m)";
    let reply = ask(&influxdb(&server), json!({"influxdb": {"query": flux}}))
        .await
        .unwrap();
    assert_eq!(reply.data, expected);
    let seen = server.only();
    assert_eq!(
        (seen.method.as_str(), seen.path.as_str()),
        ("POST", "/influx/api/v2/query")
    );
    assert_eq!(seen.query, owned(&[("org", "my org")]));
    assert_eq!(seen.header("authorization"), "Token canary");
    assert_eq!(seen.header("content-type"), "application/json");
    assert_eq!(seen.header("accept"), "application/csv");
    let body = seen.json();
    assert_eq!((&body["query"], &body["type"]), (&json!(flux), &json!("flux")));
    assert_eq!(
        body["dialect"]["annotations"],
        json!(["datatype", "group", "default"])
    );
}

#[rstest]
#[case(
    200,
    "#datatype,string,string\n#default,,\n,error,reference\n,canary is out of memory,897\n",
    "answered with an error: (redacted) is out of memory"
)]
#[case(200, "{}", "the answer is not annotated CSV as Flux gives it")]
#[case(401, "{\"code\":\"unauthorized\"}", "answered with status 401")]
#[tokio::test]
async fn influxdb_tells_what_is_wrong(#[case] code: u16, #[case] body: &'static str, #[case] expected: &str) {
    let server = StandIn::answering(move |_| status(code, body)).await;
    assert_eq!(
        ask(&influxdb(&server), json!({"influxdb": {"query": "q"}}))
            .await
            .unwrap_err()
            .to_string(),
        format!("{}: {expected}", server.url(""))
    );
}

/// Wavefront always uses https, so the test needs a name and a certificate authority.
async fn wavefront(body: Value) -> (StandIn, Providers) {
    let authority = Authority::new().unwrap();
    let answer = move |_: &Seen| status(200, body.to_string());
    let server = serve(&authority, "example.wavefront.com", answer).await;
    let names = Names::default().with("example.wavefront.com", &[server.socket]);
    let http = Http::new(loopback()).resolver(names).trusting(&authority.pem());
    let tokens = [("example.wavefront.com", "canary")];
    let secrets = MapSecrets::default().with("shop", "wavefront-api-tokens", &tokens);
    let providers = Providers::new(http.unwrap(), secrets);
    (server, providers)
}

#[rstest]
#[case(json!({"timeseries": [{"data": [[NOW - 60, 1.0], [NOW - 5, 2.0], [NOW + 10, 3.0]]}]}), Data::Number(2.0), Some(("1794808795", "-5")))]
#[case(json!({"timeseries": [{"data": [[NOW, 1.0]]}, {"data": [[NOW - 1, 2.0]]}], "warnings": null}), Data::Numbers(vec![1.0, 2.0]), Some(("[1794808800,1794808799]", "[0,-1]")))]
#[case(json!({"timeseries": []}), Data::Nothing, None)]
#[case(json!({"name": "q"}), Data::Nothing, None)]
#[tokio::test]
async fn wavefront_gives_the_points_nearest_to_now(
    #[case] body: Value,
    #[case] expected: Data,
    #[case] notes: Option<(&str, &str)>,
) {
    let (server, providers) = wavefront(body).await;
    let metric = json!({"wavefront": {"address": "example.wavefront.com", "query": "ts(errors)"}});
    let reply = ask(&providers, metric).await.unwrap();
    assert_eq!(reply.data, expected);
    let noted = reply.notes.get("timestamps").zip(reply.notes.get("drift"));
    assert_eq!(noted.map(|(a, b)| (a.as_str(), b.as_str())), notes);
    let seen = server.only();
    assert_eq!(
        (seen.method.as_str(), seen.path.as_str()),
        ("GET", "/api/v2/chart/api")
    );
    assert_eq!(seen.header("authorization"), "Bearer canary");
    let now = (NOW * 1000).to_string();
    assert_eq!(
        seen.query,
        owned(&[
            ("q", "ts(errors)"),
            ("s", &now),
            ("e", &now),
            ("g", "s"),
            ("p", "1"),
            ("i", "true")
        ])
    );
}

#[tokio::test]
async fn wavefront_tells_what_is_wrong() {
    let body = json!({"errorType": "QuerySyntaxError", "errorMessage": "canary: missing )"});
    let (_server, providers) = wavefront(body).await;
    let metric = |address: &str| json!({"wavefront": {"address": address, "query": "ts("}});
    assert_eq!(
        ask(&providers, metric("example.wavefront.com"))
            .await
            .unwrap_err()
            .to_string(),
        "https://example.wavefront.com: answered with an error: (redacted): missing )"
    );
    assert_eq!(
        ask(&providers, metric("other.wavefront.com"))
            .await
            .unwrap_err()
            .to_string(),
        "secret shop/wavefront-api-tokens has no key other.wavefront.com, or it is empty, no text or longer than 16 KiB"
    );
}

#[tokio::test]
async fn skywalking_gives_the_data_of_a_query_over_a_time() {
    let server = StandIn::answering(|_| r#"{"data": {"result": [{"value": 3}]}}"#).await;
    let query = "query q($duration: Duration!) { result: x(duration: $duration) { value } }";
    let metric = json!({"skywalking": {"address": server.url(""), "query": query, "interval": "3m"}});
    let reply = ask(&providers(), metric).await.unwrap();
    assert_eq!(reply.data, Data::Document(json!({"result": [{"value": 3}]})));
    let seen = server.only();
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/graphql"));
    assert_eq!(
        seen.json(),
        json!({"query": query, "variables": {"duration": {
            "start": "2026-11-16 0557", "end": "2026-11-16 0600", "step": "MINUTE",
        }}})
    );
}

#[rstest]
#[case(r#"{"errors": [{"message": "Validation error"}]}"#, Err("QueryFailed"))]
#[case(r#"{"data": null}"#, Ok(Data::Nothing))]
#[case("<html>", Err("Malformed"))]
#[tokio::test]
async fn skywalking_may_have_nothing_or_trouble(
    #[case] body: &'static str,
    #[case] expected: Result<Data, &str>,
) {
    let server = StandIn::answering(move |_| body).await;
    let metric = json!({"skywalking": {"address": server.url(""), "query": "query { x }"}});
    let got = ask(&providers(), metric).await;
    assert_eq!(
        got.map(|reply| reply.data).map_err(|error| error.kind()),
        expected
    );
}

/// A secret arg that the provider repeats where its message is truncated.
const CUT_SECRET: &str = "Xq7s3cr3tXq7";

fn words_that_are_cut_in_a_secret() -> String {
    format!("{}{CUT_SECRET}{}", "- ".repeat(147), " -".repeat(10))
}

async fn nothing_of_a_cut_secret_is_shown(providers: &Providers, metric: Value) {
    let redactor = Redactor::default();
    redactor.add(CUT_SECRET);
    let shown = match ask_hiding(providers, metric, None, &redactor).await {
        Ok(reply) => format!("{:?}", reply.notes),
        Err(error) => error.to_string(),
    };
    assert!(shown.contains("- - -"), "the words are not shown: {shown}");
    assert!(!shown.contains("Xq7"), "{shown}");
}

#[rstest]
#[case::prometheus_refuses("prometheus", json!({"query": "up"}), json!({"status": "error", "errorType": "bad_data", "error": words_that_are_cut_in_a_secret()}))]
#[case::prometheus_warns("prometheus", json!({"query": "up"}), json!({"status": "success", "warnings": [words_that_are_cut_in_a_secret()], "data": {"resultType": "vector", "result": []}}))]
#[case::influxdb("influxdb", json!({"query": "q"}), json!(format!("#datatype,string,string\n#default,,\n,error,reference\n,{},897\n", words_that_are_cut_in_a_secret())))]
#[case::datadog_refuses("datadog", json!({"query": "q", "apiVersion": "v2"}), json!({"errors": [words_that_are_cut_in_a_secret()]}))]
#[case::datadog_names_groups("datadog", json!({"query": "q", "apiVersion": "v2"}), json!({"data": {"attributes": {"columns": [
    {"type": "group", "values": [[format!("{}{CUT_SECRET}", "- ".repeat(47))]]}, {"type": "number", "values": [1]},
]}}}))]
#[case::new_relic("newRelic", json!({"query": "q"}), json!({"errors": [{"message": words_that_are_cut_in_a_secret()}]}))]
#[case::skywalking("skywalking", json!({"query": "q"}), json!({"errors": [{"message": words_that_are_cut_in_a_secret()}]}))]
#[tokio::test]
async fn a_secret_is_redacted_before_words_are_cut(
    #[case] provider: &str,
    #[case] mut metric: Value,
    #[case] body: Value,
) {
    let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
    let server = StandIn::answering(move |_| body.clone()).await;
    let address = server.url("");
    metric["address"] = json!(address);
    let secrets = MapSecrets::default()
        .with(
            "shop",
            "datadog",
            &[("api-key", "api"), ("app-key", "app"), ("address", &address)],
        )
        .with(
            "shop",
            "influxdb",
            &[("authToken", "token"), ("org", "o"), ("address", &address)],
        )
        .with(
            "shop",
            "newrelic",
            &[
                ("personal-api-key", "key"),
                ("account-id", "1"),
                ("base-url-nerdgraph", &address),
            ],
        );
    nothing_of_a_cut_secret_is_shown(&with_secrets(secrets), json!({provider: metric})).await;
}

#[rstest]
#[case(json!({"errorType": "QuerySyntaxError", "errorMessage": words_that_are_cut_in_a_secret()}))]
#[case(json!({"timeseries": [], "warnings": words_that_are_cut_in_a_secret()}))]
#[tokio::test]
async fn a_secret_is_redacted_before_words_of_wavefront_are_cut(#[case] body: Value) {
    let (_server, providers) = wavefront(body).await;
    let metric = json!({"wavefront": {"address": "example.wavefront.com", "query": "q"}});
    nothing_of_a_cut_secret_is_shown(&providers, metric).await;
}
