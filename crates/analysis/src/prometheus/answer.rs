//! Parses Prometheus responses.
//!
//! | result | data |
//! |---|---|
//! | vector | numbers, in the order of the answer |
//! | matrix | numbers, one series after the other |
//! | scalar | a number |
//! | string | a string |
//!
//! The time of an instant vector is the time of the query, regardless of the age of its samples: Prometheus looks back for them. A query
//! can use `timestamp(...)` to get their age.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use stateward_core::analysis::{Data, Reply};

use crate::http::Response;
use crate::json;
use crate::said::shown;
use crate::{ProviderError, Redactor};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    status: String,
    data: Option<Found>,
    #[serde(default)]
    error_type: String,
    #[serde(default)]
    error: String,
    #[serde(default)]
    warnings: Vec<String>,
    /// VictoriaMetrics' flag for a response that lacks some of its storage nodes.
    #[serde(default)]
    is_partial: bool,
}

/// The fields of an error response, whose data may be missing or of another shape.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Refusal {
    #[serde(default)]
    error_type: String,
    #[serde(default)]
    error: String,
}

/// The type may follow the result. A tagged enum would buffer the result as a tree until then, so the parts of a result are parsed by their
/// shape.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    result_type: Kind,
    result: Vec<Part>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Vector,
    Matrix,
    Scalar,
    String,
}

/// A series of a vector or a matrix, or one half of a scalar or string sample.
enum Part {
    Series(Series),
    Number(f64),
    Text(String),
}

#[derive(Deserialize)]
struct Series {
    value: Option<Sample>,
    #[serde(default)]
    values: Vec<Sample>,
    histograms: Option<IgnoredAny>,
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PartVisitor)
    }
}

struct PartVisitor;

