//! READ_RSP and RANGE_RSP: what a replica has found.
//!
//! ```text
//! vbytes digest                  16 bytes: the answer is a digest, nothing follows; empty: data
//! vbytes digest of repaired data empty: it is not tracked
//! bool   that digest is conclusive
//! vbytes data                    see `partitions`
//! ```
//!
//! Agrees with `org.apache.cassandra.db.ReadResponse.Serializer`.

use bytes::Bytes;
use rows::ReadError;
use stdx::put_vbytes;

use super::digest;
use super::partitions::DataStream;
use super::read_request::ReadRequest;
use super::reader::Reader;
use crate::error::InternodeError;

/// The answer of a replica.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReadResponse {
    /// The digest of what it has.
    Digest([u8; digest::SIZE]),
    /// The partitions, encoded ([`super::partitions`]).
    Data(Data),
}

/// The partitions that a replica has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Data {
    /// The partitions.
    pub partitions: Bytes,
    /// The digest of the part that is repaired; empty: it was not asked for.
    pub repaired: Bytes,
    /// Whether no session of a repair under way could change that digest.
    pub is_conclusive: bool,
}

impl ReadResponse {
    /// An answer of partitions to a coordinator that does not ask for a digest of what is repaired.
    pub fn of_data(partitions: Bytes) -> Self {
        Self::Data(Data { partitions, repaired: Bytes::new(), is_conclusive: true })
    }

    /// The answer to a coordinator that asks for a digest of what is repaired
    /// (TRACK_REPAIRED_DATA). There is none, and that must not count as the digest of a replica
    /// without repaired data: it would differ from those of the others.
    pub fn without_repaired_digest(self) -> Self {
        match self {
            Self::Data(data) => Self::Data(Data { is_conclusive: false, ..data }),
            digest @ Self::Digest(_) => digest,
        }
    }

    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Digest(digest) => {
                let mut out = Vec::with_capacity(1 + digest::SIZE);
                put_vbytes(&mut out, digest);
                out
            }
            Self::Data(data) => {
                let mut out = Vec::with_capacity(data.partitions.len() + data.repaired.len() + 16);
                put_vbytes(&mut out, &[]);
                put_vbytes(&mut out, &data.repaired);
                out.push(u8::from(data.is_conclusive));
                put_vbytes(&mut out, &data.partitions);
                out
            }
        }
    }

    /// From a payload. The data is a slice of the payload and is not decoded.
    pub fn decode(payload: &Bytes) -> Result<Self, InternodeError> {
        Reader::whole(payload, Self::read)
    }

    /// Reads an answer that stands within a payload.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, InternodeError> {
        let digest = reader.vbytes()?;
        match (digest.len(), digest.first_chunk()) {
            (0, _) => Ok(Self::Data(Data {
                repaired: reader.vbytes()?,
                is_conclusive: reader.cursor.bool()?,
                partitions: reader.vbytes()?,
            })),
            (digest::SIZE, Some(digest)) => Ok(Self::Digest(*digest)),
            (size, _) => Err(InternodeError::Value { part: "the size of a digest", found: size as i64 }),
        }
    }

    /// The digest of the answer, computed if the answer is data.
    pub fn digest(&self, request: &ReadRequest) -> Result<[u8; digest::SIZE], ReadError> {
        match self {
            Self::Digest(digest) => Ok(*digest),
            Self::Data(data) => digest::of_data(&data.partitions, request),
        }
    }
}

/// The partitions in the data of an answer to `request`, as a source of a read like any other.
pub fn data_stream(partitions: Bytes, request: &ReadRequest) -> DataStream {
    DataStream::new(partitions, request)
}
