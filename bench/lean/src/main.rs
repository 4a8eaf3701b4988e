//! `bench-lean HOST:PORT PID`: jobs on standard input, a line of JSON each; their outcomes on
//! standard output, a line each. PID is the server's process, whose CPU time is taken before and
//! after. See `bench_lean::job`.

use std::io::{BufRead, Write};

use bench_lean::Result;
use bench_lean::job::{Job, Server};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, pid] = arguments.as_slice() else {
        return Err("usage: bench-lean HOST:PORT PID, jobs as lines of JSON on standard input".into());
    };
    let server = Server { address: address.parse()?, pid: pid.parse()? };
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let outcome = serde_json::from_str::<Job>(&line?).map_err(Into::into).and_then(|job| job.run(server));
        let outcome = outcome.unwrap_or_else(|error| serde_json::json!({ "error": error.to_string() }));
        writeln!(out, "{outcome}")?;
        out.flush()?;
    }
    Ok(())
}
