//! The command line, cqlshrc and the environment: cqlsh's options, and which of them wins.
//!
//! A word of the command line wins over the environment (CQLSH_HOST, CQLSH_PORT, SSL_CERTFILE,
//! SSL_VALIDATE), the environment over the credentials file, that over cqlshrc. Each option and
//! each key of cqlsh is honoured, or named as one that this shell has no use for.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgAction, Parser};
use jiff::tz::TimeZone;

use crate::connection::{Target, TlsSettings};
use crate::rc::Rc;
use crate::table::Format;
use crate::value::{Style, TIMESTAMP_FORMAT};

/// A CQL prompt with cqlsh's commands.
#[derive(Parser, Debug)]
#[command(name = "helenus shell", version, disable_version_flag = true, args_override_self = true)]
struct Words {
    /// Node to connect to [default: 127.0.0.1, or hostname in cqlshrc, or CQLSH_HOST].
    host: Option<String>,
    /// Its port [default: 9042, or port in cqlshrc, or CQLSH_PORT].
    port: Option<String>,
    /// Execute statements, then end.
    #[arg(short, long, value_name = "CQL")]
    execute: Option<String>,
    /// Execute the statements of a file, then end.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Form of rows.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Log in as this user.
    #[arg(short, long, value_name = "USER")]
    username: Option<String>,
    /// Password of the user; without it the shell asks.
    #[arg(short, long)]
    password: Option<String>,
    /// Begin in this keyspace.
    #[arg(short, long)]
    keyspace: Option<String>,
    /// Encrypt the connection, by [ssl] in cqlshrc, SSL_CERTFILE and SSL_VALIDATE.
    #[arg(long)]
    ssl: bool,
    /// Always use colours.
    #[arg(short = 'C', long, overrides_with = "no_color")]
    color: bool,
    /// Never use colours.
    #[arg(long, overrides_with = "color")]
    no_color: bool,
    /// Seconds to wait for a connection [default: 5].
    #[arg(long, value_name = "SECONDS")]
    connect_timeout: Option<u64>,
    /// Seconds to wait for an answer [default: 10].
    #[arg(long, value_name = "SECONDS")]
    request_timeout: Option<u64>,
    /// The cqlshrc to read [default: ~/.cassandra/cqlshrc].
    #[arg(long, value_name = "FILE")]
    cqlshrc: Option<PathBuf>,
    /// File with user and password [default: ~/.cassandra/credentials].
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
    /// Version of CQL to ask for.
    #[arg(long, value_name = "VERSION")]
    cqlversion: Option<String>,
    /// Version of the native protocol: 3, 4 or 5 [default: the newest that the node speaks].
    #[arg(long, value_name = "VERSION")]
    protocol_version: Option<u8>,
    /// Encoding of scripts and output: UTF-8 alone.
    #[arg(long)]
    encoding: Option<String>,
    /// Prompt even where input or output is no terminal.
    #[arg(short, long)]
    tty: bool,
    /// Save no history.
    #[arg(long)]
    disable_history: bool,
    /// Tell on standard error how the connection is made.
    #[arg(long)]
    debug: bool,
    /// A browser for help texts: refused, the help is shown here.
    #[arg(long, hide = true)]
    browser: Option<String>,
    /// Refused: a tool of cqlsh's developers.
    #[arg(long, hide = true)]
    coverage: bool,
    /// Say nothing of passwords on the command line.
    #[arg(long, hide = true)]
    insecure_password_without_warning: bool,
    /// The version of this program.
    #[arg(short, long, action = ArgAction::Version)]
    version: Option<bool>,
}

/// Where statements come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The command line.
    Text(String),
    /// A file.
    File(PathBuf),
    /// Standard input, which is no terminal.
    Input,
    /// A person.
    Prompt,
}

