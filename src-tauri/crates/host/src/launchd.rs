//! launchd, as far as it is asked about agents of this user.

/// Returns the domain of those who are logged in on the screen.
pub fn user_domain() -> String {
    format!("gui/{}", rustix::process::getuid().as_raw())
}

/// Returns whether a service is turned off, in System Settings or by `launchctl disable`: by what `launchctl print-disabled` lists.
/// Older systems write `true` for disabled.
pub fn is_disabled(listed: &str, label: &str) -> bool {
    let label = format!("\"{label}\" => ");
    let mut lines = listed.lines();
    let state = lines.find_map(|line| line.trim().strip_prefix(label.as_str()));
    state.is_some_and(|state| ["disabled", "true"].contains(&state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_disabled_by_its_own_line() {
        let listed = |state: &str| {
            format!(
                "\n\tdisabled services = {{\n\t\t\"Tierbar Beta\" => disabled\n\t\t\"Tierbar\" => {state}\n\t}}\n\
                 \tlogin item associations = {{\n\t}}\n"
            )
        };
        for (state, disabled) in [
            ("disabled", true),
            ("true", true),
            ("enabled", false),
            ("false", false),
        ] {
            assert_eq!(is_disabled(&listed(state), "Tierbar"), disabled, "{state}");
        }
        assert!(!is_disabled(&listed("disabled"), "dev.tierbar.serve"));
        assert!(!is_disabled("", "Tierbar"));
    }
}
