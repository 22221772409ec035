//! The functions of `kcov/capi/kcov.h` for the manual page kcov.h(3): their prototypes from the
//! header, what they do from the table of the page "From C".

use super::section;
use serde_json::{Value, json};

const HEADER: &str = include_str!("../../../../kcov/capi/kcov.h");
const PAGE: &str = include_str!("../../../../docs/src/from-c.md");

/// Each row of the table: its functions and their meaning.
pub(super) fn functions() -> Value {
    let rows = section(PAGE, "Functions").lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let mut cells = row.split(" | ");
        let names = cells.next().expect("a first cell").split('`').skip(1).step_by(2);
        let prototypes = names.map(|call| {
            let name = call.split('(').next().expect("a first part");
            prototype(name).unwrap_or_else(|| panic!("kcov.h has no function {name}"))
        });
        json!({
            "prototypes": prototypes.collect::<Vec<_>>(),
            "meaning": cells.next().expect("a second cell"),
        })
    })
    .collect()
}

/// The C program of the page.
pub(super) fn example() -> &'static str {
    let rest = PAGE.split_once("```c\n").expect("an example").1;
    rest.split_once("```").expect("its end").0
}

/// The function's type, name and arguments.
fn prototype(name: &str) -> Option<Value> {
    HEADER.split("\nstatic inline ").skip(1).find_map(|definition| {
        let (head, arguments) = definition.split_once(")\n{")?.0.split_once('(')?;
        let (returns, _) = head.split_at_checked(head.len().checked_sub(name.len())?)?;
        let is_it = head.ends_with(name) && returns.ends_with([' ', '*']);
        let arguments = arguments.split(',').map(|it| it.split_whitespace().collect::<Vec<_>>());
        is_it.then(|| {
            json!({
                "returns": returns.trim(),
                "name": name,
                "arguments": arguments.map(|words| words.join(" ")).collect::<Vec<_>>(),
            })
        })
    })
}
