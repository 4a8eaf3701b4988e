//! The configuration of a node: cassandra.yaml, the files beside it, and the command line.

use std::path::{Path, PathBuf};

use config::{ARCHIVING_FILE, Archiving, CloudLocation, Config, Location, Place, RackDc, Snitch};
use env::Env;
use server::directory::{self, DirectoryOptions};

use crate::arguments::Serve;
use crate::metadata_service::MetadataService;

/// The most bytes that a cassandra.yaml, or a file beside it, may have.
pub const CONFIG_SIZE_MAX: u64 = 16 << 20;

/// The file in a data directory whose lock a running node holds. As in `storage::recovery`.
const LOCK_FILE: &str = "helenus.lock";

/// The file in the directory of the commit log that a start writes when it has restored a point in
/// time. As in `storage::restore_point`.
const RESTORED_FILE: &str = "restored_to_point_in_time";

/// The directory with which a file system of some kinds begins.
const LOST_AND_FOUND: &str = "lost+found";

/// The names of Cassandra for where a node stands that says nothing of it.
const DEFAULT_PLACE: (&str, &str) = ("datacenter1", "rack1");

/// Reads what the command line names. Err: a sentence that says what is wrong.
pub fn load(env: &Env, options: &Serve) -> Result<Config, String> {
    let text = options.config.as_deref().map(|path| read(env, path)).transpose()?;
    let mut settings = settings(options);
    let addresses = resolve_host_names(env, text.as_deref(), &settings)?;
    settings.extend(addresses);
    let read = |settings: &[String]| Config::load(text.as_deref(), settings, options.lenient);
    let mut config = read(&settings).map_err(|error| error.to_string())?;
    // a wildcard is no address that other nodes could connect to
    let listen = options.listen.filter(|address| !address.is_unspecified());
    if let Some(address) = listen.filter(|_| !config.is_set("listen_address")) {
        settings.push(format!("listen_address={address}"));
        config = read(&settings).map_err(|error| error.to_string())?;
    }
    config.commitlog.archiving = archiving(env, options)?;
    check_restore(env, options, &config)?;
    let snitch = config.ring.snitch;
    if snitch.is_of_cloud() {
        let CloudLocation { place, public } = locate_in_cloud(env, options, snitch)?;
        if let Some(address) = public {
            // the settings of a command line count more than the file
            settings.push(format!("broadcast_address={address}"));
            if !config.is_set("broadcast_rpc_address") {
                settings.push(format!("broadcast_rpc_address={address}"));
            }
            let archiving = config.commitlog.archiving.take();
            config = read(&settings).map_err(|error| error.to_string())?;
            config.commitlog.archiving = archiving;
        }
        let prefers_local = snitch == Snitch::Ec2MultiRegion;
        config.ring.location = Location { own: Some(place), prefers_local, ..Location::default() };
        return Ok(config);
    }
    config.ring.location = location(env, options, &config, text.as_deref())?;
    config.ring.topology_file = topology_file(options, snitch);
    Ok(config)
}

/// The addresses of the hosts that the configuration names, as settings. Of several addresses the
/// first of IPv4 counts, as in Cassandra.
fn resolve_host_names(env: &Env, yaml: Option<&str>, settings: &[String]) -> Result<Vec<String>, String> {
    let address = |(key, host): (&'static str, String)| match env.network.resolve_one(&host) {
        Some(address) => Ok(format!("{key}='{address}'")),
        None => Err(format!("{key}: {host} is neither an address nor a host that has one")),
    };
    Config::host_names(yaml, settings).into_iter().map(address).collect()
}

/// The path of a file that is read beside cassandra.yaml; None: nothing says where that is.
fn beside(options: &Serve, file: &str) -> Option<PathBuf> {
    match &options.config {
        Some(config) => Some(config.with_file_name(file)),
        None => options.conf_dir.as_ref().map(|directory| directory.join(file)),
    }
}

/// The file that is read again while the node runs.
fn topology_file(options: &Serve, snitch: Snitch) -> Option<PathBuf> {
    let file = snitch.file().filter(|_| snitch == Snitch::PropertyFile)?;
    beside(options, file)
}

/// The answers of the metadata service of the cloud. The properties beside cassandra.yaml may be
/// missing, as in Cassandra.
fn locate_in_cloud(env: &Env, options: &Serve, snitch: Snitch) -> Result<CloudLocation, String> {
    let path = snitch.file().and_then(|file| beside(options, file));
    let text = match path.filter(|path| env.disk.exists(path)) {
        Some(path) => read(env, &path)?,
        None => String::new(),
    };
    let found = config::locate(snitch, &text, &mut MetadataService { env });
    found.map_err(|why| format!("endpoint_snitch: {}: {why}", snitch.class()))
}

