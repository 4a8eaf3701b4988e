//! The ring snapshot of this node: made at the start, and anew when a schema change has changed keyspaces.
//!
//! Today the ring has one endpoint, this node, which is up and owns all tokens.

use std::sync::Arc;

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
    /// The ring at this moment.
    pub fn ring(&self) -> Arc<Ring> {
        self.ring.load_full()
    }

    /// The ring follows the schema in force. Called before a schema change is answered.
    pub(crate) fn renew_ring(&self) {
        let schema = self.schema();
        self.ring.rcu(|ring| with_keyspaces(ring, &schema));
    }
}
