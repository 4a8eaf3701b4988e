//! Sessions of the console: who has logged in with a browser.
//!
//! A session is a random token in a cookie that scripts cannot read (HttpOnly) and that a browser
//! sends only with requests of the console's own pages (SameSite=Strict). Sessions are in memory
//! alone: a restart ends all. Their number and their age are bounded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use env::{Env, Instant};

/// Sessions at a time. A further login ends the oldest session.
const SESSIONS_MAX: usize = 64;
/// A session ends so long after its login.
const SESSION_TIME: Duration = Duration::from_secs(8 * 3600);
/// Random bytes of a session's token.
const TOKEN_SIZE: usize = 32;

/// The sessions of one port.
pub(super) struct Sessions {
    /// The cookie's name. Browsers share cookies between the ports of a machine, so the port is in
    /// the name; otherwise a login at one node would end the session at another.
    cookie: String,
    /// `; Secure` where the port is encrypted: the cookie never goes over a connection that is not.
    secure: &'static str,
    by_token: Mutex<BTreeMap<String, Session>>,
}

struct Session {
    user: Arc<str>,
    begun: Instant,
}

impl Sessions {
    /// No sessions yet, at a port.
    pub fn new(port: u16, is_encrypted: bool) -> Self {
        let secure = if is_encrypted { "; Secure" } else { "" };
        Self { cookie: format!("helenus_{port}"), secure, by_token: Mutex::default() }
    }

    /// Begins a session; gives the value of `Set-Cookie`.
    pub fn begin(&self, env: &Env, user: &str) -> String {
        let mut token = String::with_capacity(2 * TOKEN_SIZE);
        for _ in 0..TOKEN_SIZE / size_of::<u64>() {
            token += &format!("{:016x}", env.random.next_u64());
        }
        let now = env.now();
        let mut sessions = self.by_token.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, session| now.since(session.begun) < SESSION_TIME);
        if sessions.len() >= SESSIONS_MAX {
            let oldest = sessions.iter().min_by_key(|(_, session)| session.begun).map(|(token, _)| token.clone());
            oldest.map(|token| sessions.remove(&token));
        }
        sessions.insert(token.clone(), Session { user: Arc::from(user), begun: now });
        let age = SESSION_TIME.as_secs();
        format!("{}={token}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{}", self.cookie, self.secure)
    }

    /// The user of a request's session; None: there is none, or it has ended.
    pub fn user(&self, env: &Env, headers: &HeaderMap) -> Option<Arc<str>> {
        let token = self.token(headers)?;
        let sessions = self.by_token.lock().unwrap_or_else(PoisonError::into_inner);
        let session = sessions.get(token)?;
        (env.now().since(session.begun) < SESSION_TIME).then(|| Arc::clone(&session.user))
    }

    /// Ends a request's session; gives the value of `Set-Cookie`.
    pub fn end(&self, headers: &HeaderMap) -> String {
        if let Some(token) = self.token(headers) {
            self.by_token.lock().unwrap_or_else(PoisonError::into_inner).remove(token);
        }
        format!("{}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0", self.cookie)
    }

    fn token<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        cookies.flat_map(|line| line.split(';')).find_map(|one| {
            let (name, value) = one.trim().split_once('=')?;
            (name == self.cookie).then_some(value)
        })
    }
}

#[cfg(test)]
mod tests {
    use env::sim::Sim;

    use super::*;

    fn headers(cookie: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let sent = cookie.split(';').next().expect("a cookie");
        headers.insert(header::COOKIE, format!("other=1; {sent}").parse().expect("a header"));
        headers
    }

    #[test]
    fn a_session_is_found_ends_and_makes_room() {
        let sim = Sim::new(1);
        let env = sim.env();
        let sessions = Sessions::new(9180, false);
        let first = sessions.begin(&env, "ann");
        assert!(first.starts_with("helenus_9180=") && first.contains("; HttpOnly; SameSite=Strict;"), "{first}");
        assert_eq!(sessions.user(&env, &headers(&first)).as_deref(), Some("ann"));
        assert_eq!(sessions.user(&env, &HeaderMap::new()), None);
        assert_eq!(sessions.user(&env, &headers("helenus_9180=0000")), None);
        assert_eq!(Sessions::new(9181, false).user(&env, &headers(&first)), None);
        sim.block_on(env.sleep(Duration::from_secs(1)));
        let second = sessions.begin(&env, "bob");
        sessions.end(&headers(&second));
        assert_eq!(sessions.user(&env, &headers(&second)), None);
        (0..SESSIONS_MAX).for_each(|_| drop(sessions.begin(&env, "bob")));
        assert_eq!(sessions.user(&env, &headers(&first)), None, "the oldest makes room");
        assert_eq!(sessions.by_token.lock().expect("no panic inside").len(), SESSIONS_MAX);
        let last = sessions.begin(&env, "cy");
        sim.block_on(env.sleep(SESSION_TIME));
        assert_eq!(sessions.user(&env, &headers(&last)), None, "a session has an end");
    }
}
