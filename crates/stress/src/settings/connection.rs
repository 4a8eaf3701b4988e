//! The address of the cluster and the kind of connection.

use super::credentials::Credentials;
use super::transport::Transport;
use super::words::Words;
use crate::Result;

/// The options `-node`, `-port`, `-mode`, `-transport`, `-credentials-file`.
pub struct Connection {
    pub hosts: Vec<String>,
    /// Whether only these nodes are used, and not others that they know.
    pub whitelist: bool,
    pub datacenter: Option<String>,
    pub port: u16,
    pub login: Option<(String, String)>,
    /// Connections to each node.
    pub connections: usize,
    pub compression: Option<Compression>,
    /// The encryption; None: connections are not encrypted.
    pub transport: Option<Transport>,
}

/// Compression of the protocol's frames.
#[derive(Clone, Copy)]
pub enum Compression {
    Lz4,
    Snappy,
}

/// Default of the connections to a node, as for the Java driver in cassandra-stress.
const CONNECTIONS: usize = 8;

impl Connection {
    /// Reads the words of the five options.
    pub fn parse(node: Words, mut port: Words, mut mode: Words, transport: Words, credentials: Words) -> Result<Self> {
        let (hosts, whitelist, datacenter) = nodes(node)?;
        let number =
            port.value("native=").map_or(Ok(9042), |text| text.parse().map_err(|_| format!("'{text}' is no port")))?;
        port.refuse("jmx=", "nothing is asked of JMX, which Helenus does not have")?;
        port.end()?;
        let login = login(&mut mode, Credentials::parse(credentials)?)?;
        let connections = mode.number("connectionsPerHost=")?;
        let compression = mode.value("compression=").map(|text| compression(&text)).transpose()?.flatten();
        protocol(&mut mode)?;
        mode.end()?;
        Ok(Self {
            hosts,
            whitelist,
            datacenter,
            port: number,
            login,
            connections: connections.map(usize::try_from).transpose()?.unwrap_or(CONNECTIONS).max(1),
            compression,
            transport: Transport::parse(transport)?,
        })
    }
}

/// The hosts, whether only they are used, and the data center.
fn nodes(mut node: Words) -> Result<(Vec<String>, bool, Option<String>)> {
    let (whitelist, datacenter) = (node.flag("whitelist"), node.value("datacenter="));
    let file = node.value("file=");
    let listed: Vec<String> = node.rest().iter().flat_map(|word| word.split(',')).map(str::to_owned).collect();
    let hosts = match file {
        Some(file) => {
            let text = std::fs::read_to_string(&file).map_err(|error| format!("-node file={file}: {error}"))?;
            text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
        }
        None if listed.is_empty() => vec!["127.0.0.1".to_owned()],
        None => listed,
    };
    if let Some(word) = hosts.iter().find(|host| host.contains('=')) {
        return Err(format!(
            "-node: '{word}' is no host; it knows whitelist datacenter= file= and hosts with commas between"
        )
        .into());
    }
    if hosts.is_empty() {
        return Err("-node: the file names no host".into());
    }
    Ok((hosts, whitelist, datacenter))
}

/// Name and password. Those of the command line take precedence over those of the file.
fn login(mode: &mut Words, file: Credentials) -> Result<Option<(String, String)>> {
    if let Some(provider) = mode.value("auth-provider=")
        && provider.rsplit('.').next() != Some("PlainTextAuthProvider")
    {
        return Err(format!("-mode auth-provider={provider}: a name and a password are what this tool can show; PlainTextAuthProvider is that").into());
    }
    let (user, password) = (mode.value("user=").or(file.user), mode.value("password=").or(file.password));
    match (user, password) {
        (Some(user), password) => Ok(Some((user, password.unwrap_or_default()))),
        (None, Some(_)) => Err("-mode: a password without user=".into()),
        (None, None) => Ok(None),
    }
}

/// Reads the words that leave one choice only.
fn protocol(mode: &mut Words) -> Result<()> {
    match mode.value("protocolVersion=").as_deref() {
        None | Some("4" | "NEWEST_SUPPORTED") => {}
        Some(other) => {
            return Err(format!("-mode protocolVersion={other}: this tool's driver speaks version 4").into());
        }
    }
    mode.refuse("maxPending=", "-rate threads= bounds what is under way; requests beyond it are not begun")?;
    mode.refuse("port=", "-port native= is the port")?;
    mode.refuse("simplenative", "there is one client here, which is the driver's")?;
    // statements are always prepared; the other two name what has long been the only protocol
    for word in ["prepared", "native", "cql3"] {
        mode.flag(word);
    }
    Ok(())
}

fn compression(text: &str) -> Result<Option<Compression>> {
    match text.to_ascii_lowercase().as_str() {
        "none" => Ok(None),
        "lz4" => Ok(Some(Compression::Lz4)),
        "snappy" => Ok(Some(Compression::Snappy)),
        _ => Err(format!("-mode compression={text} is not none, lz4 or snappy").into()),
    }
}
