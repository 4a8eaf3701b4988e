//! Small inputs that are read to the end, made from the fixtures each time: nothing of them is kept
//! beside those.

pub mod functions;
pub mod hints;
pub mod internode;
pub mod other;
pub mod paxos;
pub mod reads;
pub mod repair;
pub mod sstable;
pub mod stream;
