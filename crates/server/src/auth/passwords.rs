//! Hashing of passwords: bcrypt as jBCrypt has it, off the workers, a few at a time.
//!
//! One hash is a tenth of a second of CPU. `native_transport_max_auth_threads` are computed at
//! once, and no more than there are cores: with more of them each takes longer, requests get less
//! of the CPU, and no login is quicker. Further logins wait in the order in which they came. One
//! that has waited for [`LOGIN_WAIT_MAX`] is refused: the next hash is always one that a client
//! still waits for, where without this bound all of them could come too late. A password that was
//! just found right is not hashed again ([`super::verified`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bcrypt::Version;
use env::Env;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::verified::Verified;

/// Logins that may wait for their password to be hashed. A further one is answered OVERLOADED.
const LOGINS_WAITING_MAX: usize = 4096;

/// Longest time that a login waits for its turn. Then it is answered OVERLOADED. Drivers wait for
/// five seconds or longer before they give a connection up, and the hash itself takes some of that.
const LOGIN_WAIT_MAX: Duration = Duration::from_secs(4);

/// 2^10 rounds: Cassandra's default (`AUTH_BCRYPT_GENSALT_LOG2_ROUNDS`).
const ROUNDS: u32 = 10;

/// The hash that is compared where there is no such role, so that the refusal takes as long.
const NOBODYS_HASH: &str = "$2a$10$SjkK0k/qD03aKTW9olAteu6fVrq3lwhFiLskyvra7OmVJGrOWswnK";

/// Hashes and compares passwords.
pub struct Passwords {
    env: Env,
    slots: Arc<Semaphore>,
    waiting: AtomicUsize,
    verified: Arc<Verified>,
}

/// A login that waits. It is counted until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Passwords {
    /// At most `threads` passwords are hashed at a time, and no more than there are cores. One that
    /// was found right is not hashed again for `validity`.
    pub fn new(env: &Env, threads: usize, validity: Duration) -> Self {
        let slots = threads.min(env.tasks.cores()).clamp(1, Semaphore::MAX_PERMITS);
        Self {
            env: env.clone(),
            slots: Arc::new(Semaphore::new(slots)),
            waiting: AtomicUsize::new(0),
            verified: Arc::new(Verified::new(validity)),
        }
    }

    /// The hash of a password, as `system_auth.roles` holds it. Err: too many wait.
    pub async fn hash(&self, password: String) -> Result<String, String> {
        let salt = self.salt();
        let slot = self.slot().await?;
        self.run_in_slot(slot, move || hashed(&password, salt))
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
        let (hash, is_real) = hash.map_or((NOBODYS_HASH.to_owned(), false), |hash| (hash, true));
        let comparison = self.verified.comparison(&self.env, &hash, &password);
        let is_known = || is_real && self.verified.has(&comparison, self.env.now());
        if is_known() {
            return Ok(true);
        }
        let slot = self.slot().await;
        // a login with the same password may have been checked meanwhile
        if is_known() {
            return Ok(true);
        }
        let (env, verified) = (self.env.clone(), Arc::clone(&self.verified));
        let job = move || {
            let fits = bcrypt::verify(&password, &hash).unwrap_or_else(|error| {
                tracing::warn!(%error, "invalid password hash encountered, rejecting user");
                false
            });
            // inside of the slot: the next login with this password finds it
            if fits && is_real {
                verified.add(comparison, env.now());
            }
            fits && is_real
        };
        self.run_in_slot(slot?, job).await
    }

    fn salt(&self) -> [u8; 16] {
        let mut salt = [0; 16];
        self.env.random.fill(&mut salt);
        salt
    }

    /// Waits for a slot. Err: too many wait, or there is none in time.
    async fn slot(&self) -> Result<OwnedSemaphorePermit, String> {
        let _waiting = Waiting(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= LOGINS_WAITING_MAX {
            return Err(too_many());
        }
        let slot = self.env.timeout(LOGIN_WAIT_MAX, Arc::clone(&self.slots).acquire_owned()).await;
        slot.ok().and_then(Result::ok).ok_or_else(too_many)
    }

    async fn run_in_slot<T: Send + 'static>(
        &self,
        slot: OwnedSemaphorePermit,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        // the slot goes with the job, also when nobody waits for it any more
        let job = move || {
            let done = job();
            drop(slot);
            done
        };
        self.env.blocking("password", job).await.map_err(|_| too_many())
    }
}

