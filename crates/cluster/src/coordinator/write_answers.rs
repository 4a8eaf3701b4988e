//! Counting the answers of a write's replicas: n of m.
//!
//! Pure. Agrees with `org.apache.cassandra.service.AbstractWriteResponseHandler` (`onResponse`,
//! `onFailure`, `ack`), `DatacenterWriteResponseHandler` (levels of one data center: answers of
//! others do not count) and `DatacenterSyncWriteResponseHandler` (EACH_QUORUM: each data center
//! counts by itself). One difference: a write fails as soon as those that can still answer are too
//! few. Cassandra takes replicas that are down for some that can.

use ring::{ReplicaPlan, Ring};
use types::{Consistency, FailureReason, ReplicaFailure, WriteKind};

/// The answers of one write so far. A timeout or failure tells its client these numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WriteAnswers {
    /// The level that the client asked for.
    pub level: Consistency,
    /// The kind of the write, for the error that its client is told.
    pub kind: WriteKind,
    /// Acknowledgements that the level needs.
    pub block_for: u32,
    /// Acknowledgements that came and count for the level.
    pub received: u32,
    /// Replicas that were sent the write, count for the level and have not answered.
    pub outstanding: u32,
    /// Replicas that refused or failed, in the order in which they said so.
    pub failures: Vec<ReplicaFailure>,
    /// EACH_QUORUM over several data centers: the answers of each. Empty otherwise.
    pub(crate) centers: Vec<DataCenterAnswers>,
}

/// The answers of one data center.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DataCenterAnswers {
    block_for: u32,
    received: u32,
    outstanding: u32,
}

/// Where the answer of a replica counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnswerScope {
    /// Nowhere: the level is of the coordinator's data center and the replica is in another.
    Nowhere,
    /// Among all.
    All,
    /// In the data center of this number, and among all.
    Center(usize),
}

/// The state of the write, as the answers so far make it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// The result depends on answers that may still come.
    Waiting,
    /// As many as the level needs have the write.
    Enough,
    /// Too many have failed for the level to be reached.
    TooFew,
}

impl WriteAnswers {
    /// The answers of a write that this node alone is asked for.
    pub fn of_one(level: Consistency, kind: WriteKind) -> Self {
        let (failures, centers) = (Vec::new(), Vec::new());
        Self { level, kind, block_for: 1, received: 0, outstanding: 1, failures, centers }
    }

    /// The answers of a write that is sent to every live replica of a plan. Where no replica is
    /// up, which only level ANY allows, this node keeps the write and answers for them.
    pub fn of(plan: &ReplicaPlan, kind: WriteKind) -> Self {
        let outstanding = count(plan.live.len()).max(1);
        let (level, block_for) = (plan.level, plan.block_for);
        Self { level, kind, block_for, received: 0, outstanding, failures: Vec::new(), centers: Vec::new() }
    }

    /// The answers of a write that is sent to every live replica of a plan among several nodes,
    /// and, in the order of the plan, where the answer of each live replica counts.
    pub fn of_data_centers(
        ring: &Ring,
        quorums: &[(&str, u32)],
        plan: &ReplicaPlan,
        kind: WriteKind,
    ) -> (Self, Vec<AnswerScope>) {
        let center_of = |id: &ring::EndpointId| ring.endpoint(*id).data_center.as_str();
        let in_center =
            |name: &str, of: &[ring::EndpointId]| count(of.iter().filter(|id| center_of(id) == name).count());
        let centers: Vec<DataCenterAnswers> = quorums
            .iter()
            .map(|(name, quorum)| DataCenterAnswers {
                block_for: quorum + in_center(name, &plan.pending),
                received: 0,
                outstanding: in_center(name, &plan.live),
            })
            .collect();
        let counted = |id: &ring::EndpointId| match quorums.iter().position(|(name, _)| *name == center_of(id)) {
            Some(number) => AnswerScope::Center(number),
            None if plan.level.is_datacenter_local() && center_of(id) != ring.local_data_center() => {
                AnswerScope::Nowhere
            }
            None => AnswerScope::All,
        };
        let counted: Vec<AnswerScope> = plan.live.iter().map(counted).collect();
        let outstanding = count(counted.iter().filter(|counted| **counted != AnswerScope::Nowhere).count());
        debug_assert!(
            centers.iter().map(|center| center.outstanding).sum::<u32>() <= outstanding,
            "a replica that counts in its data center counts among all"
        );
        let (level, block_for) = (plan.level, plan.block_for);
        (Self { level, kind, block_for, received: 0, outstanding, failures: Vec::new(), centers }, counted)
    }

