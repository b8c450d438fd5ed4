//! The public API of the embedded cluster: start it, get clients, read the audit log and the commits.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::json::{Value, json};
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request, Response, header};
use axum::middleware;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use stateward_clock::Clock;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;

use crate::audit::Entry;
use crate::controllers::{self, MaxUnavailable};
use crate::faults::{Calm, Connection, Plan};
use crate::http::negotiate::Lean;
use crate::http::{self, User};
use crate::server::{Caller, Server, Target, WriteOptions};
use crate::store::{Change, Shelf};

/// The options of a cluster.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster's only source of time.
    pub clock: Clock,
    /// The seed of UIDs and generated names.
    pub seed: u64,
    /// Whether StatefulSets may have more than one pod unavailable at a time, and by which algorithm.
    pub max_unavailable: MaxUnavailable,
    /// User names by bearer token.
    pub users: BTreeMap<String, String>,
    /// Whether a request without a token acts as the administrator; otherwise it is rejected.
    pub anonymous: bool,
    /// The CA certificate of the server, in PEM; pods find it in `kube-root-ca.crt`.
    pub certificate: String,
    /// Whether watches never end and send as few bookmarks as keep a client from relisting, so that idle time costs next to nothing. A real
    /// server does not do this.
    pub patient_watches: bool,
}

impl Options {
    /// The default options with this clock.
    pub fn at(clock: Clock) -> Self {
        Self {
            clock,
            seed: 1,
            max_unavailable: MaxUnavailable::Off,
            users: BTreeMap::new(),
            anonymous: true,
            certificate: String::new(),
            patient_watches: false,
        }
    }
}

/// Adds the `Date` header to a response.
fn dated(mut response: Response<Body>, now: Timestamp) -> Response<Body> {
    let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&now);
    // A year beyond 9999 has no such form; the HTTP server then uses the machine's clock.
    if let Some(date) = date.ok().and_then(|date| HeaderValue::try_from(date).ok()) {
        response.headers_mut().insert(header::DATE, date);
    }
    response
}

/// A running API server with its controllers. Stops when it is dropped.
pub struct Cluster {
    server: Arc<Server>,
    controllers: JoinHandle<()>,
}

impl Cluster {
    /// Starts a cluster on the current runtime.
    pub fn start(options: Options) -> Self {
        let server = Arc::new(Server::new(options));
        bootstrap(&server);
        let controllers = controllers::all(&server);
        let controllers = tokio::spawn(controllers::run(server.clone(), controllers));
        Self { server, controllers }
    }

    /// The API server as a service, for a socket. Its `Date` headers use the cluster's clock.
    pub fn router(&self) -> Router {
        let clock = self.server.clock.clone();
        http::router(self.server.clone()).layer(middleware::map_response(move |response| {
            std::future::ready(dated(response, clock.now()))
        }))
    }

    /// A client in this process, acting as `user`, without a socket.
    pub fn client(&self, user: &str) -> kube::Client {
        self.client_with(user, Arc::new(Calm))
    }

    /// Like [`Self::client`], for a reader that does not need `managedFields`: objects come without. They are half of a pod, and skipping
    /// them costs most of the work of watching every pod.
    pub fn lean_client(&self, user: &str) -> kube::Client {
        self.connect(user, Some(Lean), Arc::new(Calm))
    }

    /// A client in this process with injected faults from `plan`.
    pub fn client_with(&self, user: &str, plan: Arc<dyn Plan>) -> kube::Client {
        self.connect(user, None, plan)
    }

    fn connect(&self, user: &str, lean: Option<Lean>, plan: Arc<dyn Plan>) -> kube::Client {
        let user = User(user.to_owned());
        let connection = Connection::new(http::router(self.server.clone()), self.server.clock.clone(), plan);
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(user.clone());
            if let Some(lean) = lean {
                request.extensions_mut().insert(lean);
            }
            connection.clone().send(request)
        });
        kube::Client::new(service, "default")
    }

    /// Every audited write so far, oldest first.
    pub fn audit(&self) -> Vec<Entry> {
        self.server.audit.entries()
    }

    /// Every commit from now on.
    pub fn commits(&self) -> Commits {
        Commits(self.server.store.feed())
    }

    /// Compacts the history: watches from older versions get a 410.
    pub fn compact(&self) {
        self.server.store.compact();
    }
}

/// One change of one object, in commit order.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Its revision, which is also the object's `resourceVersion`.
    pub revision: u64,
    /// `pods`, `statefulsets.apps`
    pub resource: Arc<str>,
    /// Empty for cluster-scoped resources.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// The object after the change, or its last state. Without its `managedFields`.
    pub object: Shown,
    /// Whether the object was deleted.
    pub deleted: bool,
}

/// The object of a commit, converted on first use: most readers need only the name.
#[derive(Clone, Debug)]
pub struct Shown(Arc<(Arc<Value>, OnceLock<serde_json::Value>)>);

impl Shown {
    /// One value in it, by its field path, without converting the rest. Null if there is none.
    pub fn at(&self, path: &[&str]) -> serde_json::Value {
        let (kept, shown) = &*self.0;
        match shown.get() {
            Some(shown) => path.iter().fold(shown, |value, field| &value[*field]).clone(),
            None => path.iter().fold(&**kept, |value, field| &value[*field]).into(),
        }
    }
}

impl Deref for Shown {
    type Target = serde_json::Value;

    fn deref(&self) -> &serde_json::Value {
        let (kept, shown) = &*self.0;
        shown.get_or_init(|| (&**kept).into())
    }
}

