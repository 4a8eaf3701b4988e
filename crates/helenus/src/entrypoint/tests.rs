//! Each variable of the official image by its name.

use std::os::unix::ffi::OsStringExt;

use clap::Parser;

use super::*;
use crate::arguments::{Command, Program};
use crate::configuration;

fn container(variables: &[(&str, &str)]) -> Container {
    Container {
        variables: variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        not_text: Vec::new(),
        address: Some(IpAddr::from([172, 17, 0, 2])),
        config: None,
        snitch: None,
        conf_dir: None,
        has_rackdc: false,
        password_file: None,
    }
}

fn translated(variables: &[(&str, &str)]) -> Translated {
    translate(&container(variables), &["cassandra".to_owned(), "-f".to_owned()]).expect("valid")
}

/// The configuration that a node would start with, and the memory that it would take.
fn loaded(variables: &[(&str, &str)]) -> (config::Config, Option<u64>) {
    loaded_by(translated(variables))
}

fn loaded_by(translated: Translated) -> (config::Config, Option<u64>) {
    let words = ["helenus".to_owned()].into_iter().chain(translated.words);
    let Some(Command::Serve(serve)) = Program::try_parse_from(words).expect("known options").command else {
        panic!("a node is served")
    };
    assert_eq!(serve.data_dir, Path::new("/var/lib/cassandra"));
    (configuration::load(&env::real::env(), &serve).expect("valid"), serve.memory)
}

#[test]
fn without_variables_a_node_is_a_ring_of_its_own() {
    let (config, memory) = loaded(&[]);
    assert_eq!(config.ring.seeds.as_deref(), Some(&["172.17.0.2".to_owned()][..]));
    assert_eq!(
        (config.rpc_address.to_string(), config.listen_address.to_string()),
        ("0.0.0.0".into(), "172.17.0.2".into())
    );
    assert_eq!(config.broadcast_rpc_address.to_string(), "172.17.0.2");
    assert_eq!((config.cluster_name.as_str(), config.num_tokens, memory), ("Test Cluster", 16, None));
    assert!(config.ring.location.own.is_none());
    assert!(translated(&[]).notes.is_empty());
}

/// A row for each variable: a value, and where it is found in the node's configuration.
#[test]
fn each_variable_counts_or_is_named() {
    let snitch = ("CASSANDRA_ENDPOINT_SNITCH", "GossipingPropertyFileSnitch");
    let own = |config: &config::Config| config.ring.location.own.clone().expect("named");
    for (name, _) in VARIABLES {
        let of = |value: &str| loaded(&[(name, value)]).0;
        let located = |value: &str| own(&loaded(&[snitch, (name, value)]).0);
        let node = "10.0.0.7";
        match name {
            "CASSANDRA_CLUSTER_NAME" => assert_eq!(of("My ring's").cluster_name, "My ring's"),
            "CASSANDRA_NUM_TOKENS" => assert_eq!(of("4").num_tokens, 4),
            "CASSANDRA_ENDPOINT_SNITCH" => {
                let own = own(&of("GossipingPropertyFileSnitch"));
                assert_eq!((own.data_center.as_str(), own.rack.as_str()), ("dc1", "rack1"));
            }
            "CASSANDRA_RPC_ADDRESS" => assert_eq!(of("127.0.0.1").rpc_address.to_string(), "127.0.0.1"),
            "CASSANDRA_LISTEN_ADDRESS" => {
                assert_eq!(of(node).listen_address.to_string(), node);
                assert_eq!(of(node).broadcast_address.to_string(), node);
                assert_eq!(of("auto").listen_address.to_string(), "172.17.0.2");
            }
            "CASSANDRA_BROADCAST_ADDRESS" => {
                assert_eq!(of(node).broadcast_address.to_string(), node);
                assert_eq!(of(node).broadcast_rpc_address.to_string(), node);
                assert_eq!(of(node).listen_address.to_string(), "172.17.0.2");
                assert_eq!(of(node).ring.seeds.as_deref(), Some(&[node.to_owned()][..]));
            }
            "CASSANDRA_BROADCAST_RPC_ADDRESS" => {
                assert_eq!(of(node).broadcast_rpc_address.to_string(), node);
                assert_eq!(of(node).broadcast_address.to_string(), "172.17.0.2");
            }
            "CASSANDRA_SEEDS" => {
                assert_eq!(of("a,b").ring.seeds.as_deref(), Some(&["a".to_owned(), "b".to_owned()][..]));
            }
            "CASSANDRA_NAME" => assert_eq!(of("/x/y").ring.seeds.as_deref(), Some(&["cassandra".to_owned()][..])),
            "CASSANDRA_DC" => {
                assert_eq!(located("north").data_center, "north");
                assert!(of("north").ring.location.own.is_none(), "as in the official image");
                assert_eq!(translated(&[(name, "north")]).notes.len(), 1);
            }
            "CASSANDRA_RACK" => assert_eq!(located("r7").rack, "r7"),
            // the file is named where it is read
            "HELENUS_PASSWORD_FILE" => assert_eq!(translated(&[(name, "/run/secrets/p")]).password, None),
            "HELENUS_PASSWORD" => {
                let config = of("s3cret");
                assert!(config.auth.authenticates && config.auth.authorizes);
                assert_eq!(translated(&[(name, "s3cret")]).password.as_deref(), Some("s3cret"));
            }
            "CASSANDRA_CONF" => assert!(translated(&[(name, "/x")]).notes.is_empty()),
            "MAX_HEAP_SIZE" => assert_eq!(loaded(&[(name, "1024M")]).1, Some(1 << 30)),
            "JVM_OPTS" | "JVM_EXTRA_OPTS" => {
                let config = of("-Xmx1G -Dcassandra.ring_delay_ms=1500 -Dcassandra.initial_token=0 -Dcassandra.x=1");
                assert_eq!((config.num_tokens, config.initial_tokens), (1, vec![0]));
                let notes =
                    translated(&[(name, "-Xmx1G -Dcassandra.skip_wait_for_gossip_to_settle=0 -Dcassandra.x=1")]).notes;
                assert_eq!(notes.len(), 3);
                assert_eq!(notes[2], format!("{name}: -Dcassandra.x IS NOT HONOURED"));
            }
            _ => {
                let notes = translated(&[(name, "1")]).notes;
                assert!(notes.len() == 1 && notes[0].starts_with(&format!("{name} is not needed: ")), "{notes:?}");
            }
        }
        assert_eq!(translated(&[(name, "")]), translated(&[]), "{name}: an empty one is none");
    }
}

