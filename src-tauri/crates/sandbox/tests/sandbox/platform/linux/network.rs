//! Connections to the proxy in all the ways of Linux, and to a server with a public address, in a network of the test's own.

use crate::{
    launcher,
    network::{ASK, skip_without_network},
    place::Place,
};
use std::{
    fs,
    io::{Read, Write},
    process::{Command, Stdio},
};
use tierbar_sandbox::{Request, report};
use tierbar_skip::skip;

/// In other ways than one socket of one thread that waits.
#[test]
fn every_kind_of_program_is_connected_to_its_proxy() {
    let Some(place) = Place::with_network() else {
        return skip_without_network();
    };
    // Without waiting, by IPv6 in the form that Java uses, from a thread, and from a process whose parent is gone.
    let script = r#"
import os, select, socket, sys, threading, time
port = int(os.environ["HTTP_PROXY"].rpartition(":")[2])
def ask(name, family=socket.AF_INET, host="127.0.0.1", waits=True):
    client = socket.socket(family)
    client.setblocking(waits)
    client.connect_ex((host, port))
    select.select([], [client], [])
    client.setblocking(True)
    client.sendall(b"CONNECT 127.0.0.1:443 HTTP/1.1\r\n\r\n")
    print(name, client.recv(12).decode(), flush=True)
ask("waits")
ask("does not wait", waits=False)
ask("mapped", socket.AF_INET6, "::ffff:127.0.0.1")
thread = threading.Thread(target=ask, args=("thread",))
thread.start()
thread.join()
ready, done = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(0.2)
        ask("orphan")
        os.write(done, b"x")
    os._exit(0)
os.wait()
os.read(ready, 1)
"#;
    let found = Command::new("/usr/bin/python3").arg("--version").output();
    if !found.is_ok_and(|found| found.status.success()) {
        return skip("there is no /usr/bin/python3");
    }
    let path = place.work.join("ask.py");
    fs::write(&path, script).unwrap();
    let finished = place.run("/usr/bin/python3 -I ask.py");
    let names = ["waits", "does not wait", "mapped", "thread", "orphan"];
    let expected = names.map(|name| format!("{name} HTTP/1.1 403\n")).concat();
    assert_eq!(finished.stdout.text, expected, "{finished:?}");
}

/// Two namespaces: in one is the sandbox, in the other a server with a public address.
const NAMESPACES: &str = r#"
unshare -n perl -e '
    use IO::Socket::INET;
    sleep(1) until system("ip link show inner > /dev/null 2>&1") == 0;
    system("ip link set lo up; ip addr add 11.0.0.2/24 dev inner; ip addr add 2600:1::2/64 dev inner nodad; ip link set inner up");
    my $server = IO::Socket::INET->new(LocalPort => 80, Listen => 9, ReuseAddr => 1) or die;
    while (my $client = $server->accept) {
        while (<$client>) { last if /^\r?\n$/ }
        print $client "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nfrom outside";
        close $client;
    }
' > /dev/null 2>&1 &
server=$!
until [ "$(readlink /proc/$server/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
ip link set lo up && ip link add name outer type veth peer name inner && ip link set inner netns $server || { kill $server; exit 9; }
ip addr add 11.0.0.1/24 dev outer; ip addr add 2600:1::1/64 dev outer nodad; ip link set outer up
until perl -MIO::Socket::INET -e 'exit !IO::Socket::INET->new("11.0.0.2:80")'; do sleep 0.05; done
"$LAUNCHER"
kill $server
"#;

#[test]
fn a_public_server_is_reached_by_the_proxy_alone() {
    let Some(place) = Place::with_network() else {
        return skip_without_network();
    };
    // Its own address of another socket, and the machines of its network of IPv6, which have public ones.
    let script = format!(
        r#"{ASK}
        ask("GET http://11.0.0.2/");
        ask("CONNECT 11.0.0.2:80", "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        ask("GET http://11.0.0.1/");
        ask("GET http://[2600:1::1]/");
        ask("GET http://[2600:1::2]/");
        socket(S, PF_INET, SOCK_STREAM, 6);
        print connect(S, pack_sockaddr_in(80, inet_aton("11.0.0.2"))) ? "direct" : "none", "\n";
        print socket(U, PF_INET, SOCK_DGRAM, 17) ? "UDP" : "none", "\n";
        "#
    );
    let line = format!("perl -e '{script}'");
    let request = Request::shell(&line, place.work.clone(), place.policy.clone());
    let mut child = Command::new("unshare")
        .args(["--map-root-user", "--net", "sh", "-c", NAMESPACES])
        .env("LAUNCHER", launcher())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Its end would end the command.
    let mut stdin = child.stdin.take().unwrap();
    let sent = stdin.write_all(request.line(launcher()).unwrap().as_bytes());
    let mut text = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    let output = child.wait_with_output().unwrap();
    if text.is_empty() || sent.is_err() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return skip(&format!("no network namespaces can be made here: {why}"));
    }
    let finished = report(&text).unwrap();
    assert_eq!(
        finished.stdout.text,
        "GET http://11.0.0.2/: 200 served\nCONNECT 11.0.0.2:80: 200 served\nGET http://11.0.0.1/: 403\nGET http://[2600:1::1]/: 403\nGET http://[2600:1::2]/: 403\nnone\nnone\n",
        "{finished:?}"
    );
    let network = finished.network.unwrap();
    assert_eq!((network.connections, network.refusals.len()), (5, 3));
    assert!(
        network.sent_bytes > 0 && network.received_bytes > 50,
        "{network:?}"
    );
}
