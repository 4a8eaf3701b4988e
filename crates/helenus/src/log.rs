//! The log: lines on stderr, filtered by `HELENUS_LOG` (`info`, `storage=debug,warn` …), changed by `nodetool setlogginglevel`.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};

use server::admin_api::SetLevel;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt, reload};

/// Starts the log; gives what changes its levels.
pub fn to_stderr() -> Arc<SetLevel> {
    let start = || EnvFilter::try_from_env("HELENUS_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let (filter, handle) = reload::Layer::new(start());
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal()).with_target(false);
    tracing_subscriber::registry().with(filter).with(lines).init();
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

/// `org.apache.cassandra` and `root` are everything; of other names the last part counts.
fn directive(logger: &str, level: &str) -> String {
    match logger.rsplit('.').next().unwrap_or(logger) {
        "root" | "ROOT" | "cassandra" => level.to_owned(),
        target => format!("{target}={level}"),
    }
}
