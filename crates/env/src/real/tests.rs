//! The real machine keeps what the traits promise.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use thread_priority::unix::{NormalThreadSchedulePolicy, ThreadSchedulePolicy, thread_schedule_policy};

use super::spare::LATE;
use super::*;
use crate::{ADMIN_THREADS_MAX, LONG_NICENESS, Next, Part, STREAMED_ALIGNMENT, SocketOptions, accept};

#[test]
fn files_are_written_and_read() {
    let (env, dir) = (env(), tempfile::tempdir().expect("a scratch directory"));
    let path = dir.path().join("a");
    let mut file = env.disk.create(&path).expect("created");
    file.preallocate(64).expect("space");
    file.write_all(b"hello").expect("written");
    file.write_at(b"J", 0).expect("written");
    assert_eq!(file.position(), 5);
    file.set_len(5).expect("cut");
    file.sync_data().expect("synced");
    let read = env.disk.open_read(&path).expect("opened");
    let mut buffer = [0; 5];
    read.read_at(&mut buffer, 0).expect("read");
    assert_eq!(&buffer, b"Jello");
    assert_eq!(read.read_at(&mut buffer, 1).expect_err("short").kind(), io::ErrorKind::UnexpectedEof);
    if read.read_at_nowait(&mut buffer, 0).expect("no error") {
        assert_eq!(&buffer, b"Jello");
    }
    env.disk.replace_file(&path, b"other").expect("replaced");
    assert_eq!(env.disk.read_all(&path, 5).expect("read"), b"other");
    assert!(env.disk.read_all(&path, 4).is_err());
    assert!(env.disk.available_space(dir.path()).expect("known") > 0);
    let of = |path: &std::path::Path| env.disk.file_system(path).expect("known");
    assert_eq!(of(dir.path()), of(&path), "a file lies where its directory does");
    assert_ne!(of(dir.path()), of(std::path::Path::new("/dev")));
}

/// Data directories are linked to other disks.
#[test]
fn a_link_to_a_directory_is_listed_as_a_directory() {
    let (env, dir) = (env(), tempfile::tempdir().expect("a scratch directory"));
    let path = |name: &str| dir.path().join(name);
    env.disk.create_dir_all(&path("disk")).expect("created");
    drop(env.disk.create(&path("file")).expect("created"));
    for (to, link) in [("disk", "to a disk"), ("file", "to a file"), ("nothing", "to nothing")] {
        std::os::unix::fs::symlink(path(to), path(link)).expect("linked");
    }
    let listed = env.disk.list_dir(dir.path()).expect("listed");
    let directories: Vec<_> = listed.iter().filter(|entry| entry.is_dir).map(|entry| entry.name.as_str()).collect();
    assert_eq!((listed.len(), directories), (5, vec!["disk", "to a disk"]));
}

#[test]
fn others_may_not_read_what_is_created() {
    use std::os::unix::fs::PermissionsExt;
    let (env, dir) = (env(), tempfile::tempdir().expect("a scratch directory"));
    let below = dir.path().join("ks/table");
    env.disk.create_dir_all(&below).expect("created");
    env.disk.create_dir(&below.join("backups")).expect("created");
    drop(env.disk.create(&below.join("Data.db")).expect("created"));
    drop(env.disk.lock_file(&below.join("lock")).expect("free"));
    env.disk.replace_file(&below.join("manifest"), b"{}").expect("replaced");
    let mode = |name: &str| std::fs::metadata(dir.path().join(name)).expect("there").permissions().mode() & 0o777;
    for directory in ["ks", "ks/table", "ks/table/backups"] {
        assert_eq!(mode(directory) & !0o750, 0, "{directory} has mode {:o}", mode(directory));
    }
    for file in ["ks/table/Data.db", "ks/table/lock", "ks/table/manifest"] {
        assert_eq!(mode(file) & !0o640, 0, "{file} has mode {:o}", mode(file));
    }
    for round in ["created", "in the place of the one before"] {
        drop(env.disk.create_private(&dir.path().join("private")).expect(round));
        assert_eq!(mode("private") & 0o077, 0, "others have nothing of it");
    }
}

#[test]
fn a_process_may_have_as_many_descriptors_as_it_is_allowed() {
    let (limit, raised) = raise_descriptor_limit();
    raised.expect("a soft limit up to the hard one is everybody's");
    let now = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    assert_eq!((now.current, now.current), (limit, now.maximum));
}