#[test]
fn properties_are_keys() {
    for (property, key, unit) in PROPERTIES {
        let value = match property {
            "ring_delay_ms" => "5",
            "replace_address" | "replace_address_first_boot" => "10.0.0.9",
            _ => "false",
        };
        let set = format!("{key}={value}{unit}");
        let words = translated(&[("JVM_EXTRA_OPTS", &format!("-Dcassandra.{property}={value}"))]).words;
        assert!(words.contains(&set), "{set} in {words:?}");
        loaded(&[("JVM_EXTRA_OPTS", &format!("-Dcassandra.{property}={value}"))]);
    }
}

#[test]
fn others_are_named_or_passed_over() {
    assert_eq!(translated(&[("CASSANDRA_SEED", "a")]).notes, ["CASSANDRA_SEED: no such variable, nothing is done"]);
    assert_eq!(
        translated(&[("CASSANDRA_SERVICE_HOST", "a"), ("CASSANDRA_PORT_9042_TCP", "b"), ("PATH", "c")]).notes,
        [""; 0]
    );
    let no_address = Container { address: None, ..container(&[("CASSANDRA_LISTEN_ADDRESS", "auto")]) };
    assert!(translate(&no_address, &[]).expect_err("none").starts_with("CASSANDRA_LISTEN_ADDRESS: "));
}

#[test]
fn words_are_those_of_the_official_image() {
    let words = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        translate(&container(&[]), &words).expect("valid").words
    };
    assert_eq!(words(&["nodetool", "status"]), ["nodetool", "status"]);
    assert_eq!(words(&[]), words(&["cassandra", "-f"]));
    assert!(words(&["-R", "--memory", "1G"]).ends_with(&["--memory".to_owned(), "1G".to_owned()]));
    assert!(words(&["cassandra", "-f", "-Dcassandra.join_ring=false"]).contains(&"join_ring=false".to_owned()));
    let elsewhere = words(&["cassandra", "--data-dir", "/d"]);
    assert!(!elsewhere.contains(&DATA_DIR.to_owned()), "{elsewhere:?}");
}

#[test]
fn a_mounted_configuration_is_read() {
    let mounted =
        Container { config: Some("/etc/cassandra/cassandra.yaml".to_owned()), has_rackdc: true, ..container(&[]) };
    let words = translate(&mounted, &[]).expect("valid").words;
    assert!(words.windows(2).any(|pair| pair == ["--config", "/etc/cassandra/cassandra.yaml"]));
    assert!(!words.contains(&"--dc".to_owned()));
}

