//! Finds text of a kernel in this repository. A locator has at most eight words; more of a kernel's
//! source may stand in patches only, which have its licence.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// One word more than a locator may have.
const WORDS: usize = 9;

/// Finds the runs of nine words that a file of the `repository` shares with a source, one per run.
/// The sources are paths and texts.
pub fn compare(repository: &Path, sources: &[(&str, String)]) -> io::Result<Vec<String>> {
    let mut known: HashMap<Vec<&str>, &str> = HashMap::new();
    for (source, text) in sources {
        known.extend(words(text).windows(WORDS).map(|run| (text_of(run), *source)));
    }
    let mut quotes = Vec::new();
    for path in files(repository)? {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let words = words(&text);
        let mut before = false;
        for run in words.windows(WORDS) {
            let source = known.get(&text_of(run));
            if let (false, Some(source)) = (before, source) {
                let file = path.strip_prefix(repository).unwrap_or(&path).display();
                let (line, words) = (run[0].0, text_of(run).join(" "));
                quotes.push(format!("quoted: {file}:{line}: {words:?} is from {source}"));
            }
            before = source.is_some();
        }
    }
    Ok(quotes)
}

/// The words with their lines, without quotation marks and the signs that begin comments.
fn words(text: &str) -> Vec<(usize, &str)> {
    let words = text.lines().enumerate().flat_map(|(index, line)| {
        let marks = |c: char| "\"'`\\,;.".contains(c);
        line.split_whitespace().map(move |word| (index + 1, word.trim_matches(marks)))
    });
    words.filter(|(_, word)| word.contains(char::is_alphanumeric)).collect()
}

fn text_of<'a>(run: &[(usize, &'a str)]) -> Vec<&'a str> {
    run.iter().map(|(_, word)| *word).collect()
}

/// All files but patches, licences, hidden ones and what cargo built.
fn files(repository: &Path) -> io::Result<Vec<PathBuf>> {
    super::files(repository, &|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_built = name == "target" && path.join("CACHEDIR.TAG").exists();
        let is_hidden = name.starts_with('.') && name != ".github";
        !(is_built || is_hidden || name.ends_with(".patch") || name.starts_with("LICENSE"))
    })
}
