//! Where the cluster is and how to speak to it.

use super::words::Words;
use crate::Result;

/// `-node`, `-port`, `-mode`, `-transport`.
pub struct Connection {
    pub hosts: Vec<String>,
    /// Only these nodes, not those that they know.
    pub whitelist: bool,
    pub datacenter: Option<String>,
    pub port: u16,
    pub login: Option<(String, String)>,
    /// Connections to each node.
    pub connections: usize,
    pub compression: Option<Compression>,
}

/// Compression of the protocol's frames.
#[derive(Clone, Copy)]
pub enum Compression {
    Lz4,
    Snappy,
}

/// Connections to a node when nothing is said: as the Java driver in cassandra-stress.
const CONNECTIONS: usize = 8;

impl Connection {
    /// Reads the words of the four options. No TLS: the driver's brings a second cryptographic library, to be built from C, with it.
    pub fn parse(mut node: Words, mut port: Words, mut mode: Words, transport: Words) -> Result<Self> {
        if !transport.is_empty() {
            return Err("-transport: this tool speaks without TLS only".into());
        }
        let whitelist = node.flag("whitelist");
        let datacenter = node.value("datacenter=");
        if let Some(file) = node.value("file=") {
            return Err(format!("-node file={file}: give the hosts with commas between instead").into());
        }
        let mut hosts: Vec<String> = node.rest().iter().flat_map(|word| word.split(',')).map(str::to_owned).collect();
        if hosts.is_empty() {
            hosts.push("127.0.0.1".to_owned());
        }
        let number =
            port.value("native=").map_or(Ok(9042), |text| text.parse().map_err(|_| format!("'{text}' is no port")))?;
        port.end()?;
        let (user, password) = (mode.value("user="), mode.value("password="));
        let connections = mode.value("connectionsPerHost=").map(|text| text.parse()).transpose()?;
        let compression = mode.value("compression=").map(|text| compression(&text)).transpose()?.flatten();
        // what cassandra-stress has here and there is but one of
        for word in ["native", "cql3", "prepared"] {
            mode.flag(word);
        }
        mode.end()?;
        Ok(Self {
            hosts,
            whitelist,
            datacenter,
            port: number,
            login: user.map(|user| (user, password.unwrap_or_default())),
            connections: connections.unwrap_or(CONNECTIONS).max(1),
            compression,
        })
    }
}

fn compression(text: &str) -> Result<Option<Compression>> {
    match text.to_ascii_lowercase().as_str() {
        "none" => Ok(None),
        "lz4" => Ok(Some(Compression::Lz4)),
        "snappy" => Ok(Some(Compression::Snappy)),
        _ => Err(format!("-mode compression={text} is not none, lz4 or snappy").into()),
    }
}
