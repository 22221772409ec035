//! Programs as text, a call on each line: `r0 = socket(0x1, 0x2, 0x0)`.

use super::calls::{Calls, Description, Param};
use super::{Argument, Call, Program};
use libafl::Error;
use std::fmt::Write as _;

impl Calls {
    /// The program as text, for [`parse`](Self::parse) and for people.
    #[must_use]
    pub fn text(&self, program: &Program) -> String {
        let mut text = String::new();
        for (place, call) in program.calls.iter().enumerate() {
            let Some(description) = self.descriptions.get(call.number) else { continue };
            if description.returns.is_some() {
                let _ = write!(text, "r{place} = ");
            }
            let arguments: Vec<_> = call.arguments.iter().map(Argument::text).collect();
            let _ = writeln!(text, "{}({})", description.name, arguments.join(", "));
        }
        text
    }

    /// Reads a program from text. Any name may stand for a result. Empty lines and those that begin
    /// with `#` do not count.
    ///
    /// # Errors
    ///
    /// Fails at the first line that is not one of these calls, with arguments of its parameters.
    pub fn parse(&self, text: &str) -> Result<Program, Error> {
        let (mut program, mut results) = (Program::default(), Vec::new());
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (result, call) = match line.split_once('=') {
                Some((result, call)) => (Some(result.trim()), call.trim()),
                None => (None, line),
            };
            let call = self.parse_call(call, &results);
            let line = number + 1;
            program.calls.push(call.map_err(|why| crate::failed(format!("line {line}: {why}")))?);
            results.push(result);
        }
        Ok(program)
    }

    fn parse_call(&self, text: &str, results: &[Option<&str>]) -> Result<Call, String> {
        let parts = text.strip_suffix(')').and_then(|text| text.split_once('('));
        let (name, rest) = parts.ok_or("a call is written as `name(arguments)`")?;
        let number = self.descriptions.iter().position(|call| call.name == name);
        let number = number.ok_or_else(|| format!("there is no call `{name}`"))?;
        let Description { params, .. } = &self.descriptions[number];
        let words: Vec<_> = rest.split(',').map(str::trim).filter(|it| !it.is_empty()).collect();
        if words.len() != params.len() {
            return Err(format!("`{name}` takes {} arguments", params.len()));
        }
        let arguments = words.iter().zip(params).map(|(word, param)| {
            let wrong = || format!("`{word}` does not fit the parameter {param:?}");
            argument(word, param, results).ok_or_else(wrong)
        });
        Ok(Call { number, arguments: arguments.collect::<Result<_, _>>()? })
    }
}

impl Argument {
    fn text(&self) -> String {
        match self {
            Argument::Number(number) => format!("{number:#x}"),
            Argument::Length => "length".into(),
            Argument::Result(Some(place)) => format!("r{place}"),
            Argument::Result(None) => "-1".into(),
            Argument::Bytes(content) => {
                let hex: String = content.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("\"{hex}\"")
            }
        }
    }
}

/// Returns `None` if the word does not fit the parameter.
fn argument(word: &str, param: &Param, results: &[Option<&str>]) -> Option<Argument> {
    match param {
        Param::Bytes(most) => {
            let hex = word.strip_prefix('"')?.strip_suffix('"')?;
            let pairs = hex.as_bytes().chunks(2).map(|pair| {
                let pair = str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
                u8::from_str_radix(pair, 16).ok()
            });
            let content: Vec<u8> = pairs.collect::<Option<_>>()?;
            (content.len() <= *most).then_some(Argument::Bytes(content))
        }
        Param::Length => (word == "length").then_some(Argument::Length),
        Param::Result(_) | Param::AnyResult(_) if word == "-1" => Some(Argument::Result(None)),
        Param::Result(_) | Param::AnyResult(_) => {
            let place = results.iter().rposition(|result| *result == Some(word))?;
            Some(Argument::Result(Some(place)))
        }
        Param::Number | Param::OneOf(_) | Param::Flags(_) => {
            let number = match word.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16),
                None => word.parse(),
            };
            Some(Argument::Number(number.ok()?))
        }
    }
}
