//! A desktop's side of the tray: the StatusNotifierWatcher that an app registers its icon with, and a client of the
//! menu that it offers (`com.canonical.dbusmenu`). Both are protocols of the freedesktop and Ayatana projects.

use crate::wait::{until, within};
use futures_util::{FutureExt, StreamExt};
use std::{collections::HashMap, fmt::Write, path::PathBuf};
use tokio::sync::{Mutex, mpsc};
use zbus::{
    Connection, MatchRule, MessageStream, Proxy, connection,
    fdo::DBusProxy,
    interface,
    message::{Header, Type},
    proxy::CacheProperties,
    zvariant::{OwnedObjectPath, OwnedValue, Value},
};

/// More than an app sends while its menu is looked at.
const MOST_SIGNALS: usize = 4096;

/// Where a tray icon is: its connection's name and its object.
type Address = (String, String);

struct Watcher {
    sender: mpsc::UnboundedSender<Address>,
    items: Vec<String>,
    /// So many registrations are lost.
    lost: usize,
}

#[interface(name = "org.kde.StatusNotifierWatcher")]
impl Watcher {
    fn register_status_notifier_item(&mut self, service: &str, #[zbus(header)] header: Header<'_>) {
        let sender = header.sender().map(ToString::to_string).unwrap_or_default();
        let address = if service.starts_with('/') {
            (sender, service.to_owned())
        } else {
            (service.to_owned(), "/StatusNotifierItem".to_owned())
        };
        if self.lost > 0 {
            self.lost -= 1;
            return;
        }
        self.items.push(address.0.clone() + &address.1);
        // The receiver is gone once the test is over.
        let _ = self.sender.send(address);
    }

    fn register_status_notifier_host(&self, _service: &str) {}

    #[zbus(property)]
    fn registered_status_notifier_items(&self) -> Vec<String> {
        self.items.clone()
    }

    #[zbus(property)]
    fn is_status_notifier_host_registered(&self) -> bool {
        true
    }

    #[zbus(property)]
    fn protocol_version(&self) -> i32 {
        0
    }
}

#[derive(Debug)]
pub struct TrayHost {
    bus: Connection,
    registered: Mutex<mpsc::UnboundedReceiver<Address>>,
}

impl TrayHost {
    /// Serves before any app starts: an app looks for the watcher once.
    ///
    /// # Panics
    /// If the bus cannot be reached.
    pub async fn start(bus: &str) -> Self {
        let (sender, registered) = mpsc::unbounded_channel();
        let watcher = Watcher {
            sender,
            items: Vec::new(),
            lost: 0,
        };
        let bus = connection::Builder::address(bus)
            .and_then(|bus| bus.name("org.kde.StatusNotifierWatcher"))
            .and_then(|bus| bus.serve_at("/StatusNotifierWatcher", watcher))
            .expect("a valid address")
            .build()
            .await
            .expect("the session bus");
        Self {
            bus,
            registered: Mutex::new(registered),
        }
    }

    /// Loses the next registration of an icon, as if it had never been sent.
    ///
    /// # Panics
    /// If the bus has gone.
    pub async fn lose_one(&self) {
        let server = self.bus.object_server();
        let watcher = server.interface::<_, Watcher>("/StatusNotifierWatcher");
        watcher.await.expect("the watcher").get_mut().await.lost = 1;
    }

    /// Lets another program be the tray.
    ///
    /// # Panics
    /// If the bus has gone.
    pub async fn leave(&self) {
        self.bus
            .release_name("org.kde.StatusNotifierWatcher")
            .await
            .expect("the session bus");
    }

    /// Waits until another program is the tray.
    ///
    /// # Panics
    /// If none becomes it.
    pub async fn taken_over(&self) {
        let bus = DBusProxy::new(&self.bus).await.expect("the session bus");
        let name = || "org.kde.StatusNotifierWatcher".try_into().expect("a name");
        until("another tray", async || {
            bus.name_has_owner(name()).await.ok()?.then_some(())
        })
        .await;
    }

    /// The next icon that an app puts into the tray, once its menu shows a server or why there is none.
    ///
    /// # Panics
    /// If none comes.
    pub async fn icon(&self) -> TrayIcon {
        let address = within("a tray icon", async {
            self.registered.lock().await.recv().await
        })
        .await;
        let (name, path) = address.expect("the watcher is served");
        let icon = TrayIcon {
            bus: self.bus.clone(),
            name,
            path,
        };
        // An icon is there a moment before its menu is.
        until("the icon's menu", async || icon.prepared().await.ok()).await;
        icon.until("a server", async |_, menu| {
            menu.find("Starting…").is_none().then_some(())
        })
        .await;
        icon
    }
}

/// One item of a menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    id: i32,
    pub label: String,
    pub enabled: bool,
    pub separator: bool,
    /// `None` unless it is a check item.
    pub checked: Option<bool>,
    /// The items of its submenu.
    pub items: Vec<Self>,
}

/// What is between the labels of a submenu and of its item.
const IN: &str = " > ";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Menu(pub Vec<Entry>);

impl Menu {
    /// The first item whose label starts so, such as `Quit`; in a submenu, such as `Fast > Load`.
    #[must_use]
    pub fn find(&self, label: &str) -> Option<&Entry> {
        let mut items = &self.0;
        let mut found = None;
        let mut labels = label.split(IN).peekable();
        while let Some(label) = labels.next() {
            // A line of text may begin like a submenu.
            let is_submenu = labels.peek().is_some();
            let entry = items.iter().find(|entry| {
                entry.label.starts_with(label) && !(is_submenu && entry.items.is_empty())
            })?;
            items = &entry.items;
            found = Some(entry);
        }
        found
    }

