//! The text of `help`: an overview, and a text for each command and option.

const OVERVIEW: &str = "\
helenus stress COMMAND [words] [-option words]...   loads a cluster and measures it, as cassandra-stress does

Commands
  write         n=N | duration=30s | err<0.02   rows of keyspace1.standard1, by seed
  read          the same                        rows of it, compared with what a write wrote
  counter_write, counter_read                   counters of keyspace1.counter1
  mixed         ratio(write=1,read=3) ...       several of these
  user          profile=FILE.yaml ops(insert=1,QUERY=2) ...   tables and queries of your own
  print         dist=EXP(1..100) [n=1m]         what a distribution draws
  version
  help          [COMMAND | -OPTION]

Options
  -rate         threads=64 [throttle=5000/s | fixed=5000/s]
  -pop          seq=1..1m [no-wrap] | dist=GAUSSIAN(1..1m)
  -col          n=FIXED(5) size=FIXED(34) names=a,b
  -insert       visits=FIXED(1) partitions=... batchtype=... select-ratio=... row-population-ratio=...
  -tokenrange   [wrap] split-factor=1
  -schema       keyspace=keyspace1 replication(factor=1) compaction(strategy=...) compression=...
  -node         HOST,HOST | file=FILE [whitelist] [datacenter=NAME]
  -port         native=9042
  -mode         user=NAME password=WORD connectionsPerHost=8 compression=none|lz4|snappy
  -transport    truststore=CA.pem [keystore=CLIENT.pem]
  -credentials-file FILE
  -errors       retries=9 ignore skip-read-validation skip-unsupported-columns
  -log          interval=1s file=FILE json=FILE hdrfile=FILE level=normal no-summary no-settings
  -reporting    output-frequency=1s header-frequency=30s
  -graph        file=FILE.html [title=TEXT] [revision=TEXT] [op=TEXT]

  helenus stress write n=1m -rate threads=64
  helenus stress mixed ratio(write=1,read=3) duration=60s -rate threads=64 fixed=20000/s -graph file=report.html
";

/// Help for the words that all loading commands share.
const COMMAND: &str = "\
n=N             so many operations (k, m and b stand for thousand, million, milliard)
duration=TIME   for so long: 30s, 5m, 1h
err<0.02        until the standard error of the rate is below this part of it; n>30 and n<200 bound how often it is measured
cl=LOCAL_ONE    consistency; serial-cl=SERIAL that of conditions
no-warmup       no quarter of the operations (at most 50000) beforehand, which is not counted
truncate=never  or once (before the first run), always (before each)
";
const STANDARD: &str = "\
keysize=10      bytes of a key
add=FIXED(1)    what is added to a counter
";
const MIXED: &str = "\
ratio(read=1,write=1)     kinds and how often each is done
clustering=GAUSSIAN(1..10)  how many of one kind a thread does before it draws again
";
const USER: &str = "\
profile=A.yaml,B.yaml     profiles: keyspace, table, their definitions, columnspec, insert, queries, token_range_queries
ops(insert=1,QUERY=2)     operations and how often each is done: insert, validate (reads partitions and compares them with what an insert of
                          their seed writes), queries and token range queries by name; PROFILE.QUERY where there are several profiles
clustering=GAUSSIAN(1..10)  how many of one kind a thread does before it draws again
";
const PRINT: &str = "dist=DISTRIBUTION   what to draw from\nn=1m                how often\n";

const RATE: &str = "\
threads=N       operations under way at once
throttle=N/s    at most so many a second; latency counts from when a request is sent
fixed=N/s       so many a second; latency counts from when a request should have been sent, so that a server that stalls is not spared
threads>=4 threads<=1000 [auto]   runs with more and more threads; auto ends once three runs in a row were no faster
Nothing: 200 threads for a write of n=, else threads>=4 threads<=1000 auto.
";
const POP: &str = "\
seq=1..1m       seeds one after the other; no-wrap ends the run after the last
read-lookback=EXP(1..1000)   with seq=: reads take what was written so many writes ago
dist=GAUSSIAN(1..1m)   seeds are drawn
Nothing: seq=1..n for what only writes, else dist=GAUSSIAN(1..n); n is that of the command, or 1m.
";
const COL: &str = "\
n=FIXED(5)      columns C0, C1, ...
names=a,b       columns by name
size=FIXED(34)  bytes of a value
timestamp=N     every write has this timestamp, in microseconds
slice           reads ask for *, not for columns by name
";
const INSERT: &str = "\
visits=FIXED(1)           inserts that a partition's rows are split into; between two of them it waits among others
revisit=UNIFORM(1..1m)    which of those that wait is next; a number beyond them begins a new partition
partitions=FIXED(1)       partitions in an insert
batchtype=LOGGED          or UNLOGGED, COUNTER
select-ratio=FIXED(1)/1   chance of each row to be in an insert of its partition
row-population-ratio=FIXED(1)/1   share of a row's columns that have a value
What stands here goes before partitions, batchtype, select and row-population in the profile's insert.
";
const TOKEN_RANGE: &str = "\
split-factor=1  parts of each range between two tokens of the ring
wrap            begin again after the last range; else the run ends there
";
const SCHEMA: &str = "\
keyspace=keyspace1
replication(strategy=SimpleStrategy,factor=1)   or replication(strategy=NetworkTopologyStrategy,dc1=3)
compaction(strategy=LeveledCompactionStrategy,sstable_size_in_mb=160)
compression=LZ4Compressor   none when nothing is said
What is there already stays as it is.
";
const NODE: &str = "\
HOST,HOST:PORT  where to begin; the driver learns of the others
file=FILE       hosts from a file, one a line
whitelist       only these
datacenter=NAME only nodes of this data center
";
const PORT: &str = "native=9042\n";
const MODE: &str = "\
user=NAME password=WORD   login; see also -credentials-file
connectionsPerHost=8
compression=none|lz4|snappy   of the protocol's frames
protocolVersion=4         the one that is spoken
prepared native cql3      as it is anyway
";
const TRANSPORT: &str = "\
truststore=CA.pem   certificates, one of which a node's has to be signed by; the name in it is not compared
keystore=CLIENT.pem our certificate and its key, for nodes that want one
ssl-protocol=TLS    or TLSv1.2, TLSv1.3
ssl-ciphers=A,B     suites, by their IANA names
PEM files, as `keytool -exportcert -rfc` and `openssl pkcs12 -nodes` write them.
";
const CREDENTIALS: &str =
    "FILE            cql.username=NAME and cql.password=WORD, a line each; -mode goes before it\n";
