//! Settings that are texts in JSON and in the configuration.

use super::{ChainBudget, IdleUnload, QuietHours, Shortcut, Size, Span, Step, TimeOfDay};

macro_rules! written_as_displayed {
    ($($setting:ident)+) => {$(
        impl From<$setting> for String {
            fn from(setting: $setting) -> Self {
                setting.to_string()
            }
        }
    )+};
}

written_as_displayed!(QuietHours Shortcut Size Span Step TimeOfDay);

/// The derive describes an enum by its variants, and a struct by its fields.
macro_rules! described_as_text {
    ($($setting:ident)+) => {$(
        impl utoipa::PartialSchema for $setting {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                String::schema()
            }
        }

        impl utoipa::ToSchema for $setting {}
    )+};
}

described_as_text!(ChainBudget IdleUnload Step);
