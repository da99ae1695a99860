//! Heat as the system grades it, and its power sources.

use objc2_core_foundation::{CFArray, CFDictionary, CFNumber, CFRetained, CFString, CFType};
use objc2_foundation::{NSProcessInfo, NSProcessInfoThermalState};
use objc2_io_kit::{
    IOPSCopyPowerSourcesInfo, IOPSCopyPowerSourcesList, IOPSGetPowerSourceDescription,
    IOPSGetProvidingPowerSourceType,
};
use tierbar_core::reading::{Power, Thermal};

pub(crate) fn thermal() -> Option<Thermal> {
    match NSProcessInfo::processInfo().thermalState() {
        NSProcessInfoThermalState::Nominal => Some(Thermal::Nominal),
        NSProcessInfoThermalState::Fair => Some(Thermal::Fair),
        NSProcessInfoThermalState::Serious => Some(Thermal::Serious),
        NSProcessInfoThermalState::Critical => Some(Thermal::Critical),
        _ => None,
    }
}

pub(crate) fn power() -> Option<Power> {
    let sources = IOPSCopyPowerSourcesInfo()?;
    // SAFETY: it is what the call before gave.
    let providing = unsafe { IOPSGetProvidingPowerSourceType(Some(&sources)) }?;
    // SAFETY: as above.
    let list = unsafe { IOPSCopyPowerSourcesList(Some(&sources)) }?;
    // SAFETY: the list's members are objects.
    let list: CFRetained<CFArray<CFType>> = unsafe { CFRetained::cast_unchecked(list) };
    let providing = providing.to_string();
    // The level of what supplies the machine: an uninterruptible supply has one too.
    let supplies = match providing.as_str() {
        "UPS Power" => "UPS",
        _ => "InternalBattery",
    };
    let levels = list.iter().filter_map(|source| {
        // SAFETY: the source is a member of the list that was made of these sources.
        let description = unsafe { IOPSGetPowerSourceDescription(Some(&sources), Some(&source)) }?;
        // SAFETY: a description has strings as keys and objects as values.
        let description: CFRetained<CFDictionary<CFString, CFType>> =
            unsafe { CFRetained::cast_unchecked(description) };
        let kind = description.get(&CFString::from_static_str("Type"))?;
        if kind.downcast_ref::<CFString>()?.to_string() != supplies {
            return None;
        }
        let number = |key: &'static str| {
            let value = description.get(&CFString::from_static_str(key))?;
            value.downcast_ref::<CFNumber>()?.as_i64()
        };
        let (now, full) = (number("Current Capacity")?, number("Max Capacity")?);
        u8::try_from((now.checked_mul(100)?).checked_div(full)?).ok()
    });
    Some(Power {
        on_battery: matches!(providing.as_str(), "Battery Power" | "UPS Power"),
        level_percent: levels.max(),
    })
}
