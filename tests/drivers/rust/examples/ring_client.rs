//! The `scylla` driver as a client of a ring: what tests/ring/drivers asks for, a line of JSON an
//! answer. Arguments: ADDRESS PORT.

use std::collections::BTreeSet;
use std::io::BufRead;
use std::time::{Duration, Instant};

use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::prepared::PreparedStatement;

/// The longest time in which a node has to be seen up or down.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whatever goes wrong with a driver.
type Failure = Box<dyn std::error::Error>;

/// The session with the statements of both keyspaces.
struct Client {
    session: Session,
    one: PreparedStatement,
    three: PreparedStatement,
}

impl Client {
    async fn connect(address: String) -> Result<Self, Failure> {
        let session = SessionBuilder::new().known_node(address).build().await?;
        let one = session.prepare("SELECT k FROM ring_one.t WHERE k = ?").await?;
        let three = session.prepare("SELECT k FROM ring_three.t WHERE k = ?").await?;
        Ok(Self { session, one, three })
    }

    /// Addresses of the nodes that the driver has connections to.
    fn up(&self) -> BTreeSet<String> {
        let state = self.session.get_cluster_state();
        let connected = state.get_nodes_info().iter().filter(|node| node.is_connected());
        connected.map(|node| node.address.ip().to_string()).collect()
    }

    async fn coordinators(&self, statement: &PreparedStatement, count: i32) -> Result<Vec<String>, Failure> {
        let mut found = Vec::new();
        for key in 0..count {
            let result = self.session.execute_unpaged(statement, (key,)).await?;
            found.push(result.request_coordinator().connection_address().ip().to_string());
        }
        Ok(found)
    }

    async fn awaited(&self, address: &str, is_up: bool) -> bool {
        let begun = Instant::now();
        while self.up().contains(address) != is_up && begun.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.up().contains(address) == is_up
    }

    async fn answer(&self, verb: &str, word: &str) -> Result<String, Failure> {
        Ok(match verb {
            "hosts" => list(self.up()),
            "aware" => list(self.coordinators(&self.one, word.parse()?).await?),
            "spread" => {
                let found = self.coordinators(&self.three, word.parse()?).await?;
                list(found.into_iter().collect::<BTreeSet<_>>())
            }
            "schema" => {
                let create = format!("CREATE TABLE ring_three.{word} (k int PRIMARY KEY)");
                self.session.query_unpaged(create, &[]).await?;
                self.session.await_schema_agreement().await.is_ok().to_string()
            }
            "up" | "down" => self.awaited(word, verb == "up").await.to_string(),
            _ => return Err(format!("unknown verb {verb}").into()),
        })
    }
}

fn list(texts: impl IntoIterator<Item = String>) -> String {
    let texts: Vec<String> = texts.into_iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", texts.join(", "))
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(port)) = (arguments.next(), arguments.next()) else { return Err("ADDRESS PORT".into()) };
    let client = Client::connect(format!("{address}:{port}")).await?;
    println!("\"ready\"");
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (verb, word) = line.split_once(' ').unwrap_or((&line, ""));
        let answer = client.answer(verb, word).await;
        println!("{}", answer.unwrap_or_else(|error| format!("{{\"error\": {:?}}}", error.to_string())));
    }
    Ok(())
}
