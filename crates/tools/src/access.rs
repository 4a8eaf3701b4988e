//! The ring that a load goes to: the options of `helenus sstable load` and `helenus backup load`
//! that say how its nodes are reached.

use std::path::{Path, PathBuf};

use bulk::Access;
use clap::Args;
use env::Env;
use tls::TlsOptions;

/// Most bytes of a PEM file, and of a file of passwords.
const FILE_SIZE_MAX: u64 = 1 << 20;

/// Nodes of a ring, and how they are reached.
#[derive(Args, Debug)]
pub struct RingAccess {
    /// Nodes that are asked for the ring, one after the other until one answers.
    #[arg(short = 'd', long, required = true, value_delimiter = ',', value_name = "HOST[,HOST]")]
    nodes: Vec<String>,
    /// The port for clients.
    #[arg(short = 'p', long, default_value_t = 9042)]
    port: u16,
    /// The port on which nodes listen for each other [default: as the ring tells].
    #[arg(long)]
    storage_port: Option<u16>,
    /// The user's name.
    #[arg(short = 'u', long, requires = "secret")]
    username: Option<String>,
    /// The user's password. Everybody on this machine can see it: --password-file hides it.
    #[arg(long, requires = "username", group = "secret")]
    password: Option<String>,
    /// File with lines of a user and a password.
    #[arg(long, value_name = "FILE", requires = "username", group = "secret")]
    password_file: Option<PathBuf>,
    #[command(flatten)]
    encryption: EncryptionFiles,
}

/// Files of keys and certificates, as PEM.
#[derive(Args, Debug)]
struct EncryptionFiles {
    /// Certificates that sign those of the nodes' port for clients; with it the port is encrypted.
    #[arg(long, value_name = "PEM")]
    truststore: Option<PathBuf>,
    /// Key and certificate to show on the port for clients.
    #[arg(long, value_name = "PEM", requires = "truststore")]
    keystore: Option<PathBuf>,
    /// Certificates that sign those of the nodes' links; with it links are encrypted
    /// (server_encryption_options).
    #[arg(long, value_name = "PEM", requires = "internode_keystore")]
    internode_truststore: Option<PathBuf>,
    /// Key and certificate to show on links to the nodes.
    #[arg(long, value_name = "PEM", requires = "internode_truststore")]
    internode_keystore: Option<PathBuf>,
}

impl RingAccess {
    /// The nodes' port for clients. Err: a file that cannot be used.
    pub fn access(&self, env: &Env) -> Result<Access, String> {
        let EncryptionFiles { truststore, keystore, .. } = &self.encryption;
        Ok(Access {
            nodes: self.nodes.clone(),
            port: self.port,
            login: self.login(env)?,
            tls: tls(env, truststore.as_deref(), keystore.as_deref())?,
        })
    }

    /// The port on which nodes listen for each other; None: as the ring tells.
    pub fn storage_port(&self) -> Option<u16> {
        self.storage_port
    }

    /// Encryption of links to the nodes; None: there is none. Err: a file that cannot be used.
    pub fn internode_tls(&self, env: &Env) -> Result<Option<TlsOptions>, String> {
        let EncryptionFiles { internode_truststore, internode_keystore, .. } = &self.encryption;
        tls(env, internode_truststore.as_deref(), internode_keystore.as_deref())
    }

    fn login(&self, env: &Env) -> Result<Option<(String, String)>, String> {
        let Some(user) = &self.username else { return Ok(None) };
        let password = match &self.password_file {
            Some(file) => {
                let text = read(env, file)?.ok_or_else(|| format!("{} is not text", file.display()))?;
                password_of(&text, user).ok_or_else(|| format!("{} has no line of {user}", file.display()))?
            }
            None => self.password.clone().unwrap_or_default(),
        };
        Ok(Some((user.clone(), password)))
    }
}

/// The password of a user: a line has a user, blanks, and a password, as nodetool's files have.
fn password_of(text: &str, user: &str) -> Option<String> {
    let mut lines = text.lines().filter_map(|line| line.trim().split_once([' ', '\t']));
    lines.find(|(name, _)| *name == user).map(|(_, password)| password.trim().to_owned())
}

