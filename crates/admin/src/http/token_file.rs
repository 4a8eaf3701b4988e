//! The file with the token of the admin port, written by the node at each start and read by
//! nodetool.
//!
//! Two lines of text: `helenus admin token of port PORT`, and 64 hexadecimal digits. Only the owner
//! may read the file (0600). The node chooses a new token at each start. nodetool asks the port
//! where the file is (`token_file`), so nobody has to tell; as a stranger may have taken the port
//! of a node that is down, and may name the file of another node, nodetool shows a token only to
//! the port that its file names.

use std::io;
use std::path::{Path, PathBuf};

use env::Env;

/// The name of the file in the data directory.
const FILE_NAME: &str = "admin_token";
const FIRST_WORDS: &str = "helenus admin token of port ";
/// Random bytes of a token.
const TOKEN_SIZE: usize = 32;
/// A token file is shorter.
const FILE_SIZE_MAX: u64 = 1 << 10;

/// A node's token and where it is written.
#[derive(Clone)]
pub struct TokenFile {
    /// The file.
    pub path: PathBuf,
    /// The token, in hexadecimal digits.
    pub token: String,
}

impl TokenFile {
    /// A new token for a file in a data directory. Nothing is written yet.
    pub fn new(env: &Env, data_directory: &Path) -> Self {
        let mut token = String::with_capacity(2 * TOKEN_SIZE);
        for _ in 0..TOKEN_SIZE / size_of::<u64>() {
            token += &format!("{:016x}", env.random.next_u64());
        }
        assert_eq!(token.len(), 2 * TOKEN_SIZE, "a token has all its digits");
        Self { path: data_directory.join(FILE_NAME), token }
    }

    /// Writes the file for the port that the node listens on, in the place of the one of the start
    /// before.
    pub fn write(&self, env: &Env, port: u16) -> io::Result<()> {
        let temporary = self.path.with_extension("tmp");
        let mut file = env.disk.create_private(&temporary)?;
        file.write_all(format!("{FIRST_WORDS}{port}\n{}\n", self.token).as_bytes())?;
        file.sync_data()?;
        drop(file);
        env.disk.rename(&temporary, &self.path)
    }
}

/// The token in a file. With a port the file must be that of a node on this port.
pub(super) fn read(env: &Env, path: &Path, port: Option<u16>) -> Result<String, String> {
    let text = env.disk.read_all(path, FILE_SIZE_MAX).map_err(|error| format!("{}: {error}", path.display()))?;
    let parsed = std::str::from_utf8(&text).ok().and_then(parse);
    let Some((of_port, token)) = parsed else { return Err(format!("{} is no token file", path.display())) };
    match port {
        Some(port) if port != of_port => {
            Err(format!("{} is the token file of port {of_port}, not of port {port}", path.display()))
        }
        _ => Ok(token.to_owned()),
    }
}

/// The port and the token of a file's text.
fn parse(text: &str) -> Option<(u16, &str)> {
    let (first, rest) = text.split_once('\n')?;
    let port = first.strip_prefix(FIRST_WORDS)?.parse().ok()?;
    let token = rest.trim_end();
    (token.len() == 2 * TOKEN_SIZE && token.bytes().all(|digit| digit.is_ascii_hexdigit())).then_some((port, token))
}
