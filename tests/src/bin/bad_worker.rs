//! A worker that follows a script: it takes `tierbar-worker`'s arguments and behaves as its model file's name says. As a
//! command, `foreign…`, it may get `--port` instead of `--socket`, and ignores its stdin.
//!
//! Beside the model it leaves `<pid>.alive`, locked while it lives, and `overlap` if another one lives at the same time.

use std::{
    env,
    error::Error,
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpListener,
    os::unix::{net::UnixListener, process::CommandExt},
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
    sync::mpsc,
    thread,
};

/// More than a pipe and its buffers hold.
const FLOOD: usize = 8 << 20;

type Failed = Box<dyn Error>;

enum Place {
    Socket(PathBuf),
    Port(u16),
}

struct Script {
    behaviour: String,
    place: Place,
    context: String,
    dir: PathBuf,
}

trait Connection: Read + Write + Send {}
impl<T: Read + Write + Send> Connection for T {}

fn main() -> Result<(), Failed> {
    let model = PathBuf::from(argument("--model")?);
    let script = Script {
        behaviour: model
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        place: match argument("--port") {
            Ok(port) => Place::Port(port.parse()?),
            Err(_) => Place::Socket(argument("--socket")?.into()),
        },
        context: argument("--context")?,
        dir: model.parent().ok_or("the model lies in no folder")?.into(),
    };
    if script.behaviour.ends_with("ignores-sigterm") && env::var_os("DEAF").is_none() {
        // A program inherits the signals that its shell ignores.
        let deafen = Command::new("sh")
            .args(["-c", "trap '' TERM; exec \"$0\" \"$@\""])
            .args(env::args_os())
            .env("DEAF", "1")
            .exec();
        return Err(deafen.into());
    }
    let _alive = sign_in(&script.dir)?;
    script.play()
}

fn argument(name: &str) -> Result<String, Failed> {
    let found = env::args().skip_while(|argument| argument != name).nth(1);
    Ok(found.ok_or_else(|| format!("{name} is missing"))?)
}

/// Locks a file in this process's name until its end, and checks for other live workers.
fn sign_in(dir: &Path) -> io::Result<File> {
    let mine = dir.join(format!("{}.alive", process::id()));
    let alive = File::create(&mine)?;
    alive.lock()?;
    for entry in fs::read_dir(dir)? {
        let other = entry?.path();
        let sign = other
            .extension()
            .is_some_and(|extension| extension == "alive");
        if sign && other != mine && File::open(&other)?.try_lock().is_err() {
            fs::write(dir.join("overlap"), other.to_string_lossy().as_bytes())?;
        }
    }
    Ok(alive)
}

