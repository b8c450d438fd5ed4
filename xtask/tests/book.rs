//! The book holds together: every page is in it, every link leads somewhere, pictures fetch nothing.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "what a test cannot read fails it"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

fn root() -> PathBuf {
    normal(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
}

/// Without `..` in it.
fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut path, part| {
        if part == Component::ParentDir {
            path.pop();
        } else {
            path.push(part);
        }
        path
    })
}

/// Every file below `dir` that ends so.
fn files(dir: &Path, extension: &str) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                files(&path, extension)
            } else {
                let found = path.extension().is_some_and(|found| found == extension);
                found.then_some(path).into_iter().collect()
            }
        })
        .collect()
}

/// A page: where it leads, and what can be led to in it.
struct Page {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

impl Page {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let (mut links, mut anchors, mut heading) = (Vec::new(), BTreeSet::new(), None::<String>);
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    links.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                Event::End(TagEnd::Heading(_)) => {
                    let slug = slug(&heading.take().unwrap_or_default());
                    let times = seen.entry(slug.clone()).or_default();
                    anchors.insert(if *times == 0 {
                        slug
                    } else {
                        format!("{slug}-{times}")
                    });
                    *times += 1;
                }
                _ => {}
            }
        }
        Self { links, anchors }
    }
}

/// The name of a heading, as mdBook and GitHub both make it.
fn slug(heading: &str) -> String {
    let kept = |c: char| match c {
        c if c.is_alphanumeric() => c.to_lowercase().next(),
        '_' | '-' => Some(c),
        c if c.is_whitespace() => Some('-'),
        _ => None,
    };
    heading.trim().chars().filter_map(kept).collect()
}

fn is_elsewhere(link: &str) -> bool {
    link.contains("://") || link.starts_with("mailto:")
}

#[test]
fn every_page_is_in_the_book_and_every_page_of_the_book_is_there() {
    let docs = root().join("docs");
    let summary = docs.join("SUMMARY.md");
    let listed = Page::read(&summary).links;
    let named: BTreeSet<_> = listed.iter().map(|link| docs.join(link)).collect();
    assert_eq!(named.len(), listed.len(), "a page is in SUMMARY.md twice");
    let mut there = files(&docs, "md");
    there.remove(&summary);
    let missing: Vec<_> = there.difference(&named).collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
    let gone: Vec<_> = named.difference(&there).collect();
    assert!(gone.is_empty(), "in docs/SUMMARY.md and nowhere else: {gone:?}");
}

#[test]
fn every_link_leads_somewhere() {
    let root = root();
    let docs = root.join("docs");
    let mut pages = files(&docs, "md");
    pages.extend(["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root.join(name)));
    let mut broken = Vec::new();
    for page in &pages {
        for link in Page::read(page).links.iter().filter(|link| !is_elsewhere(link)) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                page.clone()
            } else {
                normal(&page.parent().unwrap().join(file))
            };
            let found =
                target.exists() && (anchor.is_empty() || Page::read(&target).anchors.contains(anchor));
            // The book has nothing but what is under docs/.
            let inside = !page.starts_with(&docs) || target.starts_with(&docs);
            if !found || !inside {
                broken.push(format!("{}: {link}", page.strip_prefix(&root).unwrap().display()));
            }
        }
    }
    assert!(
        broken.is_empty(),
        "links that lead nowhere, or out of the book:\n{}",
        broken.join("\n")
    );
}

#[test]
fn pictures_are_small_and_fetch_nothing() {
    let pictures = files(&root().join("docs/images"), "svg");
    assert!(pictures.len() >= 2, "{pictures:?}");
    for path in pictures {
        let picture = fs::read_to_string(&path).unwrap();
        let shown = path.display();
        assert!(picture.len() < 150_000, "{shown} has {} bytes", picture.len());
        let rest = picture.replacen("http://www.w3.org/2000/svg", "", 1);
        for part in ["://", "<script", "@import", "data:"] {
            assert!(!rest.contains(part), "{shown} has {part}");
        }
    }
}

#[test]
fn headings_are_named_as_everybody_names_them() {
    assert_eq!(slug("4. When it goes wrong"), "4-when-it-goes-wrong");
    assert_eq!(slug("spec.check.query, `url`"), "speccheckquery-url");
}
