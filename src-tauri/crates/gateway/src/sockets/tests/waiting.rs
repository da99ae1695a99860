//! Connections over time.

use super::*;
use crate::sockets::{ConnectionSlot, Slot, TurnSource, connection::Connection};
use tierbar_core::lease::BoxFuture;
use tokio::{
    io::{DuplexStream, duplex},
    task::JoinHandle,
};
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_util::sync::CancellationToken;

/// A connection to the other end of a stream in memory, with routes that answer nothing.
async fn connected(slot: Option<Slot>) -> (DuplexStream, JoinHandle<()>, Arc<Keys>) {
    let (account, folder) = account().await;
    let keys = Arc::clone(&account.keys);
    let source = TurnSource {
        router: Router::new(),
        headers: Default::default(),
        over_tls: None,
        id: None,
        count: 0,
    };
    let (ours, theirs) = duplex(1 << 16);
    let reading = account.weigh();
    let closing = CancellationToken::new();
    let connection = Connection::new(ours, reading, account, source, slot, closing).await;
    tokio::time::pause();
    let ends = tokio::spawn(async move {
        let _folder = folder;
        connection.run().await;
    });
    (theirs, ends, keys)
}

async fn client(stream: DuplexStream) -> WebSocketStream<DuplexStream> {
    WebSocketStream::from_raw_socket(stream, Role::Client, None).await
}

#[tokio::test]
async fn a_half_open_connection_ends() {
    let (mut stream, ends, keys) = connected(None).await;
    // Half of a message, and then silence: its pings are not answered.
    stream
        .write_all(&[0x81, 0xfe, 0x03, 0xe8, 1, 2, 3, 4, 5, 6])
        .await
        .unwrap();
    ends.await.unwrap();
    assert_eq!(keys.held(), 0);
}

#[tokio::test]
async fn an_idle_client_that_answers_pings_stays_for_an_hour() {
    let (stream, ends, _keys) = connected(None).await;
    let begun = tokio::time::Instant::now();
    let mut client = client(stream).await;
    let mut pings = 0;
    let last = loop {
        match client.next().await.unwrap().unwrap() {
            Message::Ping(_) => {
                pings += 1;
                client.flush().await.unwrap();
            }
            Message::Text(text) => break serde_json::from_str::<Value>(&text).unwrap(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(begun.elapsed().as_secs(), 3600);
    assert!(pings > 170, "{pings}");
    assert_eq!(last["error"]["code"], "websocket_connection_limit_reached");
    assert_eq!(last["status"], 400);
    assert_eq!(closed(client.next().await).code, CloseCode::Normal);
    drop(client);
    ends.await.unwrap();
}

/// A slot that other clients need.
#[derive(Debug)]
struct Needed(CancellationToken);

impl ConnectionSlot for Needed {
    fn waits(&self) {
        self.0.cancel();
    }
    fn answers(&self) {}
    fn given_up(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.cancelled())
    }
}

#[tokio::test]
async fn an_idle_connection_gives_its_place_to_another_client() {
    let slot = Slot(Arc::new(Needed(CancellationToken::new())));
    let (stream, ends, _keys) = connected(Some(slot)).await;
    let mut client = client(stream).await;
    let text = client.next().await.unwrap().unwrap().into_text().unwrap();
    assert!(text.contains("overloaded"), "{text}");
    assert_eq!(closed(client.next().await).code, CloseCode::Again);
    drop(client);
    ends.await.unwrap();
}
