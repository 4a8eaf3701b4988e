//! Connections over links of every kind: which bytes arrive, and how connections end.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::sim::World;
use crate::{Env, SocketOptions, Stream, accept};

use super::*;

const PORT: u16 = 7000;

/// The lines that a task tells the test.
type Told = Arc<Mutex<Vec<String>>>;

fn target(world: &World) -> SocketAddr {
    SocketAddr::new(world.address(1), PORT)
}

/// Runs a task on a machine.
fn on<F: Future<Output = ()> + 'static>(env: &Env, task: impl FnOnce(Env) -> F + Send + 'static) {
    let own = env.clone();
    env.tasks.spawn_local_worker("task", Box::new(move || Box::pin(task(own))));
}

/// Machine 1 gives every byte back.
fn echo(world: &World) {
    let env = world.env(1);
    on(&env, move |env| async move {
        let mut listener = env.network.bind(SocketAddr::from(([0, 0, 0, 0], PORT)), false).expect("a free port");
        while let Ok((mut stream, _)) = accept(listener.as_mut()).await {
            tokio::task::spawn_local(async move {
                let mut buffer = [0; 1024];
                while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                    if stream.write_all(&buffer[..count]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
}

/// Sends `bytes` and reads them back; what came of it in a word.
async fn exchange(stream: &mut Box<dyn Stream>, bytes: &[u8]) -> String {
    let mut back = vec![0; bytes.len()];
    if let Err(error) = stream.write_all(bytes).await {
        return format!("write: {:?}", error.kind());
    }
    match stream.read_exact(&mut back).await {
        Ok(_) if back == bytes => "same".to_owned(),
        Ok(_) => "different".to_owned(),
        Err(error) => format!("read: {:?}", error.kind()),
    }
}

/// A client on machine 0 that exchanges so many times and tells what came of it.
fn client(world: &World, times: usize, pause: Duration) -> Told {
    client_within(world, times, pause, Duration::ZERO)
}

/// Does what [`client`] does, of a client whose kernel gives up after `user_timeout`.
fn client_within(world: &World, times: usize, pause: Duration, user_timeout: Duration) -> Told {
    let (told, address): (Told, _) = (Arc::default(), target(world));
    let to_tell = told.clone();
    on(&world.env(0), move |env| async move {
        let tell = |line: String| lock(&to_tell).push(line);
        let options = SocketOptions { user_timeout, ..SocketOptions::default() };
        let mut stream = match env.network.connect_with(address, options).await {
            Ok(stream) => stream,
            Err(error) => return tell(format!("connect: {:?}", error.kind())),
        };
        for number in 0..times {
            tell(exchange(&mut stream, &vec![number as u8; 1 + number * 700]).await);
            env.sleep(pause).await;
        }
        tell("end".to_owned());
    });
    told
}

fn lines(told: &Told) -> Vec<String> {
    lock(told).clone()
}

#[test]
fn bytes_come_in_order_over_links_that_lose_and_delay() {
    for seed in 0..10 {
        let world = World::new(seed, 2);
        let lossy = Link { delay_min_micros: 10, delay_max_micros: 5_000, loss_percent: 20, bytes_per_second: 1 << 20 };
        world.network().set_link(0, 1, lossy);
        world.network().set_link(1, 0, lossy);
        echo(&world);
        let told = client(&world, 20, Duration::from_millis(1));
        world.run_for(Duration::from_secs(600));
        let mut expected = vec!["same".to_owned(); 20];
        expected.push("end".to_owned());
        assert_eq!(lines(&told), expected, "seed {seed}");
        assert!(world.network().figures().retried > 0, "seed {seed}: segments were lost");
    }
}

#[test]
fn a_reader_that_does_not_read_stops_the_writer_and_buffers_keep_their_bounds() {
    let world = World::new(3, 2);
    let address = target(&world);
    let (told, to_tell): (Told, Told) = Default::default();
    let to_tell = {
        drop(to_tell);
        told.clone()
    };
    on(&world.env(1), move |env| async move {
        let mut listener = env.network.bind(SocketAddr::from(([0, 0, 0, 0], PORT)), false).expect("a free port");
        let (mut stream, _) = accept(listener.as_mut()).await.expect("somebody connects");
        env.sleep(Duration::from_secs(5)).await;
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.expect("all of it");
        lock(&to_tell).push(format!("{} at {}", all.len(), env.now().as_nanos() / 1_000_000_000));
    });
    let to_tell = told.clone();
    on(&world.env(0), move |env| async move {
        let mut stream = env.network.connect(address).await.expect("connected");
        stream.write_all(&vec![7; 1 << 20]).await.expect("written");
        let seconds = env.now().as_nanos() / 1_000_000_000;
        lock(&to_tell).push(format!("written at {seconds}"));
    });
    world.run_for(Duration::from_secs(60));
    assert_eq!(lines(&told), ["written at 5", "1048576 at 5"]);
    let figures = world.network().figures();
    assert_eq!(figures.unacknowledged_most, SEND_BUFFER_MAX);
    assert!((RECEIVE_BUFFER_MAX..RECEIVE_BUFFER_MAX + SEND_BUFFER_MAX).contains(&figures.unread_most), "{figures:?}");
}

#[test]
fn a_short_partition_stalls_and_a_long_one_ends_a_connection() {
    // (blocked way, seconds) and what the client sees of the exchange that the partition met
    let cases =
        [((0, 1), 5, "same"), ((1, 0), 5, "same"), ((0, 1), 200, "read: TimedOut"), ((1, 0), 200, "read: TimedOut")];
    for ((from, to), seconds, expected) in cases {
        let world = World::new(5, 2);
        echo(&world);
        let told = client(&world, 2, Duration::from_secs(10));
        world.run_for(Duration::from_secs(5));
        world.network().block(from, to);
        world.run_for(Duration::from_secs(seconds));
        world.network().heal();
        world.run_for(Duration::from_secs(100));
        assert_eq!(lines(&told)[..2], ["same".to_owned(), expected.to_owned()], "{from} to {to}, {seconds} s");
    }
}

#[test]
fn a_killed_process_tells_its_peers_and_a_machine_without_power_does_not() {
    for (power_cut, expected) in [(false, "read: UnexpectedEof"), (true, "")] {
        let world = World::new(6, 2);
        let address = target(&world);
        on(&world.env(1), move |env| async move {
            let mut listener = env.network.bind(SocketAddr::from(([0, 0, 0, 0], PORT)), false).expect("a free port");
            let _accepted = accept(listener.as_mut()).await;
            env.sleep(Duration::from_secs(10_000)).await;
        });
        let (told, to_tell): (Told, Told) = Default::default();
        let to_tell = {
            drop(to_tell);
            told.clone()
        };
        on(&world.env(0), move |env| async move {
            let mut stream = env.network.connect(address).await.expect("connected");
            let line = match stream.read_exact(&mut [0; 1]).await {
                Ok(_) => "read".to_owned(),
                Err(error) => format!("read: {:?}", error.kind()),
            };
            lock(&to_tell).push(line);
        });
        world.run_for(Duration::from_secs(1));
        if power_cut {
            world.power_cut(1)
        } else {
            world.kill(1)
        }
        world.run_for(Duration::from_secs(1000));
        assert_eq!(lines(&told).join(""), expected, "power cut: {power_cut}");
    }
}

#[test]
fn who_sends_to_a_machine_that_was_without_power_is_reset_when_it_is_back() {
    let world = World::new(7, 2);
    echo(&world);
    let told = client(&world, 2, Duration::from_secs(10));
    world.run_for(Duration::from_secs(5));
    world.power_cut(1);
    world.run_for(Duration::from_secs(6));
    echo(&world);
    world.run_for(Duration::from_secs(20));
    assert_eq!(lines(&told), ["same", "read: ConnectionReset", "end"]);
}

#[test]
fn connecting_is_refused_or_times_out_and_hung_connections_say_nothing() {
    let world = World::new(8, 2);
    let refused = client(&world, 1, Duration::ZERO);
    world.run_for(Duration::from_secs(1));
    assert_eq!(lines(&refused), ["connect: ConnectionRefused"]);
    for way in [(0, 1), (1, 0)] {
        echo(&world);
        world.network().block(way.0, way.1);
        let unanswered = client(&world, 1, Duration::ZERO);
        world.run_for(Duration::from_secs(100));
        assert_eq!(lines(&unanswered), ["connect: TimedOut"]);
        world.network().heal();
        world.kill(1);
    }
    echo(&world);
    let hung = client(&world, 2, Duration::from_secs(1));
    world.run_for(Duration::from_millis(500));
    assert!(world.network().hang_one(0, 1));
    world.run_for(Duration::from_secs(10_000));
    assert_eq!(lines(&hung), ["same"]);
    let given_up = client_within(&world, 2, Duration::from_secs(1), Duration::from_secs(7));
    world.run_for(Duration::from_millis(500));
    while world.network().hang_one(0, 1) {}
    world.run_for(Duration::from_secs(7));
    assert_eq!(lines(&given_up), ["same"], "seven seconds begin when bytes are written");
    world.run_for(Duration::from_secs(2));
    assert_eq!(lines(&given_up), ["same", "read: TimedOut", "end"]);
    let reset = client(&world, 2, Duration::from_secs(1));
    world.run_for(Duration::from_millis(500));
    assert!(world.network().reset_one(0, 1));
    world.run_for(Duration::from_secs(10));
    assert_eq!(lines(&reset), ["same", "write: ConnectionReset", "end"]);
}

#[test]
fn what_is_written_before_a_stream_is_dropped_arrives() {
    for seed in 0..10 {
        let world = World::new(seed, 2);
        let address = target(&world);
        let told: Told = Arc::default();
        let to_tell = told.clone();
        on(&world.env(1), move |env| async move {
            let mut listener = env.network.bind(SocketAddr::from(([0, 0, 0, 0], PORT)), false).expect("a free port");
            let (mut stream, _) = accept(listener.as_mut()).await.expect("somebody connects");
            let mut all = String::new();
            stream.read_to_string(&mut all).await.expect("all of it");
            lock(&to_tell).push(all);
        });
        on(&world.env(0), move |env| async move {
            let mut stream = env.network.connect(address).await.expect("connected");
            stream.write_all(b"first, ").await.expect("written");
            stream.write_all(b"last").await.expect("written");
        });
        world.run_for(Duration::from_secs(10));
        assert_eq!(lines(&told), ["first, last"], "seed {seed}");
        assert_eq!(world.network().connections(0, 1) + world.network().connections(1, 0), 0, "both sides are over");
    }
}

#[test]
fn tasks_of_a_worker_share_its_thread() {
    let world = World::new(9, 1);
    let told: Told = Arc::default();
    let to_tell = told.clone();
    on(&world.env(0), move |env| async move {
        let shared = Rc::new(RefCell::new(0));
        for number in 0..5 {
            let (shared, env) = (shared.clone(), env.clone());
            tokio::task::spawn_local(async move {
                env.sleep(Duration::from_millis(number)).await;
                *shared.borrow_mut() += 1;
            });
        }
        env.sleep(Duration::from_secs(1)).await;
        lock(&to_tell).push(shared.borrow().to_string());
    });
    world.run_for(Duration::from_secs(2));
    assert_eq!(lines(&told), ["5"]);
}
