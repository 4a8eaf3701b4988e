//! Tokens of a node in a ring of allocation in which a range has several copies.
//!
//! A token of a node stands for the data between the place where its copies begin and itself. The
//! place is `copies` groups of nodes back, or at the last token of its own group, whichever is
//! nearer. The midpoints between neighbours are candidates. The worth of a candidate is by how
//! much it brings the loads of nodes and tokens nearer to the mean. The best one is taken, and the
//! next ones are computed again, because their worth may have changed. A candidate that is still
//! better than the next one is good enough.
//!
//! Agrees with `org.apache.cassandra.dht.tokenallocator.ReplicationAwareTokenAllocator`, which
//! keeps for each token where its copies begin, and which candidates change that; here both are
//! computed anew, in a few steps each.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use smallvec::SmallVec;
use types::Token;

use super::{Owned, Unit, at};
use crate::ownership::part;

/// A group of nodes, as an index.
type Group = usize;

/// The groups that a walk has met.
type VisitedGroups = SmallVec<[Group; 8]>;

/// A token that could be taken. The greatest candidate is the best one; of equally good ones it is
/// the least token.
#[derive(PartialEq)]
struct Candidate {
    worth: f64,
    token: Token,
}

impl Eq for Candidate {}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.worth.total_cmp(&other.worth).then(other.token.cmp(&self.token))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Chooses tokens for the last one of `groups`. The ring has at least as many groups as copies, and
/// at least as many tokens as are wanted.
pub(super) fn allocate(
    owned: Owned,
    groups: &[Group],
    copies: usize,
    count: usize,
    random: &mut dyn FnMut() -> u64,
) -> Vec<Token> {
    let mut ring = Loads::new(owned, groups, copies, count);
    let neighbours = ring.owned.last().into_iter().chain(&ring.owned).zip(&ring.owned);
    let midpoints: Vec<Token> = neighbours.map(|((start, _), (end, _))| at(*start, *end, 0.5)).collect();
    let is_free = |token: &Token| ring.owned.binary_search_by_key(token, |(known, _)| *known).is_err();
    let worth = |token: Token| Candidate { worth: ring.worth(token, 1.0 / count as f64), token };
    let mut candidates: BinaryHeap<Candidate> = midpoints.into_iter().filter(is_free).map(worth).collect();
    let mut chosen = Vec::with_capacity(count);
    while chosen.len() < count
        && let Some(mut best) = candidates.pop()
    {
        while !chosen.is_empty() {
            best.worth = ring.worth(best.token, (chosen.len() + 1) as f64 / count as f64);
            if candidates.peek().is_none_or(|next| best.worth >= next.worth) {
                break;
            }
            candidates.push(best);
            best = candidates.pop().expect("one was put back");
        }
        ring.take(best.token);
        chosen.push(best.token);
    }
    // ranges of a single token have no midpoint
    if chosen.len() < count {
        let missing = count - chosen.len();
        let new = ring.new;
        chosen.extend(super::splits::split(&mut ring.owned, new, missing, random));
    }
    chosen
}

/// The tokens of a ring, and the share that each token and node has copies of.
struct Loads<'g> {
    owned: Owned,
    /// The share of the ring that each token stands for, by its index.
    by_token: Vec<f64>,
    /// The share of the ring that each node has; for the new node it is the best share.
    by_unit: Vec<f64>,
    /// Number of tokens of each node; for the new node the number that it wants.
    tokens: Vec<f64>,
    groups: &'g [Group],
    copies: usize,
    /// The node that gets tokens.
    new: Unit,
    /// The best share of the ring that a token stands for.
    best: f64,
}

impl<'g> Loads<'g> {
    fn new(owned: Owned, groups: &'g [Group], copies: usize, count: usize) -> Self {
        let new = groups.len() - 1;
        let best = copies as f64 / (owned.len() + count) as f64;
        let (mut by_unit, mut tokens) = (vec![0.0; groups.len()], vec![0.0; groups.len()]);
        (by_unit[new], tokens[new]) = (best * count as f64, count as f64);
        let mut loads =
            Self { by_token: Vec::with_capacity(owned.len()), owned, by_unit, tokens, groups, copies, new, best };
        for position in 0..loads.owned.len() {
            let (token, unit) = loads.owned[position];
            let size = part(loads.begin(position, groups[unit], None), token);
            loads.by_token.push(size);
            loads.by_unit[unit] += size;
            loads.tokens[unit] += 1.0;
        }
        loads
    }

