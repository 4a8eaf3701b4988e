//! The shell's commands: words that the shell carries out itself.
//!
//! Texts are cqlsh's where scripts may look for them. SOURCE and COPY run over the state from
//! outside: [`run`] hands them back to the caller.

use std::path::PathBuf;

use types::Consistency;
use types::literal::parse_uuid;

use crate::connection::{Connection, Failure};
use crate::lexer;
use crate::options::expand;
use crate::session::{Expand, PAGE_SIZE, Session};
use crate::table::Format;
use crate::value::BLUE;
use crate::{help, trace};

/// The next step for a statement.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    /// The command is done.
    Done,
    /// The statement is for the node.
    Statement,
    /// A statement that stands for a command.
    Instead(String),
    /// The statements of a file are to be executed.
    Source(PathBuf),
    /// COPY.
    Copy,
    /// LOGIN as this user; without a password the shell asks.
    Login(String, Option<String>),
}

/// Carries a command out.
pub fn run(session: &mut Session, statement: &str) -> Command {
    let tokens = lexer::tokens(statement);
    let words: Vec<&str> =
        tokens.iter().filter(|token| token.is_meaningful()).map(|token| token.text(statement)).collect();
    let Some((first, rest)) = words.split_first() else { return Command::Done };
    let word = first.to_uppercase();
    let done = match word.as_str() {
        "CONSISTENCY" => consistency(session, rest),
        "SERIAL" => serial(session, rest),
        "TRACING" => switch(session, "TRACING", rest, |session| &mut session.tracing),
        "EXPAND" => expand_rows(session, rest),
        "PAGING" => paging(session, rest),
        "FORMAT" => format(session, rest),
        "SHOW" => show(session, rest),
        "CAPTURE" => capture(session, rest),
        "SOURCE" => match rest {
            [path] if path.starts_with('\'') => return Command::Source(path_of(path)),
            _ => None,
        },
        "LOGIN" => match rest {
            [user] => return Command::Login(lexer::unquote(user), None),
            [user, password] => return Command::Login(lexer::unquote(user), Some(lexer::unquote(password))),
            _ => None,
        },
        "COPY" => return Command::Copy,
        "HELP" | "?" => help::show(session, rest),
        "HISTORY" => history(session, rest),
        "CLEAR" | "CLS" => clear(session, rest),
        "EXIT" | "QUIT" => {
            session.ended = true;
            Some(())
        }
        "DEBUG" => {
            session.error("DEBUG opens cqlsh's Python debugger, of which there is none here.");
            return Command::Done;
        }
        "\\" => return backslash(session, rest),
        _ => return Command::Statement,
    };
    if done.is_none() {
        session.error(&format!("Improper {first} command. HELP {word} shows its forms."));
    }
    Command::Done
}

/// psql's short forms.
fn backslash(session: &mut Session, rest: &[&str]) -> Command {
    let done = match rest {
        ["q"] => {
            session.ended = true;
            Some(())
        }
        ["x"] => {
            session.expand = if session.expand == Expand::On { Expand::Off } else { Expand::On };
            session.say(&format!("EXPAND is {}", expand_name(session.expand)));
            Some(())
        }
        ["x", word] => expand_rows(session, &[word]),
        ["d"] => {
            let what = if session.keyspace.is_some() { "TABLES" } else { "KEYSPACES" };
            return Command::Instead(format!("DESCRIBE {what}"));
        }
        ["d", name @ ..] => return Command::Instead(format!("DESCRIBE {}", name.concat())),
        ["?"] => help::show(session, &[]),
        _ => None,
    };
    if done.is_none() {
        session.error("The short forms are \\x [ON|OFF|AUTO], \\d [NAME], \\? and \\q.");
    }
    Command::Done
}

fn consistency(session: &mut Session, rest: &[&str]) -> Option<()> {
    match rest {
        [] => session.say(&format!("Current consistency level is {}.", session.consistency.name())),
        [word] => {
            let level = Consistency::from_name(word).filter(|level| *level != Consistency::NodeLocal)?;
            session.consistency = level;
            session.say(&format!("Consistency level set to {}.", level.name()));
        }
        _ => return None,
    }
    Some(())
}

