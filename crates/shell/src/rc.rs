//! cqlshrc and credentials: INI files in the manner of Python's configparser.
//!
//! `[section]`, `key = value` or `key: value`, comments behind `#` and `;` at the start of a line,
//! values that go on in lines with spaces before them. Keys are compared in small letters.

use std::collections::BTreeMap;
use std::path::Path;

/// Sections with their keys and values.
#[derive(Clone, Debug, Default)]
pub struct Rc {
    sections: BTreeMap<String, BTreeMap<String, String>>,
}

impl Rc {
    /// Reads a file; None: there is none.
    pub fn open(path: &Path) -> Result<Option<Self>, String> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).map(Some).map_err(|error| format!("{}: {error}", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    /// Reads a text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut rc = Self::default();
        let (mut section, mut key) = (None::<String>, None::<String>);
        for (number, line) in (1..).zip(text.lines()) {
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
                continue;
            }
            if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                rc.sections.entry(name.to_owned()).or_default();
                (section, key) = (Some(name.to_owned()), None);
                continue;
            }
            let Some(name) = &section else { return Err(format!("line {number}: a section, [name], comes first")) };
            let keys = rc.sections.entry(name.clone()).or_default();
            if line.starts_with([' ', '\t'])
                && let Some(value) = key.as_ref().and_then(|key| keys.get_mut(key))
            {
                value.push('\n');
                value.push_str(trimmed);
                continue;
            }
            let Some(at) = trimmed.find(['=', ':']) else {
                return Err(format!("line {number}: `key = value` is expected"));
            };
            let found = trimmed[..at].trim().to_lowercase();
            keys.insert(found.clone(), trimmed[at + 1..].trim().to_owned());
            key = Some(found);
        }
        Ok(rc)
    }

    /// A value.
    pub fn get(&self, section: &str, key: &str) -> Option<&str> {
        self.sections.get(section)?.get(key).map(String::as_str)
    }

    /// A value that is `true`, `yes`, `on` or `1`, or their opposites.
    pub fn flag(&self, section: &str, key: &str) -> Result<Option<bool>, String> {
        match self.get(section, key).map(str::to_lowercase).as_deref() {
            None => Ok(None),
            Some("1" | "yes" | "true" | "on") => Ok(Some(true)),
            Some("0" | "no" | "false" | "off") => Ok(Some(false)),
            Some(other) => Err(format!("[{section}] {key} = {other}: true or false is expected")),
        }
    }

    /// Keys and values of a section.
    pub fn section(&self, section: &str) -> impl Iterator<Item = (&str, &str)> {
        self.sections.get(section).into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// All sections with their keys.
    pub fn keys(&self) -> impl Iterator<Item = (&str, &str)> {
        self.sections.iter().flat_map(|(name, keys)| keys.keys().map(move |key| (name.as_str(), key.as_str())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_keys_and_long_values() {
        let text = "; cqlshrc\n[ui]\nColor = on\n# no\ntime_format: %Y:%m\n[copy]\nnull=\n[cql]\nversion = 3\n  4\n";
        let rc = Rc::parse(text).unwrap();
        assert_eq!(rc.flag("ui", "color"), Ok(Some(true)));
        assert_eq!(rc.get("ui", "time_format"), Some("%Y:%m"));
        assert_eq!((rc.get("copy", "null"), rc.get("copy", "header")), (Some(""), None));
        assert_eq!(rc.get("cql", "version"), Some("3\n4"));
        assert!(rc.flag("cql", "version").is_err());
        assert!(Rc::parse("a = b").is_err() && Rc::parse("[a]\nb").is_err());
    }
}
