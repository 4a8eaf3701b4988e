//! BATCH: statements, each by text or by id, with their values.

use bytes::Bytes;
use types::BatchKind;

use super::{QueryParameters, Values};
use crate::decode_error::DecodeError;
use crate::version::ProtocolVersion;
use crate::wire::{Reader, Text};

/// A statement of a batch.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // the names say it
pub enum BatchStatement {
    Query { query: Text, values: Values },
    Prepared { id: Bytes, values: Values },
}

/// A BATCH.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The kind: logged, unlogged or counter.
    pub kind: BatchKind,
    /// The statements in their order.
    pub statements: Vec<BatchStatement>,
    /// The parameters of the whole batch; their `values` are empty.
    pub parameters: QueryParameters,
}

/// Fewest bytes of a statement: kind, empty id, no values. Bounds the statements that a body can
/// hold.
const STATEMENT_SIZE_MIN: usize = 5;

impl Batch {
    pub(super) fn decode(reader: &mut Reader<'_>, version: ProtocolVersion) -> Result<Self, DecodeError> {
        let code = reader.u8("the type of a batch")?;
        let kind = BatchKind::from_code(code).ok_or(DecodeError::BatchType(code))?;
        let count = usize::from(reader.u16("the number of statements")?);
        let mut statements = Vec::with_capacity(count.min(reader.remaining() / STATEMENT_SIZE_MIN));
        for _ in 0..count {
            statements.push(BatchStatement::decode(reader, version)?);
        }
        Ok(Self { kind, statements, parameters: QueryParameters::decode_for_batch(reader, version)? })
    }
}

impl BatchStatement {
    fn decode(reader: &mut Reader<'_>, version: ProtocolVersion) -> Result<Self, DecodeError> {
        let kind = reader.u8("the kind of a statement")?;
        let body = reader.body();
        match kind {
            0 => {
                let query = reader.long_string("a query")?;
                Ok(Self::Query { query, values: Values::decode(reader, body, version, false)? })
            }
            1 => {
                let id = reader.short_bytes("a statement id")?;
                Ok(Self::Prepared { id, values: Values::decode(reader, body, version, false)? })
            }
            other => Err(DecodeError::BatchKind(other)),
        }
    }

    /// The bound values.
    pub fn values(&self) -> &Values {
        match self {
            Self::Query { values, .. } | Self::Prepared { values, .. } => values,
        }
    }
}
