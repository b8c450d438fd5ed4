//! The tag of an image reference, which decides when it is pulled.

/// The tag of `image`: `latest` if it has neither tag nor digest, `None` if it has only a digest or is not a valid reference.
pub(super) fn tag(image: &str) -> Option<&str> {
    let (named, digest) = match image.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (image, None),
    };
    let last = named.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match named[last..].find(':') {
        Some(colon) => (&named[..last + colon], Some(&named[last + colon + 1..])),
        None => (named, None),
    };
    if !is_name(name) || !tag.is_none_or(is_tag) || !digest.is_none_or(is_digest) {
        return None;
    }
    match (tag, digest) {
        (Some(tag), _) => Some(tag),
        (None, Some(_)) => None,
        (None, None) => Some("latest"),
    }
}

/// `registry:5000/path/of/it`: the first part is a host if it looks like one.
fn is_name(name: &str) -> bool {
    // A bare image id is not a name.
    if name.len() == 64
        && name
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    {
        return false;
    }
    let path = match name.split_once('/') {
        Some((host, path))
            if host.contains(['.', ':']) || host == "localhost" || host.to_lowercase() != host =>
        {
            if !is_host(host) {
                return false;
            }
            path
        }
        _ => name,
    };
    path.split('/').all(is_component) && name.len() <= 255
}

fn is_host(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !host.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    let port_fits =
        port.is_none_or(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    port_fits
        && match address {
            Some(address) => address
                .bytes()
                .all(|byte| byte.is_ascii_hexdigit() || byte == b':'),
            None => name.split('.').all(|label| {
                let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
                let bytes = label.as_bytes();
                edge(bytes.first())
                    && edge(bytes.last())
                    && bytes
                        .iter()
                        .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
            }),
        }
}

/// Lower-case words joined by one `.`, one or two `_`, or any number of `-`.
fn is_component(component: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    component.starts_with(is_word)
        && component.ends_with(is_word)
        && component
            .split(is_word)
            .filter(|joint| !joint.is_empty())
            .all(|joint| matches!(joint, "." | "_" | "__") || joint.bytes().all(|byte| byte == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.len() <= 128
        && tag.bytes().next().is_some_and(inner)
        && tag
            .bytes()
            .all(|byte| inner(byte) || byte == b'.' || byte == b'-')
}

fn is_digest(digest: &str) -> bool {
    // Upstream supports these three algorithms, each with its length.
    let Some((algorithm, hex)) = digest.split_once(':') else {
        return false;
    };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    hex.len() == length
        && hex
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[rstest]
    #[case("nginx", Some("latest"))]
    #[case("nginx:1.27", Some("1.27"))]
    #[case("nginx:latest", Some("latest"))]
    #[case("localhost:5000/nginx", Some("latest"))]
    #[case("localhost:5000/team/nginx:v1", Some("v1"))]
    #[case("registry.example.com/a/b-c_d.e", Some("latest"))]
    #[case("Registry/nginx", Some("latest"))]
    #[case("Nginx", None)]
    #[case("", None)]
    #[case(" nginx", None)]
    #[case("nginx:", None)]
    #[case("a..b", None)]
    #[case("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", None)]
    fn the_tag_is_read_from_valid_references_only(#[case] image: &str, #[case] expected: Option<&str>) {
        assert_eq!(tag(image), expected);
    }

    #[test]
    fn a_digest_stands_in_for_a_tag() {
        assert_eq!(tag(&format!("nginx@{DIGEST}")), None);
        assert_eq!(tag(&format!("nginx:latest@{DIGEST}")), Some("latest"));
        assert_eq!(tag("nginx@sha256:12"), None);
    }
}
