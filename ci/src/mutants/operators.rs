//! The mutation operators: the edits that each makes to a node of the syntax tree.

use super::subject::Subject;
use std::ops::Range;
use tree_sitter::Node;

/// One edit of one place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Edit {
    /// The operator.
    pub operator: &'static str,
    /// The replaced bytes.
    pub place: Range<usize>,
    /// The new text.
    pub with: String,
}

/// The context of a node.
pub struct Here<'a> {
    /// The parsed text.
    pub text: &'a str,
    /// The description of the file.
    pub subject: &'a Subject,
}

impl Here<'_> {
    fn of(&self, node: Node<'_>) -> &str {
        &self.text[node.byte_range()]
    }

    /// All edits of this node itself.
    pub fn edits(&self, node: Node<'_>) -> Vec<Edit> {
        if node.is_missing() || node.is_error() {
            return Vec::new();
        }
        match node.kind() {
            "binary_expression" => self.binary(node),
            "if_statement" | "while_statement" | "for_statement" | "conditional_expression" => node
                .child_by_field_name("condition")
                .and_then(|c| self.negate(c))
                .into_iter()
                .collect(),
            "unary_expression" => self.unary(node),
            "number_literal" => self.number(node),
            "true" => vec![edit("constant", node, "false")],
            "false" => vec![edit("constant", node, "true")],
            "identifier" => [self.swap_name(node), self.errno(node)].concat(),
            "call_expression" => self.arguments(node),
            "expression_statement" => {
                [self.delete(node), self.stores(node)].into_iter().flatten().collect()
            }
            "break_statement" | "goto_statement" | "continue_statement" | "return_statement" => {
                self.delete(node).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn binary(&self, node: Node<'_>) -> Vec<Edit> {
        let Some(sign) = node.child_by_field_name("operator") else { return Vec::new() };
        let (operator, other) = match sign.kind() {
            "<" => ("boundary", "<="),
            "<=" => ("boundary", "<"),
            ">" => ("boundary", ">="),
            ">=" => ("boundary", ">"),
            "==" => ("relation", "!="),
            "!=" => ("relation", "=="),
            _ => return Vec::new(),
        };
        // The place is the whole expression, so that the id is unambiguous.
        let with = self.replaced(node, sign.byte_range(), other);
        vec![Edit { operator, place: node.byte_range(), with }]
    }

    /// Negates a condition, except a single relation, which another operator changes.
    fn negate(&self, node: Node<'_>) -> Option<Edit> {
        let parenthesized = node.kind() == "parenthesized_expression";
        let inner = if parenthesized { node.named_child(0)? } else { node };
        let relation = inner.kind() == "binary_expression"
            && inner
                .child_by_field_name("operator")
                .is_some_and(|sign| matches!(sign.kind(), "==" | "!="));
        let text = self.of(inner);
        let with = match text.strip_prefix('!') {
            Some(rest) if inner.kind() == "unary_expression" => rest.to_string(),
            _ => format!("!({text})"),
        };
        (!relation && !inner.is_missing()).then(|| edit("negate", inner, &with))
    }

    /// Replaces a negated error number.
    fn unary(&self, node: Node<'_>) -> Vec<Edit> {
        let other = self.of(node).strip_prefix('-').and_then(|own| self.other_errno(own.trim()));
        other.map(|other| edit("errno", node, &format!("-{other}"))).into_iter().collect()
    }

    /// Replaces an error number that is not negated.
    fn errno(&self, node: Node<'_>) -> Vec<Edit> {
        let negated = node.parent().is_some_and(|parent| parent.kind() == "unary_expression");
        let other = self.other_errno(self.of(node)).filter(|_| !negated);
        other.map(|other| edit("errno", node, other)).into_iter().collect()
    }

    fn other_errno(&self, own: &str) -> Option<&str> {
        let errnos = &self.subject.errnos;
        let index = errnos.iter().position(|name| name == own)?;
        Some(&errnos[(index + 1) % errnos.len()])
    }

    fn number(&self, node: Node<'_>) -> Vec<Edit> {
        let text = self.of(node);
        match text.parse::<u64>() {
            Ok(0) => vec![edit("constant", node, "1")],
            Ok(number) => vec![edit("constant", node, &(number + 1).to_string())],
            Err(_) => Vec::new(),
        }
    }

    fn swap_name(&self, node: Node<'_>) -> Vec<Edit> {
        let text = self.of(node);
        let pairs = self.subject.swaps.iter();
        let found = pairs.filter_map(|(one, other)| match text {
            _ if text == one => Some(other),
            _ if text == other => Some(one),
            _ => None,
        });
        found.map(|other| edit("constant", node, other)).collect()
    }

    /// Swaps neighbouring arguments.
    fn arguments(&self, node: Node<'_>) -> Vec<Edit> {
        let Some(list) = node.child_by_field_name("arguments") else { return Vec::new() };
        let mut cursor = list.walk();
        let all: Vec<Node<'_>> = list.named_children(&mut cursor).collect();
        let pairs = all.windows(2).filter(|pair| self.of(pair[0]) != self.of(pair[1]));
        pairs
            .map(|pair| Edit {
                operator: "arguments",
                place: node.byte_range(),
                with: self.exchanged(node.byte_range(), pair[0], pair[1]),
            })
            .collect()
    }

    /// Deletes a statement, except a final return of a function.
    fn delete(&self, node: Node<'_>) -> Option<Edit> {
        let last = node.next_named_sibling().is_none()
            && node
                .parent()
                .and_then(|block| block.parent())
                .is_some_and(|p| p.kind() == "function_definition");
        let skipped = node.has_error() || (node.kind() == "return_statement" && last);
        // Keep the line count: some line numbers are compiled into the program.
        let lines = "\n".repeat(self.of(node).matches('\n').count());
        (!skipped && self.of(node) != ";").then(|| edit("delete", node, &format!(";{lines}")))
    }

    /// Swaps the values that two neighbouring statements store.
    fn stores(&self, node: Node<'_>) -> Option<Edit> {
        let next = node.next_named_sibling().filter(|next| next.kind() == node.kind())?;
        let (one, other) = (self.stored(node)?, self.stored(next)?);
        (self.of(one) != self.of(other)).then(|| {
            let place = node.start_byte()..next.end_byte();
            let with = self.exchanged(place.clone(), one, other);
            Edit { operator: "stores", place, with }
        })
    }

    fn stored<'t>(&self, node: Node<'t>) -> Option<Node<'t>> {
        let store = node.named_child(0).filter(|child| child.kind() == "assignment_expression")?;
        let sign = store.child_by_field_name("operator")?;
        (sign.kind() == "=").then(|| store.child_by_field_name("right")).flatten()
    }

    fn replaced(&self, node: Node<'_>, part: Range<usize>, with: &str) -> String {
        let whole = node.byte_range();
        let (before, after) =
            (&self.text[whole.start..part.start], &self.text[part.end..whole.end]);
        format!("{before}{with}{after}")
    }

    fn exchanged(&self, whole: Range<usize>, one: Node<'_>, other: Node<'_>) -> String {
        let between = &self.text[one.end_byte()..other.start_byte()];
        let before = &self.text[whole.start..one.start_byte()];
        let after = &self.text[other.end_byte()..whole.end];
        format!("{before}{}{between}{}{after}", self.of(other), self.of(one))
    }
}

fn edit(operator: &'static str, node: Node<'_>, with: &str) -> Edit {
    Edit { operator, place: node.byte_range(), with: with.to_string() }
}
