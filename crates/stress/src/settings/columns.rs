//! The columns of the tables `standard1` and `counter1`.

use super::words::Words;
use crate::Result;
use crate::distribution::Distribution;

/// The option `-col`.
pub struct Columns {
    /// Number of columns of the table and of each operation.
    pub count: usize,
    /// Bytes of a value.
    pub size: Distribution,
    /// Names of columns in place of C0, C1, …
    pub names: Vec<String>,
    /// Timestamp of every write, microseconds; None: the present time.
    pub timestamp: Option<i64>,
    /// Whether reads ask for the whole row instead of columns by name.
    pub slice: bool,
}

/// Most columns of a table that this program creates.
const MOST: i64 = 10_000;

impl Columns {
    /// Reads the words of `-col`. The default is five columns of 34 bytes.
    pub fn parse(mut words: Words) -> Result<Self> {
        let count = words.value("n=").map_or(Ok(Distribution::fixed(5)), |text| Distribution::parse(&text))?;
        let size = words.value("size=").map_or(Ok(Distribution::fixed(34)), |text| Distribution::parse(&text))?;
        let timestamp = words.number("timestamp=")?;
        let slice = words.flag("slice");
        words.refuse("super=", "there are no super columns in CQL")?;
        words.refuse("comparator=", "names of columns are text in CQL")?;
        words.refuse("add=", "it is a word of counter_write and mixed: counter_write add=...")?;
        let named = words.value("names=");
        words.end()?;
        if count.min() != count.max() {
            return Err("-col n= must be FIXED(…): each operation has all columns".into());
        }
        if size.min() < 0 || !(1..=MOST).contains(&count.max()) {
            return Err(format!("-col: size= may not be negative, n= is 1 to {MOST}").into());
        }
        let names: Vec<String> = match named {
            Some(text) => text.split(',').map(str::to_owned).collect(),
            None => (0..count.max()).map(|number| format!("C{number}")).collect(),
        };
        Ok(Self { count: names.len(), size, names, timestamp, slice })
    }
}