/// The options of the command line as settings of the configuration. The seeds of `--seeds` come
/// first, so that `--set` can name another provider.
fn settings(options: &Serve) -> Vec<String> {
    let mut sets = Vec::new();
    if let Some(seeds) = &options.seeds {
        let seeds = seeds.replace('\'', "");
        sets.push(format!("seed_provider={{class_name: SimpleSeedProvider, parameters: {{seeds: '{seeds}'}}}}"));
    }
    // a place that the command line names is one that the node tells
    if options.dc.is_some() || options.rack.is_some() {
        sets.push("endpoint_snitch=GossipingPropertyFileSnitch".to_owned());
    }
    sets.extend(options.sets.iter().cloned());
    sets.extend(options.cluster_name.iter().map(|name| format!("cluster_name='{}'", name.replace('\'', "''"))));
    sets.extend(options.listen.map(|address| format!("rpc_address={address}")));
    sets.extend(options.port.filter(|port| *port > 0).map(|port| format!("native_transport_port={port}")));
    sets
}

/// `commitlog_archiving.properties` beside cassandra.yaml, where there is one.
fn archiving(env: &Env, options: &Serve) -> Result<Option<Archiving>, String> {
    let Some(path) = beside(options, ARCHIVING_FILE).filter(|path| env.disk.exists(path)) else { return Ok(None) };
    let parsed = Archiving::parse(&read(env, &path)?);
    parsed.map(Some).map_err(|why| format!("{}: {why}", path.display()))
}

/// Refuses a start that would pass over a restore to a point in time. `helenus backup restore` has
/// left the file that has archived segments replayed beside the data, and it is not beside
/// cassandra.yaml: the node would serve without the writes of these segments. A data directory in
/// which a node has run has the file of its lock; no backup has that. A start that has replayed
/// the segments to the end has noted the point; one that failed before has not. An empty
/// directory, apart from what a file system of its own begins with, is another disk of a node, and
/// was not restored.
fn check_restore(env: &Env, options: &Serve, config: &Config) -> Result<(), String> {
    let is_read = config.commitlog.archiving.as_ref().is_some_and(|read| !read.restore_directories.is_empty());
    if is_read || options.read_only {
        return Ok(());
    }
    let directory_options =
        DirectoryOptions { data_dir: &options.data_dir, schema_file: options.schema.as_deref(), read_only: false };
    // the start itself says what is in the way of a directory
    let Ok(found) = directory::locate(env, &directory_options, config) else { return Ok(()) };
    // the note of any point counts: the node may have been started with another one than the
    // file names
    let is_noted = env.disk.exists(&found.commitlog.join(RESTORED_FILE));
    let waits = |data: &PathBuf| {
        let file = data.parent()?.join(ARCHIVING_FILE);
        // a file that cannot be read or parsed is of no restore
        let restore = Archiving::parse(&read(env, &file).unwrap_or_default()).ok()?;
        restore.point_in_time?;
        let has_segments = restore.restore_directories.iter().any(|directory| env.disk.exists(Path::new(directory)));
        let entries = env.disk.list_dir(data).unwrap_or_default();
        let has_content = entries.iter().any(|entry| entry.name != LOST_AND_FOUND);
        let is_done = env.disk.exists(&data.join(LOCK_FILE)) && is_noted;
        (has_segments && has_content && !is_done).then_some(file)
    };
    match found.data.iter().find_map(waits) {
        None => Ok(()),
        Some(file) => Err(format!(
            "{} is of a restore to a point in time, and no start has replayed its segments to the end: put it beside \
             cassandra.yaml (--config) for this start, so that the archived segments of the commit log are replayed, \
             or remove it to start without their writes",
            file.display()
        )),
    }
}

