//! A machine for tests whose threads shuttle's scheduler interleaves: the threads, pools and
//! background tasks of [`crate::real`], over the disk, the clocks and the random numbers of a
//! [`Sim`].
//!
//! Every call of the disk is a place where another thread may go on. Time stands still: a sleep is
//! over at once, other waits last until another thread ends them. The machine has no local workers
//! and no network. All threads are shuttle's, so the environment lives inside a run of shuttle.

pub use shuttle;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::real::Threads;
use crate::sim::Sim;
use crate::{Clock, DirEntry, Disk, Env, Lock, ReadFile, Sleep, WriteFile};

/// The environment of the present life of `sim`.
pub fn env(sim: &Sim) -> Env {
    let machine = sim.env();
    Env {
        clock: Arc::new(StandingClock(machine.clock)),
        disk: Arc::new(SharedDisk(machine.disk)),
        tasks: Arc::new(Threads::new()),
        ..machine
    }
}

/// Lets another thread go on, if the scheduler says so.
fn switch() {
    shuttle::thread::sleep(Duration::ZERO);
}

struct StandingClock(Arc<dyn Clock>);

impl Clock for StandingClock {
    fn now_micros(&self) -> i64 {
        self.0.now_micros()
    }

    fn monotonic_nanos(&self) -> u64 {
        self.0.monotonic_nanos()
    }

    fn sleep(&self, _duration: Duration) -> Sleep {
        Box::pin(async { shuttle::future::yield_now().await })
    }
}

struct SharedDisk(Arc<dyn Disk>);

/// Passes a call on, after a point at which another thread may go on.
macro_rules! delegate {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $kind),*) -> $result {
            switch();
            self.0.$name($($argument),*)
        })*
    };
}

impl Disk for SharedDisk {
    delegate! {
        rename(from: &Path, to: &Path) -> io::Result<()>;
        hard_link(original: &Path, link: &Path) -> io::Result<()>;
        remove_file(path: &Path) -> io::Result<()>;
        create_dir_all(path: &Path) -> io::Result<()>;
        create_dir(path: &Path) -> io::Result<()>;
        remove_dir_all(path: &Path) -> io::Result<()>;
        sync_dir(path: &Path) -> io::Result<()>;
        list_dir(path: &Path) -> io::Result<Vec<DirEntry>>;
        exists(path: &Path) -> bool;
        file_len(path: &Path) -> io::Result<u64>;
        available_space(path: &Path) -> io::Result<u64>;
        total_space(path: &Path) -> io::Result<u64>;
        file_system(path: &Path) -> io::Result<u64>;
        lock_file(path: &Path) -> io::Result<Box<dyn Lock>>;
        read_all(path: &Path, size_max: u64) -> io::Result<Vec<u8>>;
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        switch();
        Ok(Arc::new(SharedReader(self.0.open_read(path)?)))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        switch();
        Ok(Box::new(SharedWriter(self.0.create(path)?)))
    }

    fn open_write(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        switch();
        Ok(Box::new(SharedWriter(self.0.open_write(path)?)))
    }
}

struct SharedReader(Arc<dyn ReadFile>);

impl ReadFile for SharedReader {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        switch();
        self.0.read_at(buffer, offset)
    }

    fn read_at_nowait(&self, buffer: &mut [u8], offset: u64) -> io::Result<bool> {
        self.0.read_at_nowait(buffer, offset)
    }

    fn advise_sequential(&self) {}

    fn drop_cache(&self, _offset: u64, _length: u64) {}
}

struct SharedWriter(Box<dyn WriteFile>);

impl WriteFile for SharedWriter {
    fn write_all(&mut self, data: &[u8]) -> io::Result<()> {
        switch();
        self.0.write_all(data)
    }

    fn write_at(&mut self, data: &[u8], offset: u64) -> io::Result<()> {
        switch();
        self.0.write_at(data, offset)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        switch();
        let synced = self.0.sync_data();
        // the device is done, and nobody has been told yet
        switch();
        synced
    }

    fn set_len(&mut self, length: u64) -> io::Result<()> {
        switch();
        self.0.set_len(length)
    }

    fn preallocate(&mut self, length: u64) -> io::Result<()> {
        self.0.preallocate(length)
    }

    fn position(&self) -> u64 {
        self.0.position()
    }

    fn drop_cache(&mut self) {}
}
