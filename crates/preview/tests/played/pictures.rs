//! Plans as pictures and pages.

use super::*;

#[test]
fn a_picture_shows_every_pod_and_keeps_markup_out() {
    let preview = preview(vec![set(3), four_steps()], &["image=crash"]);
    let picture = svg(&preview);
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    for piece in [
        ">db-0</text>",
        "class=\"unwell\"",
        "every pod returns",
        "prefers-color-scheme:dark",
        "RolledBack after 16s, at most 1 of 3 pods unavailable",
    ] {
        assert!(picture.contains(piece), "{piece} is not in {picture}");
    }
}

/// A step that takes no time gives way to the one that holds from there.
#[test]
fn what_begins_at_the_same_moment_is_named_in_order() {
    let back = preview(vec![set(5), four_steps()], &["abort@step3"]);
    let told = text(&back, PLAIN);
    let ruler = told.iter().find(|line| line.starts_with("  step"));
    assert_eq!(
        ruler.unwrap().trim_end(),
        "  step  1                  2,3,back",
        "{}",
        told.join("\n")
    );
    let picture = svg(&preview(vec![set(5), four_steps()], &[]));
    for piece in [
        "<title>12s 2. pause until promoted; 12s 3. 60 %</title>",
        "3. 60 %</text>",
        "<title>12s somebody is needed: stateward promote db</title>",
    ] {
        assert!(picture.contains(piece), "{piece} is not in {picture}");
    }
}

#[test]
fn nothing_is_drawn_after_the_end() {
    let mut rollout = four_steps();
    rollout["spec"]["progressDeadlineAbort"] = json!(false);
    let held = preview(vec![set(3), rollout], &["image=crash"]);
    assert_eq!(held.outcome, Outcome::Held);
    let last = held.pods.iter().filter_map(|lane| lane.spans.last());
    let ends: Vec<_> = last.map(|span| span.to).collect();
    assert_eq!(ends, [held.duration_seconds; 3]);
}

#[test]
fn a_picture_says_what_is_supposed() {
    let picture = svg(&preview(
        vec![set(3), four_steps()],
        &["image=crash", "people=1m"],
    ));
    assert!(
        picture.contains(">what if image=crash, people=1m</text>"),
        "{picture}"
    );
}

/// The partition moves up with the size, and pods come up new all the same.
#[test]
fn a_partition_is_said_to_be_the_last_only_where_it_is() {
    let preview = preview(vec![set(5), four_steps()], &["scale=6@step2"]);
    let told = text(&preview, PLAIN).join("\n");
    assert_eq!(told.matches("no pod moves any more").count(), 1, "{told}");
    assert!(
        told.contains("partition 0 to 6: no pod moves any more\n"),
        "{told}"
    );
}

#[test]
fn what_happens_after_the_last_step_is_not_said_of_a_step() {
    let mut rollout = rollout(json!([{"setWeight": 20}]));
    rollout["spec"]["progressDeadlineAbort"] = json!(false);
    let told = text(&preview(vec![set(3), rollout], &["pod=0:crash"]), PLAIN).join("\n");
    assert!(
        told.ends_with("people       after the last step: stateward abort db"),
        "{told}"
    );
}

#[test]
fn many_pods_share_a_line() {
    let preview = preview(vec![set(60), rollout(json!([{"setWeight": 50}]))], &[]);
    let told = text(&preview, PLAIN);
    assert!(told.len() < 20, "{}", told.join("\n"));
    assert!(
        told.iter()
            .any(|line| line.ends_with("db-59 to db-30 are Ready on the new version, 30 in all")),
        "{}",
        told.join("\n")
    );
}

#[test]
fn the_steps_stand_over_the_pods_however_short_their_names_are() {
    let (mut set, mut rollout) = (set(2), rollout(json!([{"setWeight": 50}])));
    set["metadata"]["name"] = json!("q");
    rollout["spec"]["workloadRef"]["name"] = json!("q");
    let told = text(&preview(vec![set, rollout], &[]), PLAIN);
    let ruler = told.iter().position(|line| line.starts_with("  step")).unwrap();
    let (steps, pod) = (&told[ruler], &told[ruler + 1]);
    assert_eq!(
        (steps.find('1'), pod.find("---")),
        (Some(8), Some(8)),
        "{}",
        told.join("\n")
    );
}
