//! The ring for operators: the snapshot, and which part of the data each endpoint has.
//! Agrees with `StorageService.getEffectiveOwnership`.

use std::sync::Arc;

use ring::{Placement, Replication, Ring};
use schema::Schema;
use schema::system::is_system_keyspace;

use super::{Result, invalid};
use crate::node::Node;

/// The keyspace whose ownership is shown where users have none.
const WITHOUT_KEYSPACES: &str = "system_traces";

/// The ring as this node sees it now.
pub fn snapshot(node: &Node) -> Arc<Ring> {
    node.ring()
}

/// The share of the data that each endpoint has a copy of, by the endpoint's position; Err: why
/// there is no such share.
pub type Ownership = std::result::Result<Vec<f64>, String>;

/// The share of a keyspace's data that each endpoint has. Without a keyspace the share of the data
/// of all users' keyspaces, which must have the same replication.
pub fn ownership(ring: &Ring, schema: &Schema, keyspace: Option<&str>) -> Result<Ownership> {
    let placement = match keyspace {
        Some(name) if schema.keyspace(name).is_none() => {
            return invalid(format!("The keyspace {name}, does not exist"));
        }
        Some(name) => ring.placement(name),
        None => match of_users(ring, schema) {
            Ok(placement) => placement,
            Err(note) => return Ok(Err(note)),
        },
    };
    Ok(match placement {
        Some(placement) if placement.replication == Replication::Local => {
            Err("Ownership values for keyspaces with LocalStrategy are meaningless".to_owned())
        }
        Some(placement) => Ok(ring.effective_ownership(placement)),
        None => Err("The replication of the keyspace is not understood".to_owned()),
    })
}

/// The placement that all keyspaces of users have.
fn of_users<'r>(ring: &'r Ring, schema: &Schema) -> std::result::Result<Option<&'r Arc<Placement>>, String> {
    let mut users = schema.keyspaces.keys().filter(|name| !is_system_keyspace(name)).map(|name| ring.placement(name));
    let Some(first) = users.next() else { return Ok(ring.placement(WITHOUT_KEYSPACES)) };
    let replication = |placement: Option<&'r Arc<Placement>>| placement.map(|placement| &placement.replication);
    match users.all(|other| replication(other) == replication(first)) {
        true => Ok(first),
        false => {
            Err("Non-system keyspaces don't have the same replication settings, effective ownership information is \
                      meaningless"
                .to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use ring::{Endpoint, EndpointId, State};
    use schema::{KeyspaceMetadata, Replication as Stored};
    use types::Token;

    use super::*;

    fn endpoint(last: u8, token: i64) -> Endpoint {
        let address = std::net::SocketAddr::from(([10, 0, 0, last], 7000));
        Endpoint {
            address,
            native: address,
            host_id: [last; 16],
            data_center: "dc".to_owned(),
            rack: format!("rack{last}"),
            tokens: vec![Token(token)],
            is_up: last != 2,
            state: State::Normal,
        }
    }

    /// Three endpoints, each with a third of the ring, and keyspaces of these factors.
    fn drawn(factors: &[u32]) -> (Ring, Schema) {
        let third = i64::try_from(u64::MAX / 3).expect("a third");
        let endpoints = vec![endpoint(1, -third), endpoint(2, 0), endpoint(3, third)];
        let mut schema = schema::system::schema();
        for (number, factor) in factors.iter().enumerate() {
            let like = KeyspaceMetadata::clone(&schema.keyspaces["system_traces"]);
            let keyspace =
                KeyspaceMetadata { name: format!("ks{number}"), replication: Stored::simple(*factor), ..like };
            schema.keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
        }
        let parsed = |keyspace: &KeyspaceMetadata| {
            let Stored { class, options } = &keyspace.replication;
            (keyspace.name.clone(), Replication::parse(class, options))
        };
        let stored = schema.keyspaces.values().filter(|keyspace| !keyspace.is_virtual);
        let keyspaces: Vec<_> = stored.map(|keyspace| parsed(keyspace)).collect();
        (Ring::new(endpoints, EndpointId(0)).with_keyspaces(keyspaces), schema)
    }

    fn shares(factors: &[u32], keyspace: Option<&str>) -> std::result::Result<Vec<String>, String> {
        let (ring, schema) = drawn(factors);
        let shares = ownership(&ring, &schema, keyspace).map_err(|error| error.to_string())??;
        Ok(shares.iter().map(|share| format!("{share:.2}")).collect())
    }

    #[test]
    fn shares_follow_from_placement() {
        assert_eq!(shares(&[1], None).expect("known"), ["0.33", "0.33", "0.33"]);
        assert_eq!(shares(&[2, 2], None).expect("known"), ["0.67", "0.67", "0.67"]);
        assert_eq!(shares(&[], None).expect("known"), ["0.67", "0.67", "0.67"], "system_traces has two copies");
        assert_eq!(shares(&[1, 3], Some("ks1")).expect("known"), ["1.00", "1.00", "1.00"]);
        let refused = |factors: &[u32], keyspace| shares(factors, keyspace).expect_err("no share");
        assert!(refused(&[1, 3], None).starts_with("Non-system keyspaces don't have the same replication settings"));
        assert!(refused(&[1], Some("system")).starts_with("Ownership values for keyspaces with LocalStrategy"));
        assert_eq!(refused(&[1], Some("nosuch")), "The keyspace nosuch, does not exist");
    }
}
