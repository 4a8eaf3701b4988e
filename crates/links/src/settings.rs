//! [`LinkSettings`]: bounds and times of links, as operators set them.

use std::time::Duration;

use env::SocketOptions;

use crate::limits::{
    CONNECT_MAX, MESSAGE_SIZE_MAX, QUEUE_SIZE_MAX, RECEIVE_RESERVE_MAX, RESERVE_EACH_MAX, RESERVE_SIZE_MAX,
    STREAM_USER_TIMEOUT, USER_TIMEOUT,
};

/// The settings of links that are keys of cassandra.yaml. [`Default`] is Cassandra's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkSettings {
    /// Time after which an attempt to connect without an answer is given up
    /// (`internode_tcp_connect_timeout`).
    pub connect_timeout: Duration,
    /// Time after which a link whose peer takes no byte is closed and opened anew
    /// (`internode_tcp_user_timeout`); zero: never.
    pub user_timeout: Duration,
    /// `user_timeout` of links for streams (`internode_streaming_tcp_user_timeout`); zero: never.
    pub stream_user_timeout: Duration,
    /// Bytes of the kernel's buffer for sending on a link that this node opens
    /// (`internode_socket_send_buffer_size`); 0: the kernel chooses.
    pub send_buffer: usize,
    /// Bytes of the kernel's buffer for received bytes on a link that a peer has opened
    /// (`internode_socket_receive_buffer_size`); 0: the kernel chooses.
    pub receive_buffer: usize,
    /// Bytes of the largest message that is sent or taken (`internode_max_message_size`).
    pub message_size_max: usize,
    /// Most bytes that wait on one outbound link before the reserves are used
    /// (`internode_application_send_queue_capacity`).
    pub queue: usize,
    /// Most bytes that may wait on all outbound links to one peer beyond the room of each
    /// (`internode_application_send_queue_reserve_endpoint_capacity`).
    pub reserve_each: usize,
    /// Most bytes that may wait on all outbound links together beyond the room of each
    /// (`internode_application_send_queue_reserve_global_capacity`).
    pub reserve: usize,
    /// Most bytes of messages that have come in parts, on all inbound links together
    /// (`internode_application_receive_queue_reserve_global_capacity`).
    pub receive_reserve: usize,
    /// True: the age of a message is counted by its sender's clock. False: it is counted from the
    /// arrival (`internode_timeout`).
    pub trusts_clocks: bool,
    /// True: peers may connect at the broadcast address too, if it is another one than the address
    /// that is listened on (`listen_on_broadcast_address`).
    pub listens_on_broadcast: bool,
}

impl Default for LinkSettings {
    fn default() -> Self {
        Self {
            connect_timeout: CONNECT_MAX,
            user_timeout: USER_TIMEOUT,
            stream_user_timeout: STREAM_USER_TIMEOUT,
            send_buffer: 0,
            receive_buffer: 0,
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

impl LinkSettings {
    /// The options of the socket of a link for messages that this node opens.
    pub(crate) fn opened(&self) -> SocketOptions {
        SocketOptions {
            user_timeout: self.user_timeout,
            send_buffer: self.send_buffer,
            ..SocketOptions::keepalive(true)
        }
    }

    /// The options of the socket of a link for a stream that this node opens.
    pub(crate) fn opened_for_stream(&self) -> SocketOptions {
        SocketOptions { user_timeout: self.stream_user_timeout, ..self.opened() }
    }

    /// The options of the sockets of links that peers open.
    pub(crate) fn accepted(&self) -> SocketOptions {
        SocketOptions { receive_buffer: self.receive_buffer, ..SocketOptions::keepalive(true) }
    }
}
