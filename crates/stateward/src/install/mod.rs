//! `stateward install`: prints the manifests of the operator.
//!
//! - `manifests`: the objects, one function each.
//! - this file: which objects, and in which format.

pub(crate) mod manifests;

pub(crate) use self::manifests::own_namespace;

use std::io::{self, Write};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// `stateward install …`
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the CustomResourceDefinitions; without this, --rbac and --network-policy, everything but the policy is printed
    #[arg(long)]
    crds: bool,
    /// Print the namespace, if it is the default one, the service account, its roles and their bindings
    #[arg(long)]
    rbac: bool,
    /// Bind the roles to this user instead of the service account, for an operator outside the cluster
    #[arg(long, value_name = "USER", requires = "rbac", conflicts_with_all = ["crds", "network_policy"])]
    user: Option<String>,
    /// Print a NetworkPolicy for the operator: restricts access to its port, and blocks link-local addresses
    #[arg(long)]
    network_policy: bool,
    /// Omit the definitions that Argo Rollouts also installs: AnalysisRun and its templates
    #[arg(long)]
    beside_argo_rollouts: bool,
    /// The namespace to install into; any but the default one must exist
    #[arg(short, long, default_value = manifests::OWN_NAMESPACE)]
    namespace: String,
    /// The image of the operator
    #[arg(long, default_value = manifests::IMAGE)]
    image: String,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Form::Yaml)]
    output: Form,
}

/// The output format.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Form {
    /// One document per object
    Yaml,
    /// A single List
    Json,
}

/// Prints the manifests.
pub(crate) fn run(args: &Args) -> Result<()> {
    let text = text(args)?;
    match io::stdout().write_all(text.as_bytes()) {
        // The reader closed the pipe.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot print"),
    }
}

fn text(args: &Args) -> Result<String> {
    let objects = objects(args)?;
    Ok(match args.output {
        Form::Json => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
            serde_json::to_string_pretty(&list)? + "\n"
        }
        Form::Yaml => {
            let mut text = String::from("# made by stateward install\n");
            for object in objects {
                text.push_str("---\n");
                text.push_str(serde_saphyr::to_string(&object)?.trim_end());
                text.push('\n');
            }
            text
        }
    })
}

/// The selected objects, in the order in which they can be applied.
fn objects(args: &Args) -> Result<Vec<Value>> {
    let Args {
        crds,
        rbac,
        user,
        network_policy,
        beside_argo_rollouts,
        namespace,
        image,
        output: _,
    } = args;
    if !is_label(namespace) {
        bail!(
            "--namespace: {namespace:?} is not a name of at most 63 lower case letters, digits and dashes between them"
        );
    }
    if user.as_ref().is_some_and(String::is_empty) {
        bail!("--user: \"\" is not the name of a user");
    }
    let all = !crds && !rbac && !network_policy;
    let mut objects = Vec::new();
    if all || *crds {
        objects.extend(manifests::definitions(*beside_argo_rollouts));
    }
    if all || *rbac {
        objects.extend(manifests::identity(namespace, user.as_deref()));
    }
    if *network_policy {
        objects.push(manifests::network_policy(namespace));
    }
    if all {
        objects.push(manifests::deployment(namespace, image));
    }
    Ok(objects)
}

fn is_label(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&name.len())
        && name.bytes().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use stateward_controller::overlap::LEASE_NAMESPACE;

    fn args(parts: &[&str]) -> Args {
        Args {
            crds: parts.contains(&"crds"),
            rbac: parts.contains(&"rbac"),
            user: None,
            network_policy: parts.contains(&"network-policy"),
            beside_argo_rollouts: false,
            namespace: "stateward-system".into(),
            image: manifests::IMAGE.into(),
            output: Form::Yaml,
        }
    }

    #[rstest]
    #[case(&["crds"], "deploy/crds.yaml")]
    #[case(&["rbac"], "deploy/rbac.yaml")]
    #[case(&["network-policy"], "deploy/network-policy.yaml")]
    #[case(&[], "deploy/install.yaml")]
    fn the_committed_manifests_are_what_install_prints(#[case] parts: &[&str], #[case] path: &str) {
        let file = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
        let committed = std::fs::read_to_string(file).unwrap_or_default();
        assert!(
            committed == text(&args(parts)).unwrap(),
            "{path} is stale; make it again with: cargo xtask generate manifests"
        );
    }

    #[test]
    fn yaml_says_what_json_says() {
        let mut args = args(&[]);
        args.namespace = "elsewhere".into();
        let yaml = text(&args).unwrap();
        let read: Vec<Value> = yaml
            .split("---\n")
            .skip(1)
            .map(|document| serde_saphyr::from_str(document).unwrap())
            .collect();
        assert_eq!(read, objects(&args).unwrap());
    }

    #[test]
    fn elsewhere_only_the_namespace_of_the_lease_is_created() {
        let mut args = args(&[]);
        args.namespace = "elsewhere".into();
        let objects = objects(&args).unwrap();
        let kinds = |field: &str, value: &str| -> Vec<&str> {
            let found = objects.iter().filter(|object| object["metadata"][field] == value);
            found.filter_map(|object| object["kind"].as_str()).collect()
        };
        assert_eq!(
            kinds("name", "elsewhere"),
            [""; 0],
            "it may be the home of others"
        );
        assert_eq!(kinds("name", LEASE_NAMESPACE), ["Namespace"]);
        assert_eq!(kinds("namespace", LEASE_NAMESPACE), ["Role", "RoleBinding"]);
        assert_eq!(kinds("namespace", "elsewhere"), ["ServiceAccount", "Deployment"]);
    }

    #[test]
    fn what_argo_rollouts_brings_along_can_be_left_out() {
        let mut args = args(&["crds"]);
        args.beside_argo_rollouts = true;
        let objects = objects(&args).unwrap();
        let kinds: Vec<_> = objects
            .iter()
            .map(|object| &object["spec"]["names"]["kind"])
            .collect();
        assert_eq!(kinds, ["RolloutPlugin", "PhasedRollout"]);
    }

    /// Applying them in addition to the manifests of an operator in the cluster must not revoke its permissions.
    #[test]
    fn the_rights_can_be_bound_to_a_user_instead_of_the_account() {
        let bindings = |user: Option<&str>| {
            let mut args = args(&["rbac"]);
            args.user = user.map(str::to_owned);
            let objects = objects(&args).unwrap();
            assert_eq!(
                user.is_none(),
                objects.iter().any(|object| object["kind"] == "ServiceAccount")
            );
            let bindings = objects
                .into_iter()
                .filter(|object| object.get("subjects").is_some());
            bindings.collect::<Vec<_>>()
        };
        let (own, others) = (bindings(None), bindings(Some("corp/alice@example.com")));
        assert_eq!(others.len(), 3);
        for (own, other) in own.iter().zip(&others) {
            assert_eq!(own["roleRef"], other["roleRef"]);
            assert_eq!(
                other["metadata"]["name"],
                format!(
                    "{}-corp-alice@example.com",
                    own["metadata"]["name"].as_str().unwrap()
                )
            );
            let subject = json!({
                "kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "corp/alice@example.com",
            });
            assert_eq!(other["subjects"], json!([subject]));
        }
    }

    #[rstest]
    #[case("")]
    #[case("Prod")]
    #[case("-a")]
    #[case("a\nb")]
    fn a_bad_namespace_is_refused(#[case] namespace: &str) {
        let mut args = args(&["rbac"]);
        args.namespace = namespace.into();
        assert!(objects(&args).is_err());
    }
}
