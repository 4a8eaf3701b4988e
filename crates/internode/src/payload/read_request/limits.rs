//! The limits of a read.
//!
//! ```text
//! u8 kind
//! 0 rows, 1 rows of a later page: uvint32 rows, uvint32 rows of each partition, bool distinct
//! 4 groups, 5 groups of a later page: uvint32 groups, uvint32 groups of each partition,
//!     uvint32 rows, u8 grouping (0 everything | 1 uvint32 length of the prefix
//!         | 2 uvint32 length of the prefix, selector of its last column),
//!     bool has state [vbytes key, bool has clustering [clustering]]
//! 1, 5: vbytes key of the last partition, uvint32 rows or groups that remain of it
//! ```
//!
//! "No limit" is 2^31 − 1. Selectors: [`selector`]. Agrees with
//! `org.apache.cassandra.db.filter.DataLimits.Serializer` and
//! `AggregationSpecification.Serializer`.

mod selector;

use rows::ReadLimits;
use rows::limits::{Counting, GroupFunction, GroupState, Grouping, LastPartition};
use schema::TableMetadata;
use stdx::{put_uvint, put_vbytes};

use super::{Reader, put_clustering};
use crate::error::InternodeError;
use crate::integers::read_uvint32;

const ROWS: u8 = 0;
const GROUPS: u8 = 4;
const LATER_PAGE: u8 = 1;

pub(super) fn put(out: &mut Vec<u8>, limits: &ReadLimits, table: &TableMetadata) {
    let kind = match limits.counting {
        Counting::Rows { .. } => ROWS,
        Counting::Groups { .. } => GROUPS,
    };
    out.push(kind | if limits.last.is_some() { LATER_PAGE } else { 0 });
    match &limits.counting {
        Counting::Rows { per_partition, distinct } => {
            put_uvint(out, limits.rows.into());
            put_uvint(out, (*per_partition).into());
            out.push(u8::from(*distinct));
        }
        Counting::Groups { groups, per_partition, grouping, state } => {
            put_uvint(out, (*groups).into());
            put_uvint(out, (*per_partition).into());
            put_uvint(out, limits.rows.into());
            match grouping {
                Grouping::Everything => out.push(0),
                Grouping::ByPrefix(length) => {
                    out.push(1);
                    put_uvint(out, (*length).into());
                }
                Grouping::ByFunction { columns, function } => {
                    out.push(2);
                    put_uvint(out, (*columns).into());
                    let last = table.clustering.get((*columns as usize).saturating_sub(1));
                    last.iter().for_each(|column| selector::put(out, &function.selector, column));
                }
            }
            put_state(out, state.as_ref(), table);
        }
    }
    if let Some(last) = &limits.last {
        put_vbytes(out, &last.key);
        put_uvint(out, last.remaining.into());
    }
}

fn put_state(out: &mut Vec<u8>, state: Option<&GroupState>, table: &TableMetadata) {
    out.push(u8::from(state.is_some()));
    let Some(state) = state else { return };
    put_vbytes(out, &state.key);
    out.push(u8::from(state.clustering.is_some()));
    if let Some(clustering) = &state.clustering {
        put_clustering(out, clustering, table);
    }
}

pub(super) fn read(reader: &mut Reader<'_>, table: &TableMetadata) -> Result<ReadLimits, InternodeError> {
    let kind = reader.cursor.u8()?;
    let (rows, counting) = match kind & !LATER_PAGE {
        ROWS => {
            let (rows, per_partition) = (number(reader)?, number(reader)?);
            (rows, Counting::Rows { per_partition, distinct: reader.cursor.bool()? })
        }
        GROUPS => {
            let (groups, per_partition, rows) = (number(reader)?, number(reader)?, number(reader)?);
            let grouping = read_grouping(reader, table)?;
            (rows, Counting::Groups { groups, per_partition, grouping, state: read_state(reader, table)? })
        }
        _ => return super::bad("the kind of limits", kind),
    };
    let last = match kind & LATER_PAGE {
        0 => None,
        _ => Some(LastPartition { key: reader.vbytes()?, remaining: number(reader)? }),
    };
    Ok(ReadLimits { rows, counting, last })
}

/// A limit; a negative one is used up. A Cassandra coordinator sends such limits: of GROUP BY with
/// LIMIT and PER PARTITION LIMIT, when it has more groups than it asks for and wants the next
/// partition. A replica of Cassandra answers them with nothing.
fn number(reader: &mut Reader<'_>) -> Result<u32, InternodeError> {
    let limit = read_uvint32(&mut reader.cursor, "a limit")?;
    Ok(u32::try_from(limit).unwrap_or(0))
}

