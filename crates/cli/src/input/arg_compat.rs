//! Accepts the argument order of kubectl where clap does not: flags before the verb, and a kind before a name.

use std::ffi::OsString;

use crate::input::access;
use crate::input::name::is_kind;

/// The verbs for one rollout. Those for several parse their own names.
const FOR_ONE: [&str; 3] = ["diff", "top", "plan"];

/// The verbs without an existing cluster: their kubeconfig is an output.
const FOR_NONE: [&str; 3] = ["demo", "cluster", "install"];

/// Reorders the words of a command line, the first of which is the program, for clap.
pub fn as_meant(mut words: Vec<OsString>) -> Vec<OsString> {
    let mut verb = 1;
    while let Some(width) = words.get(verb).and_then(|word| access::width(word)) {
        verb += width;
    }
    let Some(named) = words.get(verb).and_then(|word| word.to_str()) else {
        return words;
    };
    let (two_words, for_one) = (named == "set", FOR_ONE.contains(&named));
    let behind = verb + if two_words { 2 } else { 1 };
    if behind > words.len() || FOR_NONE.contains(&named) {
        return words;
    }
    if for_one || two_words {
        join(&mut words, behind);
    }
    // Moves flags before the verb behind it. A verb without such a flag rejects it there.
    let (program, flags, verb, rest) = (
        &words[..1],
        &words[1..verb],
        &words[verb..behind],
        &words[behind..],
    );
    [program, verb, flags, rest].concat()
}

/// `rp db` is `rp/db`.
fn join(words: &mut Vec<OsString>, at: usize) {
    let text = |at: usize| words.get(at).and_then(|word| word.to_str());
    if let (Some(kind), Some(name)) = (text(at), text(at + 1))
        && is_kind(kind)
        && !name.starts_with('-')
        && !name.contains(['/', '='])
    {
        let joined = format!("{kind}/{name}").into();
        words.splice(at..at + 2, [joined]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("s get db -n prod", "s get db -n prod")]
    #[case("s -n prod get db", "s get -n prod db")]
    #[case("s -nprod --context=x get", "s get -nprod --context=x")]
    #[case(
        "s --context x --as me --as-group us get -n a",
        "s get --context x --as me --as-group us -n a"
    )]
    #[case("s -n prod set image db db=db:2", "s set image -n prod db db=db:2")]
    #[case("s -n prod demo", "s -n prod demo")]
    #[case("s --kubeconfig mine cluster", "s --kubeconfig mine cluster")]
    #[case("s --context x operator", "s operator --context x")]
    #[case("s --namespaces x get", "s --namespaces x get")]
    #[case("s -n prod", "s -n prod")]
    #[case("s -n", "s -n")]
    #[case("s -n prod set", "s -n prod set")]
    #[case("s", "s")]
    fn flags_may_stand_before_the_verb(#[case] typed: &str, #[case] meant: &str) {
        assert_eq!(arranged(typed), meant);
    }

    #[rstest]
    #[case("s diff rp db", "s diff rp/db")]
    #[case("s status rp db -w", "s status rp db -w")]
    #[case("s -n prod top RolloutPlugin db", "s top -n prod RolloutPlugin/db")]
    #[case("s set image sts db db=db:2", "s set image sts/db db=db:2")]
    #[case("s set image rp db=db:2", "s set image rp db=db:2")]
    #[case("s history rp", "s history rp")]
    #[case("s history rp -o json", "s history rp -o json")]
    #[case("s get rp db", "s get rp db")]
    fn a_kind_may_stand_before_a_name(#[case] typed: &str, #[case] meant: &str) {
        assert_eq!(arranged(typed), meant);
    }

    fn arranged(typed: &str) -> String {
        let words = as_meant(typed.split(' ').map(OsString::from).collect());
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }
}