const ERRORS: &str = "\
retries=9       tries beyond the first; they are counted
ignore          go on when all tries of an operation have failed; it is counted as an error
skip-read-validation      read does not compare what it gets
skip-unsupported-columns  insert leaves out columns of types that no values are made for
";
const LOG: &str = "\
interval=1s     a line so often
file=FILE       the lines go there too
json=FILE       results, percentiles and every interval
hdrfile=FILE    a log of HdrHistogram, an interval a line
level=normal    minimal tells of no failure one by one, verbose of each try that failed
no-summary      no results at the end
no-settings     no line of what is done with which server
";
const REPORTING: &str = "\
output-frequency=1s    the same as -log interval=
header-frequency=30s   the head of the lines again so often
";
const GRAPH: &str = "\
file=FILE.html  a page with plots and a table; if it is there, the run is put beside those that it has
title=TEXT      revision=TEXT  names this run      op=TEXT  names what was done
";

const DISTRIBUTIONS: &str = "\
FIXED(5)  UNIFORM(1..10)  SEQ(1..10)  EXP(1..10)  GAUSSIAN(1..10)  GAUSSIAN(1..10,deviations to the edge)  GAUSSIAN(1..10,mean,deviation)
EXTREME(1..10,shape)  QEXTREME(1..10,shape,parts); ~ before the name turns the weight round. print dist=... shows what comes.
";

/// The help text on a topic, or the overview.
pub fn text(topic: Option<&str>) -> String {
    let Some(topic) = topic else { return OVERVIEW.to_owned() };
    let distributions = |text: &str| format!("{text}\nDistributions\n{DISTRIBUTIONS}");
    let topic = topic.to_ascii_lowercase();
    match topic.as_str() {
        "write" | "insert" | "read" => {
            format!("{COMMAND}{}", STANDARD.split_inclusive('\n').next().unwrap_or_default())
        }
        "counter_write" | "counter_read" => format!("{COMMAND}{STANDARD}"),
        "mixed" => distributions(&format!("{MIXED}{COMMAND}{STANDARD}")),
        "user" => distributions(&format!("{USER}{COMMAND}")),
        "print" => distributions(PRINT),
        "-rate" => RATE.to_owned(),
        "-pop" => distributions(POP),
        "-col" => distributions(COL),
        "-insert" => distributions(INSERT),
        "-tokenrange" => TOKEN_RANGE.to_owned(),
        "-schema" => SCHEMA.to_owned(),
        "-node" => NODE.to_owned(),
        "-port" => PORT.to_owned(),
        "-mode" => MODE.to_owned(),
        "-transport" => TRANSPORT.to_owned(),
        "-credentials-file" => CREDENTIALS.to_owned(),
        "-errors" => ERRORS.to_owned(),
        "-log" => LOG.to_owned(),
        "-reporting" => REPORTING.to_owned(),
        "-graph" => GRAPH.to_owned(),
        _ => OVERVIEW.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_and_option_of_the_overview_has_a_text() {
        let topics = OVERVIEW.lines().filter_map(|line| line.strip_prefix("  ")?.split([' ', ',']).next());
        let topics: Vec<&str> = topics.filter(|topic| !["helenus", "version", "help"].contains(topic)).collect();
        assert!(topics.len() >= 21, "{topics:?}");
        for topic in topics {
            assert_ne!(text(Some(topic)), OVERVIEW, "{topic}");
        }
    }
}
