//! Which ranges flow between which endpoints when one of them comes, goes, moves or is removed.
//!
//! Each change is a ring before and a ring after it. The parts of the ring between the tokens of
//! both have a set of replicas before and one after; an endpoint that is in the second set and not
//! in the first needs the part's data, and gets it from one endpoint of the first set:
//! - **strict**: from the endpoint that loses the part, because no other one is sure to have the
//!   writes that it has acknowledged at a level below ALL ([`SourceChoice::strict`]);
//! - otherwise from the nearest that is up: of the own rack, of the own data center, elsewhere; of
//!   equally near ones from the one that is asked for fewer parts.
//!
//! Pure, like all of this crate. Must agree with `org.apache.cassandra.dht.RangeStreamer`
//! (`calculateRangesToFetchWithPreferredEndpoints`), `service.RangeRelocator` and
//! `StorageService.getChangedReplicasForLeaving`. No dynamic snitch decides: which of two equally
//! near replicas is asked may differ from Cassandra.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use types::Token;

use crate::endpoint::{Endpoint, EndpointId, State};
use crate::placement::{Members, Natural, Placement, Strategy};
use crate::primary::Ranges;
use crate::replication::Replication;
use crate::snapshot::Ring;

/// Ranges by the endpoint on the other side.
pub type Flows = BTreeMap<EndpointId, Ranges>;

/// Ranges that an endpoint fetches.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fetches {
    /// The ranges, by the endpoint that gives them.
    pub from: Flows,
    /// Ranges of which no endpoint that may be asked is up. Always empty if the choice is strict.
    pub missing: Ranges,
}

/// The endpoints from which ranges may be fetched.
#[derive(Clone, Copy)]
pub struct SourceChoice<'a> {
    /// True: only the endpoint that loses a range gives it, if there is one.
    pub strict: bool,
    /// Whether an endpoint may be asked, if it is up.
    pub may_give: &'a dyn Fn(&Endpoint) -> bool,
}

impl SourceChoice<'_> {
    /// A strict choice, from any endpoint.
    pub const STRICT: SourceChoice<'static> = SourceChoice { strict: true, may_give: &|_| true };
    /// A choice of the nearest endpoint.
    pub const NEAREST: SourceChoice<'static> = SourceChoice { strict: false, may_give: &|_| true };
}

/// A range cannot be fetched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoSource {
    /// The start of the range (excluded).
    pub start: Token,
    /// The end of the range (included).
    pub end: Token,
    /// The endpoints that would have to be asked, none of which is up or may be asked.
    pub needed: Vec<EndpointId>,
    /// True: several endpoints lose the range at once, and it is not known which of them has all
    /// of its data.
    pub is_ambiguous: bool,
}

impl fmt::Display for NoSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_ambiguous {
            true => write!(f, "the range ({},{}] has several endpoints that lose it", self.start.0, self.end.0),
            false => write!(f, "the endpoint that loses the range ({},{}] is down", self.start.0, self.end.0),
        }
    }
}

/// A part of the ring with its replicas before and after a change.
struct Part {
    start: Token,
    end: Token,
    before: Natural,
    after: Natural,
}

impl Part {
    /// Whether an endpoint gains the part by the change.
    fn is_gained_by(&self, id: EndpointId) -> bool {
        self.after.contains(&id) && !self.before.contains(&id)
    }
}

impl Ring {
    /// The endpoints that own tokens now.
    fn members(&self) -> Members {
        Members::of(self.owners().to_vec())
    }

    /// The parts of the ring between the tokens of both sets of members, in the order of the ring.
    fn parts(&self, replication: &Replication, before: &Members, after: &Members) -> Vec<Part> {
        let mut ends: Vec<Token> = before.tokens().chain(after.tokens()).collect();
        ends.sort_unstable();
        ends.dedup();
        let [then, later] = [before, after].map(|members| Strategy::new(replication, self.endpoints(), members));
        let starts = ends.last().into_iter().chain(&ends);
        let part = |(start, end): (&Token, &Token)| Part {
            start: *start,
            end: *end,
            before: then.natural(*end),
            after: later.natural(*end),
        };
        let parts: Vec<Part> = starts.zip(&ends).map(part).collect();
        let sum: u128 = parts.iter().map(|part| width((part.start, part.end))).sum();
        assert!(parts.is_empty() || sum == 1u128 << 64, "the parts of a change are the ring");
        parts
    }

    /// The ranges that an endpoint fetches before it owns tokens: those of its own tokens when it
    /// joins, those of another endpoint when it replaces that one.
    pub fn joining_fetches(
        &self,
        placement: &Placement,
        who: EndpointId,
        tokens: &[Token],
        choice: SourceChoice<'_>,
    ) -> Result<Fetches, NoSource> {
        let before = self.members();
        let parts = self.parts(&placement.replication, &before, &before.with(who, tokens));
        let gained = parts.iter().filter(|part| part.is_gained_by(who));
        self.fetches(placement, who, gained, choice)
    }

