//! `helenus entrypoint`: the first program of the container image, which takes the environment of
//! Cassandra's official image.
//!
//! The environment becomes options of `helenus serve` ([`translate`], a plain function;
//! [`VARIABLES`] is the table). A variable that means nothing here is named in a line on stderr,
//! and so is one that nobody knows. Words behind it work as in that image: `cassandra -f` or
//! options serve a node, other words are commands of this program. There is no shell in the image.
//!
//! Where users log in, the image has no default password: [`password`].
//!
//! Agrees with `docker-entrypoint.sh` of the image `cassandra:5.0`.

mod password;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use config::{ARCHIVING_FILE, Config, Snitch};
use env::Env;
use server::running::FirstPassword;

use crate::configuration::CONFIG_SIZE_MAX;

/// The directory of the image's volume.
const DATA_DIR: &str = "/var/lib/cassandra";
/// The directory of cassandra.yaml, if the image is given one.
const CONF_DIR: &str = "/etc/cassandra";
/// The place of a node where the snitch is asked for one and nobody names it: as in the
/// cassandra-rackdc.properties of Cassandra.
const PLACE: (&str, &str) = ("dc1", "rack1");
/// The file that names the place of a node.
const RACKDC: &str = "cassandra-rackdc.properties";
/// The files that are read beside a cassandra.yaml, also where there is none.
const BESIDE: [&str; 3] = [RACKDC, "cassandra-topology.properties", ARCHIVING_FILE];
/// The most bytes that are read of a file.
const FILE_MAX: u64 = 1 << 20;

