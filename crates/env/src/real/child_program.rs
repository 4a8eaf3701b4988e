//! Programs that run beside this one until they are told to end. The simulated machine has none.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A program that runs. Dropping it leaves it running.
pub struct ChildProgram(Child);

/// Starts a program with its arguments, outside of the terminal's process group: an interrupt
/// reaches it only through [`ChildProgram::terminate`]. Both of its outputs go to a file, which is
/// emptied before.
pub fn start_program(program: &Path, arguments: &[String], output: &Path) -> io::Result<ChildProgram> {
    let file = std::fs::File::create(output)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).process_group(0);
    command.spawn().map(ChildProgram)
}

impl ChildProgram {
    /// The exit status in words; None: the program runs.
    pub fn ended(&mut self) -> io::Result<Option<String>> {
        Ok(self.0.try_wait()?.map(|status| status.to_string()))
    }

    /// Asks the program to end (SIGTERM).
    pub fn terminate(&self) -> io::Result<()> {
        terminate_program(self.0.id())
    }
}

/// Asks a program to end (SIGTERM) that any process has started. `InvalidInput`: no process has
/// this id.
pub fn terminate_program(process: u32) -> io::Result<()> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(kill_process(pid, Signal::TERM)?)
}
