//! The serialization header: bases of the deltas in Data.db, and the columns that rows may have, by
//! name and type.
//!
//! A reader maps the columns to those of the schema by name; what the schema never had is decoded
//! with the type written here and passed over ([`Header::unknown_column`]), as is what it has
//! dropped where it is not newer than the drop. Agrees with
//! `org.apache.cassandra.db.SerializationHeader`.

use std::collections::BTreeMap;

use bytes::Bytes;
use rows::NO_TIMESTAMP;
use rows::codec::{
    CodecColumn, CodecError, DELETION_TIME_EPOCH, DeletionTimeForm, EncodingStats, Header, TIMESTAMP_EPOCH,
};
use schema::table::ColumnSpec;
use schema::{ColumnKind, ColumnMetadata, DroppedColumn, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use stdx::{Cursor, put_uvint, put_vbytes};
use types::{CqlType, CustomType, marshal};

use crate::error::Malformed;

/// Most static or regular columns of a header: rows name them by 16 bits.
const COLUMNS_MAX: u64 = 32_000;

/// A column by name and type expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeaderColumn {
    /// Its name.
    pub name: String,
    /// Its type with full class names.
    pub ty: String,
}

/// As it is written.
#[derive(Clone, PartialEq, Debug)]
pub struct HeaderComponent {
    /// Bases of the deltas.
    pub stats: EncodingStats,
    /// Type of the partition key.
    pub key_type: String,
    /// Types of the clustering columns.
    pub clustering: Vec<String>,
    /// Static columns in file order.
    pub statics: Vec<HeaderColumn>,
    /// Regular columns in file order.
    pub regulars: Vec<HeaderColumn>,
    /// The form of deletion times in the SSTable's version. The component does not hold it.
    pub deletion_times: DeletionTimeForm,
}

fn text(cursor: &mut Cursor<'_>) -> Result<String, CodecError> {
    let text = std::str::from_utf8(cursor.vbytes()?);
    text.map(str::to_owned).map_err(|_| CodecError::Invalid("a name that is not text".to_owned()))
}

fn columns(cursor: &mut Cursor<'_>) -> Result<Vec<HeaderColumn>, CodecError> {
    let mut columns = Vec::new();
    for _ in 0..count_of_columns(cursor)? {
        let name = text(cursor)?;
        columns.push(HeaderColumn { name, ty: text(cursor)? });
    }
    Ok(columns)
}

fn count_of_columns(cursor: &mut Cursor<'_>) -> Result<u64, CodecError> {
    match cursor.uvint()? {
        count if count > COLUMNS_MAX => Err(CodecError::Invalid(format!("{count} columns"))),
        count => Ok(count),
    }
}

impl HeaderComponent {
    /// The component for rows that are about to be written with `header`.
    pub fn of(table: &TableMetadata, header: &Header) -> Self {
        let column =
            |column: &CodecColumn| HeaderColumn { name: column.name.clone(), ty: marshal::print(&column.ty, false) };
        Self {
            stats: header.stats,
            key_type: marshal::print(&table.partition_key_type, false),
            clustering: clustering_types(&table.clustering),
            statics: header.statics.iter().map(column).collect(),
            regulars: header.regulars.iter().map(column).collect(),
            deletion_times: header.deletion_times,
        }
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(bytes);
        let read = Self::get(&mut cursor);
        read.map_err(|error| Malformed::at(cursor.position() as u64, error.to_string()))
    }

    /// Reads the component at the cursor; a stream of an SSTable has the component among other
    /// fields. The form of deletion times is left at its default: the version decides it.
    ///
    /// # Errors
    /// `Truncated`: the cursor's bytes end too early, more bytes may do.
    pub fn get(cursor: &mut Cursor<'_>) -> Result<Self, CodecError> {
        let stats = EncodingStats {
            min_timestamp: TIMESTAMP_EPOCH.wrapping_add(cursor.uvint()? as i64),
            min_local_deletion_time: DELETION_TIME_EPOCH.wrapping_add(cursor.uvint()? as u32),
            min_ttl: cursor.uvint()? as u32,
        };
        let key_type = text(cursor)?;
        let mut clustering = Vec::new();
        for _ in 0..count_of_columns(cursor)? {
            clustering.push(text(cursor)?);
        }
        let (statics, regulars) = (columns(cursor)?, columns(cursor)?);
        Ok(Self { stats, key_type, clustering, statics, regulars, deletion_times: DeletionTimeForm::default() })
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }

