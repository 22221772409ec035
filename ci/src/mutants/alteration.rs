//! Alterations as data: `mutants/*/*.toml`.

use crate::workspace;
use kcov_vm::error::{Error, OrUnavailable as _, Phase, Result, one_line};
use serde::Deserialize;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The longest quotation of a kernel's source.
const WORDS: usize = 8;

/// A defect that checks have to notice.
#[derive(Clone, Debug, Deserialize)]
pub struct Alteration {
    /// Its name, which describes the defect.
    pub name: String,
    /// The altered file's path in the kernel's tree or in the workspace.
    #[serde(default)]
    pub file: String,
    /// The target whose kernel is altered or runs the altered library.
    #[serde(default)]
    pub on: String,
    /// The checks that fail.
    #[serde(default)]
    pub red: Vec<String>,
    /// The checks and topics during which the kernel panics, hangs or complains.
    #[serde(default)]
    pub ends: Vec<String>,
    /// The function that contains the places, unless an edit names another.
    function: Option<String>,
    /// The changes of the file.
    #[serde(default)]
    pub edits: Vec<Edit>,
    /// The only change, if there is no list.
    #[serde(flatten)]
    only: toml::Table,
}

/// A change at one place. One of `replace`, `delete`, `before` and `after` locates it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    function: Option<String>,
    replace: Option<String>,
    delete: Option<String>,
    before: Option<String>,
    after: Option<String>,
    /// The place extends to these words.
    to: Option<String>,
    /// Which of several places with these words, counted from 1.
    nth: Option<usize>,
    /// The new text.
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    group: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    /// The target of all alterations.
    #[serde(default = "usual")]
    on: String,
    /// The file that they alter, unless they name another.
    #[serde(default)]
    file: String,
    alteration: Vec<Alteration>,
}

fn usual() -> String {
    "linux-uml".into()
}

impl Alteration {
    /// Reads all files, in order of their names.
    pub fn all() -> Result<Vec<Self>> {
        let mut paths: Vec<PathBuf> = Vec::new();
        let list = |directory: &Path| -> Result<Vec<PathBuf>> {
            let entries = fs::read_dir(directory).or_unavailable(Phase::Targets, "mutants")?;
            Ok(entries.flatten().map(|entry| entry.path()).collect())
        };
        for directory in list(&workspace().join("ci/mutants"))? {
            paths.extend(list(&directory)?);
        }
        paths.sort();
        let mut all = Vec::new();
        for path in paths {
            let text = fs::read_to_string(&path).or_unavailable(Phase::Targets, path.display())?;
            let read = Self::read(&text).map_err(|why| {
                Error::unavailable(Phase::Targets, format!("{}: {why}", path.display()))
            });
            all.extend(read?);
        }
        Ok(all)
    }

    /// Reads one file.
    pub fn read(text: &str) -> std::result::Result<Vec<Self>, String> {
        let error = |error: toml::de::Error| one_line(&error.to_string());
        let File { group } = toml::from_str(text).map_err(error)?;
        let mut all = Vec::new();
        for Group { on, file, alteration } in group {
            for mut one in alteration {
                one.on.clone_from(&on);
                if one.file.is_empty() {
                    one.file.clone_from(&file);
                }
                let only = std::mem::take(&mut one.only);
                if one.edits.is_empty() || !only.is_empty() {
                    one.edits.push(only.try_into().map_err(error)?);
                }
                for edit in one.edits.iter_mut().filter(|edit| edit.function.is_none()) {
                    edit.function.clone_from(&one.function);
                }
                if let Some(why) = one.edits.iter().find_map(Edit::problem) {
                    return Err(format!("`{}`: {why}", one.name));
                }
                all.push(one);
            }
        }
        Ok(all)
    }

    /// Whether it alters the suite's library and not a kernel.
    pub fn is_of_library(&self) -> bool {
        self.file.starts_with("kcov")
    }

    /// Returns the altered text of its file.
    pub fn apply(&self, original: &str) -> std::result::Result<String, String> {
        let changes = self.edits.iter().map(|edit| edit.change(original));
        let mut changes = changes.collect::<std::result::Result<Vec<_>, _>>()?;
        changes.sort_by_key(|(place, _)| (place.start, place.end));
        if changes.windows(2).any(|pair| pair[0].0.end > pair[1].0.start) {
            return Err("two edits overlap".into());
        }
        let mut text = original.to_string();
        changes.into_iter().rev().for_each(|(place, new)| text.replace_range(place, &new));
        Ok(text)
    }
}

