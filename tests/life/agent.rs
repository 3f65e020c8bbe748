//! An agent that speaks plain HTTP, one connection a call.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// No call may take longer: the relay gives up after 30 s.
const PATIENCE: Duration = Duration::from_secs(32);

/// A link, as an agent holds it.
#[derive(Clone)]
pub struct Agent {
    authority: String,
    path: String,
}

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub text: String,
    pub took: Duration,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The stable code of an error.
    pub fn code(&self) -> Option<String> {
        let body: Value = serde_json::from_str(&self.text).ok()?;
        Some(body["error"]["code"].as_str()?.to_owned())
    }

    /// The body of a call that must have worked.
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()
    }
}

impl Agent {
    pub fn new(link: &str) -> Self {
        let base = link.strip_suffix("/agents.md").unwrap();
        let rest = base.strip_prefix("http://").unwrap();
        let (authority, path) = rest.split_once('/').unwrap();
        Self {
            authority: authority.to_owned(),
            path: format!("/{path}"),
        }
    }

    /// Whether anything answers behind the link.
    pub fn is_alive(&self) -> bool {
        self.try_info().is_ok()
    }

    pub fn try_info(&self) -> std::io::Result<Reply> {
        self.try_call("GET", "/info", "")
    }

    pub fn get(&self, tool: &str) -> Reply {
        self.try_call("GET", tool, "").unwrap()
    }

    pub fn post(&self, tool: &str, body: &Value) -> Reply {
        self.try_post(tool, body).unwrap()
    }

    /// A call that may find the link dead.
    pub fn try_post(&self, tool: &str, body: &Value) -> std::io::Result<Reply> {
        self.try_call("POST", tool, &body.to_string())
    }

    /// Opens a page that is given as text, and returns its name.
    pub fn open(&self, html: &str) -> String {
        let body = json!({"html": html, "width": 1280, "height": 720});
        let verdict = self.post("/page", &body).ok();
        verdict["page"].as_str().unwrap().to_owned()
    }

    /// The file of a picture, from all its parts.
    pub fn fetch(&self, receipt: &Value) -> Vec<u8> {
        let mut file = Vec::new();
        for part in 1..=receipt["parts"].as_u64().unwrap() {
            let reply = self.post("/image", &json!({"image": receipt["image"], "part": part}));
            assert_eq!(reply.status, 200, "{reply:?}");
            file.extend(STANDARD.decode(reply.text.trim()).unwrap());
        }
        assert_eq!(Some(file.len() as u64), receipt["bytes"].as_u64());
        file
    }

    fn try_call(&self, method: &str, tool: &str, body: &str) -> std::io::Result<Reply> {
        let began = Instant::now();
        let mut stream = TcpStream::connect(&self.authority)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (authority, path) = (&self.authority, &self.path);
        write!(
            stream,
            "{method} {path}{tool} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, text) = answer
            .split_once("\r\n\r\n")
            .ok_or(std::io::ErrorKind::UnexpectedEof)?;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Ok(Reply {
            status,
            text: text.to_owned(),
            took: began.elapsed(),
        })
    }
}

/// The pixel of a PNG, red, green, blue.
pub fn pixel(file: &[u8], x: usize, y: usize) -> [u8; 3] {
    let (pixels, width, channels) = decode(file);
    let at = (y * width + x) * channels;
    [pixels[at], pixels[at + 1], pixels[at + 2]]
}

/// The pixels of a PNG, its width, and the bytes of one pixel.
pub fn decode(file: &[u8]) -> (Vec<u8>, usize, usize) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(file))
        .read_info()
        .unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut pixels).unwrap();
    let width = frame.width as usize;
    pixels.truncate(frame.buffer_size());
    (pixels, width, frame.line_size / width)
}
