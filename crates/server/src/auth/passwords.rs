//! Hashing of passwords: bcrypt as jBCrypt has it, off the workers, a few at a time.
//!
//! One hash is a tenth of a second of CPU. `native_transport_max_auth_threads` are computed at
//! once, and no more than half of the cores can, so that a storm of logins leaves CPU to requests.
//! Further logins wait in the order in which they came. One that would wait for longer than
//! [`LOGIN_WAIT_MAX`] is refused: the next hash is always one that a client still waits for, where
//! without this bound all of them could come too late. A password that was just found right is not
//! hashed again ([`super::verified`]).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bcrypt::Version;
use env::Env;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::verified::{Comparison, Verified};

/// Logins that may wait for their password to be hashed. A further one is answered OVERLOADED.
const LOGINS_WAITING_MAX: usize = 4096;

/// Longest time that a login waits for its turn. Then it is answered OVERLOADED. Drivers wait for
/// five seconds or longer before they give a connection up.
const LOGIN_WAIT_MAX: Duration = Duration::from_secs(3);

/// 2^10 rounds: Cassandra's default (`AUTH_BCRYPT_GENSALT_LOG2_ROUNDS`).
const ROUNDS: u32 = 10;

/// The hash that is compared where there is no such role, so that the refusal takes as long.
const NOBODYS_HASH: &str = "$2a$10$SjkK0k/qD03aKTW9olAteu6fVrq3lwhFiLskyvra7OmVJGrOWswnK";

/// Hashes and compares passwords.
pub struct Passwords {
    env: Env,
    slots: Arc<Semaphore>,
    /// Number of slots, taken or free. Not zero.
    slot_count: u32,
    waiting: Mutex<Waiting>,
    /// Time that the last hash took, in nanoseconds; 0: there was none.
    last_took: Arc<AtomicU64>,
    verified: Verified,
}

/// The logins that wait for a slot.
#[derive(Default)]
struct Waiting {
    logins: usize,
    /// Number of logins of each comparison. Of many with one password one is hashed, and the others
    /// then find it right.
    comparisons: BTreeMap<Comparison, usize>,
}

/// The place of a login that waits. It is counted until it is dropped.
struct Place<'a> {
    passwords: &'a Passwords,
    comparison: Comparison,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut waiting = self.passwords.waiting();
        waiting.logins -= 1;
        if let Some(count) = waiting.comparisons.get_mut(&self.comparison) {
            *count -= 1;
            if *count == 0 {
                waiting.comparisons.remove(&self.comparison);
            }
        }
    }
}

impl Passwords {
    /// At most `threads` passwords are hashed at a time, on no more than half of the cores. One
    /// that was found right is not hashed again for `validity`.
    pub fn new(env: &Env, threads: usize, validity: Duration) -> Self {
        let slots = threads.min(env.tasks.cores() / 2).clamp(1, Semaphore::MAX_PERMITS);
        Self {
            env: env.clone(),
            slots: Arc::new(Semaphore::new(slots)),
            slot_count: u32::try_from(slots).unwrap_or(u32::MAX),
            waiting: Mutex::default(),
            last_took: Arc::default(),
            verified: Verified::new(validity),
        }
    }

    /// The hash of a password, as `system_auth.roles` holds it. Err: too many wait.
    pub async fn hash(&self, password: String) -> Result<String, String> {
        let salt = self.salt();
        let slot = self.slot(self.verified.comparison(&self.env, &salt, &password)).await?;
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
        let comparison = self.verified.comparison(&self.env, hash.as_bytes(), &password);
        if is_real && self.verified.has(&comparison, self.env.now()) {
            return Ok(true);
        }
        let slot = self.slot(comparison).await?;
        if is_real && self.verified.has(&comparison, self.env.now()) {
            return Ok(true);
        }
        let fits = self.run_in_slot(slot, move || {
            bcrypt::verify(&password, &hash).unwrap_or_else(|error| {
                tracing::warn!(%error, "invalid password hash encountered, rejecting user");
                false
            })
        });
        let fits = fits.await? && is_real;
        if fits {
            self.verified.add(comparison, self.env.now());
        }
        Ok(fits)
    }

    fn salt(&self) -> [u8; 16] {
        let mut salt = [0; 16];
        self.env.random.fill(&mut salt);
        salt
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place among the logins that wait; None: too many of them are to be hashed before this one.
    fn enter(&self, comparison: Comparison) -> Option<Place<'_>> {
        let mut waiting = self.waiting();
        let ahead = u32::try_from(waiting.comparisons.len()).unwrap_or(u32::MAX);
        let took = Duration::from_nanos(self.last_took.load(Ordering::Relaxed));
        let is_long = took.saturating_mul(ahead) / self.slot_count >= LOGIN_WAIT_MAX;
        if waiting.logins >= LOGINS_WAITING_MAX || is_long && !waiting.comparisons.contains_key(&comparison) {
            return None;
        }
        waiting.logins += 1;
        *waiting.comparisons.entry(comparison).or_default() += 1;
        Some(Place { passwords: self, comparison })
    }

    /// Waits for a slot. Err: there is none in time.
    async fn slot(&self, comparison: Comparison) -> Result<OwnedSemaphorePermit, String> {
        let _place = self.enter(comparison).ok_or_else(too_many)?;
        let slot = self.env.timeout(LOGIN_WAIT_MAX, Arc::clone(&self.slots).acquire_owned()).await;
        slot.ok().and_then(Result::ok).ok_or_else(too_many)
    }

    async fn run_in_slot<T: Send + 'static>(
        &self,
        slot: OwnedSemaphorePermit,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        let (env, last_took) = (self.env.clone(), Arc::clone(&self.last_took));
        // the slot goes with the job, also when nobody waits for it any more
        let job = move || {
            let begun = env.now();
            let done = job();
            let took = u64::try_from(env.elapsed(begun).as_nanos()).unwrap_or(u64::MAX);
            last_took.store(took, Ordering::Relaxed);
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
        let waiting = passwords.waiting();
        assert_eq!((waiting.logins, waiting.comparisons.len()), (0, 0));
    }

    /// A login that would wait too long is refused at once, unless its password is being checked
    /// for another one.
    #[test]
    fn logins_are_refused_once_the_queue_is_too_long() {
        let sim = Sim::new(1);
        let passwords = Passwords::new(&sim.env(), 1, Duration::from_secs(2));
        let enter = |number: u8| passwords.enter([number; 32]);
        passwords.last_took.store(1_000_000_000, Ordering::Relaxed);
        let places: Vec<_> = (0..3).map_while(enter).collect();
        assert_eq!((places.len(), enter(3).is_some(), enter(2).is_some()), (3, false, true));
        drop(places);
        assert!(enter(3).is_some());
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
