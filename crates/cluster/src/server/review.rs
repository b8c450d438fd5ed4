//! Access reviews. Every user has all rights: rules are stored here but not enforced.

use crate::json::{Value, json};

use super::create::{check_kind, check_namespace};
use super::{Caller, Server, Target, WriteOptions, Written, decode, manager, unknown_fields, unreadable};
use crate::patch::managed::{self, Write};
use crate::status::{About, FieldError, Status};

/// The group whose members may do everything on any cluster.
const MASTERS: &str = "system:masters";

impl Server {
    /// Answers a review, without storing it.
    pub(crate) fn review(
        &self,
        target: &Target,
        body: &Value,
        options: &WriteOptions,
        caller: &Caller,
    ) -> Result<Written, Status> {
        let resource = &*target.resource;
        check_kind(resource, body)?;
        let (mut review, unknown) = decode(resource, body).map_err(|why| unreadable(resource, why))?;
        let warnings = unknown_fields(&unknown, options).map_err(|why| unreadable(resource, why))?;
        check_namespace(target, &mut review)?;
        self.answer(target, &mut review, options, caller)
            .map_err(|refused| refused.warning(&warnings))?;
        Ok(Written {
            object: review.into(),
            created: true,
            warnings,
        })
    }

    fn answer(
        &self,
        target: &Target,
        review: &mut Value,
        options: &WriteOptions,
        caller: &Caller,
    ) -> Result<(), Status> {
        match target.resource.plural.as_str() {
            "selfsubjectreviews" => {
                review["metadata"]["creationTimestamp"] = self.now_text().into();
                review["status"] = json!({"userInfo": {
                    "username": caller.user, "groups": [MASTERS, "system:authenticated"],
                }});
                return Ok(());
            }
            "selfsubjectrulesreviews" => {
                let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
                if namespace.is_empty() {
                    return Err(Status::bad_request("no namespace on request"));
                }
                review["spec"] = json!({});
                review["status"] = all_rules();
                return Ok(());
            }
            _ => {}
        }
        let errors = problems(target, review);
        if !errors.is_empty() {
            let about = About {
                plural: "",
                kind: "",
                name: "",
                group: &target.resource.group,
            };
            return Err(Status::invalid(about, &errors));
        }
        let api_version = target.resource.api_version();
        let write = Write {
            manager: manager(options, caller),
            subresource: "",
            api_version: &api_version,
            kind: &target.resource.kind,
            reset: &[],
            now: &self.now_text(),
        };
        managed::update(None, review, &write, target.resource.shape()).write(review);
        review["status"] = json!({"allowed": true});
        let groups = review["spec"]["groups"].as_array();
        let is_master = groups.is_some_and(|groups| groups.iter().any(|group| group == MASTERS));
        if target.resource.plural != "selfsubjectaccessreviews" && !is_master {
            review["status"]["reason"] = "this cluster stores RBAC rules and does not enforce them".into();
        }
        Ok(())
    }
}

/// The errors of a review of one right.
fn problems(target: &Target, review: &Value) -> Vec<FieldError> {
    let spec = &review["spec"];
    let (about, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let mut errors = Vec::new();
    match (about.is_null(), path.is_null()) {
        (true, true) => errors.push(FieldError::invalid(
            "spec.resourceAttributes",
            &Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        (false, false) => {
            let text = |field: &str| Value::from(path[field].as_str().unwrap_or_default());
            errors.push(FieldError::invalid_as(
                "spec.nonResourceAttributes",
                &format!("{{\"Path\":{},\"Verb\":{}}}", text("path"), text("verb")),
                "cannot be specified in combination with resourceAttributes",
            ));
        }
        _ => {}
    }
    let plural = target.resource.plural.as_str();
    let has_groups = spec["groups"].as_array().is_some_and(|groups| !groups.is_empty());
    let user = spec["user"].as_str().unwrap_or_default();
    if plural != "selfsubjectaccessreviews" && user.is_empty() && !has_groups {
        errors.push(FieldError::invalid(
            "spec.user",
            &"".into(),
            "at least one of user or group must be specified",
        ));
    }
    let namespace = about["namespace"].as_str().unwrap_or_default();
    if plural == "localsubjectaccessreviews" && !about.is_null() && namespace != target.namespace {
        errors.push(FieldError::invalid(
            "spec.resourceAttributes.namespace",
            &namespace.into(),
            "must match metadata.namespace",
        ));
    }
    errors
}

/// The rules of a real cluster's administrator, as it lists them.
fn all_rules() -> Value {
    let health = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
    let discovery = [
        "/api",
        "/api/*",
        "/apis",
        "/apis/*",
        "/healthz",
        "/livez",
        "/openapi",
        "/openapi/*",
        "/readyz",
        "/version",
        "/version/",
    ];
    json!({
        "resourceRules": [
            {"verbs": ["create"], "apiGroups": ["authorization.k8s.io"],
                "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]},
            {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]},
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
        ],
        "nonResourceRules": [
            {"verbs": ["get"], "nonResourceURLs": discovery},
            {"verbs": ["get"], "nonResourceURLs": health},
            {"verbs": ["*"], "nonResourceURLs": ["*"]},
        ],
        "incomplete": false,
    })
}
