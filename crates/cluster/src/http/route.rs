//! Resolves a path.

use std::borrow::Cow;

/// The target of a request.
#[derive(Debug, PartialEq)]
pub(super) enum Route {
    Health,
    Version,
    /// `/api` or `/apis`
    Groups {
        core: bool,
    },
    Group {
        group: String,
    },
    GroupVersion {
        group: String,
        version: String,
    },
    OpenApi,
    OpenApiV2,
    OpenApiOf {
        path: String,
    },
    Resource(ResourcePath),
    Nowhere,
}

/// A path to a resource; missing parts are empty.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ResourcePath {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) namespace: String,
    pub(super) plural: String,
    pub(super) name: String,
    pub(super) subresource: String,
    /// Whether the path continues after the subresource. Custom resources accept that.
    pub(super) goes_on: bool,
}

impl Route {
    pub(super) fn read(path: &str) -> Self {
        let decoded: Vec<_> = path.trim_matches('/').split('/').map(percent_decode).collect();
        let parts: Vec<&str> = decoded.iter().map(|part| &**part).collect();
        match parts.as_slice() {
            ["healthz" | "livez" | "readyz", ..] => Self::Health,
            ["version"] => Self::Version,
            ["api"] => Self::Groups { core: true },
            ["apis"] => Self::Groups { core: false },
            ["api", version] => Self::GroupVersion {
                group: String::new(),
                version: (*version).to_owned(),
            },
            ["apis", group] => Self::Group {
                group: (*group).to_owned(),
            },
            ["apis", group, version] => Self::GroupVersion {
                group: (*group).to_owned(),
                version: (*version).to_owned(),
            },
            ["openapi", "v2"] => Self::OpenApiV2,
            ["openapi", "v3"] => Self::OpenApi,
            ["openapi", "v3", rest @ ..] => Self::OpenApiOf { path: rest.join("/") },
            ["api", version, rest @ ..] => resource("", version, rest),
            ["apis", group, version, rest @ ..] => resource(group, version, rest),
            _ => Self::Nowhere,
        }
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Route {
    let path = |namespace: &str, plural: &str, name: &str, subresource: &str| {
        Route::Resource(ResourcePath {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: namespace.to_owned(),
            plural: plural.to_owned(),
            name: name.to_owned(),
            subresource: subresource.to_owned(),
            goes_on: rest.len() > if namespace.is_empty() { 3 } else { 5 },
        })
    };
    match rest {
        // A namespace's own subresources look like resources inside it.
        ["namespaces", name, part @ ("status" | "finalize")] if group.is_empty() => {
            path("", "namespaces", name, part)
        }
        ["namespaces", namespace, plural] => path(namespace, plural, "", ""),
        ["namespaces", namespace, plural, name] => path(namespace, plural, name, ""),
        ["namespaces", namespace, plural, name, part, ..] => path(namespace, plural, name, part),
        [plural] => path("", plural, "", ""),
        [plural, name] => path("", plural, name, ""),
        [plural, name, part, ..] => path("", plural, name, part),
        [] => Route::Nowhere,
    }
}

/// Names need no escapes, but clients may use them.
fn percent_decode(text: &str) -> Cow<'_, str> {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("/api/v1/namespaces/a/pods/x/status", ["", "v1", "a", "pods", "x", "status"])]
    #[case("/api/v1/namespaces/a", ["", "v1", "", "namespaces", "a", ""])]
    #[case("/api/v1/namespaces/a/finalize", ["", "v1", "", "namespaces", "a", "finalize"])]
    #[case("/api/v1/namespaces/a/pods", ["", "v1", "a", "pods", "", ""])]
    #[case("/api/v1/pods", ["", "v1", "", "pods", "", ""])]
    #[case("/api/v1/namespaces/a/pods/x/status/more", ["", "v1", "a", "pods", "x", "status"])]
    #[case("/api/v1/nodes/x/y/z/more", ["", "v1", "", "nodes", "x", "y"])]
    #[case("/apis/apps/v1/namespaces/a/statefulsets/db/scale", ["apps", "v1", "a", "statefulsets", "db", "scale"])]
    #[case("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode", ["rbac.authorization.k8s.io", "v1", "", "clusterroles", "system:node", ""])]
    fn a_path_names_a_resource(#[case] path: &str, #[case] expected: [&str; 6]) {
        let Route::Resource(seen) = Route::read(path) else {
            panic!("{path} is no resource")
        };
        let ResourcePath {
            group,
            version,
            namespace,
            plural,
            name,
            subresource,
            goes_on,
        } = seen;
        assert_eq!([group, version, namespace, plural, name, subresource], expected);
        assert_eq!(goes_on, path.ends_with("/more"));
    }

    #[rstest]
    #[case("/")]
    #[case("/metrics")]
    fn other_paths_lead_nowhere(#[case] path: &str) {
        assert_eq!(Route::read(path), Route::Nowhere);
    }
}
