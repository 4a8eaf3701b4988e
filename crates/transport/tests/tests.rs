//! A second protocol on the same connections, as different from the native one as it can be: four
//! bytes of length, then text; answers come in any order and repeat their request.
//!
//! What the native protocol's connections do at each limit is tested in crate `native`.

// A client of these tests stands outside the house.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs)]

use std::fmt::Debug;
use std::future::Future;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use env::sim::{Link as NetworkLink, Sim, World};
use env::{Connecting, Env, Instant, Listener, Network, SocketOptions, Stream};
use segments::{SegmentDecoder, SegmentFormat};
use stdx::ByteBudget;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use transport::limits::LARGE_BODY;
use transport::{
    Handled, Link, NextMessage, Opened, Output, Protocol, Received, Refusal, Server, ServerLimits, ServerOptions,
    Service, Session,
};

struct Echo;

impl Protocol for Echo {
    type Event = String;
    type Details = ();

    fn kind(_: &String) -> u8 {
        3
    }
}

struct EchoService(Env);

impl Service for EchoService {
    type Protocol = Echo;

    fn open(self: Rc<Self>, opened: Opened<Echo>) -> impl Session<Protocol = Echo> {
        EchoSession { env: self.0.clone(), link: opened.link, is_admitted: false }
    }
}

struct EchoSession {
    env: Env,
    link: Link<Echo>,
    is_admitted: bool,
}

type Running = Pin<Box<dyn Future<Output = Handled<String, std::future::Pending<String>>>>>;

impl Session for EchoSession {
    type Protocol = Echo;
    type Header = u32;
    type Id = ();
    type Request = String;
    type Response = String;
    type Last = std::future::Pending<String>;
    type Running = Running;

    fn next(&mut self, buffer: &mut BytesMut, out: &mut Output) -> NextMessage<u32> {
        let Some(length) = buffer.first_chunk().map(|length| u32::from_be_bytes(*length)) else {
            return NextMessage::Nothing;
        };
        if length > 1 << 20 {
            self.put("too long", out);
            return NextMessage::Broken;
        }
        if buffer.len() < 4 + length as usize {
            let is_large = length as usize >= LARGE_BODY && !self.is_admitted;
            return if is_large { NextMessage::Large(length) } else { NextMessage::Nothing };
        }
        self.is_admitted = false;
        buffer.advance(4);
        NextMessage::Message(length, buffer.split_to(length as usize).freeze())
    }

    fn missing(&self, _: &BytesMut) -> usize {
        0
    }

    fn body_size(&self, header: &u32) -> usize {
        *header as usize
    }

    fn admit(&mut self, _: &u32) {
        self.is_admitted = true;
    }

    fn discard_body(&mut self, _: &u32, _: &mut BytesMut) {
        unreachable!("no test fills the room for large bodies")
    }

    fn decoded_size(&self, _: &u32, body: &Bytes) -> usize {
        body.len()
    }

    fn receive(&mut self, _: &u32, body: Bytes, out: &mut Output) -> Received<String> {
        self.link.set_ready();
        match String::from_utf8_lossy(&body).as_ref() {
            "listen" => self.link.ask_for(3),
            "segments" => out.start_segments(SegmentFormat::Plain),
            text => return Received::Request(text.to_owned()),
        }
        Received::Answered
    }

    fn weight(&self, _: &String, size: usize) -> usize {
        size
    }

    fn execute(&mut self, request: String, _: Instant) -> Running {
        let env = self.env.clone();
        Box::pin(async move {
            match request.split_once(' ') {
                Some(("sleep", millis)) => env.sleep(Duration::from_millis(millis.parse().unwrap())).await,
                Some(("panic", _)) => panic!("as asked"),
                _ => {}
            }
            Handled::Answered(request)
        })
    }

    fn id_of_header(&self, _: &u32) {}

    fn id(&self, _: &String) {}

    fn answer(&mut self, (): (), response: String, out: &mut Output) {
        self.put(&response, out);
    }

    fn refuse(&mut self, (): (), why: Refusal<'_>, out: &mut Output) {
        self.put(&format!("{why:?}"), out);
    }

    fn tell(&mut self, event: &String, out: &mut Output) {
        self.put(event, out);
    }

    fn poll(&mut self, _: &mut Context<'_>, _: &mut Output) -> bool {
        true
    }

    fn is_waiting(&self) -> bool {
        false
    }

    fn throws_on_overload(&self) -> bool {
        false
    }
}

impl EchoSession {
    fn put(&self, text: &str, out: &mut Output) {
        out.append(|buffer| {
            buffer.put_u32(text.len() as u32);
            buffer.extend_from_slice(text.as_bytes());
        });
    }
}

