//! `x_as_blob` and `blob_as_x`: the bytes of a value. Agrees with
//! `org.apache.cassandra.cql3.functions.BytesConversionFcts`.

use types::{CqlType, literal};

use super::registry::FunctionRegistry;
use super::{Body, Function, Outcome};
use crate::ast::NativeType;
use crate::error::CqlError;
use crate::fit::native_type;
use crate::scalar::{self, type_name};

/// Declares them.
pub(super) fn declare(registry: &mut FunctionRegistry) {
    for native in NativeType::ALL.iter().filter(|native| **native != NativeType::Blob) {
        let (word, ty) = (native.name(), native_type(*native));
        let to =
            Function::new(&format!("{word}_as_blob"), std::slice::from_ref(&ty), CqlType::Blob, Body::Raw(to_blob));
        registry.add_with_old_name(to, &format!("{word}asblob"));
        let from = Function::new(&format!("blob_as_{word}"), &[CqlType::Blob], ty, Body::Raw(from_blob));
        registry.add_with_old_name(from, &format!("blobas{word}"));
    }
}

fn to_blob(_: &Function, arguments: &[Option<&[u8]>], out: &mut Vec<u8>) -> Outcome {
    let [Some(value)] = arguments else { return Ok(false) };
    out.extend_from_slice(value);
    Ok(true)
}

fn from_blob(function: &Function, arguments: &[Option<&[u8]>], out: &mut Vec<u8>) -> Outcome {
    let [Some(value)] = arguments else { return Ok(false) };
    if scalar::validate(&function.returns, value).is_err() {
        return Err(CqlError::invalid(format!(
            "In call to function {}, value 0x{} is not a valid binary representation for type {}",
            function.full_name(),
            literal::hex(value),
            type_name(&function.returns)
        )));
    }
    out.extend_from_slice(value);
    Ok(true)
}
