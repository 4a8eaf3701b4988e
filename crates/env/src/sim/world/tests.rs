//! Several machines: equal runs of equal seeds, clocks that differ, lives that end apart.

use std::path::Path;
use std::sync::Mutex;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::accept;
use crate::sim::{DATA, Op, Stall, lock};

type Told = Arc<Mutex<Vec<String>>>;

/// Three machines that write to each other and to their disks while machines and links come and go.
fn program(seed: u64) -> (Vec<String>, (u64, u64)) {
    let world = World::new(seed, 3);
    let dice = world.dice();
    let told: Told = Arc::default();
    (0..3).for_each(|machine| start(&world, machine, &told));
    for _ in 0..30 {
        let (machine, other) = (dice.below(3) as usize, dice.below(3) as usize);
        match dice.below(8) {
            0 => world.kill(machine),
            1 => world.power_cut(machine),
            2 => world.pause(machine),
            3 => world.network().block(machine, other),
            4 => world.network().heal(),
            5 => drop(world.network().reset_one(machine, other)),
            6 => world.set_drift(machine, dice.below(200_000) as i64 - 100_000),
            _ => world.shift_wall_clock(machine, dice.below(10_000_000) as i64 - 5_000_000),
        }
        world.run_for(Duration::from_millis(dice.below(3_000)));
        world.resume(machine);
        if dice.chance(70) {
            world.kill(machine);
            start(&world, machine, &told);
        }
    }
    world.run_for(Duration::from_secs(5));
    let told = lock(&told).clone();
    (told, world.trace())
}

fn start(world: &World, machine: usize, told: &Told) {
    let (env, told, seconds) = (world.env(machine), told.clone(), world.elapsed().as_secs());
    let next = std::net::SocketAddr::new(world.address((machine + 1) % 3), 7000);
    let serve = env.clone();
    let served = async move {
        let address = "0.0.0.0:7000".parse().expect("an address");
        let Ok(mut listener) = serve.network.bind(address, false) else { return };
        while let Ok((mut stream, peer)) = accept(listener.as_mut()).await {
            let (env, told) = (serve.clone(), told.clone());
            tokio::task::spawn_local(async move {
                let mut buffer = [0; 8];
                while stream.read_exact(&mut buffer).await.is_ok() {
                    let path = format!("{DATA}/{}", buffer[0]);
                    let written = env.disk.create(Path::new(&path)).and_then(|mut file| file.write_all(&buffer));
                    lock(&told).push(format!("{machine} {peer} {buffer:?} {written:?} {}", env.clock.now_micros()));
                }
            });
        }
    };
    env.tasks.spawn_local_worker("server", Box::new(move || Box::pin(served)));
    let sent = env.clone();
    let send = async move {
        loop {
            sent.sleep(Duration::from_millis(sent.random.below(300))).await;
            let connected = sent.timeout(Duration::from_secs(1), sent.network.connect(next)).await;
            if let Ok(Ok(mut stream)) = connected {
                let number = sent.random.next_u64() ^ seconds;
                let _ = stream.write_all(&number.to_le_bytes()).await;
            }
        }
    };
    env.tasks.spawn_local_worker("client", Box::new(move || Box::pin(send)));
}

#[test]
fn equal_seeds_give_equal_runs() {
    let runs: Vec<_> = (0..10).map(program).collect();
    assert!(runs.iter().all(|(told, _)| told.len() > 20), "machines reach each other");
    assert_eq!(runs, (0..10).map(program).collect::<Vec<_>>());
    assert_ne!(runs[0], runs[1]);
}

/// How far a machine's own clocks go while the timeline goes a hundred seconds.
fn measured(change: impl Fn(&World)) -> (u64, i64) {
    let world = World::new(1, 2);
    let env = world.env(1);
    let (nanos, micros) = (env.clock.monotonic_nanos(), env.clock.now_micros());
    change(&world);
    world.run_for(Duration::from_secs(100));
    ((env.clock.monotonic_nanos() - nanos) / 1_000_000_000, (env.clock.now_micros() - micros) / 1_000_000)
}

#[test]
fn clocks_drift_and_step_apart() {
    assert_eq!(measured(|_| {}), (100, 100));
    assert_eq!(measured(|world| world.set_drift(0, 100_000)), (100, 100), "another machine's clock");
    assert_eq!(measured(|world| world.set_drift(1, 100_000)), (110, 110));
    assert_eq!(measured(|world| world.set_drift(1, -100_000)), (90, 90));
    assert_eq!(measured(|world| world.shift_wall_clock(1, -5_000_000)), (100, 95));
    let corrected = |world: &World| {
        world.set_drift(1, 100_000);
        world.shift_wall_clock(1, -5_000_000);
        world.run_for(Duration::from_secs(100));
        world.set_drift(1, 0);
        world.correct_wall_clock(1);
    };
    assert_eq!(measured(corrected), (210, 200), "only the wall clock is set");
}

#[test]
fn timers_go_by_the_machine_s_own_clock() {
    let world = World::new(1, 2);
    world.set_drift(1, 100_000);
    for (machine, expected) in [(0, 11_000), (1, 10_000)] {
        let begun = world.elapsed();
        let env = world.env(machine);
        world.block_on(env.sleep(Duration::from_secs(11)));
        assert_eq!((world.elapsed() - begun).as_millis(), expected, "machine {machine}");
    }
}

/// Tells every 10 ms by the timeline of the test.
fn ticks(world: &World, machine: usize) -> Arc<Mutex<u64>> {
    let (env, count): (_, Arc<Mutex<u64>>) = (world.env(machine), Arc::default());
    let (of_task, counted) = (env.clone(), count.clone());
    let tick = async move {
        loop {
            of_task.sleep(Duration::from_millis(10)).await;
            *lock(&counted) += 1;
        }
    };
    env.tasks.spawn_local_worker("ticks", Box::new(move || Box::pin(tick)));
    count
}

#[test]
fn a_machine_that_is_paused_or_busy_stands_still_and_others_do_not() {
    let world = World::new(2, 2);
    let counts = [ticks(&world, 0), ticks(&world, 1)];
    let seen = || counts.clone().map(|count| *lock(&count) / 90);
    world.run_for(Duration::from_secs(1));
    assert_eq!(seen(), [1, 1]);
    world.pause(0);
    world.run_for(Duration::from_secs(1));
    assert_eq!(seen(), [1, 2]);
    world.resume(0);
    let stall = Stall { op: Op::Create, path: String::new(), skip: 0, times: 1, duration: Duration::from_secs(2) };
    world.disk(1).stall(stall);
    let before = world.elapsed();
    drop(world.env(1).disk.create(Path::new("/data/slow")).expect("slow and sound"));
    assert_eq!(world.elapsed(), before, "the time of others does not move");
    world.run_for(Duration::from_secs(1));
    assert_eq!(seen(), [2, 2]);
}

#[test]
fn lives_end_apart() {
    let world = World::new(4, 2);
    let counts = [ticks(&world, 0), ticks(&world, 1)];
    world.run_for(Duration::from_secs(1));
    let old = world.env(1);
    world.kill(1);
    world.run_for(Duration::from_secs(1));
    assert_eq!(counts.clone().map(|count| *lock(&count) / 90), [2, 1]);
    assert!(old.disk.create(Path::new("/data/x")).is_err());
    assert!(old.network.bind("0.0.0.0:1".parse().expect("an address"), false).is_err());
    world.env(1).disk.create(Path::new("/data/x")).expect("the next life has a disk");
}
