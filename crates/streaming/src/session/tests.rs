//! Two sessions over drawn links: messages and files take drawn times, files overtake each other,
//! links break, disks fail. Whatever happens both sides end; the judgement is at the end of
//! [`Run::judge`].

use std::collections::BTreeSet;

use super::*;
use crate::message::init::Operation;

const LIMITS: Limits = Limits { keep_alive_ms: 300_000, silence_max_ms: 12 * 3_600_000 };

/// A generator of numbers (xorshift), so that a seed is a run.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Something on its way to a side (0: initiator, 1: follower).
#[derive(Clone, Debug)]
enum Flight {
    Event(Event),
    File(ReceivedFile),
}

/// How the links of a run are.
#[derive(Clone, Copy, Default, Debug)]
struct Troubles {
    /// One event in so many breaks the control link; 0: none.
    breaks: u64,
    /// One file in so many breaks its link.
    files_break: u64,
    /// One addition in so many fails.
    adding_fails: u64,
    /// One RECEIVED in so many comes twice.
    doubles: u64,
}

struct Run {
    random: Random,
    now: u64,
    sessions: [Option<Session>; 2],
    /// Time, number (messages of one time keep their order), target, flight.
    flights: Vec<(u64, u64, usize, Flight)>,
    sent: u64,
    /// The latest arrival on the control link, each way: messages do not overtake each other.
    control: [u64; 2],
    is_linked: bool,
    troubles: Troubles,
    offers: [Vec<OfferedFiles>; 2],
    results: [Option<Result<(), String>>; 2],
    arrived: [BTreeSet<Received>; 2],
    added: [BTreeSet<Received>; 2],
}

fn init() -> StreamInit {
    StreamInit {
        from: "127.0.0.1:7000".parse().unwrap(),
        session_index: 0,
        plan: [7; 16],
        operation: Operation::Bootstrap,
        pending_repair: None,
        preview: Preview::None,
    }
}

fn table(number: u64) -> TableId {
    TableId([number as u8; 16])
}

/// The messages of a session come on a control link; the beginning of another link does not.
#[test]
fn a_control_link_has_messages_of_its_session_alone() {
    let (mut reader, mut input) = (LinkReader::new(), BytesMut::new());
    for message in [Message::PrepareAck, Message::Complete, Message::Init(init())] {
        assert_eq!(Event::of_control_link(&mut reader, &mut input), None);
        let mut bytes = Vec::new();
        message.encode(&mut bytes).unwrap();
        input.extend_from_slice(&bytes);
        let expected = match message {
            Message::Init(_) => Event::Broken("STREAM_INIT came on a control link".to_owned()),
            message => Event::Message(message),
        };
        assert_eq!(Event::of_control_link(&mut reader, &mut input), Some(expected));
    }
}

/// A peer that asks again, before it has taken what it has asked for, would make this side offer
/// the files of a table twice.
#[test]
fn a_peer_asks_once() {
    let mut session = Session::follow(&init(), LIMITS, 0);
    let asks = || Event::Message(Message::PrepareSyn(PrepareSyn { requests: Vec::new(), summaries: Vec::new() }));
    assert_eq!(session.on_event(asks(), 1), [Effect::Collect(Vec::new())]);
    let offers = vec![OfferedFiles { table: table(1), files: vec![(1, 10)] }];
    let answered = session.on_event(Event::Collected(offers), 2);
    assert!(matches!(answered[..], [Effect::Send(Message::PrepareSynAck(_))]), "{answered:?}");
    let refused = Effect::Finished(Err("PREPARE_SYN came twice".to_owned()));
    assert_eq!(session.on_event(asks(), 3), [Effect::Send(Message::SessionFailed), Effect::Close, refused]);
}

/// A peer that takes what nobody has announced, having asked for nothing, has no complete session.
#[test]
fn no_files_are_awaited_before_they_are_announced() {
    let mut session = Session::follow(&init(), LIMITS, 0);
    let refused = Effect::Finished(Err("PREPARE_ACK came when no files were announced, or twice".to_owned()));
    let ended = session.on_event(Event::Message(Message::PrepareAck), 1);
    assert_eq!(ended, [Effect::Send(Message::SessionFailed), Effect::Close, refused]);
}

fn drawn_offers(random: &mut Random) -> Vec<OfferedFiles> {
    let tables = random.below(4);
    let offer = |number| OfferedFiles {
        table: table(number),
        files: (0..random.below(5)).map(|_| (1 + random.below(8) as usize, 10)).collect(),
    };
    (0..tables).map(offer).collect()
}

