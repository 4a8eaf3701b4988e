//! `helenus ring up N`: a ring of N nodes on this machine, to try things. Each node is a process of
//! its own on an address of its own (127.0.0.1, 127.0.0.2, ...) with a directory of its own.
//!
//! The nodes are started together, watched, and stopped together with a signal. Their directories
//! stay: the next `ring up` with the same number goes on with the same data. `helenus ring down`
//! sends the signal from another terminal.

mod directory;
mod down;
mod snapshot;

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use env::Env;
use env::real::{ChildProgram, start_program};
use server::memory::MemoryBudget;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Most nodes: each has memory and threads of its own.
const NODES_MAX: u8 = 32;

/// Where the nodes of a ring are, unless an option names another directory.
const DATA_DIR: &str = "helenus-ring";

/// Between two looks at the nodes.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// All nodes are ready within this time, or the ring is given up.
const READY_MAX: Duration = Duration::from_secs(120);

/// Bytes of a node's output that are read at one look, for the line that says it is ready.
const OUTPUT_MAX: u64 = 1 << 20;

/// Bytes at the end of a node's output in which its last line is looked for.
const LAST_LINE_MAX: u64 = 64 << 10;

/// The kernel's text about this process, and the most bytes that are read of it.
const PROCESS_STATUS: &str = "/proc/self/status";
const PROCESS_STATUS_MAX: u64 = 64 << 10;

/// The words of `helenus ring`.
#[derive(Subcommand)]
pub enum Ring {
    /// Start nodes on 127.0.0.1, 127.0.0.2, ... that form a ring; a signal stops them.
    Up(Up),
    /// Stop the nodes that `ring up` has started, from another terminal.
    Down(down::Down),
    /// Take a snapshot on all nodes of a ring at one time.
    Snapshot(snapshot::Snapshot),
}

/// Options of `helenus ring up`.
#[derive(Args)]
pub struct Up {
    /// Number of nodes.
    #[arg(value_parser = clap::value_parser!(u8).range(1..=i64::from(NODES_MAX)))]
    nodes: u8,
    /// Where the directories n1, n2, ... and the output of each node (n1.log, ...) are.
    #[arg(long, value_name = "DIR", default_value = DATA_DIR)]
    data_dir: PathBuf,
    /// Name of the cluster.
    #[arg(long, value_name = "NAME", default_value = "ring")]
    cluster_name: String,
    /// The last number of the first node's address 127.0.0.X; the others follow.
    #[arg(long, value_name = "X", default_value_t = 1)]
    first: u8,
    /// Memory for each node [default: what the machine has, shared by all].
    #[arg(long, value_name = "SIZE", value_parser = server::memory::parse_size)]
    memory: Option<u64>,
    /// Copies of each partition in keyspaces that do not say how many (default_keyspace_rf).
    #[arg(long, value_name = "COPIES", value_parser = clap::value_parser!(u8).range(1..=i64::from(NODES_MAX)))]
    rf: Option<u8>,
    /// A key of cassandra.yaml, for all nodes.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
}

/// A node of the ring.
struct Node {
    address: String,
    output: PathBuf,
    /// Bytes of the output that were looked through for the line that says the node is ready.
    seen: u64,
    process: ChildProgram,
    is_ready: bool,
    has_ended: bool,
}

/// Carries out `helenus ring`.
pub fn run(ring: &Ring) -> ExitCode {
    let env = env::real::env();
    let result = match ring {
        Ring::Up(up) => block_on(serve(&env, up)),
        Ring::Down(down) => block_on(down::run(&env, down)),
        Ring::Snapshot(snapshot) => return snapshot::run(snapshot),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("helenus: {message}");
            ExitCode::FAILURE
        }
    }
}

fn block_on(work: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(work)
}

async fn serve(env: &Env, up: &Up) -> Result<(), String> {
    let mut signals = Signals::new(env).map_err(|error| error.to_string())?;
    let lock = directory::hold(env, &up.data_dir)?;
    let mut nodes = start(env, up)?;
    let result = tokio::select! {
        result = watch(env, &mut nodes) => result,
        () = signals.next() => Ok(()),
    };
    stop(env, &mut nodes, &mut signals).await;
    directory::release(env, &up.data_dir, lock);
    result
}

