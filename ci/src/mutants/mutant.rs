//! Generates all mutants of a file.

use super::operators::{Edit, Here};
use super::plain::plain;
use super::subject::Subject;
use kcov_vm::error::one_line;
use std::collections::HashMap;
use tree_sitter::{Node, Parser};

/// One altered copy of the file.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// Its name: the function, the operator, the old and the new text, and a number if the function
    /// has several such places. It is stable while the place reads the same.
    pub id: String,
    /// The altered function.
    pub function: String,
    /// The altered line, counted from 1.
    pub line: usize,
    /// The alteration.
    pub edit: Edit,
    /// A digest of the change, if the name does not show it.
    pub digest: String,
}

impl Mutant {
    /// Returns the whole altered text.
    pub fn apply(&self, original: &str) -> String {
        let Edit { place, with, .. } = &self.edit;
        let lines = |text: &str| text.matches('\n').count();
        // Keep the line count, although the plain text may lack lines within the place.
        let kept = lines(&original[place.clone()]).saturating_sub(lines(with));
        let (before, after) = (&original[..place.start], &original[place.end..]);
        format!("{before}{with}{}{after}", "\n".repeat(kept))
    }
}

/// Returns all mutants, in the order of the file.
pub fn all(text: &str, config: &str, subject: &Subject) -> Result<Vec<Mutant>, String> {
    let plain = plain(text, config, subject);
    let mut parser = Parser::new();
    let language = tree_sitter_c::LANGUAGE.into();
    parser.set_language(&language).map_err(|error| error.to_string())?;
    let tree = parser.parse(&plain, None).ok_or("the parser gave up")?;
    let here = Here { text: &plain, subject };

    let mut found: Vec<(String, Edit)> = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    let mut cursor = tree.root_node().walk();
    for node in tree.root_node().children(&mut cursor) {
        let Some((name, body)) = function(node, &plain) else { continue };
        let known = |list: &[String]| list.contains(&name);
        if known(&subject.functions) {
            visit(body, &mut |node| {
                found.extend(here.edits(node).into_iter().map(|edit| (name.clone(), edit)));
            });
        } else if !known(&subject.others) {
            return Err(format!("`{name}` is neither in `functions` nor in `others`"));
        }
        seen.push(name);
    }
    if let Some(name) = subject.functions.iter().find(|name| !seen.contains(name)) {
        return Err(format!("the file has no function `{name}`"));
    }
    found.sort_by_key(|(_, edit)| (edit.place.start, edit.place.end));

    let mut times: HashMap<String, usize> = HashMap::new();
    let mutants = found.into_iter().map(|(function, edit)| {
        let was = one_line(&text[edit.place.clone()]);
        let becomes = match edit.operator {
            "delete" => String::new(),
            _ => format!(" => {}", one_line(&edit.with)),
        };
        let id = format!("{function}: {}: {was}{becomes}", edit.operator);
        let count = times.entry(id.clone()).or_default();
        *count += 1;
        let id = if *count > 1 { format!("{id} ({count})") } else { id };
        let line = text[..edit.place.start].matches('\n').count() + 1;
        Mutant { id, function, line, edit, digest: String::new() }
    });
    Ok(mutants.collect())
}

/// Returns a function's name and body.
fn function<'t>(node: Node<'t>, text: &str) -> Option<(String, Node<'t>)> {
    if node.kind() != "function_definition" {
        return None;
    }
    let mut declarator = node.child_by_field_name("declarator")?;
    while declarator.kind() != "identifier" {
        declarator = declarator.child_by_field_name("declarator")?;
    }
    Some((text[declarator.byte_range()].to_string(), node.child_by_field_name("body")?))
}

fn visit<'t>(node: Node<'t>, each: &mut impl FnMut(Node<'t>)) {
    each(node);
    let mut cursor = node.walk();
    let children: Vec<_> = node.named_children(&mut cursor).collect();
    for child in children {
        visit(child, each);
    }
}
