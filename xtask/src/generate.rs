//! `cargo xtask generate`: generated files that are checked in.

use std::ffi::OsString;
use std::fmt::Write;
use std::fs::{self, File};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::kube::{self, Options};
use crate::layout::Layout;
use crate::recording;

/// `cargo xtask generate …`
#[derive(clap::Subcommand)]
pub(crate) enum Action {
    /// The schemas of the built-in Kubernetes types, read from the Go types of testbed/go.mod
    Types,
    /// The resources that the embedded cluster serves, read from the discovery API of a real one
    Resources,
    /// The manifests under deploy/ and the embedded definitions, as printed by stateward install
    Manifests,
    /// The reference under docs/reference: verbs, spec and status, from the code
    Reference,
    /// The chart of a plan, docs/images/plan.svg
    Picture,
    /// The animation of the demo, docs/images/demo.svg, recorded from a run
    Recording,
    /// The results of conditions in Go, for the tests of our own evaluator
    Conditions,
    /// Like resources, from the cluster of KUBECONFIG
    #[command(hide = true)]
    ResourcesOfThisCluster,
}

/// Regenerates the files.
pub(crate) fn run(layout: &Layout, action: &Action) -> Result<u8> {
    match action {
        Action::Types => types(layout)?,
        Action::Resources => {
            let again = ["generate", "resources-of-this-cluster"].map(OsString::from);
            let ourselves = std::env::current_exe().context("cannot find this program")?;
            let command: Vec<_> = [ourselves.into_os_string()].into_iter().chain(again).collect();
            return kube::on_a_plane_of_its_own(layout, &Options::default(), false, &command);
        }
        Action::Manifests => manifests(layout)?,
        Action::Reference => reference(layout)?,
        Action::Picture => picture(layout)?,
        Action::Recording => {
            let recording = recording::of_the_demo(layout)?;
            write(layout, "docs/images/demo.svg", recording.as_bytes())?;
        }
        Action::Conditions => conditions(layout)?,
        Action::ResourcesOfThisCluster => resources(layout)?,
    }
    Ok(0)
}

fn types(layout: &Layout) -> Result<()> {
    let made = output(
        Command::new("go")
            .args(["run", "./types"])
            .current_dir(&layout.testbed),
    )?;
    write(layout, "crates/schema/data/types.json", &made)
}

/// Random conditions in the table; a fixed seed makes them reproducible.
const RANDOM_CONDITIONS: [&str; 3] = ["random", "2000", "20260131"];

/// Evaluates conditions with the Go implementation of their language: the written ones and random ones.
fn conditions(layout: &Layout) -> Result<()> {
    let oracle = layout.testbed.join("expr");
    let written =
        File::open(oracle.join("conditions.txt")).context("cannot open testbed/expr/conditions.txt")?;
    let run = ["run", "."];
    let made = output(Command::new("go").args(run).current_dir(&oracle).stdin(written))?;
    write(layout, "crates/core/src/expr/golden/written.jsonl", &made)?;
    let made = output(
        Command::new("go")
            .args(run)
            .args(RANDOM_CONDITIONS)
            .current_dir(&oracle),
    )?;
    write(layout, "crates/core/src/expr/golden/random.jsonl", &made)
}

/// The output of `stateward install`, so that a cluster can be set up without the binary.
fn manifests(layout: &Layout) -> Result<()> {
    fs::create_dir_all(layout.root.join("deploy")).context("cannot create deploy/")?;
    let files: [(&str, &[&str]); 5] = [
        ("crates/api/data/definitions.json", &["--crds", "--output=json"]),
        ("deploy/crds.yaml", &["--crds"]),
        ("deploy/rbac.yaml", &["--rbac"]),
        ("deploy/network-policy.yaml", &["--network-policy"]),
        ("deploy/install.yaml", &[]),
    ];
    for (path, arguments) in files {
        let made = output(
            Command::new(env!("CARGO"))
                .args(["run", "--quiet", "--package", "stateward", "--", "install"])
                .args(arguments)
                .current_dir(&layout.root),
        )?;
        write(layout, path, &made)?;
    }
    Ok(())
}

