//! What `help` says.

const OVERVIEW: &str = "\
helenus stress COMMAND [words] [-option words]...   loads a cluster and measures it, as cassandra-stress does

Commands
  write         n=N | duration=30s | err<0.02   rows of keyspace1.standard1, by seed
  read          the same                        rows of it, compared with what a write wrote
  counter_write, counter_read                   counters of keyspace1.counter1
  mixed         ratio(write=1,read=3) ...       several of these
  user          profile=FILE.yaml ops(insert=1,QUERY=2) ...   a table and queries of your own
  print         dist=EXP(1..100) [n=1m]         what a distribution draws
  help          [COMMAND | -OPTION]

Options
  -rate         threads=64 [throttle=5000/s | fixed=5000/s]
  -pop          seq=1..1m [no-wrap] | dist=GAUSSIAN(1..1m)
  -col          n=FIXED(5) size=FIXED(34) names=a,b add=FIXED(1)
  -schema       keyspace=keyspace1 replication(factor=1) compaction(strategy=...) compression=...
  -node         HOST,HOST [whitelist] [datacenter=NAME]
  -port         native=9042
  -mode         user=NAME password=WORD connectionsPerHost=8 compression=none|lz4|snappy
  -errors       retries=9 ignore skip-read-validation
  -log          interval=1s file=FILE json=FILE hdrfile=FILE no-summary
  -graph        file=FILE.html [title=TEXT] [revision=TEXT]

  helenus stress write n=1m -rate threads=64
  helenus stress mixed ratio(write=1,read=3) duration=60s -rate threads=64 fixed=20000/s -graph file=report.html
";

const COMMAND: &str = "\
n=N             so many operations (k, m and b stand for thousand, million, milliard)
duration=TIME   for so long: 30s, 5m, 1h
err<0.02        until the standard error of the rate is below this part of it; n>30 and n<200 bound how often it is measured
cl=LOCAL_ONE    consistency; serial-cl=SERIAL that of conditions
no-warmup       no quarter of the operations (at most 50000) beforehand, which is not counted
truncate=never  or once (before the first run), always (before each)
";

const RATE: &str = "\
threads=N       operations under way at once
throttle=N/s    at most so many a second; latency counts from when a request is sent
fixed=N/s       so many a second; latency counts from when a request should have been sent, so that a server that stalls is not spared
threads>=4 threads<=1000 [auto]   runs with more and more threads; auto ends once three runs in a row were no faster
Nothing: 200 threads for a write of n=, else threads>=4 threads<=1000 auto.
";

const DISTRIBUTIONS: &str = "\
FIXED(5)  UNIFORM(1..10)  SEQ(1..10)  EXP(1..10)  GAUSSIAN(1..10)  GAUSSIAN(1..10,deviations to the edge)  GAUSSIAN(1..10,mean,deviation)
EXTREME(1..10,shape)  QEXTREME(1..10,shape,parts); ~ before the name turns the weight round. print dist=... shows what comes.
";

/// The help text on a topic, or the overview.
pub fn text(topic: Option<&str>) -> String {
    match topic {
        None => OVERVIEW.to_owned(),
        Some("-rate") => RATE.to_owned(),
        Some("-pop" | "-col" | "print") => format!("{OVERVIEW}\nDistributions\n{DISTRIBUTIONS}"),
        Some(topic) if topic.starts_with('-') => OVERVIEW.to_owned(),
        Some(_) => format!("{COMMAND}\nThe rest is said by `help`, `help -rate` and `help -pop`.\n"),
    }
}
