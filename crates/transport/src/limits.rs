//! The limits of connections, and what happens at each of them.
//!
//! The names in brackets are the keys of `cassandra.yaml` that set a limit; a limit without one
//! exists only in Helenus. The constants below cannot be set; their relations are checked at the
//! end.

use std::time::Duration;

/// Limits of a server. [`Default`] is Cassandra's default where it has one.
#[derive(Clone, Debug)]
pub struct ServerLimits {
    /// Bytes of the largest message without segments, its header included; its body is no longer
    /// after decompression either. A larger one is thrown away as it comes and answered with an
    /// error; the connection goes on (`native_transport_max_frame_size`).
    pub frame_size_max: usize,
    /// Bytes of the largest body of a message in segments (`native_transport_max_message_size`).
    pub message_size_max: usize,
    /// Most requests of one connection that wait for something. At the limit its socket is not
    /// read.
    pub connection_requests_max: usize,
    /// Most bytes of these requests. At the limit the socket is not read.
    pub connection_bytes_max: usize,
    /// Most bytes of all waiting requests and of the memory that they hold. Large bodies are
    /// counted from their first byte on, apart, and may take half as much besides. At the limit a
    /// request is refused if its client asked for that, and otherwise waits unread
    /// (`native_transport_max_request_data_in_flight`).
    pub total_bytes_max: usize,
    /// Most connections. A further one is refused and closed; `None`: no limit
    /// (`native_transport_max_concurrent_connections`).
    pub connections_max: Option<usize>,
    /// Most connections from one address. A further one is refused and closed; `None`: no limit
    /// (`native_transport_max_concurrent_connections_per_ip`).
    pub connections_per_ip_max: Option<usize>,
    /// Time after which a connection is closed on which neither side sends anything and no request
    /// waits; `None`: never (`native_transport_idle_timeout`).
    pub idle_timeout: Option<Duration>,
    /// True: the kernel asks clients that are silent for hours for a sign of life, and closes
    /// their connections if there is none (`rpc_keepalive`).
    pub keepalive: bool,
    /// Longest time from accept to the end of the handshake; then the connection is closed.
    pub startup_timeout: Duration,
    /// Longest time of a request; then it is dropped and answered with an error. Reads and writes
    /// have shorter timeouts of their own, with better answers.
    pub request_timeout: Duration,
    /// Longest time from the read of a request to its execution. After it the request is refused:
    /// its client has given up waiting, or soon will (`native_transport_timeout`).
    pub queue_timeout: Duration,
    /// Most bytes of responses that the client has not taken. At the limit nothing more is
    /// executed or read for it.
    pub out_size_max: usize,
    /// Time after which a client is closed that takes nothing of a full out buffer, or sends
    /// nothing more of a large body that it has begun. One that takes very little of it is closed
    /// later.
    pub write_timeout: Duration,
    /// Longest time that a drain waits for requests in flight.
    pub drain_timeout: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            frame_size_max: 16 << 20,
            message_size_max: 16 << 20,
            connection_requests_max: 1024,
            connection_bytes_max: 16 << 20,
            total_bytes_max: 256 << 20,
            connections_max: None,
            connections_per_ip_max: None,
            idle_timeout: None,
            keepalive: true,
            startup_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(12),
            queue_timeout: Duration::from_secs(12),
            out_size_max: 1 << 20,
            write_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(10),
        }
    }
}

/// Bytes from which on a body is counted among the requests in flight before it is read. Smaller
/// ones are counted once they have come.
pub const LARGE_BODY: usize = 64 << 10;

/// Most bytes of one read of a socket, unless a larger message is on its way.
pub(crate) const READ_SIZE: usize = 16 << 10;

/// Most bytes of the first read: a client that sends a request at a time does not need more. A read
/// that fills the buffer makes the next one four times as large, up to [`READ_SIZE`].
pub(crate) const FIRST_READ_SIZE: usize = 1 << 10;

/// Most bytes of a read while a connection is idle, so that many idle connections cost little.
pub(crate) const IDLE_READ_SIZE: usize = 512;

/// A large body must be there within this many times [`ServerLimits::write_timeout`], however
/// steadily it comes: it has room that large requests of other clients wait for. Clients have
/// given up such a request by then.
pub(crate) const BODY_TIMEOUTS: u32 = 10;

/// Bytes a second that a client must take of its answers at least, on average over
/// [`SLOW_READER_TIMEOUTS`], as long as they wait for the client. A client that takes less is
/// closed: its answers have room that large results of other clients wait for. Slow links between
/// continents carry many times as much.
pub(crate) const SLOW_READER_BYTES_PER_SECOND: u64 = 512;

