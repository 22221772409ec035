//! The manual page kcov-trace(1), from the definition of the command line.

use clap::{Arg, Command};

/// The page in mdoc(7).
pub fn page(command: &Command) -> String {
    let options = || command.get_arguments().filter(|it| !it.is_hide_set() && !it.is_positional());
    // The second line of the synopsis has `--read`.
    let with_command = options().filter(|it| it.get_id() != "read");
    let synopsis: String = with_command.map(|it| format!(".Op {}\n", flag(it))).collect();
    let list: String = options().map(|it| format!(".It {}\n{}", flag(it), help(it))).collect();
    let status = command.get_after_help().expect("the exit statuses").to_string();
    let about = command.get_about().expect("a description").to_string().replace("Runs", "runs");
    format!(
        ".Dd November 28, 2026\n.Dt KCOV-TRACE 1\n.Os\n\
         .Sh NAME\n.Nm kcov-trace\n.Nd {about}\n\
         .Sh SYNOPSIS\n.Nm\n{synopsis}.Ar command\n.Op Ar argument ...\n.Nm\n.Fl -read Ar file ...\n\
         .Sh DESCRIPTION\n.Nm\n{about}.\n.Bl -tag -width Ds\n{list}.El\n\
         .Sh EXIT STATUS\n{}\
         .Sh SEE ALSO\n.Xr addr2line 1 ,\n.Xr kcov.h 3 ,\n.Xr kcov 4\n",
        lines(&status.replace("Exit status:", "The exit status is")),
    )
}

/// An option with its value.
fn flag(option: &Arg) -> String {
    let name = option.get_long().expect("options have long names");
    let value = option.get_value_names().filter(|_| option.get_action().takes_values());
    let value = value.map(|it| format!(" Ar {}", it[0].to_lowercase()));
    format!("Fl -{name}{}", value.unwrap_or_default())
}

fn help(option: &Arg) -> String {
    let text = option.get_help().expect("options are described").to_string();
    let default =
        option.get_default_values().first().filter(|_| option.get_action().takes_values());
    let default = default.map(|it| format!("The default is {}.\n", it.to_string_lossy()));
    lines(&format!("{}.", text.trim_end_matches('.'))) + default.as_deref().unwrap_or_default()
}

/// Each sentence on a line of its own.
fn lines(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.replace('\\', "\\e").replace(". ", ".\n") + "\n"
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction, Command};

    #[test]
    fn an_option_has_its_value_its_help_and_its_default() {
        let words = Arg::new("words").long("words").value_name("N").default_value("7");
        let quiet =
            Arg::new("quiet").long("quiet").action(ArgAction::SetTrue).help("Print nothing");
        let command =
            Command::new("kcov-trace").about("Runs a command").after_help("Exit status: 0.");
        let page = super::page(&command.args([words.help("A size. Of words"), quiet]));
        let list = page.split_once("-width Ds\n").expect("a list").1;
        let wanted = ".It Fl -words Ar n\nA size.\nOf words.\nThe default is 7.\n\
                      .It Fl -quiet\nPrint nothing.\n.El\n.Sh EXIT STATUS\nThe exit status is 0.\n";
        assert!(list.starts_with(wanted), "{list}");
        assert!(page.contains(".Nd runs a command\n"), "{page}");
    }
}