fn too_many() -> String {
    "Too many logins wait for their password to be checked".to_owned()
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
    use env::sim::Sim;
    use futures_util::FutureExt;
    use futures_util::future::join;

    use super::*;

    /// A hash of few rounds, as the hashes of an import may have.
    fn quick_hash(password: &str) -> String {
        bcrypt::hash_with_salt(password, 4, [7; 16]).expect("hashed").format_for_version(Version::TwoA)
    }

    /// All slots are taken, and stay so.
    #[test]
    fn a_login_waits_for_a_while_and_a_known_password_does_not() {
        let sim = Sim::new(1);
        let env = sim.env();
        let passwords = Passwords::new(&env, 1, Duration::from_secs(2));
        let hash = quick_hash("pass");
        let verify = |password: &str| sim.block_on(passwords.verify(password.to_owned(), Some(hash.clone())));
        assert_eq!((verify("word"), verify("pass")), (Ok(false), Ok(true)));
        let slot = Arc::clone(&passwords.slots).try_acquire_owned().expect("free");
        let begun = env.now();
        assert_eq!(verify("pass"), Ok(true));
        assert!(env.elapsed(begun) < LOGIN_WAIT_MAX);
        assert_eq!(verify("word"), Err(too_many()));
        assert!(env.elapsed(begun) >= LOGIN_WAIT_MAX);
        assert_eq!(verify("pass"), Err(too_many()), "it was found right too long ago");
        drop(slot);
        assert_eq!(verify("pass"), Ok(true));
        assert_eq!(sim.block_on(passwords.verify("cassandra".to_owned(), None)), Ok(false), "there is no such role");
        assert_eq!(passwords.waiting.load(Ordering::Relaxed), 0);
    }

    /// Of many logins with one password one is hashed: the others find it right when they have
    /// waited, and do not depend on the client of the first.
    #[test]
    fn a_password_is_found_right_while_others_wait_for_it() {
        let sim = Sim::new(1);
        let env = sim.env();
        let passwords = Passwords::new(&env, 1, Duration::from_secs(60));
        let hash = quick_hash("pass");
        let comparison = passwords.verified.comparison(&env, &hash, "pass");
        let slot = Arc::clone(&passwords.slots).try_acquire_owned().expect("free");
        let other = async {
            env.sleep(Duration::from_secs(1)).await;
            passwords.verified.add(comparison, env.now());
        };
        let ((), fits) = sim.block_on(join(other, passwords.verify("pass".to_owned(), Some(hash.clone()))));
        assert_eq!(fits, Ok(true), "no slot was free, and none is needed any more");
        drop(slot);

        let passwords = Passwords::new(&env, 1, Duration::from_secs(60));
        let comparison = passwords.verified.comparison(&env, &hash, "pass");
        let first = passwords.verify("pass".to_owned(), Some(hash)).now_or_never();
        assert_eq!(first, None, "the job has not run, and its client has gone away");
        sim.run_until_idle();
        assert!(passwords.verified.has(&comparison, env.now()));
    }

    /// More slots than cores would make each hash slower and no login quicker.
    #[test]
    fn no_more_passwords_are_hashed_at_a_time_than_there_are_cores() {
        let env = Sim::new(1).env();
        let slots = |threads| Passwords::new(&env, threads, Duration::ZERO).slots.available_permits();
        assert_eq!((slots(1), slots(1000)), (1, env.tasks.cores()));
    }

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
