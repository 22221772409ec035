//! The options of `run`.

use super::default_device;
use crate::check::USUAL_LIMIT;
use crate::declare::Declaration;
use crate::report::Format;
use lexopt::{Arg, Parser, ValueExt as _};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The options of `run`.
#[derive(Debug)]
pub(super) struct Request {
    pub ids: Vec<String>,
    pub declared: Option<Declaration>,
    pub unproved: bool,
    pub device: PathBuf,
    pub format: Format,
    pub time_limit: Duration,
    pub fail_fast: bool,
}

pub(super) fn request(parser: &mut Parser) -> Result<Request, lexopt::Error> {
    let mut request = Request {
        ids: Vec::new(),
        declared: None,
        unproved: false,
        device: default_device(),
        format: Format::Ktap,
        time_limit: USUAL_LIMIT,
        fail_fast: false,
    };
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Value(id) => request.ids.push(id.string()?),
            Arg::Long("declare") => {
                request.declared = Some(Declaration::parse(&parser.value()?.string()?)?);
            }
            Arg::Long("unproved") => request.unproved = true,
            Arg::Long("device") => request.device = parser.value()?.into(),
            Arg::Long("fail-fast") => request.fail_fast = true,
            Arg::Long("format") => request.format = format(parser.value()?)?,
            Arg::Long("time-limit") => {
                let seconds: u32 = parser.value()?.parse()?;
                request.time_limit = Duration::from_secs(seconds.into());
            }
            other => return Err(other.unexpected()),
        }
    }
    Ok(request)
}

fn format(word: OsString) -> Result<Format, lexopt::Error> {
    match word.to_str() {
        Some("ktap") => Ok(Format::Ktap),
        Some("json") => Ok(Format::Json),
        _ => Err(format!("--format: {word:?} is neither ktap nor json").into()),
    }
}
