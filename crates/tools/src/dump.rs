//! `helenus sstable dump`: the content as JSON, byte for byte as Cassandra's sstabledump prints it.
//!
//! The columns come from the file's own header, as in sstabledump; with `--schema` the file is read
//! as a table of that schema, which leaves out dropped columns. Where sstabledump fails (values of
//! composite types, absent clustering values, a boolean of no bytes), this verb prints hexadecimal
//! digits or null. Agrees with `org.apache.cassandra.tools.{SSTableExport,JsonTransformer}`.

mod internal;
mod json;
mod keys;
mod partition;
mod times;
mod value;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use rows::{PartitionHead, PartitionRange, PartitionStream, ReadCommand, ReadContext, ReadMode};
use sstable::{SSTable, SSTableStream};
use types::DecoratedKey;

use crate::context::Context;
use crate::failure::{DONE, Failure};
use crate::open;
use crate::progress::Progress;
use crate::schema_file;
use crate::target::Targets;
use json::Json;
use keys::KeyText;

/// Print the content as JSON, as sstabledump does.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    targets: Targets,
    /// Only these partition keys.
    #[arg(short = 'k', value_name = "KEY", num_args = 1.., allow_negative_numbers = true)]
    keys: Vec<String>,
    /// All but these partition keys.
    #[arg(short = 'x', value_name = "KEY", num_args = 1.., allow_negative_numbers = true)]
    excluded: Vec<String>,
    /// Partition keys only.
    #[arg(short = 'e')]
    enumerate: bool,
    /// A row a line in the internal form.
    #[arg(short = 'd')]
    internal: bool,
    /// A partition a line.
    #[arg(short = 'l')]
    lines: bool,
    /// Times as numbers.
    #[arg(short = 't')]
    raw_times: bool,
    /// A schema.cql to read the table by [default: the header of the file].
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
}

/// Dumps each SSTable.
pub fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<u8, Failure> {
    for descriptor in arguments.targets.sstables(context.env)? {
        let statistics = open::statistics(context.env, &descriptor)?;
        let table = match &arguments.schema {
            None => open::table_of_header(&descriptor, &statistics)?,
            Some(_) => {
                let source = schema_file::find(context.env, &descriptor, &statistics, arguments.schema.as_ref())?;
                Arc::clone(source.table())
            }
        };
        let sstable = open::open(context.env, &descriptor, &table)?;
        sstable.data().file().advise_sequential();
        let mut dump = Dump::new(arguments, &sstable, context.env.clock.now_seconds());
        dump.run(context)?;
    }
    Ok(DONE)
}

/// The dump of one SSTable while it is written.
struct Dump<'a> {
    arguments: &'a Arguments,
    sstable: &'a SSTable,
    key_text: KeyText,
    now: u32,
}

impl<'a> Dump<'a> {
    fn new(arguments: &'a Arguments, sstable: &'a SSTable, now: u32) -> Self {
        Self { arguments, sstable, key_text: KeyText::new(sstable.table()), now }
    }

    fn run(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        let mut output = Output { json: Json::new(!self.arguments.lines || self.arguments.enumerate), context };
        match (self.arguments.enumerate, self.arguments.internal) {
            (true, _) => self.enumerate(&mut output)?,
            (false, true) => self.internal(&mut output)?,
            (false, false) => self.partitions(&mut output)?,
        }
        output.flush(0)?;
        output.context.out.flush()?;
        Ok(())
    }

    fn enumerate(&mut self, output: &mut Output<'_, '_>) -> Result<(), Failure> {
        output.json.start_array();
        let mut stream = self.everything()?;
        while let Some(head) = stream.next_partition()? {
            self.key_text.put(&mut output.json, &head.key.key);
            output.flush(BUFFER)?;
        }
        output.json.end_array();
        Ok(())
    }

    fn partitions(&mut self, output: &mut Output<'_, '_>) -> Result<(), Failure> {
        if !self.arguments.lines {
            output.json.start_array();
        }
        let mut printer = partition::Printer::new(self.sstable, self.arguments, self.now);
        let mut progress = Progress::new("dump", self.sstable.data_length());
        self.each(|dump, head, stream| {
            printer.start(&mut output.json, &dump.key_text, head, stream.position());
            let mut position = stream.position();
            while let Some(unfiltered) = stream.next_unfiltered()? {
                printer.unfiltered(&mut output.json, &unfiltered, position);
                position = stream.position();
                progress.at(position);
                output.flush(BUFFER)?;
            }
            printer.end(&mut output.json);
            output.flush(BUFFER)
        })?;
        if !self.arguments.lines {
            output.json.end_array();
        }
        Ok(())
    }

    fn internal(&mut self, output: &mut Output<'_, '_>) -> Result<(), Failure> {
        let printer = internal::Printer::new(self.sstable);
        self.each(|dump, head, stream| {
            let key = dump.key_text.plain(&head.key.key);
            let mut position = stream.position();
            printer.head(output.json.text(), &key, position, head);
            while let Some(unfiltered) = stream.next_unfiltered()? {
                printer.line(output.json.text(), &key, position, &unfiltered);
                position = stream.position();
                output.flush(BUFFER)?;
            }
            Ok(())
        })
    }

    fn everything(&self) -> Result<SSTableStream, Failure> {
        Ok(self.sstable.scan_all(&ReadContext::new(ReadMode::Background))?)
    }

    /// Calls a function for each partition that is wanted, in the order of the file.
    fn each(
        &mut self,
        mut call: impl FnMut(&Self, &PartitionHead, &mut SSTableStream) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if self.arguments.keys.is_empty() {
            let mut stream = self.everything()?;
            while let Some(head) = stream.next_partition()? {
                if !self.is_excluded(&head) {
                    call(self, &head, &mut stream)?;
                }
            }
            return Ok(());
        }
        for key in self.wanted_keys()? {
            let context = ReadContext::new(ReadMode::Background);
            let command = self.command(key);
            let mut stream = self.sstable.read(&command, &context)?;
            if let Some(head) = stream.next_partition()? {
                call(self, &head, &mut stream)?;
            }
        }
        Ok(())
    }

    fn command(&self, key: DecoratedKey) -> ReadCommand {
        ReadCommand { now: self.now, ..ReadCommand::whole(self.sstable.table(), PartitionRange::Key(key)) }
    }

    fn is_excluded(&self, head: &PartitionHead) -> bool {
        !self.arguments.excluded.is_empty() && self.arguments.excluded.contains(&self.key_text.plain(&head.key.key))
    }

    fn wanted_keys(&self) -> Result<Vec<DecoratedKey>, Failure> {
        let wanted = self.arguments.keys.iter().filter(|key| !self.arguments.excluded.contains(key));
        let mut keys = wanted.map(|key| self.key_text.parse(key)).collect::<Result<Vec<_>, _>>()?;
        keys.sort();
        keys.dedup();
        Ok(keys)
    }
}

/// Bytes after which the text so far is written to the output. The text in memory stays a little
/// above this size.
const BUFFER: usize = 64 * 1024;

struct Output<'a, 'b> {
    json: Json,
    context: &'a mut Context<'b>,
}

impl Output<'_, '_> {
    /// Writes the text so far to the output if it has grown to [`BUFFER`] bytes.
    #[inline]
    fn flush(&mut self, threshold: usize) -> Result<(), Failure> {
        let text = self.json.text();
        if text.len() > threshold {
            self.context.out.write_all(text.as_bytes())?;
            text.clear();
        }
        Ok(())
    }
}
