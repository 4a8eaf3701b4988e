//! Keys and certificates while the node runs: their PEM files are read again when they change.
//!
//! A task looks at the files every [`PERIOD`]; `nodetool reloadssl` looks at once. Connections that
//! begin later use what was read, connections that are open go on as they began. Files that cannot
//! be used change nothing, and are told of in one line until they change again. Agrees with
//! `org.apache.cassandra.security.SSLFactory` (`checkCertFilesForHotReloading`), which compares
//! times of files where the texts are compared here.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use env::{Env, Next, Wake};
use tls::TlsOptions;

/// Time between two looks at the files (`SSLFactory.DEFAULT_HOT_RELOAD_PERIOD_SEC`).
const PERIOD: Duration = Duration::from_secs(600);

/// The options of one key of the configuration, with the texts of its files.
#[derive(PartialEq, Eq)]
pub(crate) struct TlsFiles {
    /// For connections that others open.
    pub accept: TlsOptions,
    /// For connections that this node opens; None: the options of `accept` hold for them, too.
    pub connect: Option<TlsOptions>,
}

/// Reads the files; an error says which of them cannot be read, and why.
type ReadTlsFiles = Box<dyn Fn(&Env) -> Result<TlsFiles, String> + Send>;

/// Puts in force what was read; an error says what is wrong with it.
type ApplyTlsFiles = Box<dyn Fn(&TlsFiles) -> Result<(), String> + Send>;

/// A key of the configuration whose files are looked at.
pub(crate) struct WatchedCertificates {
    /// The name of the key.
    pub key: &'static str,
    /// The outcome of reading the files at the last look.
    pub last_read: Result<TlsFiles, String>,
    /// Reads the files.
    pub read: ReadTlsFiles,
    /// Uses keys and certificates for new connections. Err: what is wrong with them; the former
    /// ones stay in force.
    pub apply: ApplyTlsFiles,
}

impl WatchedCertificates {
    /// Reads the files. None: they have not changed, and `at_once` does not ask to use them
    /// anyway. Some: whether new connections use them.
    fn reload(&mut self, env: &Env, at_once: bool) -> Option<Result<(), String>> {
        let now = (self.read)(env);
        if now == self.last_read && !at_once {
            return None;
        }
        let taken = now.as_ref().map_err(String::clone).and_then(|read| (self.apply)(read));
        self.last_read = now;
        Some(taken)
    }
}

/// All keys of the configuration whose files are looked at.
#[derive(Default)]
pub struct Certificates(Mutex<Vec<WatchedCertificates>>);

impl Certificates {
    /// Looks at the files of a key from now on.
    pub(crate) fn watch(&self, watched: WatchedCertificates) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(watched);
    }

    /// Reads the files, and uses those that have changed, or all of them `at_once`. Gives what is
    /// wrong with those that cannot be used. May block.
    pub(crate) fn reload(&self, env: &Env, at_once: bool) -> Vec<String> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut problems = Vec::new();
        for watched in all.iter_mut() {
            let key = watched.key;
            match watched.reload(env, at_once) {
                None => {}
                Some(Ok(())) => tracing::info!(key, "certificates are read again, and used for new connections"),
                Some(Err(error)) => {
                    tracing::error!(key, error, "certificates cannot be read again, and stay as they are");
                    problems.push(format!("{key}: {error}"));
                }
            }
        }
        problems
    }

    fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// Looks at the files of a node until the node ends or the [`Wake`] is dropped. None: nothing is
/// encrypted.
pub(crate) fn follow(certificates: &Arc<Certificates>, env: &Env) -> Option<Wake> {
    if certificates.is_empty() {
        return None;
    }
    let weak: Weak<Certificates> = Arc::downgrade(certificates);
    let machine = env.clone();
    let step = move || {
        let Some(certificates) = weak.upgrade() else { return Next::Done };
        certificates.reload(&machine, false);
        Next::After(PERIOD)
    };
    let wake = env.tasks.background("certificates", Box::new(step));
    wake.wake();
    Some(wake)
}

#[cfg(test)]
mod tests;
