//! The memory of messages that come in parts: it has a bound over all links that peers open.
//!
//! A link has a little room of its own. It borrows more from a [`ReceiveMemory`] that all links
//! share. While there is none left it reads nothing, so its peer's bytes wait in the peer's socket;
//! a link that finds none for too long is closed; otherwise links could wait for each other for
//! ever. `org.apache.cassandra.net.ResourceLimits`, `AbstractMessageHandler`.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use env::Env;

use crate::limits::{RECEIVE_OWN_MAX, RECEIVE_RETRY, RECEIVE_WAIT_MAX};

/// The memory that all links share.
pub(crate) struct ReceiveMemory {
    size: usize,
    /// Bytes that no link has borrowed.
    left: Cell<usize>,
}

impl ReceiveMemory {
    pub(crate) fn new(size: usize) -> Rc<Self> {
        Rc::new(Self { size, left: Cell::new(size) })
    }
}

/// The bytes that one link has borrowed. Dropping the value gives them back.
pub(crate) struct MemoryLoan {
    memory: Rc<ReceiveMemory>,
    bytes: usize,
}

impl MemoryLoan {
    pub(crate) fn new(memory: &Rc<ReceiveMemory>) -> Self {
        Self { memory: Rc::clone(memory), bytes: 0 }
    }

    /// Makes room for so many bytes of the link, or gives back bytes beyond them. Waits while
    /// there is no room; Err: for too long.
    pub(crate) async fn resize(&mut self, env: &Env, bytes: usize) -> io::Result<()> {
        let begun = env.now();
        while !self.try_resize(bytes) {
            if env.elapsed(begun) >= RECEIVE_WAIT_MAX {
                return Err(io::Error::new(
                    io::ErrorKind::OutOfMemory,
                    "large messages of other nodes fill the memory that is kept for them",
                ));
            }
            env.sleep(RECEIVE_RETRY).await;
        }
        Ok(())
    }

    fn try_resize(&mut self, bytes: usize) -> bool {
        let wanted = bytes.saturating_sub(RECEIVE_OWN_MAX);
        let left = self.memory.left.get() + self.bytes;
        assert!(left <= self.memory.size, "what a link has borrowed is given back once");
        if wanted > left {
            return false;
        }
        self.memory.left.set(left - wanted);
        self.bytes = wanted;
        true
    }
}

impl Drop for MemoryLoan {
    fn drop(&mut self) {
        self.memory.left.set(self.memory.left.get() + self.bytes);
    }
}
