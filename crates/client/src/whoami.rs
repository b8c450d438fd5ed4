//! The user that a client is authenticated as, as `kubectl auth whoami` has it.

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::PostParams;
use kube::{Api, Client};

/// The name of the user, if the API server says it: those before 1.28 do not, and an administrator can withhold the right to ask.
pub async fn whoami(client: &Client) -> Option<String> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = reviews
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await
        .ok()?;
    let name = review.status?.user_info?.username?;
    (!name.is_empty()).then_some(name)
}
