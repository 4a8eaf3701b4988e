//! `nodetool statushandoff`, `enablehandoff`, `disablehandoff`, `enablehintsfordc`,
//! `disablehintsfordc`, `pausehandoff`, `resumehandoff`, `getmaxhintwindow`, `setmaxhintwindow`,
//! `sethintedhandoffthrottlekb`, `truncatehints`, `listpendinghints`.

use crate::nodetool::text::{Table, log_time};
use crate::nodetool::{Context, Outcome, usage};
use crate::verbs::{GetHandoff, GetPendingHints, HandoffChange};

#[derive(clap::Args)]
pub(crate) struct Status {}

#[derive(clap::Args)]
pub(crate) struct Enable {}

#[derive(clap::Args)]
pub(crate) struct Disable {}

#[derive(clap::Args)]
pub(crate) struct Pause {}

#[derive(clap::Args)]
pub(crate) struct Resume {}

#[derive(clap::Args)]
pub(crate) struct EnableFor {
    /// The data center to enable
    data_center: Vec<String>,
}

#[derive(clap::Args)]
pub(crate) struct DisableFor {
    /// The data center to disable
    data_center: Vec<String>,
}

#[derive(clap::Args)]
pub(crate) struct GetWindow {}

#[derive(clap::Args)]
pub(crate) struct SetWindow {
    /// Value of maxhintwindow in ms
    #[arg(allow_hyphen_values = true)]
    value: i32,
}

#[derive(clap::Args)]
pub(crate) struct SetThrottle {
    /// Value in KiB per second
    #[arg(allow_hyphen_values = true)]
    value: i32,
}

#[derive(clap::Args)]
pub(crate) struct Truncate {
    /// Endpoint address to delete hints for, either ip address ("127.0.0.1") or hostname
    endpoint: Option<String>,
}

#[derive(clap::Args)]
pub(crate) struct ListPending {}

impl Status {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let handoff = context.api.ask(&GetHandoff {})?;
        let word = if handoff.is_enabled { "running" } else { "not running" };
        writeln!(context.out, "Hinted handoff is {word}")?;
        for name in handoff.disabled_data_centers {
            writeln!(context.out, "Data center {name} is disabled")?;
        }
        Ok(())
    }
}

impl Enable {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(context.api.ask(&HandoffChange::Enable(true))?)
    }
}

impl Disable {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(context.api.ask(&HandoffChange::Enable(false))?)
    }
}

impl Pause {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(context.api.ask(&HandoffChange::Send(false))?)
    }
}

impl Resume {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(context.api.ask(&HandoffChange::Send(true))?)
    }
}

impl EnableFor {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        match <[String; 1]>::try_from(self.data_center) {
            Ok([name]) => Ok(context.api.ask(&HandoffChange::EnableFor(name, true))?),
            Err(_) => usage("enablehintsfordc requires exactly one data center"),
        }
    }
}

impl DisableFor {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        match <[String; 1]>::try_from(self.data_center) {
            Ok([name]) => Ok(context.api.ask(&HandoffChange::EnableFor(name, false))?),
            Err(_) => usage("disablehintsfordc requires exactly one data center"),
        }
    }
}

impl GetWindow {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let millis = context.api.ask(&GetHandoff {})?.window_millis;
        Ok(writeln!(context.out, "Current max hint window: {millis} ms")?)
    }
}

impl SetWindow {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        // a negative window is over at once
        Ok(context.api.ask(&HandoffChange::Window(u64::try_from(self.value).unwrap_or(0)))?)
    }
}

impl SetThrottle {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        match u64::try_from(self.value) {
            Ok(kib) => Ok(context.api.ask(&HandoffChange::ThrottleKib(kib))?),
            Err(_) => usage("hinted_handoff_throttle must not be negative"),
        }
    }
}

impl Truncate {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(context.api.ask(&HandoffChange::Truncate(self.endpoint))?)
    }
}

impl ListPending {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let pending = context.api.ask(&GetPendingHints {})?;
        if pending.is_empty() {
            return Ok(writeln!(context.out, "This node does not have any pending hints")?);
        }
        let mut table = Table::new();
        table.add(["Host ID", "Address", "Rack", "DC", "Status", "Total files", "Newest", "Oldest"]);
        for hints in pending {
            let address = hints.address.unwrap_or_else(|| "null".to_owned());
            let (newest, oldest) = (log_time(hints.newest_millis), log_time(hints.oldest_millis));
            let files = hints.files.to_string();
            table.add([hints.host_id, address, hints.rack, hints.data_center, hints.status, files, newest, oldest]);
        }
        Ok(table.print(context.out)?)
    }
}