#[test]
fn a_lock_has_one_holder() {
    let (env, dir) = (env(), tempfile::tempdir().expect("a scratch directory"));
    let path = dir.path().join("lock");
    let held = env.disk.lock_file(&path).expect("free");
    let refused = env.disk.lock_file(&path).err().expect("held");
    assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
    drop(held);
    env.disk.lock_file(&path).expect("free again");
}

#[test]
fn parts_run_side_by_side_and_all_have_ended() {
    let env = env();
    let done: Vec<AtomicUsize> = (0..50).map(|_| AtomicUsize::new(0)).collect();
    let parts: Vec<Part<'_>> = done
        .iter()
        .map(|done| {
            let count = || {
                done.fetch_add(1, Ordering::Relaxed);
            };
            Box::new(count) as _
        })
        .collect();
    env.tasks.run_in_parallel("test", parts);
    assert!(done.iter().all(|done| done.load(Ordering::Relaxed) == 1));
    env.tasks.run_in_parallel("test", Vec::new());
    let broken = std::panic::AssertUnwindSafe(|| {
        env.tasks.run_in_parallel("test", vec![Box::new(|| {}), Box::new(|| panic!("a part fails")), Box::new(|| {})]);
    });
    assert!(std::panic::catch_unwind(broken).is_err());
}

#[test]
fn a_background_task_runs_when_woken_and_ends_with_its_wakers() {
    let env = env();
    let (sender, receiver) = mpsc::channel();
    let wake = env.tasks.background(
        "test",
        Box::new(move || {
            sender.send(()).expect("the test listens");
            Next::Idle
        }),
    );
    for _ in 0..3 {
        wake.wake();
        receiver.recv_timeout(Duration::from_secs(10)).expect("a step ran");
    }
    drop(wake);
    assert_eq!(receiver.recv_timeout(Duration::from_secs(10)), Err(mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn blocking_jobs_all_run() {
    let env = env();
    let count = Arc::new(AtomicUsize::new(0));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let total: usize = runtime.block_on(async {
        let mut total = 0;
        for number in 0..100 {
            let count = count.clone();
            let job = move || {
                count.fetch_add(1, Ordering::Relaxed);
                number
            };
            total += env.blocking("test", job).await.expect("room in the queue");
        }
        total
    });
    assert_eq!((total, count.load(Ordering::Relaxed)), (4950, 100));
}

/// As many admin jobs as there are threads for them wait for the blocking pool, and end.
#[test]
fn admin_jobs_may_wait_for_blocking_jobs() {
    let env = env();
    let (sender, receiver) = mpsc::channel();
    for number in 0..ADMIN_THREADS_MAX {
        let (of_job, sender) = (env.clone(), sender.clone());
        let job = move || {
            let (done, wait) = mpsc::channel();
            let inner = Box::new(move || done.send(number).expect("the admin job waits"));
            of_job.tasks.run("test", inner).expect("room in the queue");
            sender.send(wait.recv().expect("the inner job runs")).expect("the test listens");
        };
        env.tasks.run_admin("test", Box::new(job)).expect("room in the queue");
    }
    let ended = (0..ADMIN_THREADS_MAX).map(|_| receiver.recv_timeout(Duration::from_secs(60)).expect("all end"));
    assert_eq!(ended.sum::<usize>(), ADMIN_THREADS_MAX * (ADMIN_THREADS_MAX - 1) / 2);
}

#[test]
fn streams_carry_bytes_and_sleeps_end() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let env = env();
        let mut listener = env.network.bind("127.0.0.1:0".parse().expect("an address"), true).expect("bound");
        let address = listener.local_address().expect("bound");
        let mut client = env.network.connect(address).await.expect("connected");
        let (mut server, _peer) = accept(listener.as_mut()).await.expect("accepted");
        client.write_all(b"ping").await.expect("written");
        let mut buffer = [0; 4];
        server.read_exact(&mut buffer).await.expect("read");
        assert_eq!(&buffer, b"ping");
        let before = env.now();
        let never = std::future::pending::<()>();
        assert!(env.timeout(Duration::from_millis(5), never).await.is_err());
        assert!(env.elapsed(before) >= Duration::from_millis(5));
    });
}

#[test]
fn the_address_outwards_is_one_of_this_machine() {
    // a machine without a network has none
    if let Some(address) = env().network.address_outwards() {
        std::net::UdpSocket::bind((address, 0)).expect("an own address");
    }
}

