//! `internode_inbound` and `internode_outbound`: what has happened on links, a row for each other
//! node. Agrees with `InternodeInboundTable` and `InternodeOutboundTable`. Links are not throttled,
//! and what has come is handled at once, so the figures of both are 0.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use cluster::operations::{gossip, ring};

use super::VirtualTable;
use super::row::VirtualRow;
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] =
    &[VirtualTable::of_views("internode_inbound", inbound), VirtualTable::of_views("internode_outbound", outbound)];

/// Sums by column.
type Sums = BTreeMap<&'static str, u64>;

fn inbound(services: &Services) -> Vec<VirtualRow> {
    let links = gossip::inbound(&services.node).into_iter().map(|link| {
        let figures = [
            ("received_count", link.received.count),
            ("received_bytes", link.received.bytes),
            ("expired_count", link.expired.count),
            ("expired_bytes", link.expired.bytes),
            ("error_count", link.errors.count),
            ("error_bytes", link.errors.bytes),
            ("processed_count", link.processed.count),
            ("processed_bytes", link.processed.bytes),
            ("corrupt_frames_recovered", link.damaged_frames),
            ("corrupt_frames_unrecovered", link.closed),
        ];
        let none = [
            "scheduled_bytes",
            "scheduled_count",
            "throttled_count",
            "throttled_nanos",
            "using_bytes",
            "using_reserve_bytes",
        ];
        (link.peer, figures.into_iter().chain(none.map(|name| (name, 0))).collect::<Vec<_>>())
    });
    rows(services, links)
}

fn outbound(services: &Services) -> Vec<VirtualRow> {
    let links = gossip::outbound(&services.node).into_iter().map(|link| {
        let figures = vec![
            ("active_connections", u64::from(link.is_open)),
            ("connection_attempts", link.attempts),
            ("successful_connection_attempts", link.connections),
            ("sent_count", link.sent.count),
            ("sent_bytes", link.sent.bytes),
            ("pending_count", link.pending.count),
            ("pending_bytes", link.pending.bytes),
            ("using_bytes", link.pending.bytes),
            ("using_reserve_bytes", link.reserve_bytes),
            ("expired_count", link.expired.count),
            ("expired_bytes", link.expired.bytes),
            ("error_count", link.errors.count),
            ("error_bytes", link.errors.bytes),
            ("overload_count", link.overloaded.count),
            ("overload_bytes", link.overloaded.bytes),
        ];
        (link.peer, figures)
    });
    rows(services, links)
}

/// A row for each peer with the sums of its links.
fn rows(services: &Services, links: impl Iterator<Item = (SocketAddr, Vec<(&'static str, u64)>)>) -> Vec<VirtualRow> {
    let mut peers: BTreeMap<SocketAddr, Sums> = BTreeMap::new();
    for (peer, figures) in links {
        let sums = peers.entry(peer).or_default();
        figures.into_iter().for_each(|(name, figure)| *sums.entry(name).or_default() += figure);
    }
    let ring = ring::snapshot(&services.node);
    let row = |(peer, sums): (SocketAddr, Sums)| {
        let place = ring.endpoints().iter().find(|endpoint| endpoint.address == peer);
        let (data_center, rack) = place.map_or(("", ""), |at| (at.data_center.as_str(), at.rack.as_str()));
        let row = VirtualRow::default()
            .inet("address", peer.ip())
            .int("port", i32::from(peer.port()))
            .text("dc", data_center)
            .text("rack", rack);
        sums.into_iter().fold(row, |row, (name, sum)| row.count(name, sum))
    };
    peers.into_iter().map(row).collect()
}
