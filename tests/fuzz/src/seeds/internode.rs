//! Seeds of what peers send: links and messages captured of Cassandra 5.0.8, in
//! `crates/internode/testdata`.

use std::fs;
use std::path::{Path, PathBuf};

use internode::Initiate;

/// Bytes of a link that a seed has.
const LINK_LENGTH: usize = 4000;

/// The files of a folder, by name.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = crate::root().join("crates/internode/testdata").join(folder);
    let entries = fs::read_dir(folder).expect("captures are in the tree");
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

fn contents(path: &Path) -> Vec<u8> {
    fs::read(path).expect("a capture is readable")
}

fn ends_with(path: &Path, end: &str) -> bool {
    path.to_str().is_some_and(|path| path.ends_with(end))
}

/// The first bytes of links, of both sides.
pub fn handshakes() -> Vec<Vec<u8>> {
    files("links").iter().step_by(5).map(|path| contents(path).into_iter().take(40).collect()).collect()
}

/// Frames of links with checksums and with LZ4.
pub fn links() -> Vec<Vec<u8>> {
    let openers = files("links").into_iter().filter(|path| ends_with(path, "opener.bin"));
    let seed = |path: PathBuf| {
        let link = contents(&path);
        let (_, size) = Initiate::decode(&link).expect("a capture begins with a handshake").expect("and has all of it");
        let framing = u8::from(path.to_str().is_some_and(|path| path.contains("v13b")));
        [&[framing][..], &link[size..link.len().min(LINK_LENGTH)]].concat()
    };
    openers.step_by(4).map(seed).collect()
}

/// Messages, some of each verb.
pub fn messages() -> Vec<Vec<u8>> {
    let of_version = |path: &Path| u8::from(!path.to_str().is_some_and(|path| path.contains("/v12-")));
    files("messages").iter().step_by(3).map(|path| [&[of_version(path)][..], &contents(path)].concat()).collect()
}
