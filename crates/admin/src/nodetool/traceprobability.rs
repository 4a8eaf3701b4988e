//! `nodetool gettraceprobability` and `settraceprobability`.

use crate::nodetool::{Context, Outcome, usage};
use crate::verbs::{GetTraceProbability, SetTraceProbability};

#[derive(clap::Args)]
pub(crate) struct Get {}

#[derive(clap::Args)]
pub(crate) struct Set {
    /// Trace probability between 0 and 1 (ex: 0.2)
    #[arg(allow_negative_numbers = true)]
    value: f64,
}

impl Get {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let probability = schema::ident::java_double(context.api.ask(&GetTraceProbability {})?);
        Ok(writeln!(context.out, "Current trace probability: {probability}")?)
    }
}

impl Set {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        if !(0.0..=1.0).contains(&self.value) {
            return usage("Trace probability must be between 0 and 1");
        }
        Ok(context.api.ask(&SetTraceProbability { probability: self.value })?)
    }
}