    /// The place where the data of a token of `group` begins, on a walk back from the token at
    /// `position`, which is not met itself. `inserted`: a token that the new node would have, and
    /// the position before which it would stand.
    fn begin(&self, position: usize, group: Group, inserted: Option<(Token, usize)>) -> Token {
        let (mut met, count) = (VisitedGroups::new(), self.owned.len());
        let mut meet = |token: Token, of: Group| {
            if met.contains(&of) {
                return None;
            }
            met.push(of);
            (met.len() >= self.copies || of == group).then_some(token)
        };
        let mut at = position;
        for _ in 0..=count {
            if let Some((token, before)) = inserted
                && before == at % count
                && let Some(begin) = meet(token, self.groups[self.new])
            {
                return begin;
            }
            at = (at + count - 1) % count;
            let (token, unit) = self.owned[at];
            if let Some(begin) = meet(token, self.groups[unit]) {
                return begin;
            }
        }
        // fewer groups than copies: all of the ring
        self.owned[position % count].0
    }

    /// The positions of the tokens whose data begins elsewhere when a token is taken before
    /// `position`: the first of each group, until there are as many groups as copies.
    fn affected(&self, position: usize) -> SmallVec<[usize; 8]> {
        let (mut met, mut affected) = (VisitedGroups::new(), SmallVec::new());
        for step in 0..self.owned.len() {
            let at = (position + step) % self.owned.len();
            let group = self.groups[self.owned[at].1];
            if met.contains(&group) {
                continue;
            }
            met.push(group);
            affected.push(at);
            if met.len() >= self.copies {
                break;
            }
        }
        affected
    }

    /// By how much a token of the new node brings the loads of nodes and tokens nearer to the
    /// mean. `weight`: the weight of the new node itself, which is smaller for its first tokens.
    fn worth(&self, token: Token, weight: f64) -> f64 {
        let position = self.owned.partition_point(|(known, _)| *known < token) % self.owned.len();
        let mut changes: SmallVec<[(Unit, f64); 8]> = SmallVec::new();
        let mut of_tokens = 0.0;
        let mut change = |unit: Unit, before: f64, after: f64| {
            of_tokens += (self.squared_deviation(after) - self.squared_deviation(before))
                / (self.tokens[unit] * self.tokens[unit]);
            match changes.iter_mut().find(|(known, _)| *known == unit) {
                Some((_, difference)) => *difference += after - before,
                None => changes.push((unit, after - before)),
            }
        };
        change(self.new, self.best, part(self.begin(position, self.groups[self.new], None), token));
        for at in self.affected(position) {
            let (end, unit) = self.owned[at];
            let begin = self.begin(at, self.groups[unit], Some((token, position)));
            change(unit, self.by_token[at], part(begin, end));
        }
        let of_units = changes.iter().map(|(unit, difference)| {
            let (before, count) = (self.by_unit[*unit], self.tokens[*unit]);
            let change = self.squared_deviation((before + difference) / count) - self.squared_deviation(before / count);
            if *unit == self.new { change * weight } else { change }
        });
        -(of_tokens + of_units.sum::<f64>())
    }

    /// The difference of a load from the best one, squared.
    fn squared_deviation(&self, load: f64) -> f64 {
        (load - self.best) * (load - self.best)
    }

    /// Gives the new node this token.
    fn take(&mut self, token: Token) {
        let position = self.owned.partition_point(|(known, _)| *known < token);
        assert!(self.owned.get(position).is_none_or(|(known, _)| *known != token), "a token is taken once");
        self.owned.insert(position, (token, self.new));
        self.by_token.insert(position, self.best);
        self.recompute_share(position);
        let next = (position + 1) % self.owned.len();
        self.affected(next).into_iter().for_each(|at| self.recompute_share(at));
    }

    /// Computes the share of the token at a position anew.
    fn recompute_share(&mut self, position: usize) {
        let (token, unit) = self.owned[position];
        let size = part(self.begin(position, self.groups[unit], None), token);
        self.by_unit[unit] += size - self.by_token[position];
        self.by_token[position] = size;
    }
}
