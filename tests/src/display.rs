//! An X display without a screen.

mod drag;

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};
use x11rb::{
    connection::Connection,
    protocol::{
        Event,
        xproto::{
            Atom, AtomEnum, BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, ChangeWindowAttributesAux,
            ClientMessageEvent, ConnectionExt, CreateWindowAux, EventMask, ImageFormat,
            KEY_PRESS_EVENT, KEY_RELEASE_EVENT, MOTION_NOTIFY_EVENT, MapState, Window, WindowClass,
        },
        xtest::ConnectionExt as _,
    },
    rust_connection::RustConnection,
};

#[derive(Debug)]
pub struct Display {
    server: Child,
    /// Such as `:99`.
    pub name: String,
}

impl Display {
    /// # Panics
    /// If Xvfb is missing or does not start.
    #[must_use]
    pub fn start() -> Self {
        let mut server = Command::new("Xvfb")
            .args([
                "-displayfd",
                "1",
                "-screen",
                "0",
                "1440x900x24",
                "-nolisten",
                "tcp",
                "-noreset",
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Xvfb: `make setup` installs it");
        let mut number = String::new();
        let stdout = server.stdout.take().expect("a pipe");
        BufReader::new(stdout)
            .read_line(&mut number)
            .expect("Xvfb's display number");
        assert!(!number.trim().is_empty(), "Xvfb did not start");
        Self {
            server,
            name: format!(":{}", number.trim()),
        }
    }

    fn connect(&self) -> (RustConnection, Window) {
        let (connection, screen) = x11rb::connect(Some(&self.name)).expect("the display");
        let root = connection.setup().roots[screen].root;
        (connection, root)
    }

    /// Titles of the windows that can be seen.
    ///
    /// # Panics
    /// If the display has gone.
    #[must_use]
    pub fn windows(&self) -> Vec<String> {
        let (connection, root) = self.connect();
        shown(&connection, root)
            .into_iter()
            .map(|(_, title)| title)
            .collect()
    }

    /// Paints the empty desktop.
    ///
    /// # Panics
    /// If the display has gone.
    pub fn paint(&self, rgb: u32) {
        let (connection, root) = self.connect();
        let colour = ChangeWindowAttributesAux::new().background_pixel(rgb);
        connection
            .change_window_attributes(root, &colour)
            .expect("the display");
        connection
            .clear_area(false, root, 0, 0, 0, 0)
            .expect("the display");
        settle(&connection);
    }

    /// Moves the pointer there and presses the button: 1 is left, 3 is right.
    ///
    /// # Panics
    /// If the display has gone.
    pub fn press(&self, x: i16, y: i16, button: u8) {
        let (connection, root) = self.connect();
        for (event, detail) in [
            (MOTION_NOTIFY_EVENT, 0),
            (BUTTON_PRESS_EVENT, button),
            (BUTTON_RELEASE_EVENT, button),
        ] {
            connection
                .xtest_fake_input(event, detail, 0, root, x, y, 0)
                .expect("the display");
        }
        settle(&connection);
    }

    /// Presses keys together, in this order, and releases them. They are named by their keysyms, of `X11/keysymdef.h`.
    ///
    /// # Panics
    /// If the keyboard has no such key, or the display has gone.
    pub fn press_keys(&self, keysyms: &[u32]) {
        let (connection, root) = self.connect();
        let setup = connection.setup();
        let (first, last) = (setup.min_keycode, setup.max_keycode);
        let keyboard = connection
            .get_keyboard_mapping(first, last - first + 1)
            .expect("the display")
            .reply()
            .expect("the keyboard");
        let of_a_key = usize::from(keyboard.keysyms_per_keycode);
        let codes: Vec<u8> = keysyms
            .iter()
            .map(|keysym| {
                let mut keys = keyboard.keysyms.chunks(of_a_key);
                let at = keys.position(|key| key.contains(keysym));
                first + u8::try_from(at.expect("a key")).expect("a key's code")
            })
            .collect();
        let pressed = codes.iter().map(|code| (KEY_PRESS_EVENT, *code));
        let released = codes.iter().rev().map(|code| (KEY_RELEASE_EVENT, *code));
        for (event, code) in pressed.chain(released) {
            connection
                .xtest_fake_input(event, code, 0, root, 0, 0, 0)
                .expect("the display");
        }
        settle(&connection);
    }

    /// Where the open menus are: x, y, width, height. A menu asks the window manager to leave it alone.
    ///
    /// # Panics
    /// If the display has gone.
    #[must_use]
    pub fn menus(&self) -> Vec<(i16, i16, u16, u16)> {
        let (connection, root) = self.connect();
        let children = connection
            .query_tree(root)
            .expect("the display")
            .reply()
            .expect("the display")
            .children;
        children
            .into_iter()
            .filter_map(|window| {
                let attributes = connection
                    .get_window_attributes(window)
                    .ok()?
                    .reply()
                    .ok()?;
                let area = connection.get_geometry(window).ok()?.reply().ok()?;
                let open =
                    attributes.override_redirect && attributes.map_state == MapState::VIEWABLE;
                (open && area.height > 60).then_some((area.x, area.y, area.width, area.height))
            })
            .collect()
    }

    /// What the screen shows there.
    ///
    /// # Panics
    /// If the area is not on the screen.
    #[must_use]
    pub fn picture(&self, x: i16, y: i16, width: u16, height: u16) -> image::RgbImage {
        let (connection, root) = self.connect();
        let pixels = connection
            .get_image(ImageFormat::Z_PIXMAP, root, x, y, width, height, u32::MAX)
            .expect("the display")
            .reply()
            .expect("an area of the screen")
            .data;
        image::RgbImage::from_fn(width.into(), height.into(), |x, y| {
            let at = (y as usize * usize::from(width) + x as usize) * 4;
            image::Rgb([pixels[at + 2], pixels[at + 1], pixels[at]])
        })
    }

    /// The text on the clipboard, from the program that has it; empty if none has.
    ///
    /// # Panics
    /// If the display has gone.
    #[must_use]
    pub fn clipboard(&self) -> String {
        let (connection, root) = self.connect();
        let window = connection.generate_id().expect("an id");
        let [clipboard, text, here] =
            ["CLIPBOARD", "UTF8_STRING", "TIERBAR_TEXT"].map(|name| atom(&connection, name));
        connection
            .create_window(
                x11rb::COPY_DEPTH_FROM_PARENT,
                window,
                root,
                0,
                0,
                1,
                1,
                0,
                WindowClass::INPUT_ONLY,
                x11rb::COPY_FROM_PARENT,
                &CreateWindowAux::new(),
            )
            .expect("the display");
        connection
            .convert_selection(window, clipboard, text, here, x11rb::CURRENT_TIME)
            .expect("the display");
        settle(&connection);
        while !matches!(
            connection.wait_for_event().expect("the display"),
            Event::SelectionNotify(_)
        ) {}
        let text = connection
            .get_property(true, window, here, AtomEnum::ANY, 0, 4096)
            .expect("the display")
            .reply()
            .expect("the text");
        String::from_utf8_lossy(&text.value).into_owned()
    }

    /// Does what a window's close button does.
    ///
    /// # Panics
    /// If no such window is shown.
    pub fn close_window(&self, title: &str) {
        let (connection, root) = self.connect();
        let (window, _) = shown(&connection, root)
            .into_iter()
            .find(|(_, shown)| shown == title)
            .unwrap_or_else(|| panic!("no window \"{title}\" is shown"));
        let delete = atom(&connection, "WM_DELETE_WINDOW");
        let close = [delete, x11rb::CURRENT_TIME, 0, 0, 0];
        let protocols = atom(&connection, "WM_PROTOCOLS");
        let message = ClientMessageEvent::new(32, window, protocols, close);
        connection
            .send_event(false, window, EventMask::NO_EVENT, message)
            .expect("the display");
        settle(&connection);
    }
}

fn atom(connection: &RustConnection, name: &str) -> Atom {
    connection
        .intern_atom(false, name.as_bytes())
        .expect("the display")
        .reply()
        .expect("an atom")
        .atom
}

/// Waits until the server has handled what was sent: it may ignore the rest of a closed connection.
fn settle(connection: &RustConnection) {
    connection
        .get_input_focus()
        .expect("the display")
        .reply()
        .expect("the display");
}

/// Mapped windows that have a title, at any depth: a window manager puts frames round them.
fn shown(connection: &RustConnection, parent: Window) -> Vec<(Window, String)> {
    let mut found = Vec::new();
    let Ok(tree) = connection.query_tree(parent).expect("the display").reply() else {
        return found;
    };
    for window in tree.children {
        // Any of them may vanish meanwhile.
        let Ok(attributes) = connection
            .get_window_attributes(window)
            .expect("the display")
            .reply()
        else {
            continue;
        };
        let title =
            connection.get_property(false, window, AtomEnum::WM_NAME, AtomEnum::ANY, 0, 256);
        let Ok(title) = title.expect("the display").reply() else {
            continue;
        };
        let title = String::from_utf8_lossy(&title.value).into_owned();
        if attributes.map_state == MapState::VIEWABLE && !title.is_empty() {
            found.push((window, title));
        }
        found.extend(shown(connection, window));
    }
    found
}

impl Drop for Display {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