impl Script {
    fn play(&self) -> Result<(), Failed> {
        match self.behaviour.as_str() {
            "dies-at-start" => {
                mutter("error: the tensors are not what they seem");
                process::exit(3);
            }
            "aborts-at-start" => process::abort(),
            "hangs" | "foreign-hangs" => forever(),
            "hangs-once" => match File::create_new(self.dir.join("hung")) {
                Ok(_) => forever(),
                Err(_) => self.serve(),
            },
            "fails" => {
                say(r#"{"failed":{"code":"model_unsupported","message":"no such architecture"}}"#)?;
                process::exit(1);
            }
            "lies-not-json" => self.lie("llama_model_loader: loaded meta data"),
            "lies-wrong-protocol" => self.lie(&self.ready(999, process::id())),
            "lies-wrong-pid" => self.lie(&self.ready(1, 1)),
            "lies-no-socket" => {
                say(&self.ready(1, process::id()))?;
                forever()
            }
            "lies-without-end" => {
                io::stdout().write_all(&vec![b'x'; FLOOD])?;
                forever()
            }
            "ignores-sigterm" | "foreign-ignores-sigterm" => {
                self.bear()?;
                self.serve()
            }
            "leaves-a-child" => {
                self.bear()?;
                self.serve()
            }
            "is-born" => {
                say("alive")?;
                forever()
            }
            "floods" => {
                flood();
                self.serve()
            }
            _ => self.serve(),
        }
    }

    /// Starts a child in this process's group that ignores the same signals, and waits until it has signed in.
    fn bear(&self) -> Result<(), Failed> {
        let mut child = Command::new(env::current_exe()?)
            .arg("--model")
            .arg(self.dir.join("is-born"))
            .args(["--socket", "none", "--context", "0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("a pipe is missing")?;
        BufReader::new(stdout).read_line(&mut String::new())?;
        Ok(())
    }

    fn ready(&self, protocol: u32, pid: u32) -> String {
        let memory =
            r#"{"weights_mapped_bytes":1,"weights_bytes":2,"kv_bytes":3,"compute_bytes":4}"#;
        let context = &self.context;
        format!(
            r#"{{"ready":{{"protocol":{protocol},"pid":{pid},"context_tokens":{context},"memory":{memory}}}}}"#
        )
    }

    /// Sends an invalid handshake, with a socket that answers, so that only the line is wrong.
    fn lie(&self, line: &str) -> Result<(), Failed> {
        let Place::Socket(socket) = &self.place else {
            return Err("no socket".into());
        };
        let _listener = UnixListener::bind(socket)?;
        say(line)?;
        forever()
    }

    fn serve(&self) -> Result<(), Failed> {
        let (sender, connections) = mpsc::channel::<Box<dyn Connection>>();
        // Requests after the handshake are answered.
        let accept: Box<dyn FnOnce() + Send> = match &self.place {
            Place::Socket(socket) => {
                let listener = UnixListener::bind(socket)?;
                Box::new(move || {
                    let streams = listener.incoming().map_while(Result::ok);
                    streams.for_each(|stream| drop(sender.send(Box::new(stream))));
                })
            }
            Place::Port(port) => {
                let listener = TcpListener::bind(("127.0.0.1", *port))?;
                Box::new(move || {
                    let streams = listener.incoming().map_while(Result::ok);
                    streams.for_each(|stream| drop(sender.send(Box::new(stream))));
                })
            }
        };
        say(&self.ready(1, process::id()))?;
        thread::spawn(accept);
        if !self.behaviour.ends_with("ignores-sigterm") && !self.behaviour.starts_with("foreign") {
            thread::spawn(|| {
                let _ = io::stdin().read_to_end(&mut Vec::new());
                process::exit(0);
            });
        }
        for (count, mut stream) in connections.iter().enumerate() {
            // A client that disconnects does not end the worker.
            let _ = self.answer(&mut *stream, count);
        }
        Ok(())
    }

    fn answer(&self, stream: &mut dyn Connection, count: usize) -> io::Result<()> {
        let mut request = String::new();
        BufReader::new(&mut *stream).read_line(&mut request)?;
        match self.behaviour.as_str() {
            "babbles" => return stream.write_all(b"\x00\x01 what was the question?"),
            "foreign-garbage" => return stream.write_all(b"220 mail.example ESMTP ready\r\n"),
            "foreign-loading" if count < 3 => {
                return stream.write_all(b"HTTP/1.1 503 Loading\r\ncontent-length: 0\r\n\r\n");
            }
            _ => {}
        }
        let body = match request.split(' ').nth(1) {
            Some("/crash") => process::abort(),
            Some("/exit") => process::exit(7),
            Some("/flood") => {
                flood();
                io::stdout().write_all(&vec![b'x'; FLOOD])?;
                "flooded".to_owned()
            }
            Some("/trim") => {
                mutter("gave back what it could");
                String::new()
            }
            Some("/environment") => env::vars_os()
                .map(|(name, _)| format!("{}\n", name.display()))
                .collect(),
            _ => "ok".to_owned(),
        };
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    }
}

fn say(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

fn mutter(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn flood() {
    for line in 0..FLOOD / 64 {
        mutter(&format!("{line:>63}"));
    }
}

fn forever() -> ! {
    loop {
        thread::park();
    }
}