fn serial(session: &mut Session, rest: &[&str]) -> Option<()> {
    let (first, rest) = rest.split_first()?;
    if !first.eq_ignore_ascii_case("consistency") {
        return None;
    }
    match rest {
        [] => session.say(&format!("Current serial consistency level is {}.", session.serial_consistency.name())),
        [word] => {
            let level = Consistency::from_name(word)?;
            if !matches!(level, Consistency::Serial | Consistency::LocalSerial) {
                return None;
            }
            session.serial_consistency = level;
            session.say(&format!("Serial consistency level set to {}.", level.name()));
        }
        _ => return None,
    }
    Some(())
}

fn on_or_off(word: &str) -> Option<bool> {
    match word.to_ascii_uppercase().as_str() {
        "ON" => Some(true),
        "OFF" => Some(false),
        _ => None,
    }
}

fn switch(session: &mut Session, name: &str, rest: &[&str], of: fn(&mut Session) -> &mut bool) -> Option<()> {
    let current = *of(session);
    let shown = |on: bool| if on { "ON" } else { "OFF" };
    match rest {
        [] => session.say(&format!("{name} is {}", shown(current))),
        [word] => {
            let wanted = on_or_off(word)?;
            let how = if wanted == current { "is already" } else { "set to" };
            *of(session) = wanted;
            session.say(&format!("{name} {how} {}", shown(wanted)));
        }
        _ => return None,
    }
    Some(())
}

fn expand_name(expand: Expand) -> &'static str {
    match expand {
        Expand::On => "ON",
        Expand::Off => "OFF",
        Expand::Auto => "AUTO",
    }
}

fn expand_rows(session: &mut Session, rest: &[&str]) -> Option<()> {
    match rest {
        [] => session.say(&format!("EXPAND is {}", expand_name(session.expand))),
        [word] => {
            let wanted = match on_or_off(word) {
                Some(true) => Expand::On,
                Some(false) => Expand::Off,
                None if word.eq_ignore_ascii_case("auto") => Expand::Auto,
                None => return None,
            };
            let how = if wanted == session.expand { "is already" } else { "set to" };
            session.expand = wanted;
            session.say(&format!("EXPAND {how} {}", expand_name(wanted)));
        }
        _ => return None,
    }
    Some(())
}

fn paging(session: &mut Session, rest: &[&str]) -> Option<()> {
    match rest {
        [word] if word.parse::<u32>().is_ok_and(|size| size > 0) => {
            (session.paging, session.page_size) = (true, word.parse().unwrap_or(PAGE_SIZE));
        }
        _ => switch(session, "PAGING", rest, |session| &mut session.paging)?,
    }
    match session.paging {
        true => session.say(&format!("Page size: {}", session.page_size)),
        false => session.page_size = PAGE_SIZE,
    }
    Some(())
}

fn format(session: &mut Session, rest: &[&str]) -> Option<()> {
    let name = |format| match format {
        Format::Table => "TABLE",
        Format::Json => "JSON",
        Format::Csv => "CSV",
    };
    match rest {
        [] => session.say(&format!("FORMAT is {}", name(session.format))),
        [word] => {
            let known = [Format::Table, Format::Json, Format::Csv];
            session.format = known.into_iter().find(|format| name(*format).eq_ignore_ascii_case(word))?;
            session.say(&format!("FORMAT set to {}", name(session.format)));
        }
        _ => return None,
    }
    Some(())
}

/// The line that tells the versions.
pub fn versions(session: &Session) -> String {
    format!(
        "[helenus shell {} | Cassandra {} | CQL spec {} | Native protocol v{}]",
        env!("CARGO_PKG_VERSION"),
        session.versions.build,
        session.versions.cql,
        session.connection.version
    )
}

/// The line that tells the node.
pub fn host(session: &Session) -> String {
    let cluster = session.paint(&session.versions.cluster, BLUE);
    format!("Connected to {cluster} at {}:{}", session.target.host, session.target.port)
}

