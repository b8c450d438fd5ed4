//! The checks of the [baseline profile] of the Pod Security Standards, for pod templates that the operator creates on behalf of users who
//! may not be allowed to create pods themselves.
//!
//! Pure: in flows a pod template as JSON; out flow its violations, with the path of each field. One check goes beyond the profile: only
//! pods that name their service account may get its token.
//!
//! [baseline profile]: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline

use std::fmt;

use serde_json::Value;

/// A field that is not allowed in a pod template, or not with this value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The path of the field.
    pub path: String,
    /// Its value.
    pub value: String,
    /// What is allowed.
    pub allowed: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} is not allowed; {}",
            self.path, self.value, self.allowed
        )
    }
}

/// The capabilities that containers may add: those that container runtimes grant by default.
const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// The sysctls that affect only the pod.
const SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
];

/// The SELinux types of containers.
const SELINUX_TYPES: [&str; 5] = [
    "",
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
];

/// The fields that hold containers.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// The annotations that chose AppArmor profiles before there was a field.
const APPARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

/// The violations of a pod template. `at` is the path of the template.
pub fn violations(template: &Value, at: &str) -> Vec<Violation> {
    let mut checks = Checks::default();
    checks.annotations(
        &template["metadata"]["annotations"],
        &format!("{at}.metadata.annotations"),
    );
    checks.pod(&template["spec"], &format!("{at}.spec"));
    checks.found
}

/// Whether a pod names its service account, by the field or by its deprecated alias.
pub fn names_a_service_account(pod: &Value) -> bool {
    ["serviceAccountName", "serviceAccount"]
        .iter()
        .any(|field| pod[*field].as_str().is_some_and(|name| !name.is_empty()))
}

#[derive(Default)]
struct Checks {
    found: Vec<Violation>,
}

impl Checks {
    /// Reports the value of a field, unless it is allowed or missing.
    fn check(
        &mut self,
        value: &Value,
        path: String,
        allowed: &'static str,
        is_allowed: impl Fn(&Value) -> bool,
    ) {
        if !value.is_null() && !is_allowed(value) {
            self.found.push(Violation {
                path,
                value: shown(value),
                allowed,
            });
        }
    }

    fn not_true(&mut self, object: &Value, field: &str, at: &str, allowed: &'static str) {
        self.check(&object[field], format!("{at}.{field}"), allowed, |value| {
            *value == Value::Bool(false)
        });
    }

    fn annotations(&mut self, annotations: &Value, at: &str) {
        for (key, value) in annotations.as_object().into_iter().flatten() {
            if key.starts_with(APPARMOR_ANNOTATION) {
                let path = format!("{at}[{key}]");
                self.check(
                    value,
                    path,
                    "an AppArmor profile is runtime/default or localhost/NAME",
                    |value| {
                        let profile = value.as_str().unwrap_or("?");
                        profile.is_empty()
                            || profile == "runtime/default"
                            || profile.starts_with("localhost/")
                    },
                );
            }
        }
    }

    fn pod(&mut self, pod: &Value, at: &str) {
        for field in ["hostNetwork", "hostPID", "hostIPC"] {
            self.not_true(pod, field, at, "a pod has namespaces of its own");
        }
        let context = &pod["securityContext"];
        let context_at = format!("{at}.securityContext");
        self.context(context, &context_at);
        for (index, sysctl) in items(&context["sysctls"]) {
            let path = format!("{context_at}.sysctls[{index}].name");
            self.check(
                &sysctl["name"],
                path,
                "only sysctls that concern nothing but the pod may be set",
                |name| name.as_str().is_some_and(|name| SYSCTLS.contains(&name)),
            );
        }
        let named = names_a_service_account(pod);
        for (index, volume) in items(&pod["volumes"]) {
            let volume_at = format!("{at}.volumes[{index}]");
            let host_path = &volume["hostPath"];
            self.check(
                host_path,
                format!("{volume_at}.hostPath"),
                "a volume is no directory of the node",
                |_| false,
            );
            for (index, source) in items(&volume["projected"]["sources"]) {
                // Both are credentials of the pod's service account.
                for (field, allowed) in [("serviceAccountToken", TOKEN), ("podCertificate", CERTIFICATE)] {
                    let path = format!("{volume_at}.projected.sources[{index}].{field}");
                    self.check(&source[field], path, allowed, |_| named);
                }
            }
        }
        let automount = &pod["automountServiceAccountToken"];
        let path = format!("{at}.automountServiceAccountToken");
        self.check(automount, path, TOKEN, |value| {
            named || *value == Value::Bool(false)
        });
        for field in CONTAINERS {
            for (index, container) in items(&pod[field]) {
                self.container(container, &format!("{at}.{field}[{index}]"));
            }
        }
    }

