//! The interface through which a connection has a login judged.
//!
//! The judge itself stands in `server::auth`.
//! Agrees with `org.apache.cassandra.auth.IAuthenticator` as far as the wire shows it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use protocol::ErrorMessage;
use protocol::request::AuthResponse;

/// The end of an exchange: the user, or the refusal.
pub type AuthOutcome = Result<Arc<str>, ErrorMessage>;

/// Decides which clients may connect. Shared by all workers.
pub trait Authenticator: Send + Sync {
    /// The class that AUTHENTICATE names; drivers choose their side of the exchange by it. `None`:
    /// every client is let in without a login.
    fn class_name(&self) -> Option<&str>;

    /// Judges SASL PLAIN's token. Hashing passwords takes long: it belongs on the blocking pool.
    fn authenticate(&self, response: AuthResponse) -> Pin<Box<dyn Future<Output = AuthOutcome>>>;
}

/// `AllowAllAuthenticator`: no client has to log in.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllowAll;

impl Authenticator for AllowAll {
    fn class_name(&self) -> Option<&str> {
        None
    }

    fn authenticate(&self, _: AuthResponse) -> Pin<Box<dyn Future<Output = AuthOutcome>>> {
        Box::pin(std::future::ready(Ok(Arc::from("anonymous"))))
    }
}

/// The class that drivers know to answer with SASL PLAIN.
pub const PASSWORD_AUTHENTICATOR: &str = "org.apache.cassandra.auth.PasswordAuthenticator";
