//! The replication options of a keyspace: their form, defaults and checks.
//!
//! Agrees with `org.apache.cassandra.schema.ReplicationParams`, `KeyspaceAttributes` and the
//! `prepareOptions` and `validateOptions` of the strategies. `cluster` decides which node holds
//! which data.

use std::collections::BTreeMap;

use crate::Replication;
use crate::error::{Result, SchemaError, config};
use crate::options::Options;

const PACKAGE: &str = "org.apache.cassandra.locator.";
const FACTOR: &str = "replication_factor";
const AUTH_KEYSPACE: &str = "system_auth";

/// `durable_writes` and the replication that a CREATE or ALTER KEYSPACE statement asks for.
/// `previous` is the keyspace before an ALTER; `datacenters` are those that have nodes;
/// `default_factor` counts where neither statement nor keyspace names a factor
/// (`default_keyspace_rf`).
pub fn keyspace_params(
    keyspace: &str,
    options: &Options,
    previous: Option<(bool, &Replication)>,
    datacenters: &[&str],
    default_factor: u32,
) -> Result<(bool, Replication)> {
    options.check_names(&["durable_writes", "replication"])?;
    let durable_writes = options.boolean("durable_writes")?.unwrap_or(previous.is_none_or(|(durable, _)| durable));
    let map = options.map("replication")?.filter(|map| !map.is_empty());
    let replication = match (map, previous) {
        (Some(map), previous) => {
            let previous = previous.map(|(_, replication)| replication);
            Replication::from_options(keyspace, map, previous, datacenters, default_factor)?
        }
        (None, Some((_, previous))) => previous.clone(),
        (None, None) => {
            return Err(SchemaError::Invalid("Missing mandatory option 'replication'".to_owned()));
        }
    };
    Ok((durable_writes, replication))
}

impl Replication {
    /// The `LocalStrategy`, which only built-in keyspaces have.
    pub fn local() -> Self {
        Self { class: format!("{PACKAGE}LocalStrategy"), options: BTreeMap::new() }
    }

    /// The `SimpleStrategy` with a factor.
    pub fn simple(factor: u32) -> Self {
        let options = BTreeMap::from([(FACTOR.to_owned(), factor.to_string())]);
        Self { class: format!("{PACKAGE}SimpleStrategy"), options }
    }

    /// Checks the replication map of a statement and gives its stored form.
    pub fn from_options(
        keyspace: &str,
        map: &BTreeMap<String, String>,
        previous: Option<&Self>,
        datacenters: &[&str],
        default_factor: u32,
    ) -> Result<Self> {
        let mut options = map.clone();
        let Some(class) = options.remove("class") else {
            return config("Missing replication strategy class");
        };
        let name = strategy(&class)?;
        let none = BTreeMap::new();
        let previous = previous.map_or(&none, |replication| &replication.options);
        match name {
            "SimpleStrategy" => {
                let factor = previous.get(FACTOR).cloned().unwrap_or_else(|| default_factor.to_string());
                options.entry(FACTOR.to_owned()).or_insert(factor);
                check_options_of(keyspace, name, &options, |key| key == FACTOR)?;
            }
            "NetworkTopologyStrategy" => {
                expand_datacenters(&mut options, previous, datacenters, default_factor)?;
                if options.is_empty() {
                    return config("Configuration for at least one datacenter must be present");
                }
                check_options_of(keyspace, name, &options, |key| datacenters.contains(&key))?;
                check_login_everywhere(keyspace, &options, datacenters)?;
            }
            _ => {
                return Err(SchemaError::Invalid(
                    "Unable to use given strategy class: LocalStrategy is reserved for internal use.".to_owned(),
                ));
            }
        }
        options.values().try_for_each(|factor| check_factor(factor))?;
        Ok(Self { class: format!("{PACKAGE}{name}"), options })
    }

    /// The map in `system_schema.keyspaces.replication`.
    pub fn as_map(&self) -> BTreeMap<String, String> {
        let mut map = self.options.clone();
        map.insert("class".to_owned(), self.class.clone());
        map
    }

    /// Reads the stored map without checking it.
    pub fn from_stored(mut map: BTreeMap<String, String>) -> Option<Self> {
        let class = map.remove("class")?;
        Some(Self { class, options: map })
    }

    /// The class without its package.
    pub fn short_class(&self) -> &str {
        self.class.strip_prefix(PACKAGE).unwrap_or(&self.class)
    }

    /// Number of copies of each partition, over all datacenters.
    pub fn factor(&self) -> u32 {
        let of = |text: &String| text.split('/').next().and_then(|all| all.parse::<u32>().ok()).unwrap_or(0);
        match self.short_class() {
            "LocalStrategy" => 1,
            _ => self.options.values().map(of).fold(0u32, u32::saturating_add),
        }
    }
}

fn strategy(class: &str) -> Result<&'static str> {
    let short = class.strip_prefix(PACKAGE).unwrap_or(class);
    match ["SimpleStrategy", "NetworkTopologyStrategy", "LocalStrategy"].into_iter().find(|name| *name == short) {
        Some(name) => Ok(name),
        None if short == "OldNetworkTopologyStrategy" => config(
            "The support for the OldNetworkTopologyStrategy has been removed in C* version 4.0. The keyspace strategy \
             should be switch to NetworkTopologyStrategy",
        ),
        None => {
            let full = if class.contains('.') { class.to_owned() } else { format!("{PACKAGE}{class}") };
            config(format!("Unable to find replication strategy class '{full}'"))
        }
    }
}