fn start() -> Server<Echo> {
    let env = env::real::env();
    let limits = ServerLimits { request_timeout: Duration::from_millis(300), ..ServerLimits::default() };
    let options = ServerOptions {
        address: "127.0.0.1:0".parse().unwrap(),
        workers: 2,
        pin: false,
        is_closed: false,
        limits,
        tls: None,
        events: Arc::default(),
        results: ByteBudget::new(usize::MAX),
    };
    let for_services = env.clone();
    Server::start(&env, options, move |_| EchoService(for_services.clone())).unwrap()
}

fn connect(server: &Server<Echo>) -> TcpStream {
    let client = TcpStream::connect(server.address()).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    client
}

fn send(client: &mut TcpStream, texts: &[&str]) {
    let mut all = Vec::new();
    for text in texts {
        all.put_u32(text.len() as u32);
        all.extend_from_slice(text.as_bytes());
    }
    client.write_all(&all).unwrap();
}

fn receive(client: &mut TcpStream) -> String {
    let mut length = [0; 4];
    client.read_exact(&mut length).unwrap();
    let mut text = vec![0; u32::from_be_bytes(length) as usize];
    client.read_exact(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn another_protocol_has_the_same_connections() {
    let server = start();
    let mut client = connect(&server);
    let long = "x".repeat(LARGE_BODY + 1);
    send(&mut client, &["sleep 100", "one", &long, "two"]);
    for expected in ["one", &long, "two", "sleep 100"] {
        assert_eq!(receive(&mut client), expected);
    }
    send(&mut client, &["panic now", "sleep 60000", "three"]);
    assert_eq!(receive(&mut client), "Panicked");
    assert_eq!(receive(&mut client), "three");
    assert_eq!(receive(&mut client), "TimedOut(300ms)");
    client.write_all(&[0xff; 8]).unwrap();
    assert_eq!(receive(&mut client), "too long");
    assert_eq!(client.read(&mut [0; 8]).unwrap(), 0, "a broken message ends its connection");
    server.shutdown();
}

#[test]
fn events_and_the_farewell_come_in_the_protocols_own_form() {
    let server = start();
    let handle = server.handle();
    let mut clients = [connect(&server), connect(&server)];
    for client in &mut clients {
        send(client, &["listen", "heard"]);
        assert_eq!(receive(client), "heard");
    }
    handle.set_farewell("bye".to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(handle.pause(false));
    for client in &mut clients {
        assert_eq!(receive(client), "bye");
        assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);
    }
    assert_eq!((server.bytes_in_flight(), server.connections().len()), (0, 0));
    runtime.block_on(handle.resume()).unwrap();
    let mut client = connect(&server);
    send(&mut client, &["again"]);
    assert_eq!(receive(&mut client), "again");
}

#[test]
fn segments_are_any_protocols_outer_layer() {
    let server = start();
    let mut client = connect(&server);
    send(&mut client, &["segments", "one", "two"]);
    let (mut came, mut text) = (BytesMut::new(), Vec::new());
    while text.len() < 14 {
        let mut bytes = [0; 64];
        let size = client.read(&mut bytes).unwrap();
        assert!(size > 0);
        came.extend_from_slice(&bytes[..size]);
        while let Some(segment) = SegmentDecoder::new(SegmentFormat::Plain).next(&mut came).unwrap() {
            text.extend_from_slice(&segment.payload);
        }
    }
    assert_eq!(text, *b"\0\0\0\x03one\0\0\0\x03two");
}

/// A network without descriptors for connections that come.
struct Short(Arc<dyn Network>);

impl Network for Short {
    fn bind_with(&self, address: SocketAddr, reuse: bool, options: SocketOptions) -> io::Result<Box<dyn Listener>> {
        self.0.bind_with(address, reuse, options).map(|listener| Box::new(Deaf(listener)) as Box<dyn Listener>)
    }

    fn connect_with(&self, address: SocketAddr, options: SocketOptions) -> Connecting {
        self.0.connect_with(address, options)
    }
}

struct Deaf(Box<dyn Listener>);

impl Listener for Deaf {
    fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_address()
    }

    fn poll_accept(&mut self, _: &mut Context<'_>) -> Poll<io::Result<(Box<dyn Stream>, SocketAddr)>> {
        const EMFILE: i32 = 24;
        Poll::Ready(Err(io::Error::from_raw_os_error(EMFILE)))
    }
}

/// The attempts that each warning of the log stands for.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<u64>>>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Attempts(&self.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Attempts<'a>(&'a Mutex<Vec<u64>>);

impl Visit for Attempts<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "attempts" {
            self.0.lock().unwrap().push(value);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

#[test]
fn a_lack_of_descriptors_is_told_once_a_minute() {
    let sim = Sim::new(1);
    let env = sim.env();
    let env = Env { network: Arc::new(Short(Arc::clone(&env.network))), ..env };
    let warnings = Warnings::default();
    tracing::subscriber::with_default(warnings.clone(), || {
        let options = ServerOptions {
            address: SocketAddr::from(([0, 0, 0, 0], 9042)),
            workers: 4,
            pin: false,
            is_closed: false,
            limits: ServerLimits::default(),
            tls: None,
            events: Arc::default(),
            results: ByteBudget::new(usize::MAX),
        };
        let for_services = env.clone();
        let server = Server::start(&env, options, move |_| EchoService(for_services.clone())).unwrap();
        sim.block_on(env.sleep(Duration::from_secs(90)));
        drop(server);
    });
    let told = warnings.0.lock().unwrap().clone();
    // four workers try ten times a second
    assert!(matches!(told[..], [1, 2_300..=2_500]), "{told:?}");
}

/// A network whose accepted connections take a few bytes with each write, so that a slow link
/// brings and acknowledges bytes all the time.
struct Narrow(Arc<dyn Network>);

impl Network for Narrow {
    fn bind_with(&self, address: SocketAddr, reuse: bool, options: SocketOptions) -> io::Result<Box<dyn Listener>> {
        self.0.bind_with(address, reuse, options).map(|listener| Box::new(NarrowListener(listener)) as _)
    }

    fn connect_with(&self, address: SocketAddr, options: SocketOptions) -> Connecting {
        self.0.connect_with(address, options)
    }
}

struct NarrowListener(Box<dyn Listener>);

impl Listener for NarrowListener {
    fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_address()
    }

    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<(Box<dyn Stream>, SocketAddr)>> {
        let narrow = |(stream, peer)| (Box::new(NarrowStream(stream)) as Box<dyn Stream>, peer);
        self.0.poll_accept(context).map_ok(narrow)
    }
}

struct NarrowStream(Box<dyn Stream>);

impl AsyncRead for NarrowStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for NarrowStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        const WRITE_MAX: usize = 500;
        Pin::new(&mut self.0).poll_write(context, &data[..data.len().min(WRITE_MAX)])
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// A client that takes a hundred bytes a second would keep the room of its answer for hours. One
/// that takes a few KiB a second gets all of it.
#[test]
fn an_answer_that_is_taken_far_too_slowly_gives_its_room_back() {
    const TEXT: usize = 900 << 10;
    const LIMIT: Duration = Duration::from_secs(300);
    for (bytes_per_second, is_served) in [(100, false), (4 << 10, true)] {
        let world = World::new(1, 2);
        world.network().set_link(1, 0, NetworkLink { bytes_per_second, ..NetworkLink::default() });
        let env = world.env(1);
        let env = Env { network: Arc::new(Narrow(Arc::clone(&env.network))), ..env };
        let results = ByteBudget::new(usize::MAX);
        let options = ServerOptions {
            address: SocketAddr::from(([0, 0, 0, 0], 9042)),
            workers: 1,
            pin: false,
            is_closed: false,
            limits: ServerLimits::default(),
            tls: None,
            events: Arc::default(),
            results: Arc::clone(&results),
        };
        let for_services = env.clone();
        let server = Server::start(&env, options, move |_| EchoService(for_services.clone())).unwrap();
        let (taken, of_client) = (Arc::new(Mutex::new(0)), world.env(0));
        let (count, address, network) =
            (Arc::clone(&taken), SocketAddr::new(world.address(1), 9042), Arc::clone(&of_client.network));
        let client = async move {
            let mut stream = network.connect(address).await.unwrap();
            let mut request = Vec::new();
            request.put_u32(TEXT as u32);
            request.resize(4 + TEXT, b'x');
            stream.write_all(&request).await.unwrap();
            let mut piece = [0; 1024];
            while let Ok(size @ 1..) = stream.read(&mut piece).await {
                *count.lock().unwrap() += size;
            }
        };
        of_client.tasks.spawn_local_worker("client", Box::new(move || Box::pin(client)));
        assert!(world.run_until(LIMIT, || results.used() > TEXT / 2), "the answer has room");
        assert!(world.run_until(LIMIT, || results.used() == 0), "{bytes_per_second} bytes a second keep the room");
        assert_eq!(server.connections().is_empty(), !is_served);
        world.run_until(LIMIT, || *taken.lock().unwrap() == 4 + TEXT);
        assert_eq!(*taken.lock().unwrap() == 4 + TEXT, is_served);
    }
}