impl Run {
    fn new(seed: u64, troubles: Troubles) -> Self {
        let mut random = Random::new(seed);
        let offers = [drawn_offers(&mut random), drawn_offers(&mut random)];
        let (initiator, effects) = Session::initiate(init(), Vec::new(), offers[0].clone(), LIMITS, 0);
        let mut run = Self {
            random,
            now: 0,
            sessions: [Some(initiator), None],
            flights: Vec::new(),
            sent: 0,
            control: [0; 2],
            is_linked: true,
            troubles,
            offers,
            results: [None, None],
            arrived: Default::default(),
            added: Default::default(),
        };
        run.carry_out(0, effects);
        run
    }

    fn happens(&mut self, one_in: u64) -> bool {
        one_in > 0 && self.random.below(one_in) == 0
    }

    fn fly(&mut self, at: u64, to: usize, flight: Flight) {
        self.sent += 1;
        self.flights.push((at, self.sent, to, flight));
    }

    fn send(&mut self, from: usize, message: Message) {
        if !self.is_linked {
            return;
        }
        let to = 1 - from;
        let doubles = matches!(message, Message::Received(_)) && self.happens(self.troubles.doubles);
        for _ in 0..=u64::from(doubles) {
            self.control[to] = self.control[to].max(self.now) + self.random.below(20);
            self.fly(self.control[to], to, Flight::Event(Event::Message(message.clone())));
        }
    }

    /// Each side learns of it at its own time; messages under way are lost.
    fn unlink(&mut self) {
        self.is_linked = false;
        self.flights.retain(|(_, _, _, flight)| !matches!(flight, Flight::Event(Event::Message(_))));
        for side in 0..2 {
            let at = self.now + self.random.below(1000);
            self.fly(at, side, Flight::Event(Event::LinkEnded));
        }
    }

    fn carry_out(&mut self, side: usize, effects: Vec<Effect>) {
        for effect in effects {
            let later = self.now + self.random.below(50);
            match effect {
                Effect::Send(Message::Init(init)) => self.sessions[1] = Some(Session::follow(&init, LIMITS, self.now)),
                Effect::Send(message) => self.send(side, message),
                Effect::Collect(_) => {
                    let offers = self.offers[side].clone();
                    self.fly(later, side, Flight::Event(Event::Collected(offers)));
                }
                Effect::SendFiles(files) => files.into_iter().for_each(|id| self.send_file(side, id)),
                Effect::Add(_) if self.happens(self.troubles.adding_fails) => {
                    self.fly(later, side, Flight::Event(Event::Broken("the disk is full".to_owned())));
                }
                Effect::Add(table) => self.fly(later, side, Flight::Event(Event::Added(table))),
                Effect::Close => {
                    if self.is_linked {
                        // what was sent before still arrives
                        let other = 1 - side;
                        self.control[other] = self.control[other].max(self.now);
                        self.fly(self.control[other] + 1, other, Flight::Event(Event::LinkEnded));
                        self.is_linked = false;
                    }
                }
                Effect::Finished(result) => {
                    assert!(self.results[side].is_none(), "the end is told once");
                    self.results[side] = Some(result);
                }
            }
        }
    }

    fn send_file(&mut self, side: usize, id: Received) {
        let offer = self.offers[side].iter().find(|offer| offer.table == id.table).unwrap();
        let files = offer.files[usize::try_from(id.sequence).unwrap()].0;
        let (to, later) = (1 - side, self.now + self.random.below(500));
        if self.happens(self.troubles.files_break) {
            // either side may be the one that sees its link end
            let sees = if self.random.below(2) == 0 { side } else { to };
            self.fly(later, sees, Flight::Event(Event::Broken("a file link has ended".to_owned())));
            return;
        }
        self.fly(later, to, Flight::File(ReceivedFile { id, files }));
    }

    /// One flight arrives; false: none is left.
    fn step(&mut self) -> bool {
        let Some(next) = (0..self.flights.len()).min_by_key(|at| (self.flights[*at].0, self.flights[*at].1)) else {
            return false;
        };
        let (at, _, side, flight) = self.flights.swap_remove(next);
        self.now = self.now.max(at);
        if self.is_linked && self.happens(self.troubles.breaks) {
            self.unlink();
        }
        let Some(session) = &mut self.sessions[side] else { return true };
        let event = match flight {
            Flight::Event(event) => event,
            Flight::File(file) => match session.admit(&file) {
                Ok(()) => {
                    self.arrived[side].insert(file.id);
                    Event::Arrived(file)
                }
                Err(why) => Event::Broken(why),
            },
        };
        if let (Event::Added(table), false) = (&event, session.is_ended()) {
            let of_table = self.arrived[side].iter().filter(|id| id.table == *table).copied();
            self.added[side].extend(of_table);
        }
        let effects = session.on_event(event, self.now);
        self.carry_out(side, effects);
        true
    }

