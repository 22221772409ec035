//! The options of a fuzzer on its command line.

use super::{Fuzz, Traced};
use lexopt::prelude::*;
use std::time::Duration;

impl Fuzz {
    /// The options of the command line, for [`args`](Self::args).
    pub const USAGE: &str = "\
options:
  --corpus DIR      start from the inputs here, and add new ones
  --crashes DIR     save inputs that crash the harness here
  --seed N          seed of the random choices
  --seconds N       end after this time
  --executions N    end after this many executions
  --replay FILE     run the input in this file twice, instead of fuzzing
  --no-comparisons  do not collect comparisons
  --no-background   do not trace background work as well as the thread
  --no-feedback     keep no input but the first ones";

    /// Takes options from the command line; see [`USAGE`](Self::USAGE). With `--help`, prints them
    /// and ends the process.
    ///
    /// # Errors
    ///
    /// Fails if an option is unknown or has no value of its kind.
    pub fn args(self) -> Result<Fuzz, libafl::Error> {
        self.parse(lexopt::Parser::from_env()).map_err(crate::failed)
    }

    fn parse(mut self, mut parser: lexopt::Parser) -> Result<Fuzz, lexopt::Error> {
        while let Some(argument) = parser.next()? {
            self = match argument {
                Long("corpus") => self.corpus(parser.value()?),
                Long("crashes") => self.crashes(parser.value()?),
                Long("seed") => self.seed(parser.value()?.parse()?),
                Long("seconds") => self.time(Duration::from_secs(parser.value()?.parse()?)),
                Long("executions") => self.executions(parser.value()?.parse()?),
                Long("replay") => self.replay(parser.value()?),
                Long("no-comparisons") => self.comparisons(false),
                Long("no-background") => self.without_background(),
                Long("no-feedback") => self.feedback(false),
                Long("help") => {
                    println!("{}", Fuzz::USAGE);
                    std::process::exit(0);
                }
                _ => return Err(argument.unexpected()),
            };
        }
        Ok(self)
    }

    fn without_background(mut self) -> Fuzz {
        if let Traced::Both(..) = self.traced {
            self.traced = Traced::Here;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kcov::remote::linux::Remote;

    fn parse(words: &[&str]) -> Result<Fuzz, lexopt::Error> {
        let words = ["program"].iter().chain(words);
        Fuzz::new().parse(lexopt::Parser::from_iter(words))
    }

    #[test]
    fn options_change_what_they_name() {
        let all = ["--corpus", "a", "--crashes", "b", "--seed", "7", "--seconds", "8"];
        let fuzz = parse(&all).unwrap();
        assert_eq!(
            (fuzz.corpus.as_os_str(), fuzz.crashes.as_os_str()),
            ("a".as_ref(), "b".as_ref())
        );
        assert_eq!((fuzz.seed, fuzz.time, fuzz.comparisons), (7, Duration::from_secs(8), true));
        let fuzz = parse(&["--executions", "9", "--no-comparisons"]).unwrap();
        assert_eq!((fuzz.executions, fuzz.comparisons), (9, false));
        let both = Fuzz::new().with_background(Remote::new(), Duration::ZERO);
        assert!(matches!(both.traced, Traced::Both(..)));
        let words = ["program", "--no-background", "--no-feedback"];
        let fuzz = both.parse(lexopt::Parser::from_iter(words)).unwrap();
        assert!(matches!(fuzz.traced, Traced::Here) && !fuzz.feedback);
        assert!(parse(&["--seed"]).is_err());
        assert!(parse(&["--sed", "7"]).is_err());
        assert!(parse(&["7"]).is_err());
    }
}