    fn container(&mut self, container: &Value, at: &str) {
        for (index, port) in items(&container["ports"]) {
            let path = format!("{at}.ports[{index}].hostPort");
            self.check(&port["hostPort"], path, "a port is no port of the node", |port| {
                port.as_i64() == Some(0)
            });
        }
        let context = &container["securityContext"];
        let context_at = format!("{at}.securityContext");
        self.context(context, &context_at);
        self.not_true(
            context,
            "privileged",
            &context_at,
            "a container is not privileged",
        );
        for (index, capability) in items(&context["capabilities"]["add"]) {
            let path = format!("{context_at}.capabilities.add[{index}]");
            self.check(
                capability,
                path,
                "only capabilities may be added that containers have by default",
                |name| name.as_str().is_some_and(|name| CAPABILITIES.contains(&name)),
            );
        }
        let path = format!("{context_at}.procMount");
        self.check(&context["procMount"], path, "it is Default", |kind| {
            kind == "Default"
        });
        let handlers = ["livenessProbe", "readinessProbe", "startupProbe"]
            .map(|probe| (&container[probe], probe.to_owned()));
        let hooks =
            ["postStart", "preStop"].map(|hook| (&container["lifecycle"][hook], format!("lifecycle.{hook}")));
        for (handler, name) in handlers.into_iter().chain(hooks) {
            for action in ["httpGet", "tcpSocket"] {
                let path = format!("{at}.{name}.{action}.host");
                let host = &handler[action]["host"];
                self.check(host, path, "a probe asks the pod itself", |host| host == "");
            }
        }
    }

    /// The checks that pod and container security contexts share.
    fn context(&mut self, context: &Value, at: &str) {
        let windows = &context["windowsOptions"];
        let windows_at = format!("{at}.windowsOptions");
        self.not_true(
            windows,
            "hostProcess",
            &windows_at,
            "a container is no process of the node",
        );
        for (field, allowed) in [
            (
                "seccompProfile",
                "a seccomp profile is RuntimeDefault or Localhost",
            ),
            (
                "appArmorProfile",
                "an AppArmor profile is RuntimeDefault or Localhost",
            ),
        ] {
            let path = format!("{at}.{field}.type");
            self.check(&context[field]["type"], path, allowed, |kind| {
                kind == "RuntimeDefault" || kind == "Localhost"
            });
        }
        let selinux = &context["seLinuxOptions"];
        let path = format!("{at}.seLinuxOptions.type");
        self.check(
            &selinux["type"],
            path,
            "only types of containers may be set",
            |kind| kind.as_str().is_some_and(|kind| SELINUX_TYPES.contains(&kind)),
        );
        for field in ["user", "role"] {
            let path = format!("{at}.seLinuxOptions.{field}");
            self.check(&selinux[field], path, "it may not be set", |value| value == "");
        }
    }
}

const TOKEN: &str = "the token of a service account is for pods that name one in serviceAccountName";
const CERTIFICATE: &str =
    "a certificate for a service account is for pods that name one in serviceAccountName";

fn items(list: &Value) -> impl Iterator<Item = (usize, &Value)> {
    list.as_array().into_iter().flatten().enumerate()
}