/// Applies the `replication_factor` of a NetworkTopologyStrategy to every datacenter that is not
/// named.
fn expand_datacenters(
    options: &mut BTreeMap<String, String>,
    previous: &BTreeMap<String, String>,
    datacenters: &[&str],
    default_factor: u32,
) -> Result<()> {
    if options.is_empty() {
        let factor = previous.get(FACTOR).cloned().unwrap_or_else(|| default_factor.to_string());
        options.insert(FACTOR.to_owned(), factor);
    }
    if let Some(factor) = options.remove(FACTOR) {
        check_factor(&factor)?;
        for (datacenter, kept) in previous.iter().filter(|(key, _)| *key != FACTOR) {
            options.entry(datacenter.clone()).or_insert_with(|| kept.clone());
        }
        for datacenter in datacenters {
            options.entry((*datacenter).to_owned()).or_insert_with(|| factor.clone());
        }
    }
    options.retain(|_, factor| factor != "0");
    Ok(())
}

fn check_options_of(
    keyspace: &str,
    name: &str,
    options: &BTreeMap<String, String>,
    known: impl Fn(&str) -> bool,
) -> Result<()> {
    match options.keys().find(|key| !known(key)) {
        None => Ok(()),
        Some(key) => config(format!("Unrecognized strategy option {{{key}}} passed to {name} for keyspace {keyspace}")),
    }
}

/// Clients that connect to a datacenter without a copy of the roles could not log in there.
fn check_login_everywhere(keyspace: &str, options: &BTreeMap<String, String>, datacenters: &[&str]) -> Result<()> {
    let without: Vec<&str> = datacenters.iter().copied().filter(|name| !options.contains_key(*name)).collect();
    match without.is_empty() || !keyspace.eq_ignore_ascii_case(AUTH_KEYSPACE) {
        true => Ok(()),
        false => config(format!(
            "Following datacenters have active nodes and must be present in replication options for keyspace \
             {AUTH_KEYSPACE}: [{}]",
            without.join(", ")
        )),
    }
}

fn check_factor(factor: &str) -> Result<()> {
    let all = match factor.split_once('/') {
        Some(_) => return config("Transient replication is not enabled on this node"),
        None => factor,
    };
    match all.parse::<i32>() {
        Ok(copies) if copies >= 0 => Ok(()),
        Ok(copies) => config(format!("Replication factor must be non-negative, found {copies}")),
        Err(_) => config(format!("For input string: \"{factor}\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn made(pairs: &[(&str, &str)]) -> Result<Replication> {
        Replication::from_options("ks", &map(pairs), None, &["datacenter1"], 1)
    }

    #[test]
    fn strategies_are_expanded() {
        let simple = made(&[("class", "SimpleStrategy"), ("replication_factor", "3")]).expect("valid");
        assert_eq!(simple.class, "org.apache.cassandra.locator.SimpleStrategy");
        assert_eq!(simple.factor(), 3);
        assert_eq!(made(&[("class", "SimpleStrategy")]).expect("valid").factor(), 1);
        let options = [("a", "2147483647"), ("b", "2147483647"), ("c", "3")];
        let huge = Replication { class: format!("{PACKAGE}NetworkTopologyStrategy"), options: map(&options) };
        assert_eq!(huge.factor(), u32::MAX, "copies are not counted from 0 again");
        let network = made(&[("class", "NetworkTopologyStrategy"), ("replication_factor", "2")]).expect("valid");
        assert_eq!(network.options, map(&[("datacenter1", "2")]));
        let by_default = |class| {
            let made = Replication::from_options("ks", &map(&[("class", class)]), None, &["a", "b"], 3);
            made.expect("valid").options
        };
        assert_eq!(by_default("SimpleStrategy"), map(&[("replication_factor", "3")]));
        assert_eq!(by_default("NetworkTopologyStrategy"), map(&[("a", "3"), ("b", "3")]));
    }

    #[test]
    fn refusals_read_as_cassandras() {
        let cases: &[(&[(&str, &str)], &str)] = &[
            (&[("replication_factor", "1")], "Missing replication strategy class"),
            (&[("class", "Odd")], "Unable to find replication strategy class 'org.apache.cassandra.locator.Odd'"),
            (&[("class", "SimpleStrategy"), ("replication_factor", "x")], "For input string: \"x\""),
            (
                &[("class", "SimpleStrategy"), ("odd", "1")],
                "Unrecognized strategy option {odd} passed to SimpleStrategy for keyspace ks",
            ),
            (
                &[("class", "SimpleStrategy"), ("replication_factor", "-1")],
                "Replication factor must be non-negative, found -1",
            ),
        ];
        for (pairs, message) in cases {
            assert_eq!(made(pairs).expect_err("refused").message(), *message);
        }
    }

    #[test]
    fn roles_have_a_copy_in_each_datacenter() {
        let made = |keyspace: &str, pairs| Replication::from_options(keyspace, &map(pairs), None, &["dc1", "dc2"], 1);
        let one: &[(&str, &str)] = &[("class", "NetworkTopologyStrategy"), ("dc1", "3")];
        let refused = made("system_auth", one).expect_err("nobody could log in at dc2");
        assert_eq!(
            refused.message(),
            "Following datacenters have active nodes and must be present in replication options for keyspace system_auth: \
             [dc2]"
        );
        made("ks", one).expect("a keyspace of users may be in one datacenter");
        made("system_auth", &[one[0], one[1], ("dc2", "1")]).expect("a copy in each");
    }
}
