//! Bounds and times of links, with the names of Cassandra's settings.

use std::time::Duration;

/// Most bytes that wait on one outbound link before the reserve is used
/// (`internode_application_send_queue_capacity`).
pub const QUEUE_SIZE_MAX: usize = 4 << 20;

/// Most bytes that may wait on all outbound links to one peer beyond [`QUEUE_SIZE_MAX`] of each
/// (`internode_application_send_queue_reserve_endpoint_capacity`), so that one peer that takes
/// nothing leaves room for the others. A message that finds no room here is refused: a write
/// becomes a hint, a read fails as if it had timed out.
pub const RESERVE_EACH_MAX: usize = 128 << 20;

/// Most bytes that may wait on the links to all peers together, beyond [`QUEUE_SIZE_MAX`] of each
/// (`internode_application_send_queue_reserve_global_capacity`).
pub const RESERVE_SIZE_MAX: usize = 512 << 20;

/// Bytes of the largest message (`internode_max_message_size`). A larger one is refused by its
/// sender; a peer's larger message closes its link.
pub const MESSAGE_SIZE_MAX: usize = 128 << 20;

/// Time after which a connection attempt without an answer is given up for now
/// (`internode_tcp_connect_timeout`).
pub const CONNECT_MAX: Duration = Duration::from_secs(2);

/// Time after which a link whose peer takes no byte is closed and opened anew
/// (`internode_tcp_user_timeout`).
pub const USER_TIMEOUT: Duration = Duration::from_secs(30);

/// [`USER_TIMEOUT`] of links for streams (`internode_streaming_tcp_user_timeout`).
pub const STREAM_USER_TIMEOUT: Duration = Duration::from_secs(300);

/// Longest time of the whole handshake (three times `request_timeout`).
pub const HANDSHAKE_MAX: Duration = Duration::from_secs(30);

/// The first pause after a failed attempt; each following one is twice as long, up to
/// [`RETRY_MAX`].
pub const RETRY_MIN: Duration = Duration::from_millis(100);

/// The longest pause between two attempts while messages wait.
pub const RETRY_MAX: Duration = Duration::from_secs(1);

/// Most bytes of messages that have come in parts for each inbound link, before the memory is used
/// that all share, [`RECEIVE_RESERVE_MAX`].
pub const RECEIVE_OWN_MAX: usize = 256 << 10;

/// Most bytes of messages that have come in parts, on all inbound links together
/// (`internode_application_receive_queue_reserve_global_capacity`).
pub const RECEIVE_RESERVE_MAX: usize = 512 << 20;

/// Time after which a link that finds no room for its messages is closed.
pub const RECEIVE_WAIT_MAX: Duration = Duration::from_secs(10);

/// Time between two looks for room.
pub const RECEIVE_RETRY: Duration = Duration::from_millis(10);

/// Bytes taken from a socket at once.
pub const READ_SIZE: usize = 64 << 10;

/// Bytes written to a socket at once; further messages follow when these are on their way.
pub const WRITE_SIZE: usize = 256 << 10;

/// Most inbound connections of a node: three from each peer, and as many again while old ones have
/// not ended. Further ones are closed.
pub const INBOUND_MAX: usize = 6 * 1024;

/// Time after which the same reason for closing links of the same machine is logged again.
pub const LOG_REPEAT_INTERVAL: Duration = Duration::from_secs(60);

/// Most reasons for closing links that are remembered. Beyond this number all are forgotten, and
/// logged again.
pub const LOGGED_MAX: usize = 256;

/// Most peers to which links can be open: more than a ring has nodes. A message to a further one
/// is refused.
pub const PEERS_MAX: usize = 1024;

const _: () = assert!(READ_SIZE <= QUEUE_SIZE_MAX && WRITE_SIZE <= QUEUE_SIZE_MAX);
const _: () = assert!(MESSAGE_SIZE_MAX <= RESERVE_EACH_MAX && RESERVE_EACH_MAX <= RESERVE_SIZE_MAX);
const _: () = assert!(MESSAGE_SIZE_MAX <= RECEIVE_RESERVE_MAX);
const _: () = assert!(READ_SIZE <= RECEIVE_OWN_MAX, "what is read at once has room of its own");
const _: () = assert!(3 * PEERS_MAX <= INBOUND_MAX, "each peer may open its three links");
const _: () = {
    assert!(RETRY_MIN.as_millis() < RETRY_MAX.as_millis(), "pauses grow");
    assert!(CONNECT_MAX.as_secs() < HANDSHAKE_MAX.as_secs(), "a handshake takes longer than a connection");
    assert!(USER_TIMEOUT.as_secs() < STREAM_USER_TIMEOUT.as_secs(), "streams wait longer than messages");
    assert!(RECEIVE_RETRY.as_millis() < RECEIVE_WAIT_MAX.as_millis(), "a link looks for room more than once");
};
