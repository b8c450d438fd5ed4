//! Requests and events of the operator.

use std::collections::BTreeMap;

use stateward_cluster::{Commit, Entry};

use super::Replay;
use super::world::text;

/// The events of each object since it was last written.
#[derive(Default)]
pub(super) struct Told {
    events: BTreeMap<String, Vec<(String, String)>>,
    /// Several operators at once may each record the same event; leases are there to prevent that.
    several: bool,
}

impl Told {
    pub(super) fn by(alone: bool) -> Self {
        Self {
            several: !alone,
            ..Self::default()
        }
    }

    /// An object was written, by any client: from here on the same event may be recorded again.
    pub(super) fn rollout(&mut self, uid: &str) {
        self.events.remove(uid);
    }
}

impl Replay {
    /// 36: an event is recorded once, however often the operator crashes around it.
    pub(super) fn apply_event(&mut self, commit: &Commit, by_us: bool) {
        if !by_us || commit.deleted || self.told.several {
            return;
        }
        let event = &commit.object;
        let words = (text(&event["reason"]), text(&event["message"]));
        let told = self
            .told
            .events
            .entry(text(&event["involvedObject"]["uid"]))
            .or_default();
        if told.contains(&words) {
            self.breaks(format!("36: told twice: {} {}", words.0, words.1));
        } else {
            told.push(words);
        }
    }

    /// 18: the operator never deletes what holds a user's data, and of the objects that it did not create only pods. 19: it names the UID of
    /// the pod to delete. 29: it sends no write that changes nothing.
    pub(super) fn check_request(&mut self, entry: &Entry) {
        let Entry {
            verb,
            resource,
            name,
            code,
            revision,
            body,
            ..
        } = entry;
        let made_by_us = ["analysisruns", "jobs", "controllerrevisions"].contains(&resource.as_str());
        if verb == "create" && made_by_us {
            self.made
                .insert((resource.clone(), text(&body["metadata"]["name"])));
        }
        let ours = resource == "pods" || self.made.contains(&(resource.clone(), name.clone()));
        if verb.starts_with("delete") && !ours {
            self.breaks(format!("18: the operator asked to {verb} {resource} {name}"));
        }
        let options = match (verb.as_str(), resource.as_str()) {
            ("delete", "pods") => Some(body),
            ("create", "pods/eviction") => Some(&body["deleteOptions"]),
            _ => None,
        };
        if options.is_some_and(|options| options["preconditions"]["uid"].is_null()) {
            self.breaks(format!("19: pod {name} was to go whichever it was"));
        }
        let ours = matches!(resource.as_str(), "statefulsets" | "rolloutplugins/status");
        if ours && *code == 200 && revision.is_none() {
            self.breaks(format!("29: a {verb} of {resource} {name} changed nothing"));
        }
    }
}
