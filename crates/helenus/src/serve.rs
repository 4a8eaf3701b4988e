//! `helenus serve`: configuration, start, the line that says it is ready, and the end on a signal.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;

use config::{ARCHIVING_FILE, Archiving, Config};
use env::Env;
use server::memory::MemoryBudget;
use server::running::{self, RunningNode, StartOptions};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::arguments::Serve;
use crate::{heap, log, unhonoured};

/// The most bytes that a cassandra.yaml may have.
const CONFIG_SIZE_MAX: u64 = 16 << 20;

/// Serves a node until a signal ends it.
pub fn run(options: Serve) -> ExitCode {
    match serve(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("helenus: {message}");
            ExitCode::FAILURE
        }
    }
}

fn serve(options: Serve) -> Result<(), String> {
    let env = env::real::env();
    let (set_level, log) = log::to_stderr(&env);
    let config = load(&env, &options)?;
    for note in config.notes() {
        tracing::warn!("{note}");
    }
    refuse_unhonoured(&config, options.lenient)?;
    let address = options.listen.unwrap_or(config.rpc_address);
    let listen = SocketAddr::new(address, options.port.unwrap_or(config.native_transport.port));
    let memory = options.memory.map_or_else(|| MemoryBudget::of_machine(&env), MemoryBudget::of);
    let _below = heap::keep_below(&env, memory.total);
    let start = StartOptions {
        env: env.clone(),
        data_dir: options.data_dir.clone(),
        schema_file: options.schema.clone(),
        read_only: options.read_only,
        config,
        listen,
        admin: Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), options.admin_port)),
        set_level: Some(set_level),
        log,
        workers: None,
        shards: options.shards,
        memory,
        descriptors: descriptors(),
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    // a signal that comes during the start ends the node when the start is done
    let mut signals = runtime.block_on(async { Signals::new() }).map_err(|error| error.to_string())?;
    let node = running::start(start).map_err(|error| error.to_string())?;
    tell_ready(&node);
    runtime.block_on(async {
        signals.next().await;
        end(node, &mut signals).await
    })
}

/// Raises the limit of open files as far as the system allows; what the limit is then.
fn descriptors() -> Option<u64> {
    let (limit, raised) = env::real::raise_descriptor_limit();
    if let Err(error) = raised {
        tracing::warn!(%error, limit, "the limit of open files cannot be raised (ulimit -n)");
    }
    limit
}

fn load(env: &Env, options: &Serve) -> Result<Config, String> {
    let text = options.config.as_deref().map(|path| read_config(env, path)).transpose()?;
    let mut sets = options.sets.clone();
    sets.extend(options.listen.map(|address| format!("rpc_address={address}")));
    sets.extend(options.port.filter(|port| *port > 0).map(|port| format!("native_transport_port={port}")));
    let mut config = Config::load(text.as_deref(), &sets, options.lenient).map_err(|error| error.to_string())?;
    config.commitlog.archiving = options.config.as_deref().map_or(Ok(None), |path| archiving(env, path))?;
    Ok(config)
}

/// `commitlog_archiving.properties` beside cassandra.yaml, where there is one.
fn archiving(env: &Env, config: &Path) -> Result<Option<Archiving>, String> {
    let path = config.with_file_name(ARCHIVING_FILE);
    if !env.disk.exists(&path) {
        return Ok(None);
    }
    let read = Archiving::parse(&read_config(env, &path)?);
    read.map(Some).map_err(|why| format!("{}: {why}", path.display()))
}

fn refuse_unhonoured(config: &Config, lenient: bool) -> Result<(), String> {
    let said = |key: &&str| format!("{key}: exists in Cassandra, but is not honoured yet at this value");
    let problems: Vec<String> = unhonoured::keys(config).iter().map(said).collect();
    if problems.is_empty() || lenient {
        problems.iter().for_each(|problem| tracing::warn!("{problem}; ignored"));
        return Ok(());
    }
    Err(problems.join("\n"))
}

fn read_config(env: &Env, path: &Path) -> Result<String, String> {
    let bytes = env.disk.read_all(path, CONFIG_SIZE_MAX).map_err(|error| format!("{}: {error}", path.display()))?;
    String::from_utf8(bytes).map_err(|_| format!("{}: not UTF-8", path.display()))
}

/// Prints the one line on stdout, for whoever waits for the node to be ready.
fn tell_ready(node: &RunningNode) {
    let mut out = std::io::stdout().lock();
    // an error means that nobody reads stdout: the node serves all the same
    let _ = writeln!(out, "helenus ready: CQL on {}", node.address());
    let _ = out.flush();
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => tracing::info!("SIGTERM: draining"),
            _ = self.interrupt.recv() => tracing::info!("SIGINT: draining"),
        }
    }
}

/// Drains the node. A second signal ends the process at once.
async fn end(node: RunningNode, signals: &mut Signals) -> Result<(), String> {
    let (sender, drained) = tokio::sync::oneshot::channel();
    let env = node.services.node.env.clone();
    let drain = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let result = match runtime {
            Ok(runtime) => runtime.block_on(node.shutdown()).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        drop(sender.send(result));
    };
    let _drain = env.tasks.spawn_worker("drain", Box::new(drain));
    tokio::select! {
        result = drained => result.unwrap_or_else(|_| Err("the drain failed".to_owned())),
        () = signals.next() => {
            tracing::warn!("a second signal: not waiting for the drain");
            std::process::exit(1)
        }
    }
}