/// Everything that the shell has been told before its first statement.
#[derive(Debug)]
pub struct Options {
    /// How to connect.
    pub target: Target,
    /// Where statements come from.
    pub source: Source,
    /// The user of `-u` or of a file, while the password is to be asked for.
    pub user_without_password: Option<String>,
    /// The keyspace to begin in.
    pub keyspace: Option<String>,
    /// Form of rows.
    pub format: Format,
    /// Whether output has colours.
    pub color: bool,
    /// How values are written.
    pub style: Style,
    /// Seconds that a trace may take to be complete.
    pub max_trace_wait: f64,
    /// The history file; None: no history is saved.
    pub history: Option<PathBuf>,
    /// cqlshrc, for the sections of COPY.
    pub rc: Rc,
    /// Whether the connection is told of on standard error.
    pub debug: bool,
}

/// Why there are no options.
pub enum Refused {
    /// Text for standard output, and success: `--help`.
    Shown(String),
    /// Text for standard error.
    Wrong(String),
}

const SECTIONS: &[(&str, &[&str])] = &[
    ("authentication", &["username", "password", "keyspace", "credentials"]),
    ("plain_text_auth", &["username", "password"]),
    ("auth_provider", &["module", "classname", "username", "password"]),
    (
        "ui",
        &[
            "color",
            "time_format",
            "datetimeformat",
            "timezone",
            "float_precision",
            "double_precision",
            "max_trace_wait",
            "encoding",
            "completekey",
        ],
    ),
    ("cql", &["version"]),
    ("connection", &["hostname", "port", "ssl", "timeout", "connect_timeout", "request_timeout"]),
    ("csv", &["field_size_limit"]),
    ("tracing", &["max_trace_wait"]),
    ("ssl", &["certfile", "validate", "userkey", "usercert", "version"]),
    ("history", &["disabled"]),
    ("protocol", &["version"]),
];

type Get<'e> = &'e dyn Fn(&str) -> Option<String>;

/// Reads everything. `environment` gives variables; notices go to standard error.
pub fn read(arguments: &[String], environment: Get<'_>) -> Result<Options, Refused> {
    let words = Words::try_parse_from(std::iter::once("helenus shell".to_owned()).chain(arguments.iter().cloned()));
    let words = words.map_err(|error| match error.use_stderr() {
        true => Refused::Wrong(error.render().to_string()),
        false => Refused::Shown(error.render().to_string()),
    })?;
    resolve(words, environment).map_err(|error| Refused::Wrong(format!("helenus shell: {error}\n")))
}

