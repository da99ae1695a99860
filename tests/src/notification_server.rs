//! A desktop's side of notifications, <https://specifications.freedesktop.org/notification-spec/latest/protocol.html>: it keeps
//! them instead of showing them.

use crate::wait::within;
use std::collections::HashMap;
use tokio::sync::mpsc;
use zbus::{Connection, connection, interface, zvariant::OwnedValue};

struct Desktop(mpsc::UnboundedSender<(String, String)>);

#[interface(name = "org.freedesktop.Notifications")]
impl Desktop {
    #[allow(clippy::too_many_arguments, reason = "the protocol has as many")]
    fn notify(
        &self,
        _app: &str,
        _replaced: u32,
        _icon: &str,
        title: &str,
        body: &str,
        _actions: Vec<String>,
        _hints: HashMap<String, OwnedValue>,
        _expires_ms: i32,
    ) -> u32 {
        // The receiver is gone once the test is over.
        let _ = self.0.send((title.to_owned(), body.to_owned()));
        1
    }

    fn get_server_information(&self) -> (&str, &str, &str, &str) {
        ("Tierbar's tests", "Tierbar", "1", "1.2")
    }
}

#[derive(Debug)]
pub struct NotificationServer {
    _bus: Connection,
    shown: mpsc::UnboundedReceiver<(String, String)>,
}

impl NotificationServer {
    /// # Panics
    /// If the bus cannot be reached.
    pub async fn start(bus: &str) -> Self {
        let (sender, shown) = mpsc::unbounded_channel();
        let bus = connection::Builder::address(bus)
            .and_then(|bus| bus.name("org.freedesktop.Notifications"))
            .and_then(|bus| bus.serve_at("/org/freedesktop/Notifications", Desktop(sender)))
            .expect("a valid address")
            .build()
            .await
            .expect("the session bus");
        Self { _bus: bus, shown }
    }

    /// The next notification: its title and its text.
    ///
    /// # Panics
    /// If none comes.
    pub async fn shown(&mut self) -> (String, String) {
        within("a notification", self.shown.recv())
            .await
            .expect("the desktop is served")
    }
}
