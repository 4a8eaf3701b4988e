//! The state of a shell: its connection, its switches, and where its output goes.
//!
//! Holds state and the ways to print; each command is a module beside it.

use std::cell::Cell;
use std::fs::File;
use std::future::Future;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use types::Consistency;

use crate::connection::{Answer, Connection, Content, Failure, Page, Parameters, Target};
use crate::options::Options;
use crate::rc::Rc;
use crate::table::Format;
use crate::value::{self, RESET, Style};

/// cqlsh's size of a page.
pub const PAGE_SIZE: u32 = 100;

/// Whether rows are shown one below the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expand {
    /// In tables.
    Off,
    /// One below the other.
    On,
    /// One below the other where a table is wider than the terminal.
    Auto,
}

/// Versions that the node tells of itself.
#[derive(Clone, Debug, Default)]
pub struct Versions {
    /// Cassandra's version.
    pub build: String,
    /// The version of CQL.
    pub cql: String,
    /// The name of the cluster.
    pub cluster: String,
}

/// A file that output goes to instead of the terminal.
pub struct Capture {
    /// Its path as it was typed.
    pub path: PathBuf,
    file: File,
}

/// The state.
pub struct Session {
    runtime: Arc<tokio::runtime::Runtime>,
    /// The connection that statements use.
    pub connection: Arc<Connection>,
    /// How it was made.
    pub target: Target,
    /// Versions of the node.
    pub versions: Versions,
    /// The keyspace of the connection.
    pub keyspace: Option<String>,
    /// The level of CONSISTENCY.
    pub consistency: Consistency,
    /// The level of SERIAL CONSISTENCY.
    pub serial_consistency: Consistency,
    /// Whether results come in pages.
    pub paging: bool,
    /// Rows of a page.
    pub page_size: u32,
    /// Whether requests are traced.
    pub tracing: bool,
    /// Whether rows are expanded.
    pub expand: Expand,
    /// Form of rows.
    pub format: Format,
    /// How values are written.
    pub style: Style,
    /// Whether the terminal shows colours.
    pub color: bool,
    /// Seconds that a trace may take to be complete.
    pub max_trace_wait: f64,
    /// Whether a person types.
    pub interactive: bool,
    /// cqlshrc.
    pub rc: Rc,
    /// Where output goes, if not to the terminal.
    pub capture: Option<Capture>,
    /// Whether anything has failed: the exit code of a script.
    pub failed: bool,
    /// Whether the shell is to end.
    pub ended: bool,
    /// Whether the schema may have changed since the names of completion were read.
    pub schema_changed: bool,
    /// Name and line of the script that is executed; None at a prompt.
    pub place: Option<(String, usize)>,
    /// Lines of statements that were executed at the prompt.
    pub history: Vec<String>,
    /// Ctrl-C of a person at the prompt, also while a file of SOURCE is executed; None: a script,
    /// which the signal ends, or a wait that looks for the signal.
    interrupts: Cell<Option<Signal>>,
    /// Whether a person has given up what was typed, with all statements that come from it.
    is_given_up: Cell<bool>,
}

/// Most statements that HISTORY remembers.
const HISTORY_MAX: usize = 1000;

