//! [`LinkSettings`]: how much links may hold and how long they wait, as operators set it.

use std::time::Duration;

use crate::limits::{
    CONNECT_MAX, MESSAGE_SIZE_MAX, QUEUE_SIZE_MAX, RECEIVE_RESERVE_MAX, RESERVE_EACH_MAX, RESERVE_SIZE_MAX,
    STREAM_USER_TIMEOUT, USER_TIMEOUT,
};

/// The settings of links that are keys of cassandra.yaml. [`Default`] is Cassandra's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkSettings {
    /// An attempt to connect that has no answer for so long is given up
    /// (`internode_tcp_connect_timeout`).
    pub connect_timeout: Duration,
    /// A link whose peer takes no byte for so long is closed and opened anew
    /// (`internode_tcp_user_timeout`); zero: never.
    pub user_timeout: Duration,
    /// As `user_timeout`, for streams (`internode_streaming_tcp_user_timeout`); zero: never.
    pub stream_user_timeout: Duration,
    /// Bytes of the largest message that is sent or taken (`internode_max_message_size`).
    pub message_size_max: usize,
    /// Bytes that may wait on one outbound link before the reserves are touched
    /// (`internode_application_send_queue_capacity`).
    pub queue: usize,
    /// Bytes that may wait on all outbound links to one peer beyond the room of each
    /// (`internode_application_send_queue_reserve_endpoint_capacity`).
    pub reserve_each: usize,
    /// Bytes that may wait on all outbound links together beyond the room of each
    /// (`internode_application_send_queue_reserve_global_capacity`).
    pub reserve: usize,
    /// Bytes of messages that have come in parts, on all inbound links together
    /// (`internode_application_receive_queue_reserve_global_capacity`).
    pub receive_reserve: usize,
    /// The age of a message is that of its sender's clock. False: a message counts as made when it
    /// comes (`internode_timeout`).
    pub trusts_clocks: bool,
    /// Peers may connect at the broadcast address too, where it is not the address that is
    /// listened on (`listen_on_broadcast_address`).
    pub listens_on_broadcast: bool,
}

impl Default for LinkSettings {
    fn default() -> Self {
        Self {
            connect_timeout: CONNECT_MAX,
            user_timeout: USER_TIMEOUT,
            stream_user_timeout: STREAM_USER_TIMEOUT,
            message_size_max: MESSAGE_SIZE_MAX,
            queue: QUEUE_SIZE_MAX,
            reserve_each: RESERVE_EACH_MAX,
            reserve: RESERVE_SIZE_MAX,
            receive_reserve: RECEIVE_RESERVE_MAX,
            trusts_clocks: true,
            listens_on_broadcast: false,
        }
    }
}