impl Edit {
    /// The words that locate the place.
    fn locator(&self) -> Option<&str> {
        let all = [&self.replace, &self.delete, &self.before, &self.after];
        let mut given = all.into_iter().flatten();
        given.next().filter(|_| given.next().is_none()).map(String::as_str)
    }

    /// Why the edit is not valid, whatever the file's text.
    fn problem(&self) -> Option<String> {
        let Some(locator) = self.locator() else {
            return Some("an edit has one of replace, delete, before, after".into());
        };
        let all = [locator, self.to.as_deref().unwrap_or_default()];
        let count = all.into_iter().flat_map(str::split_whitespace).count();
        (!(1..=WORDS).contains(&count)).then(|| format!("`{locator}`: it quotes {count} words"))
    }

    /// Returns the replaced part of the text, and the new text there.
    fn change(&self, text: &str) -> std::result::Result<(std::ops::Range<usize>, String), String> {
        let (words, function) = (self.locator().unwrap_or_default(), self.function.as_deref());
        let places = find(text, function, words);
        let place = match (self.nth, places.as_slice()) {
            (None, [place]) => place.clone(),
            (Some(nth), [_, _, ..]) if nth > 0 && nth <= places.len() => places[nth - 1].clone(),
            _ => {
                let within = function.unwrap_or("the file");
                let count = places.len();
                return Err(format!("`{words}` is {count} times in {within}; see `nth`"));
            }
        };
        let end = match &self.to {
            None => place.end,
            Some(to) => {
                let rest = place.end..text.len();
                let found = find_in(text, &rest, to).into_iter().next();
                found.ok_or_else(|| format!("`{to}` does not follow `{words}`"))?.end
            }
        };
        let new = &self.text;
        Ok(match (&self.before, &self.after) {
            (Some(_), _) => (place.start..place.start, format!("{new} ")),
            (_, Some(_)) => (end..end, format!(" {new}")),
            _ => (place.start..end, new.clone()),
        })
    }
}

/// Returns the places of the words in the functions of this name, or in the whole text. The words
/// follow each other with any white space in between, and are not parts of longer names.
fn find(text: &str, function: Option<&str>, words: &str) -> Vec<Range<usize>> {
    let within = match function {
        Some(name) => functions(text, name),
        None => std::iter::once(0..text.len()).collect(),
    };
    within.into_iter().flat_map(|range| find_in(text, &range, words)).collect()
}

/// Returns the places of the words in this part of the text.
fn find_in(text: &str, within: &Range<usize>, words: &str) -> Vec<Range<usize>> {
    let Some(first) = words.split_whitespace().next() else { return Vec::new() };
    let part = &text[within.clone()];
    let starts = part.match_indices(first).map(|(at, _)| within.start + at);
    let ends = starts.filter_map(|start| {
        let mut at = start;
        for (count, word) in words.split_whitespace().enumerate() {
            let rest = &text[at..within.end];
            let space = rest.len() - rest.trim_start().len();
            if (count > 0 && space == 0) || !rest[space..].starts_with(word) {
                return None;
            }
            at += space + word.len();
        }
        (!splits_name(text, start) && !splits_name(text, at)).then_some(start..at)
    });
    ends.collect()
}

/// Returns the functions of this name, each from its line to the closing brace, which has the same
/// indentation. In C, the line begins with a letter.
fn functions(text: &str, name: &str) -> Vec<Range<usize>> {
    let found = text.match_indices(name).filter_map(|(at, _)| {
        let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
        let before = &text[line..at];
        let indent = &before[..before.len() - before.trim_start().len()];
        let is_name = !splits_name(text, at) && text[at + name.len()..].starts_with(['(', '<']);
        let is_c = text[line..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !is_name || !(is_c || before.ends_with("fn ")) {
            return None;
        }
        let body = at + text[at..].find([';', '{'])?;
        let end = text[body..].find(&format!("\n{indent}}}"))?;
        text[body..].starts_with('{').then_some(line..body + end + indent.len() + 2)
    });
    found.collect()
}

/// Whether a position is inside a name.
fn splits_name(text: &str, at: usize) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    is_word(text[..at].chars().next_back()) && is_word(text[at..].chars().next())
}
