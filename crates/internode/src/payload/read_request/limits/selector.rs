//! The function of GROUP BY within the limits of a read.
//!
//! ```text
//! u8 kind, then
//!     0 a column: vbytes name, i32 index
//!     9 a function: utf keyspace, utf name, uvint32 arguments, utf type of each,
//!         bool some are constants [uvint32 bits of those that are, lowest first, vbytes each],
//!         uvint32 other arguments, a selector each
//! ```
//!
//! Agrees with `org.apache.cassandra.cql3.selection.Selector.Serializer` and
//! `AbstractFunctionSelector`.

use rows::limits::GroupSelector;
use schema::ColumnMetadata;
use stdx::{put_utf, put_uvint, put_vbytes};

use super::Reader;
use crate::error::InternodeError;
use crate::integers::read_uvint32;

const COLUMN: u8 = 0;
const FUNCTION: u8 = 9;

/// Functions that may stand inside of each other.
const DEPTH_MAX: usize = 32;

/// Arguments of a function: constants are told by the bits of one number.
const ARGUMENTS_MAX: usize = 32;

/// Writes a selector of which `column` is the only column.
pub(super) fn put(out: &mut Vec<u8>, selector: &GroupSelector, column: &ColumnMetadata) {
    match selector {
        GroupSelector::Column => {
            out.push(COLUMN);
            put_vbytes(out, column.name.as_bytes());
            out.extend_from_slice(&0_i32.to_be_bytes());
        }
        GroupSelector::Call { keyspace, name, types, constants, others } => {
            out.push(FUNCTION);
            put_utf(out, keyspace);
            put_utf(out, name);
            put_uvint(out, types.len() as u64);
            types.iter().for_each(|ty| put_utf(out, ty));
            let bits = constants.iter().rev().fold(0, |bits, constant| bits << 1 | u64::from(constant.is_some()));
            out.push(u8::from(bits != 0));
            if bits != 0 {
                put_uvint(out, bits);
                constants.iter().flatten().for_each(|constant| put_vbytes(out, constant));
            }
            put_uvint(out, others.len() as u64);
            others.iter().for_each(|other| put(out, other, column));
        }
    }
}

/// Reads a selector of which `column` is the only column.
pub(super) fn read(reader: &mut Reader<'_>, column: &ColumnMetadata) -> Result<GroupSelector, InternodeError> {
    nested(reader, column, DEPTH_MAX)
}

/// As [`read`], where `depth` functions more may stand inside of each other.
fn nested(reader: &mut Reader<'_>, column: &ColumnMetadata, depth: usize) -> Result<GroupSelector, InternodeError> {
    match reader.cursor.u8()? {
        COLUMN => {
            let name = reader.vbytes()?;
            if name != column.name.as_bytes() {
                return Err(InternodeError::Unsupported("GROUP BY of a function of another column than its last"));
            }
            reader.cursor.skip(4)?;
            Ok(GroupSelector::Column)
        }
        FUNCTION => {
            let Some(depth) = depth.checked_sub(1) else {
                return Err(InternodeError::Unsupported("GROUP BY of so many functions"));
            };
            let (keyspace, name) = (reader.cursor.utf()?.to_owned(), reader.cursor.utf()?.to_owned());
            let count = number_of_arguments(reader)?;
            let mut types = Vec::with_capacity(count);
            for _ in 0..count {
                types.push(reader.cursor.utf()?.to_owned());
            }
            let mut constants = vec![None; count];
            if reader.cursor.bool()? {
                let bits = reader.cursor.uvint()?;
                for (place, constant) in constants.iter_mut().enumerate() {
                    if bits >> place & 1 == 1 {
                        *constant = Some(reader.vbytes()?);
                    }
                }
            }
            let missing = constants.iter().filter(|constant| constant.is_none()).count();
            let others = number_of_arguments(reader)?;
            if others != missing {
                return super::super::bad("the arguments of a function", others as u32);
            }
            let others = (0..others).map(|_| nested(reader, column, depth)).collect::<Result<_, _>>()?;
            Ok(GroupSelector::Call { keyspace, name, types, constants, others })
        }
        kind => super::super::bad("the kind of a selector", kind),
    }
}

fn number_of_arguments(reader: &mut Reader<'_>) -> Result<usize, InternodeError> {
    let count = read_uvint32(&mut reader.cursor, "the arguments of a function")?;
    match usize::try_from(count) {
        Ok(count) if count <= ARGUMENTS_MAX => Ok(count),
        _ => super::super::bad("the arguments of a function", count),
    }
}
