//! The network: queues of new connections, and whether the node's ports are free.

use std::io::ErrorKind;
use std::net::SocketAddr;

use crate::finding::Finding;
use crate::machine::Machine;

/// Connections that may wait to be accepted.
const WAITING_WANTED: u64 = 1024;

/// Looks at the network. Ports are tried on this machine alone, not for the copy of another.
pub fn examine(machine: &Machine<'_>, ports: &[(&'static str, SocketAddr)]) -> Vec<Finding> {
    let mut found: Vec<Finding> = machine.number("/proc/sys/net/core/somaxconn").map(waiting).into_iter().collect();
    let range = machine.read("/proc/sys/net/ipv4/ip_local_port_range").and_then(|text| two(&text));
    for (name, address) in ports {
        found.extend(range.and_then(|range| ephemeral_port_warning(name, *address, range)));
        if machine.is_this() {
            let bound = machine.env.network.bind(*address, false).map(drop);
            found.push(port(name, *address, bound.map_err(|error| error.kind())));
        }
    }
    found
}

fn two(text: &str) -> Option<(u16, u16)> {
    let mut words = text.split_whitespace().map(|word| word.parse().ok());
    Some((words.next()??, words.next()??))
}

fn waiting(most: u64) -> Finding {
    let found = format!("net.core.somaxconn {most}");
    match most {
        0..WAITING_WANTED => Finding::warn(
            "new connections",
            found,
            format!("sysctl net.core.somaxconn={WAITING_WANTED}: clients that all connect at once are turned away"),
        ),
        _ => Finding::ok("new connections", found),
    }
}

/// None: the kernel gives this port to no outgoing connection.
fn ephemeral_port_warning(name: &'static str, address: SocketAddr, (first, last): (u16, u16)) -> Option<Finding> {
    (first..=last).contains(&address.port()).then(|| {
        Finding::warn(
            name,
            format!("{} lies among the ports that the kernel gives to outgoing connections", address.port()),
            format!("sysctl net.ipv4.ip_local_reserved_ports={}, or a restart may find it taken", address.port()),
        )
    })
}

fn port(name: &'static str, address: SocketAddr, bound: Result<(), ErrorKind>) -> Finding {
    match bound {
        Ok(()) => Finding::ok(name, format!("{address} is free")),
        Err(ErrorKind::AddrInUse) => Finding::fail(
            name,
            format!("{address} is taken"),
            "stop what listens there (ss -ltnp), or choose another port",
        ),
        Err(ErrorKind::AddrNotAvailable) => Finding::fail(
            name,
            format!("{address} is no address of this machine"),
            "mend --listen or the configuration",
        ),
        Err(ErrorKind::PermissionDenied) => {
            Finding::fail(name, format!("{address} may not be used by this user"), "choose a port from 1024 on")
        }
        Err(kind) => Finding::fail(name, format!("{address}: {kind}"), "choose another address"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    #[test]
    fn the_network_is_judged() {
        let address = SocketAddr::from(([127, 0, 0, 1], 9042));
        assert_eq!((waiting(128).level, waiting(4096).level), (Level::Warn, Level::Ok));
        assert_eq!(two("32768\t60999\n"), Some((32_768, 60_999)));
        assert_eq!((two("32768"), two("a b")), (None, None));
        assert_eq!(ephemeral_port_warning("cql port", address, (32_768, 60_999)), None);
        assert_eq!(
            ephemeral_port_warning("cql port", address, (1024, 65_535)).map(|found| found.level),
            Some(Level::Warn)
        );
        assert_eq!(port("cql port", address, Ok(())).level, Level::Ok);
        let kinds =
            [ErrorKind::AddrInUse, ErrorKind::AddrNotAvailable, ErrorKind::PermissionDenied, ErrorKind::OutOfMemory];
        assert!(kinds.iter().all(|kind| port("cql port", address, Err(*kind)).level == Level::Fail));
    }
}
