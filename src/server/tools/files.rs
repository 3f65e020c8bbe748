//! `POST /files` and `GET /files`: what the agent uploads, as text, as base64, in chunks, or as an archive.
//!
//! A call is a batch: it is parsed and decoded whole before the store changes, and takes effect whole or not at all.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use crate::policy::limits::{MIB, UPLOAD_BYTES, UPLOAD_CONTENT_TYPE, UPLOAD_FILES, WRITTEN_LIST};
use crate::proxy::uploads::ORIGIN;
use crate::proxy::uploads::store::{Change, Listed, Put, StoreRefusal, UploadPath, UploadStore};
use crate::server::answer::{Answer, Code, Refused};
use crate::server::archive::{ArchiveFormat, unpack};
use crate::server::arguments::parse;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Arguments {
    files: Vec<File>,
    archive: Option<Archive>,
    delete: Vec<String>,
    clear: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    path: String,
    text: Option<String>,
    base64: Option<String>,
    content_type: Option<String>,
    offset: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Archive {
    base64: String,
    format: ArchiveFormat,
    #[serde(default)]
    prefix: String,
}

/// Changes the uploads. Decoding and inflating take their time: not for an async thread.
pub fn post(store: &UploadStore, body: &str) -> Result<Answer, Refused> {
    let change = change(parse(body)?)?;
    let written = store.apply(change).map_err(|refusal| refuse(&refusal))?;
    let mut reply = list(store, written.iter().take(WRITTEN_LIST));
    if written.len() > WRITTEN_LIST {
        reply["more_files"] = (written.len() - WRITTEN_LIST).into();
    }
    Ok(Answer::Json(reply))
}

/// Lists the uploads.
pub fn get(store: &UploadStore) -> Answer {
    Answer::Json(list(store, store.list().iter()))
}

fn change(arguments: Arguments) -> Result<Change, Refused> {
    let Arguments {
        files,
        archive,
        delete,
        clear,
    } = arguments;
    if files.is_empty() && archive.is_none() && delete.is_empty() && !clear {
        return Err(Refused::new(
            Code::BadArguments,
            "there is nothing to do",
            "give `files`, `archive`, `delete` or `clear`; `GET /files` lists what is there",
        ));
    }
    let mut put = match archive {
        None => Vec::new(),
        Some(archive) => {
            let bytes = decode("archive", &archive.base64)?;
            unpack(&bytes, archive.format, &archive.prefix)?
        }
    };
    for (index, file) in files.into_iter().enumerate() {
        put.push(file.put(index)?);
    }
    let delete = delete
        .iter()
        .map(|path| UploadPath::parse(path).map_err(|refusal| refuse(&refusal)));
    Ok(Change {
        clear,
        delete: delete.collect::<Result<_, _>>()?,
        put,
    })
}

impl File {
    fn put(self, index: usize) -> Result<Put, Refused> {
        let path = UploadPath::parse(&self.path).map_err(|refusal| refuse(&refusal))?;
        let place = format!("files[{index}] ({path})");
        let bytes = match (self.text, self.base64) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(base64)) => decode(&place, &base64)?,
            (text, _) => {
                let has = text.map_or(
                    "neither `text` nor `base64`",
                    |_| "both `text` and `base64`",
                );
                return Err(Refused::new(
                    Code::BadArguments,
                    format!("{place} has {has}"),
                    "give exactly one: `text` for text, `base64` for anything else",
                ));
            }
        };
        if self
            .content_type
            .as_deref()
            .is_some_and(|kind| !is_header_value(kind))
        {
            return Err(Refused::new(
                Code::BadArguments,
                format!("{place}: content_type is no value of a header"),
                "leave it out, or give one like \"text/html; charset=utf-8\"",
            ));
        }
        Ok(Put {
            path,
            bytes: Bytes::from(bytes),
            content_type: self.content_type,
            offset: self.offset,
        })
    }
}

fn is_header_value(text: &str) -> bool {
    let printable = |byte| (b' '..=b'~').contains(&byte);
    !text.is_empty() && text.len() <= UPLOAD_CONTENT_TYPE && text.bytes().all(printable)
}

