//! A cluster whose free-form strings all contain terminal control sequences: none of them reaches stdout or stderr.

use rstest::rstest;
use stateward_cli::Style;

use crate::world::{FORGED, Hostile, PAYLOAD, Said, World};

/// The commands, each run on a rollout that is paused.
const LINES: [&str; 27] = [
    "get",
    "get -o wide",
    "get -o name",
    "get db",
    "get db -o wide",
    "get -A",
    "get nobody",
    "list -o wide",
    "status db",
    "status nobody",
    "explain db",
    "history db",
    "history db --revision 1",
    "diff db",
    "version",
    "promote db --dry-run=server",
    "abort db --dry-run=server",
    "retry db --dry-run=server",
    "pause db --dry-run=server",
    "resume db --dry-run=server",
    "undo db --dry-run=server",
    "restart db --dry-run=server",
    "set image db db=db:v3 --dry-run=server",
    "get db --watch",
    "get --watch -o wide",
    "status db --watch",
    "get web",
];

/// Commands with output for tools, which must not control a terminal either.
const DATA: [&str; 9] = [
    "get db -o json",
    "get db -o yaml",
    "get -o json",
    "get db -o 'jsonpath={.status.message}'",
    "get db -o 'jsonpath={.status}'",
    "explain db -o json",
    "history db -o json",
    "history db --revision 1 -o yaml",
    "version -o yaml",
];

/// A terminal with a UTF-8 locale, and one that treats U+009B in it as a control character.
const COLOUR: Style = Style {
    colour: true,
    ascii: false,
};
const ASCII: Style = Style {
    colour: true,
    ascii: true,
};

/// The escape sequences of our own styles.
const OURS: [&str; 6] = [
    "\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m",
];

async fn world() -> World {
    let world = World::with_operator().await;
    world
        .annotate_set("kubernetes.io/change-cause", "two is faster")
        .await;
    world.phase_web().await;
    world.image("v2").await;
    world.until("Paused").await;
    world
}

fn is_unsafe(character: char, style: Style) -> bool {
    stateward_terminal::is_unsafe(character) || style.ascii && !character.is_ascii()
}

fn assert_clean(line: &str, hostile: Hostile, style: Style, said: &Said) {
    for (stream, text) in [("stdout", &said.out), ("stderr", &said.talk)] {
        let ours = OURS
            .iter()
            .fold(text.clone(), |text, code| text.replace(code, ""));
        let unsafe_ones: Vec<_> = ours
            .chars()
            .filter(|c| is_unsafe(*c, style) && *c != '\n')
            .collect();
        assert!(
            unsafe_ones.is_empty(),
            "{line} with {hostile:?}: {stream} has {unsafe_ones:?} in {text:?}"
        );
        let forged = text.lines().any(|line| line.starts_with(FORGED));
        assert!(
            !forged,
            "{line} with {hostile:?}: {stream} has a forged line: {text:?}"
        );
    }
}

#[rstest]
#[case::free_text(Hostile::FreeText)]
#[case::every_string(Hostile::EveryString)]
#[case::names_too(Hostile::NamesToo)]
#[case::refusals(Hostile::Refusals)]
#[case::refused_writes(Hostile::RefusedWrites)]
#[tokio::test(start_paused = true)]
async fn no_control_character_of_a_cluster_reaches_a_terminal(
    #[case] hostile: Hostile,
    #[values(COLOUR, ASCII)] style: Style,
) {
    let world = world().await;
    let mut reached = Vec::new();
    for line in LINES {
        let said = world.run_hostile(hostile, line, style, false).await;
        assert_clean(line, hostile, style, &said);
        if said.out.contains("PWN") || said.talk.contains("PWN") {
            reached.push(line);
        }
    }
    // Commands that never show a string of the cluster show nothing here.
    let expected: &[&str] = match hostile {
        Hostile::FreeText => &["get -o wide", "get db", "status db", "history db", "diff db"],
        Hostile::EveryString | Hostile::NamesToo => &["get -o wide", "get db", "history db", "version"],
        Hostile::Refusals => &LINES,
        Hostile::RefusedWrites => &[
            "promote db --dry-run=server",
            "set image db db=db:v3 --dry-run=server",
        ],
    };
    for line in expected {
        assert!(reached.contains(line), "{line} with {hostile:?} showed nothing");
    }
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn data_on_a_terminal_has_no_control_characters_either(
    #[values(Style::default(), ASCII)] style: Style,
) {
    let world = world().await;
    for line in DATA {
        let said = world.run_hostile(Hostile::FreeText, line, style, true).await;
        let unsafe_ones: Vec<_> = said
            .out
            .chars()
            .filter(|c| is_unsafe(*c, style) && !matches!(c, '\n' | '\t'))
            .collect();
        assert!(
            unsafe_ones.is_empty(),
            "{line}: {unsafe_ones:?} in {:?}",
            said.out
        );
        assert!(said.out.contains("PWN"), "{line} showed nothing: {:?}", said.out);
    }
}

#[tokio::test(start_paused = true)]
async fn data_in_a_pipe_is_what_the_cluster_has() {
    let world = world().await;
    let run = async |line: &str| {
        let said = world
            .run_hostile(Hostile::FreeText, line, Style::default(), false)
            .await;
        assert_eq!(said.talk, "", "{line}");
        said.out
    };
    let message = run("get db -o 'jsonpath={.status.message}'").await;
    assert!(
        message.ends_with(PAYLOAD),
        "{message:?}: {:?}",
        run("get db").await
    );
    let read = |value: serde_json::Value| value["status"]["message"].as_str().map(str::to_owned);
    let json = serde_json::from_str(&run("get db -o json").await).unwrap();
    assert_eq!(read(json).as_deref(), Some(message.as_str()));
    let yaml = serde_saphyr::from_str(&run("get db -o yaml").await).unwrap();
    assert_eq!(read(yaml).as_deref(), Some(message.as_str()));
}

#[tokio::test(start_paused = true)]
async fn columns_stay_where_they_are() {
    let world = world().await;
    let said = world
        .run_hostile(Hostile::FreeText, "history db", Style::default(), false)
        .await;
    let column = said.out.lines().next().unwrap().find("OUTCOME").unwrap();
    for row in said.out.lines().skip(1) {
        let before: String = row.chars().take(column).collect();
        assert!(before.ends_with("   "), "{:?}", said.out);
    }
}
