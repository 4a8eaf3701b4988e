//! `helenus check`: which keys of a configuration are honoured, which have no effect, and which are
//! refused; nothing is started. The options are those of `helenus serve`. Exit code 1: a start
//! would be refused.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;

use env::Env;

use crate::arguments::Serve;
use crate::{configuration, unsupported_values};

/// Reads the configuration and prints a line for each key in it.
pub fn run(options: &mut Serve) -> ExitCode {
    let checked = check(&env::real::env(), options);
    // an error means that nobody reads stdout: the exit code tells all the same
    let _ = std::io::stdout().lock().write_all(checked.text().as_bytes());
    if checked.refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The keys of a configuration by what becomes of them.
#[derive(Default, Debug)]
struct Checked {
    honoured: BTreeSet<String>,
    /// Lines that begin with a key.
    without_effect: Vec<String>,
    /// Lines that begin with a key.
    refused: Vec<String>,
}

impl Checked {
    fn text(&self) -> String {
        let honoured = self.honoured.iter().map(|key| format!("honoured  {key}\n"));
        let ignored =
            self.without_effect.iter().map(|line| format!("no effect {}\n", line.replace(": without effect here", "")));
        let refused = self.refused.iter().map(|line| format!("refused   {line}\n"));
        let sum = format!(
            "{} honoured, {} without effect, {} refused\n",
            self.honoured.len(),
            self.without_effect.len(),
            self.refused.len()
        );
        honoured.chain(ignored).chain(refused).chain([sum]).collect()
    }
}

/// A refused configuration is read a second time, leniently, for the keys that are not refused. A
/// value that is refused even so leaves nothing but the refusals. With `--lenient` keys that a
/// start then ignores are without effect.
fn check(env: &Env, options: &mut Serve) -> Checked {
    let mut checked = Checked::default();
    let is_lenient = options.lenient;
    let config = match configuration::load(env, options) {
        Ok(config) => Some(config),
        Err(problems) => {
            checked.refused.extend(problems.lines().map(str::to_owned));
            options.lenient = true;
            configuration::load(env, options).ok()
        }
    };
    let Some(config) = config else { return checked };
    let unsupported = unsupported_values::keys(&config);
    let unsupported =
        unsupported.iter().map(|key| format!("{key}: exists in Cassandra, but is not honoured yet at this value"));
    let fate = if is_lenient { &mut checked.without_effect } else { &mut checked.refused };
    fate.extend(unsupported);
    let is_ignored =
        |note: &&String| note.ends_with("without effect here") || is_lenient && note.ends_with("; ignored");
    checked.without_effect.extend(config.notes().iter().filter(is_ignored).cloned());
    let key = |line: &String| line.split(':').next().unwrap_or_default().to_owned();
    let others: BTreeSet<String> = checked.refused.iter().chain(&checked.without_effect).map(key).collect();
    checked.honoured = config.given().map(str::to_owned).filter(|key| !others.contains(key)).collect();
    checked
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Command, Program};

    #[test]
    fn keys_are_sorted_by_their_fate() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("cassandra.yaml");
        let text = "cluster_name: a\nread_request_timeout_in_ms: 1000\nring_delay: 1s\nnum_token: 4\nmax_value_size: 1MiB\n\
                    auto_snapshot_ttl: 1d\nback_pressure_enabled: true\nauthenticator: PasswordAuthenticator\n\
                    console_queries_enabled: true\notlp_sample_ratio: 0.5\ncounter_cache_size_in_mb: 5\nroles_cache_active_update: true\n";
        env::real::env().disk.replace_file(&file, text.as_bytes()).expect("written");
        let words = ["helenus", "check", "--config", file.to_str().expect("a path")];
        let Some(Command::Check(mut serve)) = Program::try_parse_from(words).expect("known options").command else {
            panic!("a check was asked")
        };
        let checked = check(&env::real::env(), &mut serve);
        let honoured: Vec<&str> = checked.honoured.iter().map(String::as_str).collect();
        let expected = [
            "authenticator",
            "cluster_name",
            "console_queries_enabled",
            "otlp_sample_ratio",
            "read_request_timeout",
            "ring_delay",
        ];
        assert_eq!(honoured, expected);
        let ignored = ["back_pressure_enabled: without effect here", "counter_cache_size_in_mb: without effect here"];
        assert_eq!(checked.without_effect, ignored);
        let refused: Vec<&str> = checked.refused.iter().filter_map(|line| line.split(':').next()).collect();
        assert_eq!(
            refused,
            ["auto_snapshot_ttl", "num_token", "max_value_size", "roles_cache_active_update"],
            "{checked:?}"
        );
        let text = checked.text();
        assert!(text.contains("no effect back_pressure_enabled\n"), "{text}");
        assert!(text.ends_with("6 honoured, 2 without effect, 4 refused\n"), "{text}");
        // a lenient start ignores what another one refuses
        let words = words.into_iter().chain(["--lenient"]);
        let Some(Command::Check(mut serve)) = Program::try_parse_from(words).expect("known options").command else {
            panic!("a check was asked")
        };
        let text = check(&env::real::env(), &mut serve).text();
        assert!(text.contains("no effect max_value_size: ") && text.contains("no effect num_token: "), "{text}");
        assert!(text.ends_with("6 honoured, 6 without effect, 0 refused\n"), "{text}");
    }
}
