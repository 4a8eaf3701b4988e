//! The start of a node on an open engine: identity, clocks, the ring, and batches that a crash
//! left.

use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use rows::Mutation;
use storage::Engine;
use tokio::sync::Semaphore;

use crate::batch_replay::BatchReplay;
use crate::cas_metrics::CasMetrics;
use crate::clock::TimeUuids;
use crate::coordinator::scan::SCANS_MAX;
use crate::coordinator::truncate::TRUNCATIONS_MAX;
use crate::error::NodeError;
use crate::handoff::Handoff;
use crate::identity::{Identity, IdentityOptions, local_table};
use crate::in_flight_requests::InFlightRequests;
use crate::membership_state::MembershipState;
use crate::node::{Node, Timeouts};
use crate::read_repair_metrics::ReadRepairMetrics;
use crate::repair_state::Repairs;
use crate::replica::Replica;
use crate::streaming_state::StreamingState;
use crate::stripes::Stripes;
use crate::view_tasks::ViewTasks;
use crate::{clock_mark, compaction_history, peers, topology, traces};

impl Node {
    /// A node on an engine: finds or makes its identity, writes `system.local`, applies batches
    /// that a crash left.
    pub fn open(engine: Arc<Engine>, options: IdentityOptions, timeouts: Timeouts) -> Result<Arc<Self>, NodeError> {
        let env = engine.env.clone();
        let (clock, clock_mark) = clock_mark::open(&engine);
        let uuids = TimeUuids::new(&env);
        let identity = Identity::find(&engine, &env, &uuids, options)?;
        engine.set_host_id(identity.host_id);
        compaction_history::keep(&engine);
        let timeouts = ArcSwap::from_pointee(timeouts);
        let (counter_locks, partition_locks) = (Stripes::default(), Stripes::default());
        let schema_changes = Arc::default();
        let sampling = Arc::default();
        let replica = Replica::new(&engine, &sampling)?;
        let ring = ArcSwap::from_pointee(topology::ring_of_one(&identity, &engine.schema()));
        let streaming_state = StreamingState::new(&env);
        let node = Self {
            engine,
            env,
            identity,
            clock,
            _clock_mark: clock_mark,
            size_estimates: OnceLock::new(),
            uuids,
            timeouts,
            trace_ttl: AtomicU32::new(traces::TTL_DEFAULT),
            spans: OnceLock::new(),
            group_functions: OnceLock::new(),
            protection: ArcSwap::default(),
            paxos: ArcSwap::default(),
            out_of_range: Default::default(),
            incompatible: Default::default(),
            left_out_hints: Default::default(),
            tracks_thresholds: AtomicBool::new(false),
            replica,
            ring,
            scans: Arc::new(Semaphore::new(SCANS_MAX)),
            truncations: Arc::new(Semaphore::new(TRUNCATIONS_MAX)),
            sampling,
            counter_locks,
            partition_locks,
            cas: CasMetrics::default(),
            read_repairs: ReadRepairMetrics::default(),
            batch_replay: BatchReplay::default(),
            handoff: Handoff::default(),
            streaming_state,
            repairs: Repairs::default(),
            membership_state: MembershipState::default(),
            this: OnceLock::new(),
            view_tasks: ViewTasks::default(),
            in_flight_requests: InFlightRequests::default(),
            schema_changes,
            schema_listener: OnceLock::new(),
        };
        peers::migrate_legacy_peers(&node)?;
        match node.replay_batches() {
            Ok(0) => {}
            Ok(replayed) => tracing::info!(batches = replayed, "logged batches that were under way are applied"),
            Err(error) => tracing::error!(%error, "the batch log cannot be replayed; it is tried again"),
        }
        node.write_local()?;
        let node = Arc::new(node);
        node.start_batch_replay();
        node.start_size_estimates();
        Ok(node)
    }

    fn write_local(&self) -> Result<(), NodeError> {
        self.engine.apply(&[self.local_row()])?;
        Ok(())
    }

    /// The row of `system.local`.
    pub(crate) fn local_row(&self) -> Mutation {
        let table = local_table(&self.engine);
        self.identity.row(&table, self.engine.schema().version, self.clock.next_micros())
    }
}
