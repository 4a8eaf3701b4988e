//! Tests of options as clients write them: the stored form, or the words of the refusal.

use super::*;
use crate::options::OptionValue;

/// Reads `name = value` and `name = {k: v, k: v}` pairs separated by ` AND `.
fn options(text: &str) -> Options {
    let mut options = Options::default();
    for property in text.split(" AND ").filter(|property| !property.is_empty()) {
        let (name, value) = property.split_once(" = ").expect("name = value");
        let value = match value.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')) {
            Some(inner) => OptionValue::Map(
                inner
                    .split(", ")
                    .filter(|pair| !pair.is_empty())
                    .map(|pair| pair.split_once(": ").expect("key: value"))
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .collect(),
            ),
            None => OptionValue::Text(value.to_owned()),
        };
        options.add(name, value).expect("names differ");
    }
    options
}

fn refusal(text: &str) -> String {
    TableParams::create(&options(text)).expect_err(text).message().to_owned()
}

#[test]
fn no_options_are_the_defaults() {
    assert_eq!(TableParams::create(&Options::default()), Ok(TableParams::default()));
}

#[test]
fn classes_and_defaults_are_filled_in() {
    let params = TableParams::create(&options(
        "compaction = {class: LeveledCompactionStrategy, sstable_size_in_mb: 32} AND \
         compression = {class: ZstdCompressor, compression_level: 5, chunk_length_in_kb: 64} AND \
         caching = {keys: none, rows_per_partition: 10} AND read_repair = none AND speculative_retry = 99PERCENTILE AND cdc = false",
    ))
    .expect("valid");
    assert_eq!(params.bloom_filter_fp_chance, 0.1);
    assert_eq!(params.compaction["class"], "org.apache.cassandra.db.compaction.LeveledCompactionStrategy");
    assert_eq!(params.compaction["max_threshold"], "32");
    assert_eq!(params.compression["class"], "org.apache.cassandra.io.compress.ZstdCompressor");
    assert_eq!(params.caching["keys"], "NONE");
    assert_eq!(
        (params.read_repair.as_str(), params.speculative_retry.as_str(), params.cdc),
        ("NONE", "99p", Some(false))
    );
}

#[test]
fn unified_compaction_takes_no_thresholds() {
    let params = TableParams::create(&options("compaction = {class: UnifiedCompactionStrategy}")).expect("valid");
    assert_eq!(params.compaction.len(), 1);
}

#[test]
fn compression_is_switched_off_in_two_ways() {
    for text in ["compression = {}", "compression = {enabled: false}"] {
        let params = TableParams::create(&options(text)).expect("valid");
        assert_eq!(params.compression, BTreeMap::from([("enabled".to_owned(), "false".to_owned())]));
    }
}

#[test]
fn altering_keeps_what_is_not_named() {
    let table = TableParams::create(&options("comment = x AND gc_grace_seconds = 5")).expect("valid");
    let altered = table.altered(&options("gc_grace_seconds = 6")).expect("valid");
    assert_eq!((altered.comment.as_str(), altered.gc_grace_seconds), ("x", 6));
}

#[test]
fn refusals_read_as_cassandras() {
    let cases = [
        ("colour = red", "Unknown property 'colour'"),
        ("comment = {a: b}", "Invalid value for property 'comment'. It should be a string"),
        ("compaction = x", "Invalid value for property 'compaction'. It should be a map."),
        ("gc_grace_seconds = x", "Invalid integer value x for 'gc_grace_seconds'"),
        ("gc_grace_seconds = -1", "gc_grace_seconds must be greater than or equal to 0 (got -1)"),
        ("default_time_to_live = -1", "default_time_to_live must be greater than or equal to 0 (got -1)"),
        (
            "default_time_to_live = 630720001",
            "default_time_to_live must be less than or equal to 630720000 (got 630720001)",
        ),
        (
            "bloom_filter_fp_chance = 2",
            "bloom_filter_fp_chance must be larger than 6.71E-5 and less than or equal to 1.0 (got 2.0)",
        ),
        (
            "crc_check_chance = 1.5",
            "crc_check_chance must be larger than or equal to 0 and smaller than or equal to 1.0 (got 1.5)",
        ),
        ("min_index_interval = 0", "min_index_interval must be greater than or equal to 1 (got 0)"),
        (
            "max_index_interval = 64",
            "max_index_interval must be greater than or equal to min_index_interval (128) (got 64)",
        ),
        ("speculative_retry = soon", "Invalid value soon for option 'speculative_retry'"),
        ("memtable = odd", "Memtable configuration \"odd\" not found."),
        ("compaction = {enabled: true}", "Missing sub-option 'class' for the 'compaction' option"),
        (
            "compaction = {class: Odd}",
            "Unable to find compaction strategy class 'org.apache.cassandra.db.compaction.Odd'",
        ),
        (
            "compaction = {class: SizeTieredCompactionStrategy, odd: 1}",
            "Properties specified [odd] are not understood by SizeTieredCompactionStrategy",
        ),
        (
            "compaction = {class: SizeTieredCompactionStrategy, min_threshold: 1}",
            "Min compaction threshold cannot be less than 2 (got 1)",
        ),
        (
            "compaction = {class: TimeWindowCompactionStrategy, compaction_window_unit: YEARS}",
            "YEARS is not valid for compaction_window_unit",
        ),
        ("compression = {class: Odd}", "Could not create Compression for type org.apache.cassandra.io.compress.Odd"),
        (
            "compression = {sstable_compression: LZ4Compressor}",
            "Missing sub-option 'class' for the 'compression' option.",
        ),
        ("compression = {class: LZ4Compressor, odd: 1}", "Unknown compression options odd"),
        ("compression = {class: LZ4Compressor, chunk_length_in_kb: 3}", "chunk_length_in_kb must be a power of 2"),
        ("caching = {odd: 1}", "Invalid caching sub-options [odd]: only 'keys' and 'rows_per_partition' are allowed"),
    ];
    for (text, message) in cases {
        assert_eq!(refusal(text), message, "{text}");
    }
}
