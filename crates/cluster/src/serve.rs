//! What other nodes ask of this one: one file for each family of verbs.
//!
//! Called on the thread of links, which must not wait: a handler that has to is a task of that
//! thread.

use std::sync::Arc;

use internode::{Envelope, LinkType};
use links::Peer;
use membership::Messenger;

use crate::node::Node;

/// Takes a request of another node. False: nobody here knows the verb, and its sender is told that
/// it failed.
pub(crate) fn requested(
    _node: &Arc<Node>,
    _via: &Messenger,
    _from: &Peer,
    _link: LinkType,
    _message: Envelope,
) -> bool {
    false
}
