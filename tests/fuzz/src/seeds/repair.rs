//! Seeds of repair: payloads captured of Cassandra 5.0.8, in
//! `crates/internode/testdata/repair.jsonl.gz`.

use captures::hex;

use super::reads::lines;

/// Larger payloads, of trees with many leaves, are left out: mutations of them meet nothing new.
const SIZE_MAX: usize = 8 << 10;

/// Payloads, each behind the number of a decoder of [`crate::bodies::repair`].
pub fn payloads() -> Vec<Vec<u8>> {
    let number = |verb: &str| crate::bodies::repair::VERBS.iter().position(|verbs| verbs.contains(&verb));
    let captured = lines("repair.jsonl.gz");
    let seed = |line: &serde_json::Value| {
        let payload = hex(&line["payload"]);
        let number = u8::try_from(number(line["verb"].as_str()?)?).ok()?;
        (payload.len() <= SIZE_MAX).then(|| [&[number][..], &payload].concat())
    };
    captured.iter().filter_map(seed).chain([vec![8; 21]]).collect()
}
