//! The ring snapshot of this node: made at the start, and anew when a schema change has changed keyspaces.
//!
//! Today the ring has one endpoint, this node, which is up and owns all tokens.

use ring::{Endpoint, EndpointId, Replication, Ring, State};
use schema::Schema;

use crate::identity::Identity;
use crate::node::Node;

/// The ring of a node alone.
pub(crate) fn ring_of_one(identity: &Identity, schema: &Schema) -> Ring {
    let this = Endpoint {
        address: identity.broadcast,
        native: identity.native,
        host_id: identity.host_id,
        data_center: identity.data_center.clone(),
        rack: identity.rack.clone(),
        tokens: identity.tokens.clone(),
        is_up: true,
        state: State::Normal,
    };
    with_keyspaces(&Ring::new(vec![this], EndpointId(0)), schema)
}

/// The ring with the keyspaces of a schema. Keyspaces whose replication this node cannot place (it was written by
/// another program) are told of once, and requests for them are refused.
fn with_keyspaces(ring: &Ring, schema: &Schema) -> Ring {
    let stored = schema.keyspaces.values().filter(|keyspace| !keyspace.is_virtual);
    let parsed = stored.map(|keyspace| {
        let replication = Replication::parse(&keyspace.replication.class, &keyspace.replication.options);
        (keyspace.name.clone(), replication)
    });
    ring.with_keyspaces(parsed)
}

impl Node {
    /// The ring follows the schema in force. Called before a schema change is answered.
    pub(crate) fn renew_ring(&self) {
        let schema = self.schema();
        self.ring.rcu(|ring| with_keyspaces(ring, &schema));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use schema::KeyspaceMetadata;
    use types::Consistency;

    use crate::coordinator::error::RequestError;
    use crate::testing::SimNode;

    /// A keyspace is on the ring when its CREATE is answered; one that cannot be placed is refused by name, and one with
    /// more copies than there are nodes has too few for QUORUM.
    #[test]
    fn the_ring_follows_the_schema() {
        let machine = SimNode::new(Duration::from_secs(2));
        let node = &machine.node;
        let create = |name: &str, factor: &str| {
            let (name, factor) = (name.to_owned(), factor.to_owned());
            let decide = move |schema: &schema::Schema| -> Result<schema::Schema, ()> {
                let mut after = schema.clone();
                let mut keyspace = KeyspaceMetadata::clone(&schema.keyspaces["system_traces"]);
                keyspace.name.clone_from(&name);
                keyspace.tables.clear();
                keyspace.replication.options.insert("replication_factor".to_owned(), factor);
                after.keyspaces.insert(name, Arc::new(keyspace));
                Ok(after)
            };
            machine.sim.block_on(node.change_schema(decide)).expect("stored").map(drop).expect("not refused");
        };
        let planned = |keyspace: &str, level| {
            let planned = node.plan_partition(keyspace, types::Token(7), level, types::WriteKind::Simple);
            planned.map(|answers| (answers.block_for, answers.outstanding))
        };
        create("three", "3");
        assert_eq!(planned("three", Consistency::One), Ok((1, 1)));
        let shortage = ring::Shortage { required: 2, alive: 1 };
        let level = Consistency::Quorum;
        assert_eq!(planned("three", level), Err(RequestError::Unavailable { level, shortage }));
        create("odd", "3/1");
        assert!(
            matches!(planned("odd", Consistency::One), Err(RequestError::Unplaced { keyspace, .. }) if keyspace == "odd")
        );
    }
}
