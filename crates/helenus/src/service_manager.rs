//! Tells the service manager how the node is (systemd's `Type=notify`): a datagram to the socket
//! that the environment names.
//!
//! Without `NOTIFY_SOCKET` nothing is told, and an error is logged alone: the node does not depend
//! on who watches it. The socket is no connection of the node, so it does not go through `env`.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The variable that names the socket.
const VARIABLE: &str = "NOTIFY_SOCKET";

/// Tells the service manager, if there is one. `state` is lines such as `READY=1`.
pub fn tell(state: &str) {
    let Ok(socket) = std::env::var(VARIABLE) else { return };
    if let Err(error) = tell_at(&socket, state) {
        tracing::warn!(%error, socket, "the service manager was not told {state}");
    }
}

/// A name that begins with `@` lies in no file system.
fn tell_at(socket: &str, state: &str) -> std::io::Result<()> {
    let address = match socket.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_hears_of_both_kinds_of_socket() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("notify");
        let name = format!("helenus-test-{}", std::process::id());
        let bound = [
            (path.to_str().expect("a path").to_owned(), UnixDatagram::bind(&path).expect("bound")),
            (
                format!("@{name}"),
                UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).expect("a name")).expect("bound"),
            ),
        ];
        for (socket, manager) in bound {
            tell_at(&socket, "READY=1").expect("told");
            let mut text = [0; 16];
            let length = manager.recv(&mut text).expect("heard");
            assert_eq!(&text[..length], b"READY=1");
        }
        assert!(tell_at(directory.path().join("nobody").to_str().expect("a path"), "READY=1").is_err());
    }
}
