//! The types of a protocol as workers and connections see them, whatever its messages are.

/// The types of a protocol that are the same for all of its connections.
pub trait Protocol: 'static {
    /// A message that connections get without a request, if they have asked for its kind.
    type Event: Send + Sync + 'static;

    /// The facts about a connection that listings of connections show.
    type Details: Default + Send + Sync + 'static;

    /// The kind of an event, 0 to 7. Connections ask for events by their kind ([`Link::ask_for`]).
    fn kind(event: &Self::Event) -> u8;
}

/// A protocol without messages, for tests.
#[cfg(test)]
pub(crate) struct Silent;

#[cfg(test)]
impl Protocol for Silent {
    type Event = ();
    type Details = ();

    fn kind(_: &()) -> u8 {
        0
    }
}
