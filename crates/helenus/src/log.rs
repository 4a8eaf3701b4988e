//! The log: lines on stderr, as text or as JSON (`--log-format`), and in files (`--log-dir`),
//! filtered by `HELENUS_LOG` (`info`, `storage=debug,warn` …) and by `nodetool setlogginglevel`.
//! The last lines stay in memory for `system_views.system_logs`.

mod files;
mod form;
mod targets;

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

/// The variable that names the filter of the start.
const VARIABLE: &str = "HELENUS_LOG";
/// The filter of a start where the variable names none.
const USUAL: &str = "info";

/// Starts the log. Returns the function that changes its levels, and its last lines.
pub fn start(env: &Env, format: Format, directory: Option<&Path>) -> io::Result<(Arc<SetLevel>, Arc<LogLines>)> {
    let (first, slip) = of_start(std::env::var(VARIABLE).ok().as_deref());
    let start: fn() -> EnvFilter = || of_start(std::env::var(VARIABLE).ok().as_deref()).0;
    let (filter, handle) = reload::Layer::new(first);
    let text = (format == Format::Text)
        .then(|| fmt::layer().with_writer(io::stderr).with_ansi(io::stderr().is_terminal()).with_target(false));
    let kept: Arc<LogLines> = Arc::default();
    let files = directory.map(|directory| Files::open(env, directory)).transpose()?;
    let keeps = LineLayer { lines: Arc::clone(&kept), env: env.clone(), is_json: format == Format::Json, files };
    tracing_subscriber::registry().with(filter).with(text).with(keeps).init();
    slip.iter().for_each(|slip| tracing::warn!("{slip}"));
    Ok((set_level(start, handle), kept))
}

/// The filter of the start, and a sentence where the variable has a text that is no filter. An
/// empty one counts as not set, as composed files and scripts pass it: the library takes it for
/// errors alone.
fn of_start(variable: Option<&str>) -> (EnvFilter, Option<String>) {
    let text = variable.map(str::trim).filter(|text| !text.is_empty()).unwrap_or(USUAL);
    match EnvFilter::try_new(text) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(USUAL), Some(format!("{VARIABLE}: '{text}': {error}; {USUAL} is taken"))),
    }
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
        let filter = filter(start(), &next)?;
        handle.reload(filter).map_err(|error| error.to_string())?;
        *changed = next;
        Ok(())
    })
}

/// Keeps lines in memory, and writes the forms that are ours.
struct LineLayer {
    lines: Arc<LogLines>,
    env: Env,
    /// Lines go to stderr as JSON.
    is_json: bool,
    files: Option<Files>,
}

impl<S: Subscriber> Layer<S> for LineLayer {
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

/// The filter of the start with levels that were changed since, by the names of loggers. ROOT is
/// everything.
fn filter(start: EnvFilter, changed: &BTreeMap<String, String>) -> Result<EnvFilter, String> {
    let mut filter = start;
    for (logger, level) in changed {
        let directives = match logger.as_str() {
            "ROOT" => vec![level.clone()],
            logger => targets::targets(logger)?.into_iter().map(|target| format!("{target}={level}")).collect(),
        };
        for directive in directives {
            let parsed = directive.parse().map_err(|_| format!("'{level}' is no level for '{logger}'"))?;
            filter = filter.add_directive(parsed);
        }
    }
    Ok(filter)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes the targets of the events that come.
    struct TargetRecorder(Arc<Mutex<Vec<String>>>);

    impl<S: Subscriber> Layer<S> for TargetRecorder {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            self.0.lock().expect("no panic inside").push(event.metadata().target().to_owned());
        }
    }

    fn passing(logger: &str, level: &str) -> Vec<String> {
        let changed = BTreeMap::from([(logger.to_owned(), level.to_owned())]);
        let filter = filter(EnvFilter::new("info"), &changed).expect("a level");
        let noted: Arc<Mutex<Vec<String>>> = Arc::default();
        let subscriber = tracing_subscriber::registry().with(filter).with(TargetRecorder(Arc::clone(&noted)));
        tracing::subscriber::with_default(subscriber, || {
            tracing::debug!(target: "storage::compaction::run", "compacted");
            tracing::debug!(target: "storage::flush", "flushed");
            tracing::info!(target: "cluster::streaming::worker", "streamed");
        });
        let mut noted = noted.lock().expect("no panic inside");
        std::mem::take(&mut *noted)
    }

    #[test]
    fn a_variable_that_is_empty_or_no_filter_changes_nothing() {
        use tracing_subscriber::filter::LevelFilter;
        for (variable, level, is_told) in [
            (None, LevelFilter::INFO, false),
            (Some(""), LevelFilter::INFO, false),
            (Some(" "), LevelFilter::INFO, false),
            (Some("storage=debug,warn"), LevelFilter::DEBUG, false),
            (Some("storage=loud"), LevelFilter::INFO, true),
        ] {
            let (filter, slip) = of_start(variable);
            assert_eq!((filter.max_level_hint(), slip.is_some()), (Some(level), is_told), "{variable:?}");
        }
    }

    #[test]
    fn the_level_of_a_component_is_that_of_its_modules() {
        let (compacted, flushed, streamed) =
            ("storage::compaction::run", "storage::flush", "cluster::streaming::worker");
        assert_eq!(passing("compaction", "DEBUG"), [compacted, streamed]);
        assert_eq!(passing("org.apache.cassandra.streaming", "error"), [""; 0]);
        assert_eq!(passing("storage", "debug"), [compacted, flushed, streamed]);
        assert_eq!(passing("ROOT", "debug"), [compacted, flushed, streamed]);
        let refused = |logger: &str, level: &str| {
            filter(EnvFilter::new("info"), &BTreeMap::from([(logger.to_owned(), level.to_owned())])).err()
        };
        assert!(refused("nothing", "debug").is_some_and(|why| why.contains("bootstrap, compaction, cql")));
        assert!(refused("compaction", "loud").is_some_and(|why| why.contains("'loud' is no level")));
    }
}
