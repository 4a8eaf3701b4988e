//! `token(k…)`: the token of a partition key. Its parameters are the columns of the table's
//! partition key.
//!
//! Agrees with `org.apache.cassandra.cql3.functions.TokenFct`.

use bytes::Bytes;
use schema::TableMetadata;
use types::{CqlType, Token};

use super::{Body, Function, Outcome};
use crate::error::CqlError;
use crate::keys;

/// The name of the function.
pub(super) const NAME: &str = "token";

/// The function for a table. The token of a virtual table is the key itself.
pub(super) fn function(table: &TableMetadata) -> Function {
    let types: Vec<_> = table.partition_key.iter().map(|column| column.ty.clone()).collect();
    if table.is_virtual() {
        return Function::new(NAME, &types, table.partition_key_type.clone(), Body::Raw(local));
    }
    Function::new(NAME, &types, CqlType::BigInt, Body::Raw(token))
}

/// The serialized key; None: a component is null.
fn key(arguments: &[Option<&[u8]>]) -> Result<Option<Bytes>, CqlError> {
    let values: Option<Vec<_>> = arguments.iter().map(|value| value.map(Bytes::copy_from_slice)).collect();
    values.map(|values| keys::compose(&values)).transpose()
}

fn local(_: &Function, arguments: &[Option<&[u8]>], out: &mut Vec<u8>) -> Outcome {
    let Some(key) = key(arguments)? else { return Ok(false) };
    out.extend_from_slice(&key);
    Ok(true)
}

fn token(_: &Function, arguments: &[Option<&[u8]>], out: &mut Vec<u8>) -> Outcome {
    let token = match arguments {
        [Some(only)] => Token::of_key(only),
        _ => {
            let Some(key) = key(arguments)? else { return Ok(false) };
            Token::of_key(&key)
        }
    };
    out.extend_from_slice(&token.0.to_be_bytes());
    Ok(true)
}
