//! `nodetool getstreamthroughput`, `setstreamthroughput`, `getinterdcstreamthroughput` and
//! `setinterdcstreamthroughput`. Agrees with
//! `org.apache.cassandra.tools.nodetool.{Get,Set}{,InterDC}StreamThroughput`.

use crate::AdminError;
use crate::nodetool::{Context, Outcome, VerbError, usage};
use crate::verbs::{GetStreamThroughput, SetStreamThroughput};

#[derive(clap::Args)]
pub(crate) struct Get {
    /// Print entire SSTable streaming throughput in MiB/s
    #[arg(short = 'e', long = "entire-sstable-throughput")]
    entire: bool,
    /// Print the throughput cap in MiB/s
    #[arg(short = 'm', long = "mib")]
    mib: bool,
    /// Print the throughput cap in precise Mbits (double)
    #[arg(short = 'd', long = "precise-mbit")]
    precise: bool,
}

#[derive(clap::Args)]
pub(crate) struct Set {
    /// Set entire SSTable streaming throughput in MiB/s
    #[arg(short = 'e', long = "entire-sstable-throughput")]
    entire: bool,
    /// Set streaming throughput in MiB/s
    #[arg(short = 'm', long = "mib")]
    mib: bool,
    /// Value in megabits, 0 to disable throttling
    value: u32,
}

/// The command for other data centers, with the arguments of the other one.
#[derive(clap::Args)]
pub(crate) struct GetInterDc {
    #[command(flatten)]
    get: Get,
}

/// The command for other data centers, with the arguments of the other one.
#[derive(clap::Args)]
pub(crate) struct SetInterDc {
    #[command(flatten)]
    set: Set,
}

/// Bytes a second of one megabit a second.
const MEGABIT: f64 = 125_000.0;
const MEBIBYTE: f64 = (1 << 20) as f64;

impl Get {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        self.print(context, false)
    }

    fn print(self, context: &mut Context<'_>, inter_dc: bool) -> Outcome {
        if [self.entire, self.mib, self.precise].into_iter().filter(|flag| *flag).count() > 1 {
            return usage("You cannot use more than one flag with this command");
        }
        let throughput = context.api.ask(&GetStreamThroughput {})?;
        let rate = match (self.entire, inter_dc) {
            (false, false) => throughput.all,
            (false, true) => throughput.inter_dc,
            (true, false) => throughput.entire,
            (true, true) => throughput.entire_inter_dc,
        };
        let name = match (self.entire, inter_dc) {
            (true, false) => "entire SSTable stream",
            (true, true) => "entire SSTable inter-datacenter stream",
            (false, true) if !self.precise => "inter-datacenter stream",
            (false, _) => "stream",
        };
        let rate = rate as f64;
        let text = match () {
            () if rate == 0.0 => "unlimited".to_owned(),
            () if self.entire || self.mib => format!("{} MiB/s", schema::ident::java_double(rate / MEBIBYTE)),
            () if self.precise => format!("{} Mb/s", schema::ident::java_double(rate / MEGABIT)),
            () if (rate / MEGABIT).fract() == 0.0 => format!("{} Mb/s", rate / MEGABIT),
            () => {
                let message = "Use the -d flag to quiet this error and get the exact throughput in megabits/s";
                return Err(VerbError::Api(AdminError::Failed(message.to_owned())));
            }
        };
        Ok(writeln!(context.out, "Current {name} throughput: {text}")?)
    }
}

impl Set {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        self.set(context, false)
    }

    fn set(self, context: &mut Context<'_>, inter_dc: bool) -> Outcome {
        let Self { entire, mib, value } = self;
        if entire && mib {
            return usage("You cannot use -e and -m at the same time");
        }
        let unit = if entire || mib { 1 << 20 } else { MEGABIT as u64 };
        let bytes_per_second = u64::from(value) * unit;
        Ok(context.api.ask(&SetStreamThroughput { entire, inter_dc, bytes_per_second })?)
    }
}

impl GetInterDc {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        self.get.print(context, true)
    }
}

impl SetInterDc {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        self.set.set(context, true)
    }
}
