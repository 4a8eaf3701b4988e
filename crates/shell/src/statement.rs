//! A statement of CQL: sent to the node, its rows printed page by page, then warnings and trace.

use crate::connection::{Answer, Content, Failure, Page};
use crate::lexer::{self, Kind};
use crate::session::{Expand, Session};
use crate::table::{self, Cell, Format};
use crate::value::DIM;
use crate::{editor, explain, trace};

/// Executes a statement and prints what comes of it. Whether it succeeded.
pub fn run(session: &mut Session, statement: &str) -> bool {
    let words = first_words(statement);
    // the tables of traces are not traced themselves
    let traced = session.tracing && !(words[0] == "select" && reads_traces(session, statement));
    let describes = words[0] == "describe" || words[0] == "desc";
    let begun = std::time::Instant::now();
    let mut parameters = session.parameters();
    if describes {
        // the node cuts this answer into pages, too; a part of a schema would look like all of it
        parameters.page_size = None;
    }
    let Some(answered) = execute(session, statement, &parameters, traced) else {
        session.say("Cancelled; the node may still carry the statement out.");
        return false;
    };
    let answer = match answered {
        Ok(answer) => answer,
        // as in cqlsh the message alone
        Err(Failure::Server(error)) if describes => {
            session.error(&error.message);
            return false;
        }
        Err(failure) => {
            fail(session, &failure);
            return false;
        }
    };
    let took = begun.elapsed();
    let (warnings, trace_id) = (answer.warnings.clone(), answer.trace);
    let mut traces: Vec<[u8; 16]> = trace_id.into_iter().collect();
    let done = match answer.content {
        Content::Rows(page) if words[0] == "explain" && is_drawn(session, &page) => {
            explain::print(session, &page).is_ok()
        }
        Content::Rows(page) if describes => print_plain(session, &page),
        Content::Rows(page) => {
            let counted = words[0] == "select" || words[0] == "list";
            print_pages(session, statement, page, counted, traced, &mut traces, took)
        }
        Content::SetKeyspace(keyspace) => {
            session.keyspace = Some(keyspace);
            true
        }
        Content::SchemaChange => {
            session.schema_changed = true;
            true
        }
        _ => true,
    };
    if session.shown() && words[0] != "select" && words[0] != "list" {
        let text = session.paint(&format!("({})", milliseconds(took)), DIM);
        session.say(&text);
    }
    print_warnings(session, &warnings);
    for id in traces {
        trace::print(session, id);
    }
    done
}

/// Sends a statement; where the connection was lost while a person thought, it is made anew first.
fn execute(
    session: &mut Session,
    statement: &str,
    parameters: &crate::connection::Parameters,
    traced: bool,
) -> Option<Result<Answer, Failure>> {
    let connection = session.connection.clone();
    if session.interactive && connection.is_ended() {
        match session.reconnect(session.target.clone()) {
            Ok(()) => session.say("(the connection was lost, and made again)"),
            Err(failure) => return Some(Err(failure)),
        }
    }
    let connection = session.connection.clone();
    session.wait(connection.query(statement, parameters, traced))
}

/// Prints why a request failed, with advice where there is any.
pub fn fail(session: &mut Session, failure: &Failure) {
    let text = failure.to_string();
    session.error(&text);
    if session.interactive
        && let Failure::Server(error) = failure
        && let Some(advice) = advice(&error.message)
    {
        let text = session.paint(advice, DIM);
        session.say(&text);
    }
}

/// A next step for the errors that are met most.
fn advice(message: &str) -> Option<&'static str> {
    const ADVICE: [(&str, &str); 6] = [
        (
            "No keyspace has been specified",
            "USE a keyspace first, or write keyspace.table; DESCRIBE KEYSPACES lists them.",
        ),
        ("ALLOW FILTERING", "EXPLAIN shows what the statement would read; an index or another key spares it."),
        ("Undefined column name", "DESCRIBE TABLE shows the columns; names with capitals stand in double quotes."),
        ("unconfigured table", "DESCRIBE TABLES lists the tables of the keyspace."),
        ("does not exist", "DESCRIBE KEYSPACES and DESCRIBE TABLES list the names."),
        (
            "Cannot achieve consistency level",
            "Too few replicas are up: nodetool status shows them, CONSISTENCY lowers the level.",
        ),
    ];
    ADVICE.iter().find(|(part, _)| message.contains(part)).map(|(_, advice)| *advice)
}

/// The first two words in small letters; empty where there are fewer.
fn first_words(statement: &str) -> [String; 2] {
    let tokens = lexer::tokens(statement);
    let mut words =
        tokens.iter().filter(|token| token.is_meaningful()).map(|token| token.text(statement).to_lowercase());
    [words.next().unwrap_or_default(), words.next().unwrap_or_default()]
}

