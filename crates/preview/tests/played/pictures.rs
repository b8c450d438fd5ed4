//! Previews as pictures and pages.

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

/// A step that takes no time is replaced by the one that follows it.
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

/// The partition rises with the replicas, and the added pods run the new version all the same.
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

/// An escape sequence, C1, a carriage return, bidirectional controls, a forged line.
const HOSTILE: &str = "\x1b[7mPWN\u{9b}2J\r\u{202e}\u{2066}\u{7f}\nFORGED";

#[test]
fn no_control_character_of_a_cluster_is_in_a_preview() {
    fn hostile(text: &mut String) {
        text.push_str(HOSTILE);
    }
    let mut preview = preview(vec![set(5), four_steps()], &[]);
    hostile(&mut preview.rollout);
    hostile(&mut preview.workload);
    hostile(&mut preview.message);
    preview.assumptions.push(HOSTILE.to_owned());
    preview.what_if.push(HOSTILE.to_owned());
    preview.steps.iter_mut().for_each(hostile);
    preview
        .people
        .iter_mut()
        .for_each(|person| hostile(&mut person.command));
    preview.pods.iter_mut().for_each(|lane| hostile(&mut lane.pod));
    for entry in &mut preview.entries {
        match &mut entry.what {
            Happening::Step { title, .. } => hostile(title),
            Happening::PodReady { pod, .. } | Happening::PodStops { pod, .. } => hostile(pod),
            Happening::Waits { command } => hostile(command),
            _ => {}
        }
    }
    let look = Look {
        colour: true,
        ascii: false,
        width: 100,
    };
    let lines = text(&preview, look);
    let ours = ["\x1b[0m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m"];
    for line in &lines {
        let text = ours
            .iter()
            .fold(line.clone(), |text, code| text.replace(code, ""));
        assert!(!text.chars().any(stateward_terminal::is_unsafe), "{line:?}");
    }
    assert!(
        lines.iter().filter(|line| line.contains("PWN")).count() > 10,
        "{lines:?}"
    );
    assert!(
        lines.iter().any(|line| line.contains("\x1b[32m")),
        "colours stay: {lines:?}"
    );
    let picture = svg(&preview);
    let unsafe_ones: Vec<_> = picture
        .chars()
        .filter(|c| stateward_terminal::is_unsafe(*c) && *c != '\n')
        .collect();
    assert!(unsafe_ones.is_empty(), "{unsafe_ones:?}");
    assert!(!picture.lines().any(|line| line.starts_with("FORGED")) && picture.contains("PWN"));
}
