//! The first password of the image: that of the superuser `cassandra` in a ring without roles.
//!
//! `HELENUS_PASSWORD`, or the file that `HELENUS_PASSWORD_FILE` names, gives the password; a node
//! whose users log in without either makes a random one and prints it once, on stdout, which is the
//! container's log. Cassandra's default password is refused: whoever reaches the port knows it. A
//! role that exists keeps its password.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use env::Env;
use server::running::FirstPassword;

use super::Container;

/// The password itself.
pub(super) const VARIABLE: &str = "HELENUS_PASSWORD";
/// A file with the password, as secrets are mounted. Line ends behind the password do not count.
pub(super) const FILE_VARIABLE: &str = "HELENUS_PASSWORD_FILE";
/// The keys that a given password stands for where no cassandra.yaml is mounted: users log in, and
/// permissions count.
pub(super) const KEYS: [(&str, &str); 2] =
    [("authenticator", "PasswordAuthenticator"), ("authorizer", "CassandraAuthorizer")];

/// The most bytes of a password: bcrypt leaves out the bytes behind them.
const PASSWORD_MAX: usize = 72;
/// The most bytes that are read of the file.
const FILE_MAX: u64 = 4096;

/// The file that the variables name; None: they name none.
pub(super) fn read_file(env: &Env, variables: &BTreeMap<String, String>) -> Option<Result<String, String>> {
    let path = variables.get(FILE_VARIABLE).filter(|path| !path.trim().is_empty())?;
    let read = env.disk.read_all(Path::new(path.trim()), FILE_MAX).map_err(|error| error.to_string());
    Some(read.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "the file is no text".to_owned())))
}

/// The password that the environment gives; None: it gives none. Err: a sentence that says which
/// variable is wrong.
pub(super) fn chosen(container: &Container) -> Result<Option<String>, String> {
    let direct = container.variables.get(VARIABLE).filter(|value| !value.is_empty());
    let (name, password) = match (direct, &container.password_file) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => return Err(format!("{VARIABLE} and {FILE_VARIABLE} are both given: leave one out")),
        (Some(password), None) => (VARIABLE, password.as_str()),
        (None, Some(Ok(text))) => (FILE_VARIABLE, text.trim_end_matches(['\n', '\r'])),
        (None, Some(Err(why))) => return Err(format!("{FILE_VARIABLE}: {why}")),
    };
    let refused = match password {
        "" => "the password is empty",
        "cassandra" => "cassandra is the password that everybody tries first: choose another",
        long if long.len() > PASSWORD_MAX => "the password has more than 72 bytes, which is all that bcrypt takes",
        password => return Ok(Some(password.to_owned())),
    };
    Err(format!("{name}: {refused}"))
}

/// A random password, which is printed when the superuser is made.
pub(super) fn random() -> FirstPassword {
    FirstPassword::Random(Arc::new(|password| {
        let mut out = std::io::stdout().lock();
        // an error means that nobody reads stdout: the role is made all the same, so that the node
        // is not open to the default password
        let _ = writeln!(out, "helenus: password of the superuser 'cassandra', shown this once: {password}");
        let _ = out.flush();
    }))
}
