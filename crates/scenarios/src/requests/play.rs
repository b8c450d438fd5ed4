//! Sends a sequence to one server.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::io::Lines;
use futures::{AsyncBufRead, AsyncBufReadExt, StreamExt, TryStreamExt};
use http::header;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body as ClientBody;
use serde_json::{Value, json};

use super::kinds;
use super::memory::Memory;
use super::normal::{self, Normal};
use super::request::{Body, Request, Step};

/// The user agent for both servers; its first part becomes the field manager.
const AGENT: &str = "stateward-requests/1";

/// How long to wait for an expected change. A real garbage collector discovers new kinds every 30 seconds.
const PATIENCE: Duration = Duration::from_secs(90);
const GLANCE: Duration = Duration::from_millis(15);

type Events = Lines<Box<dyn AsyncBufRead + Send + Unpin>>;

/// A sequence in progress on one server.
pub(super) struct Play {
    client: Client,
    memory: Memory,
    normal: Normal,
    watch: Option<Events>,
    /// The watch event that arrived before any other request.
    seen_early: Option<String>,
}

impl Play {
    /// Creates the sequence's namespace, and the custom types if they are missing.
    pub(super) async fn open(client: Client, namespace: &str) -> Result<Self> {
        let play = Self {
            client,
            memory: Memory::new(namespace),
            normal: Normal::new(namespace),
            watch: None,
            seen_early: None,
        };
        for definition in kinds::definitions() {
            let name = definition["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            play.send(&Request::new("POST", path).json(definition)).await?;
            play.until(&format!("{path}/{name}"), |crd| {
                let conditions = crd["status"]["conditions"].as_array();
                conditions
                    .into_iter()
                    .flatten()
                    .any(|one| one["type"] == "Established" && one["status"] == "True")
            })
            .await?;
        }
        for path in kinds::custom_collections() {
            play.until(&path, |list| list["items"].is_array()).await?;
        }
        let made = json!({"metadata": {"name": namespace}});
        play.send(&Request::new("POST", "/api/v1/namespaces").json(made))
            .await?;
        for furniture in ["serviceaccounts/default", "configmaps/kube-root-ca.crt"] {
            let path = format!("/api/v1/namespaces/{namespace}/{furniture}");
            play.until(&path, |object| object["metadata"]["uid"].is_string())
                .await?;
        }
        Ok(play)
    }

    /// Runs one step; the answer in the form that is compared.
    pub(super) async fn step(&mut self, step: &Step) -> Result<Value> {
        match step {
            Step::Send(request) => self.compared(request).await,
            Step::Watch(request) => {
                let (parts, body) = self.begin(request).await?.into_parts();
                let code = parts.status.as_u16();
                if code == 200 {
                    let reader: Box<dyn AsyncBufRead + Send + Unpin> = Box::new(
                        body.into_data_stream()
                            .map_err(std::io::Error::other)
                            .into_async_read(),
                    );
                    let mut events = reader.lines();
                    // The server reads existing objects from storage after the response has begun; the next write must wait for that.
                    let begins_with_what_is_there = !request
                        .query
                        .iter()
                        .any(|(name, value)| *name == "resourceVersion" && value != "0");
                    if request.path.ends_with("/events") && begins_with_what_is_there {
                        self.seen_early = tokio::time::timeout(PATIENCE, events.next()).await?.transpose()?;
                    }
                    self.watch = Some(events);
                    return Ok(normal::answer(code, headers(&parts.headers), Value::Null));
                }
                let bytes = body.collect_bytes().await?;
                let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
                Ok(normal::answer(
                    code,
                    headers(&parts.headers),
                    self.normal.value(&body),
                ))
            }
            Step::Events(request) => {
                let marker = self.compared(request).await?;
                let events = self.events(&self.memory.fill(&marker_name(request))).await?;
                Ok(json!({"marker": marker["code"], "events": events}))
            }
        }
    }

    /// Deletes the namespace; its controllers finish the work.
    pub(super) async fn close(self) -> Result<()> {
        for path in [
            "/api/v1/namespaces/«ns»".to_owned(),
            kinds::CLUSTER_SCOPED.to_owned() + "?labelSelector=sequence%3D«ns»",
        ] {
            let request = http::Request::delete(self.memory.fill(&path)).body(Vec::new())?;
            drop(self.client.send(request.map(ClientBody::from)).await?);
        }
        Ok(())
    }

    async fn compared(&mut self, request: &Request) -> Result<Value> {
        if let Some((pointer, value)) = &request.until {
            let path = self.memory.fill(&request.path);
            self.until(&path, |body| {
                body.pointer(pointer).unwrap_or(&Value::Null) == value
            })
            .await?;
        }
        let (code, headers, body) = self.send(request).await?;
        self.memory.learn(request, &body);
        let answer = normal::answer(code, headers, self.normal.value(&body));
        if request.settles {
            self.settle(request).await?;
        }
        Ok(answer)
    }

    /// Waits for the server's cache if the request accepts any version: on a busy server the cache may be older than the last answer.
    async fn catch_up(&self, request: &Request) -> Result<()> {
        let is_content = |(name, value): &(&str, String)| *name == "resourceVersion" && value == "0";
        if request.method != "GET" || !request.query.iter().any(is_content) {
            return Ok(());
        }
        let path = self.memory.fill(&request.path);
        let (_, _, now) = Box::pin(self.send(&Request::new("GET", path.clone()))).await?;
        if let Some(version) = now["metadata"]["resourceVersion"].as_str() {
            let at_least = Request::new("GET", path).query("resourceVersion", version);
            Box::pin(self.send(&at_least)).await?;
        }
        Ok(())
    }

    async fn begin(&self, request: &Request) -> Result<http::Response<ClientBody>> {
        self.catch_up(request).await?;
        let mut uri = self.memory.fill(&request.path);
        if !request.query.is_empty() {
            let pairs = request
                .query
                .iter()
                .map(|(name, value)| (*name, self.memory.fill(value)));
            let query = form_urlencoded::Serializer::new(String::new())
                .extend_pairs(pairs)
                .finish();
            uri = format!("{uri}?{query}");
        }
        let mut built = http::Request::builder()
            .method(request.method)
            .uri(uri)
            .header(header::USER_AGENT, AGENT);
        built = built.header(header::ACCEPT, request.accept.unwrap_or("application/json"));
        match (&request.content_type, &request.body) {
            (Some(media), _) => built = built.header(header::CONTENT_TYPE, media),
            (None, Body::Nothing) => {}
            (None, _) => built = built.header(header::CONTENT_TYPE, "application/json"),
        }
        let bytes = self.memory.body(request);
        let built = built
            .body(ClientBody::from(bytes))
            .with_context(|| format!("cannot write {request}"))?;
        self.client
            .send(built)
            .await
            .with_context(|| format!("no answer to {request}"))
    }

    async fn send(&self, request: &Request) -> Result<(u16, Value, Value)> {
        let (parts, body) = self.begin(request).await?.into_parts();
        let bytes = body.collect_bytes().await?;
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into());
        Ok((parts.status.as_u16(), headers(&parts.headers), body))
    }

