//! The sender's side of streams, for the programs that send SSTables: a node to other nodes
//! (`cluster`), or a program that loads files into a ring (`bulk`).
//!
//! - [`ChosenSections`]: the part of an SSTable for a peer, and whether its files go as they are
//! - [`OutgoingFile`], [`Pieces`]: a file that is sent, read piece by piece
//! - [`Pace`]: limits the bytes a second
//! - [`send_components`]: sends files whose bytes the kernel moves into the link
//! - [`write_within`]: writes into a link whose peer may have stopped
//!
//! Bytes and the order of messages are those of the crate `streaming`. Knows no node, no ring and
//! no session.

#![forbid(unsafe_code)]

mod chosen_sections;
mod outgoing;
mod pace;
mod whole;
mod write;

pub use chosen_sections::ChosenSections;
pub use outgoing::{FileSession, FileTransfer, OutgoingFile, Piece, Pieces, context, offers};
pub use pace::Pace;
pub use whole::send_components;
pub use write::write_within;
