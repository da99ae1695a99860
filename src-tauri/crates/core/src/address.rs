//! Which addresses lie in this machine or its networks. Servers there often trust each client that reaches them.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns whether an address lies outside this machine and its networks.
///
/// Source: IANA's special-purpose address registries. 198.18.0.0/15 counts as public: VPN clients that answer
/// every name with an address of their own take them from there.
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

/// Returns whether an address is one of this machine or of a network like those at home.
pub fn is_near(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}

/// Returns whether an address is of the range of carriers, which overlay networks use as well (RFC 6598).
pub fn is_shared(ip: Ipv4Addr) -> bool {
    let [first, second, ..] = ip.octets();
    first == 100 && (64..128).contains(&second)
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let this_network = ip.octets()[0] == 0;
    // What providers of IPv6 put between us and IPv4, among others.
    let protocols = ip.octets()[..3] == [192, 0, 0];
    let reserved = ip.octets()[0] >= 240;
    let near = is_near(ip.into()) || is_shared(ip);
    !(near || this_network || protocols || reserved || ip.is_multicast())
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let segments = ip.segments();
    // Addresses that carry one of IPv4: compatible, mapped, translated, NAT64, and 6to4.
    let carried = match segments {
        [0, 0, 0, 0, 0, 0 | 0xffff, a, b]
        | [0, 0, 0, 0, 0xffff, 0, a, b]
        | [0x64, 0xff9b, 0, 0, 0, 0, a, b]
        | [0x2002, a, b, ..] => Some((a, b)),
        _ => None,
    };
    if let Some((a, b)) = carried {
        // `::` and `::1` end here too, as addresses of 0.0.0.0/8.
        return is_public_v4(Ipv4Addr::from(u32::from(a) << 16 | u32::from(b)));
    }
    // All others that are routed, without those of Teredo, which carry addresses as well.
    segments[0] & 0xe000 == 0x2000 && segments[..2] != [0x2001, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_public_or_not() {
        for public in [
            "1.1.1.1",
            "100.63.0.1",
            "100.128.0.1",
            "172.32.0.1",
            "198.18.0.5",
            "2606:4700::1",
            "::ffff:1.1.1.1",
            "::ffff:0:1.1.1.1",
            "64:ff9b::1.1.1.1",
            "2002:101:101::1",
            "192.0.1.1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for private in [
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "192.168.1.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::8.8.8.8",
            "2002:7f00:1::1",
            "2002:a9fe:a9fe::1",
            "2001:0:7f00:1::1",
            "192.0.0.1",
            "240.0.0.1",
            "fc00::1",
            "fd00::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }
}