fn reads_traces(session: &Session, statement: &str) -> bool {
    let tokens = lexer::tokens(statement);
    let mut words = tokens.iter().filter(|token| matches!(token.kind, Kind::Word | Kind::Name | Kind::Symbol));
    let from = words.find(|token| token.text(statement).eq_ignore_ascii_case("from"));
    let (name, dot) = (words.next(), words.next());
    let keyspace = match dot.is_some_and(|dot| dot.text(statement) == ".") {
        true => name.map(|name| lexer::name(name.text(statement))),
        false => session.keyspace.clone(),
    };
    from.is_some() && keyspace.as_deref() == Some("system_traces")
}

fn is_drawn(session: &Session, page: &Page) -> bool {
    session.format == Format::Table && session.expand != Expand::On && explain::is_explanation(page)
}

/// Prints all pages of a result.
fn print_pages(
    session: &mut Session,
    statement: &str,
    first: Page,
    counted: bool,
    traced: bool,
    traces: &mut Vec<[u8; 16]>,
    took: std::time::Duration,
) -> bool {
    let mut page = first;
    let mut rows = 0;
    let mut took = took;
    if session.format == Format::Table {
        session.result("\n");
    }
    loop {
        let is_first = rows == 0;
        if let Err(error) = print_page(session, &page, rows, is_first, counted) {
            fail(session, &error.into());
            return false;
        }
        rows += page.count;
        let Some(state) = page.paging_state.take() else { break };
        if session.ended || session.shown() && session.format == Format::Table && !wants_next_page() {
            break;
        }
        let begun = std::time::Instant::now();
        let parameters = crate::connection::Parameters { paging_state: Some(state), ..session.parameters() };
        match execute(session, statement, &parameters, traced) {
            None => {
                session.say("Cancelled.");
                break;
            }
            Some(Ok(Answer { content: Content::Rows(next), trace, .. })) => {
                traces.extend(trace);
                page = next;
            }
            Some(Ok(_)) => break,
            Some(Err(failure)) => {
                fail(session, &failure);
                return false;
            }
        }
        took += begun.elapsed();
    }
    if counted && session.format == Format::Table {
        if !session.interactive {
            session.result("\n");
        }
        let time = match session.shown() {
            true => format!(" {}", session.paint(&milliseconds(took), DIM)),
            false => String::new(),
        };
        session.result(&format!("({rows} rows){time}\n"));
    }
    true
}

fn print_page(
    session: &mut Session,
    page: &Page,
    before: usize,
    is_first: bool,
    counted: bool,
) -> Result<(), stdx::CursorError> {
    match session.format {
        Format::Json => {
            let text = table::json(page)?;
            session.result(&text);
        }
        Format::Csv => {
            let header = if is_first { table::csv_header(&page.columns) } else { String::new() };
            let text = header + &table::csv(page, &session.style)?;
            session.result(&text);
        }
        Format::Table => {
            let (names, rows) = table::cells(page, &session.style)?;
            let text = layout_page(session, &names, &rows, before, is_first);
            session.result(&text);
            if session.interactive || rows.is_empty() && counted {
                session.result("\n");
            }
        }
    }
    Ok(())
}

fn layout_page(session: &Session, names: &[Cell], rows: &[Vec<Cell>], before: usize, is_first: bool) -> String {
    let colored = session.colored();
    let too_wide = || session.shown() && table::width(names, rows) > session.width();
    let expanded = match session.expand {
        Expand::On => true,
        Expand::Auto => names.len() > 1 && too_wide(),
        Expand::Off => false,
    };
    match expanded && !rows.is_empty() {
        true => table::expanded(names, rows, before + 1, colored),
        false => table::table(names, rows, is_first || session.interactive, colored),
    }
}

/// Asks whether the next page is wanted. To the editor Ctrl-C is a key, which ends the result as
/// `q` and Ctrl-D do.
fn wants_next_page() -> bool {
    editor::line("---MORE---").is_some_and(|line| !line.trim().eq_ignore_ascii_case("q"))
}

fn print_warnings(session: &mut Session, warnings: &[String]) {
    if warnings.is_empty() {
        return;
    }
    let text: String = warnings.iter().map(|warning| format!("{warning}\n\n")).collect();
    match session.format {
        Format::Table => session.result(&format!("\nWarnings :\n{text}")),
        // rows of JSON and CSV are read by programs
        _ => eprint!("{text}"),
    }
}

/// A time as a person reads it.
pub fn milliseconds(took: std::time::Duration) -> String {
    let millis = took.as_secs_f64() * 1000.0;
    match millis {
        _ if millis < 10.0 => format!("{millis:.1} ms"),
        _ if millis < 10_000.0 => format!("{millis:.0} ms"),
        _ => format!("{:.1} s", millis / 1000.0),
    }
}

fn print_plain(session: &mut Session, page: &Page) -> bool {
    crate::describe::print(session, page).is_ok()
}
