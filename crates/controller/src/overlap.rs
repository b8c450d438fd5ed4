//! Two operators that manage the same namespaces never both lead, even if their Leases differ.
//!
//! An operator on a laptop and the deployed one would undo each other's work, so each writes the namespaces that it manages into its
//! Lease. After an operator has taken its own Lease, and before it writes anything else, it looks for another live operator that overlaps,
//! and does not lead if there is one. Of two that start at the same time at least one sees the other, because each has written its Lease
//! before it looks. An operator that may read all Leases keeps looking while it leads, and yields to one that may not.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ListParams, ObjectMeta};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use stateward_client::DeserializeGuard;
use tokio::time::sleep;

/// The default namespace of the Lease: the same in every context and wherever the operator runs.
pub const LEASE_NAMESPACE: &str = "stateward-system";

const LABEL: (&str, &str) = ("app.kubernetes.io/name", "stateward");
const NAMESPACES: &str = "stateward.dev/namespaces";
const ALL: &str = "*";

/// How often to look whether a possibly abandoned Lease changes.
const LOOKS: u32 = 5;

/// A Lease that was not renewed for this long is abandoned, however wrong its clock may be.
const LEFT_BEHIND: SignedDuration = SignedDuration::from_hours(1);

/// How many Leases are read at a time.
const PAGE: u32 = 100;

/// The namespaces that an operator manages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope(Vec<String>);

impl Scope {
    /// These namespaces, or all if empty.
    pub fn of(namespaces: &[String]) -> Self {
        Self(namespaces.to_vec())
    }

    /// The scope in a Lease. Without the annotation it is every namespace.
    fn read(lease: &Lease) -> Self {
        let written = lease.annotations().get(NAMESPACES).map_or(ALL, String::as_str);
        match written {
            ALL => Self::default(),
            some => Self(some.split(',').map(str::to_owned).collect()),
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.0.is_empty() || other.0.is_empty() || self.0.iter().any(|one| other.0.contains(one))
    }

    /// Writes the scope into the metadata of a Lease, so that other operators find it.
    pub(crate) fn write(&self, metadata: &mut ObjectMeta) {
        let (key, value) = LABEL;
        let labels: &mut BTreeMap<_, _> = metadata.labels.get_or_insert_default();
        labels.insert(key.into(), value.into());
        let namespaces = match self.0.as_slice() {
            [] => ALL.to_owned(),
            some => some.join(","),
        };
        let annotations: &mut BTreeMap<_, _> = metadata.annotations.get_or_insert_default();
        annotations.insert(NAMESPACES.into(), namespaces);
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [] => f.write_str("all namespaces"),
            [one] => write!(f, "namespace {one}"),
            some => write!(f, "namespaces {}", some.join(", ")),
        }
    }
}

/// Another operator that leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherLeader {
    holder: String,
    namespace: String,
    lease: String,
    scope: Scope,
}

impl fmt::Display for OtherLeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            holder,
            namespace,
            lease,
            scope,
        } = self;
        write!(
            f,
            "operator {holder} manages {scope} (Lease {lease} in namespace {namespace}), and two operators would undo each other's \
             work; stop that one, or give this one other namespaces with --namespace, or stand by behind it with --lease-namespace \
             {namespace} --lease-name {lease}"
        )
    }
}

