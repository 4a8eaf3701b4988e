//! `helenus health`: whether a node serves clients. The health check of the container image names
//! no port, so the port is that of the node which the container runs.

use std::path::Path;
use std::process::ExitCode;

use env::Env;

/// The command line of the first process, each word with a zero behind it.
const FIRST_PROCESS: &str = "/proc/1/cmdline";
/// Most bytes of the command line.
const COMMAND_LINE_MAX: u64 = 1 << 20;
/// The word with which the image begins its command.
const ENTRYPOINT: &str = "entrypoint";

/// Asks the node that these words of nodetool name; without any the node of this container, or the
/// one at the usual port.
pub fn run(env: &Env, mut arguments: Vec<String>) -> ExitCode {
    if arguments.is_empty() {
        let bytes = env.disk.read_all(Path::new(FIRST_PROCESS), COMMAND_LINE_MAX).unwrap_or_default();
        let port = port_of(&String::from_utf8_lossy(&bytes)).map(str::to_owned);
        arguments.extend(port.into_iter().flat_map(|port| ["-p".to_owned(), port]));
    }
    arguments.push("statusbinary".to_owned());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = crate::ask(&arguments, &mut out, &mut err);
    let told = String::from_utf8_lossy(if code == 0 { &out } else { &err }).trim().to_owned();
    println!("{told}");
    if code == 0 && told == "running" { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The admin port of the node that a container runs by this command line; None: the usual one, or
/// the command line is that of no container of ours.
fn port_of(command_line: &str) -> Option<&str> {
    let mut words = command_line.split('\0').skip_while(|word| *word != ENTRYPOINT);
    let mut port = None;
    while let Some(word) = words.next() {
        // the last one counts
        match word.strip_prefix("--admin-port") {
            Some("") => port = words.next(),
            Some(rest) => port = rest.strip_prefix('=').or(port),
            None => {}
        }
    }
    port
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_that_of_the_node_in_the_container() {
        assert_eq!(port_of("/usr/bin/helenus\0entrypoint\0cassandra\0-f\0"), None);
        let named = "/usr/bin/helenus\0entrypoint\0cassandra\0-f\0--admin-port\x009999\0";
        assert_eq!(port_of(named), Some("9999"));
        // docker run --init
        let behind = "/sbin/docker-init\0--\0/usr/bin/helenus\0entrypoint\0--admin-port=1\0--admin-port=9998\0";
        assert_eq!(port_of(behind), Some("9998"));
        assert_eq!(port_of("/usr/bin/another\0--admin-port\x009997\0"), None);
    }
}