/// A value, shortened for a message.
fn shown(value: &Value) -> String {
    const LONGEST: usize = 64;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn paths(template: &Value) -> Vec<String> {
        violations(template, "t")
            .into_iter()
            .map(|violation| violation.path)
            .collect()
    }

    #[rstest]
    #[case::host_network(json!({"hostNetwork": true}), "hostNetwork")]
    #[case::host_pid(json!({"hostPID": true}), "hostPID")]
    #[case::host_ipc(json!({"hostIPC": true}), "hostIPC")]
    #[case::host_process(json!({"securityContext": {"windowsOptions": {"hostProcess": true}}}), "securityContext.windowsOptions.hostProcess")]
    #[case::host_path(json!({"volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "hostPath": {"path": "/"}}]}), "volumes[1].hostPath")]
    #[case::sysctl(json!({"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}, {"name": "kernel.msgmax", "value": "1"}]}}), "securityContext.sysctls[1].name")]
    #[case::seccomp(json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}), "securityContext.seccompProfile.type")]
    #[case::apparmor(json!({"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}), "securityContext.appArmorProfile.type")]
    #[case::selinux_type(json!({"securityContext": {"seLinuxOptions": {"type": "spc_t"}}}), "securityContext.seLinuxOptions.type")]
    #[case::selinux_user(json!({"securityContext": {"seLinuxOptions": {"user": "system_u"}}}), "securityContext.seLinuxOptions.user")]
    #[case::selinux_role(json!({"securityContext": {"seLinuxOptions": {"role": "system_r"}}}), "securityContext.seLinuxOptions.role")]
    #[case::token(json!({"automountServiceAccountToken": true}), "automountServiceAccountToken")]
    #[case::projected_token(json!({"volumes": [{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]}), "volumes[0].projected.sources[0].serviceAccountToken")]
    #[case::projected_certificate(json!({"volumes": [{"name": "t", "projected": {"sources": [{"podCertificate": {"signerName": "example.com/s", "keyType": "ED25519"}}]}}]}), "volumes[0].projected.sources[0].podCertificate")]
    fn a_pod_is_refused_what_widens_it(#[case] pod: Value, #[case] path: &str) {
        assert_eq!(paths(&json!({"spec": pod})), [format!("t.spec.{path}")]);
    }

    #[rstest]
    #[case::privileged(json!({"securityContext": {"privileged": true}}), "securityContext.privileged")]
    #[case::capability(json!({"securityContext": {"capabilities": {"add": ["CHOWN", "SYS_ADMIN"]}}}), "securityContext.capabilities.add[1]")]
    #[case::all_capabilities(json!({"securityContext": {"capabilities": {"add": ["ALL"]}}}), "securityContext.capabilities.add[0]")]
    #[case::proc_mount(json!({"securityContext": {"procMount": "Unmasked"}}), "securityContext.procMount")]
    #[case::seccomp(json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}), "securityContext.seccompProfile.type")]
    #[case::apparmor(json!({"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}), "securityContext.appArmorProfile.type")]
    #[case::selinux(json!({"securityContext": {"seLinuxOptions": {"type": "spc_t"}}}), "securityContext.seLinuxOptions.type")]
    #[case::host_process(json!({"securityContext": {"windowsOptions": {"hostProcess": true}}}), "securityContext.windowsOptions.hostProcess")]
    #[case::host_port(json!({"ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}]}), "ports[1].hostPort")]
    #[case::probe(json!({"readinessProbe": {"httpGet": {"host": "10.0.0.1", "port": 80}}}), "readinessProbe.httpGet.host")]
    #[case::hook(json!({"lifecycle": {"preStop": {"tcpSocket": {"host": "10.0.0.1", "port": 80}}}}), "lifecycle.preStop.tcpSocket.host")]
    fn every_container_is_refused_what_widens_it(
        #[case] container: Value,
        #[case] path: &str,
        #[values("initContainers", "containers", "ephemeralContainers")] place: &str,
    ) {
        let template = json!({"spec": {place: [{"name": "well"}, container]}});
        assert_eq!(paths(&template), [format!("t.spec.{place}[1].{path}")]);
    }

    #[test]
    fn the_old_annotations_of_apparmor_are_read() {
        let key = format!("{APPARMOR_ANNOTATION}main");
        let template = |profile: &str| json!({"metadata": {"annotations": {&key: profile}}});
        assert_eq!(
            paths(&template("unconfined")),
            [format!("t.metadata.annotations[{key}]")]
        );
        assert!(paths(&template("runtime/default")).is_empty());
        assert!(paths(&template("localhost/mine")).is_empty());
    }

    #[rstest]
    #[case::nothing(json!({}))]
    #[case::nonsense(json!({"containers": "none", "volumes": 3, "securityContext": []}))]
    #[case::users(json!({"hostUsers": false, "hostNetwork": false, "hostPID": null}))]
    #[case::ordinary(json!({
        "serviceAccountName": "smoke", "automountServiceAccountToken": true,
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "volumes": [
            {"name": "a", "emptyDir": {}}, {"name": "b", "secret": {"secretName": "b"}},
            {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}, {"podCertificate": {}}]}},
        ],
        "containers": [{
            "name": "smoke", "ports": [{"containerPort": 80, "hostPort": 0}],
            "securityContext": {
                "privileged": false, "allowPrivilegeEscalation": false, "procMount": "Default",
                "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
            },
            "readinessProbe": {"httpGet": {"port": 80}},
        }],
    }))]
    #[case::alias(json!({"serviceAccount": "smoke", "automountServiceAccountToken": true}))]
    fn an_ordinary_pod_is_allowed(#[case] pod: Value) {
        assert_eq!(violations(&json!({"spec": pod}), "t"), []);
    }

    #[test]
    fn a_refusal_names_the_field_the_value_and_what_is_allowed() {
        let found = violations(
            &json!({"spec": {"hostNetwork": true}}),
            "provider.job.spec.template",
        );
        assert_eq!(
            found[0].to_string(),
            "provider.job.spec.template.spec.hostNetwork: true is not allowed; a pod has namespaces of its own"
        );
    }
}
