//! Names as users type them: `db`, `rp/db`, `rolloutplugin/db`, `phased/db`, or by StatefulSet: `sts/db`.

use std::fmt;
use std::str::FromStr;

use crate::rollout::Kind;

/// The name of a rollout, with or without a kind prefix, or of its workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    what: What,
    name: String,
}

/// What a name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// A rollout of any kind.
    Rollout,
    /// A rollout of this kind.
    Kind(Kind),
    /// The StatefulSet of a rollout.
    Set,
}

/// The spellings of the workload kind.
const SETS: [&str; 3] = ["sts", "statefulset", "statefulsets"];

/// The accepted forms of a name, for messages.
const FORMS: &str = "NAME, rp/NAME, phased/NAME or sts/NAME";

/// The spellings of the rollout kinds.
const KINDS: [(&str, Kind); 6] = [
    ("rp", Kind::RolloutPlugin),
    ("rolloutplugin", Kind::RolloutPlugin),
    ("rolloutplugins", Kind::RolloutPlugin),
    ("phased", Kind::PhasedRollout),
    ("phasedrollout", Kind::PhasedRollout),
    ("phasedrollouts", Kind::PhasedRollout),
];

/// `rolloutplugins.v1alpha1.argoproj.io` and `rolloutplugins.argoproj.io` are the same kind.
fn what(text: &str) -> Option<What> {
    let text = text.to_ascii_lowercase();
    let (word, group) = match text.split_once('.') {
        Some((word, group)) => (word, Some(group)),
        None => (text.as_str(), None),
    };
    if SETS.contains(&word) {
        let group = group.map(|group| group.strip_prefix("v1.").unwrap_or(group));
        return group.is_none_or(|group| group == "apps").then_some(What::Set);
    }
    let (_, kind) = KINDS.iter().find(|(known, _)| *known == word)?;
    let group = group.map(|group| group.strip_prefix("v1alpha1.").unwrap_or(group));
    group
        .is_none_or(|group| group == kind.group())
        .then_some(What::Kind(*kind))
}

/// Whether this is a valid namespace name.
pub(crate) fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_part(text)
}

/// Whether this is a valid object name.
pub(crate) fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_part)
}

