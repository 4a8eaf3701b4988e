//! `helenus health`: whether a node serves clients. The health check of the container image names
//! no node, so it asks the one that the container runs, where its command and its cassandra.yaml
//! have the admin port.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use config::{AdminPort, ClientEncryption, Config, Pem};
use env::Env;

use crate::arguments::{Command, Program, Serve};
use crate::configuration::CONFIG_SIZE_MAX;
use crate::entrypoint::{self, Container};

/// The command line of the first process, each word with a zero behind it.
const FIRST_PROCESS: &str = "/proc/1/cmdline";
/// Most bytes of the command line.
const COMMAND_LINE_MAX: u64 = 1 << 20;
/// The word with which the image begins its command.
const ENTRYPOINT: &str = "entrypoint";

/// Asks the node that these words of nodetool name; without any the node of this container, or the
/// one at the usual port.
pub fn run(env: &Env, mut arguments: Vec<String>) -> ExitCode {
    if arguments.is_empty()
        && let Some((address, encryption)) = port_of_container(env)
    {
        if let Some(encryption) = encryption.filter(|encryption| !encryption.optional) {
            return probe(env, address, &encryption);
        }
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        arguments.extend(["-h".to_owned(), host, "-p".to_owned(), port]);
    }
    arguments.push("statusbinary".to_owned());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = crate::ask(&arguments, &mut out, &mut err);
    let told = String::from_utf8_lossy(if code == 0 { &out } else { &err }).trim().to_owned();
    println!("{told}");
    if code == 0 && told == "running" { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Asks a port that takes encrypted connections alone. The check has no login, and needs none.
fn probe(env: &Env, address: SocketAddr, encryption: &ClientEncryption) -> ExitCode {
    // where callers must show a certificate, the node's own is the only one in the container
    let identity = match &encryption.identity {
        Pem::File(path) if encryption.require_client_auth => Some(Path::new(path)),
        _ => None,
    };
    let answer = admin::http::probe(env, address, identity);
    let (is_ready, told) = answer.unwrap_or_else(|error| (false, error.to_string()));
    println!("{told}");
    if is_ready { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The admin port of the node that this container runs; None: there is no container of ours, or it
/// runs no node.
fn port_of_container(env: &Env) -> Option<(SocketAddr, Option<ClientEncryption>)> {
    let bytes = env.disk.read_all(Path::new(FIRST_PROCESS), COMMAND_LINE_MAX).ok()?;
    let words = words_of(&String::from_utf8_lossy(&bytes))?;
    // the first start needs the password, and its file may be gone since
    let container = Container { password_file: None, ..Container::of_process(env) };
    let node = node_of(&container, &words)?;
    Some(port_of(env, &node))
}

/// The words behind the entrypoint in the command line of a container; None: the command line is
/// that of no container of ours.
fn words_of(command_line: &str) -> Option<Vec<String>> {
    let command_line = command_line.strip_suffix('\0').unwrap_or(command_line);
    let mut words = command_line.split('\0').skip_while(|word| *word != ENTRYPOINT);
    words.next()?;
    Some(words.map(str::to_owned).collect())
}

/// The node that a container runs by these words; None: it runs none.
fn node_of(container: &Container, words: &[String]) -> Option<Serve> {
    let translated = entrypoint::translate(container, words).ok()?;
    let words = ["helenus".to_owned()].into_iter().chain(without_host_names(translated.words));
    match Program::try_parse_from(words).ok()?.command? {
        Command::Serve(node) => Some(node),
        _ => None,
    }
}

/// The words without a `--listen` that names a host: a name service may answer late or not at all.
/// The admin port of such a node is where the configuration says, or on 127.0.0.1.
fn without_host_names(words: Vec<String>) -> Vec<String> {
    let is_name = |text: &str| text.parse::<IpAddr>().is_err();
    let mut kept: Vec<String> = Vec::new();
    for word in words {
        let names_host = word.strip_prefix("--listen=").is_some_and(is_name);
        if kept.last().is_some_and(|last| last == "--listen") && is_name(&word) {
            kept.pop();
        } else if !names_host {
            kept.push(word);
        }
    }
    kept
}

/// The admin port of a node, and its encryption. The rest of the configuration is not read: a
/// check looks up no name of a host and asks no service of a cloud.
fn port_of(env: &Env, node: &Serve) -> (SocketAddr, Option<ClientEncryption>) {
    let read = |path: &Path| String::from_utf8(env.disk.read_all(path, CONFIG_SIZE_MAX).ok()?).ok();
    let yaml = node.config.as_deref().and_then(read);
    let configured = Config::admin_port_of(yaml.as_deref(), &node.sets);
    let AdminPort { address, encryption } = configured.unwrap_or(AdminPort { address: None, encryption: None });
    // as `serve::admin_address`
    let of_machine = node.listen.filter(IpAddr::is_loopback).unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    (SocketAddr::new(address.unwrap_or(of_machine), node.admin_port), encryption)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The admin port of a container with this command line and this cassandra.yaml.
    fn port(command_line: &str, yaml: Option<&str>) -> Option<String> {
        let (env, directory) = (env::real::env(), tempfile::tempdir().expect("a directory"));
        let path = directory.path().join("cassandra.yaml");
        if let Some(text) = yaml {
            env.disk.replace_file(&path, text.as_bytes()).expect("written");
        }
        let container = Container {
            variables: std::collections::BTreeMap::new(),
            not_text: Vec::new(),
            address: None,
            config: yaml.map(|_| path.display().to_string()),
            snitch: None,
            conf_dir: None,
            has_rackdc: false,
            password_file: None,
        };
        let node = node_of(&container, &words_of(command_line)?)?;
        let (address, encryption) = port_of(&env, &node);
        Some(format!("{}{address}", if encryption.is_some() { "encrypted " } else { "" }))
    }

    #[test]
    fn the_port_is_that_of_the_node_in_the_container() {
        let command = "/usr/bin/helenus\0entrypoint\0cassandra\0-f\0";
        assert_eq!(port(command, None).as_deref(), Some("127.0.0.1:9180"));
        let named = format!("{command}--admin-port\x009999\0");
        assert_eq!(port(&named, None).as_deref(), Some("127.0.0.1:9999"));
        // docker run --init
        let behind = "/sbin/docker-init\0--\0/usr/bin/helenus\0entrypoint\0--admin-port=1\0--admin-port=9998\0";
        assert_eq!(port(behind, None).as_deref(), Some("127.0.0.1:9998"));
        // no name is looked up
        let words = ["--listen", "127.0.0.5", "--listen", "nowhere.invalid", "--listen=nowhere.invalid", "--port", "1"];
        let kept = without_host_names(words.map(str::to_owned).to_vec());
        assert_eq!(kept, ["--listen", "127.0.0.5", "--port", "1"]);
        assert_eq!(port("/usr/bin/another\0--admin-port\x009997\0", None), None);
        assert_eq!(port("/usr/bin/helenus\0entrypoint\0nodetool\0status\0", None), None);
    }

    #[test]
    fn the_address_is_that_of_the_configuration() {
        let command = "/usr/bin/helenus\0entrypoint\0cassandra\0-f\0";
        let yaml = Some("admin_address: 127.0.0.3\nrpc_address: a-host.example\n");
        assert_eq!(port(command, yaml).as_deref(), Some("127.0.0.3:9180"));
        let set = format!("{command}--set\0admin_address=127.0.0.4\0");
        assert_eq!(port(&set, yaml).as_deref(), Some("127.0.0.4:9180"));
        let encrypted = "admin_address: 10.0.0.1\nadmin_encryption_options: {enabled: true, keystore: k.pem, \
                         ssl_context_factory: {class_name: PEMBasedSslContextFactory}}\n";
        assert_eq!(port(command, Some(encrypted)).as_deref(), Some("encrypted 10.0.0.1:9180"));
        assert_eq!(port(command, Some("no yaml: [")).as_deref(), Some("127.0.0.1:9180"));
    }
}