/// The values of `--dc` and `--rack`.
fn place_of(words: &[String]) -> [Option<String>; 2] {
    ["--dc", "--rack"].map(|option| words.iter().skip_while(|word| *word != option).nth(1).cloned())
}

/// A data center of the environment does not make the snitch of a mounted cassandra.yaml another
/// one: the official image writes it into a file that only GossipingPropertyFileSnitch reads.
#[test]
fn a_place_counts_with_the_snitch_that_reads_it() {
    let started = |variables: &[(&str, &str)], snitch: Snitch| {
        let config = Some("/c/cassandra.yaml".to_owned());
        let container = Container { config, snitch: Some(snitch), ..container(variables) };
        let Translated { words, notes, .. } = translate(&container, &[]).expect("valid");
        (place_of(&words), notes.len())
    };
    let west = ("CASSANDRA_DC", "west");
    let named = [Some("west".to_owned()), Some("rack1".to_owned())];
    assert_eq!(started(&[west], Snitch::Simple), ([None, None], 1));
    assert_eq!(started(&[west], Snitch::GossipingPropertyFile), (named.clone(), 0));
    assert_eq!(started(&[west, ("CASSANDRA_ENDPOINT_SNITCH", "Ec2Snitch")], Snitch::GossipingPropertyFile).1, 1);
    let of_environment = ("CASSANDRA_ENDPOINT_SNITCH", "GossipingPropertyFileSnitch");
    assert_eq!(started(&[west, of_environment], Snitch::Simple), (named, 0));
}

/// The files that are read beside a cassandra.yaml count where only they were mounted. A data
/// center or a rack of the environment counts for itself; the file says the other.
#[test]
fn files_are_read_without_a_cassandra_yaml() {
    let (directory, disk) = (tempfile::tempdir().expect("a directory"), env::real::env().disk);
    let write = |file: &str, text: &str| {
        disk.replace_file(&directory.path().join(file), text.as_bytes()).expect("written");
    };
    write(RACKDC, "dc=east\nrack=r7\nprefer_local=true\n");
    write(ARCHIVING_FILE, "archive_command=/bin/cp %path /archive/%name\n");
    let place = |variables: &[(&str, &str)]| {
        let conf_dir = directory.path().to_str().map(str::to_owned);
        let container = Container { conf_dir, has_rackdc: true, ..container(variables) };
        let (config, _) = loaded_by(translate(&container, &[]).expect("valid"));
        assert!(config.commitlog.archiving.is_some());
        let config::Location { own, prefers_local, .. } = config.ring.location;
        own.map(|own| (own.data_center, own.rack, prefers_local))
    };
    let snitch = ("CASSANDRA_ENDPOINT_SNITCH", "GossipingPropertyFileSnitch");
    let named = |dc: &str| Some((dc.to_owned(), "r7".to_owned(), true));
    assert_eq!(place(&[snitch]), named("east"));
    assert_eq!(place(&[snitch, ("CASSANDRA_DC", "west")]), named("west"));
    assert_eq!(place(&[]), None);
}

#[test]
fn the_containers_address() {
    let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     +-- 127.0.0.0/8 2 0 2\n        \
                |-- 127.0.0.1\n           /32 host LOCAL\n     +-- 172.17.0.0/16 2 0 2\n        |-- 172.17.0.0\n           \
                /16 link UNICAST\n        |-- 172.17.0.2\n           /32 host LOCAL\n        |-- 172.18.0.5\n           /32 host LOCAL\n";
    let network = |trie: &str| Network {
        trie: trie.to_owned(),
        routes: String::new(),
        interfaces: String::new(),
        outwards: None,
    };
    let own = |hosts: &str| own_address(hosts, "box", &network(trie)).map(|address| address.to_string());
    assert_eq!(own(""), Some("172.17.0.2".into()));
    assert_eq!(own("127.0.0.1 localhost\n172.18.0.5\tbox # docker\n"), Some("172.18.0.5".into()));
    assert_eq!(own("10.9.9.9 box\n"), Some("172.17.0.2".into()));
    assert_eq!(own_address("127.0.0.1 box", "box", &network("")), None);
}