    /// Whether both sides completed.
    fn judge(mut self) -> bool {
        for _ in 0..10_000 {
            if !self.step() {
                break;
            }
        }
        assert!(self.flights.is_empty(), "a session does not go on for ever");
        // a side that nothing tells of the other's end waits for its clock
        for side in 0..2 {
            if let Some(session) = &mut self.sessions[side] {
                let effects = session.on_event(Event::Tick, self.now + LIMITS.silence_max_ms);
                self.carry_out(side, effects);
            }
        }
        let [Some(initiator), Some(follower)] = self.results else { panic!("a side is stuck") };
        if initiator.is_ok() {
            assert!(follower.is_ok(), "the initiator completed and the follower did not");
        }
        if follower.is_ok() {
            for (side, offers) in [(1, &self.offers[0]), (0, &self.offers[1])] {
                let ids = offers.iter().flat_map(|offer| {
                    (0..offer.files.len()).map(|number| Received { table: offer.table, sequence: number as i32 })
                });
                let offered: BTreeSet<_> = ids.collect();
                assert_eq!(self.arrived[side], offered, "files at side {side}");
                if initiator.is_ok() || side == 1 {
                    assert_eq!(self.added[side], offered, "files in tables at side {side}");
                }
            }
        }
        initiator.is_ok() && follower.is_ok()
    }
}

#[test]
fn without_troubles_both_sides_complete() {
    for seed in 0..2000 {
        assert!(Run::new(seed, Troubles::default()).judge(), "seed {seed}");
    }
    for seed in 0..500 {
        let troubles = Troubles { doubles: 3, ..Troubles::default() };
        assert!(Run::new(seed, troubles).judge(), "seed {seed}, RECEIVED twice");
    }
}

#[test]
fn with_troubles_both_sides_end_and_agree() {
    let mut completed = 0;
    for seed in 0..6000 {
        let mut troubles = Troubles::default();
        match seed % 4 {
            0 => troubles.breaks = 20,
            1 => troubles.files_break = 10,
            2 => troubles.adding_fails = 4,
            _ => troubles = Troubles { breaks: 60, files_break: 30, adding_fails: 10, doubles: 5 },
        }
        completed += u32::from(Run::new(seed, troubles).judge());
    }
    assert!((1000..5000).contains(&completed), "{completed} of 6000 sessions completed: the troubles are wrong");
}

/// The clock that ends a silent session is the only thing that ends it.
#[test]
fn silence_ends_a_session_and_anything_else_puts_that_off() {
    let (mut session, _) = Session::initiate(init(), Vec::new(), Vec::new(), LIMITS, 0);
    let keep_alive = vec![Effect::Send(Message::KeepAlive)];
    assert_eq!(session.on_event(Event::Tick, LIMITS.keep_alive_ms - 1), []);
    assert_eq!(session.on_event(Event::Tick, LIMITS.keep_alive_ms), keep_alive);
    assert_eq!(session.on_event(Event::Progress, 2 * LIMITS.keep_alive_ms), keep_alive);
    assert_eq!(session.on_event(Event::Progress, 1000), []);
    assert_eq!(session.on_event(Event::Tick, LIMITS.silence_max_ms), keep_alive);
    let ended = session.on_event(Event::Tick, LIMITS.silence_max_ms + 1000);
    assert!(matches!(&ended[..], [Effect::Send(Message::SessionFailed), Effect::Close, Effect::Finished(Err(_))]));
    assert_eq!(session.on_event(Event::Tick, 2 * LIMITS.silence_max_ms), []);
}