#[expect(clippy::cast_precision_loss, reason = "a time in seconds is a float")]
impl<'de> Visitor<'de> for PartVisitor {
    type Value = Part;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a series, a number or a text")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Part, A::Error> {
        Series::deserialize(MapAccessDeserializer::new(fields)).map(Part::Series)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Part, E> {
        Ok(Part::Number(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Part, E> {
        Ok(Part::Number(number as f64))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Part, E> {
        Ok(Part::Number(number as f64))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Part, E> {
        Ok(Part::Text(text.to_owned()))
    }
}

/// A time in seconds, and a value as a string.
#[derive(Deserialize)]
struct Sample(f64, String);

/// Parses a response. Text of the server is redacted.
pub(super) fn read(response: &Response, redactor: &Redactor) -> Result<Reply, ProviderError> {
    const EXPECTED: &str = "Prometheus' JSON with a status and a vector, matrix, scalar or string";
    let Response {
        origin, status, body, ..
    } = response;
    // Other success codes mean that the response is not Prometheus' own, or incomplete.
    if *status != 200 {
        let refusal = json::read(body, json::SAMPLES).ok();
        return Err(ProviderError::Status {
            origin: origin.clone(),
            status: status.as_u16(),
            said: refusal.and_then(|refusal| said(&refusal, redactor)),
        });
    }
    let malformed = |expected: &str| ProviderError::malformed(origin, expected);
    let answer: Answer = json::read(body, json::SAMPLES).map_err(|unread| unread.of(origin, EXPECTED))?;
    if answer.status != "success" {
        let refusal = Refusal {
            error_type: answer.error_type,
            error: answer.error,
        };
        let said = said(&refusal, redactor).unwrap_or_else(|| "without a reason".to_owned());
        return Err(ProviderError::QueryFailed {
            origin: origin.clone(),
            said,
        });
    }
    let found = answer
        .data
        .ok_or_else(|| malformed("Prometheus' JSON with data"))?;
    let series = found.series();
    let (data, newest) = found.judge().map_err(malformed)?;
    let mut notes = BTreeMap::new();
    let partial = answer.is_partial.then(|| "the answer is partial".to_owned());
    let warnings: Vec<_> = answer.warnings.into_iter().chain(partial).collect();
    if !warnings.is_empty() {
        let warnings: Vec<_> = warnings.iter().map(|it| format!("{it:?}")).collect();
        notes.insert("warnings".to_owned(), shown(&warnings.join(", "), redactor));
    }
    Ok(Reply {
        data,
        newest,
        series,
        notes,
    })
}

/// `None` if it contains no Prometheus error.
fn said(refusal: &Refusal, redactor: &Redactor) -> Option<String> {
    let Refusal { error_type, error } = refusal;
    let is_type = (1..=32).contains(&error_type.len())
        && error_type
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_type.then(|| match shown(error, redactor).as_str() {
        "" => error_type.clone(),
        error => format!("{error_type}: {error}"),
    })
}

const SAMPLE: &str = "a time and a value, as Prometheus writes a scalar or a string";
const SERIES: &str = "made of series, as Prometheus writes a vector or a matrix";

impl Found {
    /// The number of series: one sample each in a vector, any number of them in a matrix.
    fn series(&self) -> Option<usize> {
        match self.result_type {
            Kind::Vector | Kind::Matrix => Some(self.result.len()),
            Kind::Scalar | Kind::String => None,
        }
    }

    /// The sample of a scalar or a string.
    fn sample(self) -> Result<Sample, &'static str> {
        match <[Part; 2]>::try_from(self.result) {
            Ok([Part::Number(time), Part::Text(value)]) => Ok(Sample(time, value)),
            _ => Err(SAMPLE),
        }
    }

    fn into_series(self) -> Result<Vec<Series>, &'static str> {
        let series = self.result.into_iter().map(|part| match part {
            Part::Series(series) => Ok(series),
            Part::Number(_) | Part::Text(_) => Err(SERIES),
        });
        series.collect()
    }

    fn judge(self) -> Result<(Data, Option<Timestamp>), &'static str> {
        const NUMBERS: &str = "made of numbers; a query for native histograms has none";
        let samples = match self.result_type {
            Kind::String => {
                let Sample(time, text) = self.sample()?;
                return Ok((Data::Document(Value::String(text)), timestamp(time)));
            }
            Kind::Scalar => {
                let sample = self.sample()?;
                return Ok((Data::Number(sample.number()?), timestamp(sample.0)));
            }
            Kind::Vector => {
                let series = self.into_series()?.into_iter();
                let samples = series.map(|series| series.value.ok_or(NUMBERS));
                samples.collect::<Result<Vec<_>, _>>()?
            }
            Kind::Matrix => {
                let series = self.into_series()?;
                if series.iter().any(|series| series.histograms.is_some()) {
                    return Err(NUMBERS);
                }
                if series.iter().any(|series| series.values.is_empty()) {
                    return Err("made of series with samples");
                }
                series.into_iter().flat_map(|series| series.values).collect()
            }
        };
        let newest = samples.iter().filter_map(|sample| timestamp(sample.0)).max();
        let numbers = samples.iter().map(Sample::number).collect::<Result<_, _>>()?;
        Ok((Data::Numbers(numbers), newest))
    }
}

impl Sample {
    /// Also parses `NaN`, `+Inf` and `-Inf`.
    fn number(&self) -> Result<f64, &'static str> {
        self.1
            .parse()
            .map_err(|_| "made of numbers as Prometheus writes them")
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "what does not fit is no time, and is refused"
)]
fn timestamp(seconds: f64) -> Option<Timestamp> {
    Timestamp::from_millisecond((seconds * 1000.0).round() as i64).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn answer(status: u16, body: &Value) -> Result<Reply, ProviderError> {
        let response = Response {
            origin: "http://prometheus:9090".to_owned(),
            status: status.try_into().unwrap(),
            content_type: None,
            body: body.to_string().into(),
            _permit: None,
        };
        let redactor = Redactor::default();
        redactor.add("s3cr3t");
        read(&response, &redactor)
    }

    fn success(kind: &str, result: &Value) -> Result<Reply, ProviderError> {
        answer(
            200,
            &json!({"status": "success", "data": {"resultType": kind, "result": result, "stats": {}}}),
        )
    }

    #[rstest]
    #[case("vector", json!([]), Data::Numbers(vec![]))]
    #[case("vector", json!([{"metric": {}, "value": [1.5, "3"]}, {"metric": {"a": "b"}, "value": [1, "-1e+06"]}]), Data::Numbers(vec![3.0, -1e6]))]
    #[case("vector", json!([{"metric": {}, "value": [1, "+Inf"]}, {"value": [1, "-Inf"]}]), Data::Numbers(vec![f64::INFINITY, f64::NEG_INFINITY]))]
    #[case("matrix", json!([{"metric": {}, "values": [[1, "1"], [2, "2"]]}, {"metric": {}, "values": [[1, "3"]]}]), Data::Numbers(vec![1.0, 2.0, 3.0]))]
    #[case("matrix", json!([]), Data::Numbers(vec![]))]
    #[case("scalar", json!([1, "0.25"]), Data::Number(0.25))]
    #[case("string", json!([1, "hello"]), Data::Document(json!("hello")))]
    fn a_result_becomes_data(#[case] kind: &str, #[case] result: Value, #[case] expected: Data) {
        assert_eq!(success(kind, &result).unwrap().data, expected);
    }

    #[rstest]
    #[case("vector", json!([{"value": [1, "3"]}, {"value": [1, "4"]}]), Some(2))]
    #[case("matrix", json!([{"values": [[1, "1"], [2, "2"]]}, {"values": [[1, "3"]]}]), Some(2))]
    #[case("matrix", json!([]), Some(0))]
    #[case("scalar", json!([1, "3"]), None)]
    fn series_are_told_from_their_samples(
        #[case] kind: &str,
        #[case] result: Value,
        #[case] series: Option<usize>,
    ) {
        assert_eq!(success(kind, &result).unwrap().series, series);
    }

    #[test]
    fn nan_is_a_number_that_is_none() {
        let Data::Number(number) = success("scalar", &json!([1, "NaN"])).unwrap().data else {
            panic!("a number")
        };
        assert!(number.is_nan());
    }

    #[test]
    fn the_newest_sample_tells_the_age() {
        let result = json!([{"values": [[100, "1"], [160.5, "2"]]}, {"values": [[130, "3"]]}]);
        let newest = success("matrix", &result).unwrap().newest;
        assert_eq!(newest, Timestamp::from_millisecond(160_500).ok());
        assert_eq!(success("vector", &json!([])).unwrap().newest, None);
    }

    #[rstest]
    fn an_answer_that_may_not_be_whole_is_none(#[values(203, 206)] status: u16) {
        let body = json!({"status": "success", "data": {"resultType": "vector", "result": []}});
        assert!(matches!(answer(status, &body), Err(ProviderError::Status { .. })));
    }

    #[test]
    fn warnings_are_noted_in_short() {
        let mut body = json!({"status": "success", "data": {"resultType": "vector", "result": []}});
        body["warnings"] = json!(["a", "b\nc"]);
        assert_eq!(answer(200, &body).unwrap().notes["warnings"], r#""a", "b\nc""#);
        body["warnings"] = json!(["x".repeat(5000)]);
        assert!(answer(200, &body).unwrap().notes["warnings"].len() < 400);
        body["warnings"] = json!([]);
        body["isPartial"] = json!(true);
        assert!(answer(200, &body).unwrap().notes.contains_key("warnings"));
    }

    #[rstest]
    #[case(json!({"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "histogram": [1, {}]}]}}))]
    #[case(json!({"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}, "histograms": []}]}}))]
    #[case(json!({"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}, "values": []}]}}))]
    #[case(json!({"status": "success", "data": {"resultType": "scalar", "result": [1, "many"]}}))]
    #[case(json!({"status": "success", "data": {"resultType": "streams", "result": []}}))]
    #[case(json!({"status": "success", "data": {"resultType": "scalar", "result": [1, "1", "1"]}}))]
    #[case(json!({"status": "success", "data": {"resultType": "scalar", "result": [{"value": [1, "1"]}]}}))]
    #[case(json!({"status": "success", "data": {"resultType": "vector", "result": [1, "1"]}}))]
    #[case(json!({"status": "success", "data": {"resultType": "vector", "result": {"value": [1, "1"]}}}))]
    #[case(json!({"status": "success"}))]
    #[case(json!({"hello": "world"}))]
    #[case(json!([]))]
    fn what_is_not_prometheus_is_malformed(#[case] body: Value) {
        assert_eq!(answer(200, &body).unwrap_err().kind(), "Malformed");
    }

    #[rstest]
    #[case(400, json!({"status": "error", "errorType": "bad_data", "error": "1:1: parse error"}), "http://prometheus:9090: answered with status 400: bad_data: 1:1: parse error")]
    #[case(503, json!({"status": "error", "errorType": "timeout"}), "http://prometheus:9090: answered with status 503: timeout")]
    #[case(502, json!({"secret": "body"}), "http://prometheus:9090: answered with status 502")]
    #[case(401, json!({"errorType": "Not A Type!", "error": "body"}), "http://prometheus:9090: answered with status 401")]
    #[case(422, json!({"errorType": "execution", "error": "you sent s3cr3t"}), "http://prometheus:9090: answered with status 422: execution: you sent (redacted)")]
    #[case(200, json!({"status": "error", "errorType": "execution", "error": "no"}), "http://prometheus:9090: answered with an error: execution: no")]
    fn a_refusal_is_told_in_its_own_words_and_no_others(
        #[case] status: u16,
        #[case] body: Value,
        #[case] expected: &str,
    ) {
        assert_eq!(answer(status, &body).unwrap_err().to_string(), expected);
    }
}