impl Session {
    /// Connects, and begins in the keyspace of the options.
    pub fn open(options: Options) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = Arc::new(runtime.map_err(|error| format!("no runtime: {error}"))?);
        let connection = runtime.block_on(Connection::open(&options.target)).map_err(|error| error.to_string())?;
        let interactive = options.source == crate::options::Source::Prompt;
        if options.debug {
            eprintln!("Connected to {} with version {} of the protocol", connection.address, connection.version);
        }
        let interrupts = match interactive {
            true => {
                let _inside = runtime.enter();
                Some(signal(SignalKind::interrupt()).map_err(|error| error.to_string())?)
            }
            false => None,
        };
        let mut session = Self {
            runtime,
            connection: Arc::new(connection),
            target: options.target,
            versions: Versions::default(),
            keyspace: None,
            consistency: Consistency::One,
            serial_consistency: Consistency::Serial,
            paging: true,
            page_size: PAGE_SIZE,
            tracing: false,
            expand: if interactive { Expand::Auto } else { Expand::Off },
            format: options.format,
            style: options.style,
            color: options.color,
            max_trace_wait: options.max_trace_wait,
            interactive,
            rc: options.rc,
            capture: None,
            failed: false,
            ended: false,
            schema_changed: true,
            place: None,
            history: Vec::new(),
            interrupts: Cell::new(interrupts),
            is_given_up: Cell::new(false),
        };
        session.read_versions().map_err(|error| error.to_string())?;
        if let Some(keyspace) = options.keyspace {
            let keyspace = if keyspace.starts_with('"') { crate::lexer::unquote(&keyspace) } else { keyspace };
            session.use_keyspace(&keyspace).map_err(|error| error.to_string())?;
        }
        Ok(session)
    }

    /// Connects again, as another user or after the connection was lost.
    pub fn reconnect(&mut self, target: Target) -> Result<(), Failure> {
        let connection = self.runtime.block_on(Connection::open(&target))?;
        (self.connection, self.target) = (Arc::new(connection), target);
        match self.keyspace.clone() {
            Some(keyspace) => self.use_keyspace(&keyspace),
            None => Ok(()),
        }
    }

    fn use_keyspace(&mut self, keyspace: &str) -> Result<(), Failure> {
        let statement = format!("USE {}", types::ident::maybe_quote(keyspace));
        self.runtime.block_on(self.connection.query(&statement, &self.parameters(), false))?;
        self.keyspace = Some(keyspace.to_owned());
        Ok(())
    }

    fn read_versions(&mut self) -> Result<(), Failure> {
        let statement = "SELECT release_version, cql_version, cluster_name FROM system.local WHERE key = 'local'";
        let page = self.rows(statement)?;
        let rows = page.rows()?;
        let text = |at: usize| {
            let value = rows.first().and_then(|row| *row.get(at)?);
            value.map_or(String::new(), |bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        self.versions = Versions { build: text(0), cql: text(1), cluster: text(2) };
        Ok(())
    }

    /// How statements are executed now.
    pub fn parameters(&self) -> Parameters {
        Parameters {
            consistency: self.consistency,
            serial_consistency: self.serial_consistency,
            page_size: self.paging.then_some(self.page_size),
            paging_state: None,
        }
    }

    /// Begins with what a person has typed. A Ctrl-C from before is not meant for it.
    pub fn begin(&self) {
        self.is_given_up.set(false);
        let Some(mut interrupts) = self.interrupts.take() else { return };
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                _ = interrupts.recv() => {}
                () = std::future::ready(()) => {}
            }
        });
        self.interrupts.set(Some(interrupts));
    }

    /// Whether no further statement is to be executed: the shell or a file ends, or a person has
    /// given up what was typed.
    pub fn is_over(&self) -> bool {
        self.ended || self.is_given_up.get()
    }

    /// Waits for a future. A person may end the wait with Ctrl-C: then None, and no further
    /// statement is executed ([`Self::is_over`]). A Ctrl-C between two waits ends the second one.
    pub fn wait<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let Some(mut interrupts) = self.interrupts.take() else { return Some(self.runtime.block_on(future)) };
        let value = self.runtime.block_on(async {
            tokio::select! {
                biased;
                _ = interrupts.recv() => None,
                value = future => Some(value),
            }
        });
        self.interrupts.set(Some(interrupts));
        self.is_given_up.set(self.is_given_up.get() || value.is_none());
        value
    }

    /// Waits for a future to its end.
    pub fn block<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// The runtime of the connection.
    pub fn runtime(&self) -> Arc<tokio::runtime::Runtime> {
        self.runtime.clone()
    }

    /// Rows of a statement of the shell's own, in one page.
    pub fn rows(&self, statement: &str) -> Result<Page, Failure> {
        let parameters = Parameters {
            consistency: Consistency::LocalOne,
            serial_consistency: Consistency::Serial,
            page_size: None,
            paging_state: None,
        };
        match self.block(self.connection.query(statement, &parameters, false))? {
            Answer { content: Content::Rows(page), .. } => Ok(page),
            _ => Err(Failure::Connection(format!("{statement} was answered without rows"))),
        }
    }

    /// Prints a text for the terminal, whatever is captured.
    pub fn say(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        // a closed pipe ends the program elsewhere; there is nobody to be told here
        let _ = writeln!(out, "{text}");
    }

    /// Prints a part of a result, to the terminal or the file of CAPTURE.
    pub fn result(&mut self, text: &str) {
        let written = match &mut self.capture {
            Some(capture) => capture.file.write_all(text.as_bytes()),
            None => std::io::stdout().lock().write_all(text.as_bytes()),
        };
        match written {
            Ok(()) => {}
            // the reader of a pipe has seen enough
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => self.ended = true,
            Err(error) => {
                self.failed = true;
                eprintln!("cannot write the result: {error}");
            }
        }
    }

    /// Begins to capture results.
    pub fn capture_to(&mut self, path: PathBuf, file: File) {
        self.capture = Some(Capture { path, file });
    }

    /// Whether results are coloured.
    pub fn colored(&self) -> bool {
        self.color && self.capture.is_none()
    }

    /// Whether results are shown to a person.
    pub fn shown(&self) -> bool {
        self.interactive && self.capture.is_none() && std::io::stdout().is_terminal()
    }

    /// A text in a colour, where there are colours.
    pub fn paint(&self, text: &str, color: &str) -> String {
        match self.color {
            true => format!("{color}{text}{RESET}"),
            false => text.to_owned(),
        }
    }

    /// Prints an error. In a script the place comes first, and the exit code will tell.
    pub fn error(&mut self, text: &str) {
        self.failed = true;
        let _ = std::io::stdout().flush();
        let placed = match &self.place {
            Some((name, line)) => format!("{name}:{line}:{text}"),
            None => text.to_owned(),
        };
        eprintln!("{}", self.paint(&placed, value::RED));
    }

    /// Adds a statement to HISTORY.
    pub fn remember(&mut self, statement: &str) {
        if self.history.len() >= HISTORY_MAX {
            self.history.remove(0);
        }
        self.history.push(statement.trim().to_owned());
    }

    /// The width of the terminal.
    pub fn width(&self) -> usize {
        let variable = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
        variable.or_else(terminal_width).filter(|width| *width > 0).unwrap_or(80)
    }
}

/// Columns of the terminal; None: output is no terminal.
fn terminal_width() -> Option<usize> {
    use rustyline::history::DefaultHistory;
    let mut editor = rustyline::Editor::<(), DefaultHistory>::new().ok()?;
    editor.dimensions().map(|(columns, _)| usize::from(columns))
}
