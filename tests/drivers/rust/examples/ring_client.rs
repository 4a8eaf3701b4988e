//! The `scylla` driver as a client of a ring: what `tests/ring/drivers` asks for, a line of JSON an
//! answer.
//!
//! ring_client ADDRESS PORT
#![allow(clippy::disallowed_methods)]

use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::prepared::PreparedStatement;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// How long a change of a node's state is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// As the clients of the other drivers: longer than a node that was killed stays unnoticed.
const REQUEST: Duration = Duration::from_secs(20);

struct Client {
    session: Session,
    /// Reads of a key of `ring_one` (RF 1) and of `ring_three` (RF 3).
    one: PreparedStatement,
    three: PreparedStatement,
}

impl Client {
    async fn connect(address: &str, port: &str) -> Outcome<Client> {
        let profile = ExecutionProfile::builder().request_timeout(Some(REQUEST)).build();
        let session = SessionBuilder::new()
            .known_node(format!("{address}:{port}"))
            .default_execution_profile_handle(profile.into_handle())
            .connection_timeout(REQUEST)
            .build()
            .await?;
        let one = session.prepare("SELECT k FROM ring_one.t WHERE k = ?").await?;
        let three = session.prepare("SELECT k FROM ring_three.t WHERE k = ?").await?;
        Ok(Client { session, one, three })
    }

    /// The nodes to which the driver has connections.
    fn up(&self) -> Vec<String> {
        let state = self.session.get_cluster_state();
        let nodes = state.get_nodes_info().iter().filter(|node| node.is_connected());
        sorted(nodes.map(|node| node.address.ip().to_string()).collect())
    }

    async fn coordinators(&self, statement: &PreparedStatement, count: i32) -> Outcome<Vec<String>> {
        let mut found = Vec::new();
        for key in 0..count {
            let answer = self.session.execute_unpaged(statement, (key,)).await?;
            found.push(answer.request_coordinator().connection_address().ip().to_string());
        }
        Ok(found)
    }

    /// Whether the node comes to be up, or down, within the patience.
    async fn awaited(&self, address: &str, is_up: bool) -> bool {
        let begun = Instant::now();
        let is_so = || self.up().iter().any(|known| known == address) == is_up;
        while !is_so() && begun.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        is_so()
    }

    async fn answer(&self, verb: &str, word: &str) -> Outcome<String> {
        match verb {
            "hosts" => Ok(list(&self.up())),
            "aware" => Ok(list(&self.coordinators(&self.one, word.parse()?).await?)),
            "spread" => Ok(list(&sorted(self.coordinators(&self.three, word.parse()?).await?))),
            "schema" => {
                let create = format!("CREATE TABLE ring_three.{word} (k int PRIMARY KEY)");
                self.session.query_unpaged(create, &[]).await?;
                self.session.await_schema_agreement().await?;
                Ok("true".into())
            }
            "up" | "down" => Ok(self.awaited(word, verb == "up").await.to_string()),
            _ => Err(format!("unknown verb {verb}").into()),
        }
    }
}

/// In order, each once.
fn sorted(mut all: Vec<String>) -> Vec<String> {
    all.sort();
    all.dedup();
    all
}

fn list(all: &[String]) -> String {
    format!("[{}]", all.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>().join(", "))
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().collect();
    let [_, address, port] = &words[..] else { return Err("ring_client ADDRESS PORT".into()) };
    let client = Client::connect(address, port).await?;
    let mut out = std::io::stdout();
    writeln!(out, "\"ready\"")?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (verb, word) = line.split_once(' ').unwrap_or((&line, ""));
        let answer = client.answer(verb, word).await;
        let answer = answer.unwrap_or_else(|error| format!("{{\"error\": {:?}}}", error.to_string()));
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}