/// Adding files may build indexes for hours, in which the link may end.
#[test]
fn an_initiator_that_only_adds_files_needs_no_link() {
    let summary = Summary { table: table(1), files: 1, bytes: 1 };
    let file = ReceivedFile { id: Received { table: table(1), sequence: 0 }, files: 1 };
    let begun = || {
        let (mut session, _) = Session::initiate(init(), Vec::new(), Vec::new(), LIMITS, 0);
        session.on_event(Event::Message(Message::PrepareSynAck(vec![summary])), 0);
        session
    };
    let mut session = begun();
    assert_eq!(
        session.on_event(Event::Arrived(file), 0),
        [Effect::Send(Message::Received(file.id)), Effect::Add(table(1))]
    );
    assert_eq!(session.on_event(Event::Message(Message::Complete), 0), []);
    assert_eq!(session.on_event(Event::LinkEnded, 0), []);
    assert_eq!(session.on_event(Event::Added(table(1)), 0), [Effect::Close, Effect::Finished(Ok(()))]);
    // a COMPLETE that comes before anything was announced leaves nothing to be added
    let (mut early, _) = Session::initiate(init(), Vec::new(), Vec::new(), LIMITS, 0);
    early.on_event(Event::Message(Message::Complete), 0);
    assert!(matches!(&early.on_event(Event::LinkEnded, 0)[..], [Effect::Close, Effect::Finished(Err(_))]));
    // without COMPLETE the end of the link is the end of the session
    let mut session = begun();
    session.on_event(Event::Arrived(file), 0);
    assert!(matches!(&session.on_event(Event::LinkEnded, 0)[..], [Effect::Close, Effect::Finished(Err(_))]));
}

#[test]
fn a_preview_ends_behind_the_summaries() {
    let init = StreamInit { preview: Preview::All, ..init() };
    let offer = OfferedFiles { table: table(1), files: vec![(7, 100), (1, 5)] };
    let (mut initiator, effects) = Session::initiate(init.clone(), Vec::new(), vec![offer.clone()], LIMITS, 0);
    let [Effect::Send(Message::Init(_)), Effect::Send(syn)] = &effects[..] else { panic!("{effects:?}") };
    let mut follower = Session::follow(&init, LIMITS, 0);
    assert_eq!(follower.on_event(Event::Message(syn.clone()), 0), [Effect::Collect(Vec::new())]);
    let summary = Summary { table: table(1), files: 8, bytes: 105 };
    let answer = Message::PrepareSynAck(vec![summary]);
    let effects = follower.on_event(Event::Collected(vec![offer]), 0);
    assert_eq!(effects, [Effect::Send(answer.clone()), Effect::Finished(Ok(()))]);
    assert_eq!(initiator.on_event(Event::Message(answer), 0), [Effect::Close, Effect::Finished(Ok(()))]);
}

/// Messages that the other side never sends, or sends at another time.
#[test]
fn messages_out_of_turn_fail_the_session() {
    let summary = Summary { table: table(1), files: 2, bytes: 1 };
    let syn = || Message::PrepareSyn(PrepareSyn { requests: Vec::new(), summaries: vec![summary] });
    let two = Message::PrepareSyn(PrepareSyn { requests: Vec::new(), summaries: vec![summary; 2] });
    let unknown = Message::Received(Received { table: table(1), sequence: 0 });
    for messages in [
        vec![Message::Complete],
        vec![Message::PrepareSynAck(Vec::new())],
        vec![syn(), syn()],
        vec![syn(), Message::PrepareAck],
        vec![two],
        vec![syn(), unknown],
    ] {
        let mut follower = Session::follow(&init(), LIMITS, 0);
        let effects: Vec<_> =
            messages.iter().flat_map(|message| follower.on_event(Event::Message(message.clone()), 0)).collect();
        assert!(matches!(effects.last(), Some(Effect::Finished(Err(_)))), "{messages:?}: {effects:?}");
        assert!(effects.contains(&Effect::Send(Message::SessionFailed)), "{messages:?}");
    }
}

#[test]
fn files_that_were_not_announced_are_not_admitted() {
    let mut follower = Session::follow(&init(), LIMITS, 0);
    let summaries = vec![Summary { table: table(1), files: 8, bytes: 1 }];
    follower.on_event(Event::Message(Message::PrepareSyn(PrepareSyn { requests: Vec::new(), summaries })), 0);
    let file = |number, sequence, files| ReceivedFile { id: Received { table: table(number), sequence }, files };
    assert_eq!(follower.admit(&file(1, 0, 7)), Ok(()));
    assert!(follower.admit(&file(2, 0, 1)).is_err());
    assert!(follower.admit(&file(1, 0, 9)).is_err());
    assert!(follower.admit(&file(1, 0, 0)).is_err());
    follower.on_event(Event::Arrived(file(1, 0, 7)), 0);
    assert!(follower.admit(&file(1, 0, 1)).is_err());
    assert_eq!(follower.admit(&file(1, 1, 1)), Ok(()));
}
