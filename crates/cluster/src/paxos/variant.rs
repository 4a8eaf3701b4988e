//! `paxos_variant`: which rounds a coordinator uses, and which of them it leaves out.
//!
//! Nodes of all variants understand each other; replicas serve the rounds of both versions. Agrees
//! with `org.apache.cassandra.config.Config.PaxosVariant` and with what
//! `service.StorageProxy` and `service.paxos.Paxos` do of it: `v1_without_linearizable_reads_or_
//! rejected_writes` leaves out the proposal of reads, and that of rejected writes nevertheless not.

/// The rounds of a coordinator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PaxosVariant {
    /// Whether the rounds are those of v2, whose promises come with a read.
    pub is_v2: bool,
    /// Whether a read proposes a change of nothing where it is not linearizable without.
    pub settles_reads: bool,
    /// Whether a statement whose condition does not hold proposes a change of nothing where its
    /// read is not linearizable without.
    pub settles_rejections: bool,
}

impl PaxosVariant {
    /// `v1`
    pub const V1: Self = Self { is_v2: false, settles_reads: true, settles_rejections: true };
    /// `v2`
    pub const V2: Self = Self { is_v2: true, settles_reads: true, settles_rejections: true };

    /// The variant of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "v1" => Self::V1,
            "v1_without_linearizable_reads_or_rejected_writes" => Self { settles_reads: false, ..Self::V1 },
            "v2" => Self::V2,
            "v2_without_linearizable_reads" => Self { settles_reads: false, ..Self::V2 },
            "v2_without_linearizable_reads_or_rejected_writes" => {
                Self { settles_reads: false, settles_rejections: false, ..Self::V2 }
            }
            _ => return None,
        })
    }
}
