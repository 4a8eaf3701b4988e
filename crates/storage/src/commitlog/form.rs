//! The form of the segments that a log writes: plain, or with compressed sections
//! (`commitlog_compression`).
//!
//! A compressed section is written as a whole, once: it cannot be extended. Where a plain log in
//! `periodic` mode leaves a section open, a compressed one ends it and syncs. Positions count as if
//! nothing were compressed (see `compressed`); only the writer knows both places. Agrees with
//! `CompressedSegment` and `CommitLogDescriptor.constructParametersString`.

use std::collections::BTreeMap;

use sstable::{CompressionParams, Compressor};

use super::format::{self, MARKER_LEN};

/// `commitlog_compression`, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compression {
    class: String,
    params: CompressionParams,
}

impl Compression {
    /// Compression by the name of a class and its parameters. Err: what is wrong with them.
    pub fn new(class: &str, parameters: &BTreeMap<String, String>) -> Result<Self, String> {
        let compressor = Compressor::from_class(class).ok_or_else(|| format!("there is no compressor {class}"))?;
        for (name, value) in parameters {
            check_parameter(compressor, name, value)?;
        }
        let mut map = parameters.clone();
        map.insert("class".to_owned(), compressor.class().to_owned());
        let params = CompressionParams::from_schema(&map)?.ok_or("no compressor is named")?;
        Ok(Compression { class: class.to_owned(), params })
    }

    fn header_parameters(&self) -> Vec<u8> {
        let parameters =
            serde_json::json!({"compressionClass": self.class, "compressionParameters": self.params.options});
        parameters.to_string().into_bytes()
    }
}

/// The parameters that the compressors know, with their ranges (`ICompressor.supportedOptions`).
fn check_parameter(compressor: Compressor, name: &str, value: &str) -> Result<(), String> {
    let between = |least: i32, most: i32| match value.parse::<i32>() {
        Ok(number) if (least..=most).contains(&number) => Ok(()),
        _ => Err(format!("{name} must be a number from {least} to {most}")),
    };
    match (compressor, name) {
        (Compressor::Lz4, "lz4_compressor_type") if ["fast", "high"].contains(&value) => Ok(()),
        (Compressor::Lz4, "lz4_compressor_type") => Err(format!("{name} is fast or high")),
        (Compressor::Lz4, "lz4_high_compressor_level") => between(1, 17),
        (Compressor::Zstd, "compression_level") => between(-131_072, 22),
        _ => Err(format!("{} has no parameter {name}", compressor.class())),
    }
}

/// The form in which the log writes its segments.
pub(super) struct Form {
    parameters: Vec<u8>,
    compression: Option<CompressionParams>,
}

impl Form {
    pub(super) fn new(compression: Option<&Compression>) -> Self {
        let parameters = compression.map_or_else(|| format::PARAMETERS.to_vec(), Compression::header_parameters);
        Form { parameters, compression: compression.map(|compression| compression.params.clone()) }
    }

    pub(super) fn is_compressed(&self) -> bool {
        self.compression.is_some()
    }

    pub(super) fn header(&self, id: u64) -> Vec<u8> {
        format::header(id, &self.parameters)
    }

    pub(super) fn header_len(&self) -> u32 {
        format::header_len(&self.parameters)
    }

    /// The length at which a segment's file is made: a compressed one begins at a quarter, grows
    /// as it must and is cut when it is full.
    pub(super) fn file_len(&self, segment_size: u32) -> u32 {
        if self.is_compressed() { (segment_size / 4).max(4 << 10) } else { segment_size }
    }

    /// Puts a compressed section into `out`, as it is stored at `at` of its segment. `section`
    /// begins with the place of its marker.
    pub(super) fn compress(&self, id: u64, at: u32, section: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
        let params = self.compression.as_ref().expect("only asked where sections are compressed");
        let (_, content) = section.split_at(MARKER_LEN as usize);
        out.clear();
        out.extend_from_slice(&[0; MARKER_LEN as usize]);
        out.extend_from_slice(&u32::try_from(content.len()).expect("a section fits a segment").to_be_bytes());
        params.compress(content, out)?;
        let end = u32::try_from(out.len()).ok().and_then(|length| at.checked_add(length));
        let end = end.filter(|end| *end <= i32::MAX as u32);
        let end = end.ok_or_else(|| std::io::Error::other("a compressed segment grew beyond 2 GiB"))?;
        out.get_mut(..MARKER_LEN as usize).expect("put before").copy_from_slice(&format::marker(id, at, end));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(class: &str, parameters: &[(&str, &str)]) -> Result<Compression, String> {
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Compression::new(class, &parameters)
    }

    #[test]
    fn headers_name_the_compressor_as_the_configuration_does() {
        let with_level = new("ZstdCompressor", &[("compression_level", "5")]).unwrap();
        let header = format::read_header(&Form::new(Some(&with_level)).header(7)).unwrap();
        assert_eq!(
            String::from_utf8(header.parameters).unwrap(),
            r#"{"compressionClass":"ZstdCompressor","compressionParameters":{"compression_level":"5"}}"#
        );
        assert_eq!(header.len, Form::new(Some(&with_level)).header_len());
        assert_eq!(Form::new(None).header(7).len(), 20);
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let refused = |class: &str, name: &str, value: &str| new(class, &[(name, value)]).unwrap_err();
        assert_eq!(new("Lz5Compressor", &[]).unwrap_err(), "there is no compressor Lz5Compressor");
        assert_eq!(refused("SnappyCompressor", "level", "1"), "SnappyCompressor has no parameter level");
        assert_eq!(refused("LZ4Compressor", "lz4_compressor_type", "slow"), "lz4_compressor_type is fast or high");
        assert_eq!(
            refused("ZstdCompressor", "compression_level", "23"),
            "compression_level must be a number from -131072 to 22"
        );
        assert!(new("org.apache.cassandra.io.compress.LZ4Compressor", &[("lz4_high_compressor_level", "9")]).is_ok());
    }
}
