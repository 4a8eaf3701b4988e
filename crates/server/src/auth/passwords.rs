//! Hashing of passwords: bcrypt as jBCrypt has it, off the workers, a few at a time.
//!
//! One hash is a tenth of a second of CPU. `native_transport_max_auth_threads` are computed at
//! once, so that a storm of logins leaves the pool to reads; a bounded number waits, the next is
//! refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bcrypt::Version;
use env::Env;
use tokio::sync::Semaphore;

/// Logins that may wait for their password to be hashed. A further one is answered OVERLOADED.
const LOGINS_WAITING_MAX: usize = 4096;

/// 2^10 rounds: Cassandra's default (`AUTH_BCRYPT_GENSALT_LOG2_ROUNDS`).
const ROUNDS: u32 = 10;

/// The hash that is compared where there is no such role, so that the refusal takes as long.
const NOBODYS_HASH: &str = "$2a$10$SjkK0k/qD03aKTW9olAteu6fVrq3lwhFiLskyvra7OmVJGrOWswnK";

/// Hashes and compares passwords.
pub struct Passwords {
    env: Env,
    slots: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// A login that waits. It is counted until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Passwords {
    /// At most `threads` passwords are hashed at a time.
    pub fn new(env: &Env, threads: usize) -> Self {
        let slots = Arc::new(Semaphore::new(threads.clamp(1, Semaphore::MAX_PERMITS)));
        Self { env: env.clone(), slots, waiting: AtomicUsize::new(0) }
    }

    /// The hash of a password, as `system_auth.roles` holds it. Err: too many wait.
    pub async fn hash(&self, password: String) -> Result<String, String> {
        let salt = self.salt();
        self.run_in_slot(move || hashed(&password, salt))
            .await?
            .ok_or_else(|| "The password cannot be hashed".to_owned())
    }

    /// Hashes a password on this thread. None: it could not be hashed.
    pub fn hash_now(&self, password: &str) -> Option<String> {
        hashed_now(&self.env, password)
    }

    /// Whether the password is that of the hash. Without a hash the answer is no, and takes as
    /// long: otherwise its time would tell which roles exist. Err: too many wait.
    pub async fn verify(&self, password: String, hash: Option<String>) -> Result<bool, String> {
        self.run_in_slot(move || {
            let (hash, is_real) = hash.map_or((NOBODYS_HASH.to_owned(), false), |hash| (hash, true));
            let fits = bcrypt::verify(&password, &hash).unwrap_or_else(|error| {
                tracing::warn!(%error, "invalid password hash encountered, rejecting user");
                false
            });
            fits && is_real
        })
        .await
    }

    fn salt(&self) -> [u8; 16] {
        let mut salt = [0; 16];
        self.env.random.fill(&mut salt);
        salt
    }

    async fn run_in_slot<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
        let too_many = || "Too many logins wait for their password to be checked".to_owned();
        let _waiting = Waiting(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= LOGINS_WAITING_MAX {
            return Err(too_many());
        }
        let slot = Arc::clone(&self.slots).acquire_owned().await.map_err(|_| too_many())?;
        // the slot goes with the job, also when nobody waits for it any more
        let job = move || {
            let done = job();
            drop(slot);
            done
        };
        self.env.blocking("password", job).await.map_err(|_| too_many())
    }
}

/// The hash of a password, computed on this thread.
pub(super) fn hashed_now(env: &Env, password: &str) -> Option<String> {
    let mut salt = [0; 16];
    env.random.fill(&mut salt);
    hashed(password, salt)
}

fn hashed(password: &str, salt: [u8; 16]) -> Option<String> {
    let parts = bcrypt::hash_with_salt(password, ROUNDS, salt).ok()?;
    Some(parts.format_for_version(Version::TwoA))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes that Cassandra 5.0.8 has written fit their passwords; ours has their form.
    #[test]
    fn hashes_are_jbcrypts() {
        let cassandras = "$2a$10$MwWulXFIn83A4cSgkx7TDu0YD1ohlAGL1KvmbLGZyQWNEGOTvppW6";
        assert!(bcrypt::verify("a", cassandras).is_ok_and(|fits| fits));
        assert!(bcrypt::verify("cassandra", NOBODYS_HASH).is_ok_and(|fits| fits));
        let ours = hashed("pass", [7; 16]).expect("hashed");
        assert!(ours.starts_with("$2a$10$") && ours.len() == 60, "{ours}");
        assert!(bcrypt::verify("pass", &ours).is_ok_and(|fits| fits));
        assert!(bcrypt::verify("word", &ours).is_ok_and(|fits| !fits));
    }
}
