//! `nodetool rebuild`: a member fetches the data of its ranges from others: of another data center
//! when its own is new, or of certain nodes.
//!
//! The progress is not written anywhere: a rebuild that is interrupted begins again, and rows that
//! come twice do no harm. `org.apache.cassandra.service.StorageService.rebuild`.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use ring::primary::Ranges;
use ring::relocation::{SourceChoice, encloses};
use ring::{Endpoint, Ring};
use types::Token;

use super::flows::MovementStreams;
use crate::node::Node;
use crate::operations::{OperationError, Result};
use crate::streaming::Operation;

/// Which data is fetched, and from which nodes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RebuildOptions {
    /// Only nodes of this data center give; None: of any.
    pub source_data_center: Option<String>,
    /// Only this keyspace; None: all that nodes share.
    pub keyspace: Option<String>,
    /// Only these ranges, which the node must have; empty: all that it has.
    pub ranges: Ranges,
    /// Only these nodes give; empty: any.
    pub sources: BTreeSet<IpAddr>,
    /// Nodes of the own data center do not give.
    pub excludes_local_data_center: bool,
}

/// Ranges of the operator's text `(a,b],(c,d]`.
pub fn parse_ranges(text: &str) -> Result<Ranges> {
    let unexpected = || OperationError::Invalid(format!("Unexpected string: {text}"));
    let mut ranges = Ranges::new();
    if text.trim().is_empty() {
        return Ok(ranges);
    }
    let list = text.trim().strip_suffix(']').ok_or_else(unexpected)?;
    for part in list.split(']').map(|part| part.trim().trim_start_matches(',').trim()) {
        let inner = part.strip_prefix('(').ok_or_else(unexpected)?;
        let (start, end) = inner.split_once(',').ok_or_else(unexpected)?;
        let token = |text: &str| text.trim().parse().map(Token).map_err(|_| unexpected());
        ranges.push((token(start)?, token(end)?));
    }
    Ok(ranges)
}

/// Fetches the data. Returns when it has come.
pub async fn rebuild(node: &Arc<Node>, options: RebuildOptions) -> Result<()> {
    let ring = node.ring();
    check(node, &ring, &options)?;
    let _running = node.membership_state.movements.begin("rebuilding").map_err(OperationError::Failed)?;
    node.repair_paxos_before_movement("rebuild").await.map_err(OperationError::Failed)?;
    let here = ring.local_data_center().to_owned();
    let may_give = |endpoint: &Endpoint| {
        options.source_data_center.as_ref().is_none_or(|name| *name == endpoint.data_center)
            && (options.sources.is_empty() || options.sources.contains(&endpoint.address.ip()))
            && !(options.excludes_local_data_center && endpoint.data_center == here)
    };
    let choice = SourceChoice { strict: false, may_give: &may_give };
    let mut exchange = MovementStreams::default();
    let keyspaces = node.shared_keyspaces(&ring).map_err(OperationError::Failed)?;
    let is_wanted = |name: &String| options.keyspace.as_ref().is_none_or(|wanted| wanted == name);
    for (keyspace, placement) in keyspaces.into_iter().filter(|(name, _)| is_wanted(name)) {
        let fetches = ring
            .rebuild_fetches(&placement, ring.local_id(), &options.ranges, choice)
            .map_err(|error| OperationError::Failed(error.to_string()))?;
        if !fetches.missing.is_empty() && placement.replication.factor() > 1 {
            return Err(OperationError::Failed(format!(
                "Unable to find sufficient sources for streaming {} ranges in keyspace {keyspace}",
                fetches.missing.len()
            )));
        }
        exchange.fetch(&ring, &keyspace, &fetches.from);
    }
    exchange
        .run(node, Operation::Rebuild, |_, _| {})
        .await
        .map_err(|why| OperationError::Failed(format!("Error while rebuilding node: {why}")))
}

/// Refuses options that contradict each other or the ring.
fn check(node: &Node, ring: &Ring, options: &RebuildOptions) -> Result<()> {
    let invalid = |why: String| Err(OperationError::Invalid(why));
    let mode = node.mode();
    if mode.is_outside() {
        return Err(OperationError::Failed(format!(
            "Node in {mode} state: it owns no ranges yet. `nodetool join` or `nodetool bootstrap resume` fetches its \
             data"
        )));
    }
    let centers = ring.data_centers();
    if let Some(center) = &options.source_data_center {
        if options.excludes_local_data_center && center == ring.local_data_center() {
            return invalid(
                "Cannot set source data center to be local data center, when excludeLocalDataCenter flag is set"
                    .to_owned(),
            );
        }
        if !centers.contains_key(center.as_str()) {
            return invalid(format!(
                "Provided datacenter '{center}' is not a valid datacenter, available datacenters are: {}",
                centers.keys().copied().collect::<Vec<_>>().join(",")
            ));
        }
    }
    let Some(keyspace) = &options.keyspace else {
        return match options.ranges.is_empty() {
            true => Ok(()),
            false => invalid("Cannot specify tokens without keyspace.".to_owned()),
        };
    };
    let Some(placement) = ring.placement(keyspace) else {
        return invalid(format!("Unknown keyspace {keyspace}"));
    };
    if options.sources.contains(&node.identity.broadcast.ip()) {
        return invalid(
            "This host was specified as a source for rebuilding. Sources for a rebuild can only be other nodes in the \
             cluster."
                .to_owned(),
        );
    }
    let own: Vec<_> = placement
        .ranges()
        .filter(|(.., replicas)| replicas.contains(&ring.local_id()))
        .map(|(start, end, _)| (start, end))
        .collect();
    for (start, end) in &options.ranges {
        if !own.iter().any(|range| encloses(*range, (*start, *end))) {
            return invalid(format!(
                "The specified range ({},{}] is not a range that is owned by this node. Please ensure that all token ranges \
                 specified to be rebuilt belong to this node.",
                start.0, end.0
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_an_operator() {
        let range = |start, end| (Token(start), Token(end));
        assert_eq!(parse_ranges("(1,2],( -3 , 4 ]"), Ok(vec![range(1, 2), range(-3, 4)]));
        assert_eq!(parse_ranges(""), Ok(Ranges::new()));
        for wrong in ["1,2]", "(1]", "(a,2]", "(1,2),(3,4]", "(1,2", "(1,2],(3,4", "(1,2]]"] {
            assert!(parse_ranges(wrong).is_err(), "{wrong}");
        }
    }
}
