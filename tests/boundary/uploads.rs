//! The uploads host, through the proxy, over TLS, as a browser uses it.

use bytes::Bytes;
use gpu_browser::proxy::uploads::HOST;
use gpu_browser::proxy::uploads::store::{Change, Put, UploadPath};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::task::JoinSet;

use crate::world::client::Trust;
use crate::world::home::Home;

const TARGET: &str = "uploads.gpu-browser.internal:443";

fn put(home: &Home, path: &str, chunks: &[Bytes]) {
    let mut offset = 0;
    for chunk in chunks {
        let put = Put {
            path: UploadPath::parse(path).unwrap(),
            bytes: chunk.clone(),
            content_type: None,
            offset: Some(offset),
        };
        home.uploads
            .apply(Change {
                put: vec![put],
                ..Change::default()
            })
            .unwrap();
        offset += chunk.len();
    }
}

/// A browser with the uploads host open over HTTP/1.1.
struct Browser {
    sender: http1::SendRequest<Empty<Bytes>>,
    _connection: JoinSet<()>,
}

impl Browser {
    async fn new(home: &Home) -> Self {
        let (status, client) = home.connect(&home.proxy.issue(), TARGET).await;
        assert_eq!(status, 200);
        let trust = Trust::Spki(home.proxy.spki().to_owned());
        let tls = client.tls(HOST, trust, &[b"http/1.1"]).await.unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(tls)).await.unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async { connection.await.unwrap() });
        Self {
            sender,
            _connection: tasks,
        }
    }

    async fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> (Response<()>, Bytes) {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", HOST);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = self
            .sender
            .send_request(request.body(Empty::new()).unwrap())
            .await
            .unwrap();
        let (head, body) = answer.into_parts();
        (
            Response::from_parts(head, ()),
            body.collect().await.unwrap().to_bytes(),
        )
    }
}

fn header<'a>(answer: &'a Response<()>, name: &str) -> &'a str {
    answer
        .headers()
        .get(name)
        .map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn an_upload_is_served_with_its_type_and_isolated() {
    let home = Home::new(&[], &[]);
    put(&home, "index.html", &[Bytes::from_static(b"<canvas>")]);
    put(&home, "lib/index.html", &[Bytes::from_static(b"lib")]);
    let mut browser = Browser::new(&home).await;
    let (answer, body) = browser.ask("GET", "/?v=1", &[]).await;
    assert_eq!(
        (answer.status(), &body[..]),
        (StatusCode::OK, &b"<canvas>"[..])
    );
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("content-length", "8"),
        ("accept-ranges", "bytes"),
        ("cache-control", "no-cache"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-embedder-policy", "credentialless"),
        ("access-control-allow-origin", ""),
    ] {
        assert_eq!(header(&answer, name), value, "{name}");
    }
    let (answer, body) = browser.ask("HEAD", "/", &[]).await;
    assert_eq!((header(&answer, "content-length"), body.len()), ("8", 0));
    let (answer, _) = browser.ask("GET", "/lib", &[]).await;
    assert_eq!(
        (answer.status().as_u16(), header(&answer, "location")),
        (308, "/lib/")
    );
    let (answer, _) = browser.ask("POST", "/", &[]).await;
    assert_eq!(
        (answer.status().as_u16(), header(&answer, "allow")),
        (405, "GET, HEAD")
    );
    home.proxy.close().await;
}

#[tokio::test]
async fn what_is_no_upload_is_told_so_and_nothing_is_listed() {
    let home = Home::new(&[], &[]);
    put(&home, "secret-name.html", &[Bytes::from_static(b"x")]);
    let mut browser = Browser::new(&home).await;
    for path in [
        "/",
        "/nope",
        "/%2e%2e/etc/passwd",
        "/%00",
        "/%zz",
        "/secret-name.html/x",
    ] {
        let (answer, body) = browser.ask("GET", path, &[]).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
        assert_eq!(header(&answer, "x-content-type-options"), "nosniff");
        assert!(!String::from_utf8_lossy(&body).contains("secret"), "{path}");
    }
    home.proxy.close().await;
}

