//! `mask_hash`: a digest of the serialized value. Agrees with
//! `org.apache.cassandra.cql3.functions.masking.HashMaskingFunction`, except that MD2 is missing
//! among the algorithms that Java knows.

use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};

use super::super::{Function, Outcome};
use crate::error::CqlError;

/// Appends the digest of a value.
type Hash = fn(&[u8], &mut Vec<u8>);

/// Appends the digest of the first argument, with the algorithm that the second names.
pub(super) fn mask(_: &Function, arguments: &[Option<&[u8]>], out: &mut Vec<u8>) -> Outcome {
    let digest = digest_of(arguments.get(1).copied().flatten())?;
    let Some(Some(value)) = arguments.first() else { return Ok(false) };
    digest(value, out);
    Ok(true)
}

fn append<D: Digest>(value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&D::digest(value));
}

fn digest_of(algorithm: Option<&[u8]>) -> Result<Hash, CqlError> {
    let Some(algorithm) = algorithm else { return Ok(append::<Sha256>) };
    let name = String::from_utf8_lossy(algorithm);
    Ok(match name.to_ascii_uppercase().as_str() {
        "MD5" => append::<Md5>,
        "SHA" | "SHA1" | "SHA-1" => append::<Sha1>,
        "SHA224" | "SHA-224" => append::<Sha224>,
        "SHA256" | "SHA-256" => append::<Sha256>,
        "SHA384" | "SHA-384" => append::<Sha384>,
        "SHA512" | "SHA-512" => append::<Sha512>,
        "SHA512/224" | "SHA-512/224" => append::<Sha512_224>,
        "SHA512/256" | "SHA-512/256" => append::<Sha512_256>,
        "SHA3-224" => append::<Sha3_224>,
        "SHA3-256" => append::<Sha3_256>,
        "SHA3-384" => append::<Sha3_384>,
        "SHA3-512" => append::<Sha3_512>,
        _ => return Err(CqlError::invalid(format!("Hash algorithm not found: {name}"))),
    })
}
