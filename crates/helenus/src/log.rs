//! The log: lines on stderr, filtered by `HELENUS_LOG` (`info`, `storage=debug,warn` …) and by
//! `nodetool setlogginglevel`. The last lines stay in memory for `system_views.system_logs`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};

use env::Env;
use server::admin_api::SetLevel;
use server::log_lines::{LogLine, LogLines};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt, reload};

/// Starts the log. Returns the function that changes its levels, and its last lines.
pub fn to_stderr(env: &Env) -> (Arc<SetLevel>, Arc<LogLines>) {
    let start: fn() -> EnvFilter = || EnvFilter::try_from_env("HELENUS_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let (filter, handle) = reload::Layer::new(start());
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal()).with_target(false);
    let kept: Arc<LogLines> = Arc::default();
    let keeps = Keeps { lines: Arc::clone(&kept), env: env.clone() };
    tracing_subscriber::registry().with(filter).with(lines).with(keeps).init();
    (set_level(start, handle), kept)
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

/// Keeps lines in memory.
struct Keeps {
    lines: Arc<LogLines>,
    env: Env,
}

impl<S: Subscriber> Layer<S> for Keeps {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        let metadata = event.metadata();
        self.lines.push(LogLine {
            at_millis: self.env.clock.now_micros() / 1000,
            level: metadata.level().as_str(),
            logger: metadata.target(),
            message: text.message + &text.fields,
        });
    }
}

/// An event as text: its message, then its fields.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        // writing to a string does not fail
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
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
