//! The words of COPY and its options.
//!
//! Options come from [copy], [copy-to] or [copy-from], [copy:ks.table] and [copy-to:ks.table] of
//! cqlshrc or of CONFIGFILE, then from WITH, each over those before it. All options of cqlsh 6.2
//! are known; the few that have no meaning here are refused by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::csv::Dialect;
use crate::lexer;
use crate::options::expand;
use crate::rc::Rc;
use crate::value::Style;

/// The words of a COPY.
#[derive(Debug, PartialEq, Eq)]
pub struct Words {
    /// The keyspace, if it is named.
    pub keyspace: Option<String>,
    /// The table.
    pub table: String,
    /// The columns; empty: all.
    pub columns: Vec<String>,
    /// Whether the table is read from CSV; false: it is written.
    pub from: bool,
    /// The file; None: STDIN or STDOUT.
    pub file: Option<String>,
    /// Options in small letters.
    pub with: BTreeMap<String, String>,
}

impl Words {
    /// Reads a statement; None: it is no COPY.
    pub fn parse(statement: &str) -> Option<Self> {
        let tokens = lexer::tokens(statement);
        let tokens: Vec<&str> =
            tokens.iter().filter(|token| token.is_meaningful()).map(|token| token.text(statement)).collect();
        let (first, rest) = tokens.split_first()?;
        if !first.eq_ignore_ascii_case("copy") {
            return None;
        }
        let (keyspace, table, rest) = match rest {
            [keyspace, ".", table, rest @ ..] => (Some(lexer::name(keyspace)), lexer::name(table), rest),
            [table, rest @ ..] => (None, lexer::name(table), rest),
            [] => return None,
        };
        let (columns, rest) = match rest.split_first()? {
            (&"(", rest) => {
                let end = rest.iter().position(|word| *word == ")")?;
                let names = rest[..end].split(|word| *word == ",");
                let names: Option<Vec<_>> =
                    names.map(|name| if let [name] = name { Some(lexer::name(name)) } else { None }).collect();
                (names?, &rest[end + 1..])
            }
            _ => (Vec::new(), rest),
        };
        let [direction, file, rest @ ..] = rest else { return None };
        let from = match direction.to_ascii_uppercase().as_str() {
            "FROM" => true,
            "TO" => false,
            _ => return None,
        };
        let file = match file.to_ascii_uppercase().as_str() {
            "STDIN" if from => None,
            "STDOUT" if !from => None,
            _ if file.starts_with('\'') => Some(lexer::unquote(file)),
            _ => return None,
        };
        Some(Self { keyspace, table, columns, from, file, with: with(rest)? })
    }
}

fn with(words: &[&str]) -> Option<BTreeMap<String, String>> {
    let mut options = BTreeMap::new();
    let Some((first, rest)) = words.split_first() else { return Some(options) };
    if !first.eq_ignore_ascii_case("with") {
        return None;
    }
    for option in rest.split(|word| word.eq_ignore_ascii_case("and")) {
        match option {
            [name, "=", value] => options.insert(name.to_lowercase(), lexer::unquote(value)),
            [name, "=", "-", value] => options.insert(name.to_lowercase(), format!("-{value}")),
            _ => return None,
        };
    }
    Some(options)
}

/// The options of a COPY.
#[derive(Clone, Debug)]
pub struct CopyOptions {
    /// Characters of the file.
    pub dialect: Dialect,
    /// How values are written and read.
    pub style: Style,
    /// Whether the first line has names of columns.
    pub header: bool,
    /// Attempts for a page or a batch.
    pub attempts_max: u32,
    /// Seconds between two reports.
    pub report_seconds: f64,
    /// File that the reports are appended to.
    pub rate_file: Option<PathBuf>,
    /// Connections, and tasks that read or write CSV.
    pub processes: usize,
    /// Rows of a page.
    pub page_size: u32,
    /// Seconds to wait for a page.
    pub page_timeout: u64,
    /// Requests in flight for each connection.
    pub requests_max: usize,
    /// Only tokens above this one.
    pub begin_token: Option<i64>,
    /// Only tokens up to this one.
    pub end_token: Option<i64>,
    /// Most rows of a file of output.
    pub output_max: Option<u64>,
    /// Rows that are read and handed over together.
    pub chunk_size: usize,
    /// Rows a second at most; None: as fast as the node takes them.
    pub ingest_rate: Option<u64>,
    /// From this number of rows on, rows of one partition have batches of their own.
    pub batch_min: usize,
    /// Most rows of a batch.
    pub batch_max: usize,
    /// Most rows that are read.
    pub rows_max: Option<u64>,
    /// Rows that are skipped.
    pub skip_rows: u64,
    /// Columns that are skipped.
    pub skip_columns: Vec<String>,
    /// Most rows that may not be understood; None: any number.
    pub parse_errors_max: Option<u64>,
    /// Most rows that the node may refuse; None: any number.
    pub insert_errors_max: Option<u64>,
    /// File of rows that were not imported.
    pub error_file: PathBuf,
    /// Seconds that rows live; None: for ever.
    pub ttl: Option<u64>,
}