/// Where this node stands, and others where a file says it: `--dc` and `--rack`, or the file of the
/// snitch beside cassandra.yaml. `yaml`: the text of cassandra.yaml.
fn location(env: &Env, options: &Serve, config: &Config, yaml: Option<&str>) -> Result<Location, String> {
    if options.dc.is_some() || options.rack.is_some() {
        let file = rackdc(env, options, yaml)?;
        let or = |given: &Option<String>, told: Option<String>, usual: &str| {
            given.clone().or(told).unwrap_or_else(|| usual.to_owned())
        };
        let data_center = or(&options.dc, file.data_center, DEFAULT_PLACE.0);
        let own = Place { data_center, rack: or(&options.rack, file.rack, DEFAULT_PLACE.1) };
        return Ok(Location { own: Some(own), prefers_local: file.prefers_local, ..Location::default() });
    }
    let snitch = config.ring.snitch;
    if snitch == Snitch::RackInferring {
        let own = Some(config::inferred(config.broadcast_address));
        return Ok(Location { own, ..Location::default() });
    }
    let Some(file) = snitch.file() else { return Ok(Location::default()) };
    let Some(path) = beside(options, file) else {
        return Err(format!(
            "endpoint_snitch: {} needs {file} beside cassandra.yaml, or --dc and --rack",
            snitch.class()
        ));
    };
    let location = snitch.read(&read(env, &path)?).map_err(|why| format!("{}: {why}", path.display()))?;
    if location.of_local(config.broadcast_address).is_none() {
        return Err(format!(
            "{} does not define a location for this node's broadcast address {}, nor does it provide a default",
            path.display(),
            config.broadcast_address
        ));
    }
    Ok(location)
}

/// The file that gives the part of the place that `--dc` or `--rack` leaves open: that of
/// GossipingPropertyFileSnitch, if cassandra.yaml or `--set` has this snitch and the file is
/// there.
fn rackdc(env: &Env, options: &Serve, yaml: Option<&str>) -> Result<RackDc, String> {
    let snitch = Snitch::GossipingPropertyFile;
    let is_read = Config::snitch_of(yaml, &options.sets) == Some(snitch);
    let path = snitch.file().and_then(|file| beside(options, file));
    match path.filter(|path| is_read && env.disk.exists(path)) {
        Some(path) => Ok(RackDc::read(&read(env, &path)?)),
        None => Ok(RackDc::default()),
    }
}

