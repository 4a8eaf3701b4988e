//! A file with names and passwords, which keeps them off the command line.

use super::words::Words;
use crate::Result;

/// `-credentials-file`, with the keys of cassandra-stress that have a meaning here.
#[derive(Default)]
pub struct Credentials {
    pub user: Option<String>,
    pub password: Option<String>,
}

impl Credentials {
    /// Reads the file that the words name: lines of `key=value` or `key: value`, as in Java's
    /// properties.
    pub fn parse(mut words: Words) -> Result<Self> {
        match words.rest().as_slice() {
            [] => Ok(Self::default()),
            [file] => {
                let text =
                    std::fs::read_to_string(file).map_err(|error| format!("-credentials-file {file}: {error}"))?;
                Ok(Self::of(&text))
            }
            _ => Err("-credentials-file takes one file".into()),
        }
    }

    fn of(text: &str) -> Self {
        let value = |wanted: &str| {
            text.lines().map(str::trim).filter(|line| !line.starts_with(['#', '!'])).find_map(|line| {
                let (key, value) = line.split_once(['=', ':'])?;
                (key.trim() == wanted).then(|| value.trim().to_owned())
            })
        };
        Self { user: value("cql.username"), password: value("cql.password") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_properties_file() {
        let read = Credentials::of("# ours\ncql.username = anna\ncql.password: a=b\njmx.username=x\n");
        assert_eq!((read.user.as_deref(), read.password.as_deref()), (Some("anna"), Some("a=b")));
    }
}