fn resolve(words: Words, environment: Get<'_>) -> Result<Options, String> {
    refuse(&words)?;
    let home = environment("HOME").map(PathBuf::from);
    let directory = home.as_ref().map(|home| home.join(".cassandra"));
    let rc_path = match &words.cqlshrc {
        Some(path) => Some(expand(path, home.as_deref())),
        None => directory.as_ref().map(|directory| directory.join("cqlshrc")),
    };
    let mut rc = Rc::default();
    if let Some(path) = &rc_path {
        match Rc::open(path)? {
            Some(read) => {
                check_keys(&read, path);
                rc = read;
            }
            None if words.cqlshrc.is_some() => return Err(format!("{}: there is no such file", path.display())),
            None => {}
        }
    }
    let get = |section: &str, key: &str| rc.get(section, key).map(str::to_owned);
    let host = words.host.clone().or_else(|| environment("CQLSH_HOST")).or_else(|| get("connection", "hostname"));
    let host = host.unwrap_or_else(|| "127.0.0.1".to_owned());
    let port = words.port.clone().or_else(|| environment("CQLSH_PORT")).or_else(|| get("connection", "port"));
    let port = port.unwrap_or_else(|| "9042".to_owned());
    let port = port.parse().map_err(|_| format!("'{port}' is not a valid port number."))?;
    let tls = match words.ssl || rc.flag("connection", "ssl")?.unwrap_or(false) {
        true => Some(tls(&rc, &host, home.as_deref(), environment)?),
        false => None,
    };
    let (user, password) = login(&words, &rc, directory.as_deref(), home.as_deref())?;
    let seconds = |word: Option<u64>, keys: &[&str], otherwise: u64| -> Result<Duration, String> {
        let of_rc = keys.iter().find_map(|key| get("connection", key));
        let value = match (word, of_rc) {
            (Some(word), _) => word,
            (None, Some(text)) => text.parse().map_err(|_| format!("\"{text}\" is not a valid timeout."))?,
            (None, None) => otherwise,
        };
        Ok(Duration::from_secs(value))
    };
    let version = match words.protocol_version {
        Some(version) => Some(version),
        None => get("protocol", "version")
            .map(|text| text.parse().map_err(|_| format!("[protocol] version = {text}")))
            .transpose()?,
    };
    if let Some(version) = version.filter(|version| !(3..=5).contains(version)) {
        return Err(format!("version {version} of the native protocol: 3, 4 and 5 are spoken here"));
    }
    let source = match (&words.execute, &words.file) {
        (Some(text), _) => Source::Text(text.clone()),
        (None, Some(path)) => Source::File(path.clone()),
        (None, None) if words.tty || std::io::stdin().is_terminal() => Source::Prompt,
        (None, None) => Source::Input,
    };
    let color = match (words.color, words.no_color, rc.flag("ui", "color")?) {
        (true, ..) => true,
        (_, true, _) => false,
        (_, _, Some(color)) => color,
        _ => words.file.is_none() && std::io::stdout().is_terminal() && has_colors(environment),
    };
    let wait = get("tracing", "max_trace_wait").or_else(|| get("ui", "max_trace_wait"));
    let user_without_password = user.clone().filter(|_| password.is_none());
    let history = environment("CQL_HISTORY").map(PathBuf::from);
    let history = history.or_else(|| directory.map(|directory| directory.join("helenus_history")));
    let keep = !words.disable_history && !rc.flag("history", "disabled")?.unwrap_or(false);
    Ok(Options {
        target: Target {
            host,
            port,
            tls,
            login: user.zip(password),
            version,
            cql_version: words
                .cqlversion
                .clone()
                .or_else(|| get("cql", "version"))
                .map_or("3.4.7".to_owned(), whole_version),
            connect_timeout: seconds(words.connect_timeout, &["connect_timeout", "timeout"], 5)?,
            request_timeout: seconds(words.request_timeout, &["request_timeout"], 10)?,
        },
        source,
        user_without_password,
        keyspace: words.keyspace.clone().or_else(|| get("authentication", "keyspace")),
        format: words.format,
        color,
        style: style(&rc, environment)?,
        max_trace_wait: wait.map_or(Ok(10.0), |text| text.parse().map_err(|_| format!("max_trace_wait = {text}")))?,
        history: history.filter(|_| keep),
        rc,
        debug: words.debug,
    })
}

/// Options of cqlsh without a meaning here.
fn refuse(words: &Words) -> Result<(), String> {
    if words.browser.is_some() {
        return Err("--browser: this shell shows its help itself and opens no browser".into());
    }
    if words.coverage {
        return Err("--coverage: measures cqlsh's own Python code, of which there is none here".into());
    }
    match words.encoding.as_deref().map(|name| name.to_lowercase().replace(['-', '_'], "")).as_deref() {
        None | Some("utf8") => Ok(()),
        Some(_) => Err("--encoding: this shell reads and writes UTF-8 alone".into()),
    }
}

/// Tells of keys of cqlshrc that have no effect here.
fn check_keys(rc: &Rc, path: &Path) {
    for (section, key) in rc.keys() {
        if section == "certfiles" || section.starts_with("copy") {
            continue;
        }
        let known = SECTIONS.iter().find(|(name, _)| *name == section).is_some_and(|(_, keys)| keys.contains(&key));
        if !known {
            eprintln!("Warning: {}: [{section}] {key} has no effect in this shell", path.display());
        }
    }
    if rc.get("ssl", "version").is_some() {
        eprintln!("Warning: [ssl] version is ignored: both sides agree on the newest version of TLS");
    }
    let class = rc.get("auth_provider", "classname");
    if let Some(class) = class.filter(|class| *class != "PlainTextAuthProvider") {
        eprintln!("Warning: [auth_provider] classname = {class}: PlainTextAuthProvider alone is spoken here");
    }
    for (key, wanted) in [("encoding", "utf8"), ("completekey", "tab")] {
        let value = rc.get("ui", key).map(|value| value.to_lowercase().replace('-', ""));
        if let Some(value) = value.filter(|value| value != wanted) {
            eprintln!("Warning: [ui] {key} = {value}: it is always {wanted} here");
        }
    }
}

