//! The requests of other nodes that are under way ([`crate::serve`]): how many, and their bounds.

use std::sync::atomic::AtomicUsize;

/// Most requests of other nodes that are under way at one time. Further requests are answered with
/// a failure.
pub(crate) const CALLS_MAX: usize = 32_768;

/// Most bytes of the payloads of requests that are under way
/// (`internode_application_receive_queue_reserve_endpoint_capacity`), and of what is made of a
/// batch. A request beyond it is answered with a failure.
pub(crate) const CALLS_SIZE_MAX: usize = 128 << 20;

/// Bytes that a mutation of a batch counts with besides its own while the record of the batch is
/// stored: for its slice of the payload, and for its cell of the record.
pub(crate) const STORED_SIZE: usize = 160;

/// The requests of other nodes that are under way.
#[derive(Default)]
pub(crate) struct InFlightRequests {
    /// Number of these requests.
    pub(crate) calls: AtomicUsize,
    /// Bytes of the payloads of these requests, and of what is made of batches.
    pub(crate) bytes: AtomicUsize,
}
