//! Content negotiation: the form of a response.

use axum::http::{HeaderMap, Request, header};

/// The form of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Whole objects.
    Object,
    /// The same without `managedFields`.
    Lean,
    /// A Table.
    Table,
    /// Only the metadata.
    Metadata,
}

/// A request extension of a client in this process that does not need `managedFields`. A real server has no such option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lean;

impl Form {
    /// The form that a request accepts.
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        match Self::accepted(request.headers()) {
            Self::Object if request.extensions().get::<Lean>().is_some() => Self::Lean,
            form => form,
        }
    }

    /// The first accepted form that is supported. If none is, objects as JSON.
    fn accepted(headers: &HeaderMap) -> Self {
        wishes(headers)
            .find_map(|wish| {
                let parameter = |name: &str| {
                    wish.split(';')
                        .skip(1)
                        .find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='))
                };
                let media = wish.split(';').next().unwrap_or_default().trim();
                if media != "application/json" && media != "*/*" {
                    return None;
                }
                match parameter("as") {
                    None => Some(Self::Object),
                    Some("Table") if parameter("v") == Some("v1") => Some(Self::Table),
                    Some("PartialObjectMetadata" | "PartialObjectMetadataList")
                        if parameter("v") == Some("v1") =>
                    {
                        Some(Self::Metadata)
                    }
                    Some(_) => None,
                }
            })
            .unwrap_or(Self::Object)
    }
}

/// Whether the client prefers the aggregated discovery document.
pub(super) fn wants_aggregated_discovery(headers: &HeaderMap) -> bool {
    wishes(headers)
        .next()
        .is_some_and(|wish| wish.contains("as=APIGroupDiscoveryList") && wish.contains("v=v2"))
}

fn wishes(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .unwrap_or("application/json");
    accept.split(',').map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("application/json", Form::Object)]
    #[case("*/*", Form::Object)]
    #[case("application/vnd.kubernetes.protobuf,application/json", Form::Object)]
    #[case(
        "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
        Form::Table
    )]
    #[case(
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        Form::Metadata
    )]
    #[case(
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
        Form::Metadata
    )]
    fn the_first_wish_we_can_fulfil_counts(#[case] accept: &str, #[case] expected: Form) {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, accept.parse().unwrap());
        assert_eq!(Form::accepted(&headers), expected);
    }
}