/// The time over which [`SLOW_READER_BYTES_PER_SECOND`] is an average, in multiples of
/// [`ServerLimits::write_timeout`]. The kernel takes bytes of a slow client in lumps of up to a
/// third of its buffer, seconds apart, and several lumps must fit.
pub(crate) const SLOW_READER_TIMEOUTS: u32 = 4;

/// Bytes for which a waiting request counts besides its body and its future: for its plan, and for
/// the rows that it has read.
pub(crate) const WAITING_SIZE: usize = 4 << 10;

/// Most boxes of futures that one connection keeps for reuse.
pub(crate) const SPARE_BOXES_MAX: usize = 16;

/// Bytes of an out buffer above which it is freed when it is empty.
pub(crate) const OUT_SIZE_KEPT: usize = 256 << 10;

/// Bytes of an out buffer up to which it does not count as a result; each connection may have as
/// much. A larger one that is empty is freed when results have taken half of their memory.
pub(crate) const OUT_UNCOUNTED: usize = 16 << 10;

/// Bytes from which on a response is copied into the out buffer slice by slice.
pub const OUT_LARGE: usize = 256 << 10;

/// Bytes of such a slice.
pub(crate) const OUT_SLICE_SIZE: usize = 256 << 10;

/// Bytes of a slice when results have taken half of their memory.
pub(crate) const OUT_SLICE_SIZE_SCARCE: usize = 16 << 10;

/// Bytes that one connection writes before others have their turn. The kernel copies so many in a
/// fraction of a millisecond.
pub(crate) const TURN_WRITE_MAX: usize = 1 << 20;

/// Bytes that one connection reads before others have their turn.
pub(crate) const TURN_READ_MAX: usize = 1 << 20;

/// Time for which one connection executes requests before others have their turn.
pub(crate) const TURN_MAX: Duration = Duration::from_millis(1);

/// Requests between two looks at the clock for [`TURN_MAX`].
pub(crate) const TURN_LOOK_EVERY: u32 = 4;

/// Time for which a client that has closed its side may still read answers. Then it is taken to be
/// gone, and its requests are dropped.
pub(crate) const HUNG_UP_PATIENCE: Duration = Duration::from_secs(1);

/// Most events that wait for one connection. At the limit it is closed: its driver reconnects and
/// reads the state anew.
pub(crate) const CONNECTION_EVENTS_MAX: usize = 1024;

/// Most events on their way to one worker. At the limit all its connections that asked for events
/// are closed.
pub(crate) const WORKER_EVENTS_MAX: usize = 4096;

/// Time without bytes after which a connection frees its buffers.
pub(crate) const SHRINK_AFTER: Duration = Duration::from_secs(10);

/// Most connections over the limit that are being told so, of all workers together. Further ones
/// are closed without an answer.
pub(crate) const REFUSALS_MAX: usize = 64;

/// The least time between two lines of the log about refused connections, and between two about
/// connections that cannot be accepted.
pub(crate) const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// Most bytes that are still read from a connection after its last response, so that closing it
/// does not destroy that response.
pub(crate) const LINGER_SIZE_MAX: usize = 1 << 20;

/// Longest time for which a connection is still read after its last response.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

/// Most connections on their way from the worker that accepted them to another one. At the limit
/// the accepting worker keeps them.
pub(crate) const ARRIVALS_MAX: usize = 1024;

/// Time between two looks at timeouts; these may be late by as much.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// Time for which a worker leaves its listener alone after an error of accept (too many open
/// files).
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Longest time that [`crate::ServerHandle::resume`] waits for the workers to listen.
pub(crate) const RESUME_MAX: Duration = Duration::from_secs(10);

const _: () = {
    assert!(IDLE_READ_SIZE <= FIRST_READ_SIZE && FIRST_READ_SIZE <= READ_SIZE, "reads only grow");
    assert!(READ_SIZE < LARGE_BODY, "a large body is seen before it is read");
    assert!(OUT_SLICE_SIZE_SCARCE <= OUT_UNCOUNTED, "a slice fits in what each connection may hold");
    assert!(OUT_SLICE_SIZE <= OUT_SIZE_KEPT && OUT_SLICE_SIZE <= TURN_WRITE_MAX, "a turn writes a slice");
    assert!(OUT_SLICE_SIZE <= OUT_LARGE, "a response that is cut has a slice at least");
    assert!(READ_SIZE <= TURN_READ_MAX, "a turn reads what one read brings");
    assert!(WAITING_SIZE < LARGE_BODY, "a small request counts as one while it waits");
    assert!(CONNECTION_EVENTS_MAX <= WORKER_EVENTS_MAX, "the events of a connection come through its worker");
    assert!(TICK.as_millis() < HUNG_UP_PATIENCE.as_millis(), "timeouts are looked at before they are over");
    assert!(TICK.as_millis() < LINGER.as_millis(), "a connection that lingers is looked at before its end");
};