impl From<Arc<Value>> for Shown {
    fn from(object: Arc<Value>) -> Self {
        Self(Arc::new((object, OnceLock::new())))
    }
}

impl From<serde_json::Value> for Shown {
    fn from(object: serde_json::Value) -> Self {
        Self(Arc::new((Arc::default(), object.into())))
    }
}

/// Commits in order, queued until they are read.
pub struct Commits(UnboundedReceiver<(Shelf, Arc<Change>)>);

impl Iterator for Commits {
    type Item = Commit;

    /// The next queued commit; never waits.
    fn next(&mut self) -> Option<Commit> {
        self.0.try_recv().ok().map(Commit::from)
    }
}

impl Commits {
    /// The next commit, waiting for it. `None` when the cluster has stopped.
    pub async fn recv(&mut self) -> Option<Commit> {
        self.0.recv().await.map(Commit::from)
    }
}

impl From<(Shelf, Arc<Change>)> for Commit {
    fn from((shelf, change): (Shelf, Arc<Change>)) -> Self {
        Self {
            revision: change.revision,
            resource: shelf.name(),
            namespace: change.key.namespace.clone(),
            name: change.key.name.clone(),
            object: change.object.value.clone().into(),
            deleted: change.deleted,
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.controllers.abort();
    }
}

/// Creates the initial objects of a cluster.
fn bootstrap(server: &Server) {
    let caller = Caller {
        user: "system:apiserver".to_owned(),
        agent: "kube-apiserver".to_owned(),
    };
    let options = WriteOptions::default();
    let create = |resource: &str, namespace: &str, object: Value| {
        let Some(resource) = server.registry.by_id(resource) else {
            return;
        };
        let target = Target {
            resource,
            namespace: namespace.to_owned(),
            name: String::new(),
            subresource: String::new(),
        };
        let made = server.create(&target, &object, &options, &caller);
        debug_assert!(made.is_ok(), "furnishing failed: {made:?}");
    };
    for namespace in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        create("namespaces", "", json!({"metadata": {"name": namespace}}));
    }
    create(
        "services",
        "default",
        json!({
            "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
            "spec": {"clusterIP": "10.0.0.1", "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]},
        }),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::StreamExt;
    use k8s_openapi::api::core::v1::Namespace;
    use kube::Api;
    use kube::api::{ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
    use kube::runtime::watcher;

    /// Long runs start thousands of clusters in one process.
    #[tokio::test(start_paused = true)]
    async fn nothing_of_a_cluster_is_left_when_it_and_its_clients_are_dropped() {
        let cluster = Cluster::start(Options::at(Clock::wall()));
        let server = Arc::downgrade(&cluster.server);
        let api: Api<Namespace> = Api::all(cluster.client("system:admin"));
        let mut watch = watcher(api, watcher::Config::default()).boxed();
        assert!(watch.next().await.is_some(), "the watch shows what is there");
        drop((watch, cluster));
        // Cancelled tasks need a turn to end.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(server.strong_count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lean_client_is_told_of_no_managers_and_takes_none_away() {
        let cluster = Cluster::start(Options::at(Clock::wall()));
        let [lean, whole] = [cluster.lean_client("test"), cluster.client("test")].map(Api::<Namespace>::all);
        let is_managed = |namespace: &Namespace| namespace.metadata.managed_fields.is_some();
        let label = |value: &str| Patch::Merge(serde_json::json!({"metadata": {"labels": {"a": value}}}));
        let params = PatchParams::default();

        for (api, value, expected) in [(&lean, "1", false), (&whole, "2", true), (&lean, "3", false)] {
            let written = api.patch("default", &params, &label(value)).await.unwrap();
            assert_eq!(is_managed(&written), expected, "written");
            assert_eq!(is_managed(&api.get("default").await.unwrap()), expected, "read");
            let listed = api.list(&ListParams::default()).await.unwrap();
            assert!(listed.iter().all(|one| is_managed(one) == expected), "listed");
            let mut watch = api.watch(&WatchParams::default(), "0").await.unwrap().boxed();
            let Some(Ok(WatchEvent::Added(watched))) = watch.next().await else {
                panic!("no first event")
            };
            assert_eq!(is_managed(&watched), expected, "watched");
        }
        // A write without managers leaves them unchanged.
        let bare = lean.get("default").await.unwrap();
        lean.replace("default", &PostParams::default(), &bare)
            .await
            .unwrap();
        assert!(is_managed(&whole.get("default").await.unwrap()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_patient_watch_stays_open_and_says_little() {
        let clock = Clock::starting_at(jiff::Timestamp::UNIX_EPOCH, 1.0);
        let cluster = Cluster::start(Options {
            patient_watches: true,
            ..Options::at(clock.clone())
        });
        let api: Api<Namespace> = Api::all(cluster.client("system:admin"));
        let params = WatchParams::default().timeout(200);
        let mut watch = api.watch(&params, "0").await.unwrap().boxed();
        let hour = clock.sleep(std::time::Duration::from_secs(3600));
        let mut hour = std::pin::pin!(hour);
        let mut bookmarks = 0;
        loop {
            tokio::select! {
                () = &mut hour => break,
                told = watch.next() => match told.expect("it stays open").unwrap() {
                    WatchEvent::Bookmark(_) => bookmarks += 1,
                    other => assert!(matches!(other, WatchEvent::Added(_)), "{other:?}"),
                },
            }
        }
        assert_eq!(bookmarks, 3600 / 290);
    }
}
