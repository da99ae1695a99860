//! Notifications through the User Notifications framework.

use block2::RcBlock;
use objc2::runtime::Bool;
use objc2_foundation::{NSBundle, NSError, NSString};
use objc2_user_notifications::{
    UNAuthorizationOptions, UNMutableNotificationContent, UNNotificationRequest,
    UNUserNotificationCenter,
};

/// Shows a notification, for which the system asks the user the first time.
///
/// # Errors
/// The app runs outside its bundle. What the user or the system refuses is logged.
pub(crate) fn notify(title: &str, body: &str) -> Result<(), String> {
    // Without one, the framework raises an exception.
    if NSBundle::mainBundle().bundleIdentifier().is_none() {
        return Err("macOS shows notifications of apps in a bundle only".to_owned());
    }
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
    UNUserNotificationCenter::currentNotificationCenter()
        .requestAuthorizationWithOptions_completionHandler(UNAuthorizationOptions::Alert, &shown);
    Ok(())
}
