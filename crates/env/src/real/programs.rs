//! Child processes. Each is the leader of a process group of its own, so that the processes that
//! it started end with it, and an interrupt of the terminal, which is meant for the node, does not
//! reach it.

use std::io::{self, PipeReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::programs::{PROGRAM_OUTPUT_MAX, ProgramOutcome, Programs};

/// Time between two looks at whether a program has ended. The first look comes after a hundredth
/// of it.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Time for which the output is waited for after the end of a program, because a process that it
/// left behind may hold it open.
const OUTPUT_WAIT: Duration = Duration::from_secs(1);

pub(super) struct Children;

impl Programs for Children {
    fn run(&self, program: &str, arguments: &[String], time_max: Duration) -> io::Result<ProgramOutcome> {
        let (reader, writer) = io::pipe()?;
        // first, so that no program runs whose output nobody can read
        let output = gather(reader)?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).process_group(0);
        let mut child = command.stdout(writer.try_clone()?).stderr(writer).spawn()?;
        // the command holds the writing ends: with it they are closed
        drop(command);
        let status = wait(&mut child, time_max)?;
        let output = output.recv_timeout(OUTPUT_WAIT).unwrap_or_default();
        Ok(ProgramOutcome { is_success: status.success(), status: status.to_string(), output })
    }
}

fn wait(child: &mut Child, time_max: Duration) -> io::Result<std::process::ExitStatus> {
    let deadline = Instant::now() + time_max;
    let mut pause = LOOK_EVERY / 100;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() >= deadline {
            let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            let killed = group.map_or(Ok(()), |group| kill_process_group(group, Signal::KILL));
            // that it ended meanwhile is no error
            let _ = killed;
            child.wait()?;
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("it was killed after {time_max:?}")));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(LOOK_EVERY);
    }
}

/// Reads on a thread of its own, so that a program that writes much is not held up.
fn gather(mut reader: PipeReader) -> io::Result<Receiver<String>> {
    let (sender, receiver) = mpsc::channel();
    let read = move || {
        let mut kept = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = reader.read(&mut buffer) {
            let room = PROGRAM_OUTPUT_MAX - kept.len();
            kept.extend_from_slice(&buffer[..length.min(room)]);
        }
        // nobody may wait for it any more
        let _ = sender.send(String::from_utf8_lossy(&kept).trim_end().to_owned());
    };
    thread::Builder::new().name("program-output".to_owned()).spawn(read)?;
    Ok(receiver)
}
