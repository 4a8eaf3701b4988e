//! The password that the default superuser gets when it is made.
//!
//! Cassandra makes the role `cassandra` with the password `cassandra`, and so does a node unless
//! its start says otherwise. A role that is there keeps its password: nothing here changes one.

use std::sync::Arc;

use cql::auth::DEFAULT_SUPERUSER;
use env::Env;

/// The characters of a random password: 32, without those that are read as others.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Characters of a random password: 120 bits.
const LENGTH: usize = 24;

/// The password of the default superuser at the start of a node.
#[derive(Clone, Default)]
pub enum FirstPassword {
    /// `cassandra`, as in Cassandra.
    #[default]
    Cassandras,
    /// A password that the operator has chosen. All nodes of a ring are given the same one.
    Given(String),
    /// A random password. The function tells the operator of it, just before the role is written.
    /// In a ring the first of the seeds alone makes the role: otherwise two nodes could tell two
    /// passwords, of which one is in force.
    Random(Arc<dyn Fn(&str) + Send + Sync>),
}

impl FirstPassword {
    /// Whether a node of a ring may make the role.
    pub(super) fn may_be_made(&self, is_first_seed: bool) -> bool {
        is_first_seed || !matches!(self, Self::Random(_))
    }

    /// Whether the operator expects another password than that of Cassandra.
    pub(super) fn is_own(&self) -> bool {
        !matches!(self, Self::Cassandras)
    }

    /// The password. A random one is made and told, so ask once for each start.
    pub(super) fn take(&self, env: &Env) -> String {
        match self {
            Self::Cassandras => DEFAULT_SUPERUSER.to_owned(),
            Self::Given(password) => password.clone(),
            Self::Random(tell) => {
                let mut bytes = [0; LENGTH];
                env.random.fill(&mut bytes);
                let letter = |byte: u8| ALPHABET.get(usize::from(byte % 32)).copied().map_or('x', char::from);
                let password: String = bytes.into_iter().map(letter).collect();
                tell(&password);
                password
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_random_password_is_told_and_differs() {
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let of_tell = Arc::clone(&told);
        let random =
            FirstPassword::Random(Arc::new(move |word| of_tell.lock().expect("no panic").push(word.to_owned())));
        let env = env::real::env();
        let made = [random.take(&env), random.take(&env)];
        assert_eq!(*told.lock().expect("no panic"), made);
        assert_ne!(made[0], made[1]);
        assert!(made.iter().all(|word| word.len() == LENGTH && word.bytes().all(|byte| ALPHABET.contains(&byte))));
        assert!(random.may_be_made(true) && !random.may_be_made(false));
        assert!(FirstPassword::Given("a".to_owned()).may_be_made(false));
        assert_eq!(FirstPassword::default().take(&env), "cassandra");
    }
}