/// Bytes for a file of this length; no two pages and no two blocks of them are alike.
fn bytes_of_a_file(length: usize) -> Vec<u8> {
    let drawn: Vec<u8> = (0_usize..4099).map(|place| (place * place / 7) as u8).collect();
    let mut bytes = drawn.repeat(length / drawn.len() + 1);
    bytes.truncate(length);
    bytes
}

#[test]
fn a_streamed_file_has_all_bytes() {
    let (env, dir) = (env(), tempfile::tempdir().expect("a scratch directory"));
    // a block is 4 MiB: less, the whole, and more than it, in pieces that do not fit into it
    let lengths = [0, 1, 4096, (4 << 20) - 1, 4 << 20, (9 << 20) + 4096, (9 << 20) + 77];
    let pieces = [1_000_003, 4096, 200_001, 5 << 20];
    for (length, piece) in lengths.into_iter().flat_map(|length| pieces.map(|piece| (length, piece))) {
        let bytes = bytes_of_a_file(length);
        // in memory as in the file, so that pieces are written without a copy, and otherwise
        for shift in [0, 1] {
            let mut memory = vec![0; length + STREAMED_ALIGNMENT + shift];
            let begin = memory.as_ptr().align_offset(STREAMED_ALIGNMENT) + shift;
            let placed = &mut memory[begin..begin + length];
            placed.copy_from_slice(&bytes);
            let path = dir.path().join(format!("of-{length}-{piece}-{shift}"));
            let mut file = env.disk.create_streamed(&path).expect("created");
            placed.chunks(piece).for_each(|piece| file.write_all(piece).expect("written"));
            assert_eq!(file.position(), length as u64);
            file.sync_data().expect("synced");
            assert!(env.disk.read_all(&path, 16 << 20).expect("read") == bytes, "{length} bytes by {piece}");
            // it goes on behind a tail that is no whole block, and a place in the middle is written
            file.write_all(&[9; 5000]).expect("written");
            file.write_at(&[8], 0).expect("written");
            file.sync_data().expect("synced");
            let longer = [&bytes[..], &[9; 5000]].concat();
            let read = env.disk.read_all(&path, 16 << 20).expect("read");
            assert!(read[1..] == longer[1..] && read[0] == 8, "{length} bytes by {piece}, and more");
        }
    }
}

#[test]
fn a_streamed_file_on_a_full_device_is_an_error() {
    // the device takes no writes around the cache, and has no room for those that go through it
    let env = env();
    let mut file = env.disk.create_streamed("/dev/full".as_ref()).expect("opened without them");
    file.write_all(&[1; 4095]).expect("the block has room");
    let full = |result: io::Result<()>| assert_eq!(result.expect_err("no room").kind(), io::ErrorKind::StorageFull);
    full(file.sync_data());
    full(file.write_all(&vec![1; 4 << 20]));
    // the block is full, and no later call passes over it
    full(file.write_all(&[1]));
    full(file.sync_data());
}

#[test]
fn the_kernel_sends_files() {
    use tokio::io::AsyncReadExt;
    let dir = tempfile::tempdir().expect("a scratch directory");
    let path = dir.path().join("file");
    // more than a connection takes while nobody reads
    let bytes = bytes_of_a_file(24 << 20);
    std::fs::write(&path, &bytes).expect("written");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let received = runtime.block_on(async {
        let env = env();
        let mut listener = env.network.bind("127.0.0.1:0".parse().expect("an address"), true).expect("bound");
        let client = env.network.connect(listener.local_address().expect("bound")).await.expect("connected");
        let (mut server, _peer) = accept(listener.as_mut()).await.expect("accepted");
        let sending = async {
            let sender = env.network.file_sender(&*client).expect("a socket");
            let file = env.disk.open_read(&path).expect("there");
            let (mut offset, mut rounds) = (1, 0);
            while offset < file.len() {
                offset += sender.send(&env, &file, offset, file.len() - offset).await.expect("taken");
                rounds += 1;
            }
            let beyond = sender.send(&env, &file, offset, 1).await.expect_err("the file has ended");
            assert_eq!(beyond.kind(), io::ErrorKind::UnexpectedEof);
            drop((sender, client));
            rounds
        };
        let receiving = async {
            env.sleep(Duration::from_millis(50)).await;
            let mut received = Vec::new();
            server.read_to_end(&mut received).await.expect("read");
            received
        };
        let (rounds, received) = tokio::join!(sending, receiving);
        assert!(rounds > 1, "a connection takes so much in steps");
        received
    });
    assert!(received == bytes[1..], "{} bytes", received.len());
}

