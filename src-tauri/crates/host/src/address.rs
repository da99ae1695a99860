//! The address of the API.

use crate::platform;
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};
use tierbar_core::{Code, Error};
use tokio::{net::TcpListener, task::spawn_blocking};

/// The ports that are tried if another user has the default one.
const NEXT_PORTS: u16 = 9;

/// Parses `ADDRESS:PORT`; `localhost` is 127.0.0.1.
pub(crate) fn parse(listen: &str) -> Result<SocketAddr, String> {
    let listen = listen.trim();
    let numeric = match listen.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => listen.to_owned(),
    };
    numeric.parse().map_err(|_| {
        format!("\"{listen}\" is not an address: use one such as 127.0.0.1:11435 or 0.0.0.0:11435")
    })
}

/// Checks that an address that other machines can reach is allowed.
///
/// # Errors
/// What the address means, and what to set.
pub(crate) fn check_network(address: SocketAddr, network: bool) -> Result<(), String> {
    if network || address.ip().is_loopback() {
        return Ok(());
    }
    let port = address.port();
    Err(format!(
        "at {address}, any machine on this network can reach Tierbar with a key or the token. To allow it, set `network = true` \
         under [server]; otherwise listen on 127.0.0.1:{port}"
    ))
}

pub(crate) fn notice(address: SocketAddr, fingerprint: Option<&str>) -> Option<String> {
    let who = match address.ip().is_loopback() {
        true if fingerprint.is_none() => return None,
        true => "Programs on this machine",
        false => "Other machines",
    };
    Some(match fingerprint {
        Some(fingerprint) => format!(
            "{who} can reach Tierbar at https://{address}; the SHA-256 fingerprint of its certificate is {fingerprint}"
        ),
        None => format!(
            "{who} can reach Tierbar at {address}, and prompts, answers and keys are sent unencrypted: set `tls = true` \
             under [server] in config.toml unless you trust this network"
        ),
    })
}

/// # Errors
/// `PortTaken` with the program; `ConfigInvalid` if this machine has no such address or the port needs root.
pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    match TcpListener::bind(address).await {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            Err(port_taken_error(address).await)
        }
        bound => bound.map_err(|error| {
            let message = format!("cannot listen on {address}: {error}");
            Error::new(Code::ConfigInvalid, message)
                .hint("choose another address with --listen or as `listen` in config.toml")
        }),
    }
}

/// Listens on one of the next ports, and returns a notice of it: another user of this machine has the first one, such as with a
/// Tierbar of theirs.
///
/// # Errors
/// Those of [`bind`] for the first port, if none is free.
pub(crate) async fn bind_beside(
    address: SocketAddr,
    taken: Error,
) -> Result<(TcpListener, String), Error> {
    for port in address.port().saturating_add(1)..=address.port().saturating_add(NEXT_PORTS) {
        if let Ok(listener) = TcpListener::bind(SocketAddr::new(address.ip(), port)).await {
            let notice = format!(
                "Another user of this computer uses port {}, so Tierbar answers on port {port}: set it in your other programs",
                address.port()
            );
            return Ok((listener, notice));
        }
    }
    Err(taken)
}

/// Returns the error that another program has the address, with its name.
pub(crate) async fn port_taken_error(address: SocketAddr) -> Error {
    let port = address.port();
    let owner = spawn_blocking(move || platform::listener(port)).await;
    let owner = owner.ok().flatten();
    let by = match &owner {
        Some(owner) => format!("{} (pid {})", owner.command, owner.pid),
        None => "another program".to_owned(),
    };
    let message = format!("port {port} on {} is taken by {by}", address.ip());
    let error = Error::new(Code::PortTaken, message).hint(
        "quit that program, or choose another port with --listen or as `listen` in config.toml; port 0 picks a free one",
    );
    match owner {
        Some(owner) => error
            .detail("pid", owner.pid)
            .detail("command", owner.command),
        None => error,
    }
}

/// Returns the base URL for programs on this machine.
pub(crate) fn url(address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_in_their_usual_forms() {
        for (text, url_of_it) in [
            ("127.0.0.1:11435", "http://127.0.0.1:11435"),
            (" localhost:80 ", "http://127.0.0.1:80"),
            ("0.0.0.0:11435", "http://127.0.0.1:11435"),
            ("[::]:1", "http://[::1]:1"),
            ("10.0.0.7:1", "http://10.0.0.7:1"),
        ] {
            assert_eq!(url(parse(text).unwrap()), url_of_it, "{text}");
        }
        for wrong in [
            "",
            "11435",
            "127.0.0.1",
            "example.com:80",
            "127.0.0.1:65536",
            "http://127.0.0.1:1",
        ] {
            assert!(parse(wrong).is_err(), "{wrong} was accepted");
        }
    }

    #[test]
    fn a_public_address_needs_consent_and_has_a_notice() {
        for (address, beyond) in [
            ("127.0.0.1:1", false),
            ("127.1.2.3:1", false),
            ("[::1]:1", false),
            ("0.0.0.0:1", true),
            ("[::]:1", true),
            ("192.168.1.5:1", true),
            ("[::ffff:192.168.1.5]:1", true),
        ] {
            let parsed = parse(address).unwrap();
            assert_eq!(check_network(parsed, false).is_err(), beyond, "{address}");
            assert_eq!(check_network(parsed, true), Ok(()), "{address}");
            let open = notice(parsed, None);
            assert_eq!(
                open.is_some_and(|notice| notice.contains("unencrypted")),
                beyond
            );
            let notice = notice(parsed, Some("AB:CD")).unwrap();
            assert!(
                notice.contains("AB:CD") && !notice.contains("unencrypted"),
                "{notice}"
            );
        }
    }

    #[tokio::test]
    async fn a_taken_port_is_reported_with_its_program() {
        let first = bind(parse("127.0.0.1:0").unwrap()).await.unwrap();
        let error = bind(first.local_addr().unwrap()).await.unwrap_err();
        assert_eq!(error.code, Code::PortTaken);
        assert_eq!(error.details["pid"], std::process::id());
        assert!(
            error
                .message
                .contains(&format!("(pid {})", std::process::id())),
            "{error}"
        );
    }

    #[tokio::test]
    async fn an_address_of_another_machine_is_reported_as_such() {
        let error = bind(parse("192.0.2.1:1").unwrap()).await.unwrap_err();
        assert_eq!(error.code, Code::ConfigInvalid);
    }
}
