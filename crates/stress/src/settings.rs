//! The command line, `COMMAND words… -group words…`, as in cassandra-stress. Every word is either
//! understood or refused by name.

pub mod columns;
pub mod command;
pub mod connection;
mod credentials;
pub mod insert;
pub mod output;
pub mod population;
pub mod rate;
pub mod schema;
pub mod token_ranges;
pub mod transport;
mod words;

use std::collections::BTreeMap;

use crate::Result;
use crate::distribution::{Distribution, parse_count};
use columns::Columns;
use command::{Command, Load};
use connection::Connection;
use insert::Insert;
use output::Output;
use population::Population;
use rate::Rate;
use schema::Schema;
use token_ranges::TokenRanges;
use words::Words;

/// Options of cassandra-stress that are refused, and the reasons.
const REFUSED: [(&str, &str); 4] = [
    ("-jmx", "nothing is asked of JMX, which Helenus does not have: the lines have no gc columns"),
    ("-sendto", "there is no stress daemon; start this program where it is wanted"),
    ("-sample", "nothing is sampled: histograms hold every operation"),
    ("-key", "it is -pop by now"),
];
/// Options that are known.
const KNOWN: &str = "-rate -pop -col -insert -tokenrange -schema -node -port -mode -transport -credentials-file -log -reporting -graph -errors";

/// The content of the command line.
pub struct Settings {
    pub load: Load,
    pub rate: Rate,
    pub population: Population,
    pub columns: Columns,
    pub insert: Insert,
    pub token_ranges: TokenRanges,
    pub schema: Schema,
    pub connection: Connection,
    pub output: Output,
    pub errors: Errors,
    /// The whole command line without the password.
    pub line: String,
}

/// The action that is asked for.
pub enum Action {
    Load(Box<Settings>),
    /// Print help on this word; None: the overview.
    Help(Option<String>),
    /// Print the version.
    Version,
    /// Print what a distribution draws, this many times.
    Print(Distribution, u64),
}

/// The handling of failed operations.
pub struct Errors {
    /// Attempts besides the first.
    pub retries: u32,
    /// Whether to continue when all attempts of an operation have failed.
    pub ignore: bool,
    /// Whether a read must return what a write of the same seed wrote.
    pub validate: bool,
    /// Whether columns of types that cannot be generated are left out.
    pub skip_columns: bool,
}

impl Settings {
    /// Reads the arguments behind the word `stress`.
    pub fn parse(arguments: &[String]) -> Result<Action> {
        if arguments.first().is_some_and(|first| first == "-?") {
            return Ok(Action::Help(arguments.get(1).cloned()));
        }
        let mut groups = groups(arguments)?;
        let mut first = groups.remove("").unwrap_or_default();
        match first.first().map(|name| name.to_ascii_lowercase()).as_deref() {
            None | Some("help") => return Ok(Action::Help(first.get(1).or(groups.keys().next()).cloned())),
            Some("print") => return print(&first[1..]),
            Some("version") => return Ok(Action::Version),
            Some(_) => {}
        }
        for (group, why) in REFUSED {
            if groups.contains_key(group) {
                return Err(format!("{group}: {why}").into());
            }
        }
        let name = first.remove(0).to_ascii_lowercase();
        let mut take = |name: &'static str| Words::new(name, groups.remove(name).unwrap_or_default());
        let load = Load::parse(&name, Words::new("the command", first))?;
        let (mut columns, mut schema, mut insert, mut ranges) =
            (take("-col"), take("-schema"), take("-insert"), take("-tokenrange"));
        if load.is_user() {
            columns.none("belongs to the tables standard1 and counter1; a profile says it in its columnspec")?;
            schema.none("belongs to the tables standard1 and counter1; a profile says it in its definitions")?;
            (columns, schema) = (Words::new("-col", Vec::new()), Words::new("-schema", Vec::new()));
        } else {
            insert.none("belongs to `user`: rows of standard1 and counter1 are partitions of their own")?;
            ranges.none("belongs to the token_range_queries of `user`")?;
            (insert, ranges) = (Words::new("-insert", Vec::new()), Words::new("-tokenrange", Vec::new()));
        }
        let settings = Self {
            rate: Rate::parse(take("-rate"), &load)?,
            population: Population::parse(take("-pop"), &load)?,
            columns: Columns::parse(columns)?,
            insert: Insert::parse(insert)?,
            token_ranges: TokenRanges::parse(ranges)?,
            schema: Schema::parse(schema)?,
            connection: Connection::parse(
                take("-node"),
                take("-port"),
                take("-mode"),
                take("-transport"),
                take("-credentials-file"),
            )?,
            output: Output::parse(take("-log"), take("-reporting"), take("-graph"))?,
            errors: Errors::parse(take("-errors"))?,
            line: line(arguments),
            load,
        };
        if let Some(group) = groups.keys().next() {
            return Err(format!(
                "{group} is not known here; known are {KNOWN} (help COMMAND or help -OPTION says more)"
            )
            .into());
        }
        Ok(Action::Load(Box::new(settings)))
    }

    /// Whether the command writes data.
    pub fn writes(&self) -> bool {
        !matches!(self.load.command, Command::Read | Command::CounterRead)
    }
}

impl Errors {
    fn parse(mut words: Words) -> Result<Self> {
        let retries = words.value("retries=").map_or(Ok(9), |text| parse_count(&text))?;
        let errors = Self {
            retries: u32::try_from(retries).map_err(|_| "retries= is out of range")?,
            ignore: words.flag("ignore"),
            validate: !words.flag("skip-read-validation"),
            skip_columns: words.flag("skip-unsupported-columns"),
        };
        words.end()?;
        Ok(errors)
    }
}

