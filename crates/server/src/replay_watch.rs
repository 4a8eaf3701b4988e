//! Answers of the admin port during a long replay of the commit log, from the first time that the
//! storage tells of the replay.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use admin::http::PortSecurity;
use admin::verbs::ReplayMetrics;
use env::Env;
use storage::commitlog::{OnReplay, ReplayProgress};

use crate::ops::Ops;

/// The progress of the replay. Dropping its last clone frees the port.
#[derive(Clone, Default)]
pub(crate) struct ReplayWatch(Arc<Mutex<ReplayState>>);

#[derive(Default)]
struct ReplayState {
    latest: ReplayMetrics,
    ops: Option<Ops>,
}

impl ReplayWatch {
    /// The function by which the storage tells of the progress of a replay. `address`: the admin
    /// port; None or port 0: the port is not known yet, and nothing is answered.
    pub(crate) fn on_replay(&self, env: &Env, address: Option<SocketAddr>, security: PortSecurity) -> OnReplay {
        let (watch, env) = (self.clone(), env.clone());
        let address = address.filter(|address| address.port() != 0);
        Arc::new(move |progress| watch.tell(&env, address, &security, progress))
    }

    fn tell(&self, env: &Env, address: Option<SocketAddr>, security: &PortSecurity, progress: &ReplayProgress) {
        let ReplayProgress { is_schema, done, total, records, .. } = *progress;
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watched.latest = ReplayMetrics { is_schema, done, total, records };
        let Some(address) = address.filter(|_| watched.ops.is_none()) else { return };
        // not an owner: the thread that serves would keep itself alive
        let latest = Arc::downgrade(&self.0);
        let ask = move || {
            let watched = latest.upgrade();
            watched.map_or_else(ReplayMetrics::default, |it| it.lock().unwrap_or_else(PoisonError::into_inner).latest)
        };
        match Ops::start_early(env, address, Arc::new(ask), security.clone()) {
            Ok(ops) => watched.ops = Some(ops),
            Err(error) => tracing::warn!(%error, "the admin port cannot be served during the replay"),
        }
    }

    /// The replay is over: the port is free for the node.
    pub(crate) fn end(&self) {
        let ops = self.0.lock().unwrap_or_else(PoisonError::into_inner).ops.take();
        drop(ops);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// The answer to a GET.
    async fn get(env: &Env, address: SocketAddr, path: &str) -> String {
        let mut stream = env.network.connect(address).await.expect("connected");
        let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("written");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("read");
        answer
    }

    #[test]
    fn a_long_replay_is_seen_at_the_admin_port() {
        let env = env::real::env();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let free = env.network.bind("127.0.0.1:0".parse().expect("an address"), false).expect("a port");
            let address = free.local_address().expect("bound");
            drop(free);
            let watch = ReplayWatch::default();
            let tell = watch.on_replay(&env, Some(address), PortSecurity::OF_MACHINE);
            assert!(env.network.connect(address).await.is_err(), "a short replay has no port");
            for done in [1000, 2000] {
                tell(&ReplayProgress { done, total: 5000, records: 7, ..ReplayProgress::default() });
            }
            let metrics = get(&env, address, "/metrics").await;
            assert!(metrics.contains("cassandra_commitlog_replay_done_bytes{what=\"tables\"} 2000\n"), "{metrics}");
            assert!(metrics.contains("cassandra_commitlog_replay_total_bytes{what=\"tables\"} 5000\n"), "{metrics}");
            let other = get(&env, address, "/api/node").await;
            assert!(other.starts_with("HTTP/1.0 503") && other.contains("the node is starting"), "{other}");
            watch.end();
            env.network.bind(address, false).expect("the port is free for the node");
        });
    }
}
