//! Many clients that start requests and do not complete them.

use super::{ANSWER, Serving, chat};
use tierbar_tests::wait::within;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// More than the host's connections.
const SLOW: usize = 700;

#[tokio::test]
async fn seven_hundred_partial_requests_block_no_client() {
    let serving = Serving::start("127.0.0.1:0", "").await.unwrap();
    let address = ("127.0.0.1", serving.port());
    let begun = [
        "",
        "POST /v1/chat/com",
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n",
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{",
    ];
    let (mut slow, mut answered) = (Vec::new(), 0);
    for number in 0..SLOW {
        let mut stream = within("a connection", TcpStream::connect(address))
            .await
            .unwrap();
        let begun = begun[number % begun.len()];
        stream.write_all(begun.as_bytes()).await.unwrap();
        slow.push(stream);
        if number % 100 == 99 {
            let url = format!("{}/v1/chat/completions", serving.host.url());
            // On a connection of its own, as a client that has just come.
            let client = tierbar_fetch::loopback().build().unwrap();
            let request = client.post(url).json(&chat("Hello")).send();
            let answer = within("an answer among the slow", request).await.unwrap();
            assert_eq!(answer.status(), 200);
            assert!(answer.text().await.unwrap().contains(ANSWER));
            answered += 1;
            // One more byte from each that still may.
            for stream in &mut slow {
                let _gone = stream.write_all(b"x").await;
            }
        }
    }
    assert_eq!(answered, SLOW / 100);
    // The first client has lost its connection.
    let mut byte = [0];
    let first = within("the first one's end", slow[0].read(&mut byte)).await;
    assert!(matches!(first, Ok(0) | Err(_)), "{first:?}");
    serving.host.shutdown().await;
}
