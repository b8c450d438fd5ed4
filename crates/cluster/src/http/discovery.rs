//! Discovery: the groups, versions and resources of this server.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::json::{Value, json};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, header};

use super::negotiate::wants_aggregated_discovery;
use super::{answer, not_found};
use crate::resource::{Resource, join};
use crate::server::Server;

/// The Kubernetes version that this server behaves like.
pub(super) fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": "v1.36.3+stateward", "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "rust", "compiler": "rustc", "platform": "embedded/any",
    })
}

/// `/api` or `/apis`, in the form that the client prefers.
pub(super) fn groups(server: &Server, core: bool, headers: &HeaderMap) -> Response<Body> {
    if wants_aggregated_discovery(headers) {
        let document = aggregated(server, core);
        let mut response = answer::json(200, &document);
        let media = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
        return response;
    }
    if core {
        return answer::json(
            200,
            &json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        );
    }
    let groups: Vec<_> = by_group(server, false)
        .into_iter()
        .map(|(group, versions)| described(&group, &versions))
        .collect();
    answer::json(
        200,
        &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}),
    )
}

/// `/apis/apps`
pub(super) fn group(server: &Server, group: &str) -> Response<Body> {
    match by_group(server, false).remove(group) {
        Some(versions) => {
            let mut document = described(group, &versions);
            document["kind"] = "APIGroup".into();
            document["apiVersion"] = "v1".into();
            answer::json(200, &document)
        }
        None => not_found(),
    }
}

/// `/apis/apps/v1`
pub(super) fn resources(server: &Server, group: &str, version: &str) -> Response<Body> {
    let served: Vec<_> = server
        .registry
        .all()
        .into_iter()
        .filter(|one| one.group == group && one.version == version)
        .collect();
    if served.is_empty() {
        return not_found();
    }
    let resources: Vec<_> = served.iter().flat_map(|resource| legacy(resource)).collect();
    answer::json(
        200,
        &json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": join(group, version), "resources": resources}),
    )
}

/// The resources of each group, by version. The core group has no name.
fn by_group(server: &Server, core: bool) -> BTreeMap<String, BTreeMap<String, Vec<Arc<Resource>>>> {
    let mut groups: BTreeMap<String, BTreeMap<String, Vec<Arc<Resource>>>> = BTreeMap::new();
    for resource in server.registry.all() {
        if resource.group.is_empty() == core {
            let versions = groups.entry(resource.group.clone()).or_default();
            versions
                .entry(resource.version.clone())
                .or_default()
                .push(resource);
        }
    }
    groups
}

fn described(group: &str, versions: &BTreeMap<String, Vec<Arc<Resource>>>) -> Value {
    let versions: Vec<_> = versions
        .keys()
        .rev()
        .map(|version| json!({"groupVersion": join(group, version), "version": version}))
        .collect();
    json!({"name": group, "versions": versions, "preferredVersion": versions.first()})
}

/// A resource and its subresources, one row each.
fn legacy(resource: &Resource) -> Vec<Value> {
    let mut row = json!({
        "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
        "kind": resource.kind, "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        row["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        row["categories"] = json!(resource.categories);
    }
    let parts = resource.subresources.iter().map(|part| {
        let mut row = json!({
            "name": format!("{}/{}", resource.plural, part.name), "singularName": "", "namespaced": resource.namespaced,
            "kind": part.kind, "verbs": part.verbs,
        });
        if part.group != resource.group {
            row["group"] = part.group.as_str().into();
            row["version"] = part.version.as_str().into();
        }
        row
    });
    std::iter::once(row).chain(parts).collect()
}

/// Everything in one document.
fn aggregated(server: &Server, core: bool) -> Value {
    let items: Vec<_> = by_group(server, core)
        .into_iter()
        .map(|(group, versions)| {
            let versions: Vec<_> = versions
                .into_iter()
                .rev()
                .map(|(version, resources)| {
                    let resources: Vec<_> = resources.iter().map(|resource| discovered(resource)).collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let metadata = if group.is_empty() {
                json!({})
            } else {
                json!({"name": group})
            };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn discovered(resource: &Resource) -> Value {
    let kind =
        |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let mut row = json!({
        "resource": resource.plural, "responseKind": kind(&resource.group, &resource.version, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular, "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        row["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        row["categories"] = json!(resource.categories);
    }
    if !resource.subresources.is_empty() {
        let parts: Vec<_> = resource
            .subresources
            .iter()
            .map(|part| {
                let responds = kind(&part.group, &part.version, &part.kind);
                json!({"subresource": part.name, "responseKind": responds, "verbs": part.verbs})
            })
            .collect();
        row["subresources"] = parts.into();
    }
    row
}
