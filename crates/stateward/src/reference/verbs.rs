//! A page for every verb.

use clap::{Arg, ArgAction, Command};

use super::{Pages, cell};

/// The pages of the verbs, and their index.
pub(super) fn pages(program: &Command) -> Pages {
    let mut program = program.clone().disable_help_subcommand(true).term_width(0);
    program.build();
    let mut pages = Pages::new();
    let mut index = String::from(
        "# Verbs\n\nEach is typed as `stateward VERB`, or as `kubectl stateward VERB` where `kubectl-stateward` is in the `PATH`. \
         `--help` says the same.\n\n| verb | |\n|---|---|\n",
    );
    for verb in leaves(&program, "") {
        let (name, command) = verb;
        let file = format!("{}.md", name.replace(' ', "-"));
        let about = about(command);
        index.push_str(&format!("| [`{name}`]({file}) | {} |\n", cell(&about)));
        pages.insert(format!("verbs/{file}"), page(&name, command));
    }
    index.push_str(&format!(
        "\n## Exit codes\n\n```\n{}\n```\n",
        stateward_cli::CODES
    ));
    pages.insert("verbs/README.md".into(), index);
    pages
}

/// The leaf commands, with the words that lead to them.
fn leaves<'c>(command: &'c Command, words: &str) -> Vec<(String, &'c Command)> {
    let below = command.get_subcommands().filter(|below| !below.is_hide_set());
    below
        .flat_map(|below| {
            let name = format!("{words} {}", below.get_name()).trim().to_owned();
            if below.has_subcommands() {
                leaves(below, &name)
            } else {
                vec![(name, below)]
            }
        })
        .collect()
}

fn about(command: &Command) -> String {
    let about = command.get_long_about().or_else(|| command.get_about());
    about.map(ToString::to_string).unwrap_or_default()
}

fn page(name: &str, command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    let mut page = format!("# {name}\n\n{}.\n\n```\n{usage}\n```\n", about(command));
    let shown = |arg: &&Arg| !arg.is_hide_set();
    let arguments: Vec<_> = command.get_positionals().filter(shown).collect();
    if !arguments.is_empty() {
        page.push_str("\n## Arguments\n\n| | | unless given |\n|---|---|---|\n");
        arguments.iter().for_each(|arg| page.push_str(&row(arg)));
    }
    let options: Vec<_> = command.get_opts().chain(flags(command)).filter(shown).collect();
    let mut options: Vec<_> = options.into_iter().filter(|arg| arg.get_id() != "help").collect();
    // In the order of declaration, as in the help.
    let declared: Vec<_> = command.get_arguments().map(Arg::get_id).collect();
    options.sort_by_key(|arg| declared.iter().position(|id| *id == arg.get_id()));
    if !options.is_empty() {
        page.push_str("\n## Options\n\n| | | unless given |\n|---|---|---|\n");
        options.iter().for_each(|arg| page.push_str(&row(arg)));
    }
    let more = command.get_after_long_help().or_else(|| command.get_after_help());
    if let Some(more) = more {
        page.push_str("\n## More\n");
        paragraphs(&more.to_string(), &mut page);
    }
    page
}

fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    let flag = |arg: &&Arg| !arg.get_action().takes_values() && !arg.is_positional();
    command.get_arguments().filter(flag)
}

/// `-o`, `--output <OUTPUT>`, the description, values and default. Independent of the machine that generates it.
fn row(arg: &Arg) -> String {
    let mut about = arg
        .get_long_help()
        .or_else(|| arg.get_help())
        .map(ToString::to_string)
        .unwrap_or_default();
    let takes = arg.get_action().takes_values();
    if takes && !arg.is_hide_possible_values_set() {
        let values = arg.get_possible_values();
        let values: Vec<_> = values.iter().filter(|value| !value.is_hide_set()).collect();
        let told: Vec<_> = values
            .iter()
            .map(|value| match value.get_help() {
                Some(help) => format!("`{}` ({help})", value.get_name()),
                None => format!("`{}`", value.get_name()),
            })
            .collect();
        if !told.is_empty() {
            about.push_str(&format!(": {}", told.join(", ")));
        }
    }
    if let Some(variable) = arg.get_env() {
        about.push_str(&format!("; or the variable `{}`", variable.to_string_lossy()));
    }
    let defaults: Vec<_> = arg
        .get_default_values()
        .iter()
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    let default = if takes { defaults.join(", ") } else { String::new() };
    // Some descriptions already say so.
    let again = matches!(arg.get_action(), ArgAction::Append)
        && !arg.is_positional()
        && !about.contains("may be given");
    let again = if again { ", more than once" } else { "" };
    format!("| {}{again} | {} | {default} |\n", spelling(arg), cell(&about))
}

/// The spelling of an argument.
fn spelling(arg: &Arg) -> String {
    let code = |text: String| format!("`{}`", text.replace('|', "\\|"));
    if arg.is_positional() {
        return code(arg.to_string());
    }
    // clap's spelling has the long name and the value.
    let long = code(arg.to_string());
    match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(_)) => format!("`-{short}`, {long}"),
        _ => long,
    }
}

/// Help text as Markdown: paragraphs unchanged, lists and tables as code.
fn paragraphs(text: &str, page: &mut String) {
    for paragraph in text.split("\n\n") {
        let mut lines: Vec<_> = paragraph.lines().collect();
        let listed = lines.iter().position(|line| line.starts_with("  "));
        let list = lines.split_off(listed.unwrap_or(lines.len()));
        page.push('\n');
        if !lines.is_empty() {
            page.push_str(&cell(&lines.join(" ")).replace("\\|", "|"));
            page.push('\n');
        }
        if !list.is_empty() {
            page.push_str(&format!("\n```\n{}\n```\n", list.join("\n")));
        }
    }
}
