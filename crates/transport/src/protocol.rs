//! What a protocol is to workers and connections, whatever its messages are.

/// The types of a protocol that are the same for all of its connections.
pub trait Protocol: 'static {
    /// What connections that asked for it are told without a request.
    type Event: Send + Sync + 'static;

    /// What is known of a connection, for those who list connections.
    type Details: Default + Send + Sync + 'static;

    /// The kind of an event, 0 to 7. Connections ask for events by their kind ([`Link::ask_for`]).
    fn kind(event: &Self::Event) -> u8;
}
