//! Statements one after another: from the command line, files, standard input.
//!
//! Text is read line by line and executed as soon as a statement is complete, so that a program
//! behind a pipe gets its answers at once. As in cqlsh an error does not end a script, and the exit
//! code tells of it.

use std::io::BufRead;
use std::path::Path;

use crate::commands::{self, Command};
use crate::lexer;
use crate::session::Session;
use crate::{copy, editor, statement};

/// Files that SOURCE may open within each other.
const SOURCE_DEPTH_MAX: usize = 64;

/// Executes one statement or command.
pub fn run(session: &mut Session, text: &str, input: &mut dyn BufRead, depth: usize) {
    match commands::run(session, text) {
        Command::Done => {}
        Command::Statement => {
            statement::run(session, text);
        }
        Command::Instead(text) => {
            statement::run(session, &text);
        }
        Command::Source(path) => source(session, &path, depth + 1),
        Command::Copy => copy::run(session, text, input),
        Command::Login(user, password) => login(session, user, password),
    }
}

fn login(session: &mut Session, user: String, password: Option<String>) {
    let password = match password {
        Some(password) => password,
        None => match editor::password("Password: ") {
            Ok(password) => password,
            Err(why) => return session.error(&why),
        },
    };
    let mut target = session.target.clone();
    target.login = Some((user, password));
    if let Err(failure) = session.reconnect(target) {
        session.error(&failure.to_string());
    }
}

/// Executes the statements of a text, the last of which needs no `;`.
pub fn text(session: &mut Session, text: &str) {
    session.place = Some(("<stdin>".into(), 1));
    let (statements, _) = lexer::statements(text, false);
    let mut stdin = std::io::stdin().lock();
    for statement in statements {
        if session.is_over() {
            break;
        }
        run(session, statement.text, &mut stdin, 0);
    }
}

fn source(session: &mut Session, path: &Path, depth: usize) {
    if depth > SOURCE_DEPTH_MAX {
        return session.error(&format!("SOURCE within SOURCE goes {SOURCE_DEPTH_MAX} files deep at most"));
    }
    match std::fs::File::open(path) {
        Ok(file) => {
            let (place, interactive) = (session.place.take(), session.interactive);
            let expand = session.expand;
            session.interactive = false;
            let mut reader = std::io::BufReader::new(file);
            lines(session, &mut reader, &path.display().to_string(), depth);
            (session.place, session.interactive) = (place, interactive);
            // as in cqlsh a file has switches of its own
            session.expand = expand;
            session.ended = false;
        }
        Err(error) => session.error(&format!("Could not open '{}': {error}", path.display())),
    }
}

/// Executes the statements of a file; an error when it cannot be read.
pub fn file(session: &mut Session, path: &Path) -> Result<(), String> {
    let file = std::fs::File::open(path).map_err(|error| format!("Can't open '{}': {error}", path.display()))?;
    lines(session, &mut std::io::BufReader::new(file), &path.display().to_string(), 0);
    Ok(())
}

/// Executes the statements of a reader, named `name` in errors.
pub fn lines(session: &mut Session, reader: &mut dyn BufRead, name: &str, depth: usize) {
    let mut buffer = String::new();
    let mut number = 1;
    session.place = Some((name.to_owned(), number));
    let mut line = Vec::new();
    while !session.is_over() {
        line.clear();
        match reader.read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => return session.error(&format!("{name} cannot be read: {error}")),
        }
        let text = String::from_utf8_lossy(&line);
        // a byte-order mark may stand at the start of a file
        buffer.push_str(if number == 1 { text.trim_start_matches('\u{feff}') } else { &text });
        number += 1;
        session.place = Some((name.to_owned(), number));
        // no statement ends in this line, unless it is a command of the shell
        if !text.contains(';') && buffer.trim_start().len() > text.trim_start().len() {
            continue;
        }
        let (statements, rest) = lexer::statements(&buffer, true);
        for statement in statements {
            if !session.is_over() {
                run(session, statement.text, reader, depth);
            }
        }
        let kept = buffer.len() - rest.len();
        buffer.drain(..kept);
    }
    finish(session, &buffer, reader, depth);
}

/// The rest behind the last `;`: a command of the shell is executed, a statement is not, because
/// the file may have been cut.
fn finish(session: &mut Session, rest: &str, reader: &mut dyn BufRead, depth: usize) {
    if session.is_over() {
        return;
    }
    let with_end = format!("{rest}\n");
    let (commands, left) = lexer::statements(&with_end, true);
    for command in commands {
        run(session, command.text, reader, depth);
    }
    if lexer::tokens(left).iter().any(|token| token.is_meaningful()) {
        session.error("Incomplete statement at end of file");
    }
}
