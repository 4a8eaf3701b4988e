//! The prompt: statements that a person types, executed one after another.

use std::path::Path;

use rustyline::error::ReadlineError;
use types::ident::maybe_quote;

use crate::complete::{Keyspace, Names};
use crate::connection::{Answer, Connection, Content, Failure, Page, Parameters};
use crate::session::Session;
use crate::value::{BLUE, DIM};
use crate::{commands, editor, lexer, script};

/// Reads and executes statements until the person ends the shell.
pub fn run(session: &mut Session, history: Option<&Path>) -> Result<(), String> {
    session.say(&commands::host(session));
    session.say(&commands::versions(session));
    let keys = session.paint("Tab completes, HELP lists the commands, Ctrl-D ends.", DIM);
    session.say(&keys);
    let mut typed = editor::prompt(session.color, fetch(session))?;
    if let Some(path) = history {
        // a history that is not there or cannot be read begins anew
        let _ = typed.load_history(path);
    }
    while !session.ended {
        if let Some(helper) = typed.helper_mut() {
            helper.keyspace = session.keyspace.clone();
            helper.is_stale.set(true);
            helper.fetch = fetch(session);
        }
        let question = question(session);
        let painted = session.paint(question.trim_end(), BLUE) + " ";
        match typed.readline(&(question, painted)) {
            Ok(text) => {
                if text.trim().is_empty() {
                    continue;
                }
                if !is_secret(&text) {
                    // a statement that is not remembered is executed all the same
                    let _ = typed.add_history_entry(text.trim_end());
                    session.remember(&text);
                }
                execute(session, &text);
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(format!("the terminal cannot be read: {error}")),
        }
    }
    if let Some(path) = history {
        save(&mut typed, path);
    }
    Ok(())
}

fn save(typed: &mut editor::Prompt, path: &Path) {
    if let Some(directory) = path.parent() {
        let _ = std::fs::create_dir_all(directory);
    }
    if let Err(error) = typed.save_history(path) {
        eprintln!("Warning: the history cannot be saved in {}: {error}", path.display());
    }
}

fn execute(session: &mut Session, text: &str) {
    let text = format!("{text}\n");
    let (statements, _) = lexer::statements(&text, false);
    session.begin();
    for statement in statements {
        if session.is_over() {
            break;
        }
        let mut nothing = std::io::empty();
        script::run(session, statement.text, &mut nothing, 0);
    }
}

/// Whether a statement may hold a password, which no history keeps.
fn is_secret(text: &str) -> bool {
    let text = text.to_lowercase();
    text.contains("password") || text.trim_start().starts_with("login")
}

fn question(session: &Session) -> String {
    let user = session.target.login.as_ref().map_or(String::new(), |(user, _)| format!("{user}@"));
    let keyspace = session.keyspace.as_ref().map_or(String::new(), |keyspace| format!(":{}", maybe_quote(keyspace)));
    format!("{user}cql{keyspace}> ")
}

/// Most rows of a table of system_schema that completion reads.
const NAMES_MAX: u32 = 50_000;

fn fetch(session: &Session) -> editor::Fetch {
    let (connection, runtime) = (session.connection.clone(), session.runtime());
    // without an answer the names stay as they were
    Box::new(move || runtime.block_on(names(&connection)).ok())
}

async fn names(connection: &Connection) -> Result<Names, Failure> {
    let mut names = Names::new();
    let each = async |statement: &str| -> Result<Vec<Vec<String>>, Failure> {
        let parameters = Parameters {
            consistency: types::Consistency::LocalOne,
            serial_consistency: types::Consistency::Serial,
            page_size: Some(NAMES_MAX),
            paging_state: None,
        };
        match connection.query(statement, &parameters, false).await? {
            Answer { content: Content::Rows(page), .. } => Ok(texts(&page)?),
            _ => Ok(Vec::new()),
        }
    };
    for schema in ["system_schema", "system_virtual_schema"] {
        for row in each(&format!("SELECT keyspace_name FROM {schema}.keyspaces")).await? {
            names.entry(row.concat()).or_default();
        }
        for row in each(&format!("SELECT keyspace_name, table_name, column_name FROM {schema}.columns")).await? {
            if let [keyspace, table, column] = row.as_slice() {
                let inside: &mut Keyspace = names.entry(keyspace.clone()).or_default();
                inside.tables.entry(table.clone()).or_default().push(column.clone());
            }
        }
    }
    type Of = fn(&mut Keyspace) -> &mut Vec<String>;
    let kinds: [(&str, &str, Of); 4] = [
        ("types", "type_name", |inside| &mut inside.types),
        ("functions", "function_name", |inside| &mut inside.functions),
        ("aggregates", "aggregate_name", |inside| &mut inside.functions),
        ("indexes", "index_name", |inside| &mut inside.indexes),
    ];
    for (table, column, of) in kinds {
        for row in each(&format!("SELECT keyspace_name, {column} FROM system_schema.{table}")).await? {
            if let [keyspace, name] = row.as_slice() {
                of(names.entry(keyspace.clone()).or_default()).push(name.clone());
            }
        }
    }
    Ok(names)
}

fn texts(page: &Page) -> Result<Vec<Vec<String>>, stdx::CursorError> {
    let text = |bytes: &Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
    Ok(page.rows()?.iter().map(|row| row.iter().map(text).collect()).collect())
}
