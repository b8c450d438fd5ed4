//! Security contexts.

use crate::json::Value;

use crate::builtin::fields::{flag, has, items, text};
use crate::builtin::problems::{At, Problems, between};

const HIGHEST_ID: i64 = i32::MAX as i64;
const SYSCTL: &str = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// Checks a container's security context. Privileged containers are accepted: the real server's flag for them is on in the clusters that we
/// model.
pub(crate) fn container_security(at: &At, container: &Value, spec: &Value, problems: &mut Problems) {
    let context = &container["securityContext"];
    if !context.is_object() {
        return;
    }
    problems.in_range(at, context, "runAsUser", 0, HIGHEST_ID);
    problems.in_range(at, context, "runAsGroup", 0, HIGHEST_ID);
    if let Some(mount) = context["procMount"].as_str() {
        let at = at.field("procMount");
        if !["Default", "Unmasked"].contains(&mount) {
            problems.not_supported(&at, mount, &["Default", "Unmasked"]);
        }
        if mount == "Unmasked" && spec["hostUsers"] != false {
            problems.invalid(&at, mount, "`hostUsers` must be false to use `Unmasked`");
        }
    }
    seccomp(&at.field("seccompProfile"), &context["seccompProfile"], problems);
}

/// Checks a pod's security context.
pub(crate) fn pod_security(at: &At, spec: &Value, problems: &mut Problems) {
    let context = &spec["securityContext"];
    for name in ["fsGroup", "runAsUser", "runAsGroup"] {
        problems.in_range(at, context, name, 0, HIGHEST_ID);
    }
    for (index, group) in items(context, "supplementalGroups")
        .iter()
        .filter_map(Value::as_i64)
        .enumerate()
    {
        if !(0..=HIGHEST_ID).contains(&group) {
            problems.invalid(
                &at.field("supplementalGroups").index(index),
                group,
                &between(0, HIGHEST_ID),
            );
        }
    }
    if flag(spec, "shareProcessNamespace") && flag(spec, "hostPID") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        problems.invalid(&at.field("shareProcessNamespace"), true, detail);
    }
    sysctls(&at.field("sysctls"), context, problems);
    if let Some(policy) = context["fsGroupChangePolicy"].as_str() {
        let allowed = ["Always", "OnRootMismatch"];
        if !allowed.contains(&policy) {
            problems.not_supported(&at.field("fsGroupChangePolicy"), policy, &allowed);
        }
    }
    seccomp(&at.field("seccompProfile"), &context["seccompProfile"], problems);
    if let Some(policy) = context["seLinuxChangePolicy"]
        .as_str()
        .filter(|policy| *policy != "Recursive")
    {
        problems.not_supported(&at.field("seLinuxChangePolicy"), policy, &["Recursive"]);
    }
}

fn sysctls(at: &At, context: &Value, problems: &mut Problems) {
    let mut known = Vec::new();
    for (index, sysctl) in items(context, "sysctls").iter().enumerate() {
        let at = at.index(index);
        let (at, name) = (at.field("name"), text(sysctl, "name"));
        if name.is_empty() {
            problems.required(&at, "");
        } else if name.len() > 253 || !name.split(['.', '/']).all(is_sysctl_part) {
            problems.invalid(
                &at,
                name,
                &format!("must have at most 253 characters and match regex {SYSCTL}"),
            );
        } else if known.contains(&name) {
            problems.duplicate(&at, name);
        }
        known.push(name);
    }
}

fn is_sysctl_part(part: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    part.starts_with(edge) && part.ends_with(edge) && part.chars().all(|c| edge(c) || c == '-' || c == '_')
}

fn seccomp(at: &At, profile: &Value, problems: &mut Problems) {
    if !profile.is_object() {
        return;
    }
    let kind = text(profile, "type");
    let path = &profile["localhostProfile"];
    if kind.is_empty() {
        problems.required(&at.field("type"), "type is required when seccompProfile is set");
    } else if !["Localhost", "RuntimeDefault", "Unconfined"].contains(&kind) {
        problems.not_supported(
            &at.field("type"),
            kind,
            &["Localhost", "RuntimeDefault", "Unconfined"],
        );
    }
    let at = at.field("localhostProfile");
    if kind == "Localhost" && !has(profile, "localhostProfile") {
        problems.required(&at, "must be set when seccomp type is Localhost");
    } else if kind != "Localhost" && has(profile, "localhostProfile") {
        let shown = format!("{{\"Type\":{},\"LocalhostProfile\":{path}}}", profile["type"]);
        problems.invalid_as(&at, &shown, "can only be set when seccomp type is Localhost");
    }
}
