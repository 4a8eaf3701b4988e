//! The keys of links between nodes: times and sizes. Agrees with
//! `DatabaseDescriptor.applySimpleConfig` in what is refused.

use std::time::Duration;

use crate::reader::Reader;

/// How much links between nodes may hold and how long they wait. Sizes are in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Links {
    /// internode_tcp_connect_timeout: an attempt to connect is given up after so long
    pub connect_timeout: Duration,
    /// internode_tcp_user_timeout: a link whose peer takes no byte for so long is closed; 0: never
    pub user_timeout: Duration,
    /// internode_socket_send_buffer_size: the kernel's buffer of links that this node opens; 0: the
    /// kernel chooses
    pub send_buffer: u64,
    /// internode_socket_receive_buffer_size: the kernel's buffer of links that peers open; 0: the
    /// kernel chooses
    pub receive_buffer: u64,
    /// internode_max_message_size; where the key is not set, the lesser of the reserves of one peer
    pub message_size_max: u64,
    /// internode_application_send_queue_capacity: what may wait on one link before the reserves are
    /// touched
    pub send_queue: u64,
    /// internode_application_send_queue_reserve_endpoint_capacity: what may wait on all links to a
    /// peer beyond that
    pub send_reserve_each: u64,
    /// internode_application_send_queue_reserve_global_capacity: what may wait on all links beyond
    /// that
    pub send_reserve: u64,
    /// internode_application_receive_queue_reserve_global_capacity: messages that come in parts, of
    /// all links
    pub receive_reserve: u64,
    /// internode_timeout: the age of a message is that of its sender's clock; otherwise a message
    /// counts as made when it comes
    pub trusts_clocks: bool,
    /// listen_on_broadcast_address: peers may connect at broadcast_address too
    pub listens_on_broadcast: bool,
}

const MESSAGE_SIZE: &str = "internode_max_message_size";

/// The reserves that a message of the greatest size must fit into.
const RESERVES: [&str; 4] = [
    "internode_application_receive_queue_reserve_endpoint_capacity",
    "internode_application_receive_queue_reserve_global_capacity",
    "internode_application_send_queue_reserve_endpoint_capacity",
    "internode_application_send_queue_reserve_global_capacity",
];

pub(crate) fn links(reader: &mut Reader<'_>) -> Links {
    let [receive_each, receive_reserve, send_reserve_each, send_reserve] = RESERVES.map(|name| reader.quantity(name));
    let given = reader.maybe_quantity(MESSAGE_SIZE);
    if let Some(size) = given {
        for (name, reserve) in
            RESERVES.into_iter().zip([receive_each, receive_reserve, send_reserve_each, send_reserve])
        {
            if size > reserve {
                reader.problem(MESSAGE_SIZE, &format!("must not exceed {name}"));
            }
        }
    }
    Links {
        connect_timeout: reader.duration("internode_tcp_connect_timeout"),
        user_timeout: reader.duration("internode_tcp_user_timeout"),
        send_buffer: reader.quantity("internode_socket_send_buffer_size"),
        receive_buffer: reader.quantity("internode_socket_receive_buffer_size"),
        message_size_max: given.unwrap_or(receive_each.min(send_reserve_each)),
        send_queue: reader.quantity("internode_application_send_queue_capacity"),
        send_reserve_each,
        send_reserve,
        receive_reserve,
        trusts_clocks: reader.boolean("internode_timeout"),
        listens_on_broadcast: reader.boolean("listen_on_broadcast_address"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn of(sets: &[&str]) -> Result<Links, Vec<String>> {
        let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
        Config::load(None, &sets, false).map(|config| config.ring.links).map_err(|error| error.problems)
    }

    #[test]
    fn the_defaults_are_those_of_cassandra() {
        let found = of(&[]).expect("no keys");
        let expected = Links {
            connect_timeout: Duration::from_secs(2),
            user_timeout: Duration::from_secs(30),
            send_buffer: 0,
            receive_buffer: 0,
            message_size_max: 128 << 20,
            send_queue: 4 << 20,
            send_reserve_each: 128 << 20,
            send_reserve: 512 << 20,
            receive_reserve: 512 << 20,
            trusts_clocks: true,
            listens_on_broadcast: false,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_message_fits_into_the_reserves() {
        let smaller = of(&["internode_application_send_queue_reserve_endpoint_capacity=16MiB"]).expect("a size");
        assert_eq!((smaller.send_reserve_each, smaller.message_size_max), (16 << 20, 16 << 20));
        assert_eq!(of(&["internode_max_message_size=64MiB"]).expect("a size").message_size_max, 64 << 20);
        let refused = of(&["internode_max_message_size=200MiB"]).expect_err("more than fits");
        let each = |of: &str| {
            format!(
                "internode_max_message_size: must not exceed internode_application_{of}_queue_reserve_endpoint_capacity"
            )
        };
        assert_eq!(refused, [each("receive"), each("send")]);
    }
}