/// The signals that stop the ring. The nodes have process groups of their own, so no signal of the
/// terminal reaches them: a ring that died of one would leave its nodes running.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// The terminal is gone. None: the ring was started to outlive its terminal.
    hangup: Option<Signal>,
}

impl Signals {
    fn new(env: &Env) -> std::io::Result<Self> {
        let status = env.disk.read_all(Path::new(PROCESS_STATUS), PROCESS_STATUS_MAX).unwrap_or_default();
        let hangup = match ignores_hangups(&String::from_utf8_lossy(&status)) {
            true => None,
            false => Some(signal(SignalKind::hangup())?),
        };
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())?, hangup })
    }

    async fn next(&mut self) {
        let Self { terminate, interrupt, hangup } = self;
        let terminal_gone = async {
            match hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = terminal_gone => {}
        }
    }
}

/// Whether the process was started with hangups ignored, as `nohup` starts one. `status`: the
/// kernel's text; the lowest bit of its mask of ignored signals is that of SIGHUP.
fn ignores_hangups(status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 != 0)
}

fn start(env: &Env, up: &Up) -> Result<Vec<Node>, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    if u16::from(up.first) + u16::from(up.nodes) > 255 {
        return Err("--first: there are no more than 254 addresses 127.0.0.X".to_owned());
    }
    let memory = up.memory.unwrap_or_else(|| MemoryBudget::of_machine(env).total / u64::from(up.nodes));
    let mut nodes: Vec<Node> = Vec::new();
    for number in 0..up.nodes {
        let address = format!("127.0.0.{}", up.first + number);
        let output = up.data_dir.join(format!("n{}.log", number + 1));
        let arguments = arguments(up, number, &address, memory);
        match start_program(&program, &arguments, &output) {
            Ok(process) => nodes.push(Node { address, output, seen: 0, process, is_ready: false, has_ended: false }),
            Err(error) => {
                // those that run are not left behind
                nodes.iter().for_each(|node| drop(node.process.terminate()));
                return Err(format!("{}: {error}", program.display()));
            }
        }
    }
    Ok(nodes)
}

/// The command line of a node.
fn arguments(up: &Up, number: u8, address: &str, memory: u64) -> Vec<String> {
    let directory = up.data_dir.join(format!("n{}", number + 1));
    let mut arguments: Vec<String> = [
        "serve",
        "--data-dir",
        &directory.to_string_lossy(),
        "--listen",
        address,
        "--seeds",
        &format!("127.0.0.{}", up.first),
        "--cluster-name",
        &up.cluster_name,
        "--memory",
        &memory.to_string(),
    ]
    .map(str::to_owned)
    .to_vec();
    arguments.extend(up.rf.iter().flat_map(|rf| ["--set".to_owned(), format!("default_keyspace_rf={rf}")]));
    arguments.extend(up.sets.iter().flat_map(|set| ["--set".to_owned(), set.clone()]));
    arguments
}

/// Looks after the nodes until all have ended. Says when the ring is ready, and which node has
/// ended.
async fn watch(env: &Env, nodes: &mut [Node]) -> Result<(), String> {
    let begun = env.now();
    let mut is_ready = false;
    loop {
        for node in nodes.iter_mut().filter(|node| !node.has_ended) {
            look(env, node, is_ready)?;
        }
        if !is_ready && nodes.iter().all(|node| node.is_ready) {
            is_ready = true;
            tell_ready(nodes);
        }
        if !is_ready && env.elapsed(begun) > READY_MAX {
            return Err(format!("the ring is not ready after {} s", READY_MAX.as_secs()));
        }
        if nodes.iter().all(|node| node.has_ended) {
            return Err("all nodes have ended".to_owned());
        }
        env.sleep(POLL_INTERVAL).await;
    }
}

/// Looks at a node. Err: it has ended before the ring was ready.
fn look(env: &Env, node: &mut Node, is_ready: bool) -> Result<(), String> {
    if let Some(status) = node.process.ended().map_err(|error| error.to_string())? {
        node.has_ended = true;
        let said = last_line(env, &node.output);
        if !is_ready {
            return Err(format!("{} has ended ({status}): {said}", node.address));
        }
        eprintln!("helenus: {} has ended ({status}): {said}", node.address);
    }
    if !node.is_ready {
        node.is_ready = says_ready(env, &node.output, &mut node.seen);
    }
    Ok(())
}

