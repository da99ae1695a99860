//! The menu as the system shows it. It is made to match a list of items in place, so that an open menu stays open.

use crate::{platform, view::item::Item};
use tauri::{
    AppHandle, Wry,
    menu::{CheckMenuItem, IsMenuItem, Menu, MenuItem, MenuItemKind, PredefinedMenuItem, Submenu},
};

/// The menu and what it shows.
pub(crate) struct ShownMenu {
    pub(crate) menu: Menu<Wry>,
    items: Vec<ShownItem>,
}

impl ShownMenu {
    pub(crate) fn new(app: &AppHandle, items: &[Item]) -> tauri::Result<Self> {
        let mut shown = Self {
            menu: Menu::new(app)?,
            items: Vec::new(),
        };
        shown.show(app, items)?;
        Ok(shown)
    }

    /// Changes what differs.
    pub(crate) fn show(&mut self, app: &AppHandle, items: &[Item]) -> tauri::Result<()> {
        show(app, &self.menu, &mut self.items, items)
    }
}

/// One item, and what it shows.
struct ShownItem {
    item: Item,
    native: MenuItemKind<Wry>,
    /// A submenu's.
    items: Vec<ShownItem>,
}

/// A menu or a submenu.
trait Parent {
    fn insert_item(&self, item: &dyn IsMenuItem<Wry>, position: usize) -> tauri::Result<()>;
    fn remove_item(&self, item: &dyn IsMenuItem<Wry>) -> tauri::Result<()>;
}

impl Parent for Menu<Wry> {
    fn insert_item(&self, item: &dyn IsMenuItem<Wry>, position: usize) -> tauri::Result<()> {
        self.insert(item, position)
    }
    fn remove_item(&self, item: &dyn IsMenuItem<Wry>) -> tauri::Result<()> {
        self.remove(item)
    }
}

impl Parent for Submenu<Wry> {
    fn insert_item(&self, item: &dyn IsMenuItem<Wry>, position: usize) -> tauri::Result<()> {
        self.insert(item, position)
    }
    fn remove_item(&self, item: &dyn IsMenuItem<Wry>) -> tauri::Result<()> {
        self.remove(item)
    }
}

/// An item stays if one with its key is wanted. The others are removed.
fn show(
    app: &AppHandle,
    parent: &dyn Parent,
    shown: &mut Vec<ShownItem>,
    wanted: &[Item],
) -> tauri::Result<()> {
    for (position, item) in wanted.iter().enumerate() {
        let key = item.key();
        let mut rest = shown.iter().skip(position);
        if let Some(unwanted) = rest.position(|shown| shown.item.key() == key) {
            for gone in shown.drain(position..position + unwanted) {
                parent.remove_item(&gone.native)?;
            }
            if let Some(shown) = shown.get_mut(position) {
                if shown.keeps_its_place(item) {
                    shown.update(app, item)?;
                } else {
                    parent.remove_item(&shown.native)?;
                    *shown = ShownItem::new(app, item)?;
                    parent.insert_item(&shown.native, position)?;
                }
            }
        } else {
            let new = ShownItem::new(app, item)?;
            parent.insert_item(&new.native, position)?;
            shown.insert(position, new);
        }
    }
    for gone in shown.drain(wanted.len()..) {
        parent.remove_item(&gone.native)?;
    }
    Ok(())
}

impl ShownItem {
    fn new(app: &AppHandle, item: &Item) -> tauri::Result<Self> {
        let id = item.key();
        let plain = |text: &str, enabled: bool| {
            MenuItem::with_id(app, &id, label(text), enabled, None::<&str>)
        };
        let mut inside = Vec::new();
        let native = match item {
            Item::Text { text, .. } => MenuItemKind::MenuItem(plain(text, false)?),
            Item::Action { text, .. } => MenuItemKind::MenuItem(plain(text, true)?),
            Item::Check { text, checked, .. } => MenuItemKind::Check(CheckMenuItem::with_id(
                app,
                &id,
                label(text),
                true,
                *checked,
                None::<&str>,
            )?),
            Item::Submenu { text, items, .. } => {
                let submenu = Submenu::with_id(app, &id, label(text), true)?;
                show(app, &submenu, &mut inside, items)?;
                MenuItemKind::Submenu(submenu)
            }
            Item::Separator { .. } => MenuItemKind::Predefined(PredefinedMenuItem::separator(app)?),
        };
        Ok(Self {
            item: item.clone(),
            native,
            items: inside,
        })
    }

    /// Whether the native item can become the wanted one.
    fn keeps_its_place(&self, wanted: &Item) -> bool {
        match (&self.item, wanted) {
            (Item::Submenu { text: old, .. }, Item::Submenu { text, .. }) => {
                platform::RENAMES_SUBMENUS || old == text
            }
            _ => true,
        }
    }

    fn update(&mut self, app: &AppHandle, wanted: &Item) -> tauri::Result<()> {
        let differs = self.item != *wanted;
        match (&self.native, wanted) {
            (MenuItemKind::MenuItem(item), Item::Text { text, .. } | Item::Action { text, .. })
                if differs =>
            {
                item.set_text(label(text))?;
            }
            (MenuItemKind::Check(item), Item::Check { text, checked, .. }) => {
                if differs {
                    item.set_text(label(text))?;
                }
                // A click on an item toggles its check, whatever comes of it.
                if item.is_checked()? != *checked {
                    item.set_checked(*checked)?;
                }
            }
            (MenuItemKind::Submenu(item), Item::Submenu { text, items, .. }) => {
                if !matches!(&self.item, Item::Submenu { text: old, .. } if old == text) {
                    item.set_text(label(text))?;
                }
                show(app, item, &mut self.items, items)?;
            }
            _ => {}
        }
        if differs {
            self.item = wanted.clone();
        }
        Ok(())
    }
}

/// Escapes a text for a menu, where a single `&` would mark a shortcut.
fn label(text: &str) -> String {
    text.replace('&', "&&")
}
