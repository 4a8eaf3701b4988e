//! Verbs: what a message asks for or answers, with its number, priority and answer.
//!
//! One line a verb. `org.apache.cassandra.net.Verb` of 5.0.8; verbs that Cassandra declares but
//! never sends are left out.

/// How urgent a verb is. Messages of P0 go on the URGENT link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)] // the names are those of the protocol
pub enum Priority {
    P0,
    P1,
    P2,
    P3,
    P4,
}

macro_rules! verbs {
    ($($name:ident $id:literal $text:literal $priority:ident $answer:expr;)*) => {
        /// The subject of a message: a request of some kind, or the answer to one.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        #[allow(missing_docs)] // the names are those of the protocol
        pub enum Verb {
            $($name = $id,)*
        }

        impl Verb {
            /// All verbs.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The verb with a number.
            pub const fn from_id(id: i32) -> Option<Self> {
                match id {
                    $($id => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The name as Cassandra prints it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// How urgent it is.
            pub const fn priority(self) -> Priority {
                match self {
                    $(Self::$name => Priority::$priority,)*
                }
            }

            /// The verb of the answer. `None`: it is an answer itself, or none is expected.
            pub const fn answer(self) -> Option<Self> {
                match self {
                    $(Self::$name => $answer,)*
                }
            }
        }
    };
}

const NONE: Option<Verb> = None;
const REPAIR: Option<Verb> = Some(Verb::RepairRsp);

verbs! {
    MutationReq 0 "MUTATION_REQ" P3 Some(Verb::MutationRsp);
    HintReq 1 "HINT_REQ" P4 Some(Verb::HintRsp);
    ReadRepairReq 2 "READ_REPAIR_REQ" P1 Some(Verb::ReadRepairRsp);
    ReadReq 3 "READ_REQ" P3 Some(Verb::ReadRsp);
    BatchStoreReq 5 "BATCH_STORE_REQ" P3 Some(Verb::BatchStoreRsp);
    BatchRemoveReq 6 "BATCH_REMOVE_REQ" P3 NONE;
    RangeReq 9 "RANGE_REQ" P3 Some(Verb::RangeRsp);
    GossipDigestSyn 14 "GOSSIP_DIGEST_SYN" P0 NONE;
    GossipDigestAck 15 "GOSSIP_DIGEST_ACK" P0 NONE;
    GossipDigestAck2 16 "GOSSIP_DIGEST_ACK2" P0 NONE;
    SchemaPushReq 18 "SCHEMA_PUSH_REQ" P1 NONE;
    TruncateReq 19 "TRUNCATE_REQ" P0 Some(Verb::TruncateRsp);
    SchemaVersionReq 20 "SCHEMA_VERSION_REQ" P1 Some(Verb::SchemaVersionRsp);
    ReplicationDoneReq 22 "REPLICATION_DONE_REQ" P0 Some(Verb::ReplicationDoneRsp);
    CounterMutationReq 24 "COUNTER_MUTATION_REQ" P2 Some(Verb::CounterMutationRsp);
    SnapshotReq 27 "SNAPSHOT_REQ" P0 Some(Verb::SnapshotRsp);
    SchemaPullReq 28 "SCHEMA_PULL_REQ" P1 Some(Verb::SchemaPullRsp);
    GossipShutdown 29 "GOSSIP_SHUTDOWN" P0 NONE;
    EchoReq 31 "ECHO_REQ" P0 Some(Verb::EchoRsp);
    PaxosPrepareReq 33 "PAXOS_PREPARE_REQ" P2 Some(Verb::PaxosPrepareRsp);
    PaxosProposeReq 34 "PAXOS_PROPOSE_REQ" P2 Some(Verb::PaxosProposeRsp);
    PaxosCommitReq 35 "PAXOS_COMMIT_REQ" P2 Some(Verb::PaxosCommitRsp);
    PingReq 37 "PING_REQ" P1 Some(Verb::PingRsp);
    Paxos2CommitRemoteReq 38 "PAXOS2_COMMIT_REMOTE_REQ" P2 Some(Verb::MutationRsp);
    Paxos2PrepareReq 40 "PAXOS2_PREPARE_REQ" P2 Some(Verb::Paxos2PrepareRsp);
    Paxos2PrepareRefreshReq 41 "PAXOS2_PREPARE_REFRESH_REQ" P2 Some(Verb::Paxos2PrepareRefreshRsp);
    Paxos2ProposeReq 42 "PAXOS2_PROPOSE_REQ" P2 Some(Verb::Paxos2ProposeRsp);
    Paxos2CommitAndPrepareReq 43 "PAXOS2_COMMIT_AND_PREPARE_REQ" P2 Some(Verb::Paxos2CommitAndPrepareRsp);
    Paxos2RepairReq 44 "PAXOS2_REPAIR_REQ" P2 Some(Verb::Paxos2RepairRsp);
    Paxos2CleanupStartPrepareReq 45 "PAXOS2_CLEANUP_START_PREPARE_REQ" P2 Some(Verb::Paxos2CleanupStartPrepareRsp);
    Paxos2CleanupReq 46 "PAXOS2_CLEANUP_REQ" P2 Some(Verb::Paxos2CleanupRsp);
    Paxos2CleanupFinishPrepareReq 47 "PAXOS2_CLEANUP_FINISH_PREPARE_REQ" P2 Some(Verb::Paxos2CleanupFinishPrepareRsp);
    Paxos2CleanupCompleteReq 48 "PAXOS2_CLEANUP_COMPLETE_REQ" P2 Some(Verb::Paxos2CleanupCompleteRsp);
    Paxos2PrepareRsp 50 "PAXOS2_PREPARE_RSP" P2 NONE;
    Paxos2PrepareRefreshRsp 51 "PAXOS2_PREPARE_REFRESH_RSP" P2 NONE;
    Paxos2ProposeRsp 52 "PAXOS2_PROPOSE_RSP" P2 NONE;
    Paxos2CommitAndPrepareRsp 53 "PAXOS2_COMMIT_AND_PREPARE_RSP" P2 NONE;
    Paxos2RepairRsp 54 "PAXOS2_REPAIR_RSP" P2 NONE;
    Paxos2CleanupStartPrepareRsp 55 "PAXOS2_CLEANUP_START_PREPARE_RSP" P2 NONE;
    Paxos2CleanupRsp 56 "PAXOS2_CLEANUP_RSP" P2 NONE;
    Paxos2CleanupRsp2 57 "PAXOS2_CLEANUP_RSP2" P2 NONE;
    Paxos2CleanupFinishPrepareRsp 58 "PAXOS2_CLEANUP_FINISH_PREPARE_RSP" P2 NONE;
    Paxos2CleanupCompleteRsp 59 "PAXOS2_CLEANUP_COMPLETE_RSP" P2 NONE;
    MutationRsp 60 "MUTATION_RSP" P1 NONE;
    HintRsp 61 "HINT_RSP" P1 NONE;
    ReadRepairRsp 62 "READ_REPAIR_RSP" P1 NONE;
    ReadRsp 63 "READ_RSP" P2 NONE;
    BatchStoreRsp 65 "BATCH_STORE_RSP" P1 NONE;
    RangeRsp 69 "RANGE_RSP" P2 NONE;
    TruncateRsp 79 "TRUNCATE_RSP" P0 NONE;
    SchemaVersionRsp 80 "SCHEMA_VERSION_RSP" P1 NONE;
    ReplicationDoneRsp 82 "REPLICATION_DONE_RSP" P0 NONE;
    CounterMutationRsp 84 "COUNTER_MUTATION_RSP" P1 NONE;
    SnapshotRsp 87 "SNAPSHOT_RSP" P0 NONE;
    SchemaPullRsp 88 "SCHEMA_PULL_RSP" P1 NONE;
    EchoRsp 91 "ECHO_RSP" P0 NONE;
    PaxosPrepareRsp 93 "PAXOS_PREPARE_RSP" P2 NONE;
    PaxosProposeRsp 94 "PAXOS_PROPOSE_RSP" P2 NONE;
    PaxosCommitRsp 95 "PAXOS_COMMIT_RSP" P2 NONE;
    PingRsp 97 "PING_RSP" P1 NONE;
    SchemaPushRsp 98 "SCHEMA_PUSH_RSP" P1 NONE;
    FailureRsp 99 "FAILURE_RSP" P0 NONE;
    RepairRsp 100 "REPAIR_RSP" P1 NONE;
    ValidationReq 101 "VALIDATION_REQ" P1 REPAIR;
    ValidationRsp 102 "VALIDATION_RSP" P1 REPAIR;
    SyncReq 103 "SYNC_REQ" P1 REPAIR;
    SyncRsp 104 "SYNC_RSP" P1 REPAIR;
    PrepareMsg 105 "PREPARE_MSG" P1 REPAIR;
    SnapshotMsg 106 "SNAPSHOT_MSG" P1 REPAIR;
    CleanupMsg 107 "CLEANUP_MSG" P1 REPAIR;
    PrepareConsistentReq 108 "PREPARE_CONSISTENT_REQ" P1 REPAIR;
    PrepareConsistentRsp 109 "PREPARE_CONSISTENT_RSP" P1 REPAIR;
    FinalizeProposeMsg 110 "FINALIZE_PROPOSE_MSG" P1 REPAIR;
    FinalizePromiseMsg 111 "FINALIZE_PROMISE_MSG" P1 REPAIR;
    FinalizeCommitMsg 112 "FINALIZE_COMMIT_MSG" P1 REPAIR;
    FailedSessionMsg 113 "FAILED_SESSION_MSG" P1 REPAIR;
    StatusReq 114 "STATUS_REQ" P1 NONE;
    StatusRsp 115 "STATUS_RSP" P1 NONE;
}

impl Verb {
    /// The number on the wire.
    pub const fn id(self) -> i32 {
        self as i32
    }

    /// Whether it answers another verb, by its number. STATUS_RSP is a message of its own.
    pub fn is_answer(self) -> bool {
        let has_form = self.name().ends_with("_RSP") && self.answer().is_none();
        matches!(self, Self::FailureRsp | Self::RepairRsp) || has_form && self != Self::StatusRsp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unique_and_found_again() {
        let mut ids: Vec<_> = Verb::ALL.iter().map(|verb| verb.id()).collect();
        assert!(ids.is_sorted());
        ids.dedup();
        assert_eq!(ids.len(), Verb::ALL.len());
        for verb in Verb::ALL {
            assert_eq!(Verb::from_id(verb.id()), Some(*verb));
        }
        assert_eq!(Verb::from_id(4), None);
        assert_eq!(Verb::from_id(-1), None);
    }

    #[test]
    fn an_answer_has_no_answer_but_in_repair() {
        for verb in Verb::ALL {
            if let Some(answer) = verb.answer() {
                assert!(answer.is_answer(), "{}", verb.name());
            }
        }
        assert!(!Verb::ValidationRsp.is_answer(), "repair's results are requests of their own");
        assert!(!Verb::StatusRsp.is_answer(), "the state of a session is told by a message of its own");
    }
}