/// Whether the next lines of a node's output say that it is ready. `seen`: bytes of the lines that
/// were looked through. A log of all details is long before the node is ready, so it is read piece
/// by piece.
fn says_ready(env: &Env, output: &Path, seen: &mut u64) -> bool {
    let bytes = piece(env, output, |length| *seen..length.min(*seen + OUTPUT_MAX));
    let whole_lines = match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => end + 1,
        // a line that goes on is looked at when it has ended; one without end is no line of ours
        None if (bytes.len() as u64) < OUTPUT_MAX => 0,
        None => bytes.len(),
    };
    *seen += whole_lines as u64;
    String::from_utf8_lossy(&bytes[..whole_lines]).lines().any(|line| line.starts_with("helenus ready:"))
}

/// A range of a file, which is chosen by the file's length. Empty: it cannot be read.
fn piece(env: &Env, path: &Path, choose: impl FnOnce(u64) -> Range<u64>) -> Vec<u8> {
    let Ok(file) = env.disk.open_read(path) else { return Vec::new() };
    let Range { start, end } = choose(file.len());
    let mut bytes = vec![0; usize::try_from(end.saturating_sub(start)).unwrap_or_default()];
    match file.read_at(&mut bytes, start) {
        Ok(()) => bytes,
        Err(_) => Vec::new(),
    }
}

fn last_line(env: &Env, path: &Path) -> String {
    let end = piece(env, path, |length| length.saturating_sub(LAST_LINE_MAX)..length);
    let said = String::from_utf8_lossy(&end);
    said.lines().last().map_or_else(|| format!("see {}", path.display()), str::to_owned)
}

/// Prints the one line on stdout, for whoever waits for the ring to be ready.
fn tell_ready(nodes: &[Node]) {
    let addresses: Vec<&str> = nodes.iter().map(|node| node.address.as_str()).collect();
    let mut out = std::io::stdout().lock();
    // an error means that nobody reads stdout: the ring is there all the same
    let _ = writeln!(out, "helenus ring ready: CQL on {}", addresses.join(", "));
    let _ = out.flush();
}

/// Stops all nodes and waits for their end. Another signal goes to the nodes that still run, which
/// then end without a drain.
async fn stop(env: &Env, nodes: &mut [Node], signals: &mut Signals) {
    loop {
        for node in nodes.iter().filter(|node| !node.has_ended) {
            if let Err(error) = node.process.terminate() {
                eprintln!("helenus: {} cannot be stopped: {error}", node.address);
            }
        }
        tokio::select! {
            () = all_ended(env, nodes) => return,
            () = signals.next() => {}
        }
    }
}

async fn all_ended(env: &Env, nodes: &mut [Node]) {
    loop {
        for node in nodes.iter_mut().filter(|node| !node.has_ended) {
            // an error means that there is no such process any more
            node.has_ended = !matches!(node.process.ended(), Ok(None));
        }
        if nodes.iter().all(|node| node.has_ended) {
            return;
        }
        env.sleep(POLL_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_and_a_half_line_do_not_hide_that_a_node_is_ready() {
        let (env, directory) = (env::real::env(), tempfile::tempdir().expect("a directory"));
        let output = directory.path().join("n1.log");
        assert_eq!(last_line(&env, &output), format!("see {}", output.display()));
        let mut text = "DEBUG a line\n".repeat(200_000);
        let mut seen = 0;
        for (more, is_ready) in [("helenus rea", false), ("dy: CQL on 127.0.0.1\n", true), ("INFO more\n", false)] {
            text.push_str(more);
            env.disk.replace_file(&output, text.as_bytes()).expect("written");
            let looks = text.len() as u64 / OUTPUT_MAX + 1;
            assert_eq!((0..looks).any(|_| says_ready(&env, &output, &mut seen)), is_ready, "{more}");
        }
        assert_eq!(seen, text.len() as u64);
        assert_eq!(last_line(&env, &output), "INFO more");
    }

    #[test]
    fn a_ring_that_was_started_with_nohup_outlives_its_terminal() {
        assert!(ignores_hangups("Name:\thelenus\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000000\n"));
        assert!(!ignores_hangups("SigIgn:\t0000000000001000\nSigCgt:\t0000000000000001\n"));
        assert!(!ignores_hangups("SigIgn:\n") && !ignores_hangups(""));
    }
}
