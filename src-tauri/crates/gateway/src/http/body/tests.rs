use super::*;
use std::convert::Infallible;
use tokio::time::sleep;

/// A body of pieces, with a pause before each.
fn dribbling(pieces: usize, size: usize, pause: Duration) -> Body {
    Body::from_stream(futures_util::stream::unfold(
        pieces,
        move |left| async move {
            sleep(pause).await;
            let piece = Bytes::from(vec![b'x'; size]);
            (left > 0).then(|| (Ok::<_, Infallible>(piece), left - 1))
        },
    ))
}

#[tokio::test(start_paused = true)]
async fn only_a_stalled_body_is_given_up() {
    let stopped = dribbling(2, 1, Duration::from_secs(31));
    let error = read(stopped, 100).await.unwrap_err();
    assert_eq!(error.code, Code::RequestTimeout);
    assert!(error.message.contains("0 bytes"), "{error}");

    let dribble = dribbling(1000, 1, Duration::from_secs(1));
    let error = read(dribble, 10_000).await.unwrap_err();
    assert_eq!(error.code, Code::RequestTimeout);

    // Twenty minutes at twice the minimum pace.
    let slow = dribbling(1200, 32 << 10, Duration::from_secs(1));
    assert_eq!(read(slow, 64 << 20).await.unwrap().len(), 1200 * (32 << 10));
}
