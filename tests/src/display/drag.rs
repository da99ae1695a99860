//! Files dragged from a file manager, by version 5 of <https://freedesktop.org/wiki/Specifications/XDND/>.

use super::{Display, atom, settle, shown};
use crate::wait::until;
use std::path::PathBuf;
use url::Url;
use x11rb::{
    connection::Connection,
    protocol::{
        Event,
        xproto::{
            AtomEnum, ClientMessageEvent, ConnectionExt, CreateWindowAux, EventMask,
            MOTION_NOTIFY_EVENT, PropMode, SELECTION_NOTIFY_EVENT, SelectionNotifyEvent,
            SelectionRequestEvent, Window, WindowClass,
        },
        xtest::ConnectionExt as _,
    },
    rust_connection::RustConnection,
    wrapper::ConnectionExt as _,
};

const VERSION: u32 = 5;
const FILES: &str = "text/uri-list";
/// The fewest positions before the drop.
const STEPS: i16 = 4;
/// After how many looks the hand moves on without an answer: some versions of WebKitGTK answer only when their answer changes.
const PATIENCE: u32 = 5;

impl Display {
    /// Drags files and folders onto the middle of a window, and drops them there once it takes them.
    ///
    /// # Panics
    /// If no such window takes drops, if it refuses the files, or if a path is relative.
    pub async fn drop_files(&self, title: &str, paths: &[PathBuf]) {
        let drag = until(
            &format!("a window \"{title}\" that takes drops"),
            async || Drag::begin(self, title, paths),
        )
        .await;
        let (mut accepts, mut steps, mut looks) = (false, 0, 0);
        until("the window's consent to the drop", async || {
            let status = drag.answer("XdndStatus");
            if let Some([_, flags, ..]) = status {
                accepts = flags & 1 == 1;
            }
            if accepts && steps >= STEPS {
                return Some(());
            }
            looks += 1;
            if steps == 0 || status.is_some() || looks > PATIENCE {
                drag.move_on(steps);
                (steps, looks) = (steps + 1, 0);
            }
            None
        })
        .await;
        drag.send("XdndDrop", [drag.source, 0, x11rb::CURRENT_TIME, 0, 0]);
        let [_, flags, ..] =
            until("the end of the drop", async || drag.answer("XdndFinished")).await;
        assert_eq!(flags & 1, 1, "the window \"{title}\" refused the files");
    }
}

/// A drag that has entered its target.
struct Drag {
    connection: RustConnection,
    root: Window,
    source: Window,
    target: Window,
    /// The middle of the target, on the screen.
    middle: (i16, i16),
    /// The files' URLs, in the form of [`FILES`].
    list: String,
}

impl Drag {
    /// Returns `None` where no such window takes drops.
    fn begin(display: &Display, title: &str, paths: &[PathBuf]) -> Option<Self> {
        let (connection, root) = display.connect();
        let mut windows = shown(&connection, root).into_iter();
        let (target, _) = windows.find(|(_, shown)| shown == title)?;
        let aware = atom(&connection, "XdndAware");
        let aware = connection
            .get_property(false, target, aware, AtomEnum::ATOM, 0, 1)
            .expect("the display")
            .reply()
            .ok()?;
        let version = aware.value32()?.next()?.min(VERSION);
        let area = connection.get_geometry(target).ok()?.reply().ok()?;
        let half = |length: u16| i16::try_from(length / 2).expect("a length on the screen");
        let middle = connection
            .translate_coordinates(target, root, half(area.width), half(area.height))
            .ok()?
            .reply()
            .ok()?;
        let source = connection.generate_id().expect("an id");
        connection
            .create_window(
                x11rb::COPY_DEPTH_FROM_PARENT,
                source,
                root,
                0,
                0,
                1,
                1,
                0,
                WindowClass::INPUT_OUTPUT,
                x11rb::COPY_FROM_PARENT,
                &CreateWindowAux::new(),
            )
            .expect("the display");
        let selection = atom(&connection, "XdndSelection");
        connection
            .set_selection_owner(source, selection, x11rb::CURRENT_TIME)
            .expect("the display");
        let urls = paths.iter().map(|path| {
            let url = Url::from_file_path(path).expect("an absolute path");
            String::from(url)
        });
        let urls: Vec<_> = urls.collect();
        let files = atom(&connection, FILES);
        let drag = Self {
            connection,
            root,
            source,
            target,
            middle: (middle.dst_x, middle.dst_y),
            list: urls.join("\r\n") + "\r\n",
        };
        drag.send("XdndEnter", [source, version << 24, files, 0, 0]);
        Some(drag)
    }

    fn send(&self, kind: &str, data: [u32; 5]) {
        let kind = atom(&self.connection, kind);
        let message = ClientMessageEvent::new(32, self.target, kind, data);
        self.connection
            .send_event(false, self.target, EventMask::NO_EVENT, message)
            .expect("the display");
        settle(&self.connection);
    }

    /// Moves the pointer and the drag to another place near the middle.
    fn move_on(&self, step: i16) {
        let (x, y) = (self.middle.0 + step % 10 * 4, self.middle.1);
        self.connection
            .xtest_fake_input(MOTION_NOTIFY_EVENT, 0, 0, self.root, x, y, 0)
            .expect("the display");
        let on_screen = |at: i16| u32::try_from(at).expect("a place on the screen");
        let place = (on_screen(x) << 16) | on_screen(y);
        let copy = atom(&self.connection, "XdndActionCopy");
        let data = [self.source, 0, place, x11rb::CURRENT_TIME, copy];
        self.send("XdndPosition", data);
    }

    /// Gives the files to a program that requests them, and returns the target's last message of this kind since the last look.
    fn answer(&self, kind: &str) -> Option<[u32; 5]> {
        let kind = atom(&self.connection, kind);
        let mut found = None;
        while let Some(event) = self.connection.poll_for_event().expect("the display") {
            match event {
                Event::SelectionRequest(request) => self.hand_over(&request),
                Event::ClientMessage(message) if message.type_ == kind => {
                    found = Some(message.data.as_data32());
                }
                _ => {}
            }
        }
        found
    }

    fn hand_over(&self, request: &SelectionRequestEvent) {
        let is_known = request.target == atom(&self.connection, FILES);
        if is_known {
            self.connection
                .change_property8(
                    PropMode::REPLACE,
                    request.requestor,
                    request.property,
                    request.target,
                    self.list.as_bytes(),
                )
                .expect("the display");
        }
        let notice = SelectionNotifyEvent {
            response_type: SELECTION_NOTIFY_EVENT,
            sequence: 0,
            time: request.time,
            requestor: request.requestor,
            selection: request.selection,
            target: request.target,
            property: if is_known {
                request.property
            } else {
                x11rb::NONE
            },
        };
        self.connection
            .send_event(false, request.requestor, EventMask::NO_EVENT, notice)
            .expect("the display");
        settle(&self.connection);
    }
}