    /// Appends the component.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_uvint(out, self.stats.min_timestamp.wrapping_sub(TIMESTAMP_EPOCH) as u64);
        let seconds = self.stats.min_local_deletion_time.wrapping_sub(DELETION_TIME_EPOCH);
        put_uvint(out, i64::from(seconds as i32) as u64);
        put_uvint(out, u64::from(self.stats.min_ttl));
        put_vbytes(out, self.key_type.as_bytes());
        put_uvint(out, self.clustering.len() as u64);
        self.clustering.iter().for_each(|ty| put_vbytes(out, ty.as_bytes()));
        for columns in [&self.statics, &self.regulars] {
            put_uvint(out, columns.len() as u64);
            for column in columns {
                put_vbytes(out, column.name.as_bytes());
                put_vbytes(out, column.ty.as_bytes());
            }
        }
    }

    /// The header that rows are decoded against, for a table as its schema is now.
    pub fn resolve(&self, table: &TableMetadata) -> Result<Header, Malformed> {
        let clustering = self.clustering.iter().map(|ty| parse_type(ty)).collect::<Result<Vec<_>, _>>()?;
        if clustering.len() != table.clustering.len() {
            let what = format!("{} clustering columns instead of {}", clustering.len(), table.clustering.len());
            return Err(Malformed::at(0, what));
        }
        let statics =
            self.statics.iter().map(|column| resolve_column(column, table, true)).collect::<Result<_, _>>()?;
        let regulars =
            self.regulars.iter().map(|column| resolve_column(column, table, false)).collect::<Result<_, _>>()?;
        let mut header = Header::new(self.stats, clustering, statics, regulars);
        header.deletion_times = self.deletion_times;
        Ok(header)
    }
}

impl HeaderComponent {
    /// A table as the header knows it, for tools without schema: key columns get names by their
    /// position.
    pub fn table(&self, keyspace: &str, name: &str) -> Result<TableMetadata, Malformed> {
        let mut specs = Vec::new();
        let mut add = |name: String, kind, position, ty, reversed| {
            specs.push(ColumnSpec { name, kind, position, ty, reversed });
        };
        let keys = match parse_type(&self.key_type)? {
            CqlType::Custom(custom) => match custom.as_ref() {
                CustomType::Composite(types) => types.clone(),
                _ => vec![CqlType::Custom(custom)],
            },
            ty => vec![ty],
        };
        for (position, ty) in keys.into_iter().enumerate() {
            add(format!("key{}", position + 1), ColumnKind::PartitionKey, position, ty, false);
        }
        for (position, ty) in self.clustering.iter().enumerate() {
            let (ty, reversed) = marshal::parse(ty).map_err(|error| Malformed::at(0, error.to_string()))?;
            add(format!("column{}", position + 1), ColumnKind::Clustering, position, ty, reversed);
        }
        for (columns, kind) in [(&self.statics, ColumnKind::Static), (&self.regulars, ColumnKind::Regular)] {
            for column in columns {
                add(column.name.clone(), kind, 0, parse_type(&column.ty)?, false);
            }
        }
        let is_counter = specs.iter().any(|spec| spec.ty.is_counter());
        let flags = TableFlags { counter: is_counter, ..TableFlags::COMPOUND };
        Ok(TableMetadata::new(
            TableId::of_system_table(keyspace, name),
            keyspace,
            name,
            TableKind::Regular,
            flags,
            TableParams::default(),
            specs,
            BTreeMap::new(),
            None,
        ))
    }
}

/// Type expressions of clustering columns, order included.
pub(super) fn clustering_types(columns: &[ColumnMetadata]) -> Vec<String> {
    columns.iter().map(|column| marshal::print(&column.ty, column.reversed)).collect()
}

