//! The user that a client is authenticated as, like `kubectl auth whoami`.

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::PostParams;
use kube::{Api, Client};

/// The name of the user, if available: API servers before 1.28 lack it, and an administrator can deny the request.
pub async fn whoami(client: &Client) -> Option<String> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = reviews
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await
        .ok()?;
    let name = review.status?.user_info?.username?;
    (!name.is_empty()).then_some(name)
}
