//! Names as people type them: `db`, `rp/db`, `rolloutplugin/db`.

use std::fmt;
use std::str::FromStr;

/// The name of a RolloutPlugin, with or without its kind before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

const KINDS: [&str; 3] = ["rp", "rolloutplugin", "rolloutplugins"];

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, name) = match text.split_once('/') {
            Some((kind, name)) => (Some(kind.to_ascii_lowercase()), name),
            None => (None, text),
        };
        // `rolloutplugins.v1alpha1.argoproj.io` and `rolloutplugins.argoproj.io` are the same kind.
        let known = |kind: &String| {
            let (kind, group) = kind.split_once('.').unwrap_or((kind, "argoproj.io"));
            KINDS.contains(&kind) && matches!(group, "argoproj.io" | "v1alpha1.argoproj.io")
        };
        if let Some(kind) = kind.filter(|kind| !known(kind)) {
            return Err(format!(
                "{kind:?} is not a kind of rollout; name one as NAME, rp/NAME or rolloutplugin/NAME"
            ));
        }
        if name.is_empty() || name.contains('/') {
            return Err(format!(
                "{text:?} has no name in it; name a rollout as NAME or rp/NAME"
            ));
        }
        Ok(Self(name.to_owned()))
    }
}

impl Name {
    /// Without the kind.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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
    #[case(
        "sts/db",
        "\"sts\" is not a kind of rollout; name one as NAME, rp/NAME or rolloutplugin/NAME"
    )]
    #[case(
        "rp.apps/db",
        "\"rp.apps\" is not a kind of rollout; name one as NAME, rp/NAME or rolloutplugin/NAME"
    )]
    #[case("rp/", "\"rp/\" has no name in it; name a rollout as NAME or rp/NAME")]
    #[case("", "\"\" has no name in it; name a rollout as NAME or rp/NAME")]
    #[case("rp/a/b", "\"rp/a/b\" has no name in it; name a rollout as NAME or rp/NAME")]
    fn what_is_no_rollout_is_refused(#[case] text: &str, #[case] why: &str) {
        assert_eq!(text.parse::<Name>().unwrap_err(), why);
    }
}