fn read_grouping(reader: &mut Reader<'_>, table: &TableMetadata) -> Result<Grouping, InternodeError> {
    match reader.cursor.u8()? {
        0 => Ok(Grouping::Everything),
        1 => {
            let length = read_uvint32(&mut reader.cursor, "the clustering columns of a group")?;
            match u32::try_from(length) {
                Ok(length) if length as usize <= table.clustering.len() => Ok(Grouping::ByPrefix(length)),
                _ => super::bad("the clustering columns of a group", length),
            }
        }
        2 => {
            let length = read_uvint32(&mut reader.cursor, "the clustering columns of a group")?;
            let columns = u32::try_from(length).ok().filter(|columns| *columns > 0);
            let last = columns.and_then(|columns| Some((columns, table.clustering.get(columns as usize - 1)?)));
            let Some((columns, column)) = last else {
                return super::bad("the clustering columns of a group", length);
            };
            let function = GroupFunction::new(selector::read(reader, column)?);
            Ok(Grouping::ByFunction { columns, function })
        }
        kind => super::bad("the kind of a group", kind),
    }
}

fn read_state(reader: &mut Reader<'_>, table: &TableMetadata) -> Result<Option<GroupState>, InternodeError> {
    if !reader.cursor.bool()? {
        return Ok(None);
    }
    let key = reader.vbytes()?;
    let has_clustering = reader.cursor.bool()?;
    let clustering = if has_clustering { Some(reader.clustering(table, table.clustering.len())?) } else { None };
    Ok(Some(GroupState { key, clustering }))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use rows::limits::GroupSelector;

    use super::*;

    #[test]
    fn a_negative_limit_is_used_up_and_a_negative_number_of_columns_is_refused() {
        let schema = schema::system::schema();
        let table = schema.table("system", "peers_v2").expect("a built-in table");
        let message = |groups: i64, columns: i64| {
            let mut out = vec![GROUPS];
            put_uvint(&mut out, groups as u64);
            put_uvint(&mut out, 1);
            put_uvint(&mut out, 100);
            out.push(1);
            put_uvint(&mut out, columns as u64);
            out.push(0);
            Bytes::from(out)
        };
        let found = Reader::whole(&message(-2, 1), |reader| read(reader, table)).expect("limits");
        let counting = Counting::Groups { groups: 0, per_partition: 1, grouping: Grouping::ByPrefix(1), state: None };
        assert_eq!(found, ReadLimits { rows: 100, counting, last: None });
        for columns in [-1, 2] {
            let error = Reader::whole(&message(5, columns), |reader| read(reader, table)).expect_err("refused");
            assert_eq!(error.to_string(), format!("the clustering columns of a group cannot be {columns}"));
        }
    }

    /// A call of floor in GROUP BY, of a column or of another call.
    fn floor(of: GroupSelector) -> GroupSelector {
        GroupSelector::Call {
            keyspace: "system".to_owned(),
            name: "floor".to_owned(),
            types: vec!["timestamp".to_owned(), "duration".to_owned()],
            constants: vec![None, Some(Bytes::from_static(&[0, 0, 2]))],
            others: vec![of],
        }
    }

    /// GROUP BY peer, floor(floor(peer_port, 1), 1), as `AggregationSpecification.Serializer`
    /// writes it.
    #[test]
    fn a_function_that_makes_groups_is_read_as_cassandra_writes_it() {
        let schema = schema::system::schema();
        let table = schema.table("system", "peers_v2").expect("a built-in table");
        let call =
            "09 0006 73797374656d 0005 666c6f6f72 02 0009 74696d657374616d70 0008 6475726174696f6e 01 02 03 000002 01";
        let column = "00 09 706565725f706f7274 00000000";
        let hex = format!("04 05 01 64 02 01 {call} {call} {column} 00").replace(' ', "");
        let bytes: Vec<u8> =
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect();
        let bytes = Bytes::from(bytes);
        let parse = |message: &Bytes| Reader::whole(message, |reader| read(reader, table));
        let function = GroupFunction::new(floor(floor(GroupSelector::Column)));
        let grouping = Grouping::ByFunction { columns: 1, function };
        let counting = Counting::Groups { groups: 5, per_partition: 1, grouping, state: None };
        let expected = ReadLimits { rows: 100, counting, last: None };
        assert_eq!(parse(&bytes).expect("limits"), expected);
        let mut written = Vec::new();
        put(&mut written, &expected, table);
        assert_eq!(written, bytes);
        for length in 0..bytes.len() {
            assert!(parse(&bytes.slice(..length)).is_err(), "cut to {length}");
        }
        for columns in [0, 2] {
            let mut other = bytes.to_vec();
            other[5] = columns;
            let error = parse(&Bytes::from(other)).expect_err("refused");
            assert_eq!(error.to_string(), format!("the clustering columns of a group cannot be {columns}"));
        }
        let endless = (0..33).fold(GroupSelector::Column, |of, _| floor(of));
        let grouping = Grouping::ByFunction { columns: 1, function: GroupFunction::new(endless) };
        let counting = Counting::Groups { groups: 5, per_partition: 1, grouping, state: None };
        let mut written = Vec::new();
        put(&mut written, &ReadLimits { rows: 100, counting, last: None }, table);
        let error = parse(&Bytes::from(written)).expect_err("refused");
        assert_eq!(error.to_string(), "GROUP BY of so many functions cannot be served");
    }
}
