//! Commands with the network, which they have by a proxy alone.

use crate::place::{Place, skip_unsandboxed};
use tierbar_sandbox::{Network, enforcement};
use tierbar_skip::skip;

/// Asks the proxy, and prints the status of its answer and whether the server outside has answered.
pub(crate) const ASK: &str = r#"
use Socket;
sub connected {
    my ($port) = $ENV{https_proxy} =~ m{^http://127\.0\.0\.1:(\d+)$} or die "no proxy";
    socket(my $proxy, PF_INET, SOCK_STREAM, 6) or die $!;
    connect($proxy, pack_sockaddr_in($port, inet_aton("127.0.0.1"))) or die "not connected: $!";
    select((select($proxy), $| = 1)[0]);
    return $proxy;
}
sub ask {
    my ($line, $then) = @_;
    my $proxy = connected();
    print $proxy "$line HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    my $status = <$proxy>;
    print $proxy $then if $then;
    my $all = do { local $/; <$proxy> };
    print "$line: ", $status =~ / (\d+) /, $all =~ /from outside/ ? " served" : "", "\n";
}
"#;

impl Place {
    /// A place whose commands have the network; `None` where none can.
    pub(crate) fn with_network() -> Option<Self> {
        let mut place = Self::new()?;
        let old = enforcement().ok()?.starts_with("Landlock 3 ");
        place.policy.network = Network::Web;
        (!old).then_some(place)
    }
}

pub(crate) fn skip_without_network() {
    if enforcement().is_ok() {
        return skip("commands cannot have the network with this Landlock");
    }
    skip_unsandboxed();
}

#[test]
fn a_refused_server_is_named_in_the_answer_and_the_report() {
    let Some(place) = Place::with_network() else {
        return skip_without_network();
    };
    let script = format!(
        r#"{ASK} ask("CONNECT 127.0.0.1:443"); ask("GET http://169.254.169.254/latest"); ask("CONNECT 1.1.1.1:25"); print "[$ENV{{NO_PROXY}}]\n""#
    );
    let finished = place.run(&format!("perl -e '{script}'"));
    assert_eq!(
        finished.stdout.text,
        "CONNECT 127.0.0.1:443: 403\nGET http://169.254.169.254/latest: 403\nCONNECT 1.1.1.1:25: 403\n[]\n",
        "{finished:?}"
    );
    let network = finished.network.unwrap();
    assert_eq!(network.connections, 2);
    assert_eq!(
        network.refusals,
        [
            "127.0.0.1 is inside this machine or network, which commands do not reach",
            "169.254.169.254 is inside this machine or network, which commands do not reach",
            "port 25 of 1.1.1.1 is not open to commands; 80 and 443 are"
        ]
    );
    let without = Place::new().unwrap().run("env | grep -ci proxy");
    assert_eq!(
        (without.stdout.text.as_str(), without.network),
        ("0\n", None)
    );
}
