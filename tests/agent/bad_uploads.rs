//! Uploads that are wrong: refused whole, nothing of them kept, and the next upload works.

use std::io::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::Method;
use serde_json::{Value, json};

use crate::daemon::Daemon;

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

fn archive(format: &str, bytes: &[u8]) -> Value {
    json!({"archive": {"format": format, "base64": BASE64_STANDARD.encode(bytes)}})
}

/// A tar with one entry; names that the tar library would not write are set byte by byte.
fn tar(name: &[u8], kind: tar::EntryType, link: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_old();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.as_old_mut().linkname[..link.len()].copy_from_slice(link);
    header.set_entry_type(kind);
    let content: &[u8] = if link.is_empty() { b"content" } else { b"" };
    header.set_size(content.len() as u64);
    header.set_cksum();
    let mut builder = tar::Builder::new(Vec::new());
    builder.append(&header, content).unwrap();
    gzipped(&builder.into_inner().unwrap())
}

fn zip(write: impl FnOnce(&mut zip::ZipWriter<std::io::Cursor<Vec<u8>>>)) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    write(&mut writer);
    writer.finish().unwrap().into_inner()
}

/// The uploads of a daemon that other tests change too: those below a folder.
async fn below(daemon: &Daemon, folder: &str) -> usize {
    let files = daemon.get("files").await;
    let inside = |file: &&Value| file["path"].as_str().unwrap().starts_with(folder);
    files["files"]
        .as_array()
        .unwrap()
        .iter()
        .filter(inside)
        .count()
}

async fn next_upload_works(daemon: &Daemon) {
    let body = json!({"files": [{"path": "well.txt", "text": "well"}]});
    assert_eq!(daemon.ok("files", body).await["files"][0]["bytes"], 4);
}

#[tokio::test]
async fn a_path_that_escapes_is_refused_wherever_it_comes() {
    let daemon = Daemon::shared();
    let long = "a".repeat(300);
    for path in [
        "../x",
        "a/../../x",
        "/x",
        "/etc/passwd",
        "a\0b",
        &long,
        "",
        "a//b",
        "a\\b",
        "..",
        "a/..",
    ] {
        let good = json!({"path": "paths/good.txt", "text": "x"});
        let body = json!({"files": [good, {"path": path, "text": "x"}]});
        daemon.refused("files", body, 400, "bad_path").await;
        daemon
            .refused("files", json!({"delete": [path]}), 400, "bad_path")
            .await;
        assert_eq!(
            below(&daemon, "paths/").await,
            0,
            "{path:?}: half of a refused call was kept"
        );
        next_upload_works(&daemon).await;
    }
    daemon
        .refused("page", json!({"path": "../x"}), 400, "bad_path")
        .await;
    let prefixed = json!({"archive": {"format": "zip", "base64": "", "prefix": "../x"}});
    let (status, reply) = daemon.post("files", prefixed).await;
    assert_eq!(
        (status, &reply["error"]["code"]),
        (400, &json!("bad_path")),
        "{reply}"
    );
}

#[tokio::test]
async fn a_broken_base64_is_refused_and_says_where() {
    let daemon = Daemon::shared();
    for base64 in [
        "@@@@",
        "AAAA====",
        "AAA",
        "AA=A",
        "data:text/plain;base64,AAAA",
        "ä",
        "AA\0A",
    ] {
        let body = json!({"files": [{"path": "b64/x.bin", "base64": base64}]});
        let error = daemon.refused("files", body, 400, "bad_base64").await;
        assert!(
            error["message"].as_str().unwrap().contains("files[0]"),
            "{error}"
        );
        let body = json!({"archive": {"format": "zip", "base64": base64}});
        daemon.refused("files", body, 400, "bad_base64").await;
    }
    assert_eq!(below(&daemon, "b64/").await, 0);
    next_upload_works(&daemon).await;
}