/// Options as they were given, each taken once.
struct Given(BTreeMap<String, String>);

impl Given {
    fn text(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    fn number<T: std::str::FromStr>(&mut self, name: &str, otherwise: T) -> Result<T, String> {
        match self.text(name) {
            None => Ok(otherwise),
            Some(text) => {
                text.trim().parse().map_err(|_| format!("{}={text}: a number is expected", name.to_uppercase()))
            }
        }
    }

    /// A number of which -1 means no limit.
    fn limit(&mut self, name: &str, otherwise: Option<u64>) -> Result<Option<u64>, String> {
        let number = self.number(name, otherwise.map_or(-1, |limit| limit as i64))?;
        Ok(u64::try_from(number).ok())
    }

    fn flag(&mut self, name: &str, otherwise: bool) -> bool {
        self.text(name).map_or(otherwise, |text| text.eq_ignore_ascii_case("true"))
    }

    fn character(&mut self, name: &str, otherwise: u8) -> Result<u8, String> {
        match self.text(name).as_deref().map(str::as_bytes) {
            None => Ok(otherwise),
            Some([one]) if one.is_ascii() && !matches!(one, b'\n' | b'\r') => Ok(*one),
            Some(b"\\t") => Ok(b'\t'),
            Some(_) => Err(format!("{}: one ASCII character is expected", name.to_uppercase())),
        }
    }
}

const OF_TO: [&str; 8] = [
    "pagesize",
    "pagetimeout",
    "begintoken",
    "endtoken",
    "maxrequests",
    "maxoutputsize",
    "floatprecision",
    "doubleprecision",
];

/// Reads the options of cqlshrc and of the statement.
pub fn read(words: &Words, keyspace: &str, rc: &Rc, style: &Style, cores: usize) -> Result<CopyOptions, String> {
    let direction = if words.from { "from" } else { "to" };
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let path = |text: &str| expand(Path::new(text), home.as_deref());
    let mut with = words.with.clone();
    let file = match with.remove("configfile").filter(|file| !file.is_empty()) {
        None => None,
        Some(file) => Some(Rc::open(&path(&file))?.ok_or(format!("CONFIGFILE '{file}' is not there"))?),
    };
    let rc = file.as_ref().unwrap_or(rc);
    let table = format!("{keyspace}.{}", words.table);
    let sections =
        ["copy".to_owned(), format!("copy-{direction}"), format!("copy:{table}"), format!("copy-{direction}:{table}")];
    let mut all = BTreeMap::new();
    for section in sections {
        all.extend(rc.section(&section).map(|(key, value)| (key.to_owned(), value.to_owned())));
    }
    // a section for both directions may hold options of the other one
    let shared: Vec<String> = all.keys().filter(|name| words.from && OF_TO.contains(&name.as_str())).cloned().collect();
    shared.iter().for_each(|name| drop(all.remove(name)));
    all.extend(with);
    let mut given = Given(all);
    let copy = take(&mut given, words, keyspace, style, cores, &path)?;
    if !given.0.is_empty() {
        let names: Vec<&str> = given.0.keys().map(String::as_str).collect();
        return Err(format!("Unrecognized COPY {} options: {}", direction.to_uppercase(), names.join(", ")));
    }
    Ok(copy)
}

fn take(
    given: &mut Given,
    words: &Words,
    keyspace: &str,
    style: &Style,
    cores: usize,
    path: &dyn Fn(&str) -> PathBuf,
) -> Result<CopyOptions, String> {
    let default = Dialect::default();
    let dialect = Dialect {
        delimiter: given.character("delimiter", default.delimiter)?,
        quote: given.character("quote", default.quote)?,
        escape: given.character("escape", default.escape)?,
    };
    let encoding = given.text("encoding").unwrap_or_default().to_lowercase().replace(['-', '_'], "");
    if !matches!(encoding.as_str(), "" | "utf8") {
        return Err("ENCODING: files are read and written as UTF-8 alone here; iconv makes the others".into());
    }
    if !given.flag("preparedstatements", true) {
        return Err("PREPAREDSTATEMENTS=false: values are always bound to a prepared statement here".into());
    }
    let booleans = given.text("boolstyle").unwrap_or_else(|| "True,False".into());
    let booleans: Vec<String> = booleans.split(',').map(|text| text.trim().to_owned()).collect();
    let booleans: [String; 2] = booleans
        .try_into()
        .ok()
        .filter(|[yes, no]: &[String; 2]| yes != no && !yes.is_empty() && !no.is_empty())
        .ok_or("BOOLSTYLE: two different words are expected, such as yes,no")?;
    let separator = |text: Option<String>, none: &str| text.filter(|text| !text.is_empty() && text != none);
    let style = Style {
        timestamp_format: given.text("datetimeformat").unwrap_or_else(|| style.timestamp_format.clone()),
        milliseconds_only: true,
        escape: false,
        float_precision: given.number("floatprecision", 5)?,
        double_precision: given.number("doubleprecision", 12)?,
        null: given.text("null").unwrap_or_default(),
        decimal_separator: separator(given.text("decimalsep"), "."),
        thousands_separator: separator(given.text("thousandssep"), ""),
        booleans,
        ..style.clone()
    };
    let page_size: u32 = given.number("pagesize", 1000)?;
    let processes: usize = given.number("numprocesses", cores.clamp(1, 16))?;
    let batch_max: usize = given.number("maxbatchsize", 20)?;
    let error_file = given.text("errfile").filter(|text| !text.is_empty());
    let error_file = error_file.unwrap_or_else(|| format!("import_{keyspace}_{}.err", words.table));
    let token = |text: Option<String>| match text.filter(|text| !text.is_empty()) {
        None => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| format!("'{text}' is no token of Murmur3Partitioner")),
    };
    let skip = given.text("skipcols").unwrap_or_default();
    let ttl: i64 = given.number("ttl", -1)?;
    Ok(CopyOptions {
        dialect,
        style,
        header: given.flag("header", false),
        attempts_max: given.number("maxattempts", 5)?,
        report_seconds: given.number("reportfrequency", 0.25)?,
        rate_file: given.text("ratefile").filter(|text| !text.is_empty()).map(|text| path(&text)),
        processes: processes.clamp(1, 64),
        page_size: page_size.max(1),
        page_timeout: given.number("pagetimeout", u64::from(page_size).div_ceil(100).max(10))?,
        requests_max: given.number("maxrequests", 6)?.clamp(1, 512),
        begin_token: token(given.text("begintoken"))?,
        end_token: token(given.text("endtoken"))?,
        output_max: given.limit("maxoutputsize", None)?.filter(|rows| *rows > 0),
        chunk_size: given.number("chunksize", 5000)?.clamp(1, 100_000),
        ingest_rate: given.limit("ingestrate", None)?.filter(|rate| *rate > 0),
        batch_min: given.number("minbatchsize", 10)?,
        batch_max: batch_max.clamp(1, 1000),
        rows_max: given.limit("maxrows", None)?,
        skip_rows: given.number("skiprows", 0)?,
        skip_columns: skip.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect(),
        parse_errors_max: given.limit("maxparseerrors", None)?,
        insert_errors_max: given.limit("maxinserterrors", Some(1000))?,
        error_file: path(&error_file),
        ttl: u64::try_from(ttl).ok(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(statement: &str) -> Words {
        Words::parse(statement).unwrap()
    }

    fn options(statement: &str, rc: &str) -> Result<CopyOptions, String> {
        read(&words(statement), "ks", &Rc::parse(rc).unwrap(), &Style::default(), 2)
    }

    #[test]
    fn words_of_a_copy() {
        let read = words("COPY ks.\"T\" (a, \"B\") FROM 'x.csv' WITH HEADER = true AND null='' AND MAXROWS=-1");
        assert_eq!((read.keyspace.as_deref(), read.table.as_str(), read.from), (Some("ks"), "T", true));
        assert_eq!((read.columns, read.file.as_deref()), (vec!["a".into(), "B".into()], Some("x.csv")));
        assert_eq!((read.with["header"].as_str(), read.with["maxrows"].as_str()), ("true", "-1"));
        assert_eq!(words("copy t to stdout").file, None);
        for wrong in ["COPY t", "COPY t TO", "COPY t TO STDIN", "COPY t FROM 'a' WITH x", "COPY t (a b) TO 'x'"] {
            assert!(Words::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn later_options_win() {
        let rc = "[copy]\nnull = a\npagesize = 7\n[copy-from]\nnull = b\n[copy-from:ks.t]\nttl = 9\n[copy-to]\nx = 1\n";
        let read = options("COPY t FROM 'x' WITH DELIMITER='|' AND BOOLSTYLE='y,n'", rc).unwrap();
        assert_eq!((read.style.null.as_str(), read.ttl, read.dialect.delimiter), ("b", Some(9), b'|'));
        assert_eq!(read.style.booleans, ["y", "n"]);
        assert_eq!(options("COPY t FROM 'x' WITH NULL='c'", rc).unwrap().style.null, "c");
        assert_eq!(options("COPY t TO 'x'", "[copy]\npagesize = 7\n").unwrap().page_size, 7);
    }

    #[test]
    fn refused_by_name() {
        for (with, part) in [
            ("NOTHING=1", "nothing"),
            ("ENCODING='latin1'", "ENCODING"),
            ("PREPAREDSTATEMENTS=false", "PREPAREDSTATEMENTS"),
            ("DELIMITER='||'", "DELIMITER"),
            ("BOOLSTYLE='a'", "BOOLSTYLE"),
            ("TTL='x'", "TTL"),
        ] {
            let text = options(&format!("COPY t FROM 'x' WITH {with}"), "").unwrap_err();
            assert!(text.contains(part), "{text}");
        }
    }
}
