//! Gossip and messages between nodes.

use admin::verbs::{
    GetGossip, GetMessageCounts, GetMessages, GetSeeds, GossipChange, GossipState, MessageCounts, MessagePool,
    MessagePools, ReadRepairCounts, ReloadSeeds,
};
use admin::{Functions, Result};
use cluster::operations::gossip;
use internode::LinkType;

use super::{NodeAdmin, invalid, of_operation, wait};

pub(super) fn add_to(functions: &mut Functions<NodeAdmin>) {
    functions.add(known).add(change).add(seeds).add(reload_seeds).add(messages).add(message_counts);
}

fn known(admin: &NodeAdmin, _: &GetGossip) -> Result<Vec<GossipState>> {
    let shown = |known: gossip::KnownEndpoint| GossipState {
        address: known.address.ip().to_string(),
        storage_port: known.address.port(),
        generation: known.state.generation,
        heartbeat: known.state.heartbeat,
        states: known
            .state
            .values
            .into_iter()
            .map(|(of, value)| (of.name().to_owned(), value.version, value.value))
            .collect(),
        phi: known.phi,
    };
    Ok(gossip::known_endpoints(admin.cluster()).into_iter().map(shown).collect())
}

fn change(admin: &NodeAdmin, change: &GossipChange) -> Result<()> {
    let node = admin.cluster();
    match change {
        GossipChange::Start => gossip::set_active(node, true, admin.transport.is_serving()).map_err(of_operation)?,
        GossipChange::Stop => gossip::set_active(node, false, false).map_err(of_operation)?,
        GossipChange::Assassinate(name) => {
            let port = node.identity.broadcast.port();
            let address = name.parse().or_else(|_| name.parse().map(|ip| std::net::SocketAddr::new(ip, port)));
            let Ok(address) = address else { return invalid(format!("{name} is not an IP address")) };
            wait(gossip::assassinate(node, address))?;
        }
    }
    Ok(())
}

fn seeds(admin: &NodeAdmin, _: &GetSeeds) -> Result<Vec<String>> {
    Ok(shown(gossip::seeds(admin.cluster())))
}

fn reload_seeds(admin: &NodeAdmin, _: &ReloadSeeds) -> Result<Option<Vec<String>>> {
    Ok(gossip::reload_seeds(admin.cluster()).map(shown))
}

/// Addresses as Cassandra writes them.
fn shown(seeds: Vec<std::net::SocketAddr>) -> Vec<String> {
    seeds.into_iter().map(|seed| format!("/{seed}")).collect()
}

fn messages(admin: &NodeAdmin, _: &GetMessages) -> Result<MessagePools> {
    let figures = &admin.cluster().read_repairs;
    let read_repairs = ReadRepairCounts {
        repaired_blocking: figures.repaired_blocking.get(),
        reconcile_read: figures.reconcile_read.get(),
    };
    let mut pools = MessagePools { read_repairs, ..MessagePools::default() };
    for link in gossip::outbound(admin.cluster()) {
        let pool: &mut MessagePool = match link.link {
            LinkType::Large => &mut pools.large,
            LinkType::Small => &mut pools.small,
            _ => &mut pools.urgent,
        };
        pool.pending += link.pending.count;
        pool.completed += link.sent.count;
        pool.dropped += link.dropped();
    }
    Ok(pools)
}

fn message_counts(admin: &NodeAdmin, _: &GetMessageCounts) -> Result<Vec<MessageCounts>> {
    let counts = gossip::verb_counts(admin.cluster()).into_iter();
    let shown =
        counts.map(|of| MessageCounts { verb: of.verb.name().to_owned(), received: of.received, dropped: of.dropped });
    Ok(shown.collect())
}
