//! `nodetool viewbuildstatus`: whether all nodes have built a materialized view. Agrees with
//! `org.apache.cassandra.tools.nodetool.ViewBuildStatus`.

use crate::nodetool::text::Table;
use crate::nodetool::{Context, Outcome, VerbError, usage};
use crate::verbs::GetViewBuild;

const NEEDED: &str = "viewbuildstatus requires keyspace and view name arguments";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The keyspace and view name
    args: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let words: Vec<&str> = match self.args.as_slice() {
            [both] => both.split('.').collect(),
            words => words.iter().map(String::as_str).collect(),
        };
        let [keyspace, view] = words.as_slice() else { return usage(NEEDED) };
        let (keyspace, view) = ((*keyspace).to_owned(), (*view).to_owned());
        let (request, with_port) = (format!("{keyspace}.{view}"), context.print_port);
        let nodes = context.api.ask(&GetViewBuild { keyspace, view, with_port })?;
        if nodes.iter().all(|node| node.status == "SUCCESS") {
            return Ok(writeln!(context.out, "{request} has finished building")?);
        }
        writeln!(context.out, "{request} has not finished building; node status is below.\n")?;
        let mut table = Table::new();
        table.add(["Host", "Info"]);
        for node in &nodes {
            table.add([&node.host, &node.status]);
        }
        table.print(context.out)?;
        Err(VerbError::Failed { text: String::new(), code: 1 })
    }
}