    /// The ranges that an endpoint that leaves hands to each of the others.
    pub fn leaving_transfers(&self, placement: &Placement, who: EndpointId) -> Flows {
        let after = self.after_leaving(who);
        let mut flows = Flows::new();
        for part in self.parts(&placement.replication, &self.members(), &after) {
            if part.before.contains(&who) {
                part.after.iter().filter(|id| part.is_gained_by(**id)).for_each(|id| add(&mut flows, *id, &part));
            }
        }
        flows
    }

    /// The ranges that `who` fetches because `removed` is taken out of the ring.
    pub fn removal_fetches(
        &self,
        placement: &Placement,
        removed: EndpointId,
        who: EndpointId,
    ) -> Result<Fetches, NoSource> {
        let parts = self.parts_lost(placement, removed);
        let gained = parts.iter().filter(|part| part.is_gained_by(who));
        let is_there = |endpoint: &Endpoint| !std::ptr::eq(endpoint, self.endpoint(removed));
        self.fetches(placement, who, gained, SourceChoice { strict: false, may_give: &is_there })
    }

    /// The endpoints that gain ranges because `removed` does not come back.
    pub fn removal_gains(&self, placement: &Placement, removed: EndpointId) -> BTreeSet<EndpointId> {
        let parts = self.parts_lost(placement, removed);
        let gaining = parts.iter().flat_map(|part| part.after.iter().filter(move |id| part.is_gained_by(**id)));
        gaining.copied().collect()
    }

    /// The parts of the ring that `removed` has, and those that it would get because others leave
    /// or are removed. An endpoint that was told of the other departure alone has left the latter
    /// to `removed`, which does not come to fetch them. Cassandra looks at the former only.
    fn parts_lost(&self, placement: &Placement, removed: EndpointId) -> Vec<Part> {
        let replication = &placement.replication;
        let others_gone = self.members().without(|id| id != removed && self.endpoint(id).state == State::Leaving);
        let strategy = Strategy::new(replication, self.endpoints(), &others_gone);
        let mut parts = self.parts(replication, &self.members(), &self.after_leaving(removed));
        parts.retain(|part| part.before.contains(&removed) || strategy.natural(part.end).contains(&removed));
        parts
    }

    /// The ranges that an endpoint fetches, and those that it hands on, before it owns another
    /// token than its own.
    pub fn moving_flows(
        &self,
        placement: &Placement,
        who: EndpointId,
        to: Token,
        choice: SourceChoice<'_>,
    ) -> Result<(Fetches, Flows), NoSource> {
        let before = self.members();
        let parts = self.parts(&placement.replication, &before, &before.with(who, &[to]));
        let fetches = self.fetches(placement, who, parts.iter().filter(|part| part.is_gained_by(who)), choice)?;
        let mut transfers = Flows::new();
        for part in parts.iter().filter(|part| part.before.contains(&who) && !part.after.contains(&who)) {
            part.after.iter().filter(|id| part.is_gained_by(**id)).for_each(|id| add(&mut transfers, *id, part));
        }
        Ok((fetches, transfers))
    }

    /// The ranges of an endpoint, each from another of its replicas (`nodetool rebuild`).
    /// `within`: only the parts in these ranges are fetched; empty: all of them.
    pub fn rebuild_fetches(
        &self,
        placement: &Placement,
        who: EndpointId,
        within: &Ranges,
        choice: SourceChoice<'_>,
    ) -> Result<Fetches, NoSource> {
        let members = self.members();
        let mut bounds = members.clone();
        for (start, end) in within {
            bounds = bounds.split_at(*start).split_at(*end);
        }
        let mut parts = self.parts(&placement.replication, &members, &bounds);
        let is_wanted = |part: &Part| within.is_empty() || within.iter().any(|range| contains(*range, part.end));
        parts.retain(|part| part.before.contains(&who) && is_wanted(part));
        self.fetches(placement, who, parts.iter(), choice)
    }

    fn after_leaving(&self, who: EndpointId) -> Members {
        self.members().without(|id| id == who || self.endpoint(id).state == State::Leaving)
    }