fn show(session: &mut Session, rest: &[&str]) -> Option<()> {
    let (what, rest) = rest.split_first()?;
    match (what.to_uppercase().as_str(), rest) {
        ("VERSION", []) => session.say(&versions(session)),
        ("HOST", []) => session.say(&host(session)),
        ("SESSION", id) => {
            let id = parse_uuid(&id.concat())?;
            trace::print_session(session, id);
        }
        ("REPLICAS", [minus @ .., token, keyspace]) if keyspace.parse::<i64>().is_err() => {
            replicas(session, &(minus.concat() + token), Some(&lexer::name(keyspace)))?;
        }
        ("REPLICAS", token) => replicas(session, &token.concat(), None)?,
        _ => return None,
    }
    Some(())
}

/// The replicas of a token, from the ranges that DESCRIBE CLUSTER tells.
fn replicas(session: &mut Session, token: &str, keyspace: Option<&str>) -> Option<()> {
    let token: i64 = token.parse().ok()?;
    let Some(keyspace) = keyspace.map(str::to_owned).or_else(|| session.keyspace.clone()) else {
        session.error("SHOW REPLICAS needs a keyspace: SHOW REPLICAS <token> <keyspace>, or USE one first.");
        return Some(());
    };
    // another connection, because DESCRIBE CLUSTER goes by the keyspace of its connection
    let asked = session.block(async {
        let connection = Connection::open(&session.target).await?;
        let parameters = session.parameters();
        connection.query(&format!("USE {}", types::ident::maybe_quote(&keyspace)), &parameters, false).await?;
        connection.query("DESCRIBE CLUSTER", &parameters, false).await
    });
    match asked.and_then(|answer| Ok(crate::describe::replicas(&answer, token)?)) {
        Ok(Some(replicas)) => {
            let quoted: Vec<String> = replicas.iter().map(|replica| format!("'{replica}'")).collect();
            session.say(&format!("[{}]", quoted.join(", ")));
        }
        Ok(None) => session.error(&format!("The node tells no ranges of keyspace {keyspace}.")),
        Err(failure) => session.error(&Failure::to_string(&failure)),
    }
    Some(())
}

fn path_of(word: &str) -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    expand(&PathBuf::from(lexer::unquote(word)), home.as_deref())
}

fn capture(session: &mut Session, rest: &[&str]) -> Option<()> {
    match (rest, &session.capture) {
        ([], Some(capture)) => {
            session.say(&format!("Currently capturing query output to '{}'.", capture.path.display()));
        }
        ([], None) => session.say("Currently not capturing query output."),
        ([word], None) if word.eq_ignore_ascii_case("off") => session.say("Currently not capturing query output."),
        ([word], Some(_)) if word.eq_ignore_ascii_case("off") => session.capture = None,
        ([word], Some(capture)) if word.starts_with('\'') => {
            let path = capture.path.display().to_string();
            session.error(&format!("Already capturing output to {path}. Use CAPTURE OFF to disable."));
        }
        ([word], None) if word.starts_with('\'') => {
            let path = path_of(word);
            match std::fs::OpenOptions::new().append(true).create(true).open(&path) {
                Ok(file) => {
                    session.say(&format!("Now capturing query output to '{}'.", path.display()));
                    session.capture_to(path, file);
                }
                Err(error) => session.error(&format!("Could not open '{}' for append: {error}", path.display())),
            }
        }
        _ => return None,
    }
    Some(())
}

fn history(session: &mut Session, rest: &[&str]) -> Option<()> {
    let count = match rest {
        [] => 50,
        [word] => word.parse().ok()?,
        _ => return None,
    };
    let skipped = session.history.len().saturating_sub(count);
    session.history.iter().skip(skipped).for_each(|statement| session.say(statement));
    Some(())
}

fn clear(session: &mut Session, rest: &[&str]) -> Option<()> {
    if !rest.is_empty() {
        return None;
    }
    if session.interactive {
        // home, and everything behind it away
        print!("\x1b[H\x1b[2J");
        let _ = std::io::Write::flush(&mut std::io::stdout());
    }
    Some(())
}
