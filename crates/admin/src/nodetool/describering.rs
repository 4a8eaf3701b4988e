//! `nodetool describering`: the token ranges of a keyspace with their replicas, in the order of the
//! ring; in Cassandra in that of a hash map. Agrees with `StorageService.describeRing` and
//! `TokenRange`.

use crate::AdminError;
use crate::nodetool::{Context, Outcome};
use crate::verbs::{EndpointInfo, GetKeyspaces, GetNode, GetRing};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The keyspace name
    keyspace: String,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let keyspaces = context.api.ask(&GetKeyspaces {})?;
        let schema_version = context.api.ask(&GetNode {})?.schema_version;
        writeln!(context.out, "Schema Version:{schema_version}\nTokenRange: ")?;
        let why = match keyspaces.iter().find(|known| known.name == self.keyspace) {
            None => Some("No such keyspace"),
            Some(keyspace) if keyspace.replication_class == "LocalStrategy" => {
                Some("There is no ring for the keyspace")
            }
            Some(_) => None,
        };
        if let Some(why) = why {
            return Err(AdminError::Failed(format!("{why}: {}", self.keyspace)).into());
        }
        let ring = context.api.ask(&GetRing { keyspace: Some(self.keyspace) })?;
        for range in &ring.ranges {
            let replicas: Vec<&EndpointInfo> = range.replicas.iter().filter_map(|at| ring.endpoints.get(*at)).collect();
            let all = |of: &dyn Fn(&EndpointInfo) -> String| -> String {
                replicas.iter().map(|replica| of(replica)).collect::<Vec<_>>().join(", ")
            };
            let port = context.print_port;
            let details = |replica: &EndpointInfo| {
                let (name, data_center, rack) = (replica.name(port), &replica.data_center, &replica.rack);
                format!("EndpointDetails(host:{name}, datacenter:{data_center}, rack:{rack})")
            };
            writeln!(
                context.out,
                "\tTokenRange(start_token:{}, end_token:{}, endpoints:[{}], rpc_endpoints:[{}], endpoint_details:[{}])",
                range.start,
                range.end,
                all(&|replica| replica.name(port)),
                all(&|replica| replica.native_name(port)),
                all(&details),
            )?;
        }
        Ok(())
    }
}
