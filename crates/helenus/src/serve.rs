//! `helenus serve`: configuration, start, the line that says it is ready, and the end on a signal.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;

use config::Config;
use server::memory::MemoryBudget;
use server::running::{self, FirstPassword, RunningNode, StartError, StartOptions};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Mutex;

use crate::arguments::Serve;
use crate::{configuration, crash_report, heap, log, service_manager, unsupported_values};

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
    let (set_level, log) = log::start(&env, options.log_format, options.log_dir.as_deref())
        .map_err(|error| format!("--log-dir: {error}"))?;
    options.log_dir.iter().for_each(|directory| crash_report::install_hook(&env, directory));
    let config = configuration::load(&env, &options)?;
    for note in config.notes() {
        tracing::warn!("{note}");
    }
    refuse_unsupported_values(&config, options.lenient)?;
    if matches!(options.first_password, FirstPassword::Given(_)) && !config.auth.authenticates {
        return Err("a first password is given, but authenticator: PasswordAuthenticator is not".to_owned());
    }
    let address = options.listen.unwrap_or(config.rpc_address);
    let listen = SocketAddr::new(address, options.port.unwrap_or(config.native_transport.port));
    let admin = SocketAddr::new(admin_address(&config, address), options.admin_port);
    let memory = options.memory.map_or_else(|| MemoryBudget::of_machine(&env), MemoryBudget::of);
    let _below = heap::keep_below(&env, memory.total);
    let start = StartOptions {
        env: env.clone(),
        data_dir: options.data_dir.clone(),
        schema_file: options.schema.clone(),
        read_only: options.read_only,
        config,
        listen,
        admin: Some(admin),
        set_level: Some(set_level),
        log,
        workers: None,
        shards: options.shards,
        memory,
        descriptors: descriptors(),
        first_password: options.first_password,
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    // a signal that comes while data of a new node is fetched ends the node at once; one that comes
    // in another part of the start ends it when the start is done
    let signals = runtime.block_on(async { Signals::new() }).map_err(|error| error.to_string())?;
    let signals = Arc::new(Mutex::new(signals));
    let stop = || -> env::LocalFuture {
        let signals = Arc::clone(&signals);
        Box::pin(async move { signals.lock().await.next().await })
    };
    let node = match running::start_until(start, &stop) {
        Err(StartError::Stopped) => {
            tracing::info!("stopped on the way into the ring; the next start goes on");
            return Ok(());
        }
        started => started.map_err(|error| error.to_string())?,
    };
    if node.is_serving() {
        tell_ready(&node);
        service_manager::tell("READY=1\nSTATUS=serving clients");
    } else if node.waits_for_its_operator() {
        service_manager::tell("READY=1\nSTATUS=not serving clients until nodetool enablebinary");
        say("helenus ready: no CQL (start_native_transport: false) until `helenus nodetool enablebinary`");
    } else {
        // a node that waits for data is up for its operator, and no reason to start it again
        service_manager::tell("READY=1\nSTATUS=not serving clients: see nodetool netstats");
        tracing::error!("not ready: see `helenus nodetool netstats` and `helenus nodetool bootstrap resume -f`");
    }
    runtime.block_on(async {
        let mut signals = signals.lock().await;
        signals.next().await;
        service_manager::tell("STOPPING=1\nSTATUS=draining");
        end(node, &mut signals).await
    })
}

/// The address of the admin port. Without `admin_address` the port is for this machine alone: it
/// listens where clients connect if that is a loopback address, so that several nodes on one
/// machine each have their own.
pub fn admin_address(config: &Config, listen: IpAddr) -> IpAddr {
    let of_machine = if listen.is_loopback() { listen } else { IpAddr::V4(Ipv4Addr::LOCALHOST) };
    config.admin_port.address.unwrap_or(of_machine)
}

/// Raises the limit of open files as far as the system allows; what the limit is then.
fn descriptors() -> Option<u64> {
    let (limit, raised) = env::real::raise_descriptor_limit();
    if let Err(error) = raised {
        tracing::warn!(%error, limit, "the limit of open files cannot be raised (ulimit -n)");
    }
    limit
}

fn refuse_unsupported_values(config: &Config, lenient: bool) -> Result<(), String> {
    let said = |key: &&str| format!("{key}: exists in Cassandra, but is not honoured yet at this value");
    let problems: Vec<String> = unsupported_values::keys(config).iter().map(said).collect();
    if problems.is_empty() || lenient {
        problems.iter().for_each(|problem| tracing::warn!("{problem}; ignored"));
        return Ok(());
    }
    Err(problems.join("\n"))
}

/// Prints the one line on stdout, for whoever waits for the node to be ready.
fn tell_ready(node: &RunningNode) {
    // programs that start a Cassandra for tests wait for these lines of its log
    tracing::info!("Starting listening for CQL clients on /{}...", node.address());
    tracing::info!("Startup complete");
    say(&format!("helenus ready: CQL on {}", node.address()));
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // an error means that nobody reads stdout: the node serves all the same
    let _ = writeln!(out, "{line}");
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