/// The test that compares the pages writes them if told to.
fn reference(layout: &Layout) -> Result<()> {
    output(
        Command::new(env!("CARGO"))
            .args(["test", "--quiet", "--package", "stateward", "--bin", "stateward"])
            .arg("reference::")
            .env("STATEWARD_WRITE_REFERENCE", "1")
            .current_dir(&layout.root),
    )?;
    eprintln!("wrote docs/reference");
    Ok(())
}

/// The chart of the sample, as `stateward plan` draws it.
fn picture(layout: &Layout) -> Result<()> {
    let made = output(
        Command::new(env!("CARGO"))
            .args(["run", "--quiet", "--package", "stateward", "--", "plan"])
            .args(["docs/samples/db.yaml", "--output", "svg"])
            .current_dir(&layout.root),
    )?;
    write(layout, "docs/images/plan.svg", &made)
}

/// The resources of the embedded cluster: whole groups, or only these of a group.
const SERVED: [(&str, &[&str]); 13] = [
    (
        "api/v1",
        &[
            "configmaps",
            "endpoints",
            "events",
            "limitranges",
            "namespaces",
            "namespaces/finalize",
            "namespaces/status",
            "nodes",
            "nodes/status",
            "persistentvolumeclaims",
            "persistentvolumeclaims/status",
            "persistentvolumes",
            "persistentvolumes/status",
            "pods",
            "pods/binding",
            "pods/eviction",
            "pods/log",
            "pods/status",
            "podtemplates",
            "resourcequotas",
            "resourcequotas/status",
            "secrets",
            "serviceaccounts",
            "services",
            "services/status",
        ],
    ),
    ("apis/apps/v1", &[]),
    ("apis/batch/v1", &[]),
    ("apis/policy/v1", &[]),
    ("apis/events.k8s.io/v1", &[]),
    ("apis/coordination.k8s.io/v1", &[]),
    ("apis/storage.k8s.io/v1", &["storageclasses"]),
    ("apis/discovery.k8s.io/v1", &[]),
    ("apis/autoscaling/v2", &[]),
    ("apis/rbac.authorization.k8s.io/v1", &[]),
    ("apis/authentication.k8s.io/v1", &["selfsubjectreviews"]),
    ("apis/authorization.k8s.io/v1", &[]),
    ("apis/apiextensions.k8s.io/v1", &[]),
];

/// Writes one resource per line, for readable diffs.
fn resources(layout: &Layout) -> Result<()> {
    let version: Value =
        serde_json::from_slice(&output(Command::new("kubectl").args(["get", "--raw=/version"]))?)?;
    let version = version["gitVersion"]
        .as_str()
        .context("a server without a version")?;
    let mut text = format!(
        "{{\"source\": \"the discovery documents of Kubernetes {version}, by cargo xtask generate resources\", \"resources\": {{\n"
    );
    for (index, (path, wanted)) in SERVED.iter().enumerate() {
        let raw = format!("--raw=/{path}");
        let list: Value = serde_json::from_slice(&output(Command::new("kubectl").args(["get", &raw]))?)?;
        let served = list["resources"]
            .as_array()
            .context("a discovery document without resources")?;
        let rows: Vec<String> = served
            .iter()
            .filter(|row| {
                wanted.is_empty() || row["name"].as_str().is_some_and(|name| wanted.contains(&name))
            })
            .map(|row| {
                let mut row = row.clone();
                if let Some(fields) = row.as_object_mut() {
                    fields.remove("storageVersionHash");
                }
                row.to_string()
            })
            .collect();
        let comma = if index + 1 < SERVED.len() { "," } else { "" };
        writeln!(
            text,
            "{}: [\n{}\n]{comma}",
            list["groupVersion"],
            rows.join(",\n")
        )?;
    }
    text.push_str("}}\n");
    write(layout, "crates/schema/data/resources.json", text.as_bytes())
}

fn output(command: &mut Command) -> Result<Vec<u8>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let made = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    if !made.status.success() {
        bail!("{program} failed; what it said stands above");
    }
    Ok(made.stdout)
}

fn write(layout: &Layout, path: &str, content: &[u8]) -> Result<()> {
    let out = layout.root.join(path);
    fs::write(&out, content).with_context(|| format!("cannot write {}", out.display()))?;
    eprintln!("wrote {path}");
    Ok(())
}
