//! `helenus doctor`: what is in the way of a node on this machine, and what to do.
//!
//! The options are those of `helenus serve`, so that the node that is looked at is the one that
//! will run. The looking is in crate `doctor`; this file says which directories, ports, memory and
//! shards are meant. Exit code 0: the node can run; 1: something has to be mended first.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use config::Config;
use doctor::{Finding, Level, PlannedNode};
use env::Env;
use server::directory::{self, DirectoryOptions};

use crate::arguments::{Doctor, Serve};
use crate::{configuration, serve, unsupported_values};

/// Looks, and prints what was found.
pub fn run(options: &Doctor) -> ExitCode {
    let env = env::real::env();
    let found = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(async { examine(&env, options) }),
        Err(error) => vec![Finding::fail("runtime", error.to_string(), "give the process more file descriptors")],
    };
    let text = if options.json { format!("{:#}\n", doctor::as_json(&found)) } else { doctor::as_text(&found) };
    // an error means that nobody reads stdout: the exit code tells all the same
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
    if doctor::worst(&found) == Level::Fail { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn examine(env: &Env, options: &Doctor) -> Vec<Finding> {
    let (config, mut found) = match configuration::load(env, &options.serve) {
        Ok(config) => {
            let finding = of_config(&config, options.serve.lenient);
            (config, vec![finding])
        }
        Err(problems) => {
            let advice = "mend it (`helenus check` has the whole list), or add --lenient";
            let first = problems.lines().next().unwrap_or_default().to_owned();
            (Config::default(), vec![Finding::fail("configuration", first, advice)])
        }
    };
    let (data, commitlog) = match directories(env, &options.serve, &config) {
        Ok(directories) => directories,
        Err(why) => {
            found.push(Finding::fail("directory", why, "name another one with --data-dir, or mend this one"));
            (Vec::new(), options.serve.data_dir.join("commitlog"))
        }
    };
    let asked = PlannedNode {
        root: options.root.clone(),
        data,
        commitlog,
        read_only: options.serve.read_only,
        memory: options.serve.memory,
        shards: options.serve.shards,
        ports: ports(&options.serve, &config),
    };
    found.extend(doctor::examine(env, &asked));
    found
}

/// With `--lenient` a node starts and ignores the values that it does not honour.
fn of_config(config: &Config, is_lenient: bool) -> Finding {
    let unsupported = unsupported_values::keys(config).join(", ");
    match (unsupported.is_empty(), is_lenient) {
        (true, _) => {}
        (false, true) => {
            let found = format!("cluster {}, ignored: {unsupported}", config.cluster_name);
            return Finding::warn("configuration", found, "remove these values, which --lenient ignores");
        }
        (false, false) => {
            let advice = "remove these values, or add --lenient";
            return Finding::fail("configuration", format!("not honoured: {unsupported}"), advice);
        }
    }
    match config.notes().len() {
        0 => Finding::ok("configuration", format!("cluster {}", config.cluster_name)),
        keys => Finding::ok("configuration", format!("cluster {}, {keys} keys without effect", config.cluster_name)),
    }
}

fn directories(env: &Env, options: &Serve, config: &Config) -> Result<(Vec<PathBuf>, PathBuf), String> {
    let data_dir: &Path = &options.data_dir;
    let directory_options =
        DirectoryOptions { data_dir, schema_file: options.schema.as_deref(), read_only: options.read_only };
    directory::locate(env, &directory_options, config).map(|found| (found.data, found.commitlog))
}

/// The ports that the node will listen on.
fn ports(options: &Serve, config: &Config) -> Vec<(&'static str, SocketAddr)> {
    let address = options.listen.unwrap_or(config.rpc_address);
    let mut ports = vec![
        ("cql port", SocketAddr::new(address, options.port.unwrap_or(config.native_transport.port))),
        ("admin port", SocketAddr::new(serve::admin_address(config, address), options.admin_port)),
    ];
    if config.ring.seeds.is_some() && !options.read_only {
        ports.push(("storage port", SocketAddr::new(config.listen_address, config.storage_port)));
    }
    ports
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Command, Program};

    fn found(words: &[&str]) -> Vec<Finding> {
        let program = Program::try_parse_from([&["helenus", "doctor"], words].concat()).expect("known options");
        let Some(Command::Doctor(doctor)) = program.command else { panic!("the doctor was asked") };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async { examine(&env::real::env(), &doctor) })
    }

    fn level(found: &[Finding], check: &str) -> Option<Level> {
        found.iter().find(|finding| finding.check == check).map(|finding| finding.level)
    }

    #[test]
    fn configuration_directory_and_ports_are_looked_at() {
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().join("new");
        let data = data.to_str().expect("a path");
        let ring = found(&[
            "--data-dir",
            data,
            "--port",
            "0",
            "--admin-port",
            "0",
            "--listen",
            "127.0.18.9",
            "--seeds",
            "127.0.18.9",
        ]);
        assert_eq!(level(&ring, "configuration"), Some(Level::Ok));
        assert_eq!(level(&ring, "storage port"), Some(Level::Ok));
        let words = ["--data-dir", data, "--port", "0", "--admin-port", "0", "--set", "max_value_size=1MiB"];
        let alone = found(&words);
        assert_eq!(level(&alone, "configuration"), Some(Level::Fail));
        // the node starts with what the advice says
        let lenient = found(&[&words[..], &["--lenient"]].concat());
        assert_eq!(level(&lenient, "configuration"), Some(Level::Warn));
        assert_eq!((level(&alone, "cql port"), level(&alone, "storage port")), (Some(Level::Ok), None));
        let slip = found(&["--data-dir", data, "--port", "0", "--admin-port", "0", "--set", "num_token=1"]);
        assert_eq!(level(&slip, "configuration"), Some(Level::Fail));
        let missing = found(&["--data-dir", data, "--port", "0", "--admin-port", "0", "--read-only"]);
        assert_eq!(level(&missing, "directory"), Some(Level::Fail));
    }
}