pub(crate) fn parse_type(expression: &str) -> Result<CqlType, Malformed> {
    match marshal::parse(expression) {
        Ok((ty, _)) => Ok(ty),
        Err(error) => Err(Malformed::at(0, error.to_string())),
    }
}

fn resolve_column(column: &HeaderColumn, table: &TableMetadata, is_static: bool) -> Result<CodecColumn, Malformed> {
    let ty = parse_type(&column.ty)?;
    let known =
        table.column_by_name(&column.name).filter(|known| !known.is_primary_key() && known.is_static() == is_static);
    let dropped = table.dropped.get(&column.name);
    // headers before 3.6 name user types, which were always frozen then, without saying so; of a
    // user type that is not frozen no column can be dropped
    let is_frozen = match (known, dropped) {
        (Some(known), _) => !known.is_complex(),
        (None, dropped) => dropped.is_some_and(|dropped| !dropped.ty.is_multi_cell()),
    };
    let ty = if is_frozen && matches!(ty, CqlType::Udt(..)) { ty.freeze() } else { ty };
    let complex = ty.is_multi_cell();
    let known = known.filter(|known| known.is_complex() == complex);
    let has_form = |dropped: &DroppedColumn| {
        (dropped.kind == ColumnKind::Static) == is_static && dropped.ty.is_multi_cell() == complex
    };
    let dropped_id = || dropped.filter(|dropped| has_form(dropped)).and_then(|_| table.dropped_column_id(&column.name));
    Ok(CodecColumn {
        id: known.map(|known| known.id).or_else(dropped_id),
        name: column.name.clone(),
        complex,
        fixed_length: ty.fixed_length(),
        ty,
        dropped_time: dropped.map_or(NO_TIMESTAMP, |dropped| dropped.dropped_time),
    })
}

/// Bytes kept alive by nothing but themselves: slices of a map that must not outlive it cheaply.
pub(super) fn detached(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A column of a user type in the header of Cassandra 3.0, which does not say that it is
    /// frozen, is one value also where it was dropped since. Otherwise its cells would be read as
    /// those of fields, and the partition would count as damaged.
    #[test]
    fn user_types_of_3_0_are_frozen_whether_or_not_the_column_is_there() {
        let class = "org.apache.cassandra.db.marshal.UserType(ks,75,61:org.apache.cassandra.db.marshal.UTF8Type)";
        let udt = parse_type(class).expect("a type").freeze();
        let spec = |name: &str, kind, ty| ColumnSpec { name: name.to_owned(), kind, position: 0, ty, reversed: false };
        let key = spec("k", ColumnKind::PartitionKey, CqlType::Int);
        let (name, ty) = ("v".to_owned(), CqlType::Tuple([CqlType::Text].into()));
        let gone = DroppedColumn { name: name.clone(), ty, kind: ColumnKind::Regular, dropped_time: 1 };
        let header = HeaderComponent {
            stats: EncodingStats::default(),
            key_type: "org.apache.cassandra.db.marshal.Int32Type".to_owned(),
            clustering: Vec::new(),
            statics: Vec::new(),
            regulars: vec![HeaderColumn { name, ty: class.to_owned() }],
            deletion_times: DeletionTimeForm::Signed,
        };
        let of_table = |columns: Vec<ColumnSpec>, dropped: BTreeMap<String, DroppedColumn>| {
            let (id, params) = (TableId([1; 16]), TableParams::default());
            let (kind, flags) = (TableKind::Regular, TableFlags::COMPOUND);
            let table = TableMetadata::new(id, "ks", "t", kind, flags, params, columns, dropped, None);
            header.resolve(&table).expect("resolved").regulars.remove(0)
        };
        let there = of_table(vec![key.clone(), spec("v", ColumnKind::Regular, udt.clone())], BTreeMap::new());
        let dropped = of_table(vec![key.clone()], BTreeMap::from([("v".to_owned(), gone)]));
        for column in [there, dropped] {
            assert_eq!((column.complex, column.ty, column.id.is_some()), (false, udt.clone(), true));
        }
        let not_frozen = spec("v", ColumnKind::Regular, parse_type(class).expect("a type"));
        assert!(of_table(vec![key, not_frozen], BTreeMap::new()).complex);
    }
}
