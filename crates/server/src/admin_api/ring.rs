//! The ring: endpoints, tokens, shares of the data, replicas.

use std::net::SocketAddr;

use admin::verbs::{
    EndpointInfo, EndpointState, GetEndpoints, GetRing, GetSchemaVersions, RangeInfo, RingInfo, SchemaVersion,
};
use admin::{Functions, Result};
use cluster::clock::uuid_text;
use cluster::operations::gossip::{self, KnownEndpoint};
use cluster::operations::ring::{ownership, snapshot};
use cluster::operations::{partition, tables};
use internode::payload::gossip::ApplicationState;
use ring::{Endpoint, EndpointId, Ring, State};

use super::{NodeAdmin, of_operation, table_stats, wait};

pub(super) fn add_to(functions: &mut Functions<NodeAdmin>) {
    functions.add(ring).add(endpoints).add(schema_versions);
}

fn ring(admin: &NodeAdmin, request: &GetRing) -> Result<RingInfo> {
    let ring = snapshot(admin.cluster());
    let schema = admin.cluster().schema();
    let shares = ownership(&ring, &schema, request.keyspace.as_deref()).map_err(of_operation)?;
    // ids of endpoints in the order of their addresses
    let mut ids: Vec<EndpointId> = (0u32..).map(EndpointId).take(ring.endpoints().len()).collect();
    ids.sort_by_key(|id| ring.endpoint(*id).address);
    let known = gossip::known_endpoints(admin.cluster());
    let info = |id: &EndpointId| {
        let owns = shares.as_ref().ok().and_then(|shares| shares.get(id.index())).copied();
        EndpointInfo { owns, ..endpoint(admin, &ring, *id, &known) }
    };
    let position = |id: &EndpointId| ids.iter().position(|known| known == id);
    let placement = request.keyspace.as_deref().and_then(|keyspace| ring.placement(keyspace));
    let ranges = placement.into_iter().flat_map(|placement| placement.ranges()).map(|(start, end, replicas)| {
        RangeInfo { start: start.0, end: end.0, replicas: replicas.iter().filter_map(position).collect() }
    });
    Ok(RingInfo { ranges: ranges.collect(), endpoints: ids.iter().map(info).collect(), note: shares.err() })
}

/// An endpoint of the ring without its share of the data. Load and versions of other nodes come
/// from gossip.
fn endpoint(admin: &NodeAdmin, ring: &Ring, id: EndpointId, known: &[KnownEndpoint]) -> EndpointInfo {
    let endpoint: &Endpoint = ring.endpoint(id);
    let is_local = id == ring.local_id();
    let load = || tables::all(admin.cluster()).iter().map(|store| table_stats::load(store).0).sum();
    let told = known.iter().find(|known| known.address == endpoint.address);
    let told = |of| told.and_then(|known| known.state.value(of)).map(str::to_owned);
    let told_load = || told(ApplicationState::Load)?.parse::<f64>().ok().map(|load| load as u64);
    let native_port = if is_local { admin.transport.address().port() } else { endpoint.native.port() };
    EndpointInfo {
        address: endpoint.address.ip().to_string(),
        storage_port: endpoint.address.port(),
        rpc_address: endpoint.native.ip().to_string(),
        native_port,
        host_id: uuid_text(&endpoint.host_id),
        data_center: endpoint.data_center.clone(),
        rack: endpoint.rack.clone(),
        is_up: endpoint.is_up,
        state: match endpoint.state {
            State::Normal => EndpointState::Normal,
            State::Joining | State::Replacing(_) => EndpointState::Joining,
            State::Leaving => EndpointState::Leaving,
            State::Moving(_) => EndpointState::Moving,
        },
        load: if is_local { Some(load()) } else { told_load() },
        release_version: told(ApplicationState::ReleaseVersion),
        schema_version: match is_local {
            true => Some(uuid_text(&admin.cluster().schema().version)),
            false => told(ApplicationState::Schema),
        },
        tokens: endpoint.tokens.iter().map(|token| token.0).collect(),
        owns: None,
    }
}

/// The schema version of each endpoint, as the endpoint itself tells it by gossip.
fn schema_versions(admin: &NodeAdmin, _: &GetSchemaVersions) -> Result<Vec<SchemaVersion>> {
    let node = admin.cluster();
    let versions = wait(async { Ok(node.schema_versions().await) })?;
    let shown = |(address, version): (SocketAddr, Option<[u8; 16]>)| SchemaVersion {
        address: address.ip().to_string(),
        storage_port: address.port(),
        version: version.map(|version| uuid_text(&version)),
    };
    Ok(versions.into_iter().map(shown).collect())
}

/// The addresses of the replicas of a partition, the primary replica first.
fn endpoints(admin: &NodeAdmin, request: &GetEndpoints) -> Result<Vec<String>> {
    let node = admin.cluster();
    let table = tables::metadata(node, &request.keyspace, &request.table).map_err(of_operation)?;
    let key = partition::parse_key(&table, &request.key).map_err(of_operation)?;
    let ring = snapshot(node);
    let replicas = ring.placement(&request.keyspace).map_or(&[][..], |placement| placement.natural(key.token));
    let name = |id: &EndpointId| {
        let address = ring.endpoint(*id).address;
        if request.with_port { address.to_string() } else { address.ip().to_string() }
    };
    Ok(replicas.iter().map(name).collect())
}
