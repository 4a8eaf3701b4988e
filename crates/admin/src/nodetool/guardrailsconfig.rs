//! `nodetool getguardrailsconfig` and `setguardrailsconfig`: guardrails that are in force, and
//! their change until the next start.
//!
//! Agrees with `org.apache.cassandra.tools.nodetool.GuardrailsConfigCommand`, texts included. A
//! threshold has two keys of cassandra.yaml and is one row, the value that refuses first.

use crate::nodetool::text::Table;
use crate::nodetool::{Context, Outcome, usage};
use crate::verbs::guardrails::{FLAGS, GetGuardrails, OTHERS, SetGuardrails, THRESHOLDS, VALUES};

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Category {
    Values,
    Thresholds,
    Flags,
    Others,
}

#[derive(clap::Args)]
pub(crate) struct Get {
    /// Category of guardrails to filter, can be one of 'values', 'thresholds', 'flags', 'others'
    #[arg(short, long)]
    category: Option<Category>,
    /// Expand all guardrail names so they reflect their counterparts in cassandra.yaml
    #[arg(long)]
    expand: bool,
    /// Specific name of a guardrail to get configuration of
    args: Vec<String>,
}

#[derive(clap::Args)]
pub(crate) struct Set {
    /// For flags, possible values are 'true' or 'false'. For thresholds, two values are expected,
    /// first for failure, second for warning. For values, enumeration of values expected or one
    /// value where multiple items are separated by comma. 'null' or '[]' resets values and
    /// thresholds that are texts, -1 those that are integers
    #[arg(allow_negative_numbers = true, value_names = ["setter", "value"])]
    args: Vec<String>,
}

/// The values in force, by the names of their keys.
struct InForce(Vec<(String, Option<String>)>);

impl InForce {
    fn of(&self, name: &str) -> String {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.and_then(|(_, value)| value.clone()).unwrap_or_else(|| "null".to_owned())
    }

    /// The rows of a threshold; `wanted`: a part of it is asked for by its own name.
    fn of_threshold(&self, guard: &str, expand: bool, wanted: Option<&str>) -> Vec<[String; 2]> {
        let keys = ["fail", "warn"].map(|word| format!("{guard}_{word}_threshold"));
        let is_part = |key: &&String| wanted == Some(key.as_str());
        if let Some(part) = keys.iter().find(is_part) {
            let name = if expand { part.clone() } else { format!("{guard}_threshold") };
            return vec![[name, self.of(part)]];
        }
        let values = keys.each_ref().map(|key| self.of(key));
        match expand {
            true => keys.into_iter().zip(values).map(|(key, value)| [key, value]).collect(),
            false => vec![[format!("{guard}_threshold"), format!("[{}]", values.join(", "))]],
        }
    }

    fn rows(&self, category: Category, expand: bool, wanted: Option<&str>) -> Vec<[String; 2]> {
        let plain = |names: &[&str]| -> Vec<[String; 2]> {
            let names = names.iter().filter(|name| wanted.is_none_or(|wanted| wanted == **name));
            names.map(|name| [(*name).to_owned(), self.of(name)]).collect()
        };
        let is_wanted = |guard: &str| {
            let short = wanted.map(|name| name.replace("_warn_", "_").replace("_fail_", "_"));
            short.is_none_or(|short| short.strip_suffix("_threshold") == Some(guard))
        };
        match category {
            Category::Flags => plain(FLAGS),
            Category::Values => plain(VALUES),
            Category::Others => plain(OTHERS),
            Category::Thresholds => {
                let guards = THRESHOLDS.iter().filter(|guard| is_wanted(guard));
                guards.flat_map(|guard| self.of_threshold(guard, expand, wanted)).collect()
            }
        }
    }
}

impl Get {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let wanted = match &*self.args {
            [] => None,
            [name] => Some(name.as_str()),
            _ => {
                return usage(
                    "Specify only one guardrail name to get the configuration of or no name to get the configuration of \
                     all of them.",
                );
            }
        };
        if wanted.is_some() && self.category.is_some() {
            return usage("Do not specify additional arguments when --category/-c is set.");
        }
        let in_force = InForce(context.api.ask(&GetGuardrails {})?);
        let all = [Category::Flags, Category::Thresholds, Category::Values, Category::Others];
        let shown = all.into_iter().filter(|one| self.category.is_none_or(|category| category == *one));
        let rows: Vec<_> = shown.flat_map(|category| in_force.rows(category, self.expand, wanted)).collect();
        let mut table = Table::new();
        match (&*rows, wanted) {
            ([], Some(name)) => return usage(format!("Guardrail {name} not found.")),
            ([[_, value]], Some(_)) => table.add([value.clone()]),
            (rows, _) => rows.iter().for_each(|row| table.add(row.clone())),
        }
        Ok(table.print(context.out)?)
    }
}

/// A value as it is given; None: it switches the guardrail off.
fn given(value: &str) -> Option<Vec<String>> {
    match value {
        "null" | "[]" => None,
        value => Some(value.split(',').map(str::to_owned).collect()),
    }
}

impl Set {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let Some((name, values)) = self.args.split_first() else { return usage("No arguments.") };
        let guard = name.strip_suffix("_threshold").filter(|guard| THRESHOLDS.contains(guard));
        let settings = match (guard, values) {
            (Some(guard), [fail, warn]) => {
                vec![(format!("{guard}_warn_threshold"), given(warn)), (format!("{guard}_fail_threshold"), given(fail))]
            }
            (Some(_), _) => return expecting(name, 2, values.len()),
            (None, _) if VALUES.contains(&name.as_str()) && !values.is_empty() => {
                vec![(name.clone(), given(&values.join(",")))]
            }
            (None, [value]) if FLAGS.contains(&name.as_str()) || OTHERS.contains(&name.as_str()) => {
                vec![(name.clone(), given(value))]
            }
            (None, _) if [FLAGS, VALUES, OTHERS].iter().any(|names| names.contains(&name.as_str())) => {
                return expecting(name, 1, values.len());
            }
            (None, _) => return usage(format!("Guardrail {name} not found.")),
        };
        let told = context.api.ask(&SetGuardrails { settings });
        told.or_else(|error| {
            let given = values.join(", ");
            usage(format!(
                "Error occured when setting the config for setter {name} with arguments [{given}]: {}",
                error.message()
            ))
        })
    }
}

fn expecting(name: &str, wanted: usize, given: usize) -> Outcome {
    usage(format!("{name} is expecting {wanted} argument values. Getting {given} instead."))
}