fn is_part(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Whether a word is only a kind.
pub(crate) fn is_kind(text: &str) -> bool {
    what(text).is_some()
}

/// Names after a kind, as kubectl accepts them: `rp db web`. Without a name, the remaining kind.
pub(crate) fn after_a_kind(names: Vec<Name>) -> Result<(Option<Kind>, Vec<Name>), String> {
    let said = match names.first() {
        Some(first) if first.what == What::Rollout => what(&first.name),
        _ => None,
    };
    let Some(said) = said else {
        return Ok((None, names));
    };
    if let Some(other) = names[1..].iter().find(|name| name.what != What::Rollout) {
        return Err(format!(
            "{} is said before the names, so that {} cannot have its own; name rollouts as {FORMS}",
            names[0],
            other.title()
        ));
    }
    let named: Vec<_> = names[1..]
        .iter()
        .map(|name| Name {
            what: said,
            name: name.name.clone(),
        })
        .collect();
    match said {
        What::Kind(kind) => Ok((Some(kind), named)),
        _ if named.is_empty() => Err(format!(
            "{} is a kind of workload; name one as sts/NAME",
            names[0]
        )),
        _ => Ok((None, named)),
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (what, name) = match text.split_once('/') {
            Some((written, name)) => match what(written) {
                Some(what) => (what, name),
                None => {
                    return Err(format!(
                        "{:?} is not a kind of rollout; name one as {FORMS}",
                        written.to_ascii_lowercase()
                    ));
                }
            },
            None => (What::Rollout, text),
        };
        if name.is_empty() || name.contains('/') {
            return Err(format!("{text:?} has no name in it; name a rollout as {FORMS}"));
        }
        if !is_subdomain(name) {
            return Err(format!(
                "{name:?} cannot be a name, which has at most 253 lower-case letters, digits, - and ., and a letter or digit at both ends"
            ));
        }
        Ok(Self {
            what,
            name: name.to_owned(),
        })
    }
}

impl Name {
    /// Without the kind.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// The kinds that it may refer to.
    pub(crate) fn kinds(&self) -> &[Kind] {
        match &self.what {
            What::Kind(kind) => std::slice::from_ref(kind),
            What::Rollout | What::Set => &Kind::ALL,
        }
    }

    /// Whether it names the workload instead of the rollout.
    pub(crate) fn is_of_a_set(&self) -> bool {
        self.what == What::Set
    }

    /// The name of a rollout that was found.
    pub(crate) fn of(kind: Kind, name: impl Into<String>) -> Self {
        Self {
            what: What::Kind(kind),
            name: name.into(),
        }
    }

    /// `rollout db`, or with the given kind.
    pub(crate) fn title(&self) -> String {
        let kind = match self.what {
            What::Rollout => "rollout",
            What::Kind(kind) => kind.word(),
            What::Set => "statefulset",
        };
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
    #[case("db web", Ok(vec!["rollout db", "rollout web"]))]
    #[case("rp db web", Ok(vec!["rolloutplugin db", "rolloutplugin web"]))]
    #[case("phasedrollouts.sts.plus db", Ok(vec!["phasedrollout db"]))]
    #[case("sts db", Ok(vec!["statefulset db"]))]
    #[case("db rp", Ok(vec!["rollout db", "rollout rp"]))]
    #[case("rp", Ok(vec![]))]
    #[case("rp/rp db", Ok(vec!["rolloutplugin rp", "rollout db"]))]
    #[case("sts", Err("sts is a kind of workload; name one as sts/NAME"))]
    #[case(
        "rp db sts/web",
        Err(
            "rp is said before the names, so that statefulset web cannot have its own; name rollouts as NAME, rp/NAME, phased/NAME or sts/NAME"
        )
    )]
    fn a_kind_may_stand_before_names(#[case] typed: &str, #[case] expected: Result<Vec<&str>, &str>) {
        let names = typed.split(' ').map(|word| word.parse().unwrap()).collect();
        let titles = after_a_kind(names).map(|(_, names)| names.iter().map(Name::title).collect::<Vec<_>>());
        let titles = titles
            .as_ref()
            .map(|titles| titles.iter().map(String::as_str).collect());
        assert_eq!(titles.map_err(String::as_str), expected);
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
    #[case("sts/db")]
    #[case("StatefulSet/db")]
    #[case("statefulsets.apps/db")]
    #[case("statefulset.v1.apps/db")]
    fn a_name_may_be_that_of_what_is_rolled(#[case] text: &str) {
        let name = text.parse::<Name>().unwrap();
        assert_eq!(
            (name.is_of_a_set(), name.title().as_str()),
            (true, "statefulset db")
        );
    }

    #[rstest]
    #[case(
        "deploy/db",
        "\"deploy\" is not a kind of rollout; name one as NAME, rp/NAME, phased/NAME or sts/NAME"
    )]
    #[case(
        "rp.apps/db",
        "\"rp.apps\" is not a kind of rollout; name one as NAME, rp/NAME, phased/NAME or sts/NAME"
    )]
    #[case(
        "rp/",
        "\"rp/\" has no name in it; name a rollout as NAME, rp/NAME, phased/NAME or sts/NAME"
    )]
    #[case(
        "",
        "\"\" has no name in it; name a rollout as NAME, rp/NAME, phased/NAME or sts/NAME"
    )]
    #[case(
        "rp/a/b",
        "\"rp/a/b\" has no name in it; name a rollout as NAME, rp/NAME, phased/NAME or sts/NAME"
    )]
    #[case(
        "rp/db?x=1",
        "\"db?x=1\" cannot be a name, which has at most 253 lower-case letters, digits, - and ., and a letter or digit at both ends"
    )]
    #[case(
        "DB",
        "\"DB\" cannot be a name, which has at most 253 lower-case letters, digits, - and ., and a letter or digit at both ends"
    )]
    fn what_is_no_rollout_is_refused(#[case] text: &str, #[case] why: &str) {
        assert_eq!(text.parse::<Name>().unwrap_err(), why);
    }
}
