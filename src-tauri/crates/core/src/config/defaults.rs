//! Tables of the configuration, each of whose keys has a default.

/// Defines a table. A key without a default here has that of its type: it is empty, off or 0.
macro_rules! with_defaults {
    (
        $(#[$($about:tt)*])*
        pub struct $name:ident {
            $($(#[$($of:tt)*])* pub $key:ident: $type:ty $(= $default:expr)?,)+
        }
    ) => {
        $(#[$($about)*])*
        #[serde(default)]
        pub struct $name {
            $($(#[$($of)*])* pub $key: $type,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $crate::config::defaults::or_default!($($default)?),)+ }
            }
        }
    };
}

macro_rules! or_default {
    () => {
        Default::default()
    };
    ($default:expr) => {
        $default
    };
}

pub(crate) use or_default;
pub(super) use with_defaults;