/// On the network of its machine a container takes the address of the machine's first interface,
/// not that of a bridge with a lower number, and no link-local one. The address may have no network
/// of its own; but one that has is before the addresses of services, which have none.
#[test]
fn the_address_is_that_of_the_first_interface() {
    let trie = ["169.254.8.1", "172.17.0.1", "192.168.1.5"].map(|own| format!("|-- {own}\n   /32 host LOCAL\n"));
    let default = "eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n";
    let bridge = "docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";
    let network = "eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n";
    let only_gateway = "eth0\t0101A8C0\t00000000\t0005\t0\t0\t100\tFFFFFFFF\t0\t0\t0\n";
    for of_first in [network, only_gateway] {
        let network = Network {
            trie: trie.concat(),
            routes: ["Iface\tDestination\tGateway\tFlags\n", default, bridge, of_first].concat(),
            interfaces: "Inter-| Receive\n face |bytes\n    lo: 1 2\n  eth0: 3 4\ndocker0: 5 6\n".to_owned(),
            outwards: None,
        };
        assert_eq!(own_address("127.0.1.1 box", "box", &network), Some(IpAddr::from([192, 168, 1, 5])), "{of_first}");
    }
    let service = "|-- 10.96.0.1\n   /32 host LOCAL\n";
    let network = Network {
        trie: [service, &trie.concat()].concat(),
        routes: [default, bridge, network].concat(),
        interfaces: "    lo: 1 2\n  eth0: 3 4\ndocker0: 5 6\nkube-ipvs0: 7 8\n".to_owned(),
        outwards: None,
    };
    assert_eq!(own_address("127.0.1.1 box", "box", &network), Some(IpAddr::from([192, 168, 1, 5])));
    // neither the service nor the machine has a network of its own: the kernel tells them apart
    let routes = [default, bridge, only_gateway].concat();
    let network = Network { routes, outwards: Some(IpAddr::from([192, 168, 1, 5])), ..network };
    assert_eq!(own_address("127.0.1.1 box", "box", &network), network.outwards);
}

#[test]
fn a_password_is_chosen_once_and_is_not_the_default() {
    let with = |direct: &str, file: Option<Result<&str, &str>>| {
        let password_file = file.map(|read| read.map(str::to_owned).map_err(str::to_owned));
        let container = Container { password_file, ..container(&[("HELENUS_PASSWORD", direct)]) };
        translate(&container, &[]).map(|translated| translated.password)
    };
    assert_eq!(with("", None), Ok(None));
    assert_eq!(with(" a b ", None), Ok(Some(" a b ".to_owned())));
    assert_eq!(with("", Some(Ok("secret\r\n"))), Ok(Some("secret".to_owned())));
    let refused = |direct: &str, file| with(direct, file).expect_err("refused");
    assert!(refused("a", Some(Ok("b"))).contains("both given"));
    assert_eq!(refused("", Some(Err("No such file"))), "HELENUS_PASSWORD_FILE: No such file");
    assert!(refused("", Some(Ok("\n"))).starts_with("HELENUS_PASSWORD_FILE: the password is empty"));
    assert!(refused("cassandra", None).starts_with("HELENUS_PASSWORD: cassandra is"));
    assert!(refused(&"x".repeat(73), None).contains("72 bytes"));
    // without a password nothing is changed, and a mounted configuration says itself who logs in
    assert!(!loaded(&[]).0.auth.authenticates);
    let mounted = Container { config: Some("/c/cassandra.yaml".to_owned()), ..container(&[("HELENUS_PASSWORD", "a")]) };
    let words = translate(&mounted, &[]).expect("valid").words;
    assert!(!words.iter().any(|word| word.starts_with("authenticator=")), "{words:?}");
}

/// Variables of others do not count, whatever their bytes are.
#[test]
fn a_variable_of_ours_that_is_no_text_is_named() {
    let latin = || OsString::from_vec(b"Caf\xe9".to_vec());
    let all = [("CASSANDRA_DC".into(), "north".into()), (latin(), "x".into()), ("PLACE".into(), latin())];
    let (variables, not_text) = texts(all.into_iter());
    assert_eq!((variables.len(), &not_text[..]), (1, &["PLACE".to_owned()][..]));
    let translated = |not_text: Vec<String>| translate(&Container { not_text, ..container(&[]) }, &[]);
    assert!(translated(not_text).is_ok());
    let refused = translated(vec!["CASSANDRA_CLUSTER_NAME".to_owned()]).expect_err("no text");
    assert!(refused.starts_with("CASSANDRA_CLUSTER_NAME: "), "{refused}");
}