/// Decodes base64; line breaks are skipped, since `base64` writes them.
fn decode(place: &str, text: &str) -> Result<Vec<u8>, Refused> {
    let joined: String;
    let text = if text.contains(|c: char| c.is_ascii_whitespace()) {
        joined = text.split_ascii_whitespace().collect();
        &joined
    } else {
        text
    };
    STANDARD.decode(text).map_err(|error| {
        Refused::new(
            Code::BadBase64,
            format!("{place}: broken base64: {error}"),
            "send the whole file as standard, padded base64: `base64 -w0 FILE`, or `base64 < FILE | tr -d '\\n'`",
        )
    })
}

fn list<'a>(store: &UploadStore, files: impl Iterator<Item = &'a Listed>) -> Value {
    let (total_files, total_bytes) = store.total();
    let files: Vec<Value> = files
        .map(|file| {
            json!({
                "path": file.path.as_str(),
                "url": url(&file.path),
                "bytes": file.bytes,
                "sha256": file.sha256,
            })
        })
        .collect();
    json!({ "origin": ORIGIN, "files": files, "total_files": total_files, "total_bytes": total_bytes })
}

/// The address that an upload is served at, percent-encoded.
fn url(path: &UploadPath) -> String {
    let Ok(mut url) = Url::parse(ORIGIN) else {
        return format!("{ORIGIN}/{path}");
    };
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.clear().extend(path.as_str().split('/'));
    }
    url.into()
}

