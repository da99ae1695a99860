//! What macOS says of the app as a login item, and what follows from it.

use crate::login_item::Refusal;

/// What macOS's Service Management framework says of the app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Registration {
    Enabled,
    /// The user or the administrator of the Mac has not allowed it.
    RequiresApproval,
    Missing,
}

/// Why the framework has not registered the app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RegistrationError {
    DeniedByUser,
    Other(String),
}

pub(crate) const APPROVAL: &str = "allow Tierbar in System Settings → General → Login Items, then try again; if this Mac is managed, its \
    administrator decides";

/// Returns whether the framework has taken the app: by what it says after a registration, and the error of that.
///
/// What the user has decided holds for all places; all else only for this one.
pub(crate) fn judge(now: Registration, error: Option<RegistrationError>) -> Result<(), Refusal> {
    match (now, error) {
        (Registration::Enabled, _) => Ok(()),
        (Registration::RequiresApproval, _)
        | (Registration::Missing, Some(RegistrationError::DeniedByUser)) => {
            Err(Refusal::Everywhere(APPROVAL.to_owned()))
        }
        (Registration::Missing, Some(RegistrationError::Other(reason))) => {
            Err(Refusal::Here(reason))
        }
        (Registration::Missing, None) => Err(Refusal::Here("macOS did not keep it".to_owned())),
    }
}

/// Returns whether a launch agent starts the app: its file is there, and it is not turned off in System Settings.
pub(crate) fn agent_starts(has_file: bool, disabled: impl FnOnce() -> bool) -> bool {
    has_file && !disabled()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_users_decision_holds_for_all_places() {
        let other = || Some(RegistrationError::Other("signed ad hoc".to_owned()));
        let denied = || Some(RegistrationError::DeniedByUser);
        for error in [None, other(), denied()] {
            assert_eq!(judge(Registration::Enabled, error.clone()), Ok(()));
            let refused = judge(Registration::RequiresApproval, error);
            assert_eq!(refused, Err(Refusal::Everywhere(APPROVAL.to_owned())));
        }
        let missing = |error| judge(Registration::Missing, error).unwrap_err();
        assert_eq!(missing(denied()), Refusal::Everywhere(APPROVAL.to_owned()));
        assert_eq!(missing(other()), Refusal::Here("signed ad hoc".to_owned()));
        assert!(matches!(missing(None), Refusal::Here(_)));
        assert!(APPROVAL.contains("its administrator decides"));
    }

    #[test]
    fn an_agent_that_is_turned_off_starts_nothing() {
        assert!(agent_starts(true, || false));
        assert!(!agent_starts(true, || true));
        assert!(!agent_starts(false, || panic!("it is asked about no file")));
    }
}