    #[must_use]
    pub fn is_checked(&self, label: &str) -> bool {
        self.find(label)
            .is_some_and(|entry| entry.checked == Some(true))
    }
}

impl std::fmt::Display for Menu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for entry in &self.0 {
            match (entry.separator, entry.checked) {
                (true, _) => f.write_str("---")?,
                (_, Some(true)) => f.write_str("[x] ")?,
                (_, Some(false)) => f.write_str("[ ] ")?,
                (_, None) => {}
            }
            f.write_str(&entry.label)?;
            if !entry.enabled {
                f.write_str(" (disabled)")?;
            }
            f.write_char('\n')?;
        }
        Ok(())
    }
}

#[derive(Debug)]
pub struct TrayIcon {
    bus: Connection,
    name: String,
    path: String,
}

type Properties = HashMap<String, OwnedValue>;
type Node = (i32, Properties, Vec<OwnedValue>);

impl TrayIcon {
    async fn item(&self) -> Proxy<'_> {
        self.object(&self.path, "org.kde.StatusNotifierItem").await
    }

    async fn dbusmenu(&self) -> Proxy<'_> {
        let path: OwnedObjectPath = self
            .item()
            .await
            .get_property("Menu")
            .await
            .expect("the tray icon's menu");
        self.object(path.as_str(), "com.canonical.dbusmenu").await
    }

    async fn object(&self, path: &str, interface: &'static str) -> Proxy<'_> {
        zbus::proxy::Builder::new(&self.bus)
            .destination(self.name.as_str())
            .and_then(|proxy| proxy.path(path.to_owned()))
            .and_then(|proxy| proxy.interface(interface))
            .expect("a valid address")
            .cache_properties(CacheProperties::No)
            .build()
            .await
            .expect("the tray icon")
    }

    /// Tells the app that its menu is about to be looked at.
    async fn prepared(&self) -> zbus::Result<bool> {
        self.dbusmenu().await.call("AboutToShow", &(0_i32)).await
    }

    /// The picture that is shown now, as a path.
    ///
    /// # Panics
    /// If the app has gone.
    pub async fn picture(&self) -> PathBuf {
        let name: String = self
            .item()
            .await
            .get_property("IconName")
            .await
            .expect("the tray icon's picture");
        name.into()
    }

    /// The menu as it is now.
    ///
    /// # Panics
    /// If the app has gone.
    pub async fn menu(&self) -> Menu {
        self.prepared().await.expect("the menu");
        let menu = self.dbusmenu().await;
        let (_, (_, _, children)): (u32, Node) = menu
            .call("GetLayout", &(0_i32, -1_i32, Vec::<&str>::new()))
            .await
            .expect("the menu's items");
        Menu(children.into_iter().map(entry).collect())
    }

    /// Clicks the first item whose label starts so; in a submenu, such as `Fast > Load`.
    ///
    /// # Panics
    /// If there is none, or it is disabled.
    pub async fn click(&self, label: &str) {
        let menu = self.menu().await;
        let entry = menu
            .find(label)
            .unwrap_or_else(|| panic!("no item \"{label}\" in\n{menu}"));
        assert!(entry.enabled, "\"{label}\" is disabled in\n{menu}");
        // The answer may never come: the item may be the one that ends the app.
        let event = (entry.id, "clicked", Value::from(0_i32), 0_u32);
        self.dbusmenu()
            .await
            .call_noreply("Event", &event)
            .await
            .expect("the bus");
    }

    /// Waits until what the tray shows is as wanted, looking again at each signal of the app.
    ///
    /// # Panics
    /// If it never is, with the menu as it was last.
    pub async fn until<T>(
        &self,
        what: &str,
        mut look: impl AsyncFnMut(&Self, &Menu) -> Option<T>,
    ) -> T {
        let rule = MatchRule::builder()
            .msg_type(Type::Signal)
            .sender(self.name.as_str())
            .expect("a name")
            .build();
        // Where they do not fit, the bus stands still, also for answers.
        let mut signals = MessageStream::for_match_rule(rule, &self.bus, Some(MOST_SIGNALS))
            .await
            .expect("the bus");
        let mut last = None;
        let found = tokio::time::timeout(crate::wait::HANG, async {
            loop {
                let menu = self.menu().await;
                let found = look(self, &menu).await;
                last = Some(menu);
                if found.is_some() {
                    return found;
                }
                signals.next().await?.ok()?;
                while let Some(Some(_)) = signals.next().now_or_never() {}
            }
        });
        match found.await {
            Ok(Some(found)) => found,
            _ => panic!(
                "never came: {what}; the menu was\n{}",
                last.expect("it was looked at")
            ),
        }
    }
}

fn entry(child: OwnedValue) -> Entry {
    let (id, properties, children): Node =
        Value::from(child).try_into().expect("an item of the menu");
    let text = |key: &str| {
        properties
            .get(key)
            .and_then(|value| <&str>::try_from(value).ok())
            .unwrap_or_default()
    };
    let number = |key: &str| {
        properties
            .get(key)
            .and_then(|value| i32::try_from(value).ok())
            .unwrap_or_default()
    };
    let checkable = !text("toggle-type").is_empty();
    Entry {
        id,
        label: without_mnemonics(text("label")),
        enabled: properties
            .get("enabled")
            .and_then(|value| bool::try_from(value).ok())
            .unwrap_or(true),
        separator: text("type") == "separator",
        checked: checkable.then(|| number("toggle-state") == 1),
        items: children.into_iter().map(entry).collect(),
    }
}

/// `_` marks the letter after it, `__` is one that is shown.
fn without_mnemonics(label: &str) -> String {
    label
        .replace("__", "\u{0}")
        .replace('_', "")
        .replace('\u{0}', "_")
}
