//! The line editor: rustyline with the shell's ends of statements, colours and completion.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};

use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{ColorMode, CompletionType, Config, Context, Editor, Helper};

use crate::complete::{self, Names};
use crate::lexer::{self, Kind};
use crate::value::{BLUE, DIM, GREEN, RESET, YELLOW};

/// Most statements that the history file keeps.
const HISTORY_MAX: usize = 5000;

/// The editor of the prompt.
pub type Prompt = Editor<EditorHelper, DefaultHistory>;

/// Reads the names of the schema anew.
pub type Fetch = Box<dyn Fn() -> Option<Names>>;

/// The text that is being typed.
pub struct EditorHelper {
    /// Whether statements are coloured.
    pub color: bool,
    /// The keyspace in use.
    pub keyspace: Option<String>,
    /// How names are read; called when Tab is pressed and the names may be old.
    pub fetch: Fetch,
    /// Whether the names may be old.
    pub is_stale: Cell<bool>,
    names: RefCell<Names>,
    files: FilenameCompleter,
}

/// An editor without history.
pub fn prompt(color: bool, fetch: Fetch) -> Result<Prompt, String> {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .max_history_size(HISTORY_MAX)
        .and_then(|config| config.history_ignore_dups(true))
        .map_err(|error| error.to_string())?
        .history_ignore_space(true)
        .auto_add_history(false)
        .build();
    let mut editor = Editor::with_config(config).map_err(|error| error.to_string())?;
    editor.set_helper(Some(EditorHelper {
        color,
        keyspace: None,
        fetch,
        is_stale: Cell::new(true),
        names: RefCell::default(),
        files: FilenameCompleter::new(),
    }));
    Ok(editor)
}

impl Helper for EditorHelper {}

impl Validator for EditorHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        // Enter ends a command of the shell, and a statement behind its `;`
        let typed = format!("{}\n", context.input());
        Ok(match lexer::is_complete(&typed) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Hinter for EditorHelper {
    type Hint = String;

    /// The rest of the newest statement that begins like this one.
    fn hint(&self, line: &str, cursor: usize, context: &Context<'_>) -> Option<String> {
        const HINT_MIN: usize = 3;
        if line.len() < HINT_MIN || cursor < line.len() || line.contains('\n') {
            return None;
        }
        let start = context.history().len().checked_sub(1)?;
        let found = context.history().starts_with(line, start, rustyline::history::SearchDirection::Reverse).ok()??;
        let rest = found.entry.get(line.len()..)?;
        (!rest.is_empty() && !rest.contains('\n')).then(|| rest.to_owned())
    }
}

impl Highlighter for EditorHelper {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        match self.color {
            true => Cow::Owned(painted(line)),
            false => Cow::Borrowed(line),
        }
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        match self.color {
            true => Cow::Owned(format!("{DIM}{hint}{RESET}")),
            false => Cow::Borrowed(hint),
        }
    }

    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        self.color && kind != CmdKind::MoveCursor
    }
}

fn painted(line: &str) -> String {
    let mut out = String::new();
    for token in lexer::tokens(line) {
        let text = token.text(line);
        let color = match token.kind {
            Kind::Word if complete::is_keyword(text) => BLUE,
            Kind::Text => YELLOW,
            Kind::Number => GREEN,
            Kind::Comment => DIM,
            _ => "",
        };
        match color {
            "" => out.push_str(text),
            _ => [color, text, RESET].iter().for_each(|part| out.push_str(part)),
        }
    }
    out
}

impl Completer for EditorHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, cursor: usize, context: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = line.get(..cursor).unwrap_or(line);
        if lexer::tokens(before).last().is_some_and(|token| token.kind == Kind::Text && token.open) {
            return self.files.complete(line, cursor, context);
        }
        if self.is_stale.replace(false)
            && let Some(names) = (self.fetch)()
        {
            *self.names.borrow_mut() = names;
        }
        let names = self.names.borrow();
        let (start, words) = complete::candidates(&names, self.keyspace.as_deref(), line, cursor);
        Ok((start, words.into_iter().map(|word| Pair { display: word.clone(), replacement: word }).collect()))
    }
}

/// Hides what is typed.
struct PasswordHelper;

impl Helper for PasswordHelper {}
impl Validator for PasswordHelper {}
impl Completer for PasswordHelper {
    type Candidate = String;
}
impl Hinter for PasswordHelper {
    type Hint = String;
}
impl Highlighter for PasswordHelper {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        Cow::Owned(" ".repeat(unicode_width::UnicodeWidthStr::width(line)))
    }

    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        kind != CmdKind::MoveCursor
    }
}

/// Asks for a password without showing it.
pub fn password(question: &str) -> Result<String, String> {
    if !std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        return Err(
            "a password is needed, and there is no terminal to ask for it: give -p, or a credentials file".into()
        );
    }
    let mut editor = Editor::<PasswordHelper, DefaultHistory>::new().map_err(|error| error.to_string())?;
    editor.set_helper(Some(PasswordHelper));
    editor.set_color_mode(ColorMode::Forced);
    editor.set_auto_add_history(false);
    match editor.readline(question) {
        Ok(password) => Ok(password),
        Err(ReadlineError::Interrupted | ReadlineError::Eof) => Err("no password was given".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads one line that is no statement, of the data of COPY FROM STDIN or behind a page; None: the
/// input has ended, or Ctrl-C was pressed.
pub fn line(question: &str) -> Option<String> {
    let mut editor = Editor::<(), DefaultHistory>::new().ok()?;
    editor.set_auto_add_history(false);
    editor.readline(question).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn painting_keeps_the_text() {
        let line = "SELECT 'a' FROM t -- x";
        let mut plain = painted(line);
        for color in [BLUE, YELLOW, GREEN, DIM, RESET] {
            plain = plain.replace(color, "");
        }
        assert_eq!(plain, line);
        assert!(painted(line).starts_with(BLUE));
    }
}
