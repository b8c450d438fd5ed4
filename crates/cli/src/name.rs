//! Names as people type them: `db`, `rp/db`, `rolloutplugin/db`, `phased/db`.

use std::fmt;
use std::str::FromStr;

use crate::rollout::Kind;

/// The name of a rollout, with or without its kind before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    kind: Option<Kind>,
    name: String,
}

/// How a kind may be written, and what it is.
const KINDS: [(&str, Kind); 6] = [
    ("rp", Kind::RolloutPlugin),
    ("rolloutplugin", Kind::RolloutPlugin),
    ("rolloutplugins", Kind::RolloutPlugin),
    ("phased", Kind::PhasedRollout),
    ("phasedrollout", Kind::PhasedRollout),
    ("phasedrollouts", Kind::PhasedRollout),
];

/// `rolloutplugins.v1alpha1.argoproj.io` and `rolloutplugins.argoproj.io` are the same kind.
fn kind(text: &str) -> Option<Kind> {
    let text = text.to_ascii_lowercase();
    let (word, group) = match text.split_once('.') {
        Some((word, group)) => (word, Some(group)),
        None => (text.as_str(), None),
    };
    let (_, kind) = KINDS.iter().find(|(known, _)| *known == word)?;
    let group = group.map(|group| group.strip_prefix("v1alpha1.").unwrap_or(group));
    group.is_none_or(|group| group == kind.group()).then_some(*kind)
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, name) = match text.split_once('/') {
            Some((written, name)) => match kind(written) {
                Some(kind) => (Some(kind), name),
                None => {
                    return Err(format!(
                        "{:?} is not a kind of rollout; name one as NAME, rp/NAME or phased/NAME",
                        written.to_ascii_lowercase()
                    ));
                }
            },
            None => (None, text),
        };
        if name.is_empty() || name.contains('/') {
            return Err(format!(
                "{text:?} has no name in it; name a rollout as NAME, rp/NAME or phased/NAME"
            ));
        }
        Ok(Self {
            kind,
            name: name.to_owned(),
        })
    }
}

impl Name {
    /// Without the kind.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// The kinds that may be meant.
    pub(crate) fn kinds(&self) -> &[Kind] {
        match &self.kind {
            Some(kind) => std::slice::from_ref(kind),
            None => &Kind::ALL,
        }
    }

    /// `rollout db`, or with the kind that was said.
    pub(crate) fn title(&self) -> String {
        let kind = self.kind.map_or("rollout", Kind::word);
        format!("{kind} {}", self.name)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("db")]
    #[case("rp/db")]
    #[case("RolloutPlugin/db")]
    #[case("rolloutplugins/db")]
    #[case("rolloutplugin.argoproj.io/db")]
    #[case("rolloutplugins.v1alpha1.argoproj.io/db")]
    fn a_name_may_have_its_kind_before_it(#[case] text: &str) {
        assert_eq!(text.parse::<Name>().unwrap().as_str(), "db");
    }

    #[rstest]
    #[case("phased/db")]
    #[case("PhasedRollout/db")]
    #[case("phasedrollouts.sts.plus/db")]
    #[case("phasedrollout.v1alpha1.sts.plus/db")]
    fn a_name_may_say_which_kind_is_meant(#[case] text: &str) {
        let name = text.parse::<Name>().unwrap();
        assert_eq!((name.as_str(), name.kinds()), ("db", &[Kind::PhasedRollout][..]));
    }

    #[rstest]
    #[case(
        "sts/db",
        "\"sts\" is not a kind of rollout; name one as NAME, rp/NAME or phased/NAME"
    )]
    #[case(
        "rp.apps/db",
        "\"rp.apps\" is not a kind of rollout; name one as NAME, rp/NAME or phased/NAME"
    )]
    #[case(
        "rp/",
        "\"rp/\" has no name in it; name a rollout as NAME, rp/NAME or phased/NAME"
    )]
    #[case("", "\"\" has no name in it; name a rollout as NAME, rp/NAME or phased/NAME")]
    #[case(
        "rp/a/b",
        "\"rp/a/b\" has no name in it; name a rollout as NAME, rp/NAME or phased/NAME"
    )]
    fn what_is_no_rollout_is_refused(#[case] text: &str, #[case] why: &str) {
        assert_eq!(text.parse::<Name>().unwrap_err(), why);
    }
}
