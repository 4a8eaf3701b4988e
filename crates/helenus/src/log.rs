//! The log: lines on stderr, as text or as JSON (`--log-format`), and in files (`--log-dir`),
//! filtered by `HELENUS_LOG` (`info`, `storage=debug,warn` …) and by `nodetool setlogginglevel`.
//! The last lines stay in memory for `system_views.system_logs`.

mod files;
mod form;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use env::Env;
use server::admin_api::SetLevel;
use server::log_lines::{LogLine, LogLines};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt, reload};

use files::Files;
pub use form::Format;
use form::Line;

/// Starts the log. Returns the function that changes its levels, and its last lines.
pub fn start(env: &Env, format: Format, directory: Option<&Path>) -> io::Result<(Arc<SetLevel>, Arc<LogLines>)> {
    let start: fn() -> EnvFilter = || EnvFilter::try_from_env("HELENUS_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let (filter, handle) = reload::Layer::new(start());
    let text = (format == Format::Text)
        .then(|| fmt::layer().with_writer(io::stderr).with_ansi(io::stderr().is_terminal()).with_target(false));
    let kept: Arc<LogLines> = Arc::default();
    let files = directory.map(|directory| Files::open(env, directory)).transpose()?;
    let keeps = Keeps { lines: Arc::clone(&kept), env: env.clone(), is_json: format == Format::Json, files };
    tracing_subscriber::registry().with(filter).with(text).with(keeps).init();
    Ok((set_level(start, handle), kept))
}

fn set_level<S: Subscriber>(start: fn() -> EnvFilter, handle: reload::Handle<EnvFilter, S>) -> Arc<SetLevel>
where
    reload::Handle<EnvFilter, S>: Send + Sync + 'static,
{
    let changed: Mutex<BTreeMap<String, String>> = Mutex::default();
    Arc::new(move |logger: &str, level: &str| {
        let mut changed = changed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = changed.clone();
        match (logger, level) {
            ("", "") => next.clear(),
            (_, "") => drop(next.remove(logger)),
            _ => drop(next.insert(logger.to_owned(), level.to_owned())),
        }
        let mut filter = start();
        for (logger, level) in &next {
            let directive = directive(logger, level);
            filter =
                filter.add_directive(directive.parse().map_err(|_| format!("'{level}' is no level for '{logger}'"))?);
        }
        handle.reload(filter).map_err(|error| error.to_string())?;
        *changed = next;
        Ok(())
    })
}

/// Keeps lines in memory, and writes the forms that are ours.
struct Keeps {
    lines: Arc<LogLines>,
    env: Env,
    /// Lines go to stderr as JSON.
    is_json: bool,
    files: Option<Files>,
}

impl<S: Subscriber> Layer<S> for Keeps {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let line = Line::of(event, self.env.clock.now_micros());
        let (at_millis, level, logger) = (line.micros / 1000, line.level, line.logger);
        self.lines.push(LogLine { at_millis, level, logger, message: line.text() });
        if self.is_json {
            // nobody can be told that stderr is closed
            let _ = io::stderr().lock().write_all(line.json().as_bytes());
        }
        if let Some(files) = &self.files {
            files.push(line);
        }
    }
}

/// The filter that a logger's name stands for: `org.apache.cassandra` and `root` are everything, of
/// other names the last part counts.
fn directive(logger: &str, level: &str) -> String {
    match logger.rsplit('.').next().unwrap_or(logger) {
        "root" | "ROOT" | "cassandra" => level.to_owned(),
        target => format!("{target}={level}"),
    }
}
