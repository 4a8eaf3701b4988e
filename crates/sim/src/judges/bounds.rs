//! Queues and buffers stay within their bounds.

use super::Finding;

/// The largest number of items that a queue held, beside its bound.
#[derive(Clone, Debug)]
pub struct Bound {
    /// Name of the queue.
    pub name: String,
    /// The largest number of items that the queue held.
    pub seen: usize,
    /// The largest number of items that the queue may hold.
    pub most: usize,
}

/// Judges these queues: see the head of this file.
pub fn check(bounds: &[Bound]) -> Vec<Finding> {
    let over = bounds.iter().filter(|bound| bound.seen > bound.most);
    over.map(|bound| Finding { judge: "bounds", what: format!("{bound:?}") }).collect()
}

/// The bounds of the buffers of the simulated network itself.
pub fn of_network(figures: &env::sim::NetworkFigures) -> Vec<Bound> {
    let bound = |name: &str, seen, most| Bound { name: name.to_owned(), seen, most };
    let receive_most = env::sim::RECEIVE_BUFFER_MAX + env::sim::SEND_BUFFER_MAX;
    vec![
        bound("send buffers", figures.unacknowledged_most, env::sim::SEND_BUFFER_MAX),
        bound("receive buffers", figures.unread_most, receive_most),
    ]
}
