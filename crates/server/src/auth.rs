//! Who may connect, and who may do what: authentication of connections, and the roles that it is
//! decided from.
//!
//! [`Authenticator`] is what connections know of it. [`Auth`] is PasswordAuthenticator with the
//! snapshot of the roles ([`roles`]), [`passwords`] hashes off the workers, [`plain`] reads what
//! clients send. Agrees with `org.apache.cassandra.auth.{IAuthenticator,PasswordAuthenticator}` as
//! far as the wire shows it.

mod load;
mod passwords;
mod plain;
mod roles;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use native::{AuthOutcome, Authenticator, PASSWORD_AUTHENTICATOR};
use protocol::request::AuthResponse;
use protocol::{ErrorKind, ErrorMessage};

pub use passwords::Passwords;
pub use roles::{Auth, Current};

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

/// The answer tells neither by its words nor by its time whether there is such a role.
async fn log_in(auth: &Auth, user: String, password: String) -> AuthOutcome {
    let current = auth.current();
    let hash = current.roles.roles.get(&user).and_then(|role| role.salted_hash.clone());
    let fits = auth.passwords.fits(password, hash).await.map_err(ErrorMessage::overloaded)?;
    if !fits {
        return Err(refusal(format!("Provided username {user} and/or password are incorrect")));
    }
    if !current.roles.can_login(&user) {
        return Err(refusal(format!("{user} is not permitted to log in")));
    }
    Ok(Arc::from(user))
}