    /// The watch events up to the object with this name.
    async fn events(&mut self, marker: &str) -> Result<Vec<Value>> {
        let mut watch = self.watch.take().context("no watch is open")?;
        let mut events = Vec::new();
        loop {
            let line = match self.seen_early.take() {
                Some(line) => Ok(Some(Ok(line))),
                None => tokio::time::timeout(PATIENCE, watch.next()).await,
            };
            let Ok(Some(line)) = line else {
                bail!("the watch ended before {marker}: {}", Value::from(events));
            };
            let event: Value = serde_json::from_str(&line?)?;
            let metadata = match &event["object"]["rows"][0]["object"]["metadata"] {
                Value::Null => &event["object"]["metadata"],
                row => row,
            };
            let is_end = metadata["name"] == marker;
            // The server sends bookmarks at any time, except for the one after the initial events.
            let initial_end = metadata["annotations"]["k8s.io/initial-events-end"] == "true";
            if event["type"] != "BOOKMARK" {
                events.push(self.normal.value(&event));
            } else if initial_end {
                events.push(json!("«end of initial events»"));
            }
            if is_end || event["type"] == "ERROR" {
                return Ok(events);
            }
        }
    }

    /// Waits until controllers have reacted to a write.
    async fn settle(&mut self, request: &Request) -> Result<()> {
        let Some((plural, name)) = request.about.as_ref().and_then(|key| key.split_once('/')) else {
            return Ok(());
        };
        let path = kinds::path(plural, &self.memory.fill(name));
        let path = self.memory.fill(&path);
        let seen = self.until(&path, is_settled).await?;
        if seen["metadata"]["uid"].is_string() {
            self.memory.learn(request, &seen);
        }
        Ok(())
    }

