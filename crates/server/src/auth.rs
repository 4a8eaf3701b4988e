//! Authentication of connections, and the roles from which it is decided who may connect and who
//! may do what.
//!
//! [`Authenticator`] is what connections know of it. [`Auth`] is PasswordAuthenticator with the
//! roles ([`roles`]): those of a node alone, or those of a ring ([`shared`], with the caches of
//! [`cache`], whose entries [`renewal`] reads again). [`setup`] makes the default superuser with
//! its [`FirstPassword`], [`passwords`] hashes off the workers and knows the [`verified`] ones,
//! [`plain`] reads what clients send.
//! Agrees with `org.apache.cassandra.auth.{IAuthenticator,PasswordAuthenticator}` as far as the
//! wire shows it.

mod cache;
mod caches;
mod first_password;
mod load;
mod passwords;
mod plain;
mod renewal;
mod roles;
mod setup;
mod shared;
mod verified;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use native::{AuthOutcome, Authenticator, PASSWORD_AUTHENTICATOR};
use protocol::request::AuthResponse;
use protocol::{ErrorKind, ErrorMessage};

pub use first_password::FirstPassword;
pub use passwords::Passwords;
pub use roles::{Auth, RoleChange, UserAccess};

/// `PasswordAuthenticator`.
pub struct PasswordAuthenticator(pub Arc<Auth>);

impl Authenticator for PasswordAuthenticator {
    fn class_name(&self) -> Option<&str> {
        Some(PASSWORD_AUTHENTICATOR)
    }

    fn authenticate(&self, response: AuthResponse) -> Pin<Box<dyn Future<Output = AuthOutcome>>> {
        let auth = Arc::clone(&self.0);
        Box::pin(async move {
            let token = response.token.unwrap_or_default();
            let (user, password) = plain::credentials(&token).map_err(refusal)?;
            log_in(&auth, user, password).await
        })
    }
}

fn refusal(text: impl Into<String>) -> ErrorMessage {
    ErrorMessage::new(ErrorKind::BadCredentials, text.into())
}

/// Whether a password is that of a role that may log in. Err: why it is not.
pub(crate) async fn check_password(auth: &Auth, user: &str, password: &str) -> Result<(), String> {
    let outcome = log_in(auth, user.to_owned(), password.to_owned()).await;
    outcome.map(drop).map_err(|error| error.message)
}

/// Whether a role may still log in.
pub(crate) async fn may_log_in(auth: &Auth, user: &str) -> Result<bool, String> {
    auth.can_login(user).await.map_err(|error| error.to_string())
}

/// Logs a user in. Neither the text nor the timing of the answer tells whether the role exists.
async fn log_in(auth: &Auth, user: String, password: String) -> AuthOutcome {
    let unknown = |error| refusal(format!("Unable to perform authentication: {error}"));
    let hash = auth.credentials_of(&user).await.map_err(|error| unknown(error.to_string()))?;
    let fits = auth.passwords.verify(password, hash).await.map_err(ErrorMessage::overloaded)?;
    if !fits {
        return Err(refusal(format!("Provided username {user} and/or password are incorrect")));
    }
    let can_login = auth.can_login(&user).await;
    let of_login = |error| unknown(format!("Unable to perform authorization of login permission: {error}"));
    if !can_login.map_err(of_login)? {
        return Err(refusal(format!("{user} is not permitted to log in")));
    }
    Ok(Arc::from(user))
}
