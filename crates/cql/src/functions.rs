//! Native scalar functions: their names and signatures, finding the one that a call means, calling it.
//!
//! Agrees with `org.apache.cassandra.cql3.functions.{NativeFunctions,FunctionResolver,FunctionCall}`.

mod native;
mod resolve;

use bytes::Bytes;
use types::CqlType;

pub(crate) use resolve::{candidates, pick, prepare_call, prepare_cast, return_type, shown_name, unknown};

use crate::context::Sources;
use crate::error::CqlError;

/// A value of time that functions convert from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TimeKind {
    /// timestamp
    Timestamp,
    /// date
    Date,
    /// timeuuid
    TimeUuid,
}

/// A native scalar function.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Function {
    /// `uuid()`
    Uuid,
    /// `now()`, `current_timeuuid()`
    Now,
    /// `current_timestamp()`
    CurrentTimestamp,
    /// `current_date()`
    CurrentDate,
    /// `current_time()`
    CurrentTime,
    /// `to_date(x)`
    ToDate(TimeKind),
    /// `to_timestamp(x)`
    ToTimestamp(TimeKind),
    /// `to_unix_timestamp(x)`
    ToUnixTimestamp(TimeKind),
    /// `min_timeuuid(t)`
    MinTimeuuid,
    /// `max_timeuuid(t)`
    MaxTimeuuid,
    /// `token(k…)`; how many columns the partition key has
    Token(usize),
    /// `token(k…)` of a virtual table: the key itself
    LocalToken,
    /// `x_as_blob(x)`
    ToBlob(String),
    /// `blob_as_x(b)`
    FromBlob(String, CqlType),
    /// `to_json(x)` of a value of a type
    ToJson(CqlType),
    /// `from_json(text)` as a value of a type
    FromJson(CqlType),
    /// `CAST(x AS type)`
    Cast(CqlType, CqlType),
}

impl Function {
    /// Its name, with the keyspace `system` where Cassandra shows it.
    pub fn name(&self) -> String {
        let name = match self {
            Self::Uuid => "uuid",
            Self::Now => "now",
            Self::CurrentTimestamp => "current_timestamp",
            Self::CurrentDate => "current_date",
            Self::CurrentTime => "current_time",
            Self::ToDate(_) => "to_date",
            Self::ToTimestamp(_) => "to_timestamp",
            Self::ToUnixTimestamp(_) => "to_unix_timestamp",
            Self::MinTimeuuid => "min_timeuuid",
            Self::MaxTimeuuid => "max_timeuuid",
            Self::Token(_) | Self::LocalToken => "token",
            Self::ToBlob(name) | Self::FromBlob(name, _) => name,
            Self::ToJson(_) => "to_json",
            Self::FromJson(_) => "from_json",
            Self::Cast(..) => "cast",
        };
        format!("system.{name}")
    }

    /// The same arguments always give the same value.
    pub fn is_pure(&self) -> bool {
        !matches!(self, Self::Uuid | Self::Now | Self::CurrentTimestamp | Self::CurrentDate | Self::CurrentTime)
    }

    /// Calls it.
    pub fn call(&self, arguments: &[Option<Bytes>], sources: &dyn Sources) -> Result<Option<Bytes>, CqlError> {
        native::call(self, arguments, sources)
    }
}
