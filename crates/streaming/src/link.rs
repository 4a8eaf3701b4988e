//! The bytes of a streaming link taken apart: messages, and behind STREAM the data of a file.
//!
//! The reader is given bytes as they arrive and holds none but those of the chunk that it is in.
//! A message that is not whole waits in the caller's buffer, which therefore grows to the size of
//! the message at most ([`CONTROL_SIZE_MAX`](crate::message::CONTROL_SIZE_MAX),
//! [`HEADER_SIZE_MAX`](crate::message::HEADER_SIZE_MAX)). After an error the link cannot be used
//! any more.

use bytes::BytesMut;

use crate::data::{DataReader, Part};
use crate::error::StreamingError;
use crate::message::{Message, size_max};

/// A part of a link.
#[derive(Clone, PartialEq, Debug)]
pub enum Incoming {
    /// A message. [`Message::Stream`] is followed by the parts of the file, then
    /// [`Incoming::EndOfFile`].
    Message(Message),
    /// The next part of the file that is being received.
    Data(Part),
    /// All bytes of the file that was being received have come.
    EndOfFile,
}

/// Takes one link apart.
#[derive(Debug, Default)]
pub struct LinkReader {
    /// The reader of the file that is being received; None: no file is.
    data: Option<DataReader>,
    /// Number of bytes that the message which has begun needs at least. It is not looked at before
    /// they are there.
    wanted: usize,
}

impl LinkReader {
    /// A reader of the bytes that follow the handshake.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next part, taken out of `input`; None: more bytes must come.
    pub fn next(&mut self, input: &mut BytesMut) -> Result<Option<Incoming>, StreamingError> {
        match &mut self.data {
            None => self.next_message(input),
            Some(data) if data.is_done() => {
                self.data = None;
                Ok(Some(Incoming::EndOfFile))
            }
            Some(data) => Ok(data.next(input)?.map(Incoming::Data)),
        }
    }

    /// Whether the link may end here: no message and no file has begun.
    pub fn is_between(&self, input: &[u8]) -> bool {
        self.data.is_none() && input.is_empty()
    }

    fn next_message(&mut self, input: &mut BytesMut) -> Result<Option<Incoming>, StreamingError> {
        let Some(kind) = input.first() else { return Ok(None) };
        let limit = size_max(*kind);
        if input.len() < self.wanted {
            return Ok(None);
        }
        match Message::decode(input) {
            Ok((message, size)) => {
                let _ = input.split_to(size);
                self.wanted = 0;
                if let Message::Stream(header) = &message {
                    self.data = Some(DataReader::new(&header.content)?);
                }
                Ok(Some(Incoming::Message(message)))
            }
            Err(error) => match error.wanted() {
                Some(size) if size > limit => Err(StreamingError::TooLarge { size, limit }),
                Some(size) => {
                    self.wanted = size.max(input.len() + 1);
                    Ok(None)
                }
                None => Err(error),
            },
        }
    }
}