/// User and password: of the command line, the credentials file, cqlshrc.
fn login(
    words: &Words,
    rc: &Rc,
    directory: Option<&Path>,
    home: Option<&Path>,
) -> Result<(Option<String>, Option<String>), String> {
    let named = words.credentials.clone().or_else(|| rc.get("authentication", "credentials").map(PathBuf::from));
    let path =
        named.map(|path| expand(&path, home)).or_else(|| directory.map(|directory| directory.join("credentials")));
    let mut credentials = Rc::default();
    if let Some(path) = path {
        if is_secure(&path) {
            credentials = Rc::open(&path)?.unwrap_or_default();
        } else {
            eprintln!(
                "\nWarning: Credentials file '{0}' exists but is not used, because others may read it: chmod 600 '{0}'\n",
                path.display()
            );
        }
    }
    let pick = |word: &Option<String>, key: &str| {
        let of_file = || credentials.get("plain_text_auth", key).or_else(|| rc.get("plain_text_auth", key));
        let of_rc = || rc.get("authentication", key).or_else(|| rc.get("auth_provider", key));
        word.clone().or_else(|| of_file().or_else(of_rc).map(str::to_owned))
    };
    if words.password.is_some() && !words.insecure_password_without_warning {
        eprintln!(
            "\nWarning: Using a password on the command line interface can be insecure.\nRecommendation: use the credentials file to securely provide the password.\n"
        );
    }
    Ok((pick(&words.username, "username"), pick(&words.password, "password")))
}

/// Whether nobody but its owner may read the file; a file that is not there is secure.
fn is_secure(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).map_or(true, |found| found.permissions().mode() & 0o077 == 0)
}

fn tls(rc: &Rc, host: &str, home: Option<&Path>, environment: Get<'_>) -> Result<TlsSettings, String> {
    let file = |value: Option<String>| value.map(|value| expand(Path::new(&value), home));
    let get = |section: &str, key: &str| rc.get(section, key).map(str::to_owned);
    let validate = environment("SSL_VALIDATE").or_else(|| get("ssl", "validate"));
    let identity = match (file(get("ssl", "usercert")), file(get("ssl", "userkey"))) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err("[ssl] usercert and userkey belong together: one of them is missing".into()),
    };
    let trusted = environment("SSL_CERTFILE").or_else(|| get("certfiles", host)).or_else(|| get("ssl", "certfile"));
    let validate = validate.is_none_or(|text| !text.eq_ignore_ascii_case("false"));
    Ok(TlsSettings { trusted: file(trusted), validate, identity })
}

fn style(rc: &Rc, environment: Get<'_>) -> Result<Style, String> {
    let mut style = Style::default();
    let format = rc.get("ui", "time_format").or_else(|| rc.get("ui", "datetimeformat")).map(str::to_owned);
    style.timestamp_format = format
        .or_else(|| environment("CQLSH_DEFAULT_TIMESTAMP_FORMAT").filter(|text| !text.is_empty()))
        .unwrap_or_else(|| TIMESTAMP_FORMAT.to_owned());
    for (key, digits) in
        [("float_precision", &mut style.float_precision), ("double_precision", &mut style.double_precision)]
    {
        if let Some(text) = rc.get("ui", key) {
            *digits = text.parse().map_err(|_| format!("[ui] {key} = {text}: a number is expected"))?;
        }
    }
    // as in cqlsh, TZ wins over cqlshrc
    let named =
        environment("TZ").filter(|name| !name.is_empty()).or_else(|| rc.get("ui", "timezone").map(str::to_owned));
    if let Some(name) = named {
        match zone(&name) {
            Some(zone) => style.zone = zone,
            None => eprintln!("Warning: could not recognize timezone '{name}'; timestamps are shown in UTC"),
        }
    }
    Ok(style)
}

