//! `helenus shell`: a CQL prompt with cqlsh's commands, options, files and layouts.
//!
//! A client program, which may use files, clocks and sockets as any program does. It speaks the
//! native protocol itself ([`connection`] says why a driver was refused), so that one connection
//! goes to one node and every value can be shown. rustyline is the line editor: it is maintained,
//! waits for keys without a runtime of its own and brings four small crates; reedline would bring a
//! terminal library, a date library and a painter that we would fight over colours with.
//!
//! In layers: the node ([`connection`]); text ([`lexer`], [`value`], [`table`], [`rc`]);
//! [`options`]; [`session`], which is state only; single things that a shell does with a session
//! ([`describe`], [`trace`], [`explain`], [`statement`], [`commands`], [`copy`]); [`script`] and
//! [`prompt`], which read statements. [`lexer`] accepts unfinished text; the server's own lexer
//! stands in `cql`. Layouts agree with cqlsh 6.2 where programs may read them.

#![forbid(unsafe_code)]
// a client program beside the server
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod commands;
mod complete;
mod connection;
mod copy;
mod describe;
mod editor;
mod explain;
mod help;
mod lexer;
mod options;
mod prompt;
mod rc;
mod script;
mod session;
mod statement;
mod table;
mod trace;
mod value;

use std::process::ExitCode;

use options::{Refused, Source};
use session::Session;

/// Exit code of a script in which something failed, and of wrong usage.
const FAILED: u8 = 2;

/// Runs the shell with the words behind `helenus shell`. Exit codes are cqlsh's: 0 done, 1 no
/// connection, 2 a statement of a script failed, or wrong usage.
pub fn run(arguments: &[String]) -> ExitCode {
    let mut options = match options::read(arguments, &|name| std::env::var(name).ok()) {
        Ok(options) => options,
        Err(Refused::Shown(text)) => {
            print!("{text}");
            return ExitCode::SUCCESS;
        }
        Err(Refused::Wrong(text)) => {
            eprint!("{text}");
            return ExitCode::from(FAILED);
        }
    };
    if let Some(user) = options.user_without_password.take() {
        match editor::password("Password: ") {
            Ok(password) => options.target.login = Some((user, password)),
            Err(why) => {
                eprintln!("helenus shell: {why}");
                return ExitCode::FAILURE;
            }
        }
    }
    let (source, history) = (options.source.clone(), options.history.clone());
    let mut session = match Session::open(options) {
        Ok(session) => session,
        Err(why) => {
            eprintln!("Connection error: {why}");
            return ExitCode::FAILURE;
        }
    };
    let done = match source {
        Source::Text(text) => {
            script::text(&mut session, &text);
            Ok(())
        }
        Source::File(path) => script::file(&mut session, &path),
        Source::Input => {
            script::lines(&mut session, &mut std::io::stdin().lock(), "<stdin>", 0);
            Ok(())
        }
        Source::Prompt => prompt::run(&mut session, history.as_deref()),
    };
    if let Err(why) = done {
        eprintln!("{why}");
        return ExitCode::FAILURE;
    }
    match session.failed && !session.interactive {
        true => ExitCode::from(FAILED),
        false => ExitCode::SUCCESS,
    }
}
