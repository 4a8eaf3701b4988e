//! Counting the answers of a write's replicas: n of m.
//!
//! Pure. Agrees with `org.apache.cassandra.service.AbstractWriteResponseHandler` (`onResponse`, `onFailure`, `ack`).

use ring::ReplicaPlan;
use types::{Consistency, ReplicaFailure, WriteKind};

/// The answers of one write so far. A timeout or failure tells its client what stands here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answers {
    /// What the client asked for.
    pub level: Consistency,
    /// What the write is.
    pub kind: WriteKind,
    /// Acknowledgements that the level needs.
    pub block_for: u32,
    /// Acknowledgements that came.
    pub received: u32,
    /// Replicas that were sent the write and have not answered.
    pub outstanding: u32,
    /// Replicas that refused or failed, in the order in which they said so.
    pub failures: Vec<ReplicaFailure>,
}

/// What the answers so far mean for the write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// Answers that may still come decide.
    Waiting,
    /// As many as the level needs have the write.
    Enough,
    /// Too many have failed for the level to be reached.
    TooFew,
}

impl Answers {
    /// Of a write that this node alone is asked for.
    pub fn of_one(level: Consistency, kind: WriteKind) -> Self {
        Self { level, kind, block_for: 1, received: 0, outstanding: 1, failures: Vec::new() }
    }

    /// Of a write that is sent to every live replica of a plan. Where none is up (ANY alone lets that pass) this
    /// node keeps the write and answers for them.
    pub fn of(plan: &ReplicaPlan, kind: WriteKind) -> Self {
        let outstanding = u32::try_from(plan.live.len()).unwrap_or(u32::MAX).max(1);
        let (level, block_for) = (plan.level, plan.block_for);
        Self { level, kind, block_for, received: 0, outstanding, failures: Vec::new() }
    }

    /// A replica has the write.
    pub fn receive(&mut self) {
        assert!(self.outstanding > 0, "a replica answers once");
        self.outstanding -= 1;
        self.received += 1;
    }

    /// A replica has refused the write, or failed at it.
    pub fn fail(&mut self, failure: ReplicaFailure) {
        assert!(self.outstanding > 0, "a replica answers once");
        self.outstanding -= 1;
        self.failures.push(failure);
    }

    /// What this means for the write.
    pub fn progress(&self) -> Progress {
        if self.received >= self.block_for {
            Progress::Enough
        } else if self.received + self.outstanding < self.block_for {
            Progress::TooFew
        } else {
            Progress::Waiting
        }
    }
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
            let mut answers = Answers { level, kind, block_for, received: 0, outstanding, failures: Vec::new() };
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