/// Another live operator with a Lease of its own whose namespaces overlap with `scope`. `own` is the namespace and the name of the
/// caller's Lease.
///
/// `trusted` is for an operator that serves several tenants: tenants may create Leases in their own namespaces, so it looks only
/// where they may not, in [`LEASE_NAMESPACE`] and the namespace of its own Lease. Other operators look everywhere.
///
/// An operator counts as alive as in the election: its Lease changes. The times in a Lease may come from a wrong clock.
pub async fn other_leader(
    client: &Client,
    own: (&str, &str),
    scope: &Scope,
    trusted: bool,
    now: Timestamp,
) -> kube::Result<Option<OtherLeader>> {
    let mut known = leases(client, own.0, trusted).await?;
    known.retain(|lease| conflicts(lease, own, scope) && !is_left_behind(lease, now));
    let Some(longest) = known.iter().map(duration).max() else {
        return Ok(None);
    };
    for lease in &known {
        tracing::info!(
            leader = holder(lease),
            namespace = lease.namespace(),
            lease = lease.name_any(),
            "waits up to {longest:?} to see whether another operator is alive"
        );
    }
    for _ in 0..LOOKS {
        sleep(longest / LOOKS + Duration::from_millis(100)).await;
        let now = leases(client, own.0, trusted).await?;
        let alive = now.iter().find(|lease| {
            let before = known
                .iter()
                .find(|before| before.metadata.uid == lease.metadata.uid);
            before.is_some_and(|before| before.spec != lease.spec && !holder(lease).is_empty())
        });
        if let Some(lease) = alive {
            return Ok(Some(describe(lease)));
        }
    }
    Ok(None)
}

/// Waits for another live operator with a Lease of its own, in any namespace, whose namespaces overlap with `scope`.
pub async fn other_leader_appears(client: &Client, own: (&str, &str), scope: &Scope) -> OtherLeader {
    let api = Api::<DeserializeGuard<Lease>>::all(client.clone());
    let mut events = pin!(watcher(api, watcher::Config::default().labels(&labels())).default_backoff());
    let mut known = HashMap::new();
    loop {
        let lease = match events.next().await {
            Some(Ok(watcher::Event::Apply(DeserializeGuard::Valid(lease)))) => lease,
            Some(Ok(watcher::Event::InitApply(DeserializeGuard::Valid(lease)))) => lease,
            Some(Ok(_)) => continue,
            Some(Err(error)) => {
                tracing::debug!(%error, "cannot watch for other operators");
                continue;
            }
            // A watch does not end.
            None => std::future::pending().await,
        };
        let before = known.insert(lease.uid(), lease.spec.clone());
        if before.is_some_and(|before| before != lease.spec) && conflicts(&lease, own, scope) {
            return describe(&lease);
        }
    }
}

/// Whether a Lease is held by another operator whose namespaces overlap with `scope`.
fn conflicts(lease: &Lease, own: (&str, &str), scope: &Scope) -> bool {
    let named = (lease.namespace().unwrap_or_default(), lease.name_any());
    let is_own = (named.0.as_str(), named.1.as_str()) == own;
    !is_own && !holder(lease).is_empty() && Scope::read(lease).overlaps(scope)
}

fn is_left_behind(lease: &Lease, now: Timestamp) -> bool {
    let renewed = lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref());
    renewed.is_some_and(|renewed| now.duration_since(renewed.0) > LEFT_BEHIND)
}

fn labels() -> String {
    let (key, value) = LABEL;
    format!("{key}={value}")
}

/// The Leases of operators.
async fn leases(client: &Client, home: &str, trusted: bool) -> kube::Result<Vec<Lease>> {
    if !trusted {
        match list(&Api::all(client.clone())).await {
            Ok(leases) => return Ok(leases),
            Err(error) if !is_forbidden(&error) => return Err(error),
            Err(_) => {}
        }
    }
    let mut leases = Vec::new();
    let other = (home != LEASE_NAMESPACE).then_some(LEASE_NAMESPACE);
    for namespace in [home].into_iter().chain(other) {
        match list(&Api::namespaced(client.clone(), namespace)).await {
            Ok(there) => leases.extend(there),
            Err(error) if is_forbidden(&error) => tracing::warn!(
                namespace,
                "may not list Leases here, so another operator that leads would not be noticed"
            ),
            Err(error) => return Err(error),
        }
    }
    Ok(leases)
}

/// A Lease that fails to deserialize is skipped: no stateward operator has written it.
async fn list(api: &Api<DeserializeGuard<Lease>>) -> kube::Result<Vec<Lease>> {
    let mut params = ListParams::default().labels(&labels()).limit(PAGE);
    let mut leases = Vec::new();
    loop {
        let page = api.list(&params).await?;
        for lease in page.items {
            match lease {
                DeserializeGuard::Valid(lease) if !holder(&lease).is_empty() => leases.push(lease),
                DeserializeGuard::Valid(_) => {}
                DeserializeGuard::Invalid(metadata, why) => tracing::warn!(
                    namespace = metadata.namespace,
                    lease = metadata.name,
                    why,
                    "ignores a Lease that fails to deserialize"
                ),
            }
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(leases),
        }
    }
}

fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

fn holder(lease: &Lease) -> &str {
    let spec = lease.spec.as_ref();
    spec.and_then(|spec| spec.holder_identity.as_deref())
        .unwrap_or_default()
}

fn duration(lease: &Lease) -> Duration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
    // Otherwise a user who may write Leases could keep every operator from leading.
    Duration::from_secs(
        seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .unwrap_or(15)
            .min(60),
    )
}

fn describe(lease: &Lease) -> OtherLeader {
    OtherLeader {
        holder: holder(lease).to_owned(),
        namespace: lease.namespace().unwrap_or_default(),
        lease: lease.name_any(),
        scope: Scope::read(lease),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
    use rstest::rstest;

    fn scope(namespaces: &[&str]) -> Scope {
        Scope(namespaces.iter().map(|name| (*name).to_owned()).collect())
    }

    #[rstest]
    #[case(&[], &[], true)]
    #[case(&[], &["a"], true)]
    #[case(&["a"], &[], true)]
    #[case(&["a", "b"], &["b", "c"], true)]
    #[case(&["a"], &["b"], false)]
    fn scopes_overlap(#[case] one: &[&str], #[case] other: &[&str], #[case] overlap: bool) {
        assert_eq!(scope(one).overlaps(&scope(other)), overlap);
    }

    #[rstest]
    #[case::renewed_just_now(0, false)]
    #[case::by_a_clock_that_is_slow(3_500, false)]
    #[case::by_a_clock_that_is_fast(-1_000_000, false)]
    #[case::long_ago(3_700, true)]
    fn a_lease_is_left_behind_after_an_hour(#[case] seconds: i64, #[case] left_behind: bool) {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let renewed = now - SignedDuration::from_secs(seconds);
        let mut lease = Lease::default();
        assert!(!is_left_behind(&lease, now), "one that says nothing");
        lease.spec.get_or_insert_default().renew_time = Some(MicroTime(renewed));
        assert_eq!(is_left_behind(&lease, now), left_behind);
    }

    /// The API server accepts times that do not fit our timestamp type.
    #[tokio::test]
    async fn a_lease_that_fails_to_deserialize_keeps_nobody_from_leading() {
        let lease = |namespace: &str, renewed: &str| {
            serde_json::json!({
                "metadata": {"name": "stateward", "namespace": namespace, "uid": namespace},
                "spec": {"holderIdentity": "someone", "leaseDurationSeconds": 15, "renewTime": renewed},
            })
        };
        let items = [
            lease("tenant", "9999-12-31T23:59:59.000000Z"),
            lease("other", "2026-01-01T00:00:00.000000Z"),
        ];
        let leases = serde_json::json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "LeaseList", "metadata": {}, "items": items,
        });
        let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
            let body = leases.to_string().into_bytes();
            async { Ok::<_, std::convert::Infallible>(http::Response::new(kube::client::Body::from(body))) }
        });
        let read = list(&Api::all(Client::new(service, "default"))).await.unwrap();
        let read: Vec<_> = read.iter().filter_map(ResourceExt::namespace).collect();
        assert_eq!(read, ["other"]);
    }

    #[rstest]
    #[case(&[], "all namespaces")]
    #[case(&["a"], "namespace a")]
    #[case(&["a", "b"], "namespaces a, b")]
    fn a_lease_says_which_namespaces(#[case] namespaces: &[&str], #[case] words: &str) {
        let mut lease = Lease::default();
        scope(namespaces).write(&mut lease.metadata);
        assert_eq!(Scope::read(&lease), scope(namespaces));
        assert_eq!(Scope::read(&lease).to_string(), words);
        assert_eq!(
            Scope::read(&Lease::default()),
            Scope::default(),
            "one that says nothing"
        );
    }
}