/// The content of a file; None: it is not text.
fn read(env: &Env, path: &Path) -> Result<Option<String>, String> {
    let bytes = env.disk.read_all(path, FILE_SIZE_MAX).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(String::from_utf8(bytes).ok())
}

fn tls(env: &Env, trusted: Option<&Path>, identity: Option<&Path>) -> Result<Option<TlsOptions>, String> {
    let pem = |path: &Path| {
        read(env, path)?.ok_or_else(|| format!("{} is not PEM (keystores of Java are not read)", path.display()))
    };
    let Some(trusted) = trusted else { return Ok(None) };
    let identity = identity.map(pem).transpose()?.unwrap_or_default();
    Ok(Some(TlsOptions { identity, trusted: Some(pem(trusted)?), ..TlsOptions::default() }))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        ring: RingAccess,
    }

    fn parsed(words: &[&str]) -> Result<RingAccess, String> {
        let mut all = vec!["load", "--nodes", "a,b"];
        all.extend(words);
        Program::try_parse_from(all).map(|program| program.ring).map_err(|error| error.to_string())
    }

    #[test]
    fn a_password_stands_in_a_file_or_on_the_command_line() {
        let (env, directory) = (env::real::env(), tempfile::tempdir().expect("a directory"));
        let path = directory.path().join("passwords");
        env.disk.replace_file(&path, b"# users\nann  secret\nbob\tother word\n").expect("written");
        let file = path.to_str().expect("a path");
        let login = |words: &[&str]| parsed(words).and_then(|ring| Ok(ring.access(&env)?.login));
        let of = |user: &str, password: &str| -> Result<Option<(String, String)>, String> {
            Ok(Some((user.to_owned(), password.to_owned())))
        };
        assert_eq!(login(&[]), Ok(None));
        assert_eq!(login(&["-u", "ann", "--password-file", file]), of("ann", "secret"));
        assert_eq!(login(&["-u", "bob", "--password-file", file]), of("bob", "other word"));
        assert_eq!(login(&["-u", "ann", "--password", "x"]), of("ann", "x"));
        assert!(login(&["-u", "eve", "--password-file", file]).expect_err("nobody").ends_with("has no line of eve"));
        let refused: [&[&str]; 4] = [
            &["-u", "ann"],
            &["--password", "x"],
            &["--password-file", file],
            &["-u", "ann", "--password", "x", "--password-file", file],
        ];
        for words in refused {
            assert!(login(words).is_err(), "{words:?}");
        }
    }

    /// The identity and the trusted certificates for a port; None: no TLS there.
    type Shown = Option<(String, Option<String>)>;

    #[test]
    fn each_port_has_its_certificates() {
        let (env, directory) = (env::real::env(), tempfile::tempdir().expect("a directory"));
        let path = |name: &str| {
            let path = directory.path().join(name);
            env.disk.replace_file(&path, name.as_bytes()).expect("written");
            path.to_str().expect("a path").to_owned()
        };
        let files = [path("trusted"), path("own")];
        let [trusted, own] = [files[0].as_str(), files[1].as_str()];
        let of = |words: &[&str]| -> Result<Vec<Shown>, String> {
            let ring = parsed(words)?;
            let shown = |tls: Option<TlsOptions>| tls.map(|tls| (tls.identity, tls.trusted));
            Ok(vec![shown(ring.access(&env)?.tls), shown(ring.internode_tls(&env)?)])
        };
        let both = |identity: &str| Some((identity.to_owned(), Some("trusted".to_owned())));
        assert_eq!(of(&[]), Ok(vec![None, None]));
        assert_eq!(of(&["--truststore", trusted]), Ok(vec![both(""), None]));
        assert_eq!(of(&["--truststore", trusted, "--keystore", own]), Ok(vec![both("own"), None]));
        let links = ["--internode-truststore", trusted, "--internode-keystore", own];
        assert_eq!(of(&links), Ok(vec![None, both("own")]));
        assert!(of(&links[..2]).is_err() && of(&["--keystore", own]).is_err());
        assert!(of(&["--truststore", "/no/such/file"]).expect_err("no file").starts_with("/no/such/file: "));
    }
}