fn read(env: &Env, path: &Path) -> Result<String, String> {
    let bytes = env.disk.read_all(path, CONFIG_SIZE_MAX).map_err(|error| format!("{}: {error}", path.display()))?;
    String::from_utf8(bytes).map_err(|_| format!("{}: not UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::arguments::Program;

    fn loaded(arguments: &[&str]) -> Result<Config, String> {
        let arguments = ["helenus"].iter().chain(arguments);
        let program = Program::try_parse_from(arguments).map_err(|error| error.to_string())?;
        load(&env::real::env(), &program.serve)
    }

    #[test]
    fn a_first_ring_in_short() {
        let alone = loaded(&["--listen", "127.0.0.3"]).expect("alone");
        assert_eq!((alone.ring.seeds, alone.ring.auto_bootstrap), (None, true));
        assert_eq!(alone.listen_address.to_string(), "127.0.0.3");
        let config =
            loaded(&["--listen", "127.0.0.2", "--seeds", "127.0.0.1,b:7001", "--cluster-name", "it's"]).expect("valid");
        assert_eq!(config.ring.seeds.as_deref(), Some(&["127.0.0.1".to_owned(), "b:7001".to_owned()][..]));
        assert_eq!((config.cluster_name.as_str(), config.ring.auto_bootstrap), ("it's", true));
        assert_eq!(
            (config.broadcast_address.to_string(), config.rpc_address.to_string()),
            ("127.0.0.2".into(), "127.0.0.2".into())
        );
        assert!(config.ring.location.own.is_none());
        let apart = loaded(&["--listen", "127.0.0.2", "--set", "listen_address=127.0.0.9"]).expect("valid");
        assert_eq!(
            (apart.listen_address.to_string(), apart.rpc_address.to_string()),
            ("127.0.0.9".into(), "127.0.0.2".into())
        );
        assert!(!loaded(&["--seeds", "a", "--set", "auto_bootstrap=false"]).expect("valid").ring.auto_bootstrap);
    }

    /// Addresses may be names of hosts; a host that nobody knows is named with its key.
    #[test]
    fn names_of_hosts_are_looked_up() {
        let directory = tempfile::tempdir().expect("a directory");
        let yaml = directory.path().join("cassandra.yaml");
        let load = |host: &str| {
            let text = format!("listen_address: {host}\nrpc_address: 127.0.0.7\n");
            env::real::env().disk.replace_file(&yaml, text.as_bytes()).expect("written");
            loaded(&["--config", yaml.to_str().expect("a path")])
        };
        assert!(load("LOCALHOST").expect("every machine knows it").listen_address.is_loopback());
        assert!(loaded(&["--listen", "LOCALHOST"]).expect("as in the file").rpc_address.is_loopback());
        // too long for a name server to be asked
        let nobody = "n".repeat(300);
        let error = load(&nobody).expect_err("no such host");
        assert_eq!(error, format!("listen_address: {nobody} is neither an address nor a host that has one"));
        let error = loaded(&["--listen", &nobody]).expect_err("no such host");
        assert!(error.contains("neither an address nor a host that has one"), "{error}");
    }

    #[test]
    fn a_restore_whose_segments_were_not_replayed_is_not_passed_over() {
        let directory = tempfile::tempdir().expect("a directory");
        let disk = env::real::env().disk;
        let place = |name: &str| directory.path().join(name);
        let text = |path: &Path| path.to_str().expect("a path").to_owned();
        let (restored, file) = (place("node/commitlog-restored"), place("node").join(ARCHIVING_FILE));
        disk.create_dir_all(&place("node/data/system_schema")).expect("made");
        disk.create_dir_all(&restored).expect("made");
        disk.create_dir_all(&place("conf")).expect("made");
        disk.replace_file(&place("conf/cassandra.yaml"), b"cluster_name: a\n").expect("written");
        let (data_dir, yaml) = (text(&place("node")), text(&place("conf/cassandra.yaml")));
        let start = || loaded(&["--data-dir", &data_dir, "--config", &yaml]).map(drop);
        let write = |path: &Path, lines: &str| disk.replace_file(path, lines.as_bytes()).expect("written");
        write(&file, "archive_command=/usr/bin/mine %path\n");
        assert_eq!(start(), Ok(()), "a file of the operator");
        let lines = format!(
            "restore_command=/bin/cp -f %from %to\nrestore_directories={}\nrestore_point_in_time=2026:11:21 08:11:02\n",
            restored.display()
        );
        write(&file, &lines);
        let refused = start().expect_err("the file is beside the data alone");
        assert!(refused.starts_with(&text(&file)), "{refused}");
        assert!(loaded(&["--data-dir", &data_dir]).is_err(), "no cassandra.yaml");
        write(&place("conf").join(ARCHIVING_FILE), &lines);
        assert_eq!(start(), Ok(()), "the first start");
        disk.remove_file(&place("conf").join(ARCHIVING_FILE)).expect("removed");
        write(&place("node/data").join(LOCK_FILE), "");
        assert!(start().is_err(), "the first start has failed");
        disk.create_dir_all(&place("node/commitlog")).expect("made");
        write(&place("node/commitlog").join(RESTORED_FILE), "1763712662000000 1763712662000\n");
        assert_eq!(start(), Ok(()), "later starts");
        write(&place("conf/cassandra.yaml"), "data_file_directories: [data, data2]\n");
        for content in ["", "lost+found"] {
            assert_eq!(start(), Ok(()), "a second disk");
            disk.create_dir_all(&place("node/data2").join(content)).expect("made");
        }
        assert_eq!(start(), Ok(()), "a second disk with a file system of its own");
    }

    /// A metadata service that knows these paths, and the address at which it listens.
    fn metadata_service(answers: &'static [(&'static str, &'static str)]) -> std::net::SocketAddr {
        let (tell, told) = std::sync::mpsc::channel();
        let serve = async move {
            let env = env::real::env();
            let mut listener = env.network.bind(([127, 0, 0, 1], 0).into(), false).expect("a port");
            tell.send(listener.local_address().expect("bound")).expect("awaited");
            loop {
                let accepted = std::future::poll_fn(|context| listener.poll_accept(context)).await;
                let Ok((mut stream, _)) = accepted else { return };
                let mut asked = vec![0; 4096];
                let count = stream.read(&mut asked).await.unwrap_or_default();
                let asked = String::from_utf8_lossy(&asked[..count]).into_owned();
                let path = asked.split(' ').nth(1).unwrap_or_default();
                let answer = match answers.iter().find(|(known, _)| *known == path) {
                    Some((_, body)) => {
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
                    }
                    None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned(),
                };
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        };
        let make: env::LocalFutureFactory = Box::new(move || Box::pin(serve));
        // it ends with the process
        drop(env::real::env().tasks.spawn_local_worker("metadata", make));
        told.recv().expect("it listens")
    }

    #[test]
    fn a_cloud_says_where_the_node_stands() {
        let service = metadata_service(&[
            ("/latest/api/token", "secret"),
            ("/latest/meta-data/placement/availability-zone", "eu-west-1b"),
            ("/latest/meta-data/public-ipv4", "54.1.2.3"),
        ]);
        let directory = tempfile::tempdir().expect("a directory");
        let yaml = directory.path().join("cassandra.yaml");
        let write =
            |path: &Path, text: &str| env::real::env().disk.replace_file(path, text.as_bytes()).expect("written");
        let properties = yaml.with_file_name("cassandra-rackdc.properties");
        write(&yaml, "endpoint_snitch: Ec2MultiRegionSnitch\n");
        write(&properties, &format!("metadata_url=http://{service}\ndc_suffix=_a\n"));
        let path = yaml.to_str().expect("a path");
        let config = loaded(&["--config", path]).expect("answered");
        let own = config.ring.location.own.expect("named");
        assert_eq!((own.data_center.as_str(), own.rack.as_str()), ("eu-west-1_a", "eu-west-1b"));
        assert_eq!(config.broadcast_address.to_string(), "54.1.2.3");
        assert_eq!(config.broadcast_rpc_address.to_string(), "54.1.2.3");
        assert_eq!(config.listen_address.to_string(), "127.0.0.1");
        assert!(config.ring.location.prefers_local);
        write(&yaml, "endpoint_snitch: AlibabaCloudSnitch\n");
        let error = loaded(&["--config", path]).expect_err("the path is not known");
        assert_eq!(
            error,
            format!(
                "endpoint_snitch: AlibabaCloudSnitch: http://{service}/latest/meta-data/zone-id: HTTP response code: 404 Not Found"
            )
        );
    }

    #[test]
    fn the_place_comes_from_the_command_line_or_a_file() {
        let own = loaded(&["--dc", "north"]).expect("valid").ring.location.own.expect("named");
        assert_eq!((own.data_center.as_str(), own.rack.as_str()), ("north", "rack1"));
        let error = loaded(&["--set", "endpoint_snitch=GossipingPropertyFileSnitch"]).expect_err("no file");
        assert!(error.contains("cassandra-rackdc.properties beside cassandra.yaml"), "{error}");
        let directory = tempfile::tempdir().expect("a directory");
        let yaml = directory.path().join("cassandra.yaml");
        let write =
            |path: &Path, text: &str| env::real::env().disk.replace_file(path, text.as_bytes()).expect("written");
        write(&yaml, "endpoint_snitch: PropertyFileSnitch\n");
        let topology = yaml.with_file_name("cassandra-topology.properties");
        write(&topology, "127.0.0.1=DC2:RAC7\n");
        let yaml = yaml.to_str().expect("a path");
        let location = loaded(&["--config", yaml]).expect("valid").ring.location;
        assert_eq!(location.of_local([127, 0, 0, 1].into()).map(|place| place.rack.as_str()), Some("RAC7"));
        write(&topology, "127.0.0.2=DC2:RAC7\n");
        assert!(loaded(&["--config", yaml]).expect_err("not this node").contains("127.0.0.1"));
    }

    /// One part of the place may come from the command line and the other from the file.
    #[test]
    fn an_option_counts_more_than_the_file_of_the_snitch() {
        let directory = tempfile::tempdir().expect("a directory");
        let yaml = directory.path().join("cassandra.yaml");
        let write =
            |path: &Path, text: &str| env::real::env().disk.replace_file(path, text.as_bytes()).expect("written");
        write(&yaml.with_file_name("cassandra-rackdc.properties"), "dc=east\nrack=r7\nprefer_local=true\n");
        let place = |snitch: &str, arguments: &[&str]| {
            write(&yaml, &format!("endpoint_snitch: {snitch}\n"));
            let config = [&["--config", yaml.to_str().expect("a path")][..], arguments].concat();
            let Location { own, prefers_local, .. } = loaded(&config).expect("valid").ring.location;
            own.map(|own| (own.data_center, own.rack, prefers_local))
        };
        let expected = |dc: &str, rack: &str, prefers_local| Some((dc.to_owned(), rack.to_owned(), prefers_local));
        assert_eq!(place("GossipingPropertyFileSnitch", &["--dc", "west"]), expected("west", "r7", true));
        assert_eq!(place("GossipingPropertyFileSnitch", &["--rack", "r1"]), expected("east", "r1", true));
        assert_eq!(place("SimpleSnitch", &["--dc", "west"]), expected("west", "rack1", false));
        // the file names a host, and an address for clients that the command line replaces
        let named = "GossipingPropertyFileSnitch\nlisten_address: LOCALHOST\nrpc_address: 0.0.0.0";
        assert_eq!(place(named, &["--dc", "west", "--listen", "127.0.0.1"]), expected("west", "r7", true));
    }
}
