//! The main job on real input: partitions of 100 to 10,000,000 cells loaded through a real driver,
//! then queried by name, by slice from every position in both directions and by "newest N", each
//! answer compared with the generator that made the data. `tests/wide/run` starts the server,
//! flushes, compacts, kills and restarts around these verbs; a real Cassandra answers them too.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // a client program beside the server

mod check;
mod data;
mod hammer;
mod load;
mod report;

use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;

/// The result of a verb; the message goes to standard error.
type Outcome = Result<(), Box<dyn std::error::Error>>;

const USAGE: &str = "usage: wide VERB HOST:PORT ARG
  load  ADDRESS CELLS_MAX   make the tables and write every partition up to this width
  check ADDRESS CELLS_MAX   read them back in every way; prints latencies and `N passed, N failed`
  hammer ADDRESS FILE       write until the server goes away; FILE gets what was acknowledged
  acked ADDRESS FILE        read back what FILE says was acknowledged";

async fn connect(address: &str) -> Result<Session, Box<dyn std::error::Error>> {
    Ok(SessionBuilder::new().known_node(address).build().await?)
}

#[tokio::main]
async fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [verb, address, argument] = arguments.as_slice() else {
        return Err(USAGE.into());
    };
    let session = connect(address).await?;
    match verb.as_str() {
        "load" => load::run(session, argument.parse()?).await,
        "check" => check::run(session, argument.parse()?).await,
        "hammer" => hammer::write(session, argument).await,
        "acked" => hammer::verify(session, argument).await,
        _ => Err(USAGE.into()),
    }
}