#[tokio::test]
async fn ranges_and_tags_are_answered_as_they_should() {
    let home = Home::new(&[], &[]);
    put(
        &home,
        "a.bin",
        &[
            Bytes::from_static(b"012"),
            Bytes::from_static(b"345"),
            Bytes::from_static(b"6789"),
        ],
    );
    let mut browser = Browser::new(&home).await;
    let (answer, _) = browser.ask("GET", "/a.bin", &[]).await;
    let tag = header(&answer, "etag").to_owned();
    for (headers, status, body, range) in [
        (vec![("range", "bytes=2-6")], 206, "23456", "bytes 2-6/10"),
        (vec![("range", "bytes=-4")], 206, "6789", "bytes 6-9/10"),
        (vec![("range", "bytes=5-")], 206, "56789", "bytes 5-9/10"),
        (vec![("range", "bytes=0-1,4-5")], 200, "0123456789", ""),
        (
            vec![("range", "bytes=2-3"), ("if-range", tag.as_str())],
            206,
            "23",
            "bytes 2-3/10",
        ),
        (
            vec![("range", "bytes=2-3"), ("if-range", "\"old\"")],
            200,
            "0123456789",
            "",
        ),
        (
            vec![("range", "bytes=10-")],
            416,
            "The upload is shorter than that.\n",
            "bytes */10",
        ),
        (vec![("if-none-match", tag.as_str())], 304, "", ""),
        (vec![("if-none-match", "\"old\"")], 200, "0123456789", ""),
    ] {
        let (answer, got) = browser.ask("GET", "/a.bin", &headers).await;
        assert_eq!(
            (answer.status().as_u16(), &got[..]),
            (status, body.as_bytes()),
            "{headers:?}"
        );
        assert_eq!(header(&answer, "content-range"), range, "{headers:?}");
    }
    put(&home, "a.bin", &[Bytes::from_static(b"new")]);
    let (answer, got) = browser
        .ask("GET", "/a.bin", &[("if-none-match", &tag)])
        .await;
    assert_eq!(
        (answer.status(), &got[..]),
        (StatusCode::OK, &b"new"[..]),
        "an agent that uploads again sees the new file"
    );
    home.proxy.close().await;
}

#[tokio::test]
async fn a_hundred_megabytes_come_whole_over_http2() {
    let home = Home::new(&[], &[]);
    let chunk = Bytes::from(
        (0..1_u32 << 20)
            .map(|n| (n % 251) as u8)
            .collect::<Vec<_>>(),
    );
    put(&home, "big.bin", &vec![chunk.clone(); 100]);
    let (_, client) = home.connect(&home.proxy.issue(), TARGET).await;
    let trust = Trust::Spki(home.proxy.spki().to_owned());
    let tls = client
        .tls(HOST, trust, &[b"h2", b"http/1.1"])
        .await
        .unwrap();
    assert_eq!(tls.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(tls))
        .await
        .unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async { connection.await.unwrap() });
    let request = Request::get(format!("https://{HOST}/big.bin"))
        .body(Empty::<Bytes>::new())
        .unwrap();
    let mut body = sender.send_request(request).await.unwrap().into_body();
    let mut at = 0;
    while let Some(frame) = body.frame().await {
        let data = frame.unwrap().into_data().unwrap();
        let from = at % chunk.len();
        let fits = data.len().min(chunk.len() - from);
        assert_eq!(data[..fits], chunk[from..from + fits]);
        assert_eq!(data[fits..], chunk[..data.len() - fits]);
        at += data.len();
    }
    assert_eq!(at, 100 << 20);
    home.proxy.close().await;
}

#[tokio::test]
async fn the_runs_key_answers_to_its_one_name_alone() {
    let home = Home::new(&[], &[]);
    put(&home, "index.html", &[Bytes::from_static(b"x")]);
    for (name, trusted) in [("accounts.google.com", false), (HOST, true)] {
        let (_, client) = home.connect(&home.proxy.issue(), TARGET).await;
        let trust = Trust::Spki(home.proxy.spki().to_owned());
        assert_eq!(
            client.tls(name, trust, &[]).await.is_ok(),
            trusted,
            "{name}"
        );
    }
    home.proxy.close().await;
}