/// Whether the kernel keeps a timer for keepalive (2 in the column `tr`) for each of the two sides
/// of a connection to this port that is at rest.
#[cfg(target_os = "linux")]
fn keeps_alive(port: u16) -> Vec<bool> {
    let text = std::fs::read_to_string("/proc/self/net/tcp").expect("Linux");
    let port = format!(":{port:04X}");
    let sides = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let established = sides.filter(|columns| columns.get(3) == Some(&"01"));
    let of_port = established.filter(|columns| columns[1].ends_with(&port) || columns[2].ends_with(&port));
    of_port.map(|columns| columns[5].starts_with("02:")).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn the_kernel_asks_silent_peers_where_it_is_told_to() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let network = env().network;
        for keepalive in [false, true] {
            let options = SocketOptions { user_timeout: Duration::from_secs(9), ..SocketOptions::keepalive(keepalive) };
            let sized = SocketOptions { send_buffer: 100_000, receive_buffer: 100_000, ..options };
            let mut listener =
                network.bind_with("127.0.0.1:0".parse().expect("an address"), false, sized).expect("bound");
            let address = listener.local_address().expect("bound");
            let _client = network.connect_with(address, sized).await.expect("connected");
            let _server = accept(listener.as_mut()).await.expect("accepted");
            assert_eq!(keeps_alive(address.port()), [keepalive; 2]);
        }
    });
}

#[test]
fn long_jobs_give_way() {
    let env = env();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let niceness = || rustix::process::getpriority_process(None).expect("a thread may ask for its own");
    runtime.block_on(async {
        let own = niceness();
        let of_long = env.blocking_long("test", niceness).await.expect("room in the queue");
        assert_eq!(of_long, (own + LONG_NICENESS).min(19));
        assert_eq!(env.blocking("test", niceness).await, Ok(own));
    });
}

#[cfg(target_os = "linux")]
#[test]
fn spare_jobs_get_what_others_leave() {
    let env = env();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let policy = || thread_schedule_policy().expect("a thread may ask for its own");
    let last = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    let starve = move || {
        std::thread::sleep(LATE + Duration::from_millis(10));
        policy()
    };
    runtime.block_on(async {
        let own = policy();
        assert_eq!(env.blocking_long("test", policy).await, Ok(own));
        // on a busy machine any of them may be late
        let mut attempts = 0;
        while env.blocking_spare("test", policy).await != Ok(last) {
            attempts += 1;
            assert!(attempts < 10_000, "no spare job came to the threads of its own");
        }
        // the job is counted after its result is sent, so the next may still find that nothing is
        // late
        while env.blocking_spare("test", starve).await != Ok(own) {
            attempts += 1;
            assert!(attempts < 10_000, "late jobs, and none became a long one");
        }
    });
}

#[test]
fn programs_run_to_their_end_or_are_killed() {
    let env = env();
    let shell = |script: &str, time_max| env.programs.run("sh", &["-c".to_owned(), script.to_owned()], time_max);
    let long = Duration::from_secs(60);
    let ended = shell("echo out; echo err >&2; exit 3", long).expect("ran");
    assert_eq!((ended.is_success, ended.output.as_str()), (false, "out\nerr"));
    assert!(ended.status.contains('3'), "{}", ended.status);
    let much = shell("yes | head -c 1000000", long).expect("ran");
    assert_eq!((much.is_success, much.output.len()), (true, crate::PROGRAM_OUTPUT_MAX - 1));
    let before = env.now();
    let killed = shell("sleep 30 & sleep 30", Duration::from_millis(50)).expect_err("killed");
    assert_eq!(killed.kind(), std::io::ErrorKind::TimedOut);
    assert!(env.elapsed(before) < Duration::from_secs(20));
    assert_eq!(env.programs.run("/no/such", &[], long).expect_err("none").kind(), std::io::ErrorKind::NotFound);
}

/// The system takes 0 and negative numbers for groups of processes.
#[test]
fn no_group_of_processes_is_asked_to_end() {
    for id in [0, u32::MAX, 1 << 31] {
        assert_eq!(terminate_program(id).expect_err("no process").kind(), io::ErrorKind::InvalidInput, "{id}");
    }
}
