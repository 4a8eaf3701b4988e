//! Sessions of real nodes, played again with one side of ours: each captured message of that side
//! is what our session sends in its place.

use std::collections::BTreeMap;

use schema::TableId;
use streaming::message::init::Preview;
use streaming::session::Limits;
use streaming::{Effect, Event, Message, OfferedFiles, Received, ReceivedFile, Session, StreamInit, Summary};

use super::links::sides;
use super::read;

/// The messages of both sides of a control link.
struct Control {
    file: String,
    init: StreamInit,
    initiator: Vec<Message>,
    follower: Vec<Message>,
}

fn controls() -> Vec<Control> {
    let sides = sides();
    let pairs = sides.chunks(2).filter_map(|pair| {
        let (mut initiator, follower) = (read(&pair[0], usize::MAX).0, read(&pair[1], usize::MAX).0);
        let Some(Message::Init(init)) = initiator.first().cloned() else { return None };
        initiator.remove(0);
        Some(Control { file: pair[0].file.clone(), init, initiator, follower })
    });
    pairs.collect()
}

/// How many files of each table a side has told to have received.
fn received(messages: &[Message]) -> BTreeMap<TableId, usize> {
    let mut counts = BTreeMap::new();
    for message in messages {
        if let Message::Received(id) = message {
            *counts.entry(id.table).or_default() += 1;
        }
    }
    counts
}

/// Files that fit to a summary: the captures do not say how the components are spread over them.
fn offers(summaries: &[Summary], received: &BTreeMap<TableId, usize>) -> Vec<OfferedFiles> {
    let offer = |summary: &Summary| {
        // a preview announces files and sends none
        let count = received.get(&summary.table).copied().unwrap_or(1);
        let first = (usize::try_from(summary.files).unwrap() + 1 - count, summary.bytes as u64);
        OfferedFiles { table: summary.table, files: std::iter::once(first).chain(vec![(1, 0); count - 1]).collect() }
    };
    summaries.iter().map(offer).collect()
}

/// The file that was received, if it is one of those of [`offers`].
fn arrived(id: Received, offers: &[OfferedFiles]) -> Event {
    let offer = offers.iter().find(|offer| offer.table == id.table).unwrap();
    Event::Arrived(ReceivedFile { id, files: offer.files[usize::try_from(id.sequence).unwrap()].0 })
}

/// Feeds an event, and the additions that follow from it; keeps what is sent and how it ends.
fn play(session: &mut Session, event: Event, sent: &mut Vec<Message>, end: &mut Option<Result<(), String>>) {
    for effect in session.on_event(event, 0) {
        match effect {
            Effect::Send(message) => sent.push(message),
            Effect::Add(table) => play(session, Event::Added(table), sent, end),
            Effect::Finished(result) => *end = Some(result),
            Effect::Collect(_) | Effect::SendFiles(_) | Effect::Close => {}
        }
    }
}

/// The summaries of the initiator and of the follower.
fn announced(control: &Control) -> (Vec<Summary>, Vec<Summary>) {
    let Some(Message::PrepareSyn(syn)) = control.initiator.first() else { panic!("{}", control.file) };
    let Some(Message::PrepareSynAck(summaries)) = control.follower.first() else { panic!("{}", control.file) };
    (syn.summaries.clone(), summaries.clone())
}

#[test]
fn our_follower_says_what_cassandras_said() {
    let mut played = 0;
    for control in controls() {
        let (theirs, ours) = announced(&control);
        let theirs = offers(&theirs, &received(&control.follower));
        let ours = offers(&ours, &received(&control.initiator));
        let (mut sent, mut end) = (Vec::new(), None);
        let mut session = Session::follow(&control.init, Limits::default(), 0);
        let mut of_initiator = control.initiator.iter().cloned();
        play(&mut session, Event::Message(of_initiator.next().unwrap()), &mut sent, &mut end);
        play(&mut session, Event::Collected(ours), &mut sent, &mut end);
        of_initiator.for_each(|message| play(&mut session, Event::Message(message), &mut sent, &mut end));
        for message in &control.follower {
            if let Message::Received(id) = message {
                play(&mut session, arrived(*id, &theirs), &mut sent, &mut end);
            }
        }
        assert_eq!(sent, control.follower, "{}", control.file);
        assert_eq!(end, Some(Ok(())), "{}", control.file);
        played += 1;
    }
    assert_eq!(played, 18);
}

#[test]
fn our_initiator_says_what_cassandras_said() {
    for control in controls() {
        let (ours, theirs) = announced(&control);
        let ours = offers(&ours, &received(&control.follower));
        let theirs = offers(&theirs, &received(&control.initiator));
        let Some(Message::PrepareSyn(syn)) = control.initiator.first() else { panic!("{}", control.file) };
        let (mut session, effects) =
            Session::initiate(control.init.clone(), syn.requests.clone(), ours, Limits::default(), 0);
        let begun = [Message::Init(control.init.clone()), Message::PrepareSyn(syn.clone())];
        assert_eq!(effects, begun.clone().map(Effect::Send), "{}", control.file);
        let (mut sent, mut end) = (vec![begun[1].clone()], None);
        for message in &control.follower {
            let is_last = *message == Message::Complete;
            if is_last {
                for message in &control.initiator {
                    if let Message::Received(id) = message {
                        play(&mut session, arrived(*id, &theirs), &mut sent, &mut end);
                    }
                }
                assert_eq!(end, None, "{}: the initiator waits for COMPLETE", control.file);
            }
            play(&mut session, Event::Message(message.clone()), &mut sent, &mut end);
        }
        assert_eq!(sent, control.initiator, "{}", control.file);
        assert_eq!(end, Some(Ok(())), "{}", control.file);
        assert!(control.init.preview == Preview::None || sent.len() == 1);
    }
}