/// The time zone of a name, from the machine's files.
fn zone(name: &str) -> Option<TimeZone> {
    let name = name.trim_start_matches(':');
    if name.eq_ignore_ascii_case("utc") {
        return Some(TimeZone::UTC);
    }
    if name.split('/').any(|part| part == "..") || name.starts_with('/') {
        return None;
    }
    match std::fs::read(Path::new("/usr/share/zoneinfo").join(name)) {
        Ok(data) => TimeZone::tzif(name, &data).ok(),
        Err(_) => TimeZone::posix(name).ok(),
    }
}

fn has_colors(environment: Get<'_>) -> bool {
    !matches!(environment("TERM").as_deref(), None | Some("" | "dumb")) && environment("NO_COLOR").is_none()
}

/// `3.4` as `3.4.0`.
fn whole_version(version: String) -> String {
    match version.matches('.').count() {
        0 => format!("{version}.0.0"),
        1 => format!("{version}.0"),
        _ => version,
    }
}

/// A path with `~` as the home directory.
pub fn expand(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str], environment: &[(&str, &str)]) -> Result<Options, String> {
        let get =
            |name: &str| environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        read(&words, &get).map_err(|refused| match refused {
            Refused::Shown(text) | Refused::Wrong(text) => text,
        })
    }

    #[test]
    fn the_command_line_wins_over_the_environment() {
        let environment = [("CQLSH_HOST", "a"), ("CQLSH_PORT", "1"), ("TZ", "UTC")];
        let read = options(&["-e", "SELECT 1"], &environment).unwrap();
        assert_eq!((read.target.host.as_str(), read.target.port), ("a", 1));
        assert_eq!(read.source, Source::Text("SELECT 1".into()));
        let read = options(&["b", "2", "-f", "x.cql", "--no-color", "--cqlversion", "3.4"], &environment).unwrap();
        assert_eq!((read.target.host.as_str(), read.target.port), ("b", 2));
        assert_eq!((read.target.cql_version.as_str(), read.color), ("3.4.0", false));
        // as for cqlsh an alias may have options that the typed words repeat
        let read = options(&["-k", "a", "-e", "SELECT 1", "--ssl", "-k", "b", "--ssl", "-e", "SELECT 2"], &[]).unwrap();
        assert_eq!((read.keyspace.as_deref(), read.source), (Some("b"), Source::Text("SELECT 2".into())));
    }

    #[test]
    fn cqlshrc_and_credentials() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path();
        std::fs::create_dir(home.join(".cassandra")).unwrap();
        let rc = "[connection]\nhostname = c\nrequest_timeout = 33\nssl = true\n[ssl]\ncertfile = ~/ca.pem\n[ui]\ntimezone = UTC\nfloat_precision = 3\n[authentication]\nkeyspace = ks\n[history]\ndisabled = true\n";
        std::fs::write(home.join(".cassandra/cqlshrc"), rc).unwrap();
        let credentials = home.join(".cassandra/credentials");
        std::fs::write(&credentials, "[plain_text_auth]\nusername = u\npassword = p\n").unwrap();
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&credentials, std::fs::Permissions::from_mode(0o600)).unwrap();
        let environment = [("HOME", home.to_str().unwrap())];
        let read = options(&[], &environment).unwrap();
        assert_eq!((read.target.host.as_str(), read.target.request_timeout.as_secs()), ("c", 33));
        assert_eq!(read.target.login, Some(("u".into(), "p".into())));
        assert_eq!(read.target.tls.unwrap().trusted, Some(home.join("ca.pem")));
        assert_eq!((read.keyspace.as_deref(), read.style.float_precision, read.history), (Some("ks"), 3, None));
        // a file that others may read is not used
        std::fs::set_permissions(&credentials, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(options(&[], &environment).unwrap().target.login, None);
    }

    #[test]
    fn refused_by_name() {
        for (words, part) in [
            (&["h", "x"][..], "not a valid port"),
            (&["--encoding", "latin1"], "--encoding"),
            (&["--browser", "x"], "--browser"),
            (&["--protocol-version", "2"], "version 2"),
            (&["--nothing"], "--nothing"),
        ] {
            let text = options(words, &[]).unwrap_err();
            assert!(text.contains(part), "{text}");
        }
    }
}
