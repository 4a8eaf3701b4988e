//! The server as a child process on free ports: started, killed, stopped, asked by its own
//! `nodetool`.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::policies::retry::FallthroughRetryPolicy;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::Outcome;

/// A start that takes longer hangs.
const READY_MAX: Duration = Duration::from_secs(120);
/// A request that takes longer hangs.
const REQUEST_MAX: Duration = Duration::from_secs(60);
/// A stop that takes longer hangs.
const STOP_MAX: Duration = Duration::from_secs(120);

/// A server and where it lives.
pub struct Node {
    program: PathBuf,
    data: PathBuf,
    log: PathBuf,
    port: u16,
    admin_port: u16,
    variables: Vec<(&'static str, PathBuf)>,
    /// File descriptors that the process may have; None: as many as this one.
    descriptors: Option<u32>,
    child: Option<Child>,
}

impl Node {
    /// Not started yet. What it says on standard error goes behind what `log` holds.
    pub fn new(program: &Path, data: &Path, log: &Path) -> Outcome<Self> {
        let (port, admin_port) = two_free_ports()?;
        Ok(Self {
            program: program.to_owned(),
            data: data.to_owned(),
            log: log.to_owned(),
            port,
            admin_port,
            variables: Vec::new(),
            descriptors: None,
            child: None,
        })
    }

    /// Starts have these in their environment.
    pub fn set_variables(&mut self, variables: Vec<(&'static str, PathBuf)>) {
        self.variables = variables;
    }

    /// Starts may have so many file descriptors, and cannot raise that.
    pub fn set_descriptors(&mut self, descriptors: u32) {
        self.descriptors = Some(descriptors);
    }

    /// The program, by way of a shell that sets the limit of descriptors where there is one.
    fn command(&self) -> Command {
        let Some(descriptors) = self.descriptors else { return Command::new(&self.program) };
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n $0 && exec \"$@\"", &descriptors.to_string()]).arg(&self.program);
        command
    }

    /// Starts the process and does not wait for it.
    pub fn spawn(&mut self, arguments: &[String]) -> Outcome {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(&self.log)?;
        let mut command = self.command();
        command.arg("serve").arg("--data-dir").arg(&self.data);
        command.args([
            "--listen",
            "127.0.0.1",
            "--port",
            &self.port.to_string(),
            "--admin-port",
            &self.admin_port.to_string(),
        ]);
        command.envs(self.variables.iter().map(|(name, value)| (*name, value)));
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).kill_on_drop(true);
        self.child = Some(command.spawn()?);
        Ok(())
    }

    /// Waits for the line that says it is ready: how long that took. An error holds the end of the
    /// log.
    pub async fn ready(&mut self) -> Outcome<Duration> {
        let begun = Instant::now();
        let child = self.child.as_mut().ok_or("not started")?;
        let out = child.stdout.take().ok_or("its output was taken")?;
        let mut line = String::new();
        timeout(READY_MAX, BufReader::new(out).read_line(&mut line)).await.map_err(|_| "the start hangs")??;
        if !line.starts_with("helenus ready:") {
            let status = timeout(STOP_MAX, child.wait()).await.map_err(|_| "neither ready nor at its end")??;
            return Err(format!("not ready, {status}: {}", self.log_end()).into());
        }
        Ok(begun.elapsed())
    }

    /// Starts and waits.
    pub async fn start(&mut self, arguments: &[String]) -> Outcome<Duration> {
        self.spawn(arguments)?;
        self.ready().await
    }

    /// Kill -9. An error if the process had ended by itself.
    pub async fn kill(&mut self) -> Outcome {
        let mut child = self.child.take().ok_or("not started")?;
        if let Some(status) = child.try_wait()? {
            return Err(format!("the server ended by itself, {status}: {}", self.log_end()).into());
        }
        child.kill().await?;
        Ok(())
    }

    /// Whether the process has ended by itself.
    pub fn ended(&mut self) -> Outcome<bool> {
        Ok(self.child.as_mut().ok_or("not started")?.try_wait()?.is_some())
    }

    /// SIGTERM; it has to end with 0.
    pub async fn stop(&mut self) -> Outcome {
        let mut child = self.child.take().ok_or("not started")?;
        let id = child.id().ok_or("the server ended by itself")?;
        Command::new("kill").args(["-TERM", &id.to_string()]).status().await?;
        let status = timeout(STOP_MAX, child.wait()).await.map_err(|_| "the stop hangs")??;
        if status.success() { Ok(()) } else { Err(format!("{status}: {}", self.log_end()).into()) }
    }

    /// The most memory that the process has had so far, MiB.
    pub fn resident_most_mib(&self) -> Outcome<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id().ok_or("not started")?))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
        Ok(line.trim().trim_end_matches("kB").trim().parse::<u64>()? >> 10)
    }

    /// The number of the process.
    pub fn id(&self) -> Option<u32> {
        self.child.as_ref().and_then(Child::id)
    }

    /// A session that tries nothing twice. A node alone agrees with itself on the schema; waiting
    /// for one that was killed would take a minute.
    pub async fn session(&self) -> Outcome<Session> {
        let profile = ExecutionProfile::builder()
            .retry_policy(std::sync::Arc::new(FallthroughRetryPolicy))
            .request_timeout(Some(REQUEST_MAX))
            .build();
        let builder = SessionBuilder::new()
            .auto_await_schema_agreement(false)
            .known_node(self.address())
            .default_execution_profile_handle(profile.into_handle());
        Ok(builder.build().await?)
    }

    /// Where it keeps its data.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Where clients connect.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// `helenus nodetool` with these words: what it said.
    pub async fn nodetool(&self, words: &[&str]) -> Outcome<String> {
        let mut command = Command::new(&self.program);
        command.args(["nodetool", "-h", "127.0.0.1", "-p", &self.admin_port.to_string()]).args(words);
        let done = timeout(STOP_MAX, command.kill_on_drop(true).output()).await.map_err(|_| "nodetool hangs")??;
        let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
        if done.status.success() { Ok(said) } else { Err(format!("nodetool {words:?}: {said}").into()) }
    }

    /// All that it has logged.
    pub fn log(&self) -> String {
        std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    fn log_end(&self) -> String {
        let log = self.log();
        log.lines().rev().take(6).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join(" | ")
    }

    /// No thread of the server has panicked.
    pub fn no_panic(&self) -> Outcome {
        let log = self.log();
        match log.lines().find(|line| line.contains("panicked")) {
            Some(line) => Err(format!("a panic: {line}").into()),
            None => Ok(()),
        }
    }
}

fn two_free_ports() -> Outcome<(u16, u16)> {
    let probe = || std::net::TcpListener::bind("127.0.0.1:0");
    let (one, two) = (probe()?, probe()?);
    Ok((one.local_addr()?.port(), two.local_addr()?.port()))
}
