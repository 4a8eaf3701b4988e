//! Traces of requests: waited for, read from system_traces and printed as cqlsh prints them.

use std::time::{Duration, Instant};

use types::literal::print_uuid;

use crate::connection::{Failure, Page};
use crate::session::Session;
use crate::table::{self, Cell};
use crate::value::{self, MAGENTA};

/// Time between two looks at a trace that is not complete.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Waits until the node has written the trace, and prints it.
pub fn print(session: &mut Session, id: [u8; 16]) {
    let limit = Duration::from_secs_f64(session.max_trace_wait.clamp(0.0, 3600.0));
    let begun = Instant::now();
    loop {
        match read(session, &id) {
            Ok(trace) if trace.is_complete => return show(session, &id, &trace.rows),
            Ok(trace) if begun.elapsed() >= limit => {
                let text = format!(
                    "Statement trace did not complete within {} seconds; trace data may be incomplete.\n",
                    limit.as_secs()
                );
                session.result(&text);
                return show(session, &id, &trace.rows);
            }
            Ok(_) => {}
            Err(failure) => return session.error(&format!("Unable to fetch query trace: {failure}")),
        }
        if session.wait(async { tokio::time::sleep(LOOK_AGAIN).await }).is_none() {
            return session.say("Cancelled; SHOW SESSION shows the trace later.");
        }
    }
}

/// SHOW SESSION.
pub fn print_session(session: &mut Session, id: [u8; 16]) {
    match read(session, &id) {
        Ok(trace) if trace.is_known => show(session, &id, &trace.rows),
        Ok(_) => session.error(&format!("Session {} wasn't found.", print_uuid(&id))),
        Err(failure) => session.error(&format!("Unable to fetch query trace: {failure}")),
    }
}

struct Trace {
    is_known: bool,
    is_complete: bool,
    rows: Vec<[String; 5]>,
}

fn read(session: &Session, id: &[u8; 16]) -> Result<Trace, Failure> {
    let id = print_uuid(id);
    let head = session.rows(&format!("SELECT * FROM system_traces.sessions WHERE session_id = {id}"))?;
    let Some(first) = head.rows()?.into_iter().next() else {
        return Ok(Trace { is_known: false, is_complete: false, rows: Vec::new() });
    };
    let duration = head.field(&first, "duration").and_then(|bytes| bytes.try_into().ok()).map(i32::from_be_bytes);
    let millis = head.field(&first, "started_at").and_then(|bytes| bytes.try_into().ok()).map(i64::from_be_bytes);
    let started = millis.unwrap_or(0) * 1000;
    let (coordinator, client) =
        (shown_field(session, &head, &first, "coordinator"), shown_field(session, &head, &first, "client"));
    let request = head.text(&first, "request");
    let mut rows = vec![[request, moment(session, started), coordinator.clone(), "0".into(), client.clone()]];
    let events = session.rows(&format!("SELECT * FROM system_traces.events WHERE session_id = {id}"))?;
    for row in events.rows()? {
        rows.push(event(session, &events, &row, &client));
    }
    if let Some(duration) = duration {
        let end = moment(session, started + i64::from(duration));
        rows.push(["Request complete".into(), end, coordinator, duration.to_string(), client]);
    }
    Ok(Trace { is_known: true, is_complete: duration.is_some(), rows })
}

fn event(session: &Session, events: &Page, row: &[Option<&[u8]>], client: &str) -> [String; 5] {
    let activity = events.text(row, "activity");
    let thread = events.text(row, "thread");
    let id = events.field(row, "event_id").and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    let micros = id.map_or(0, |id| types::timeuuid::unix_micros(&id));
    let elapsed = events
        .field(row, "source_elapsed")
        .map_or("--".to_owned(), |_| shown_field(session, events, row, "source_elapsed"));
    let source = shown_field(session, events, row, "source");
    [format!("{activity} [{thread}]"), moment(session, micros), source, elapsed, client.to_owned()]
}

/// The value of a column as cqlsh shows it.
fn shown_field(session: &Session, page: &Page, row: &[Option<&[u8]>], name: &str) -> String {
    let column = page.columns.iter().find(|column| column.name == name);
    column.map_or(String::new(), |column| value::show(&column.ty, page.field(row, name), &session.style))
}

/// A moment with microseconds, in the shell's time zone.
fn moment(session: &Session, micros: i64) -> String {
    let Ok(moment) = jiff::Timestamp::from_microsecond(micros) else { return micros.to_string() };
    let zoned = moment.to_zoned(session.style.zone.clone());
    jiff::fmt::strtime::format("%Y-%m-%d %H:%M:%S.%6f", &zoned).unwrap_or_else(|_| micros.to_string())
}

fn show(session: &mut Session, id: &[u8; 16], rows: &[[String; 5]]) {
    if rows.is_empty() {
        return session.error(&format!("No rows for session {} found.", print_uuid(id)));
    }
    let names = ["activity", "timestamp", "source", "source_elapsed", "client"];
    let names: Vec<Cell> = names.iter().map(|name| Cell::new((*name).to_owned(), MAGENTA)).collect();
    let cells = |row: &[String; 5]| row.iter().map(|text| Cell::new(text.clone(), value::YELLOW)).collect();
    let cells: Vec<Vec<Cell>> = rows.iter().map(cells).collect();
    let title = session.paint("Tracing session: ", MAGENTA);
    let text = table::table(&names, &cells, true, session.colored());
    let end = if session.interactive { "\n" } else { "" };
    session.result(&format!("\n{title}{}\n\n{text}{end}\n", print_uuid(id)));
}
