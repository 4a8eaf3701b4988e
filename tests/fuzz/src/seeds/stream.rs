//! Seeds of streaming links: captured of Cassandra 5.0.8, in `crates/streaming/testdata`.

use std::fs;

/// Bytes of the opener's handshake over IPv4.
const HANDSHAKE_SIZE: usize = 19;
/// Bytes of a link that a seed has.
const LINK_LENGTH: usize = 6000;

/// The openers' sides behind the handshakes: control links and file links of each form.
pub fn links() -> Vec<Vec<u8>> {
    let folder = crate::root().join("crates/streaming/testdata/links");
    let entries = fs::read_dir(folder).expect("captures are in the tree");
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.to_str().is_some_and(|path| path.ends_with("opener.bin")));
    paths.sort();
    let seed = |path: &std::path::PathBuf| {
        let link = fs::read(path).expect("a capture is readable");
        link.into_iter().skip(HANDSHAKE_SIZE).take(LINK_LENGTH).collect()
    };
    paths.iter().map(seed).collect()
}