    /// A replica whose answer counts among all has the write.
    pub fn receive(&mut self) {
        self.receive_of(AnswerScope::All);
    }

    /// A replica has the write.
    pub fn receive_of(&mut self, counted: AnswerScope) {
        if self.settle(counted) {
            self.received += 1;
        }
        if let AnswerScope::Center(number) = counted {
            self.centers[number].received += 1;
        }
    }

    /// A replica whose answer counts among all has refused the write, or failed at it.
    pub fn fail(&mut self, failure: ReplicaFailure) {
        self.fail_of(AnswerScope::All, failure);
    }

    /// A replica has refused the write, or failed at it.
    pub fn fail_of(&mut self, counted: AnswerScope, failure: ReplicaFailure) {
        self.settle(counted);
        self.failures.push(failure);
    }

    /// Ends the wait for one replica. False: its answer does not count for the level.
    fn settle(&mut self, counted: AnswerScope) -> bool {
        if counted == AnswerScope::Nowhere {
            return false;
        }
        assert!(self.outstanding > 0, "a replica answers once");
        self.outstanding -= 1;
        if let AnswerScope::Center(number) = counted {
            let center = &mut self.centers[number];
            assert!(center.outstanding > 0, "a replica answers once");
            center.outstanding -= 1;
        }
        true
    }

    /// Whether those that failed did so by not answering in time. A client is told that of a
    /// timeout.
    pub fn are_late(&self) -> bool {
        self.failures.iter().all(|failure| failure.reason == FailureReason::Timeout)
    }

    /// Whether the answers are enough, can still become enough, or have become too few. With data
    /// centers that count apart, each has to have its own.
    pub fn progress(&self) -> Progress {
        let mut all = progress(self.block_for, self.received, self.outstanding);
        for center in &self.centers {
            match progress(center.block_for, center.received, center.outstanding) {
                Progress::TooFew => return Progress::TooFew,
                Progress::Waiting => all = Progress::Waiting,
                Progress::Enough => {}
            }
        }
        all
    }
}

fn progress(block_for: u32, received: u32, outstanding: u32) -> Progress {
    if received >= block_for {
        Progress::Enough
    } else if received + outstanding < block_for {
        Progress::TooFew
    } else {
        Progress::Waiting
    }
}

fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use types::FailureReason;

    use super::*;

    /// Answers as letters, `+` an acknowledgement and `-` a failure; what they mean after each.
    #[test]
    fn n_of_m() {
        use Progress::{Enough, TooFew, Waiting};
        let cases: &[(u32, u32, &str, &[Progress])] = &[
            (1, 1, "+", &[Waiting, Enough]),
            (1, 1, "-", &[Waiting, TooFew]),
            (2, 3, "+-+", &[Waiting, Waiting, Waiting, Enough]),
            (2, 3, "--", &[Waiting, Waiting, TooFew]),
            (3, 3, "++-", &[Waiting, Waiting, Waiting, TooFew]),
            (1, 3, "-+-", &[Waiting, Waiting, Enough, Enough]),
            (2, 1, "", &[TooFew]),
        ];
        for (block_for, replicas, letters, expected) in cases {
            let (level, kind) = (Consistency::Quorum, WriteKind::Simple);
            let (block_for, outstanding) = (*block_for, *replicas);
            let mut answers = WriteAnswers { block_for, outstanding, ..WriteAnswers::of_one(level, kind) };
            let mut seen = vec![answers.progress()];
            for (port, letter) in (1..).zip(letters.chars()) {
                let endpoint = ([127, 0, 0, 1], port).into();
                match letter {
                    '+' => answers.receive(),
                    _ => answers.fail(ReplicaFailure { endpoint, reason: FailureReason::Unknown }),
                }
                seen.push(answers.progress());
            }
            assert_eq!(seen, *expected, "{block_for} of {replicas}: {letters}");
        }
    }
}
