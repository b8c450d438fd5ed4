//! The three requests for a pod: bind it, write its status, delete it for good.

use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use serde::Serialize;
use serde_json::{Value, json};

use crate::api::{Key, MANAGER, Refusal};
use crate::object::Object;
use crate::status::PodStatus;
use crate::version::version_in;

#[derive(Debug)]
pub(crate) enum Request {
    Bind { node: String },
    Status(PodStatus),
    Delete,
}

#[derive(Debug, Serialize)]
struct StatusPatch<'a> {
    metadata: Incarnation<'a>,
    status: PodStatus,
}

#[derive(Debug, Serialize)]
struct Incarnation<'a> {
    uid: &'a str,
}

#[derive(Debug)]
pub(crate) enum Answer {
    Bound(String),
    /// At this version; the watch delivers the object.
    Written(u64),
    Deleted,
    /// The server rejected the request because the pod has changed; this is its current state.
    Reread(Box<Object>),
    Gone,
}

impl Answer {
    pub(crate) fn is_progress(&self) -> bool {
        !matches!(self, Self::Reread(_))
    }
}

/// Sends `request` for the pod with this uid: each request carries the uid, so that the server rejects it for a successor of the same name.
pub(crate) async fn send(
    pods: Api<Object>,
    key: Key,
    uid: String,
    request: Request,
) -> Result<Answer, Refusal> {
    let refusal = |error| Refusal::of(&format!("pod {}/{}", key.namespace, key.name), error);
    match try_once(&pods, &key.name, &uid, request).await {
        Ok(answer) => Ok(answer),
        Err(error) => match refusal(error) {
            Refusal::Stale(..) => match pods.get_opt(&key.name).await {
                Ok(Some(pod)) => Ok(Answer::Reread(Box::new(pod))),
                Ok(None) => Ok(Answer::Gone),
                Err(error) => Err(refusal(error)),
            },
            failed @ Refusal::Failed(..) => Err(failed),
        },
    }
}

async fn try_once(pods: &Api<Object>, name: &str, uid: &str, request: Request) -> kube::Result<Answer> {
    match request {
        Request::Bind { node } => {
            let binding = json!({
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": { "name": name, "uid": uid },
                "target": { "apiVersion": "v1", "kind": "Node", "name": node },
            });
            let params = PostParams {
                field_manager: Some(MANAGER.into()),
                ..PostParams::default()
            };
            // The response is a Status, which is not needed.
            let _: Value = pods
                .create_subresource("binding", name, &params, &binding)
                .await?;
            Ok(Answer::Bound(node))
        }
        Request::Status(status) => {
            let metadata = Incarnation { uid };
            let patch = Patch::Strategic(StatusPatch { metadata, status });
            let params = PatchParams {
                field_manager: Some(MANAGER.into()),
                ..PatchParams::default()
            };
            let request = kube::core::Request::new(pods.resource_url());
            let request = request.patch_subresource("status", name, &params, &patch);
            Ok(Answer::Written(version_in(&text(pods, request).await?)))
        }
        Request::Delete => {
            let preconditions = Preconditions {
                uid: Some(uid.into()),
                resource_version: None,
            };
            let params = DeleteParams::default()
                .grace_period(0)
                .preconditions(preconditions);
            // The response is the pod or a Status, neither of which is needed.
            let request = kube::core::Request::new(pods.resource_url()).delete(name, &params);
            text(pods, request).await?;
            Ok(Answer::Deleted)
        }
    }
}

/// The raw response.
async fn text(
    pods: &Api<Object>,
    request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
) -> kube::Result<String> {
    let request = request.map_err(kube::Error::BuildRequest)?;
    pods.clone().into_client().request_text(request).await
}
