//! The compressed form of a file's content (`hints_compression`).
//!
//! ```text
//! block: i32 uncompressed length | i32 compressed length | compressed bytes
//! ```
//!
//! The head names the compressor. Behind it the file is a sequence of blocks, and the entries are
//! in the decompressed bytes of the blocks. A block has no checksum of its own, because each entry
//! has one. `org.apache.cassandra.hints.CompressedHintsWriter`, `CompressedChecksummedDataInput`.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Value, json};
use sstable::{CompressionParams, Compressor};
use stdx::{Cursor, put_u32};

use crate::error::HintError;

/// Bytes of a block before the compressed ones.
pub const BLOCK_HEAD: usize = 8;
/// Bytes of entries that are gathered into a block, as Cassandra's writer does. A larger entry is
/// a block of its own.
pub const BLOCK_SIZE: usize = 256 << 10;
/// Most bytes that a block may claim to give; a larger claim is damage. 2 GiB is the largest
/// entry.
const BLOCK_SIZE_MAX: u32 = i32::MAX as u32;

const _: () = assert!(BLOCK_SIZE <= BLOCK_SIZE_MAX as usize, "a block is one that readers take");

/// `hints_compression`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compression {
    /// The class, as the configuration or the file names it.
    class: String,
    /// The class's own parameters; None: none are given.
    named: Option<BTreeMap<String, String>>,
    params: CompressionParams,
}

impl Compression {
    /// The compression of a class and its parameters. Err: what is wrong with them.
    pub fn new(class: &str, parameters: Option<BTreeMap<String, String>>) -> Result<Self, String> {
        let compressor = Compressor::from_class(class).ok_or_else(|| format!("there is no compressor {class}"))?;
        let mut map = parameters.clone().unwrap_or_default();
        map.insert("class".to_owned(), compressor.class().to_owned());
        let params = CompressionParams::from_schema(&map)?.ok_or("no compressor is named")?;
        Ok(Self { class: class.to_owned(), named: parameters, params })
    }

    /// The parameters of a file's head.
    pub(crate) fn parameters(&self) -> Vec<u8> {
        let mut compression = json!({"class_name": self.class});
        if let (Some(named), Some(map)) = (&self.named, compression.as_object_mut()) {
            map.insert("parameters".to_owned(), json!(named));
        }
        json!({"compression": compression}).to_string().into_bytes()
    }

    /// The compression in the parameters of a file's head. None: the file is not compressed. Err:
    /// the kind of the file, which cannot be read.
    pub(crate) fn of_parameters(parameters: &[u8]) -> Result<Option<Self>, String> {
        let unknown = || format!("a file with the parameters {}", String::from_utf8_lossy(parameters));
        let json: Value = serde_json::from_slice(parameters).map_err(|_| unknown())?;
        let map = json.as_object().ok_or_else(unknown)?;
        if map.contains_key("encryption") {
            return Err("an encrypted file".to_owned());
        }
        let Some(compression) = map.get("compression") else { return Ok(None) };
        let class = compression.get("class_name").and_then(Value::as_str).ok_or_else(unknown)?;
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let named = compression.get("parameters").and_then(Value::as_object);
        let named = named.map(|map| map.iter().map(|(name, value)| (name.clone(), text(value))).collect());
        Self::new(class, named).map(Some)
    }

    /// Appends a block that holds `entries`.
    pub fn put_block(&self, out: &mut Vec<u8>, entries: &[u8]) -> io::Result<()> {
        let start = out.len();
        let too_large = || io::Error::other("a block of hints is too large");
        put_u32(out, u32::try_from(entries.len()).map_err(|_| too_large())?);
        put_u32(out, 0);
        self.params.compress(entries, out)?;
        let compressed = u32::try_from(out.len() - start - BLOCK_HEAD).map_err(|_| too_large())?;
        let place = out.get_mut(start + 4..start + BLOCK_HEAD).expect("put before");
        place.copy_from_slice(&compressed.to_be_bytes());
        Ok(())
    }

    /// Decompresses a block.
    pub(crate) fn open_block(&self, compressed: &[u8], length: u32) -> Result<Vec<u8>, String> {
        self.params.compressor.decompress(compressed, length as usize)
    }
}

/// The lengths at the start of a block: uncompressed, compressed.
pub(crate) fn block_head(bytes: &[u8], at: u64) -> Result<(u32, u32), HintError> {
    let mut cursor = Cursor::new(bytes);
    let (plain, compressed) = (cursor.u32()?, cursor.u32()?);
    if plain == 0 || plain > BLOCK_SIZE_MAX || compressed == 0 || compressed > BLOCK_SIZE_MAX {
        return Err(HintError::Corrupt(format!("a block of {plain} bytes in {compressed}"), at));
    }
    Ok((plain, compressed))
}
