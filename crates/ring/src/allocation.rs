//! The tokens of a new node, chosen so that the share of each node is about in proportion to its
//! number of tokens: `allocate_tokens_for_local_replication_factor` and
//! `allocate_tokens_for_keyspace`.
//!
//! 1. The nodes that share their data with the new one are its ring of allocation: those of its
//!    data center, or of its rack if there are as many racks as copies ([`AllocationRing::new`]).
//! 2. With one copy each the largest nodes give up parts of their largest ranges
//!    ([`mod@unreplicated`]); with several the midpoints between tokens are tried, and the best
//!    taken one after the other ([`replicated`]). If that makes no sense yet (fewer nodes than
//!    copies) the largest ranges are split at uneven ratios ([`splits`]).
//! 3. Each token is moved by a random bit of the ring, and further by one if a node has it
//!    already: nodes that start together see the same ring, and must not choose the same tokens.
//!
//! Pure: the caller gives random numbers. Agrees with
//! `org.apache.cassandra.dht.tokenallocator.{TokenAllocation,NoReplicationTokenAllocator,
//! ReplicationAwareTokenAllocator}` in method and balance, not in each bit.

mod replicated;
mod splits;
mod unreplicated;

use std::collections::{BTreeSet, HashSet};

use types::Token;

use crate::endpoint::{Endpoint, State};

/// A node in a ring of allocation, as an index.
pub(crate) type Unit = usize;

/// Tokens of a ring of allocation with their owners, ascending.
pub(crate) type Owned = Vec<(Token, Unit)>;

/// A new node: its place, and the number of tokens that it wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AllocationRequest<'a> {
    /// The node's data center.
    pub data_center: &'a str,
    /// The node's rack.
    pub rack: &'a str,
    /// Number of copies of each partition in its data center.
    pub copies: usize,
    /// Number of tokens that the node wants.
    pub tokens: usize,
}

/// The ring of allocation of a new node.
struct AllocationRing {
    owned: Owned,
    /// The group of each node, by its index: replicas of a partition are of different groups.
    groups: Vec<usize>,
    /// The group of the new node.
    new_group: usize,
    copies: usize,
}

/// Tokens are moved by less than this: a part of the ring (2^-32) that is too small to change the
/// balance.
const MOVED_MAX: u64 = 1 << 32;

/// Chooses the tokens of a node that is none of `members`. Err: a sentence that says why there is
/// no good choice.
pub fn allocate(
    members: &[Endpoint],
    request: AllocationRequest<'_>,
    random: &mut dyn FnMut() -> u64,
) -> Result<Vec<Token>, String> {
    let members: Vec<&Endpoint> =
        members.iter().filter(|member| member.owns_tokens() || member.state == State::Joining).collect();
    let AllocationRing { mut owned, mut groups, new_group, copies } = AllocationRing::new(&members, request)?;
    let new: Unit = groups.len();
    let has_all_groups = groups.iter().collect::<BTreeSet<_>>().len() >= copies;
    let chosen = if new < copies || !has_all_groups || request.tokens > owned.len() {
        splits::split(&mut owned, new, request.tokens, random)
    } else if copies == 1 {
        unreplicated::allocate(owned, new, request.tokens, random)
    } else {
        groups.push(new_group);
        replicated::allocate(owned, &groups, copies, request.tokens, random)
    };
    assert_eq!(chosen.len(), request.tokens, "as many tokens as were asked for");
    Ok(without_clashes(chosen, &members, random))
}

impl AllocationRing {
    fn new(members: &[&Endpoint], request: AllocationRequest<'_>) -> Result<Self, String> {
        let near: Vec<&Endpoint> =
            members.iter().copied().filter(|member| member.data_center == request.data_center).collect();
        let count = racks_of(&near, request.rack);
        let (in_rack, by_rack) = match request.copies {
            0 | 1 => (false, false),
            copies if count == copies => (true, false),
            copies if count > copies => (false, true),
            _ if count == 1 => (false, false),
            copies => {
                return Err(format!(
                    "Token allocation failed: the number of racks {count} in datacenter {} is lower than its replication \
                     factor {copies}.",
                    request.data_center
                ));
            }
        };
        let units: Vec<&Endpoint> = near.into_iter().filter(|member| !in_rack || member.rack == request.rack).collect();
        let mut owned: Owned = (0..)
            .zip(&units)
            .flat_map(|(unit, member)| member.tokens.iter().map(move |token| (*token, unit)))
            .collect();
        owned.sort_unstable();
        owned.dedup_by_key(|(token, _)| *token);
        let names = racks(&units);
        let group_of = |(unit, member): (Unit, &&Endpoint)| match by_rack {
            true => names.iter().position(|name| *name == member.rack).unwrap_or_default(),
            false => unit,
        };
        let groups = units.iter().enumerate().map(group_of).collect();
        let new_group = match by_rack {
            true => names.iter().position(|name| *name == request.rack).unwrap_or(names.len()),
            false => units.len(),
        };
        let copies = if in_rack { 1 } else { request.copies.max(1) };
        Ok(Self { owned, groups, new_group, copies })
    }
}

/// The racks of some nodes, in the order in which they are met.
fn racks<'e>(near: &[&'e Endpoint]) -> Vec<&'e str> {
    let mut names: Vec<&str> = Vec::new();
    for member in near {
        if !names.contains(&member.rack.as_str()) {
            names.push(&member.rack);
        }
    }
    names
}

/// Number of racks of a data center; 1, as in Cassandra, if the rack of the new node has no node
/// yet.
fn racks_of(near: &[&Endpoint], rack: &str) -> usize {
    let names = racks(near);
    if names.contains(&rack) { names.len() } else { 1 }
}

/// Moves tokens by a random bit, and further if another node has them.
fn without_clashes(chosen: Vec<Token>, members: &[&Endpoint], random: &mut dyn FnMut() -> u64) -> Vec<Token> {
    let taken: HashSet<Token> = members.iter().flat_map(|member| member.tokens.iter().copied()).collect();
    let mut tokens = Vec::with_capacity(chosen.len());
    for token in chosen {
        let mut token = Token(token.0.wrapping_add((random() % MOVED_MAX) as i64));
        // the least token is none: it stands for the end of the ring
        while token == Token::MIN || taken.contains(&token) || tokens.contains(&token) {
            token = Token(token.0.wrapping_add(1));
        }
        tokens.push(token);
    }
    tokens.sort_unstable();
    assert!(tokens.windows(2).all(|pair| pair[0] < pair[1]), "a node has no token twice");
    assert!(!tokens.iter().any(|token| taken.contains(token)), "a new node takes no token of another");
    tokens
}

/// The token at a share of the range from `start` to `end`; the whole ring if they are the same.
pub(crate) fn at(start: Token, end: Token, share: f64) -> Token {
    assert!((0.0..=1.0).contains(&share), "a share of a range");
    let span = match end.0.wrapping_sub(start.0) as u64 {
        0 => u64::MAX,
        span => span,
    };
    Token(start.0.wrapping_add((span as f64 * share) as u64 as i64))
}

#[cfg(test)]
mod tests;
