//! `nodetool getcompactionthroughput` and `setcompactionthroughput`.

use crate::AdminError;
use crate::nodetool::{Context, Outcome, VerbError};
use crate::verbs::{GetCompactions, SetCompactionThroughput};

#[derive(clap::Args)]
pub(crate) struct Get {
    /// Print throughput as double
    #[arg(short = 'd', long = "precise-mib")]
    precise: bool,
}

#[derive(clap::Args)]
pub(crate) struct Set {
    /// Value in MiB per second, 0 to disable throttling
    value: u32,
}

impl Get {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let rate = context.api.ask(&GetCompactions {})?.throughput as f64 / (1 << 20) as f64;
        if self.precise {
            let rate = schema::ident::java_double(rate);
            return Ok(writeln!(context.out, "Current compaction throughput: {rate} MiB/s")?);
        }
        if rate.fract() != 0.0 {
            let message = "Use the -d flag to quiet this error and get the exact throughput in MiB/s";
            return Err(VerbError::Api(AdminError::Failed(message.to_owned())));
        }
        Ok(writeln!(context.out, "Current compaction throughput: {rate} MB/s")?)
    }
}

impl Set {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(context.api.ask(&SetCompactionThroughput { bytes_per_second: u64::from(self.value) << 20 })?)
    }
}