    async fn until(&self, path: &str, settled: impl Fn(&Value) -> bool) -> Result<Value> {
        let request = Request::new("GET", path);
        let wait = async {
            loop {
                let (_, _, body) = self.send(&request).await?;
                if settled(&body) {
                    return Ok(body);
                }
                tokio::time::sleep(GLANCE).await;
            }
        };
        tokio::time::timeout(PATIENCE, wait)
            .await
            .with_context(|| format!("{path} never settled"))?
    }
}

/// Whether no controller has anything left to do with an object.
fn is_settled(object: &Value) -> bool {
    let metadata = &object["metadata"];
    if !metadata["uid"].is_string() {
        return true;
    }
    // Controllers also handle an object that is being deleted, as long as a finalizer keeps it.
    if metadata["deletionTimestamp"].is_string() {
        let finalizers = metadata["finalizers"].as_array();
        let ours = |one: &Value| one.as_str().is_some_and(|one| one.starts_with("example.com/"));
        let held = metadata["deletionGracePeriodSeconds"]
            .as_i64()
            .is_some_and(|grace| grace > 0)
            || finalizers.is_some_and(|finalizers| !finalizers.is_empty() && finalizers.iter().all(ours));
        return held && (object["kind"] == "PersistentVolumeClaim" || is_observed(object));
    }
    is_observed(object)
}

/// Whether its controller has observed the latest version of an object.
fn is_observed(object: &Value) -> bool {
    let metadata = &object["metadata"];
    match object["kind"].as_str() {
        Some("PodDisruptionBudget") => {
            object["status"]["observedGeneration"].as_i64() >= metadata["generation"].as_i64()
        }
        // The controller overwrites foreign values of its pod counts: there are no pods, unless `replicas` is unset.
        Some("StatefulSet") => {
            object["status"]["observedGeneration"].as_i64() >= metadata["generation"].as_i64()
                && (metadata["deletionTimestamp"].is_string()
                    || object["status"]["replicas"] == object["spec"]["replicas"])
        }
        // Its controller restores the protection finalizer when it is removed.
        Some("PersistentVolumeClaim") => metadata["finalizers"]
            .as_array()
            .is_some_and(|all| all.contains(&"kubernetes.io/pvc-protection".into())),
        _ => true,
    }
}

fn marker_name(request: &Request) -> String {
    match &request.body {
        Body::Json(object) => object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        _ => String::new(),
    }
}

/// The headers that are compared.
fn headers(headers: &http::HeaderMap) -> Value {
    let mut said = json!({});
    for name in [header::CONTENT_TYPE, header::WARNING, header::RETRY_AFTER] {
        let values: Vec<_> = headers
            .get_all(&name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        if !values.is_empty() && values != ["application/json"] {
            said[name.as_str()] = json!(values);
        }
    }
    said
}
