use super::*;
use axum::body::Body;
use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
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

#[test]
fn the_memory_of_lines_is_that_of_one_at_a_time() {
    let bomb = format!("\"\n{}", "[[0],[0]]\n".repeat(100_000));
    assert!(parse::<Value>(bomb.as_bytes()).is_err());
    let bomb = bomb.trim_start_matches('"');
    assert_eq!(
        memory_of(bomb.as_bytes(), false).unwrap_err().code,
        Code::PayloadTooLarge
    );
    let lines = memory_of(bomb.as_bytes(), true).unwrap();
    assert_eq!(lines, bomb.len() * COPIES);
}

#[tokio::test]
async fn a_refused_body_is_read_to_its_end() {
    let part = Bytes::from(vec![b'x'; 10]);
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let parts = (0..9).map(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        Ok::<_, Infallible>(part.clone())
    });
    let parts = futures_util::stream::iter(parts);
    let mut asked = 0;
    let refused = collect(Body::from_stream(parts), 100, |_| {
        asked += 1;
        Err(Error::new(Code::Overloaded, "full"))
    });
    assert_eq!(refused.await.unwrap_err().code, Code::Overloaded);
    assert_eq!((asked, sent.load(Ordering::Relaxed)), (1, 9));
}

#[tokio::test]
async fn a_body_of_one_part_is_not_copied() {
    let sent = Bytes::from(vec![b'x'; 100]);
    let once = read(Body::from(sent.clone()), 100).await.unwrap();
    assert_eq!(once.as_ptr(), sent.as_ptr());
    let parts = Body::from_stream(futures_util::stream::iter([
        Ok::<_, Infallible>(sent.slice(..40)),
        Ok(sent.slice(40..)),
    ]));
    assert_eq!(read(parts, 100).await.unwrap(), sent);
}