    /// Chooses for each part the endpoint that gives it.
    fn fetches<'p>(
        &self,
        placement: &Placement,
        who: EndpointId,
        parts: impl Iterator<Item = &'p Part>,
        choice: SourceChoice<'_>,
    ) -> Result<Fetches, NoSource> {
        let replication = &placement.replication;
        let is_strict = choice.strict && self.has_more_endpoints_than_copies(replication);
        let gives = |id: &EndpointId| {
            let endpoint = self.endpoint(*id);
            *id != who && endpoint.is_up && (choice.may_give)(endpoint)
        };
        let (mut fetches, mut wanted) = (Fetches::default(), 0);
        for part in parts {
            wanted += width((part.start, part.end));
            let no_source = |needed: Vec<EndpointId>, is_ambiguous| {
                Err(NoSource { start: part.start, end: part.end, needed, is_ambiguous })
            };
            let losing: Vec<EndpointId> = match is_strict && part.before.len() == replication.factor() as usize {
                true => part.before.iter().filter(|id| !part.after.contains(id)).copied().collect(),
                false => Vec::new(),
            };
            let source = match losing.as_slice() {
                [] => self.nearest(who, part.before.iter().filter(|id| gives(id)).copied(), &fetches.from),
                [loser] if gives(loser) => Some(*loser),
                [_] => return no_source(losing, false),
                _ => return no_source(losing, true),
            };
            match source {
                Some(source) => {
                    assert!(part.before.contains(&source), "a range comes from an endpoint that has it");
                    add(&mut fetches.from, source, part);
                }
                None if choice.strict => return no_source(part.before.to_vec(), false),
                None => append(&mut fetches.missing, part.start, part.end),
            }
        }
        let planned = fetches.from.values().flatten().chain(&fetches.missing).copied().map(width);
        assert_eq!(planned.sum::<u128>(), wanted, "each token that is wanted is fetched once, or is missing");
        assert!(!fetches.from.contains_key(&who), "an endpoint fetches nothing from itself");
        Ok(fetches)
    }

    /// Whether there are more endpoints than copies, so that an endpoint that gains a range takes
    /// it from one that loses it. Otherwise each endpoint has all data.
    fn has_more_endpoints_than_copies(&self, replication: &Replication) -> bool {
        let counts = |endpoint: &&Endpoint| match replication {
            Replication::NetworkTopology { factors } => {
                factors.get(&endpoint.data_center).is_some_and(|factor| *factor > 0)
            }
            Replication::Local | Replication::Simple { .. } => true,
        };
        self.endpoints().iter().filter(counts).count() > replication.factor() as usize
    }

    /// The nearest of some endpoints; of equally near ones the one that gives the fewest ranges.
    fn nearest(
        &self,
        who: EndpointId,
        candidates: impl Iterator<Item = EndpointId>,
        given: &Flows,
    ) -> Option<EndpointId> {
        let here = self.endpoint(who);
        candidates.min_by_key(|id| {
            let there = self.endpoint(*id);
            let is_far = there.data_center != here.data_center;
            (is_far, there.rack != here.rack, given.get(id).map_or(0, Vec::len), *id)
        })
    }
}

fn add(flows: &mut Flows, id: EndpointId, part: &Part) {
    append(flows.entry(id).or_default(), part.start, part.end);
}

/// Tokens of a range. Start and end being the same means the whole ring.
fn width((start, end): (Token, Token)) -> u128 {
    match end.0.wrapping_sub(start.0) as u64 {
        0 => 1u128 << 64,
        tokens => u128::from(tokens),
    }
}

/// Adds a range; one that continues the last becomes part of it.
fn append(ranges: &mut Ranges, start: Token, end: Token) {
    match ranges.last_mut() {
        Some((_, last)) if *last == start => *last = end,
        _ => ranges.push((start, end)),
    }
}

/// The parts of `ranges` that are in none of `others`.
pub fn subtract(ranges: &Ranges, others: &Ranges) -> Ranges {
    let mut left = intervals(ranges);
    for (from, to) in intervals(others) {
        let cut = |(start, end): (i128, i128)| {
            let parts = [(start, end.min(from)), (start.max(to), end)];
            let is_apart = end <= from || to <= start;
            let kept = if is_apart { [(start, end), (0, 0)] } else { parts };
            kept.into_iter().filter(|(start, end)| start < end)
        };
        left = left.into_iter().flat_map(cut).collect();
    }
    let token = |value: i128| i64::try_from(value).map_or(Token(i64::MAX), Token);
    // the token before the first is the last one: the range goes around the end of the ring
    left.into_iter().map(|(start, end)| (token(start), token(end))).collect()
}

/// Ranges as intervals of numbers that do not go around the end of the ring. The start of each is
/// not part of it.
fn intervals(ranges: &Ranges) -> Vec<(i128, i128)> {
    let before_first = i128::from(i64::MIN) - 1;
    let mut intervals = Vec::with_capacity(ranges.len() + 1);
    for (start, end) in ranges {
        let (start, end) = (i128::from(start.0), i128::from(end.0));
        match start < end {
            true => intervals.push((start, end)),
            false => intervals.extend([(start, i128::from(i64::MAX)), (before_first, end)]),
        }
    }
    intervals.retain(|(start, end)| start < end);
    intervals
}

/// Whether a token is in the range from a token (excluded) to a token (included). If both are the
/// same the range is the whole ring.
pub fn contains((start, end): (Token, Token), token: Token) -> bool {
    match start < end {
        true => start < token && token <= end,
        false => start < token || token <= end,
    }
}

/// Whether a range has all tokens of another one. Agrees with `org.apache.cassandra.dht.Range`.
pub fn encloses((start, end): (Token, Token), (from, to): (Token, Token)) -> bool {
    match (start < end, from < to) {
        _ if start == end => true,
        (true, true) | (false, false) => start <= from && to <= end,
        (false, true) => start <= from || to <= end,
        // only the second one goes around the end of the ring
        (true, false) => false,
    }
}

#[cfg(test)]
mod tests;
