//! How what-ifs are reported.

use super::*;

#[test]
fn nobody_is_called_for_what_is_aborted() {
    let preview = preview(vec![set(5), four_steps()], &["abort@step2"]);
    let told = text(&preview, PLAIN).join("\n");
    assert_eq!(preview.outcome, Outcome::RolledBack, "{told}");
    assert!(told.contains("> abort@step2"), "{told}");
    assert!(!told.contains("promote db"), "{told}");
    assert_eq!(preview.people, [], "{told}");
}

#[test]
fn what_is_unavailable_is_counted_among_the_pods_there_are() {
    let preview = preview(vec![set(5), four_steps()], &["scale=7@step2"]);
    let told = text(&preview, PLAIN).join("\n");
    assert!(told.contains("unavailable  1 of 7 pods at most"), "{told}");
    assert!(svg(&preview).contains("at most 1 of 7 pods unavailable"));
}

/// Simulated revisions exist on no cluster.
#[test]
fn no_command_is_told_that_is_for_a_played_revision() {
    let preview = preview(vec![set(5), four_steps()], &["image=crash"]);
    let told = text(&preview, PLAIN).join("\n");
    assert!(told.contains("CrashLoopBackOff"), "{told}");
    assert!(!told.contains("--revision"), "{told}");
}

#[rstest]
#[case("metric=fails")]
#[case("metric=inconclusive")]
fn no_condition_is_told_that_nobody_has_written(#[case] what_if: &str) {
    let preview = preview(analysed(), &[what_if]);
    let told = text(&preview, PLAIN).join("\n");
    assert!(told.contains("as supposed"), "{told}");
    for made_up in ["failureCondition", "result[0]", " of ["] {
        assert!(!told.contains(made_up), "{made_up} is in {told}");
    }
}