/// How a variable is treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meaning {
    /// The value of this key of cassandra.yaml.
    Key(&'static str),
    /// An address, or `auto` for the container's own.
    Address(&'static str),
    /// [`translate`] has a part of its own for the variable.
    Own,
    /// The variable means nothing here; the reason.
    Nothing(&'static str),
}

const NO_JVM: &str = "there is no virtual machine";
const NO_JMX: &str = "there is no JMX: nodetool asks the admin port";

/// The variables that the official image, its scripts, and images made of it know.
const VARIABLES: [(&str, Meaning); 33] = [
    ("CASSANDRA_CLUSTER_NAME", Meaning::Key("cluster_name")),
    ("CASSANDRA_NUM_TOKENS", Meaning::Key("num_tokens")),
    ("CASSANDRA_ENDPOINT_SNITCH", Meaning::Key("endpoint_snitch")),
    ("CASSANDRA_RPC_ADDRESS", Meaning::Key("rpc_address")),
    ("CASSANDRA_LISTEN_ADDRESS", Meaning::Address("listen_address")),
    ("CASSANDRA_BROADCAST_ADDRESS", Meaning::Address("broadcast_address")),
    ("CASSANDRA_BROADCAST_RPC_ADDRESS", Meaning::Address("broadcast_rpc_address")),
    ("CASSANDRA_SEEDS", Meaning::Own),
    ("CASSANDRA_NAME", Meaning::Own),
    ("CASSANDRA_DC", Meaning::Own),
    ("CASSANDRA_RACK", Meaning::Own),
    ("CASSANDRA_CONF", Meaning::Own),
    ("MAX_HEAP_SIZE", Meaning::Own),
    ("JVM_OPTS", Meaning::Own),
    ("JVM_EXTRA_OPTS", Meaning::Own),
    (password::VARIABLE, Meaning::Own),
    (password::FILE_VARIABLE, Meaning::Own),
    ("CASSANDRA_START_RPC", Meaning::Nothing("Thrift is gone since Cassandra 4.0")),
    ("HEAP_NEWSIZE", Meaning::Nothing(NO_JVM)),
    ("JAVA_HOME", Meaning::Nothing(NO_JVM)),
    ("JVM_ON_OUT_OF_MEMORY_ERROR_OPT", Meaning::Nothing(NO_JVM)),
    ("CASSANDRA_HEAPDUMP_DIR", Meaning::Nothing(NO_JVM)),
    ("CASSANDRA_USE_JDK11", Meaning::Nothing(NO_JVM)),
    ("JEMALLOC_SHELL", Meaning::Nothing(NO_JVM)),
    ("CASSANDRA_LIBJEMALLOC", Meaning::Nothing(NO_JVM)),
    ("MALLOC_ARENA_MAX", Meaning::Nothing("the program has an allocator of its own")),
    ("CASSANDRA_HOME", Meaning::Nothing("the program is one file")),
    ("CASSANDRA_INCLUDE", Meaning::Nothing("there is no shell in the image")),
    ("CASSANDRA_LOG_DIR", Meaning::Nothing("the log goes to stderr, for the container's own")),
    ("CASSANDRA_LOGBACK_XML", Meaning::Nothing("HELENUS_LOG has the levels of the log")),
    ("LOCAL_JMX", Meaning::Nothing(NO_JMX)),
    ("JMX_PORT", Meaning::Nothing(NO_JMX)),
    ("CASSANDRA_SNITCH", Meaning::Nothing("the official image reads CASSANDRA_ENDPOINT_SNITCH")),
];

/// System properties (`-Dcassandra.NAME=VALUE` in JVM_OPTS, JVM_EXTRA_OPTS, or behind `cassandra`)
/// that are keys here, each with the unit of its plain numbers. Cassandra refuses `replace_address`
/// at a node that is a member; here it means nothing then, as `replace_address_first_boot` there.
const PROPERTIES: [(&str, &str, &str); 6] = [
    ("ring_delay_ms", "ring_delay", "ms"),
    ("join_ring", "join_ring", ""),
    ("consistent.rangemovement", "consistent_rangemovement", ""),
    ("replace_address", "replace_address_first_boot", ""),
    ("replace_address_first_boot", "replace_address_first_boot", ""),
    ("auto_bootstrap", "auto_bootstrap", ""),
];
/// System properties that ask for a shorter or no wait of which we have none.
const PROPERTIES_WITHOUT_NEED: [&str; 2] = ["skip_wait_for_gossip_to_settle", "superuser_setup_delay_ms"];

/// The command line that an environment stands for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Translated {
    /// The words behind `helenus`.
    pub words: Vec<String>,
    /// A line for each variable that means nothing here.
    pub notes: Vec<String>,
    /// The first password that the environment gives; None: it gives none.
    pub password: Option<String>,
}

impl Translated {
    /// The password of the superuser that this start makes, if it makes one.
    pub fn first_password(&self) -> FirstPassword {
        self.password.clone().map_or_else(password::random, FirstPassword::Given)
    }
}

/// The container, as the environment's words need it.
pub struct Container {
    /// The variables of the process.
    pub variables: BTreeMap<String, String>,
    /// The names of variables whose values are no text.
    pub not_text: Vec<String>,
    /// The address by which other containers reach this one; None: none was found.
    pub address: Option<IpAddr>,
    /// The file cassandra.yaml that was mounted, if there is one.
    pub config: Option<String>,
    /// The snitch of that file; None: there is no such file, or the start refuses it.
    pub snitch: Option<Snitch>,
    /// The directory of files that are read beside a cassandra.yaml, where there are such files
    /// and no cassandra.yaml; None otherwise.
    pub conf_dir: Option<String>,
    /// A file cassandra-rackdc.properties was mounted.
    pub has_rackdc: bool,
    /// The content of the file that [`password::FILE_VARIABLE`] names, or why it cannot be read;
    /// None: the variable names none.
    pub password_file: Option<Result<String, String>>,
}

impl Container {
    /// The container in which the process runs.
    pub fn of_process(env: &Env) -> Self {
        let (variables, not_text) = texts(std::env::vars_os());
        let conf = variables.get("CASSANDRA_CONF").map_or(CONF_DIR, String::as_str);
        let yaml = Path::new(conf).join("cassandra.yaml");
        let config = env.disk.exists(&yaml).then(|| yaml.display().to_string());
        let snitch = config.as_ref().and_then(|_| {
            let text = String::from_utf8(env.disk.read_all(&yaml, CONFIG_SIZE_MAX).ok()?).ok()?;
            Config::snitch_of(Some(&text), &[])
        });
        let has = |file: &str| env.disk.exists(&Path::new(conf).join(file));
        let has_others = config.is_none() && BESIDE.into_iter().any(has);
        let conf_dir = has_others.then(|| conf.to_owned());
        let has_rackdc = has(RACKDC);
        let read = |path: &str| {
            let bytes = env.disk.read_all(Path::new(path), FILE_MAX).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let name = read("/proc/sys/kernel/hostname");
        let network = Network {
            trie: read("/proc/net/fib_trie"),
            routes: read("/proc/net/route"),
            interfaces: read("/proc/net/dev"),
            outwards: env.network.address_outwards(),
        };
        let address = own_address(&read("/etc/hosts"), name.trim(), &network);
        let password_file = password::read_file(env, &variables);
        Self { variables, not_text, address, config, snitch, conf_dir, has_rackdc, password_file }
    }
}

/// The variables that are text, and the names of those whose values are not. Variables of others
/// may be of any bytes.
fn texts(all: impl Iterator<Item = (OsString, OsString)>) -> (BTreeMap<String, String>, Vec<String>) {
    let (mut variables, mut not_text) = (BTreeMap::new(), Vec::new());
    for (name, value) in all {
        match (name.into_string(), value.into_string()) {
            (Ok(name), Ok(value)) => drop(variables.insert(name, value)),
            (Ok(name), Err(_)) => not_text.push(name),
            (Err(_), _) => {}
        }
    }
    (variables, not_text)
}

/// The kernel's word about the network of the container.
struct Network {
    /// `/proc/net/fib_trie`: the addresses, in the order of their numbers.
    trie: String,
    /// `/proc/net/route`: the networks, each with its interface.
    routes: String,
    /// `/proc/net/dev`: the interfaces, in the order in which they were made.
    interfaces: String,
    /// The address from which the container reaches hosts outside of its networks; None: it has no
    /// way there.
    outwards: Option<IpAddr>,
}

impl Network {
    /// The addresses by which others may reach the container: neither loopback nor link-local ones.
    fn addresses(&self) -> Vec<Ipv4Addr> {
        let mut own = Vec::new();
        let mut last = "";
        let is_own = |address: &Ipv4Addr| !address.is_loopback() && !address.is_link_local();
        for line in self.trie.lines().map(str::trim) {
            if line.ends_with("host LOCAL") {
                own.extend(last.parse::<Ipv4Addr>().ok().filter(is_own));
            }
            last = line.strip_prefix("|-- ").unwrap_or(last);
        }
        own
    }

    /// The place of the interface that has an address, and whether the address has no network of
    /// its own. The interface is the one in the address's network. Some clouds give a machine an
    /// address without a network (/32): that is on the interface which leads to everywhere else.
    /// An address that has neither comes last.
    ///
    /// On one interface an address with a network comes first, because the addresses of services
    /// in Kubernetes (`kube-ipvs0`) have none either.
    fn interface_of(&self, address: Ipv4Addr) -> (usize, bool) {
        let address = u32::from_ne_bytes(address.octets());
        // numbers in hexadecimal digits, each with its bytes in the order of the network
        let number = |word: &str| u32::from_str_radix(word, 16).ok();
        let route = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [name, network, gateway, _, _, _, _, mask, ..] = words.as_slice() else { return None };
            Some(((*name).to_owned(), number(network)?, number(gateway)?, number(mask)?))
        };
        let routes: Vec<(String, u32, u32, u32)> = self.routes.lines().filter_map(route).collect();
        let of_network = routes
            .iter()
            .find(|(_, network, gateway, mask)| *gateway == 0 && *mask != 0 && *network == address & *mask);
        let to_everywhere = || routes.iter().find(|(_, network, _, mask)| *network == 0 && *mask == 0);
        let is_without = of_network.is_none();
        let Some((name, ..)) = of_network.or_else(to_everywhere) else { return (usize::MAX, is_without) };
        let mut names = self.interfaces.lines().filter_map(|line| Some(line.split_once(':')?.0.trim()));
        (names.position(|known| known == name.as_str()).unwrap_or(usize::MAX), is_without)
    }
}

/// The address that `/etc/hosts` gives the container's name, if it is one of its addresses; else
/// the address of its first interface: of several the one from which it reaches hosts outside of
/// its networks. On the network of its machine (`--network host`) a container has the addresses of
/// bridges, too, by which no other machine reaches it.
fn own_address(hosts: &str, name: &str, network: &Network) -> Option<IpAddr> {
    let own = network.addresses();
    let named = hosts.lines().find_map(|line| {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let address: Ipv4Addr = words.next()?.parse().ok()?;
        (words.any(|word| word == name) && own.contains(&address)).then_some(address)
    });
    let is_other = |address: Ipv4Addr| network.outwards != Some(IpAddr::V4(address));
    let first = || own.iter().copied().min_by_key(|address| (network.interface_of(*address), is_other(*address)));
    named.or_else(first).map(IpAddr::V4)
}

/// The command line for a container. `words`: those behind the entrypoint. Err: a sentence that
/// says which variable is wrong.
pub fn translate(container: &Container, words: &[String]) -> Result<Translated, String> {
    let rest = match words.first().map(String::as_str) {
        None => words,
        Some("cassandra") => &words[1..],
        Some(word) if word.starts_with('-') => words,
        Some(_) => return Ok(Translated { words: words.to_vec(), ..Translated::default() }),
    };
    if let Some(name) = container.not_text.iter().find(|name| VARIABLES.iter().any(|(known, _)| known == name)) {
        return Err(format!("{name}: its value is no text (UTF-8)"));
    }
    let mut options = Options { container, sets: Vec::new(), words: Vec::new(), notes: Vec::new() };
    options.take_addresses()?;
    options.take_place();
    options.take_rest();
    let password = password::chosen(container)?;
    if password.is_some() && container.config.is_none() {
        options.sets.extend(password::KEYS.map(|(key, value)| (key, value.to_owned())));
    }
    let mut of_command = Vec::new();
    for word in rest {
        match word.as_str() {
            // the foreground, and root allowed: what we do anyway
            "-f" | "-R" => {}
            property if property.starts_with("-D") => options.take_property("the command", property),
            other => of_command.push(other.to_owned()),
        }
    }
    let Options { sets, words, notes, .. } = options;
    let given = |option: &str| of_command.iter().any(|word| word == option || word.starts_with(&format!("{option}=")));
    let mut all = vec!["serve".to_owned()];
    if !given("--data-dir") {
        all.extend(["--data-dir".to_owned(), DATA_DIR.to_owned()]);
    }
    all.extend(words);
    all.extend(sets.into_iter().flat_map(|(key, value)| ["--set".to_owned(), format!("{key}={value}")]));
    all.extend(of_command);
    Ok(Translated { words: all, notes, password })
}

struct Options<'a> {
    container: &'a Container,
    sets: Vec<(&'static str, String)>,
    words: Vec<String>,
    notes: Vec<String>,
}

impl Options<'_> {
    /// A variable; empty ones count as not given, as in the official image.
    fn value(&self, name: &str) -> Option<&str> {
        self.container.variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    fn address(&self, name: &str) -> Result<Option<String>, String> {
        let own = || {
            let found = self.container.address.map(|address| address.to_string());
            found.ok_or_else(|| format!("{name}: the container has no address: name one"))
        };
        match self.value(name) {
            Some("auto") => own().map(Some),
            Some(address) => Ok(Some(address.to_owned())),
            None => Ok(None),
        }
    }

    /// Addresses and seeds, each with the default that the official image computes.
    fn take_addresses(&mut self) -> Result<(), String> {
        let listen = match self.address("CASSANDRA_LISTEN_ADDRESS")? {
            Some(address) => address,
            // without a network of its own a container is its machine
            None => self.container.address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)).to_string(),
        };
        let broadcast = self.address("CASSANDRA_BROADCAST_ADDRESS")?.unwrap_or_else(|| listen.clone());
        let broadcast_rpc = self.address("CASSANDRA_BROADCAST_RPC_ADDRESS")?.unwrap_or_else(|| broadcast.clone());
        let rpc = self.value("CASSANDRA_RPC_ADDRESS").unwrap_or("0.0.0.0").to_owned();
        let linked = self.value("CASSANDRA_NAME").map(|_| "cassandra");
        let seeds = self.value("CASSANDRA_SEEDS").or(linked).unwrap_or(&broadcast).to_owned();
        self.sets.extend([
            ("listen_address", listen),
            ("broadcast_address", broadcast),
            ("broadcast_rpc_address", broadcast_rpc),
            ("rpc_address", rpc),
        ]);
        self.words.extend(["--seeds".to_owned(), seeds]);
        Ok(())
    }

    /// Data center and rack. The official image writes those of the environment into
    /// cassandra-rackdc.properties, which one snitch alone reads: each counts for itself.
    fn take_place(&mut self) {
        let container = self.container;
        let (dc, rack) = (self.value("CASSANDRA_DC"), self.value("CASSANDRA_RACK"));
        let is_read = match self.value("CASSANDRA_ENDPOINT_SNITCH") {
            Some(class) => class.ends_with(Snitch::GossipingPropertyFile.class()),
            None => container.snitch == Some(Snitch::GossipingPropertyFile),
        };
        if !is_read {
            let given = dc.is_some() || rack.is_some();
            self.notes.extend(given.then(|| {
                "CASSANDRA_DC and CASSANDRA_RACK count with GossipingPropertyFileSnitch alone: \
                 CASSANDRA_ENDPOINT_SNITCH, or endpoint_snitch of a mounted cassandra.yaml"
                    .to_owned()
            }));
            return;
        }
        // a file that was mounted says what the environment does not; the node reads it
        let usual = |name: &'static str| (!container.has_rackdc).then_some(name);
        let (dc, rack) = (dc.or(usual(PLACE.0)), rack.or(usual(PLACE.1)));
        let (dc, rack) = (dc.map(str::to_owned), rack.map(str::to_owned));
        self.words.extend(dc.into_iter().flat_map(|dc| ["--dc".to_owned(), dc]));
        self.words.extend(rack.into_iter().flat_map(|rack| ["--rack".to_owned(), rack]));
    }

    /// Everything else, in the order of names.
    fn take_rest(&mut self) {
        self.words.extend(self.container.config.iter().flat_map(|file| ["--config".to_owned(), file.clone()]));
        self.words.extend(self.container.conf_dir.iter().flat_map(|conf| ["--conf-dir".to_owned(), conf.clone()]));
        let container = self.container;
        for (name, value) in container.variables.iter().filter(|(_, value)| !value.trim().is_empty()) {
            match VARIABLES.iter().find(|(known, _)| known == name).map(|(_, meaning)| *meaning) {
                Some(Meaning::Key("rpc_address") | Meaning::Address(_)) => {}
                Some(Meaning::Key(key)) => self.sets.push((key, value.trim().to_owned())),
                Some(Meaning::Nothing(why)) => self.notes.push(format!("{name} is not needed: {why}")),
                Some(Meaning::Own) => self.take_own(name, value.trim()),
                // Kubernetes and links tell the addresses of services by such names
                None if name.contains("_SERVICE_") || name.contains("_PORT") || name.contains("_ENV_") => {}
                None if name.starts_with("CASSANDRA_") => {
                    self.notes.push(format!("{name}: no such variable, nothing is done"))
                }
                None => {}
            }
        }
    }

    fn take_own(&mut self, name: &str, value: &str) {
        match name {
            "MAX_HEAP_SIZE" => self.words.extend(["--memory".to_owned(), value.to_owned()]),
            "JVM_OPTS" | "JVM_EXTRA_OPTS" => value.split_whitespace().for_each(|word| self.take_property(name, word)),
            // taken already
            _ => {}
        }
    }

    /// A word for the virtual machine: properties of Cassandra that are keys here count.
    fn take_property(&mut self, place: &str, word: &str) {
        let Some((name, value)) = word.strip_prefix("-Dcassandra.").and_then(|property| property.split_once('='))
        else {
            self.notes.push(format!("{place}: {word} is not needed: {NO_JVM}"));
            return;
        };
        if let Some((_, key, unit)) = PROPERTIES.iter().find(|(known, ..)| *known == name) {
            self.sets.push((key, format!("{value}{unit}")));
        } else if name == "initial_token" {
            // the property counts alone, whatever num_tokens says
            self.sets.push(("initial_token", format!("'{value}'")));
            self.sets.push(("num_tokens", value.split(',').count().to_string()));
        } else if PROPERTIES_WITHOUT_NEED.contains(&name) {
            self.notes.push(format!("{place}: -Dcassandra.{name} is not needed: there is no such wait"));
        } else {
            self.notes.push(format!("{place}: -Dcassandra.{name} IS NOT HONOURED"));
        }
    }
}

#[cfg(test)]
mod tests;
