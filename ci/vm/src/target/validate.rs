//! Validates targets beyond the types of their keys.

use super::{Kind, Target, is_word};

impl Target {
    /// Validates the keys.
    pub(super) fn validate(&self) -> std::result::Result<(), String> {
        if !is_word(&self.name) {
            return Err("key `name`: must be letters, digits, `-`, `.` and `_`".into());
        }
        self.validate_origin()?;
        if self.compiler.is_empty() != self.compiler_suite.is_empty() {
            return Err("keys `compiler` and `compiler-suite`: set both or neither".into());
        }
        let own = [
            ("package", &self.package),
            ("suite", &self.suite),
            ("compiler", &self.compiler),
            ("compiler-suite", &self.compiler_suite),
            ("release", &self.release),
        ];
        let own = own.into_iter().filter(|(_, text)| !text.is_empty());
        let releases = self.abi.values().map(|abi| ("release", &abi.release));
        for (key, text) in own.chain(releases) {
            if !is_word(text) {
                return Err(format!("key `{key}`: `{text}` is not a word"));
            }
        }
        let mut declared = self.abi.values().map(|abi| &abi.declares).chain([&self.declares]);
        for declares in declared.clone() {
            for (index, word) in declares.iter().enumerate() {
                let why = if !is_word(word) {
                    "is not a word"
                } else if declares[..index].contains(word) {
                    "is listed twice"
                } else {
                    continue;
                };
                return Err(format!("key `declares`: `{word}` {why}"));
            }
        }
        if let Some(calls) = &self.calls {
            if !declared.any(|words| words.contains(&calls.word)) {
                return Err(format!("key `calls`: `{}` is not declared", calls.word));
            }
        }
        let numbers = [
            ("memory", u64::from(self.memory)),
            ("smp", u64::from(self.smp)),
            ("boot-limit", self.boot_limit),
            ("program-limit", self.program_limit),
        ];
        match numbers.iter().find(|(_, number)| *number == 0) {
            Some((key, _)) => Err(format!("key `{key}`: must not be 0")),
            None if self.kind != Kind::Qemu && self.accel.is_some() => {
                Err("key `accel`: works only for qemu targets".into())
            }
            None => Ok(()),
        }
    }
}
