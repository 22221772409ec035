//! The README shows an example file as it is.

#[test]
fn the_readme_shows_the_example() {
    let readme = include_str!("../../README.md");
    let example = include_str!("../../kcov/examples/syscall.rs");
    assert!(readme.contains(&format!("```rust\n{example}```\n")));
}