#[tokio::test]
async fn a_chunk_that_does_not_fit_is_told_where_the_file_ends() {
    let daemon = Daemon::shared();
    let chunk =
        |offset: u64| json!({"files": [{"path": "chunks/a", "text": "four", "offset": offset}]});
    let error = daemon
        .refused("files", chunk(4), 409, "offset_mismatch")
        .await;
    assert_eq!(error["offset"], 0);
    daemon.ok("files", chunk(0)).await;
    for wrong in [3, 5, 400_000_000_000] {
        let error = daemon
            .refused("files", chunk(wrong), 409, "offset_mismatch")
            .await;
        assert_eq!(error["offset"], 4, "{error}");
    }
    let reply = daemon.ok("files", chunk(4)).await;
    assert_eq!(reply["files"][0]["bytes"], 8);
}

#[tokio::test]
async fn an_archive_that_is_a_bomb_is_refused_and_nothing_of_it_is_kept() {
    let daemon = Daemon::shared();
    let zeros = vec![0; 1 << 20];
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
    for n in 0..260 {
        let mut header = tar::Header::new_gnu();
        header.set_size(zeros.len() as u64);
        builder
            .append_data(&mut header, format!("bomb/{n}"), zeros.as_slice())
            .unwrap();
    }
    let tar_gz = builder.into_inner().unwrap().finish().unwrap();
    let in_zip = zip(|writer| {
        let deflated = zip::write::SimpleFileOptions::default();
        writer.start_file("bomb/0", deflated).unwrap();
        (0..260).for_each(|_| writer.write_all(&zeros).unwrap());
    });
    for (format, bomb) in [("tar.gz", tar_gz), ("zip", in_zip)] {
        assert!(
            bomb.len() < 600_000,
            "{format}: the bomb does not fit a body"
        );
        let reply = daemon
            .send(Method::POST, "files", archive(format, &bomb).to_string())
            .await;
        let body = reply.json();
        assert_eq!(
            (reply.status, &body["error"]["code"]),
            (413, &json!("uploads_full")),
            "{format}: {body}"
        );
        assert_eq!(below(&daemon, "bomb/").await, 0, "{format}");
        next_upload_works(&daemon).await;
    }
}

#[tokio::test]
async fn an_archive_with_links_or_paths_out_of_it_is_refused() {
    let daemon = Daemon::shared();
    let regular = tar::EntryType::Regular;
    let link_in_zip = zip(|writer| {
        writer
            .add_symlink(
                "arch/l",
                "/etc/passwd",
                zip::write::SimpleFileOptions::default(),
            )
            .unwrap();
    });
    for (what, body) in [
        (
            "a link",
            archive(
                "tar.gz",
                &tar(b"arch/l", tar::EntryType::Symlink, b"/etc/passwd"),
            ),
        ),
        (
            "a hard link",
            archive("tar.gz", &tar(b"arch/l", tar::EntryType::Link, b"../x")),
        ),
        (
            "a device",
            archive("tar.gz", &tar(b"arch/d", tar::EntryType::Char, b"")),
        ),
        (
            "a way out",
            archive("tar.gz", &tar(b"../out", regular, b"")),
        ),
        (
            "an absolute path",
            archive("tar.gz", &tar(b"/etc/x", regular, b"")),
        ),
        ("a link in a zip", archive("zip", &link_in_zip)),
        ("no archive", archive("tar.gz", b"no archive")),
        ("no zip", archive("zip", b"no archive")),
        (
            "half an archive",
            archive("tar.gz", &tar(b"arch/a", regular, b"")[..60]),
        ),
        ("nothing", archive("zip", b"")),
    ] {
        let error = daemon.refused("files", body, 400, "bad_archive").await;
        assert_eq!(below(&daemon, "arch/").await, 0, "{what}: {error}");
        next_upload_works(&daemon).await;
    }
    let good = daemon
        .ok("files", archive("tar.gz", &tar(b"arch/a", regular, b"")))
        .await;
    assert_eq!(good["files"][0]["path"], "arch/a");
    daemon.ok("files", json!({"delete": ["arch/a"]})).await;
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_and_the_next_call_works() {
    let daemon = Daemon::shared();
    let body = json!({"files": [{"path": "large", "text": "x".repeat(1 << 20)}]}).to_string();
    let reply = daemon.send(Method::POST, "files", body).await;
    assert_eq!(reply.status, 413, "{}", reply.text());
    next_upload_works(&daemon).await;
}