fn print(words: &[String]) -> Result<Action> {
    let mut words = Words::new("print", words.to_vec());
    let draws = words.value("n=").map_or(Ok(1_000_000), |text| parse_count(&text))?;
    let distribution = words.value("dist=").ok_or("print needs a distribution, such as dist=EXP(1..100)")?;
    words.end()?;
    Ok(Action::Print(Distribution::parse(&distribution)?, draws as u64))
}

/// The command line without the password.
fn line(arguments: &[String]) -> String {
    let word = |word: &String| match word.get(.."password=".len()) {
        Some(head) if head.eq_ignore_ascii_case("password=") => format!("{head}***"),
        _ => word.clone(),
    };
    arguments.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Words by the option before them; the words of the command are under "". An open bracket takes
/// the next argument too.
fn groups(arguments: &[String]) -> Result<BTreeMap<String, Vec<String>>> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut name = String::new();
    let mut open: Option<String> = None;
    for argument in arguments {
        let whole = open.take().map_or_else(|| argument.clone(), |begun| format!("{begun} {argument}"));
        if whole.matches('(').count() > whole.matches(')').count() {
            open = Some(whole);
        } else if whole.starts_with('-') {
            name = whole.to_ascii_lowercase();
            if groups.insert(name.clone(), Vec::new()).is_some() {
                return Err(format!("{name} stands twice").into());
            }
        } else {
            groups.entry(name.clone()).or_default().push(whole);
        }
    }
    match open {
        Some(begun) => Err(format!("a bracket is not closed: {begun}").into()),
        None => Ok(groups),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Box<Settings>> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match Settings::parse(&arguments)? {
            Action::Load(settings) => Ok(settings),
            Action::Help(_) | Action::Version | Action::Print(..) => Err("not a load".into()),
        }
    }

    #[test]
    fn the_usual_lines_are_understood() {
        let settings = parse("write n=1m cl=quorum no-warmup -rate threads=64 throttle=5000/s -col size=FIXED(100) n=FIXED(1) -pop seq=1..1000 -node a,b -schema replication(factor=3, strategy=SimpleStrategy) keyspace=k -port native=9043 -errors ignore retries=1").expect("a write");
        assert_eq!(settings.load.count, Some(1_000_000));
        assert_eq!(
            (settings.rate.threads, settings.rate.per_second, settings.rate.fixed),
            (Some(64), Some(5000.0), false)
        );
        assert_eq!((settings.columns.count, settings.columns.size.max()), (1, 100));
        assert_eq!(
            (settings.connection.hosts.as_slice(), settings.connection.port),
            (["a".to_owned(), "b".to_owned()].as_slice(), 9043)
        );
        assert_eq!((settings.schema.keyspace.as_str(), settings.errors.retries), ("k", 1));
        assert!(settings.schema.replication.contains("'replication_factor': '3'"), "{}", settings.schema.replication);

        let settings = parse("mixed ratio(write=1,read=3) duration=30s -rate fixed=1000/s threads=8").expect("a mix");
        assert!(settings.rate.fixed);
        assert_eq!(settings.load.duration.map(|duration| duration.as_secs()), Some(30));
        let settings = parse("counter_write n=1 add=FIXED(3) keysize=16 -MODE user=a password=b").expect("counters");
        assert_eq!((settings.load.add.min(), settings.load.key_size), (3, 16));
        assert!(settings.line.ends_with("user=a password=***"), "{}", settings.line);
        let settings = parse("mixed n=10 -tokenrange").expect("both kinds");
        assert_eq!(settings.load.command, Command::Mixed(vec![(Command::Read, 1.0), (Command::Write, 1.0)]));
        assert_eq!((settings.load.streak.min(), settings.load.streak.max()), (1, 10));
        let settings = parse("read n=10 -rate threads>=2 threads<=4 auto").expect("a read");
        assert_eq!(
            (settings.rate.threads, settings.rate.at_least, settings.rate.at_most, settings.rate.auto),
            (None, 2, 4, true)
        );
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (line, word) in [
            ("wrote n=1", "wrote"),
            ("write n=1 -rate threads=1 speed=9", "speed=9"),
            ("write n=1 -turbo", "-turbo"),
            ("write n=1 duration=1s", "one of"),
            ("mixed n=1 ratio(tidy=1)", "tidy"),
            ("write n=1 -insert visits=fixed(2)", "belongs to `user`"),
            ("user n=1 profile=p.yaml ops(insert=1) -col n=fixed(1)", "columnspec"),
            ("write n=1 -col super=1", "super columns"),
            ("write n=1 -jmx user=x", "gc columns"),
            ("write n=1 -mode protocolVersion=3", "version 4"),
            ("write n=1 -transport truststore=x truststore-password=y", "without a password"),
            ("write n=1 -transport keystore=x", "truststore=FILE.pem"),
            ("write n=1 -node listen=1", "is no host"),
            ("write n=1 -pop dist=fixed(1) read-lookback=fixed(1)", "belong to seq="),
            ("write n=1 cl=most", "most"),
            ("write n=1 -schema replication(factor=3", "not closed"),
            ("user n=1", "profile="),
            ("write n=1 -mode thrift", "thrift"),
            ("write n=1 keysize=0", "keysize="),
            ("write n=-1", "n=-1"),
            ("write n=1 -rate throttle=-5/s", "-5/s"),
        ] {
            let Err(error) = parse(line) else { panic!("{line}: accepted") };
            assert!(error.to_string().contains(word), "{line}: {error}");
        }
    }
}
