//! Notifications through the User Notifications framework.

#![expect(
    unsafe_code,
    reason = "the framework's callbacks pass pointers, and its delegate is a class"
)]

use block2::{DynBlock, RcBlock};
use objc2::{
    AllocAnyThread, define_class, msg_send,
    rc::Retained,
    runtime::{Bool, NSObject, NSObjectProtocol, ProtocolObject},
};
use objc2_foundation::{NSBundle, NSError, NSString};
use objc2_user_notifications::{
    UNAuthorizationOptions, UNAuthorizationStatus, UNMutableNotificationContent, UNNotification,
    UNNotificationPresentationOptions, UNNotificationRequest, UNNotificationSettings,
    UNUserNotificationCenter, UNUserNotificationCenterDelegate,
};
use std::{mem, ptr::NonNull, sync::mpsc, time::Duration};

/// How long the system may take to answer, and the user.
const ANSWER: Duration = Duration::from_secs(5);
const USERS_ANSWER: Duration = Duration::from_secs(600);

/// Returns the center; `None` outside a bundle, where the framework would raise an exception.
fn center() -> Option<Retained<UNUserNotificationCenter>> {
    NSBundle::mainBundle().bundleIdentifier()?;
    Some(UNUserNotificationCenter::currentNotificationCenter())
}

/// Shows a notification, for which the system asks the user the first time.
///
/// # Errors
/// The app runs outside its bundle. What the user or the system refuses is logged; the settings show it.
pub(crate) fn notify(title: &str, body: &str) -> Result<(), String> {
    let Some(center) = center() else {
        return Err("macOS shows notifications of apps in a bundle only".to_owned());
    };
    let content = UNMutableNotificationContent::new();
    content.setTitle(&NSString::from_str(title));
    content.setBody(&NSString::from_str(body));
    // One with the name of an earlier one would replace it.
    let name = NSString::from_str(&format!("{title}: {body}"));
    let request =
        UNNotificationRequest::requestWithIdentifier_content_trigger(&name, &content, None);
    let shown = RcBlock::new(move |granted: Bool, _: *mut NSError| {
        if !granted.as_bool() {
            tracing::info!("notifications of Tierbar are off in System Settings");
            return;
        }
        let added = RcBlock::new(|error: *mut NSError| {
            if !error.is_null() {
                tracing::warn!("macOS refused a notification");
            }
        });
        UNUserNotificationCenter::currentNotificationCenter()
            .addNotificationRequest_withCompletionHandler(&request, Some(&added));
    });
    center.requestAuthorizationWithOptions_completionHandler(UNAuthorizationOptions::Alert, &shown);
    Ok(())
}

/// Whether the user lets the app notify, in System Settings → Notifications; `None` if never asked. `ask`: asks then. Blocking.
pub(crate) fn notification_permission(ask: bool) -> Option<bool> {
    let Some(center) = center() else {
        return Some(false);
    };
    let (answer, answered) = mpsc::channel();
    if ask {
        let asked = RcBlock::new(move |granted: Bool, _: *mut NSError| {
            // The other side may no longer wait.
            let _ = answer.send(Some(granted.as_bool()));
        });
        center.requestAuthorizationWithOptions_completionHandler(
            UNAuthorizationOptions::Alert,
            &asked,
        );
    } else {
        let read = RcBlock::new(move |settings: NonNull<UNNotificationSettings>| {
            // SAFETY: the framework passes an object that lives as long as this call.
            let status = unsafe { settings.as_ref() }.authorizationStatus();
            let is_answered = status != UNAuthorizationStatus::NotDetermined;
            let _ = answer.send(is_answered.then_some(status != UNAuthorizationStatus::Denied));
        });
        center.getNotificationSettingsWithCompletionHandler(&read);
    }
    let answer = answered.recv_timeout(if ask { USERS_ANSWER } else { ANSWER });
    answer.ok().flatten()
}

define_class!(
    // SAFETY: NSObject asks nothing of a subclass, and this one has no `Drop`.
    #[unsafe(super(NSObject))]
    #[name = "TierbarNotificationDelegate"]
    struct Delegate;

    // SAFETY: the protocol asks nothing.
    unsafe impl NSObjectProtocol for Delegate {}

    // SAFETY: the method has the protocol's types.
    unsafe impl UNUserNotificationCenterDelegate for Delegate {
        #[unsafe(method(userNotificationCenter:willPresentNotification:withCompletionHandler:))]
        fn will_present(
            &self,
            _center: &UNUserNotificationCenter,
            _notification: &UNNotification,
            show: &DynBlock<dyn Fn(UNNotificationPresentationOptions)>,
        ) {
            let banner = UNNotificationPresentationOptions::Banner;
            show.call((banner | UNNotificationPresentationOptions::List,));
        }
    }
);

/// Has banners shown while one of the app's windows is in front, too. Call it once, before the app runs.
pub(super) fn show_in_front() {
    let Some(center) = center() else { return };
    let new = Delegate::alloc().set_ivars(());
    // SAFETY: `init` of NSObject has this type.
    let delegate: Retained<Delegate> = unsafe { msg_send![super(new), init] };
    center.setDelegate(Some(ProtocolObject::from_ref(&*delegate)));
    // The center does not hold it.
    mem::forget(delegate);
}