/// The one place where refusals of the store get their codes.
fn refuse(refusal: &StoreRefusal) -> Refused {
    let message = refusal.to_string();
    match refusal {
        StoreRefusal::BadPath { .. } => Refused::new(
            Code::BadPath,
            message,
            "give a relative path like \"index.html\" or \"js/app.js\"",
        ),
        StoreRefusal::Full { .. } => Refused::new(
            Code::UploadsFull,
            format!(
                "{message}; at most {UPLOAD_FILES} files and {} MiB",
                UPLOAD_BYTES / MIB
            ),
            "nothing has changed; drop files with `delete` or `clear` first",
        ),
        StoreRefusal::OffsetMismatch { expected, .. } => Refused::new(
            Code::OffsetMismatch,
            message,
            format!("send the chunk that begins at offset {expected}, or offset 0 to start over"),
        )
        .with("offset", *expected),
        StoreRefusal::NotFound { .. } => Refused::new(
            Code::NotFound,
            message,
            "see `GET /files` for what is there",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(store: &UploadStore, body: &Value) -> Value {
        match post(store, &body.to_string()) {
            Ok(Answer::Json(reply)) => reply,
            other => panic!("{body}: {other:?}"),
        }
    }

    #[test]
    fn text_and_base64_become_files_with_addresses_and_digests() {
        let store = UploadStore::new();
        let reply = ok(
            &store,
            &json!({"files": [
                {"path": "index.html", "text": "<p>ä</p>"},
                {"path": "a b/ü?#%.png", "base64": "AAEC\nAw==\n"},
            ]}),
        );
        assert_eq!(reply["origin"], ORIGIN);
        assert_eq!(
            (&reply["total_files"], &reply["total_bytes"]),
            (&json!(2), &json!(13))
        );
        assert_eq!(
            reply["files"][0]["url"],
            format!("{ORIGIN}/a%20b/%C3%BC%3F%23%25.png")
        );
        assert_eq!(reply["files"][1]["bytes"], 9);
        let digest = "054edec1d0211f624fed0cbca9d4f9400b0e491c43742af2c5b0abebf0c990d8";
        assert_eq!(reply["files"][0]["sha256"], digest);
        assert_eq!(get(&store), Answer::Json(reply));
    }

    #[test]
    fn chunks_join_and_a_wrong_offset_is_told_the_right_one() {
        let store = UploadStore::new();
        ok(
            &store,
            &json!({"files": [{"path": "a", "text": "one ", "offset": 0}]}),
        );
        ok(
            &store,
            &json!({"files": [{"path": "a", "base64": "dHdv", "offset": 4}]}),
        );
        let body = json!({"files": [{"path": "a", "text": "x", "offset": 5}]}).to_string();
        let refused = post(&store, &body).unwrap_err();
        assert_eq!((refused.status, refused.code), (409, "offset_mismatch"));
        assert!(
            refused.message.contains("holds 7 bytes"),
            "{}",
            refused.message
        );
        assert_eq!(refused.body()["error"]["offset"], 7);
    }

    #[test]
    fn an_archive_is_taken_with_files_beside_it_and_a_long_receipt_is_cut() {
        let store = UploadStore::new();
        let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(
            Vec::new(),
            flate2::Compression::fast(),
        ));
        for n in 0..=WRITTEN_LIST {
            let mut header = tar::Header::new_gnu();
            header.set_size(1);
            tar.append_data(&mut header, format!("f{n}"), &b"1"[..])
                .unwrap();
        }
        let base64 = STANDARD.encode(tar.into_inner().unwrap().finish().unwrap());
        let archive = json!({"base64": base64, "format": "tgz", "prefix": "in"});
        let reply = ok(
            &store,
            &json!({"archive": archive, "files": [{"path": "in/f0", "text": "newer"}]}),
        );
        assert_eq!(reply["files"].as_array().unwrap().len(), WRITTEN_LIST);
        assert_eq!(
            (&reply["more_files"], &reply["total_files"]),
            (&json!(1), &json!(21))
        );
        assert_eq!(reply["files"][0]["bytes"], 5);
        let reply = ok(&store, &json!({"clear": true}));
        assert_eq!(
            (&reply["files"], &reply["total_bytes"]),
            (&json!([]), &json!(0))
        );
    }

    #[test]
    fn a_bad_batch_is_refused_and_changes_nothing() {
        let rows = [
            (json!({}), 400, "bad_arguments"),
            (json!({"file": []}), 400, "bad_arguments"),
            (json!({"files": [{"path": "a"}]}), 400, "bad_arguments"),
            (
                json!({"files": [{"path": "a", "text": "", "base64": ""}]}),
                400,
                "bad_arguments",
            ),
            (
                json!({"files": [{"path": "a", "text": "", "content_type": "a\r\nb: c"}]}),
                400,
                "bad_arguments",
            ),
            (
                json!({"files": [{"path": "a", "base64": "AAE"}]}),
                400,
                "bad_base64",
            ),
            (
                json!({"files": [{"path": "a", "base64": "data:,x"}]}),
                400,
                "bad_base64",
            ),
            (
                json!({"files": [{"path": "../a", "text": ""}]}),
                400,
                "bad_path",
            ),
            (
                json!({"files": [{"path": "a\u{0}", "text": ""}]}),
                400,
                "bad_path",
            ),
            (
                json!({"files": [{"path": "n".repeat(300), "text": ""}]}),
                400,
                "bad_path",
            ),
            (json!({"delete": ["/keep"]}), 400, "bad_path"),
            (json!({"delete": ["missing"]}), 404, "not_found"),
            (
                json!({"archive": {"base64": "AAAA", "format": "zip"}}),
                400,
                "bad_archive",
            ),
            (
                json!({"archive": {"base64": "AAAA", "format": "rar"}}),
                400,
                "bad_arguments",
            ),
        ];
        let store = UploadStore::new();
        ok(&store, &json!({"files": [{"path": "keep", "text": "1"}]}));
        let before = get(&store);
        for (bad, status, code) in rows {
            let mut body = bad;
            if let Some(files) = body.get_mut("files").and_then(Value::as_array_mut) {
                files.insert(0, json!({"path": "good", "text": "1"}));
            }
            let refused = post(&store, &body.to_string()).unwrap_err();
            assert_eq!((refused.status, refused.code), (status, code), "{body}");
            assert_eq!(get(&store), before, "{body}");
        }
    }

    #[test]
    fn full_uploads_say_so() {
        let store = UploadStore::new();
        let files: Vec<Value> = (0..=UPLOAD_FILES)
            .map(|n| json!({"path": format!("f{n}"), "text": ""}))
            .collect();
        let refused = post(&store, &json!({ "files": files }).to_string()).unwrap_err();
        assert_eq!((refused.status, refused.code), (413, "uploads_full"));
        assert!(refused.message.contains("513 files"), "{}", refused.message);
    }
}
